"""count, reduce and aggregate over sessions: records of a key that are no further apart than the gap."""

from typing import Any

import pytest

from headrace import (
    LogAndContinue,
    Materialized,
    SessionWindowedStream,
    SessionWindows,
    StreamsBuilder,
    TaskError,
    TopologyError,
    Window,
    Windowed,
    serdes,
)
from headrace.records import Record
from headrace.testing import TopologyTestDriver
from tests.operators.piping import append, check, dropped, log_of


def sessions(gap: int, grace: int = 0) -> tuple[StreamsBuilder, SessionWindowedStream[Any, Any]]:
    builder = StreamsBuilder()
    return builder, builder.stream("in").group_by_key().windowed_by(SessionWindows(gap, grace=grace))


def counted(gap: int, grace: int = 0, store: Any = None) -> StreamsBuilder:
    builder, stream = sessions(gap, grace)
    stream.count(store=store).to_stream().to("out")
    return builder


def aggregated(gap: int, grace: int = 0, store: Any = None) -> StreamsBuilder:
    """Join the values, with a bar where sessions were merged."""
    builder, stream = sessions(gap, grace)
    stream.aggregate(
        lambda: "",
        lambda key, value, text: text + value,
        lambda key, left, right: f"{left}|{right}" if left else right,
        store=store,
    ).to_stream().to("out")
    return builder


# -- which sessions there are -----------------------------------------------------------------------------------------


def test_documented_example() -> None:
    check(
        counted(5, grace=10, store="counts"),
        """
        green=x@0 -> green@0-0=1@0
        green=x@6 -> green@6-6=1@6
        blue=x@2  -> blue@2-2=1@2
        green=x@4 -> green@0-0=None@0 green@6-6=None@6 green@0-6=3@6
        blue=x@5  -> blue@2-2=None@2 blue@2-5=2@5
        blue=x@11 -> blue@11-11=1@11
        """,
        stores={"counts": {"green@0-6": 3, "blue@2-5": 2, "blue@11-11": 1}},
    )


def test_records_within_the_gap_make_one_session() -> None:
    check(
        counted(10),
        """
        a=x@0  -> a@0-0=1@0
        a=x@10 -> a@0-0=None@0 a@0-10=2@10
        a=x@21 -> a@21-21=1@21
        """,
    )


def test_keys_have_sessions_of_their_own() -> None:
    check(
        counted(10),
        """
        a=x@0  -> a@0-0=1@0
        ab=x@5 -> ab@5-5=1@5
        a=x@6  -> a@0-0=None@0 a@0-6=2@6
        """,
    )


def test_record_that_connects_sessions_merges_them() -> None:
    check(
        aggregated(10, grace=50, store="texts"),
        """
        a=1@0  -> a@0-0=1@0
        a=2@20 -> a@20-20=2@20
        a=3@40 -> a@40-40=3@40
        a=4@30 -> a@20-20=None@20 a@40-40=None@40 a@20-40=2|34@40
        a=5@10 -> a@0-0=None@0 a@20-40=None@40 a@0-40=1|2|345@40
        """,
        stores={"texts": {"a@0-40": "1|2|345"}},
    )


def test_record_at_the_instant_of_a_session_updates_it() -> None:
    check(
        counted(10),
        """
        a=x@0 -> a@0-0=1@0
        a=x@0 -> a@0-0=2@0
        """,
    )


def test_record_inside_a_session_takes_it_back_and_puts_it_out_again_without_a_cache() -> None:
    check(
        counted(10),
        """
        a=x@0 -> a@0-0=1@0
        a=x@8 -> a@0-0=None@0 a@0-8=2@8
        a=x@5 -> a@0-8=None@8 a@0-8=3@8
        """,
        cached=False,
    )


def test_record_inside_a_session_updates_it_out_of_a_cache() -> None:
    check(
        counted(10),
        """
        a=x@0 -> a@0-0=1@0
        a=x@8 -> a@0-0=None@0 a@0-8=2@8
        a=x@5 -> a@0-8=3@8
        """,
        cached=True,
    )


def test_session_grows_at_both_ends() -> None:
    check(
        aggregated(10, grace=50),
        """
        a=1@20 -> a@20-20=1@20
        a=2@25 -> a@20-20=None@20 a@20-25=12@25
        a=3@12 -> a@20-25=None@25 a@12-25=123@25
        """,
    )


def test_without_a_gap_only_records_of_one_instant_are_together() -> None:
    check(
        counted(0, grace=5, store="counts"),
        """
        a=x@0 -> a@0-0=1@0
        a=x@0 -> a@0-0=2@0
        a=x@1 -> a@1-1=1@1
        a=x@0 -> a@0-0=3@0
        """,
        stores={"counts": {"a@0-0": 3, "a@1-1": 1}},
    )


