"""Join of two tables by a foreign key: each left row is joined with the right row that its value names.

Tests `foreign_key_join.py` and `foreign_key_messages.py`, as does `test_foreign_key_join_chains.py`.
"""

from typing import Any

import pytest

from headrace import Materialized, StreamsBuilder, Topology, TopologyError, serdes
from headrace.records import Record
from headrace.testing import TopologyTestDriver
from tests.operators.join_piping import after_bar, check, inner_and_left, plus


def joined(kind: str, store: str | Materialized | None = None, foreign_key: Any = after_bar) -> Topology:
    builder = StreamsBuilder()
    left, right = builder.table("left"), builder.table("right")
    getattr(left, kind)(right, plus, foreign_key=foreign_key, store=store).to_stream().to("out")
    return builder.build()


def itself(value: str) -> str:
    return value


# -- what is joined ---------------------------------------------------------------------------------------------------


@inner_and_left
def test_documented_example(kind: str) -> None:
    check(
        joined(kind, foreign_key=itself),
        """
                          join     | left_join
        left  k=1@0    ->          | k=1+None@0
        right 1=foo@0  -> k=1+foo@0
        left  k=2@0    -> k=None@0 | k=2+None@0
        left  k=3@0    -> k=None@0 | k=3+None@0
        right 3=bar@0  -> k=3+bar@0
        left  k=None@0 -> k=None@0
        left  k=1@0    -> k=1+foo@0
        left  q=10@0   ->          | q=10+None@0
        left  r=10@0   ->          | r=10+None@0
        right 10=baz@0 -> q=10+baz@0 r=10+baz@0
        """,
        column=kind,
    )


@inner_and_left
@pytest.mark.parametrize("store", [None, "kept"])
def test_left_rows_that_come_after_the_right_ones(kind: str, store: str | None) -> None:
    check(
        joined(kind, store),
        """
        right r1=x@0    ->
        right r2=y@1    ->
        right r3=z@2    ->
        left  a=A|r1@3  -> a=A|r1+x@3
        left  b=B|r2@4  -> b=B|r2+y@4
        left  c=C|r1@5  -> c=C|r1+x@5
        left  a=None@6  -> a=None@6
        """,
        stores={"kept": {"b": "B|r2+y", "c": "C|r1+x"}} if store else {},
    )


@pytest.mark.parametrize(
    ("kind", "kept"),
    [("join", {"b": "B|r2+y"}), ("left_join", {"a": "A|r1+None", "b": "B|r2+y", "c": "C|r1+None"})],
)
def test_right_rows_that_come_after_the_left_ones(kind: str, kept: dict[str, str]) -> None:
    check(
        joined(kind, "kept"),
        """
                           join              | left_join
        left  a=A|r1@0  ->                   | a=A|r1+None@0
        left  b=B|r2@1  ->                   | b=B|r2+None@1
        left  c=C|r1@2  ->                   | c=C|r1+None@2
        right r1=x@3    -> a=A|r1+x@3 c=C|r1+x@3
        right r2=y@4    -> b=B|r2+y@4
        right r3=z@5    ->
        right r1=None@6 -> a=None@6 c=None@6 | a=A|r1+None@6 c=C|r1+None@6
        """,
        column=kind,
        stores={"kept": kept},
    )


def test_update_of_a_right_row_goes_to_all_left_rows_that_name_it_in_key_order() -> None:
    check(
        joined("join"),
        """
        left  b=B|r@1 ->
        left  c=C|r@2 ->
        left  a=A|r@3 ->
        left  d=D|q@4 ->
        right r=x@5   -> a=A|r+x@5 b=B|r+x@5 c=C|r+x@5
        """,
    )


def test_foreign_key_that_begins_like_another_is_another() -> None:
    check(
        joined("join"),
        """
        left  a=A|r1@1 ->
        left  b=B|r@2  ->
        left  c=C|r11@3 ->
        right r=x@4    -> b=B|r+x@4
        right r1=y@5   -> a=A|r1+y@5
        """,
    )


def test_result_has_the_larger_timestamp_after_a_left_update_and_the_right_one_after_a_right_update() -> None:
    check(
        joined("join"),
        """
        right r=x@9   ->
        left  a=A|r@5 -> a=A|r+x@9
        right r=y@2   -> a=A|r+y@2
        left  a=B|r@3 -> a=B|r+y@3
        """,
    )


# -- deletes ----------------------------------------------------------------------------------------------------------


@inner_and_left
def test_delete_of_a_row_that_had_no_match_is_passed_on_once(kind: str) -> None:
    check(
        joined(kind),
        """
                         join | left_join
        left a=A|r@0  ->      | a=A|r+None@0
        left a=None@1 -> a=None@1
        left a=None@2 ->
        """,
        column=kind,
    )


