"""Tables: where they come from, filter and map_values, and the way to and from streams."""

from typing import Any

import pytest

from headrace import KTable, LogAndContinue, Materialized, StreamsBuilder, TaskError, TopologyError, serdes
from headrace.records import Record, ValueAndTimestamp
from headrace.testing import TopologyTestDriver
from tests.operators.piping import append, check, dropped, log_of


def table(store: Any = None) -> tuple[StreamsBuilder, KTable[Any, Any]]:
    builder = StreamsBuilder()
    return builder, builder.table("in", store=store)


def is_even(key: Any, value: str) -> bool:
    return int(value) % 2 == 0


# -- source -----------------------------------------------------------------------------------------------------------


def test_table_passes_every_update_on() -> None:
    builder, rows = table()
    rows.to_stream().to("out")

    check(
        builder,
        """
        A=1@10    -> A=1@10
        B=2@11    -> B=2@11
        A=1@12    -> A=1@12
        A=3@13    -> A=3@13
        A=None@15 -> A=None@15
        """,
    )


def test_older_update_overwrites_a_newer_one() -> None:
    builder, rows = table(store="rows")
    rows.to_stream().to("out")

    check(
        builder,
        """
        a=1@10 -> a=1@10
        a=2@5  -> a=2@5
        """,
        stores={"rows": {"a": "2"}},
    )


def test_row_without_a_key_is_dropped() -> None:
    builder, rows = table()
    rows.to_stream().to("out")

    check(builder, "None=1@0 ->")
    assert dropped(builder, "None=1@0") == 1


def test_delete_of_a_row_that_is_not_there_is_passed_on_without_a_cache() -> None:
    builder, rows = table(store="rows")
    rows.to_stream().to("out")

    check(builder, "a=None@1 -> a=None@1", cached=False, stores={"rows": {}})


def test_delete_of_a_row_that_is_not_there_stays_in_the_cache() -> None:
    builder, rows = table(store="rows")
    rows.to_stream().to("out")

    check(builder, "a=None@1 ->", cached=True, stores={"rows": {}})


def test_store_has_the_timestamp_of_the_row() -> None:
    builder, _ = table(store="rows")

    with TopologyTestDriver(builder.build(), {"default_value_serde": serdes.String}) as driver:
        lines = driver.create_input_topic("in")
        lines.pipe_input("a", "1", 10)
        lines.pipe_input("a", "2", 5)

        assert driver.timestamped_store("rows").get("a") == ValueAndTimestamp("2", 5)
        assert driver.state_store("rows").get("a") == "2"


def test_table_without_a_name_is_kept_only_when_it_is_needed() -> None:
    builder, rows = table()
    rows.filter(is_even).map_values(str).to_stream().to("out")

    with TopologyTestDriver(builder.build()) as driver:
        assert driver.state_stores() == {}


def test_table_is_kept_when_its_old_values_are_needed() -> None:
    builder, rows = table()
    log_of(rows)

    check(
        builder,
        """
        a=1@0    -> all=+1@0
        a=2@1    -> all=+1-1+2@1
        a=None@2 -> all=+1-1+2-2@2
        b=None@3 ->
        """,
    )


def test_queryable_store_name() -> None:
    assert table()[1].queryable_store_name is None
    assert table("rows")[1].queryable_store_name == "rows"
    assert table("rows")[1].filter(is_even).queryable_store_name is None
    assert table("rows")[1].filter(is_even, store="even").queryable_store_name == "even"
    assert table("rows")[1].map_values(str, store="texts").queryable_store_name == "texts"


def test_one_topic_cannot_be_two_tables() -> None:
    builder, _ = table()
    builder.table("in")

    with pytest.raises(TopologyError, match="'in'"):
        builder.build()


# -- filter -----------------------------------------------------------------------------------------------------------


def test_filter_takes_back_every_row_that_does_not_pass_when_nothing_is_kept() -> None:
    builder, rows = table()
    rows.filter(is_even).to_stream().to("out")

    check(
        builder,
        """
        A=1@5     -> A=None@5
        B=2@10    -> B=2@10
        C=3@8     -> C=None@8
        D=4@14    -> D=4@14
        A=None@18 -> A=None@18
        B=None@15 -> B=None@15
        """,
    )