def test_sessions_of_many_keys() -> None:
    check(
        counted(10),
        """
        a=x@0  -> a@0-0=1@0
        b=x@0  -> b@0-0=1@0
        d=x@0  -> d@0-0=1@0
        d=x@5  -> d@0-0=None@0 d@0-5=2@5
        a=x@11 -> a@11-11=1@11
        b=x@11 -> b@11-11=1@11
        a=x@16 -> a@11-11=None@11 a@11-16=2@16
        d=x@16 -> d@16-16=1@16
        """,
    )


# -- functions --------------------------------------------------------------------------------------------------------


def test_reduce_merges_sessions_with_the_reducer() -> None:
    builder, stream = sessions(10, grace=50)
    stream.reduce(lambda left, right: f"{left}+{right}").to_stream().to("out")

    check(
        builder,
        """
        a=1@0  -> a@0-0=1@0
        a=2@15 -> a@15-15=2@15
        a=3@8  -> a@0-0=None@0 a@15-15=None@15 a@0-15=1+2+3@15
        """,
    )


def test_functions_get_the_key() -> None:
    builder, stream = sessions(10, grace=50)
    stream.aggregate(
        lambda: "",
        lambda key, value, text: f"{text}{key}{value}",
        lambda key, left, right: f"{left}{key.upper()}{right}",
    ).to_stream().to("out")

    check(
        builder,
        """
        a=1@0 -> a@0-0=a1@0
        a=2@1 -> a@0-0=None@0 a@0-1=Aa1a2@1
        """,
    )


def test_sessions_are_merged_by_their_end_before_the_record_is_added() -> None:
    calls = []

    def merge(key: Any, left: list[str], right: list[str]) -> list[str]:
        calls.append(("merge", left, right))
        return left + right

    def add(key: Any, value: str, values: list[str]) -> list[str]:
        calls.append(("add", values, [value]))
        return [*values, value]

    builder, stream = sessions(10, grace=50)
    stream.aggregate(list, add, merge, store=Materialized(value_serde=serdes.Json))

    with TopologyTestDriver(builder.build(), {"default_value_serde": serdes.String}) as driver:
        lines = driver.create_input_topic("in")
        lines.pipe_input("a", "1", 20)
        lines.pipe_input("a", "2", 0)
        calls.clear()
        lines.pipe_input("a", "3", 10)

    assert calls == [("merge", [], ["2"]), ("merge", ["2"], ["1"]), ("add", ["2", "1"], ["3"])]


# -- late records -----------------------------------------------------------------------------------------------------


def test_late_record_is_dropped_after_gap_and_grace() -> None:
    builder = counted(10, grace=1)

    check(
        builder,
        """
        dummy=x@0   -> dummy@0-0=1@0
        ontime1=x@0 -> ontime1@0-0=1@0
        dummy=x@11  -> dummy@11-11=1@11
        ontime2=x@0 -> ontime2@0-0=1@0
        dummy=x@12  -> dummy@11-11=None@11 dummy@11-12=2@12
        late=x@0    ->
        """,
    )
    assert dropped(builder, "dummy=x@12 late=x@0") == 1


def test_without_grace_a_session_closes_when_the_gap_has_passed() -> None:
    check(
        counted(10),
        """
        dummy=x@0   -> dummy@0-0=1@0
        dummy=x@10  -> dummy@0-0=None@0 dummy@0-10=2@10
        ontime=x@0  -> ontime@0-0=1@0
        dummy=x@11  -> dummy@0-10=None@10 dummy@0-11=3@11
        late=x@0    ->
        ontime=x@1  -> ontime@1-1=1@1
        """,
        cached=False,
    )


def test_late_record_that_joins_an_open_session_is_not_late() -> None:
    check(
        counted(10, grace=10),
        """
        a=x@20 -> a@20-20=1@20
        b=x@35 -> b@35-35=1@35
        a=x@12 -> a@20-20=None@20 a@12-20=2@20
        a=x@3  -> a@12-20=None@20 a@3-20=3@20
        c=x@3  ->
        """,
    )


# -- nulls ------------------------------------------------------------------------------------------------------------


def test_null_key_is_dropped_and_time_stands_still() -> None:
    builder = counted(10)

    check(
        builder,
        """
        a=x@0      -> a@0-0=1@0
        None=x@100 ->
        a=x@1      -> a@0-0=None@0 a@0-1=2@1
        """,
    )
    assert dropped(builder, "None=x@100") == 1


