"""The options that commands have in common, and the broker that they name."""

from __future__ import annotations

import os
import shlex
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from headrace.brokers import Broker, connect
from headrace.cli.reporting import want_traceback
from headrace.errors import TopicError

ADDRESS_VARIABLE = "HEADRACE_BOOTSTRAP_SERVERS"
DEFAULT_ADDRESS = "local:.headrace/topics.db"

Address: TypeAlias = Annotated[
    str,
    typer.Option(
        "--bootstrap-servers",
        "-b",
        metavar="ADDRESS",
        envvar=ADDRESS_VARIABLE,
        help="Where the topics are: local:PATH is the embedded log in that file.",
    ),
]
Traceback: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--traceback", help="Show the Python traceback of an error.", callback=want_traceback, expose_value=False
    ),
]


def open_broker(address: str) -> Broker:
    """Open the topics of an address, without making a file where there is none."""
    path = local_path(address)
    if path is not None and not path.exists():
        raise TopicError(f"there are no topics yet: '{path}' does not exist. {_how_to_create('one', 'NAME', address)}")
    return connect(address)


def local_path(address: str) -> Path | None:
    """Return the file of an embedded log; None for any other address."""
    scheme, _, path = address.partition(":")
    return Path(path).expanduser() if scheme == "local" and path else None


def check_topic(broker: Broker, topic: str, address: str) -> None:
    """Raise when there is no such topic; say how to get it."""
    known = list(broker.topics())
    if topic in known:
        return
    close = get_close_matches(topic, known, n=1)
    where = f"there is no topic '{topic}' in {address}"
    if close:
        raise TopicError(f"{where}. Did you mean '{close[0]}'? {_how_to_create('it', topic, address)}")
    raise TopicError(f"{where} (topics: {', '.join(known) or 'none'}). {_how_to_create('it', topic, address)}")


def _how_to_create(what: str, topic: str, address: str) -> str:
    usual = os.environ.get(ADDRESS_VARIABLE) or DEFAULT_ADDRESS
    where = "" if address == usual else f" -b {shlex.quote(address)}"
    return f"Create {what} with: headrace topics create {topic}{where}"
