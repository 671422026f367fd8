"""Steps of a stream without state."""

from collections.abc import Iterator
from typing import Any

import pytest

from headrace import KStream, LogAndContinue, StreamsBuilder, TaskError, TopologyError, serdes
from headrace.records import Record
from headrace.testing import TopologyTestDriver
from tests.operators.piping import check


def stream() -> tuple[StreamsBuilder, KStream[Any, Any]]:
    builder = StreamsBuilder()
    return builder, builder.stream("in")


def through(step: Any) -> StreamsBuilder:
    """Return a topology with one step between the topics `in` and `out`."""
    builder, records = stream()
    step(records).to("out")
    return builder


# -- filter -----------------------------------------------------------------------------------------------------------


def test_filter_keeps_what_passes() -> None:
    check(
        through(lambda records: records.filter(lambda key, value: int(value) % 3 == 0)),
        """
        a=1@0 ->
        a=3@1 -> a=3@1
        b=6@0 -> b=6@0
        """,
    )


def test_filter_not_keeps_the_rest() -> None:
    check(
        through(lambda records: records.filter_not(lambda key, value: int(value) % 3 == 0)),
        """
        a=1@0 -> a=1@0
        a=3@1 ->
        """,
    )


def test_predicate_sees_null_keys_and_values() -> None:
    check(
        through(lambda records: records.filter(lambda key, value: key is None or value is None)),
        """
        None=1@0    -> None=1@0
        a=None@1    -> a=None@1
        None=None@2 -> None=None@2
        a=1@3       ->
        """,
    )


# -- map and its kin --------------------------------------------------------------------------------------------------


def test_map_gives_another_record() -> None:
    check(
        through(lambda records: records.map(lambda key, value: (value, f"{key}!"))),
        """
        a=1@7    -> 1=a!@7
        None=2@8 -> 2=None!@8
        a=None@9 -> None=a!@9
        """,
    )


def test_select_key_gives_another_key() -> None:
    check(
        through(lambda records: records.select_key(lambda key, value: value[0])),
        """
        a=xy@7    -> x=xy@7
        None=yz@8 -> y=yz@8
        """,
    )


def test_select_key_may_give_none() -> None:
    check(through(lambda records: records.select_key(lambda key, value: None)), "a=1@0 -> None=1@0")


def test_map_values_gives_another_value() -> None:
    check(
        through(lambda records: records.map_values(lambda value: f"<{value}>")),
        """
        a=1@7    -> a=<1>@7
        None=2@8 -> None=<2>@8
        a=None@9 -> a=<None>@9
        """,
    )


def test_map_values_with_key() -> None:
    check(
        through(lambda records: records.map_values(lambda key, value: f"{key}{value}", with_key=True)),
        "a=1@7 -> a=a1@7",
    )


def test_map_values_may_give_none() -> None:
    check(through(lambda records: records.map_values(lambda value: None)), "a=1@7 -> a=None@7")


def test_flat_map_gives_any_number_of_records() -> None:
    check(
        through(lambda records: records.flat_map(lambda key, value: [(key * n, f"V{n}") for n in range(int(value))])),
        """
        a=0@1 ->
        a=1@2 -> =V0@2
        a=3@3 -> =V0@3 a=V1@3 aa=V2@3
        """,
    )


def test_flat_map_takes_a_generator() -> None:
    def letters(key: str, value: str) -> Iterator[tuple[str, str]]:
        for letter in value:
            yield letter, key

    check(through(lambda records: records.flat_map(letters)), "a=xy@1 -> x=a@1 y=a@1")


def test_flat_map_values_gives_any_number_of_values() -> None:
    check(
        through(lambda records: records.flat_map_values(lambda value: [f"v{value}", f"V{value}"] if value else [])),
        """
        0=0@0    -> 0=v0@0 0=V0@0
        1=1@1    -> 1=v1@1 1=V1@1
        2=None@2 ->
        """,
    )


def test_flat_map_values_with_key() -> None:
    check(
        through(lambda records: records.flat_map_values(lambda key, value: (key, value), with_key=True)),
        "a=1@0 -> a=a@0 a=1@0",
    )


def test_each_result_goes_all_the_way_before_the_next() -> None:
    builder, records = stream()
    letters: KStream[str, str] = records.flat_map_values(list)
    letters.merge(letters.map_values(str.upper)).to("out")

    check(builder, "a=xy@0 -> a=X@0 a=x@0 a=Y@0 a=y@0")


def test_changed_values_are_written_with_the_default_serde() -> None:
    builder = StreamsBuilder()
    builder.stream("in", value_serde=serdes.Long).map_values(lambda value: {"n": value}).to("out")

    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_input("a", 7)

        assert driver.create_output_topic("out", value_serde=serdes.Bytes).read_value() == b'{"n":7}'