def test_null_value_is_counted_and_time_goes_on() -> None:
    check(
        counted(10),
        """
        a=None@100 -> a@100-100=1@100
        a=x@101    -> a@100-100=None@100 a@100-101=2@101
        b=None@200 -> b@200-200=1@200
        a=x@102    ->
        """,
    )


def test_aggregate_that_is_none_leaves_no_session() -> None:
    builder, stream = sessions(10)
    stream.aggregate(lambda: "", lambda key, value, text: None, lambda key, left, right: left + right, store="texts")
    texts = stream.aggregate(lambda: "", lambda key, value, text: None, lambda key, left, right: left + right)
    texts.to_stream().to("out")

    check(builder, "a=x@0 -> a@0-0=None@0", cached=False, stores={"texts": {}})


# -- stores and retention ---------------------------------------------------------------------------------------------


def test_store_gives_the_sessions_of_a_key() -> None:
    with TopologyTestDriver(counted(10, grace=50, store="counts").build()) as driver:
        lines = driver.create_input_topic("in", value_serde=serdes.Json)
        for timestamp in (0, 5, 30):
            lines.pipe_input("a", "x", timestamp)
        counts = driver.state_store("counts")

        first, second = Windowed("a", Window(0, 5)), Windowed("a", Window(30, 30))
        assert list(counts.fetch("a")) == [(first, 2), (second, 1)]
        assert list(counts.find_sessions("a", 5, 29)) == [(first, 2)]
        assert list(counts.find_sessions("a", 6, 30)) == [(second, 1)]
        assert list(counts.fetch("b")) == []


def test_session_that_ended_gap_and_grace_ago_is_forgotten() -> None:
    check(
        counted(10, store="counts"),
        """
        a=x@0  -> a@0-0=1@0
        b=x@10 -> b@10-10=1@10
        """,
        cached=False,
        stores={"counts": {"b@10-10": 1}},
    )


def test_sessions_can_be_kept_longer() -> None:
    check(
        counted(10, store=Materialized("counts", retention=100)),
        """
        a=x@0  -> a@0-0=1@0
        b=x@10 -> b@10-10=1@10
        a=x@0  -> a@0-0=2@0
        b=x@90 -> b@90-90=1@90
        """,
        stores={"counts": {"a@0-0": 2, "b@10-10": 1, "b@90-90": 1}},
    )


def test_session_that_is_forgotten_begins_anew_for_a_record_that_is_not_late() -> None:
    check(
        counted(10),
        """
        a=x@0  -> a@0-0=1@0
        b=x@10 -> b@10-10=1@10
        a=x@0  -> a@0-0=1@0
        """,
        cached=False,
    )


def test_retention_must_cover_gap_and_grace() -> None:
    _, stream = sessions(10, grace=5)

    with pytest.raises(TopologyError, match=r"\(15 ms\), got 14 ms"):
        stream.count(store=Materialized("counts", retention=14))


# -- keys on the output topic -----------------------------------------------------------------------------------------


def test_session_is_written_with_the_key() -> None:
    with TopologyTestDriver(counted(10).build()) as driver:
        driver.create_input_topic("in", value_serde=serdes.Json).pipe_input("a", "x", 12)

        out = driver.create_output_topic("out", key_serde=serdes.Bytes)
        assert out.read_key_value() == (b"a" + (12).to_bytes(8, "big") + (12).to_bytes(8, "big"), 1)


def test_key_can_be_read_with_the_serde_of_sessions() -> None:
    with TopologyTestDriver(counted(10).build()) as driver:
        lines = driver.create_input_topic("in", value_serde=serdes.Json)
        lines.pipe_input("a", "x", 12)
        lines.pipe_input("a", "x", 15)

        out = driver.create_output_topic("out", key_serde=serdes.SessionWindowed(serdes.String))
        assert out.read_key_values() == [
            (Windowed("a", Window(12, 12)), 1),
            (Windowed("a", Window(12, 12)), None),
            (Windowed("a", Window(12, 15)), 2),
        ]


def test_result_has_no_headers_without_a_cache() -> None:
    with TopologyTestDriver(counted(10).build(), {"statestore_cache_max_bytes": 0}) as driver:
        lines = driver.create_input_topic("in", value_serde=serdes.Json)
        lines.pipe_input("a", "x", 12, {"n": b"1"})

        assert driver.create_output_topic("out").read_record() == Record(Windowed("a", Window(12, 12)), 1, 12)


