"""Store builders: the description of a store, from which every task makes its own."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any, TypeAlias

from headrace.durations import milliseconds
from headrace.errors import TopologyError
from headrace.serdes import Serde, as_serde
from headrace.serdes.incomplete import FillIn
from headrace.state.image import Image
from headrace.state.key_value import KeyValueStore
from headrace.state.session import SessionStore
from headrace.state.setup import StoreSetup
from headrace.state.small_state import SmallState
from headrace.state.suppress_buffer import SuppressBuffer
from headrace.state.unmatched_records import UnmatchedRecords
from headrace.state.versioned import VersionedStore
from headrace.state.window import WindowStore

_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}")

Store: TypeAlias = (
    KeyValueStore[Any, Any]
    | WindowStore[Any, Any]
    | SessionStore[Any, Any]
    | VersionedStore[Any, Any]
    | SuppressBuffer
    | UnmatchedRecords
)
Make: TypeAlias = Callable[[str, FillIn, Image, SmallState], Store]
"""Makes a store from its name, a function that fills in default serdes, and a task's image and small state."""
Options: TypeAlias = tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class StoreBuilder:
    """The description of a store. Equal builders make equal stores.

    `Stores` makes builders; `topology.add_state_store` and `builder.add_state_store` take them.

    >>> Stores.key_value("sums") == Stores.key_value("sums")
    True
    """

    name: str
    kind: str
    make: Make = field(compare=False, repr=False)
    options: Options = ()
    caching: bool = False
    logging: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not _NAME.fullmatch(self.name):
            raise TopologyError(
                f"a store needs a name of up to 249 letters, digits, '.', '_' and '-', got {self.name!r}"
            )


