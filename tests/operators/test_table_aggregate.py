"""count, reduce and aggregate of a grouped table: an update removes the old row from its group and adds the new one."""

from typing import Any

import pytest

from headrace import KTable, LogAndContinue, Materialized, StreamsBuilder, TaskError, TopologyError, serdes
from headrace.dsl.grouped_table import GroupedTable
from headrace.testing import TopologyTestDriver
from tests.operators.piping import append, check, dropped, log_of


def table(store: Any = None) -> tuple[StreamsBuilder, KTable[Any, Any]]:
    builder = StreamsBuilder()
    return builder, builder.table("in", store=store)


def grouped_by_value() -> tuple[StreamsBuilder, GroupedTable[Any, Any]]:
    builder, rows = table()
    return builder, rows.group_by(lambda key, value: (value, value))


def logged(rows: GroupedTable[Any, Any], store: Any = None) -> KTable[Any, Any]:
    return rows.aggregate(
        lambda: "0",
        lambda key, value, aggregate: f"{aggregate}+{value}",
        lambda key, value, aggregate: f"{aggregate}-{value}",
        store=store,
    )


# -- what comes out ---------------------------------------------------------------------------------------------------


def test_group_that_stays_gives_one_result() -> None:
    builder, rows = table()
    logged(rows.group_by(lambda key, value: (key, value))).to_stream().to("out")

    check(
        builder,
        """
        A=1@10 -> A=0+1@10
        B=2@15 -> B=0+2@15
        A=3@20 -> A=0+1-1+3@20
        B=4@18 -> B=0+2-2+4@18
        C=5@5  -> C=0+5@5
        D=6@25 -> D=0+6@25
        B=7@15 -> B=0+2-2+4-4+7@18
        C=8@10 -> C=0+5-5+8@10
        """,
    )


def test_group_that_changes_gives_the_old_groups_result_first() -> None:
    builder, rows = grouped_by_value()
    logged(rows).to_stream().to("out")

    check(
        builder,
        """
        A=1@10    -> 1=0+1@10
        A=None@15 -> 1=0+1-1@15
        A=1@12    -> 1=0+1-1+1@15
        B=2@20    -> 2=0+2@20
        B=4@23    -> 2=0+2-2@23 4=0+4@23
        B=7@22    -> 4=0+4-4@23 7=0+7@22
        """,
    )


def test_update_to_the_same_value_is_subtracted_and_added() -> None:
    builder, rows = grouped_by_value()
    logged(rows).to_stream().to("out")

    check(
        builder,
        """
        a=1@0 -> 1=0+1@0
        a=1@1 -> 1=0+1-1+1@1
        """,
    )


def test_old_value_is_subtracted_before_the_new_one_is_added() -> None:
    builder, rows = table()
    letters = rows.group_by(lambda key, value: (key[0], key[1]))
    letters.aggregate(
        lambda: "",
        lambda key, value, aggregate: aggregate + value,
        lambda key, value, aggregate: aggregate.replace(value, ""),
    ).to_stream().to("out")

    check(
        builder,
        """
        11=A@10    -> 1=1@10
        12=B@8     -> 1=12@10
        11=None@12 -> 1=2@12
        12=C@6     -> 1=2@12
        """,
    )


def test_count_of_rows() -> None:
    builder, rows = grouped_by_value()
    rows.count(store="counts").to_stream().to("out")

    check(
        builder,
        """
        A=green@10  -> green=1@10
        B=green@9   -> green=2@10
        A=blue@12   -> green=1@12 blue=1@12
        C=yellow@15 -> yellow=1@15
        D=green@11  -> green=2@12
        """,
        stores={"counts": {"green": 2, "blue": 1, "yellow": 1}},
    )


def test_empty_group_stays_with_a_count_of_zero() -> None:
    builder, rows = grouped_by_value()
    rows.count(store="counts").to_stream().to("out")

    check(
        builder,
        """
        a=x@1    -> x=1@1
        a=None@2 -> x=0@2
        """,
        stores={"counts": {"x": 0}},
    )


def test_reduce_takes_the_first_row_as_it_is() -> None:
    builder, rows = table()
    numbers = rows.group_by(lambda key, value: (key[0], int(value)), value_serde=serdes.Integer)
    numbers.reduce(lambda total, value: total + value, lambda total, value: total - value, store="sums")
    numbers.reduce(lambda total, value: total + value, lambda total, value: total - value).to_stream().to("out")

    check(
        builder,
        """
        a1=3@10   -> a=3@10
        a2=4@11   -> a=7@11
        b1=9@12   -> b=9@12
        a1=5@20   -> a=9@20
        a2=None@8 -> a=5@20
        """,
        stores={"sums": {"a": 5, "b": 9}},
    )


def test_rows_may_be_given_another_value_by_the_grouping() -> None:
    builder, rows = table()
    logged(rows.group_by(lambda key, value: (key[0], value.upper()))).to_stream().to("out")

    check(
        builder,
        """
        a1=x@0 -> a=0+X@0
        a1=y@1 -> a=0+X-X+Y@1
        """,
    )


