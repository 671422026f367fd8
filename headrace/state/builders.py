"""Store builders: what a store is to be, before there is a task to hold it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeAlias

from headrace.durations import milliseconds
from headrace.errors import TopologyError
from headrace.serdes import Serde, as_serde
from headrace.state.buffer import SuppressBuffer
from headrace.state.cells import Cells
from headrace.state.image import Image
from headrace.state.key_value import KeyValueStore
from headrace.state.session import SessionStore
from headrace.state.unmatched import UnmatchedStore
from headrace.state.versioned import VersionedStore
from headrace.state.window import WindowStore

Store: TypeAlias = (
    KeyValueStore[Any, Any]
    | WindowStore[Any, Any]
    | SessionStore[Any, Any]
    | VersionedStore[Any, Any]
    | SuppressBuffer
    | UnmatchedStore
)
Make: TypeAlias = Callable[[str, Callable[[Serde[Any] | None, str], Serde[Any]], Image, Cells], Store]
"""Makes a store from its name, a function that fills in default serdes ("key" or "value"), an image and cells."""


@dataclass(frozen=True)
class StoreBuilder:
    """What a store is to be. Equal builders make the same store."""

    name: str
    kind: str
    make: Make = field(compare=False, repr=False)
    options: tuple[tuple[str, Any], ...] = ()
    caching: bool = False
    logging: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise TopologyError(f"a store needs a name; expected a non-empty str, got {self.name!r}")


class Stores:
    """Builders of the stores a processor can use; add one with `add_state_store`."""

    @staticmethod
    def key_value(
        name: str,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        *,
        in_memory: bool = False,
        timestamped: bool = False,
        caching: bool = False,
        logging: bool = True,
    ) -> StoreBuilder:
        """Describe a key-value store.

        `in_memory` is accepted as Kafka Streams has it; where the engine keeps its images does not depend on it.
        """
        keys, values = _optional(key_serde), _optional(value_serde)

        def make(name: str, serde: Any, image: Image, cells: Cells) -> Store:
            return KeyValueStore(name, serde(keys, "key"), serde(values, "value"), image, timestamped=timestamped)

        kind = "timestamped-key-value" if timestamped else "key-value"
        return StoreBuilder(name, kind, make, _describe(keys, values), caching, logging)

    @staticmethod
    def window(
        name: str,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        *,
        retention: int | timedelta,
        window_size: int | timedelta,
        retain_duplicates: bool = False,
        timestamped: bool = False,
        keep_oldest: bool = False,
        caching: bool = False,
        logging: bool = True,
    ) -> StoreBuilder:
        """Describe a window store."""
        keys, values = _optional(key_serde), _optional(value_serde)
        kept, size = milliseconds(retention, "retention"), milliseconds(window_size, "window_size")
        if kept < size:
            raise TopologyError(
                f"store '{name}': the retention ({kept} ms) must be at least the window size ({size} ms)"
            )

        def make(name: str, serde: Any, image: Image, cells: Cells) -> Store:
            return WindowStore(
                name,
                serde(keys, "key"),
                serde(values, "value"),
                image,
                cells,
                retention=kept,
                window_size=size,
                retain_duplicates=retain_duplicates,
                timestamped=timestamped,
                keep_oldest=keep_oldest,
            )

        options = (*_describe(keys, values), ("window_size", size), ("duplicates", retain_duplicates))
        return StoreBuilder(name, "timestamped-window" if timestamped else "window", make, options, caching, logging)

    @staticmethod
    def session(
        name: str,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        *,
        retention: int | timedelta,
        keep_oldest: bool = False,
        caching: bool = False,
        logging: bool = True,
    ) -> StoreBuilder:
        """Describe a session store."""
        keys, values = _optional(key_serde), _optional(value_serde)
        kept = milliseconds(retention, "retention")

        def make(name: str, serde: Any, image: Image, cells: Cells) -> Store:
            return SessionStore(
                name,
                serde(keys, "key"),
                serde(values, "value"),
                image,
                cells,
                retention=kept,
                keep_oldest=keep_oldest,
            )

        return StoreBuilder(name, "session", make, _describe(keys, values), caching, logging)

    @staticmethod
    def versioned(
        name: str,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        *,
        history_retention: int | timedelta,
        logging: bool = True,
    ) -> StoreBuilder:
        """Describe a versioned store."""
        keys, values = _optional(key_serde), _optional(value_serde)
        history = milliseconds(history_retention, "history_retention")

        def make(name: str, serde: Any, image: Image, cells: Cells) -> Store:
            return VersionedStore(
                name, serde(keys, "key"), serde(values, "value"), image, cells, history_retention=history
            )

        return StoreBuilder(name, "versioned", make, _describe(keys, values), False, logging)


def suppress_buffer(
    name: str, key_serde: Serde[Any] | None, value_serde: Serde[Any] | None, *, count_bytes: bool
) -> StoreBuilder:
    """Describe the buffer of a suppress."""

    def make(name: str, serde: Any, image: Image, cells: Cells) -> Store:
        return SuppressBuffer(
            name, serde(key_serde, "key"), serde(value_serde, "value"), image, cells, count_bytes=count_bytes
        )

    return StoreBuilder(name, "suppress-buffer", make, _describe(key_serde, value_serde))


def unmatched_store(
    name: str, key_serde: Serde[Any] | None, left_serde: Serde[Any] | None, right_serde: Serde[Any] | None
) -> StoreBuilder:
    """Describe the store of a left or outer join's records without a match."""

    def make(name: str, serde: Any, image: Image, cells: Cells) -> Store:
        return UnmatchedStore(
            name, serde(key_serde, "key"), serde(left_serde, "value"), serde(right_serde, "value"), image
        )

    return StoreBuilder(name, "unmatched", make, (*_describe(key_serde, left_serde), ("right", repr(right_serde))))


def _optional(serde: Serde[Any] | None) -> Serde[Any] | None:
    return None if serde is None else as_serde(serde)


def _describe(keys: Serde[Any] | None, values: Serde[Any] | None) -> tuple[tuple[str, Any], ...]:
    return ("key", repr(keys)), ("value", repr(values))