def test_values_that_stay_keep_their_serde() -> None:
    builder = StreamsBuilder()
    records = builder.stream("in", key_serde=serdes.Integer, value_serde=serdes.Long)
    records.filter(lambda key, value: True).peek(lambda key, value: None).to("out")

    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("in").pipe_input(1, 2)

        out = driver.create_output_topic("out", key_serde=serdes.Bytes, value_serde=serdes.Bytes)
        assert out.read_key_value() == ((1).to_bytes(4, "big"), (2).to_bytes(8, "big"))


# -- effects ----------------------------------------------------------------------------------------------------------


def test_peek_sees_every_record_and_passes_it_on() -> None:
    seen: list[Any] = []
    builder = through(lambda records: records.peek(lambda key, value: seen.append((key, value))))

    check(
        builder,
        """
        a=1@0    -> a=1@0
        a=None@1 -> a=None@1
        None=2@2 -> None=2@2
        """,
        cached=True,
    )
    assert seen == [("a", "1"), ("a", None), (None, "2")]


def test_for_each_sees_every_record() -> None:
    seen: list[Any] = []
    builder, records = stream()
    records.for_each(lambda key, value: seen.append((key, value)))

    check(builder, "a=1@0 -> \n b=2@1 ->", cached=True)
    assert seen == [("a", "1"), ("b", "2")]


def test_print_writes_every_record(capsys: pytest.CaptureFixture[str]) -> None:
    builder, records = stream()
    records.print("words")
    records.print()

    check(builder, "a=1@0 ->", cached=True)
    assert capsys.readouterr().out == f"[words]: a, 1\n[{records.name}]: a, 1\n"


# -- merge and split --------------------------------------------------------------------------------------------------


def test_merge_takes_the_records_of_both() -> None:
    builder, records = stream()
    records.merge(builder.stream("in2")).to("out")

    check(
        builder,
        """
        a=1@0     -> a=1@0
        in2 b=2@0 -> b=2@0
        a=3@1     -> a=3@1
        """,
    )


def test_merge_of_a_stream_with_itself_doubles_it() -> None:
    builder, records = stream()
    records.map_values(str.lower).merge(records.map_values(str.upper)).to("out")

    check(builder, "a=x@0 -> a=x@0 a=X@0")


def test_first_branch_that_fits_takes_the_record() -> None:
    builder, records = stream()
    branches = records.split(
        {
            "even": lambda key, value: int(value) % 2 == 0,
            "third": lambda key, value: int(value) % 3 == 0,
            "never": lambda key, value: False,
        },
        default="rest",
    )
    for name, branch in branches.items():
        branch.map_values(lambda value, name=name: f"{name}-{value}").to("out")

    assert list(branches) == ["even", "third", "never", "rest"]
    check(
        builder,
        """
        a=1@0 -> a=rest-1@0
        a=2@1 -> a=even-2@1
        a=3@2 -> a=third-3@2
        a=6@3 -> a=even-6@3
        """,
    )


def test_split_without_a_default_drops_the_rest() -> None:
    builder, records = stream()
    branches = records.split({"even": lambda key, value: int(value) % 2 == 0})
    branches["even"].to("out")

    check(
        builder,
        """
        a=1@0 ->
        a=2@1 -> a=2@1
        """,
    )


def test_predicates_of_a_split_see_nulls() -> None:
    builder, records = stream()
    branches = records.split({"null": lambda key, value: value is None}, default="rest")
    branches["null"].map_values(lambda value: "was-null").to("out")
    branches["rest"].to("out")

    check(
        builder,
        """
        a=None@0 -> a=was-null@0
        None=1@1 -> None=1@1
        """,
    )


def test_branches_may_be_split_and_merged_again() -> None:
    builder, records = stream()
    sizes = records.split({"small": lambda key, value: len(value) < 3}, default="large")
    signs = sizes["small"].split({"minus": lambda key, value: value.startswith("-")}, default="plus")
    signs["minus"].map_values(lambda value: value[1:]).merge(sizes["large"]).to("out")

    check(
        builder,
        """
        a=1@0    ->
        a=-1@1   -> a=1@1
        a=1000@2 -> a=1000@2
        """,
    )


# -- functions that change what they are given ------------------------------------------------------------------------


def test_record_that_a_function_changes_in_place_is_the_callers_own() -> None:
    builder = StreamsBuilder()
    records = builder.stream("in", value_serde=serdes.Json)
    records.peek(lambda key, value: value.append(2)).to("out")

    with TopologyTestDriver(builder.build()) as driver:
        value = [1]
        driver.create_input_topic("in").pipe_input("a", value)

        assert (driver.create_output_topic("out").read_value(), value) == ([1, 2], [1])


