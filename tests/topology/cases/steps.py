"""The beginnings and functions that the cases share."""

from typing import Any

from headrace import (
    FixedKeyProcessor,
    GroupedStream,
    JoinWindows,
    KStream,
    KTable,
    Materialized,
    Processor,
    SessionWindows,
    SlidingWindows,
    StoreBuilder,
    Stores,
    StreamsBuilder,
    TumblingWindows,
)
from headrace.serdes import Long, String

WINDOW = JoinWindows(1000)
TUMBLING = TumblingWindows(1000)
SESSIONS = SessionWindows(1000)
SLIDING = SlidingWindows(1000)
UNNAMED = Materialized(key_serde=String, value_serde=String)
UNNAMED_COUNT = Materialized(key_serde=String, value_serde=Long)


def stream(builder: StreamsBuilder, topic: str) -> KStream[Any, Any]:
    return builder.stream(topic)


def rekeyed(builder: StreamsBuilder, topic: str) -> KStream[Any, Any]:
    return stream(builder, topic).select_key(to_value)


def grouped(builder: StreamsBuilder) -> GroupedStream[Any, Any]:
    return stream(builder, "in").group_by_key()


def table(builder: StreamsBuilder, topic: str) -> KTable[Any, Any]:
    return builder.table(topic)


def yes(key: Any, value: Any) -> bool:
    return True


def ignore(key: Any, value: Any) -> None:
    pass


def same(value: Any) -> Any:
    return value


def to_value(key: Any, value: Any) -> Any:
    return value


def pair(key: Any, value: Any) -> tuple[Any, Any]:
    return key, value


def pairs(key: Any, value: Any) -> list[tuple[Any, Any]]:
    return [(key, value)]


def values(value: Any) -> list[Any]:
    return [value]


def swapped(key: Any, value: Any) -> tuple[Any, Any]:
    return value, key


def both(left: Any, right: Any) -> Any:
    return left, right


def empty() -> str:
    return ""


def fold(key: Any, value: Any, aggregate: Any) -> Any:
    return aggregate


def merge_sessions(key: Any, left: Any, right: Any) -> Any:
    return left


def topic_of_record(key: Any, value: Any, context: Any) -> str:
    return str(value)


def store(name: str) -> StoreBuilder:
    return Stores.key_value(name, String, String, in_memory=True)


class Forward(Processor[Any, Any]):
    def init(self, context: Any) -> None:
        self.context = context

    def process(self, record: Any) -> None:
        self.context.forward(record)


class ForwardValue(FixedKeyProcessor[Any, Any]):
    def init(self, context: Any) -> None:
        self.context = context

    def process(self, record: Any) -> None:
        self.context.forward(record)


class WithStores:
    """A supplier that brings its stores along."""

    def __init__(self, *names: str) -> None:
        self._names = names

    def __call__(self) -> Forward:
        return Forward()

    def stores(self) -> list[StoreBuilder]:
        return [store(name) for name in self._names]
