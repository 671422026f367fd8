"""Find the topology that `MODULE:APP` names."""

from __future__ import annotations

import importlib
import inspect
import os
import sys
import traceback
from collections.abc import Mapping
from difflib import get_close_matches
from types import ModuleType
from typing import TYPE_CHECKING, Any

from headrace import StreamsBuilder, Topology
from headrace.errors import ConfigError, HeadraceError

if TYPE_CHECKING:
    from headrace import Streams

_WANTED = "a Topology, a StreamsBuilder, a Streams, or a function that returns one"


def load_application(name: str, settings: Mapping[str, Any]) -> Streams:
    """Return the application of `MODULE:APP`; these settings override its own."""
    # Imported here to save time: only commands that load an application need Spark.
    from headrace import Streams, StreamsConfig

    made = _made(name)
    if isinstance(made, Streams):
        return made.with_settings(settings) if settings else made
    module = name.partition(":")[0].rpartition(".")[2].replace("_", "-")
    named = {} if "HEADRACE_APPLICATION_ID" in os.environ else {"application_id": module}
    return Streams(_as_topology(made), StreamsConfig(**{**named, **settings}))


def load_topology(name: str) -> Topology:
    """Return the topology of `MODULE:APP`; the working directory is searched first.

    >>> load_topology("examples.word_count:build_topology").describe().sub_topologies[0].id
    0
    """
    return _as_topology(_made(name))


def _find(name: str) -> Any:
    module_name, separator, app = name.partition(":")
    if module_name.endswith(".py"):
        as_module = module_name.removesuffix(".py").removeprefix("./").replace("/", ".")
        raise ConfigError(f"'{name}' names a file, not a module. Did you mean '{as_module}:{app or 'APP'}'?")
    if not separator or not module_name or not app:
        raise ConfigError(f"expected MODULE:APP, such as word_count:topology, got '{name}'")
    found: Any = _load_module(module_name)
    for attribute in app.split("."):
        found = _attribute(found, attribute, name)
    return found


def _load_module(name: str) -> ModuleType:
    folder = os.getcwd()
    if folder not in sys.path and "" not in sys.path:
        sys.path.insert(0, folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise ConfigError(
                f"there is no module '{error.name}' in '{folder}' or among the installed packages"
            ) from error
        raise HeadraceError(f"module '{name}' cannot be imported: {_describe(error)}") from error
    except HeadraceError:
        raise
    except Exception as error:
        raise HeadraceError(f"module '{name}' cannot be imported: {_describe(error)}") from error


def _attribute(owner: Any, attribute: str, name: str) -> Any:
    if hasattr(owner, attribute):
        return getattr(owner, attribute)
    what = f"module '{owner.__name__}'" if isinstance(owner, ModuleType) else f"the {type(owner).__name__} in '{name}'"
    public = [known for known in dir(owner) if not known.startswith("_")]
    close = get_close_matches(attribute, public, n=1)
    if close:
        raise ConfigError(f"{what} has no '{attribute}'. Did you mean '{close[0]}'?")
    there = [known for known in public if isinstance(getattr(owner, known, None), Topology | StreamsBuilder)]
    raise ConfigError(f"{what} has no '{attribute}'. Topologies in it: {', '.join(there) or 'none'}")


def _made(name: str) -> Streams | StreamsBuilder | Topology:
    """Return the object in the module, or the result if it is a function."""
    # Imported here to save time: only commands that load an application need Spark.
    from headrace import Streams

    found = _find(name)
    made = _call(found, name) if callable(found) else found
    if isinstance(made, Streams | StreamsBuilder | Topology):
        return made
    came = "a function that returned" if callable(found) else ""
    raise ConfigError(f"'{name}': expected {_WANTED}, got {came} {type(made).__name__}".replace("  ", " "))


def _as_topology(made: Streams | StreamsBuilder | Topology) -> Topology:
    if isinstance(made, StreamsBuilder):
        return made.build()
    return made if isinstance(made, Topology) else made.topology


def _call(function: Any, name: str) -> Any:
    try:
        inspect.signature(function).bind()
    except TypeError:
        signature = inspect.signature(function)
        raise ConfigError(f"'{name}': expected a function without arguments, got one with {signature}") from None
    except ValueError:  # a builtin without a signature
        pass
    try:
        return function()
    except HeadraceError:
        raise
    except Exception as error:
        raise HeadraceError(f"'{name}' failed: {_describe(error)}") from error


def _describe(error: Exception) -> str:
    """Describe an error with the line that raised it: the last one in the user's own code."""
    if isinstance(error, SyntaxError):
        return f"SyntaxError: {error.msg} ({error.filename}, line {error.lineno})"
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<")]
    where = f" ({own[-1].filename}, line {own[-1].lineno})" if own else ""
    return f"{type(error).__name__}: {error}{where}"