class Stores:
    """Builders of the stores that processors can use. Add a store with `add_state_store`.

    Without a serde a store uses the configured default. Keys are in the order of their serialized bytes.

    >>> Stores.key_value("sums", serdes.String, serdes.Long).name
    'sums'
    """

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

        `in_memory` exists because Kafka Streams has it; it changes nothing about where the engine keeps the store. A
        `timestamped` store gives and takes `ValueAndTimestamp`.

        >>> class Latest(Processor):
        ...     def process(self, record):
        ...         store = self.context.state_store("latest")
        ...         known = store.get(record.key)
        ...         if known is None or known.timestamp <= record.timestamp:
        ...             store.put(record.key, ValueAndTimestamp(record.value, record.timestamp))
        ...             self.context.forward(record)
        >>> builder = StreamsBuilder()
        >>> _ = builder.add_state_store(Stores.key_value("latest", serdes.String, serdes.Json, timestamped=True))
        >>> builder.stream("in").process(Latest, "latest").to("out")
        >>> run(builder, [("a", 1, 5), ("a", 2, 3), ("a", 3, 7)])
        [('a', 1, 5), ('a', 3, 7)]
        """
        return _builder(
            name,
            "timestamped-key-value" if timestamped else "key-value",
            partial(KeyValueStore, timestamped=timestamped),
            _serdes(key_serde, value_serde),
            caching=caching,
            logging=logging,
        )

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
        """Describe a window store: a value for every key and window start.

        The store no longer shows windows that start `retention` or more before the latest start. With
        `retain_duplicates` a window holds several values.

        >>> class PerTen(Processor):
        ...     def process(self, record):
        ...         sums, start = self.context.state_store("sums"), record.timestamp // 10 * 10
        ...         sums.put(record.key, (sums.fetch(record.key, start) or 0) + record.value, start)
        ...         so_far = [(key.window.start, value) for key, value in sums.fetch(record.key, 0, start)]
        ...         self.context.forward(record.with_value(so_far))
        >>> builder = StreamsBuilder()
        >>> _ = builder.add_state_store(Stores.window("sums", retention=20, window_size=10))
        >>> builder.stream("in").process(PerTen, "sums").to("out")
        >>> run(builder, [("a", 1, 0), ("a", 2, 5), ("a", 3, 10), ("a", 4, 20)])
        [('a', [[0, 1]], 0), ('a', [[0, 3]], 5), ('a', [[0, 3], [10, 3]], 10), ('a', [[10, 3], [20, 4]], 20)]
        """
        kept, size = milliseconds(retention, "retention"), milliseconds(window_size, "window_size")
        if kept < size:
            raise TopologyError(
                f"store '{name}': the retention ({kept} ms) must be at least the window size ({size} ms)"
            )

        return _builder(
            name,
            "timestamped-window" if timestamped else "window",
            partial(
                WindowStore,
                retention=kept,
                window_size=size,
                retain_duplicates=retain_duplicates,
                timestamped=timestamped,
                keep_oldest=keep_oldest,
            ),
            _serdes(key_serde, value_serde),
            (("retention", kept), ("window_size", size), ("duplicates", retain_duplicates)),
            caching=caching,
            logging=logging,
        )

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
        """Describe a session store: a value for every key and session.

        The store no longer shows sessions that ended `retention` or more before the latest end.

        >>> class Visits(Processor):
        ...     def process(self, record):
        ...         visits, now = self.context.state_store("visits"), record.timestamp
        ...         start = now
        ...         for visit, _ in list(visits.find_sessions(record.key, now - 10, now + 10)):
        ...             start = min(start, visit.window.start)
        ...             visits.remove(visit)
        ...         visits.put(Windowed(record.key, Window(start, now)), record.value)
        ...         self.context.forward(record.with_value([start, now]))
        >>> builder = StreamsBuilder()
        >>> _ = builder.add_state_store(Stores.session("visits", retention=1000))
        >>> builder.stream("in").process(Visits, "visits").to("out")
        >>> run(builder, [("a", "x", 0), ("a", "y", 8), ("a", "z", 30)])
        [('a', [0, 0], 0), ('a', [0, 8], 8), ('a', [30, 30], 30)]
        """
        kept = milliseconds(retention, "retention")
        return _builder(
            name,
            "session",
            partial(SessionStore, retention=kept, keep_oldest=keep_oldest),
            _serdes(key_serde, value_serde),
            (("retention", kept),),
            caching=caching,
            logging=logging,
        )

    @staticmethod
    def versioned(
        name: str,
        key_serde: Serde[Any] | None = None,
        value_serde: Serde[Any] | None = None,
        *,
        history_retention: int | timedelta,
        logging: bool = True,
    ) -> StoreBuilder:
        """Describe a versioned store, which tells a key's value at a time in the past.

        It keeps versions for `history_retention`, and the latest one for ever. `get` gives a `VersionedRecord`.

        >>> class PriceThen(Processor):
        ...     def process(self, record):
        ...         prices = self.context.state_store("prices")
        ...         prices.put(record.key, record.value, record.timestamp)
        ...         then = prices.get(record.key, as_of=10)
        ...         self.context.forward(record.with_value(None if then is None else then.value))
        >>> builder = StreamsBuilder()
        >>> _ = builder.add_state_store(Stores.versioned("prices", history_retention=1000))
        >>> builder.stream("in").process(PriceThen, "prices").to("out")
        >>> run(builder, [("tea", 3, 5), ("tea", 4, 12), ("tea", 5, 8)])
        [('tea', 3, 5), ('tea', 3, 12), ('tea', 5, 8)]
        """
        history = milliseconds(history_retention, "history_retention")
        return _builder(
            name,
            "versioned",
            partial(VersionedStore, history_retention=history),
            _serdes(key_serde, value_serde),
            (("history_retention", history),),
            logging=logging,
        )


def suppress_buffer(
    name: str, key_serde: Serde[Any] | None, value_serde: Serde[Any] | None, *, count_bytes: bool
) -> StoreBuilder:
    """Describe the buffer of a suppress."""
    make = partial(SuppressBuffer, count_bytes=count_bytes)
    return _builder(name, "suppress-buffer", make, (key_serde, value_serde))


def unmatched_records(
    name: str, key_serde: Serde[Any] | None, left_serde: Serde[Any] | None, right_serde: Serde[Any] | None
) -> StoreBuilder:
    """Describe the store of a left or outer join's records without a match."""

    def make(name: str, fill_in: FillIn, image: Image, small_state: SmallState) -> Store:
        left, right = fill_in(left_serde, "value"), fill_in(right_serde, "value")
        return UnmatchedRecords(StoreSetup(name, fill_in(key_serde, "key"), left, image, small_state), right)

    options = (("key", repr(key_serde)), ("value", repr(left_serde)), ("right", repr(right_serde)))
    return StoreBuilder(name, "unmatched", make, options)


def _builder(
    name: str,
    kind: str,
    make_from: Callable[[StoreSetup], Store],
    serdes: tuple[Serde[Any] | None, Serde[Any] | None],
    options: Options = (),
    *,
    caching: bool = False,
    logging: bool = True,
) -> StoreBuilder:
    """Describe a store that is made from its setup alone."""
    keys, values = serdes

    def make(name: str, fill_in: FillIn, image: Image, small_state: SmallState) -> Store:
        return make_from(StoreSetup(name, fill_in(keys, "key"), fill_in(values, "value"), image, small_state))

    return StoreBuilder(name, kind, make, (("key", repr(keys)), ("value", repr(values)), *options), caching, logging)


def _serdes(keys: Serde[Any] | None, values: Serde[Any] | None) -> tuple[Serde[Any] | None, Serde[Any] | None]:
    """Check the serdes that a user gave."""
    return None if keys is None else as_serde(keys), None if values is None else as_serde(values)