# -- headers and errors -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "step",
    [
        lambda records: records.filter(lambda key, value: True),
        lambda records: records.map(lambda key, value: (key, value)),
        lambda records: records.flat_map(lambda key, value: [(key, value)]),
        lambda records: records.map_values(lambda value: value),
        lambda records: records.flat_map_values(lambda value: [value]),
        lambda records: records.select_key(lambda key, value: key),
        lambda records: records.peek(lambda key, value: None),
        lambda records: records.split({"all": lambda key, value: True})["all"],
        lambda records: records.repartition(),
    ],
    ids=["filter", "map", "flat_map", "map_values", "flat_map_values", "select_key", "peek", "split", "repartition"],
)
def test_timestamp_and_headers_go_through(step: Any) -> None:
    with TopologyTestDriver(through(step).build(), {"default_value_serde": serdes.String}) as driver:
        driver.create_input_topic("in").pipe_input("a", "1", 7, {"n": b"1"})

        assert driver.create_output_topic("out").read_records() == [Record("a", "1", 7, [("n", b"1")])]


def fail(*_: Any) -> Any:
    raise ValueError("no good")


FAILING = [
    lambda records: records.filter(fail, name="step"),
    lambda records: records.filter_not(fail, name="step"),
    lambda records: records.map(fail, name="step"),
    lambda records: records.flat_map(fail, name="step"),
    lambda records: records.map_values(fail, name="step"),
    lambda records: records.map_values(fail, with_key=True, name="step"),
    lambda records: records.flat_map_values(fail, name="step"),
    lambda records: records.select_key(fail, name="step"),
    lambda records: records.peek(fail, name="step"),
    lambda records: records.for_each(fail, name="step"),
    lambda records: records.split({"all": fail}, name="step"),
]


@pytest.mark.parametrize("step", FAILING)
def test_failing_function_names_its_step_and_the_record(step: Any) -> None:
    builder, records = stream()
    step(records)

    with TopologyTestDriver(builder.build(), {"default_value_serde": serdes.String}) as driver:
        lines = driver.create_input_topic("in")
        match = r"step 'step', topic 'in', partition 0, offset 0, key 'a': ValueError: no good"
        with pytest.raises(TaskError, match=match):
            lines.pipe_input("a", "1")


def test_record_whose_function_fails_can_be_left_out() -> None:
    check(
        through(lambda records: records.map_values(lambda value: str(int(value) + 1))),
        """
        a=1@0 -> a=2@0
        a=x@1 ->
        a=3@2 -> a=4@2
        """,
        processing_exception_handler=LogAndContinue,
    )


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda records: records.map(lambda key, value: value), r"expected a \(key, value\) pair, got str \('1'\)"),
        (lambda records: records.map(lambda key, value: None), r"expected a \(key, value\) pair, got NoneType"),
        (lambda records: records.map(lambda key, value: (1, 2, 3)), r"expected a \(key, value\) pair, got tuple"),
        (lambda records: records.flat_map(lambda key, value: None), "expected an iterable of results such as a list"),
        (
            lambda records: records.flat_map(lambda key, value: ["x"]),
            r"expected a \(key, value\) pair, got str \('x'\)",
        ),
        (lambda records: records.flat_map_values(lambda value: None), "expected an iterable of results such as a list"),
        (lambda records: records.flat_map_values(lambda value: 7), r"such as a list, got int \(7\)"),
    ],
)
def test_result_of_the_wrong_kind_is_explained(step: Any, message: str) -> None:
    builder, records = stream()
    step(records)

    with TopologyTestDriver(builder.build(), {"default_value_serde": serdes.String}) as driver:
        lines = driver.create_input_topic("in")
        with pytest.raises(TaskError, match=message):
            lines.pipe_input("a", "1")


@pytest.mark.parametrize(
    "call",
    [
        lambda records: records.filter(None),
        lambda records: records.filter_not(1),
        lambda records: records.map(None),
        lambda records: records.flat_map(None),
        lambda records: records.map_values("upper"),
        lambda records: records.flat_map_values(None),
        lambda records: records.select_key(None),
        lambda records: records.peek(None),
        lambda records: records.for_each(None),
        lambda records: records.group_by(None),
        lambda records: records.split({}),
        lambda records: records.split({"a": None}),
        lambda records: records.split({"a": fail}, default="a"),
        lambda records: records.merge(None),
        lambda records: records.merge(StreamsBuilder().stream("in2")),
        lambda records: records.repartition(partitions=0),
    ],
)
def test_wrong_arguments_are_refused(call: Any) -> None:
    _, records = stream()

    with pytest.raises(TopologyError):
        call(records)
