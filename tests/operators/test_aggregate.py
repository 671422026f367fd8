"""count, reduce and aggregate of a grouped stream, without windows."""

from typing import Any

import pytest

from headrace import LogAndContinue, Materialized, StreamsBuilder, TaskError, TopologyError, serdes
from headrace.dsl.grouped import GroupedStream
from headrace.records import Record
from headrace.testing import TopologyTestDriver
from tests.operators.piping import append, check, dropped, log_of


def grouped() -> tuple[StreamsBuilder, GroupedStream[Any, Any]]:
    builder = StreamsBuilder()
    return builder, builder.stream("in").group_by_key()


def concat(key: Any, value: str, aggregate: str) -> str:
    return f"{aggregate}+{value}"


# -- what comes out ---------------------------------------------------------------------------------------------------


def test_count_gives_every_new_count() -> None:
    builder, stream = grouped()
    stream.count(store="counts").to_stream().to("out")

    check(
        builder,
        """
        1=A@0 -> 1=1@0
        1=B@1 -> 1=2@1
        1=C@2 -> 1=3@2
        2=D@3 -> 2=1@3
        3=E@8 -> 3=1@8
        3=F@9 -> 3=2@9
        """,
        stores={"counts": {"1": 3, "2": 1, "3": 2}},
    )


def test_reduce_takes_the_first_value_as_it_is() -> None:
    builder, stream = grouped()
    stream.reduce(lambda aggregate, value: f"{aggregate}+{value}", store="reduced").to_stream().to("out")

    check(
        builder,
        """
        1=A@0 -> 1=A@0
        1=B@1 -> 1=A+B@1
        2=D@3 -> 2=D@3
        1=C@4 -> 1=A+B+C@4
        """,
        stores={"reduced": {"1": "A+B+C", "2": "D"}},
    )


def test_aggregate_begins_with_the_initial_value() -> None:
    builder, stream = grouped()
    stream.aggregate(lambda: "0", concat, store="aggregated").to_stream().to("out")

    check(
        builder,
        """
        1=A@0 -> 1=0+A@0
        1=B@1 -> 1=0+A+B@1
        2=D@3 -> 2=0+D@3
        """,
        stores={"aggregated": {"1": "0+A+B", "2": "0+D"}},
    )


def test_aggregator_gets_the_key() -> None:
    builder, stream = grouped()
    stream.aggregate(lambda: "", lambda key, value, aggregate: aggregate + key + value).to_stream().to("out")

    check(builder, "k=1@0 -> k=k1@0")


def test_every_initial_value_is_made_anew() -> None:
    builder, stream = grouped()
    lists = Materialized("lists", value_serde=serdes.Json)
    stream.aggregate(list, append, store=lists).to_stream().to("out")

    check(
        builder,
        """
        a=1@0 -> a=["1"]@0
        b=2@1 -> b=["2"]@1
        """,
    )


# -- time -------------------------------------------------------------------------------------------------------------


def test_result_has_the_largest_timestamp_seen() -> None:
    builder, stream = grouped()
    stream.count(store="counts").to_stream().to("out")

    check(
        builder,
        """
        a=x@10 -> a=1@10
        a=x@4  -> a=2@10
        b=x@4  -> b=1@4
        a=x@12 -> a=3@12
        """,
    )


def test_out_of_order_record_is_aggregated_in_order_of_arrival() -> None:
    builder, stream = grouped()
    stream.aggregate(lambda: "0", concat).to_stream().to("out")

    check(
        builder,
        """
        a=1@10 -> a=0+1@10
        a=2@5  -> a=0+1+2@10
        """,
    )


# -- nulls ------------------------------------------------------------------------------------------------------------

NULLS = """
    None=1@0 ->
    a=None@1 ->
    a=2@2    -> a={}@2
    a=None@9 ->
"""


def test_count_drops_null_keys_and_values() -> None:
    builder, stream = grouped()
    stream.count().to_stream().to("out")

    check(builder, NULLS.format("1"))


def test_reduce_drops_null_keys_and_values() -> None:
    builder, stream = grouped()
    stream.reduce(lambda aggregate, value: aggregate + value).to_stream().to("out")

    check(builder, NULLS.format("2"))