def test_result_has_the_headers_of_the_record_out_of_a_cache() -> None:
    with TopologyTestDriver(counted(10).build()) as driver:
        lines = driver.create_input_topic("in", value_serde=serdes.Json)
        lines.pipe_input("a", "x", 12, {"n": b"1"})

        expected = Record(Windowed("a", Window(12, 12)), 1, 12, [("n", b"1")])
        assert driver.create_output_topic("out").read_record() == expected


# -- old values -------------------------------------------------------------------------------------------------------


def test_regrouping_takes_merged_sessions_out() -> None:
    builder, stream = sessions(10, grace=50)
    log_of(stream.count())

    check(
        builder,
        """
        a=x@0 -> all=+1@0
        b=x@1 -> all=+1+1@1
        a=x@5 -> all=+1+1-1@1 all=+1+1-1+2@5
        """,
    )


def test_old_value_of_a_session_of_one_instant_is_lost_without_a_cache() -> None:
    builder, stream = sessions(10)
    log_of(stream.count())

    check(
        builder,
        """
        a=x@0 -> all=+1@0
        a=x@0 -> all=+1+2@0
        """,
        cached=False,
    )


def test_old_value_of_a_session_of_one_instant_is_known_out_of_a_cache() -> None:
    builder, stream = sessions(10)
    log_of(stream.count())

    check(
        builder,
        """
        a=x@0 -> all=+1@0
        a=x@0 -> all=+1-1+2@0
        """,
        cached=True,
    )


# -- functions that change what they are given ------------------------------------------------------------------------


def extend(key: Any, left: list[Any], right: list[Any]) -> list[Any]:
    left.extend(right)
    return left


def extend_right(key: Any, left: list[Any], right: list[Any]) -> list[Any]:
    right[:0] = left
    return right


@pytest.mark.parametrize("merger", [extend, extend_right])
def test_functions_that_change_the_aggregate_in_place(merger: Any) -> None:
    builder, stream = sessions(10, grace=50)
    lists = stream.aggregate(list, append, merger, store=Materialized("lists", value_serde=serdes.Json))
    lists.to_stream().to("out")

    check(
        builder,
        """
        a=1@0  -> a@0-0=["1"]@0
        a=2@15 -> a@15-15=["2"]@15
        a=3@8  -> a@0-0=None@0 a@15-15=None@15 a@0-15=["1","2","3"]@15
        """,
        stores={"lists": {"a@0-15": ["1", "2", "3"]}},
    )


@pytest.mark.parametrize("merger", [extend, extend_right])
def test_old_values_are_not_changed_by_functions_that_work_in_place(merger: Any) -> None:
    builder, stream = sessions(10, grace=50)
    lists = stream.aggregate(list, append, merger, store=Materialized(value_serde=serdes.Json))
    log_of(lists.map_values("".join))

    check(
        builder,
        """
        a=x@0  -> all=+x@0
        a=y@15 -> all=+x+y@15
        a=z@8  -> all=+x+y-x@15 all=+x+y-x-y@15 all=+x+y-x-y+xyz@15
        """,
    )


# -- errors -----------------------------------------------------------------------------------------------------------


def test_failing_merger_names_its_step() -> None:
    builder, stream = sessions(10)
    stream.aggregate(lambda: 0, lambda key, value, total: 1, lambda key, left, right: 1 / 0, name="visits")

    with TopologyTestDriver(builder.build()) as driver:
        lines = driver.create_input_topic("in", value_serde=serdes.Json)
        lines.pipe_input("a", "x", 0)
        with pytest.raises(TaskError, match=r"step 'visits'.*ZeroDivisionError"):
            lines.pipe_input("a", "x", 1)


def test_record_whose_aggregator_fails_leaves_its_session_alone() -> None:
    builder, stream = sessions(10)
    total = stream.aggregate(
        lambda: "0",
        lambda key, value, total: str(int(total) + int(value)),
        lambda key, left, right: str(int(left) + int(right)),
        store="sums",
    )
    total.to_stream().to("out")

    check(
        builder,
        """
        a=1@0 -> a@0-0=1@0
        a=x@5 ->
        a=2@9 -> a@0-0=None@0 a@0-9=3@9
        """,
        stores={"sums": {"a@0-9": "3"}},
        processing_exception_handler=LogAndContinue,
    )


@pytest.mark.parametrize(
    "call",
    [
        lambda stream: stream.reduce(None),
        lambda stream: stream.aggregate(None, append, extend),
        lambda stream: stream.aggregate(list, None, extend),
        lambda stream: stream.aggregate(list, append, None),
        lambda stream: stream.count(store="no spaces please"),
    ],
)
def test_wrong_arguments_are_refused(call: Any) -> None:
    _, stream = sessions(10)

    with pytest.raises(TopologyError):
        call(stream)
