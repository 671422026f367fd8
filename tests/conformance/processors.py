"""The named processors of conformance/SPEC.md: one plain key-value store each; records with a null key are dropped."""

from collections.abc import Callable
from typing import Any

from headrace import Processor, PunctuationType, Record
from tests.conformance.functions import FunctionRef, add, subtract

TextRecord = Record[Any, Any]


class KeyedProcessor(Processor[Any, Any]):
    """Keeps its store at hand and hands on records that have a key."""

    def __init__(self, store_name: str) -> None:
        self.store_name = store_name

    def init(self, context: Any) -> None:
        self.context = context
        self.store = context.state_store(self.store_name)

    def process(self, record: TextRecord) -> None:
        if record.key is not None:
            self.handle(record)

    def handle(self, record: TextRecord) -> None:
        raise NotImplementedError


class Dedup(KeyedProcessor):
    def handle(self, record: TextRecord) -> None:
        if self.store.put_if_absent(record.key, "1") is None:
            self.context.forward(record)


class RunningSum(KeyedProcessor):
    def handle(self, record: TextRecord) -> None:
        if record.value is None:
            return
        previous = self.store.get(record.key)
        total = record.value if previous is None else add(previous, record.value)
        self.store.put(record.key, total)
        self.context.forward(record.with_value(total))


class Delta(KeyedProcessor):
    def handle(self, record: TextRecord) -> None:
        if record.value is None:
            return
        previous = self.store.get(record.key)
        self.store.put(record.key, record.value)
        self.context.forward(record.with_value(subtract(record.value, previous or "0")))


class PunctuatedCount(KeyedProcessor):
    """Counts records per key; the punctuator forwards the counts and clears them."""

    def __init__(self, store_name: str, interval: int, kind: PunctuationType) -> None:
        super().__init__(store_name)
        self.interval = interval
        self.kind = kind

    def init(self, context: Any) -> None:
        super().init(context)
        context.schedule(self.interval, self.kind, self.flush)

    def handle(self, record: TextRecord) -> None:
        self.store.put(record.key, add(self.store.get(record.key) or "0", "1"))

    def flush(self, timestamp: int) -> None:
        for key, count in list(self.store.all()):
            self.context.forward(Record(key, count, timestamp))
            self.store.delete(key)


def processor_supplier(text: str, store_name: str) -> Callable[[], KeyedProcessor]:
    f = FunctionRef.parse(text)
    match f.name:
        case "dedup":
            return lambda: Dedup(store_name)
        case "running_sum":
            return lambda: RunningSum(store_name)
        case "delta":
            return lambda: Delta(store_name)
        case "punctuate_count":
            return lambda: PunctuatedCount(store_name, f.number, PunctuationType.STREAM_TIME)
        case "punctuate_wall":
            return lambda: PunctuatedCount(store_name, f.number, PunctuationType.WALL_CLOCK_TIME)
    raise f.unknown("processor")