# -- time -------------------------------------------------------------------------------------------------------------


def test_result_has_the_largest_timestamp_of_its_group() -> None:
    builder, rows = grouped_by_value()
    rows.count().to_stream().to("out")

    check(
        builder,
        """
        a=x@10 -> x=1@10
        b=x@5  -> x=2@10
        b=y@7  -> x=1@10 y=1@7
        """,
    )


# -- nulls ------------------------------------------------------------------------------------------------------------


def test_delete_of_a_row_that_is_not_there_does_nothing() -> None:
    builder, rows = grouped_by_value()
    rows.count().to_stream().to("out")

    check(builder, "a=None@1 ->")


def test_row_without_a_group_is_left_out() -> None:
    builder, rows = table()

    def group(key: str, value: str) -> Any:
        return {"null": (None, value), "NULL": None, "value": (value, None)}.get(key, (value, value))

    logged(rows.group_by(group)).to_stream().to("out")

    check(
        builder,
        """
        A=1@10     -> 1=0+1@10
        null=3@25  ->
        NULL=5@24  ->
        value=6@26 ->
        A=2@27     -> 1=0+1-1@27 2=0+2@27
        """,
    )


def test_row_that_loses_its_group_is_only_taken_out() -> None:
    builder, rows = table()
    logged(rows.group_by(lambda key, value: (None if value == "x" else value, value))).to_stream().to("out")

    check(
        builder,
        """
        a=1@0 -> 1=0+1@0
        a=x@1 -> 1=0+1-1@1
        a=2@2 -> 2=0+2@2
        """,
    )


def test_row_without_a_key_is_dropped() -> None:
    builder, rows = grouped_by_value()
    rows.count().to_stream().to("out")

    check(builder, "None=x@0 ->")
    assert dropped(builder, "None=x@0 a=x@1") == 1


def zero_deletes(key: Any, value: str, total: str) -> str | None:
    return None if value == "0" else f"{total}+{value}"


def test_none_deletes_the_group() -> None:
    builder, rows = table()
    groups = rows.group_by(lambda key, value: (key[0], value))
    groups.aggregate(
        lambda: "", zero_deletes, lambda key, value, total: f"{total}-{value}", store="sums"
    ).to_stream().to("out")

    check(
        builder,
        """
        a1=1@5 -> a=+1@5
        a2=0@7 -> a=None@7
        a3=2@1 -> a=+2@1
        """,
        stores={"sums": {"a": "+2"}},
    )


def test_group_that_was_deleted_is_not_subtracted_from() -> None:
    builder, rows = table()
    groups = rows.group_by(lambda key, value: (key[0], value))
    groups.aggregate(lambda: "", zero_deletes, lambda key, value, total: f"{total}-{value}").to_stream().to("out")

    check(
        builder,
        """
        a1=1@5 -> a=+1@5
        a2=0@7 -> a=None@7
        a1=3@8 -> a=+3@8
        """,
    )


def test_subtractor_may_delete_the_group() -> None:
    builder, rows = grouped_by_value()
    rows.aggregate(lambda: "", lambda key, value, total: total + value, lambda key, value, total: None).to_stream().to(
        "out"
    )

    check(
        builder,
        """
        a=x@5    -> x=x@5
        a=None@6 -> x=None@6
        b=x@1    -> x=x@1
        """,
    )


@pytest.mark.parametrize(("cached", "timestamp"), [(False, 9), (True, 2)])
def test_timestamp_of_a_late_delete(cached: bool, timestamp: int) -> None:
    builder, rows = grouped_by_value()
    rows.aggregate(lambda: "", lambda key, value, total: total + value, lambda key, value, total: None).to_stream().to(
        "out"
    )

    check(
        builder,
        f"""
        a=x@9    -> x=x@9
        a=None@2 -> x=None@{timestamp}
        """,
        cached=cached,
    )


# -- old values in, old values out ------------------------------------------------------------------------------------


def test_filtered_table_gives_its_rows_up() -> None:
    builder, rows = table()
    passing = rows.filter(lambda key, value: value != "out")
    logged(passing.group_by(lambda key, value: ("all", value))).to_stream().to("out")

    check(
        builder,
        """
        a=1@0   -> all=0+1@0
        a=out@1 -> all=0+1-1@1
        a=out@2 ->
        a=2@3   -> all=0+1-1+2@3
        """,
    )


def test_counts_of_counts_out_of_a_cache() -> None:
    builder = StreamsBuilder()
    counts = builder.stream("in").group_by_key().count()
    counts.group_by(lambda key, count: (str(count), count), value_serde=serdes.Long).count().to_stream().to("out")

    check(
        builder,
        """
        a=x@0 -> 1=1@0
        b=x@1 -> 1=2@1
        a=x@2 -> 1=1@2 2=1@2
        b=x@3 -> 1=0@3 2=2@3
        """,
        cached=True,
    )