def test_aggregate_drops_null_keys_and_values() -> None:
    builder, stream = grouped()
    stream.aggregate(lambda: "0", concat).to_stream().to("out")

    check(builder, NULLS.format("0+2"))


def test_dropped_records_are_counted() -> None:
    builder, stream = grouped()
    stream.count().to_stream().to("out")

    assert dropped(builder, "None=1@0 a=None@1 a=2@2") == 2


def zero_deletes(key: Any, value: str, aggregate: str) -> str | None:
    total = int(aggregate) + int(value)
    return None if total == 0 else str(total)


def test_none_deletes_the_row() -> None:
    builder, stream = grouped()
    stream.aggregate(lambda: "0", zero_deletes, store="sums").to_stream().to("out")

    check(
        builder,
        """
        a=5@1  -> a=5@1
        a=-5@2 -> a=None@2
        a=3@0  -> a=3@0
        """,
        stores={"sums": {"a": "3"}},
    )


def test_none_for_a_new_key_is_passed_on_without_a_cache() -> None:
    builder, stream = grouped()
    stream.aggregate(lambda: "0", zero_deletes, store="sums").to_stream().to("out")

    check(builder, "a=0@1 -> a=None@1", cached=False, stores={"sums": {}})


def test_none_for_a_new_key_stays_in_the_cache() -> None:
    builder, stream = grouped()
    stream.aggregate(lambda: "0", zero_deletes, store="sums").to_stream().to("out")

    check(builder, "a=0@1 ->", cached=True, stores={"sums": {}})


def test_delete_has_the_rows_timestamp_without_a_cache() -> None:
    builder, stream = grouped()
    stream.aggregate(lambda: "0", zero_deletes).to_stream().to("out")

    check(
        builder,
        """
        a=5@9  -> a=5@9
        a=-5@2 -> a=None@9
        """,
        cached=False,
    )


def test_delete_has_the_records_timestamp_out_of_a_cache() -> None:
    builder, stream = grouped()
    stream.aggregate(lambda: "0", zero_deletes).to_stream().to("out")

    check(
        builder,
        """
        a=5@9  -> a=5@9
        a=-5@2 -> a=None@2
        """,
        cached=True,
    )


# -- grouping ---------------------------------------------------------------------------------------------------------


def test_group_by_another_key() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by(lambda key, value: value).count(store="counts").to_stream().to("out")

    check(
        builder,
        """
        a=x@0    -> x=1@0
        b=x@1    -> x=2@1
        None=y@2 -> y=1@2
        """,
        stores={"counts": {"x": 2, "y": 1}},
    )


def test_group_by_none_drops_the_record() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by(lambda key, value: None).count().to_stream().to("out")

    check(builder, "a=x@0 ->")


def test_group_by_key_takes_a_changed_key_through_a_repartition() -> None:
    builder = StreamsBuilder()
    builder.stream("in").select_key(lambda key, value: value[0]).group_by_key().count().to_stream().to("out")

    with TopologyTestDriver(builder.build(), {"default_value_serde": serdes.String}) as driver:
        driver.create_input_topic("in").pipe_key_values([("a", "x1"), ("b", "x2")])

        assert driver.create_output_topic("out").read_key_values() == [("x", 1), ("x", 2)]
        assert any(name.endswith("-repartition") for name in driver.produced_topic_names())


def test_one_group_may_be_aggregated_twice() -> None:
    builder, stream = grouped()
    stream.count().to_stream().map_values(str).to("out", value_serde=serdes.String)
    stream.reduce(lambda aggregate, value: aggregate + value).to_stream().to("out")

    check(
        builder,
        """
        a=x@0 -> a=1@0 a=x@0
        a=y@1 -> a=2@1 a=xy@1
        """,
    )


def test_rows_are_told_apart_by_the_bytes_of_their_key() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", key_serde=serdes.Json, value_serde=serdes.String)
    stream.group_by_key().count(store="counts").to_stream().to("out")

    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_key_values([({"id": 1}, "x"), ({"id": 1}, "y"), (["id", 1], "z")])

        assert driver.create_output_topic("out").read_key_values() == [({"id": 1}, 1), ({"id": 1}, 2), (["id", 1], 1)]


# -- serdes -----------------------------------------------------------------------------------------------------------