def test_filter_takes_back_only_what_has_passed_when_the_table_is_kept() -> None:
    builder, rows = table(store="rows")
    rows.filter(is_even).to_stream().to("out")

    check(
        builder,
        """
        a=1@0    ->
        a=2@1    -> a=2@1
        a=3@2    -> a=None@2
        a=5@3    ->
        a=4@4    -> a=4@4
        a=None@5 -> a=None@5
        b=None@6 ->
        """,
    )


def test_filter_not_keeps_the_rows_that_fail_the_predicate() -> None:
    builder, rows = table(store="rows")
    rows.filter_not(is_even).to_stream().to("out")

    check(
        builder,
        """
        a=1@0 -> a=1@0
        a=2@1 -> a=None@1
        a=4@2 ->
        """,
    )


def test_filter_can_keep_what_passes() -> None:
    builder, rows = table()
    rows.filter(is_even, store="even").to_stream().to("out")

    check(
        builder,
        """
        A=1@5     ->
        B=2@10    -> B=2@10
        A=4@12    -> A=4@12
        A=3@13    -> A=None@13
        B=None@15 -> B=None@15
        """,
        cached=True,
        stores={"even": {}},
    )


def test_predicate_gets_the_key_and_is_not_called_for_deletes() -> None:
    called = []

    def passes(key: str, value: str) -> bool:
        called.append((key, value))
        return True

    builder, rows = table()
    rows.filter(passes).to_stream().to("out")

    check(
        builder,
        """
        a=1@0    -> a=1@0
        a=None@1 -> a=None@1
        """,
        cached=True,
    )
    assert called == [("a", "1")]


def test_predicate_may_return_any_truthy_value() -> None:
    builder, rows = table(store="rows")
    rows.filter(lambda key, value: value.strip("0")).to_stream().to("out")

    check(
        builder,
        """
        a=1@0 -> a=1@0
        a=0@1 -> a=None@1
        """,
    )


def test_grouping_of_a_filtered_table_gets_no_empty_updates() -> None:
    builder, rows = table()
    log_of(rows.filter(is_even))

    check(
        builder,
        """
        a=1@0 ->
        a=2@1 -> all=+2@1
        a=4@2 -> all=+2-2+4@2
        a=5@3 -> all=+2-2+4-4@3
        a=7@4 ->
        """,
    )


def test_filter_of_a_filter() -> None:
    builder, rows = table(store="rows")
    rows.filter(is_even).filter(lambda key, value: int(value) > 4).to_stream().to("out")

    check(
        builder,
        """
        a=2@0 ->
        a=6@1 -> a=6@1
        a=7@2 -> a=None@2
        a=8@3 -> a=8@3
        """,
    )


def test_filter_of_a_versioned_table_passes_every_delete_on() -> None:
    builder, rows = table(Materialized("rows", history_retention=1000))
    rows.filter(is_even).to_stream().to("out")

    check(
        builder,
        """
        a=1@0    -> a=None@0
        a=2@1    -> a=2@1
        a=None@2 -> a=None@2
        """,
    )


# -- map_values -------------------------------------------------------------------------------------------------------


def test_map_values_gives_every_row_another_value() -> None:
    builder, rows = table()
    rows.map_values(lambda value: value * 2).to_stream().to("out")

    check(
        builder,
        """
        A=1@5     -> A=11@5
        B=2@25    -> B=22@25
        A=3@20    -> A=33@20
        A=None@10 -> A=None@10
        """,
    )


def test_map_values_with_key() -> None:
    builder, rows = table()
    rows.map_values(lambda key, value: key + value, with_key=True).to_stream().to("out")

    check(builder, "a=1@0 -> a=a1@0")


def test_map_values_is_not_called_for_deletes() -> None:
    called: list[Any] = []
    builder, rows = table()
    rows.map_values(called.append).to_stream().to("out")

    check(
        builder,
        """
        a=1@0    -> a=None@0
        a=None@1 -> a=None@1
        """,
        cached=True,
    )
    assert called == ["1"]