def test_grouping_of_a_grouping() -> None:
    builder, rows = grouped_by_value()
    log_of(rows.count())

    check(
        builder,
        """
        a=x@0 -> all=+1@0
        b=x@1 -> all=+1-1+2@1
        a=y@2 -> all=+1-1+2-2+1@2 all=+1-1+2-2+1+1@2
        """,
    )


def test_versioned_table_gives_its_group_only_the_latest_rows() -> None:
    builder, rows = table(Materialized("rows", history_retention=300_000))
    logged(rows.group_by(lambda key, value: (value, value))).to_stream().to("out")

    check(
        builder,
        """
        A=1@10    -> 1=0+1@10
        A=None@15 -> 1=0+1-1@15
        A=1@12    ->
        B=2@20    -> 2=0+2@20
        B=4@23    -> 2=0+2-2@23 4=0+4@23
        B=7@22    ->
        """,
    )


# -- functions that change what they are given ------------------------------------------------------------------------


def lists(rows: GroupedTable[Any, Any]) -> KTable[Any, Any]:
    def take_out(key: Any, value: Any, aggregate: list[Any]) -> list[Any]:
        aggregate.remove(value)
        return aggregate

    return rows.aggregate(list, append, take_out, store=Materialized("lists", value_serde=serdes.Json))


def test_adder_and_subtractor_that_change_the_aggregate_in_place() -> None:
    builder, rows = table()
    lists(rows.group_by(lambda key, value: (key[0], value))).to_stream().to("out")

    check(
        builder,
        """
        a1=x@0    -> a=["x"]@0
        a2=y@1    -> a=["x","y"]@1
        a1=z@2    -> a=["y","z"]@2
        a2=None@3 -> a=["z"]@3
        """,
        stores={"lists": {"a": ["z"]}},
    )


def test_old_value_is_not_changed_by_functions_that_work_in_place() -> None:
    builder, rows = table()
    log_of(lists(rows.group_by(lambda key, value: (key[0], value))).map_values("".join))

    check(
        builder,
        """
        a1=x@0 -> all=+x@0
        a2=y@1 -> all=+x-x+xy@1
        a1=z@2 -> all=+x-x+xy-xy+yz@2
        """,
    )


# -- topics and errors ------------------------------------------------------------------------------------------------


def test_old_and_new_value_travel_through_a_repartition_topic() -> None:
    builder, rows = table()
    rows.group_by(lambda key, value: (value, value), name="by-value").count()

    with TopologyTestDriver(builder.build(), {"application_id": "app", "default_value_serde": serdes.String}) as driver:
        driver.create_input_topic("in").pipe_input("a", "x")

        assert "app-by-value-repartition" in driver.produced_topic_names()


def test_failing_subtractor_names_its_step() -> None:
    builder, rows = grouped_by_value()
    rows.aggregate(lambda: "", lambda key, value, total: total + value, lambda key, value, total: 1 / 0, name="sum")

    with TopologyTestDriver(builder.build(), {"default_value_serde": serdes.String}) as driver:
        lines = driver.create_input_topic("in")
        lines.pipe_input("a", "x")
        with pytest.raises(TaskError, match=r"step 'sum'.*ZeroDivisionError"):
            lines.pipe_input("a", None)


def test_update_whose_grouping_fails_can_be_left_out() -> None:
    builder, rows = table()
    rows.group_by(lambda key, value: (str(int(value)), value)).count().to_stream().to("out")

    check(
        builder,
        """
        a=1@0 -> 1=1@0
        b=x@1 ->
        c=1@2 -> 1=2@2
        """,
        processing_exception_handler=LogAndContinue,
    )


def test_grouping_must_give_a_pair() -> None:
    builder, rows = table()
    rows.group_by(lambda key, value: value).count()

    with TopologyTestDriver(builder.build(), {"default_value_serde": serdes.String}) as driver:
        lines = driver.create_input_topic("in")
        with pytest.raises(TaskError, match=r"group_by: expected a \(key, value\) pair, got str \('x'\)"):
            lines.pipe_input("a", "x")


@pytest.mark.parametrize(
    "call",
    [
        lambda rows: rows.reduce(None, max),
        lambda rows: rows.reduce(max, None),
        lambda rows: rows.aggregate(None, append, append),
        lambda rows: rows.aggregate(list, None, append),
        lambda rows: rows.aggregate(list, append, None),
        lambda rows: rows.count(store="no spaces please"),
    ],
)
def test_wrong_arguments_are_refused(call: Any) -> None:
    _, rows = grouped_by_value()

    with pytest.raises(TopologyError):
        call(rows)


def test_group_by_needs_a_function() -> None:
    _, rows = table()

    with pytest.raises(TopologyError, match="group_by"):
        rows.group_by(None)  # type: ignore[arg-type]