@inner_and_left
def test_delete_of_an_absent_row_is_not_passed_on(kind: str) -> None:
    check(
        joined(kind),
        """
        left  a=None@0 ->
        right r=None@0 ->
        """,
    )


@inner_and_left
def test_deleted_row_gets_no_more_updates_of_its_right_row(kind: str) -> None:
    check(
        joined(kind),
        """
        right r=x@0    ->
        left  a=A|r@1  -> a=A|r+x@1
        left  a=None@2 -> a=None@2
        right r=y@3    ->
        """,
    )


@pytest.mark.parametrize(("kind", "result"), [("join", "a=None@2"), ("left_join", "a=A|r+None@2")])
def test_right_row_that_comes_back_is_joined_again(kind: str, result: str) -> None:
    check(
        joined(kind),
        f"""
        right r=x@0    ->
        left  a=A|r@1  -> a=A|r+x@1
        right r=None@2 -> {result}
        right r=None@3 -> {result.replace("@2", "@3")}
        right r=y@4    -> a=A|r+y@4
        """,
    )


# -- changed foreign keys ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "kept"), [("join", {}), ("left_join", {"a": "A|r2+None"})])
def test_row_without_a_match_after_its_foreign_key_changed(kind: str, kept: dict[str, str]) -> None:
    check(
        joined(kind, "kept"),
        """
                          join        | left_join
        left  a=A|r1@0 ->             | a=A|r1+None@0
        left  a=A|r2@1 -> a=None@1    | a=A|r2+None@1
        left  a=A|r3@2 -> a=None@2    | a=A|r3+None@2
        right r1=x@3   ->
        left  a=A|r1@4 -> a=A|r1+x@4
        left  a=A|r2@5 -> a=None@5    | a=A|r2+None@5
        """,
        column=kind,
        stores={"kept": kept},
    )


@inner_and_left
def test_row_gets_updates_only_of_the_right_row_that_it_names_now(kind: str) -> None:
    check(
        joined(kind),
        """
        right r1=x@0   ->
        right r2=y@1   ->
        left  a=A|r1@2 -> a=A|r1+x@2
        left  a=A|r2@3 -> a=A|r2+y@3
        right r1=z@4   ->
        right r2=w@5   -> a=A|r2+w@5
        """,
    )


def test_changed_value_with_the_same_foreign_key() -> None:
    check(
        joined("join"),
        """
        left  a=A|r@0 ->
        left  a=B|r@1 ->
        right r=x@2   -> a=B|r+x@2
        left  a=C|r@3 -> a=C|r+x@3
        right r=y@4   -> a=C|r+y@4
        """,
    )


# -- null foreign keys ------------------------------------------------------------------------------------------------


@inner_and_left
def test_row_without_a_foreign_key_has_a_result_in_a_left_join_only(kind: str) -> None:
    check(
        joined(kind),
        """
                         join | left_join
        left a=A|@0   ->      | a=A|+None@0
        left a=B|@1   ->      | a=B|+None@1
        left a=None@2 ->      | a=None@2
        """,
        column=kind,
    )


@inner_and_left
def test_row_that_loses_its_foreign_key_has_a_result_in_a_left_join_only(kind: str) -> None:
    check(
        joined(kind),
        """
                          join        | left_join
        right r=x@0    ->
        left  a=A|r@1  -> a=A|r+x@1
        left  a=B|@2   -> a=None@2    | a=B|+None@2
        right r=y@3    ->
        left  a=C|r@4  -> a=C|r+y@4
        left  a=D|@5   -> a=None@5    | a=D|+None@5
        left  a=None@6 ->             | a=None@6
        """,
        column=kind,
    )


def test_null_keys_of_both_tables_are_dropped() -> None:
    check(
        joined("left_join"),
        """
        left  None=A|r@0 ->
        right None=x@1   ->
        """,
    )


# -- foreign keys made of key and value -------------------------------------------------------------------------------


def test_foreign_key_can_be_made_of_the_key() -> None:
    check(
        joined("join", "kept", foreign_key=lambda key, value: key.split(":")[0]),
        """
        left  p1:a=A@0 ->
        left  p1:b=B@1 ->
        left  p2:a=C@2 ->
        right p1=x@3   -> p1:a=A+x@3 p1:b=B+x@3
        right p2=y@4   -> p2:a=C+y@4
        left  p1:a=D@5 -> p1:a=D+x@5
        """,
        stores={"kept": {"p1:a": "D+x", "p1:b": "B+x", "p2:a": "C+y"}},
    )