def test_map_values_to_none_deletes_each_time() -> None:
    builder, rows = table(store="rows")
    rows.map_values(lambda value: None if value == "0" else value, store="mapped").to_stream().to("out")

    check(
        builder,
        """
        a=1@0 -> a=1@0
        a=0@1 -> a=None@1
        a=0@2 -> a=None@2
        b=0@3 -> b=None@3
        """,
        cached=False,
        stores={"mapped": {}},
    )


def test_map_values_can_keep_its_results() -> None:
    builder, rows = table()
    rows.map_values(lambda value: value * 2, store="mapped").to_stream().to("out")

    check(
        builder,
        """
        A=1@5     -> A=11@5
        B=2@25    -> B=22@25
        A=3@20    -> A=33@20
        B=None@10 -> B=None@10
        """,
        stores={"mapped": {"A": "33"}},
    )


def test_map_values_uses_the_default_serde_unless_given_one() -> None:
    builder = StreamsBuilder()
    rows = builder.table("in", value_serde=serdes.String)
    rows.map_values(int, store=Materialized("numbers", value_serde=serdes.Long)).to_stream().to("out")

    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_input("a", "7")

        out = driver.create_output_topic("out", value_serde=serdes.Bytes)
        assert out.read_value() == (7).to_bytes(8, "big")


def test_chain_of_steps_sends_old_values_through() -> None:
    builder, rows = table()
    longer = rows.map_values(lambda value: f"{value}!").filter(lambda key, value: value != "x!")
    log_of(longer.map_values(lambda key, value: key + value, with_key=True))

    check(
        builder,
        """
        a=1@0 -> all=+a1!@0
        a=2@1 -> all=+a1!-a1!+a2!@1
        a=x@2 -> all=+a1!-a1!+a2!-a2!@2
        a=3@3 -> all=+a1!-a1!+a2!-a2!+a3!@3
        """,
    )


def test_chain_with_a_store_in_the_middle_sends_old_values_through() -> None:
    builder, rows = table()
    longer = rows.map_values(lambda value: f"{value}!", store="longer").filter(lambda key, value: value != "x!")
    log_of(longer)

    check(
        builder,
        """
        a=1@0    -> all=+1!@0
        a=2@1    -> all=+1!-1!+2!@1
        a=x@2    -> all=+1!-1!+2!-2!@2
        a=None@3 ->
        """,
    )


# -- to a stream and back ---------------------------------------------------------------------------------------------


def test_to_stream_makes_records_of_updates() -> None:
    builder, rows = table()
    rows.to_stream().map_values(lambda value: f"<{value}>").to("out")

    check(
        builder,
        """
        a=1@0    -> a=<1>@0
        a=None@1 -> a=<None>@1
        """,
    )


def test_to_stream_with_another_key() -> None:
    builder, rows = table()
    rows.to_stream(lambda key, value: f"{key}{value}").to("out")

    check(
        builder,
        """
        a=1@0    -> a1=1@0
        a=None@1 -> aNone=None@1
        """,
    )


def test_to_stream_with_another_key_repartitions_a_later_grouping() -> None:
    builder, rows = table()
    rows.to_stream(lambda key, value: value).group_by_key().count().to_stream().to("out")

    check(
        builder,
        """
        a=x@0 -> x=1@0
        b=x@1 -> x=2@1
        """,
    )


def test_to_table_takes_records_as_updates() -> None:
    builder = StreamsBuilder()
    builder.stream("in").to_table(store="rows").to_stream().to("out")

    check(
        builder,
        """
        a=1@0    -> a=1@0
        a=2@5    -> a=2@5
        b=3@6    -> b=3@6
        a=4@1    -> a=4@1
        b=None@7 -> b=None@7
        None=5@8 ->
        """,
        stores={"rows": {"a": "4"}},
    )


def test_to_table_after_a_change_of_key_repartitions() -> None:
    builder = StreamsBuilder()
    builder.stream("in").select_key(lambda key, value: value[0]).to_table(store="rows").to_stream().to("out")

    check(
        builder,
        """
        a=x1@0 -> x=x1@0
        b=x2@1 -> x=x2@1
        """,
        stores={"rows": {"x": "x2"}},
    )


def test_to_table_can_be_grouped() -> None:
    builder = StreamsBuilder()
    log_of(builder.stream("in").to_table())

    check(
        builder,
        """
        a=1@0 -> all=+1@0
        a=2@1 -> all=+1-1+2@1
        """,
    )