def test_count_is_written_as_a_long() -> None:
    builder, stream = grouped()
    stream.count().to_stream().to("out")

    with TopologyTestDriver(builder.build(), {"default_value_serde": serdes.String}) as driver:
        driver.create_input_topic("in").pipe_input("a", "x")

        assert driver.create_output_topic("out", value_serde=serdes.Bytes).read_value() == (1).to_bytes(8, "big")


def test_reduce_keeps_the_streams_serdes() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", key_serde=serdes.Integer, value_serde=serdes.Long)
    stream.group_by_key().reduce(max).to_stream().to("out")

    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_key_values([(7, 3), (7, 1)])

        out = driver.create_output_topic("out", key_serde=serdes.Bytes, value_serde=serdes.Bytes)
        assert out.read_key_values() == [((7).to_bytes(4, "big"), (3).to_bytes(8, "big"))] * 2


def test_aggregate_writes_the_default_serde_unless_given_one() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", key_serde=serdes.String, value_serde=serdes.Long).group_by_key()
    total = stream.aggregate(lambda: {"sum": 0}, lambda key, value, aggregate: {"sum": aggregate["sum"] + value})
    total.to_stream().to("out")

    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_key_values([("a", 3), ("a", 4)])

        out = driver.create_output_topic("out", value_serde=serdes.Bytes)
        assert out.read_key_values() == [("a", b'{"sum":3}'), ("a", b'{"sum":7}')]


# -- old values -------------------------------------------------------------------------------------------------------


def test_old_value_of_a_first_count_is_the_initial_one_without_a_cache() -> None:
    builder, stream = grouped()
    log_of(stream.count())

    check(
        builder,
        """
        a=x@0 -> all=+1@0
        b=x@1 -> all=+1-0+1@1
        a=x@2 -> all=+1-0+1-1+2@2
        """,
        cached=False,
    )


def test_old_value_of_a_first_count_is_null_out_of_a_cache() -> None:
    builder, stream = grouped()
    log_of(stream.count())

    check(
        builder,
        """
        a=x@0 -> all=+1@0
        b=x@1 -> all=+1+1@1
        a=x@2 -> all=+1+1-1+2@2
        """,
        cached=True,
    )


def test_old_value_of_a_first_reduced_value_is_null() -> None:
    builder, stream = grouped()
    log_of(stream.reduce(lambda aggregate, value: aggregate + value))

    check(
        builder,
        """
        a=x@0 -> all=+x@0
        b=y@1 -> all=+x+y@1
        a=z@2 -> all=+x+y-x+xz@2
        """,
    )


def test_old_value_goes_through_map_values_and_filter() -> None:
    builder, stream = grouped()
    total = stream.reduce(lambda aggregate, value: str(int(aggregate) + int(value)))
    log_of(total.map_values(lambda value: f"<{value}>").filter(lambda key, value: value != "<3>"))

    check(
        builder,
        """
        a=1@0 -> all=+<1>@0
        a=2@1 -> all=+<1>-<1>@1
        a=4@2 -> all=+<1>-<1>+<7>@2
        a=0@3 -> all=+<1>-<1>+<7>-<7>+<7>@3
        """,
    )


# -- functions that change what they are given ------------------------------------------------------------------------


def test_aggregator_that_changes_its_aggregate_in_place() -> None:
    builder, stream = grouped()
    lists = Materialized("lists", value_serde=serdes.Json)
    stream.aggregate(list, append, store=lists).to_stream().to("out")

    check(
        builder,
        """
        a=1@0 -> a=["1"]@0
        a=2@1 -> a=["1","2"]@1
        """,
        stores={"lists": {"a": ["1", "2"]}},
    )


def test_old_value_is_not_changed_by_an_aggregator_that_works_in_place() -> None:
    builder, stream = grouped()
    lists = stream.aggregate(list, append, store=Materialized("lists", value_serde=serdes.Json))
    log_of(lists.map_values(len))

    check(
        builder,
        """
        a=x@1 -> all=+1@1
        a=x@2 -> all=+1-1+2@2
        a=x@3 -> all=+1-1+2-2+3@3
        """,
        cached=True,
    )