def test_foreign_key_can_be_made_of_key_and_value() -> None:
    def both(key: str, value: str) -> str | None:
        return None if value == "-" else key + value

    check(
        joined("left_join", foreign_key=both),
        """
        right a1=x@0   ->
        left  a=1@1    -> a=1+x@1
        left  a=2@2    -> a=2+None@2
        left  a=-@3    -> a=-+None@3
        right a2=y@4   ->
        left  a=2@5    -> a=2+y@5
        left  a=None@6 -> a=None@6
        """,
    )


class Prefix:
    def of(self, key: str, value: str) -> str:
        return key[0] + value

    def __call__(self, value: str) -> str:
        return value[0]


@pytest.mark.parametrize(
    ("foreign_key", "named"),
    [
        (Prefix().of, "aA"),
        (Prefix(), "A"),
        (str.lower, "a"),
        (lambda value, default="z": value, "A"),
        (lambda key, value, default="z": value + key, "Aa"),
    ],
    ids=["method", "object", "built-in", "option", "key, value and option"],
)
def test_any_callable_of_one_or_two_arguments_gives_the_foreign_key(foreign_key: Any, named: str) -> None:
    check(
        joined("join", foreign_key=foreign_key),
        f"""
        right {named}=x@0 ->
        left  a=A@1       -> a=A+x@1
        """,
    )


# -- what is refused --------------------------------------------------------------------------------------------------


def test_foreign_key_must_be_a_function() -> None:
    builder = StreamsBuilder()
    with pytest.raises(TopologyError, match="expected foreign_key to be a function, got str"):
        builder.table("left").join(builder.table("right"), plus, foreign_key="value")  # type: ignore[arg-type]


def test_other_side_must_be_a_table() -> None:
    builder = StreamsBuilder()
    with pytest.raises(TopologyError, match="expected a KTable, got KStream"):
        builder.table("left").join(builder.stream("right"), plus, foreign_key=itself)  # type: ignore[arg-type]


def test_table_of_another_builder_is_refused() -> None:
    with pytest.raises(TopologyError, match="same StreamsBuilder"):
        StreamsBuilder().table("left").join(StreamsBuilder().table("right"), plus, foreign_key=itself)


# -- what it is made of -----------------------------------------------------------------------------------------------


def test_subscription_is_kept_as_long_as_the_row_names_the_key() -> None:
    with TopologyTestDriver(joined("left_join"), {"default_value_serde": serdes.String}) as driver:
        left = driver.create_input_topic("left")
        name = next(name for name in driver.state_stores() if "SUBSCRIPTION-STATE-STORE" in name)
        place = (2).to_bytes(4, "big") + b"r1" + b"a"

        left.pipe_input("a", "A|r1", 0)
        assert [key for key, _ in driver.state_store(name).all()] == [place]
        left.pipe_input("a", "A|", 0)
        assert list(driver.state_store(name).all()) == []


def test_names_of_topics_and_steps() -> None:
    topology = joined("join")

    assert set(topology.internal_topics) == {
        "KTABLE-FK-JOIN-SUBSCRIPTION-REGISTRATION-0000000006-topic",
        "KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000014-topic",
    }
    assert {"left-STATE-STORE-0000000000", "right-STATE-STORE-0000000003"} <= set(topology.stores)


def test_named_join() -> None:
    builder = StreamsBuilder()
    left, right = builder.table("left"), builder.table("right")
    left.join(right, plus, foreign_key=itself, name="orders").to_stream().to("out")
    topology = builder.build()

    assert set(topology.internal_topics) == {
        "orders-subscription-registration-topic",
        "orders-subscription-response-topic",
    }
    assert {
        "orders-subscription-registration-processor",
        "orders-subscription-receive",
        "orders-subscription-join-foreign",
        "orders-foreign-join-subscription",
        "orders-subscription-response-resolver",
        "orders-result",
    } <= set(topology.nodes)


def test_result_has_the_headers_of_the_update_that_brings_it() -> None:
    with TopologyTestDriver(joined("join"), {"default_value_serde": serdes.String}) as driver:
        left, right = driver.create_input_topic("left"), driver.create_input_topic("right")
        left.pipe_input("a", "A|r", 0, headers={"h": b"1"})
        right.pipe_input("r", "x", 0, headers={"h": b"2"})
        left.pipe_input("a", "B|r", 0, headers={"h": b"3"})
        assert driver.create_output_topic("out").read_records() == [
            Record("a", "A|r+x", 0, [("h", b"2")]),
            Record("a", "B|r+x", 0, [("h", b"3")]),
        ]