def test_to_table_takes_serdes() -> None:
    builder = StreamsBuilder()
    numbers = builder.stream("in", value_serde=serdes.String).map_values(int)
    numbers.to_table(value_serde=serdes.Integer, store="rows").to_stream().to("out")

    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_input("a", "7")

        assert driver.state_store("rows").get("a") == 7
        assert driver.create_output_topic("out", value_serde=serdes.Bytes).read_value() == (7).to_bytes(4, "big")


# -- functions that change what they are given ------------------------------------------------------------------------


def test_changing_a_row_does_not_change_the_store() -> None:
    builder = StreamsBuilder()
    rows = builder.table("in", value_serde=serdes.Json, store="rows")
    rows.map_values(lambda value: value.pop()).to_stream().to("out")

    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_input("a", [1, 2])

        assert driver.create_output_topic("out").read_value() == 2
        assert driver.state_store("rows").get("a") == [1, 2]


def test_mapper_that_changes_its_value_in_place_gets_the_old_value_unchanged() -> None:
    builder = StreamsBuilder()
    rows = builder.table("in", value_serde=serdes.Json)
    log_of(rows.map_values(lambda value: value.pop()))

    with TopologyTestDriver(builder.build()) as driver:
        lines = driver.create_input_topic("in")
        lines.pipe_input("a", ["x", "y"])
        lines.pipe_input("a", ["z"])

        assert driver.create_output_topic("out").read_values() == ["+y", "+y-y+z"]


def test_results_kept_by_map_values_are_not_changed_from_outside() -> None:
    builder, rows = table()
    lists = rows.map_values(lambda value: [value], store=Materialized("lists", value_serde=serdes.Json))
    lists.to_stream().peek(lambda key, value: append(key, "more", value)).to("out", value_serde=serdes.Json)

    check(
        builder,
        """
        a=1@0 -> a=["1","more"]@0
        a=2@1 -> a=["2","more"]@1
        """,
        stores={"lists": {"a": ["2"]}},
    )


# -- headers and errors -----------------------------------------------------------------------------------------------


def test_update_has_the_headers_of_the_record() -> None:
    builder, rows = table()
    rows.filter(lambda key, value: True).map_values(str).to_stream().to("out")

    with TopologyTestDriver(builder.build(), {"default_value_serde": serdes.String}) as driver:
        driver.create_input_topic("in").pipe_input("a", "1", 3, {"n": b"1"})

        assert driver.create_output_topic("out").read_record() == Record("a", "1", 3, [("n", b"1")])


@pytest.mark.parametrize(
    "step",
    [
        lambda rows: rows.filter(lambda key, value: int(value), name="step"),
        lambda rows: rows.filter_not(lambda key, value: int(value), name="step"),
        lambda rows: rows.map_values(int, name="step"),
        lambda rows: rows.map_values(int, name="step", store="numbers"),
    ],
)
def test_failing_function_names_its_step(step: Any) -> None:
    builder, rows = table()
    step(rows)

    with TopologyTestDriver(builder.build(), {"default_value_serde": serdes.String}) as driver:
        lines = driver.create_input_topic("in")
        with pytest.raises(TaskError, match=r"step 'step'.*key 'a'.*ValueError"):
            lines.pipe_input("a", "x")


def test_update_whose_function_fails_can_be_left_out() -> None:
    builder, rows = table()
    rows.map_values(lambda value: str(int(value) + 1)).to_stream().to("out")

    check(
        builder,
        """
        a=1@0 -> a=2@0
        a=x@1 ->
        a=3@2 -> a=4@2
        """,
        processing_exception_handler=LogAndContinue,
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda rows: rows.filter(None),
        lambda rows: rows.filter_not(None),
        lambda rows: rows.map_values(None),
        lambda rows: rows.map_values(None, with_key=True),
        lambda rows: rows.to_stream(1),
        lambda rows: rows.filter(is_even, store=1),
        lambda rows: rows.filter(is_even, store="no spaces please"),
    ],
)
def test_wrong_arguments_are_refused(call: Any) -> None:
    _, rows = table()

    with pytest.raises(TopologyError):
        call(rows)