def test_old_value_is_not_changed_by_a_mapper_that_works_in_place() -> None:
    builder, stream = grouped()
    lists = stream.aggregate(list, append, store=Materialized("lists", value_serde=serdes.Json))

    def drain(values: list[str]) -> str:
        text = "".join(values)
        values.clear()
        return text

    log_of(lists.map_values(drain))

    check(
        builder,
        """
        a=x@0 -> all=+x@0
        a=y@1 -> all=+x-x+xy@1
        """,
        cached=True,
    )


def test_changing_a_result_does_not_change_the_store() -> None:
    builder, stream = grouped()
    lists = stream.aggregate(list, append, store=Materialized("lists", value_serde=serdes.Json))
    lists.to_stream().peek(lambda key, value: value.clear()).to("out")

    check(
        builder,
        """
        a=1@0 -> a=[]@0
        a=2@1 -> a=[]@1
        """,
        stores={"lists": {"a": ["1", "2"]}},
    )


def test_changing_a_value_read_from_outside_does_not_change_the_store() -> None:
    builder, stream = grouped()
    stream.aggregate(list, append, store=Materialized("lists", value_serde=serdes.Json))

    with TopologyTestDriver(builder.build(), {"default_value_serde": serdes.String}) as driver:
        driver.create_input_topic("in").pipe_input("a", "1")
        driver.state_store("lists").get("a").append("2")

        assert driver.state_store("lists").get("a") == ["1"]


def test_reducer_that_changes_its_first_value_in_place() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in", value_serde=serdes.Json).group_by_key()
    stream.reduce(lambda aggregate, value: aggregate.extend(value) or aggregate, store="lists").to_stream().to("out")

    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_key_values([("a", [1]), ("a", [2]), ("a", [3])])

        assert driver.create_output_topic("out").read_values() == [[1], [1, 2], [1, 2, 3]]


# -- headers and errors -----------------------------------------------------------------------------------------------


def test_result_has_the_headers_of_the_record() -> None:
    builder, stream = grouped()
    stream.count().to_stream().to("out")

    with TopologyTestDriver(builder.build(), {"default_value_serde": serdes.String}) as driver:
        lines = driver.create_input_topic("in")
        lines.pipe_input("a", "x", 0, {"n": b"1"})
        lines.pipe_input("a", "x", 1)

        assert driver.create_output_topic("out").read_records() == [
            Record("a", 1, 0, [("n", b"1")]),
            Record("a", 2, 1),
        ]


def test_failing_aggregator_names_its_step_and_the_record() -> None:
    builder, stream = grouped()
    stream.aggregate(lambda: 0, lambda key, value, aggregate: aggregate + int(value), name="sum")

    with TopologyTestDriver(builder.build(), {"default_value_serde": serdes.String}) as driver:
        lines = driver.create_input_topic("in")
        with pytest.raises(TaskError, match=r"step 'sum'.*topic 'in'.*offset 0.*key 'a'.*ValueError"):
            lines.pipe_input("a", "x")


def test_record_whose_aggregator_fails_can_be_left_out() -> None:
    builder, stream = grouped()

    def add(key: Any, value: str, aggregate: str) -> str:
        return str(int(aggregate) + int(value))

    stream.aggregate(lambda: "0", add, store="sums").to_stream().to("out")

    check(
        builder,
        """
        a=1@0 -> a=1@0
        a=x@9 ->
        a=2@1 -> a=3@1
        """,
        stores={"sums": {"a": "3"}},
        processing_exception_handler=LogAndContinue,
    )


def test_aggregate_that_the_serde_cannot_write_names_the_store() -> None:
    builder, stream = grouped()
    stream.aggregate(lambda: 0, lambda key, value, aggregate: object(), store=Materialized("things"))

    with TopologyTestDriver(builder.build()) as driver, pytest.raises(TaskError, match="store 'things'"):
        driver.create_input_topic("in", value_serde=serdes.Json).pipe_input("a", "x")


@pytest.mark.parametrize(
    "call",
    [
        lambda stream: stream.reduce(None),
        lambda stream: stream.aggregate(None, concat),
        lambda stream: stream.aggregate(lambda: 0, None),
        lambda stream: stream.count(store="no spaces please"),
        lambda stream: stream.reduce(max, store=1),
        lambda stream: stream.windowed_by(None),
        lambda stream: stream.windowed_by(10),
    ],
)
def test_wrong_arguments_are_refused(call: Any) -> None:
    _, stream = grouped()

    with pytest.raises(TopologyError):
        call(stream)
