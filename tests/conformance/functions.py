"""The named functions of conformance/SPEC.md, section "Functions".

They do the same as Functions.java, also with nulls and 64-bit arithmetic. Foreign keys and the functions of grouped
tables fail on null, here and there, because Kafka Streams never calls them with null.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

Text = str | None


class FunctionRef(NamedTuple):
    """A function named in a scenario: "name" or "name:argument"."""

    name: str
    argument: str

    @classmethod
    def parse(cls, text: str) -> "FunctionRef":
        name, _, argument = text.partition(":")
        return cls(name, argument)

    @property
    def number(self) -> int:
        return int(self.argument)

    def unknown(self, kind: str) -> ValueError:
        return ValueError(f"unknown {kind} {self.name!r}")


def to_long(number: int) -> str:
    """Render a number as Java does after it has overflowed a long."""
    return str((number + 2**63) % 2**64 - 2**63)


def add(left: str, right: str) -> str:
    return to_long(int(left) + int(right))


def subtract(left: str, right: str) -> str:
    return to_long(int(left) - int(right))


def is_even(value: str) -> bool:
    return int(value) % 2 == 0


def modulo(value: str, divisor: int) -> str:
    return str(int(value) % divisor)


def join_values(left: Text, right: Text) -> str:
    return "+".join("null" if side is None else side for side in (left, right))


def predicate(text: str) -> Callable[[Text, Text], bool]:
    f = FunctionRef.parse(text)
    match f.name:
        case "even":
            return lambda key, value: value is not None and is_even(value)
        case "gt":
            return lambda key, value: value is not None and int(value) > f.number
        case "lt":
            return lambda key, value: value is not None and int(value) < f.number
        case "len_gt":
            return lambda key, value: value is not None and len(value) > f.number
        case "not_null":
            return lambda key, value: value is not None
        case "key_in":
            keys = f.argument.split(",")
            return lambda key, value: key in keys
    raise f.unknown("predicate")


def value_function(text: str) -> Callable[[Text], Text]:
    f = FunctionRef.parse(text)
    functions: dict[str, Callable[[str], Text]] = {
        "add": lambda value: add(value, f.argument),
        "mul": lambda value: to_long(int(value) * f.number),
        "mod": lambda value: modulo(value, f.number),
        "upper": str.upper,
        "suffix": lambda value: value + f.argument,
        "null_if_even": lambda value: None if is_even(value) else value,
        "len": lambda value: str(len(value)),
    }
    if f.name not in functions:
        raise f.unknown("value_fn")
    function = functions[f.name]
    return lambda value: None if value is None else function(value)


def key_value_function(text: str) -> Callable[[Text, Text], tuple[Text, Text]]:
    f = FunctionRef.parse(text)
    match f.name:
        case "swap":
            return lambda key, value: (value, key)
        case "key_mod":
            return lambda key, value: (None if value is None else modulo(value, f.number), value)
    raise f.unknown("kv_fn")


def split_function(text: str) -> Callable[[Text], list[str]]:
    f = FunctionRef.parse(text)
    functions: dict[str, Callable[[str], list[str]]] = {
        "chars": list,
        "words": lambda value: [word for word in value.split(" ") if word],
        "repeat": lambda value: [value] * f.number,
    }
    if f.name not in functions:
        raise f.unknown("split_fn")
    function = functions[f.name]
    return lambda value: [] if value is None else function(value)


def key_function(text: str) -> Callable[[Text, Text], Text]:
    f = FunctionRef.parse(text)
    match f.name:
        case "key":
            return lambda key, value: key
        case "value":
            return lambda key, value: value
        case "value_mod":
            return lambda key, value: None if value is None else modulo(value, f.number)
        case "first_char":
            return lambda key, value: None if value is None else value[:1]
        case "const":
            return lambda key, value: f.argument
    raise f.unknown("key_fn")


def foreign_key_function(text: str) -> Callable[[str], Text]:
    f = FunctionRef.parse(text)
    match f.name:
        case "fk_mod":
            return lambda value: modulo(value, f.number)
        case "null_if_even_fk":
            return lambda value: None if is_even(value) else modulo(value, 10)
    raise f.unknown("fk_fn")


def reducer(text: str) -> Callable[[str, Text], str]:
    f = FunctionRef.parse(text)
    functions: dict[str, Callable[[str, str], str]] = {
        "sum": add,
        "max": lambda aggregate, value: value if int(value) > int(aggregate) else aggregate,
        "min": lambda aggregate, value: value if int(value) < int(aggregate) else aggregate,
        "last": lambda aggregate, value: value,
        "first": lambda aggregate, value: aggregate,
        "concat": lambda aggregate, value: aggregate + value,
    }
    if f.name not in functions:
        raise f.unknown("reducer")
    function = functions[f.name]
    return lambda aggregate, value: aggregate if value is None else function(aggregate, value)


@dataclass(frozen=True)
class StreamAggregator:
    """Initial value, adder and session merger, called as the DSL calls them."""

    initial: str
    add_value: Callable[[str, Text], Text]
    merge_values: Callable[[str, str], str] | None

    def initializer(self) -> str:
        return self.initial

    def adder(self, key: str, value: Text, aggregate: str) -> Text:
        return self.add_value(aggregate, value)

    def merger(self, key: str, left: str, right: str) -> str:
        assert self.merge_values is not None, "this aggregator is not for sessions"
        return self.merge_values(left, right)


def aggregator(text: str) -> StreamAggregator:
    f = FunctionRef.parse(text)

    def sum_or_none_at_zero(aggregate: str, value: Text) -> Text:
        total = aggregate if value is None else add(aggregate, value)
        return None if total == "0" else total

    match f.name:
        case "concat":
            return StreamAggregator("", lambda a, v: a if v is None else a + v, lambda left, right: left + right)
        case "sum":
            return StreamAggregator("0", lambda a, v: a if v is None else add(a, v), add)
        case "count":
            return StreamAggregator("0", lambda a, v: add(a, "1"), add)
        case "sum_nz":
            return StreamAggregator("0", sum_or_none_at_zero, None)
    raise f.unknown("aggregator")


@dataclass(frozen=True)
class TableAggregator:
    """Initial value, adder and subtractor of a grouped table."""

    initial: str
    add_value: Callable[[str, str], str]
    subtract_value: Callable[[str, str], str]

    def initializer(self) -> str:
        return self.initial

    def adder(self, key: str, value: str, aggregate: str) -> str:
        return self.add_value(aggregate, value)

    def subtractor(self, key: str, value: str, aggregate: str) -> str:
        return self.subtract_value(aggregate, value)


def table_aggregator(text: str) -> TableAggregator:
    f = FunctionRef.parse(text)
    match f.name:
        case "sum":
            return TableAggregator("0", add, subtract)
        case "count":
            return TableAggregator("0", lambda a, v: add(a, "1"), lambda a, v: add(a, "-1"))
        case "log":
            return TableAggregator("", lambda a, v: f"{a}+{v}", lambda a, v: f"{a}-{v}")
    raise f.unknown("table aggregator")
