"""suppress: fewer updates of a table, or only the final ones."""

from datetime import timedelta
from typing import Any

import pytest

from headrace import (
    Buffer,
    HoppingWindows,
    KTable,
    Materialized,
    Processor,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    Suppressed,
    TaskError,
    TopologyError,
    TumblingWindows,
    serdes,
)
from headrace.operators.suppress import UNBOUNDED
from headrace.records import Record
from headrace.testing import TopologyTestDriver
from tests.operators.piping import append, check, log_of


def suppressed_table(limit: int, buffer: Buffer) -> StreamsBuilder:
    builder = StreamsBuilder()
    builder.table("in").suppress(Suppressed.until_time_limit(limit, buffer), name="calm").to_stream().to("out")
    return builder


def final_counts(windows: Any, buffer: Buffer | None = None) -> StreamsBuilder:
    builder = StreamsBuilder()
    counts = builder.stream("in").group_by_key().windowed_by(windows).count(store="counts")
    final = counts.suppress(Suppressed.until_window_closes(buffer or Buffer.unbounded()), name="final")
    final.to_stream().to("out")
    return builder


# -- until a time limit -----------------------------------------------------------------------------------------------


def test_updates_wait_until_the_first_is_as_old_as_the_limit() -> None:
    check(
        suppressed_table(10, Buffer.unbounded()),
        """
        a=1@0  ->
        b=1@4  ->
        a=2@8  ->
        c=1@10 -> a=2@8
        c=2@9  ->
        c=3@20 -> b=1@4 c=3@20
        a=4@13 ->
        """,
    )


def test_without_a_limit_updates_go_on_at_once() -> None:
    check(
        suppressed_table(0, Buffer.unbounded()),
        """
        a=1@0 -> a=1@0
        a=2@1 -> a=2@1
        b=1@2 -> b=1@2
        """,
    )


def test_without_a_limit_an_out_of_order_update_goes_on_at_once() -> None:
    check(
        suppressed_table(0, Buffer.unbounded()),
        """
        a=1@5 -> a=1@5
        b=1@3 -> b=1@3
        """,
    )


def test_counts_of_a_table_with_a_limit() -> None:
    builder = StreamsBuilder()
    counts = builder.table("in").group_by(lambda key, value: (value, value)).count()
    counts.suppress(Suppressed.until_time_limit(2, Buffer.unbounded())).to_stream().to("out")

    check(
        builder,
        """
        k1=v1@0     ->
        k1=v2@1     ->
        k2=v1@2     -> v1=1@2
        tick=tick@3 -> v2=1@1
        tick=tock@4 ->
        """,
    )


def test_deletes_go_on_as_other_updates_do() -> None:
    check(
        suppressed_table(10, Buffer.unbounded()),
        """
        a=1@0     ->
        a=None@5  ->
        b=1@10    -> a=None@5
        """,
    )


def test_delete_of_a_row_that_is_not_there_goes_on_without_a_cache() -> None:
    check(
        suppressed_table(10, Buffer.unbounded()),
        """
        a=None@5 ->
        b=1@15   -> a=None@5
        """,
        cached=False,
    )


def test_updates_that_are_due_together_come_by_time_then_key() -> None:
    check(
        suppressed_table(10, Buffer.unbounded()),
        """
        c=1@1  ->
        b=1@2  ->
        a=1@2  ->
        d=1@50 -> c=1@1 a=1@2 b=1@2
        """,
    )


def test_windowed_table_with_a_limit_waits_by_the_time_of_updates() -> None:
    builder = StreamsBuilder()
    counts = builder.stream("in").group_by_key().windowed_by(TumblingWindows(100)).count()
    counts.suppress(Suppressed.until_time_limit(10, Buffer.unbounded())).to_stream().to("out")

    check(
        builder,
        """
        a=x@1  ->
        a=x@5  ->
        b=x@11 -> a@0-100=2@5
        """,
    )


def test_session_with_a_limit_passes_deletes_on() -> None:
    builder = StreamsBuilder()
    counts = builder.stream("in").group_by_key().windowed_by(SessionWindows(100)).count()
    counts.suppress(Suppressed.until_time_limit(0, Buffer.unbounded())).to_stream().to("out")

    check(
        builder,
        """
        a=x@1 -> a@1-1=1@1
        a=x@5 -> a@1-1=None@1 a@1-5=2@5
        """,
    )


# -- until the window closes ------------------------------------------------------------------------------------------


def test_final_results_of_tumbling_windows() -> None:
    check(
        final_counts(TumblingWindows(2, grace=1)),
        """
        k1=x@0 ->
        k1=x@1 ->
        k1=x@2 ->
        k1=x@1 ->
        k1=x@0 ->
        k1=x@5 -> k1@0-2=4@1 k1@2-4=1@2
        k1=x@0 ->
        """,
    )


def test_final_results_after_a_jump_in_time() -> None:
    check(
        final_counts(TumblingWindows(2, grace=2)),
        """
        k1=x@0  ->
        k1=x@1  ->
        k1=x@2  ->
        k1=x@0  ->
        k1=x@3  ->
        k1=x@0  ->
        k1=x@4  -> k1@0-2=4@1
        k1=x@0  ->
        k1=x@30 -> k1@2-4=2@3 k1@4-6=1@4
        """,
    )


def test_final_result_comes_when_grace_after_the_end_has_passed() -> None:
    check(
        final_counts(TumblingWindows(1, grace=1)),
        """
        a=x@99  ->
        b=x@100 ->
        c=x@101 -> a@99-100=1@99
        """,
    )


def test_without_grace_the_final_result_still_waits_for_the_windows_end() -> None:
    check(
        final_counts(TumblingWindows(100)),
        """
        a=x@5   ->
        a=x@99  ->
        b=x@100 -> a@0-100=2@99
        """,
    )


def test_final_results_of_hopping_windows() -> None:
    check(
        final_counts(HoppingWindows(10, advance=5)),
        """
        a=x@7  ->
        a=x@12 -> a@0-10=1@7
        a=x@30 -> a@5-15=2@12 a@10-20=1@12
        """,
    )


def test_final_results_of_sliding_windows() -> None:
    check(
        final_counts(SlidingWindows(5, grace=15)),
        """
        k1=x@10 ->
        k1=x@11 ->
        k1=x@10 ->
        k1=x@13 ->
        k1=x@10 ->
        k1=x@24 ->
        k1=x@5  ->
        k1=x@7  ->
        k1=x@90 -> k1@5-10=5@10 k1@6-11=5@11 k1@8-13=5@13 k1@11-16=2@13 k1@12-17=1@13 k1@19-24=1@24
        """,
    )


def test_sliding_window_that_takes_a_last_record_is_put_out_again() -> None:
    check(
        final_counts(SlidingWindows(10)),
        """
        a=x@100 -> a@90-100=1@100
        a=x@100 -> a@90-100=2@100
        a=x@105 -> a@95-105=3@105
        """,
    )


def test_final_results_of_sessions() -> None:
    check(
        final_counts(SessionWindows(5, grace=5)),
        """
        k1=x@0  ->
        k1=x@5  ->
        k1=x@1  ->
        k2=x@11 ->
        k1=x@5  ->
        k1=x@30 -> k1@0-5=4@5 k2@11-11=1@11
        """,
    )


def test_merged_sessions_leave_no_trace() -> None:
    check(
        final_counts(SessionWindows(10)),
        """
        a=x@0  ->
        a=x@8  ->
        a=x@30 -> a@0-8=2@8
        """,
    )


def test_windows_that_close_together_come_by_end_then_key() -> None:
    check(
        final_counts(TumblingWindows(10)),
        """
        b=x@1  ->
        a=x@2  ->
        c=x@12 -> a@0-10=1@2 b@0-10=1@1
        a=x@11 ->
        d=x@35 -> a@10-20=1@11 c@10-20=1@12
        """,
    )


def test_window_that_was_deleted_is_not_put_out() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in").group_by_key().windowed_by(TumblingWindows(10))
    texts = stream.aggregate(lambda: "", lambda key, value, text: None if value == "-" else text + value)
    texts.suppress(Suppressed.until_window_closes(Buffer.unbounded())).to_stream().to("out")

    check(
        builder,
        """
        a=x@0  ->
        b=x@1  ->
        a=-@2  ->
        b=y@10 -> b@0-10=x@1
        """,
    )


def test_stream_time_is_the_highest_timestamp_of_the_updates_that_reach_the_step() -> None:
    builder = StreamsBuilder()
    totals = builder.stream("in").group_by_key().windowed_by(TumblingWindows(10)).reduce(lambda left, right: right)
    large = totals.filter(lambda key, value: int(value) > 5)
    large.suppress(Suppressed.until_window_closes(Buffer.unbounded())).to_stream().to("out")

    check(
        builder,
        """
        a=9@1  ->
        b=1@30 ->
        b=7@31 -> a@0-10=9@1
        """,
    )


def test_grace_is_found_above_filter_and_map_values() -> None:
    builder = StreamsBuilder()
    counts = builder.stream("in").group_by_key().windowed_by(TumblingWindows(10, grace=5)).count()
    final = counts.map_values(str).filter(lambda key, value: True)
    final.suppress(Suppressed.until_window_closes(Buffer.unbounded())).to_stream().to("out")

    check(
        builder,
        """
        a=x@0  ->
        b=x@14 ->
        b=x@15 -> a@0-10=1@0
        """,
    )


def test_alert_for_windows_with_few_records() -> None:
    builder = StreamsBuilder()
    counts = builder.stream("in").group_by_key().windowed_by(TumblingWindows(60, grace=10)).count()
    final = counts.suppress(Suppressed.until_window_closes(Buffer.unbounded())).to_stream()
    final.filter(lambda key, count: count < 3).to("out")

    check(
        builder,
        """
        u=x@0  ->
        u=x@10 ->
        v=x@20 ->
        u=x@59 ->
        v=x@65 ->
        v=x@70 -> v@0-60=1@20
        """,
    )


@pytest.mark.parametrize(
    ("windows", "merger", "transcript"),
    [
        (TumblingWindows(5), None, "k=x@0 -> \n k=x@4 -> \n k=x@5 -> k@0-5=2@4"),
        (
            SlidingWindows(5),
            None,
            "k=x@10 -> k@5-10=1@10 \n k=x@12 -> k@7-12=2@12 \n k=x@20 -> k@11-16=1@12 k@15-20=1@20",
        ),
        (SessionWindows(5), lambda key, left, right: left + right, "k=x@0 -> \n k=x@4 -> \n k=x@20 -> k@0-4=2@4"),
    ],
    ids=["tumbling", "sliding", "session"],
)
def test_final_results_of_a_cogroup(windows: Any, merger: Any, transcript: str) -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key()
    counts = grouped.cogroup(lambda key, value, count: count + 1).windowed_by(windows)
    table = counts.aggregate(lambda: 0, merger=merger, store=Materialized(value_serde=serdes.Integer))
    table.suppress(Suppressed.until_window_closes(Buffer.unbounded())).to_stream().to("out")

    check(builder, transcript)


def test_final_results_need_windows() -> None:
    builder = StreamsBuilder()
    counts = builder.stream("in").group_by_key().count()

    with pytest.raises(TopologyError, match=r"step 'final'.*needs a windowed aggregation above it"):
        counts.suppress(Suppressed.until_window_closes(Buffer.unbounded()), name="final")


# -- when the buffer is full ------------------------------------------------------------------------------------------


def test_oldest_update_goes_on_when_there_are_too_many() -> None:
    check(
        suppressed_table(1000, Buffer.max_records(2)),
        """
        c=1@5 ->
        b=2@5 ->
        a=3@7 -> b=2@5
        c=4@9 ->
        d=5@8 -> c=4@9
        """,
    )


def test_buffer_for_one_record_holds_back_one_key() -> None:
    check(
        suppressed_table(1000, Buffer.max_records(1)),
        """
        a=1@0 ->
        a=2@1 ->
        b=1@2 -> a=2@1
        """,
    )


def test_buffer_for_no_record_holds_nothing_back() -> None:
    check(suppressed_table(1000, Buffer.max_records(0)), "a=1@0 -> a=1@0")


def test_oldest_update_goes_on_when_they_take_too_many_bytes() -> None:
    # An update takes 8 bytes for its time, 20 for its place in the topic, and the bytes of topic, key and values.
    one = 8 + 20 + len("in") + len("a") + len("1")

    check(
        suppressed_table(1000, Buffer.max_bytes(2 * one)),
        """
        a=1@0   ->
        b=1@1   ->
        b=2@2   -> a=1@0
        c=123@3 -> b=2@2
        """,
    )


def test_update_larger_than_the_buffer_goes_on_at_once() -> None:
    check(suppressed_table(1000, Buffer.max_bytes(10)), "a=1@0 -> a=1@0")


def test_both_limits_apply() -> None:
    one = 8 + 20 + len("in") + len("a") + len("1")
    buffer = Buffer.max_records(2).with_max_bytes(3 * one).emit_early_when_full()

    check(
        suppressed_table(1000, buffer),
        f"""
        a=1@0          ->
        b=1@1          ->
        c=1@2          -> a=1@0
        d={"9" * one}@3 -> b=1@1
        e={"9" * one}@4 -> c=1@2 d={"9" * one}@3
        """,
    )


def test_time_limit_still_holds_when_the_buffer_has_room() -> None:
    check(
        suppressed_table(10, Buffer.max_records(5)),
        """
        a=1@0  ->
        b=1@10 -> a=1@0
        """,
    )


def shut_down(topology: StreamsBuilder, *records: tuple[str, str, int]) -> None:
    with TopologyTestDriver(topology.build(), {"default_value_serde": serdes.String}) as driver:
        lines = driver.create_input_topic("in")
        for key, value, timestamp in records:
            lines.pipe_input(key, value, timestamp)


def test_too_many_records_can_stop_the_application() -> None:
    topology = suppressed_table(1000, Buffer.max_records(1).shut_down_when_full())

    with pytest.raises(TaskError, match=r"step 'calm'.*the suppress buffer is full: 2 keys \(at most 1\)"):
        shut_down(topology, ("a", "1", 0), ("b", "1", 1))


def test_too_many_bytes_can_stop_the_application() -> None:
    topology = suppressed_table(1000, Buffer.max_bytes(40).shut_down_when_full())

    with pytest.raises(TaskError, match=r"step 'calm'.*the suppress buffer is full: .*64 bytes \(at most 40\)"):
        shut_down(topology, ("a", "1", 0), ("b", "1", 1))


def test_full_buffer_of_final_results_stops_the_application() -> None:
    topology = final_counts(TumblingWindows(10), Buffer.max_records(1).shut_down_when_full())

    with pytest.raises(TaskError, match=r"step 'final'.*the suppress buffer is full"):
        shut_down(topology, ("a", "1", 0), ("b", "1", 1))


def test_full_buffer_says_only_what_is_limited() -> None:
    topology = suppressed_table(1000, Buffer.max_records(1).shut_down_when_full())

    with pytest.raises(TaskError) as raised:
        shut_down(topology, ("a", "1", 0), ("b", "1", 1))
    assert str(UNBOUNDED) not in str(raised.value)


def test_updates_that_are_due_leave_before_the_buffer_is_found_full() -> None:
    check(
        suppressed_table(10, Buffer.max_records(1).shut_down_when_full()),
        """
        a=1@0  ->
        b=1@10 -> a=1@0
        """,
    )


def test_final_results_with_a_buffer_that_is_large_enough() -> None:
    buffer = Buffer.max_bytes(1000).with_max_records(2).shut_down_when_full()

    check(
        final_counts(TumblingWindows(10), buffer),
        """
        a=x@0  ->
        b=x@1  ->
        a=x@10 -> a@0-10=1@0 b@0-10=1@1
        """,
    )


# -- what is given ----------------------------------------------------------------------------------------------------


def test_buffers() -> None:
    assert Buffer.max_bytes(2).with_max_records(4).with_no_bound() == Buffer.unbounded()
    assert Buffer.max_records(3).with_max_bytes(2) == Buffer.max_bytes(2).with_max_records(3)
    chain = Buffer.unbounded().emit_early_when_full().with_max_records(3).with_max_bytes(4)
    assert chain.with_max_records(5).with_max_bytes(6) == Buffer(5, 6, emits_early=True)
    assert chain.shut_down_when_full() == Buffer(3, 4, emits_early=False)


def test_limit_may_be_a_timedelta() -> None:
    assert Suppressed.until_time_limit(timedelta(seconds=2), Buffer.unbounded()).wait == 2000


@pytest.mark.parametrize(
    "buffer", [Buffer.max_records(2), Buffer.max_bytes(2), Buffer.unbounded().emit_early_when_full()]
)
def test_final_results_cannot_come_early(buffer: Buffer) -> None:
    with pytest.raises(TopologyError, match="until_window_closes: results are final"):
        Suppressed.until_window_closes(buffer)


@pytest.mark.parametrize(
    "buffer",
    [Buffer.unbounded(), Buffer.max_records(2).shut_down_when_full(), Buffer.max_bytes(2).shut_down_when_full()],
)
def test_final_results_take_any_buffer_that_does_not_emit_early(buffer: Buffer) -> None:
    assert Suppressed.until_window_closes(buffer).buffer == buffer


@pytest.mark.parametrize(
    "make",
    [
        lambda: Buffer.max_records(-1),
        lambda: Buffer.max_records(1.5),  # type: ignore[arg-type]
        lambda: Buffer.max_records(True),
        lambda: Buffer.max_bytes(-1),
        lambda: Buffer.max_bytes("1k"),  # type: ignore[arg-type]
        lambda: Buffer.unbounded().with_max_records(-1),
        lambda: Buffer.unbounded().with_max_bytes(-1),
        lambda: Suppressed.until_time_limit(-1, Buffer.unbounded()),
        lambda: Suppressed.until_time_limit("1s", Buffer.unbounded()),  # type: ignore[arg-type]
        lambda: Suppressed.until_time_limit(1, None),  # type: ignore[arg-type]
        lambda: Suppressed.until_window_closes(None),  # type: ignore[arg-type]
        lambda: StreamsBuilder().table("in").suppress(Buffer.unbounded()),  # type: ignore[arg-type]
        lambda: StreamsBuilder().table("in").suppress(None),  # type: ignore[arg-type]
    ],
)
def test_wrong_arguments_are_refused(make: Any) -> None:
    with pytest.raises(TopologyError):
        make()


@pytest.mark.parametrize(
    "derive",
    [lambda rows: rows, lambda rows: rows.filter(lambda key, value: True)],
    ids=["versioned", "worked out from a versioned"],
)
def test_versioned_table_cannot_be_suppressed(derive: Any) -> None:
    rows = StreamsBuilder().table("in", store=Materialized("rows", history_retention=1000))

    with pytest.raises(TopologyError, match="versioned"):
        derive(rows).suppress(Suppressed.until_time_limit(1, Buffer.unbounded()))


# -- what comes after it ----------------------------------------------------------------------------------------------


def test_result_has_the_headers_of_the_last_update() -> None:
    with TopologyTestDriver(suppressed_table(10, Buffer.unbounded()).build()) as driver:
        lines = driver.create_input_topic("in", value_serde=serdes.Json)
        lines.pipe_input("a", "1", 0, {"n": b"1"})
        lines.pipe_input("a", "2", 5, {"n": b"2"})
        lines.pipe_input("b", "1", 10, {"n": b"3"})

        expected = [Record("a", "2", 5, [("n", b"2")])]
        assert driver.create_output_topic("out", value_serde=serdes.Json).read_records() == expected


def slow(rows: KTable[Any, Any]) -> KTable[Any, Any]:
    return rows.suppress(Suppressed.until_time_limit(10, Buffer.unbounded()))


def test_grouping_of_a_suppressed_table() -> None:
    builder = StreamsBuilder()
    slow(builder.table("in")).group_by(lambda key, value: (key, value)).count().to_stream().to("out")

    check(
        builder,
        """
        A=a@0        ->
        tick=tick@10 -> A=1@0
        """,
    )


def test_old_value_behind_it_is_that_of_the_last_update_not_the_last_result() -> None:
    builder = StreamsBuilder()
    log_of(slow(builder.table("in")))

    check(
        builder,
        """
        a=1@0  ->
        b=x@10 -> all=+1@0
        a=2@11 ->
        a=3@12 ->
        c=x@22 -> all=+1+x@10 all=+1+x-2+3@12
        """,
    )


def test_join_sees_the_value_before_those_that_wait() -> None:
    builder = StreamsBuilder()
    left, right = builder.table("in"), builder.table("right")
    left.outer_join(slow(right), lambda one, other: f"({one},{other})").to_stream().to("out")

    check(
        builder,
        """
        right B=1@0        ->
        right A=1@0        ->
        right tick=tick@10 -> A=(None,1)@0 B=(None,1)@0
        right A=2@11       ->
        A=a@12             -> A=(a,1)@12
        B=b@12             -> B=(b,1)@12
        A=b@13             -> A=(b,1)@13
        right tick=tock@21 -> tick=(None,tock)@21 A=(b,2)@13
        """,
    )


def test_waiting_value_cannot_be_changed_from_outside() -> None:
    builder = StreamsBuilder()
    lists = builder.stream("in").group_by_key().aggregate(list, append, store=Materialized(value_serde=serdes.Json))
    slow(lists).to_stream().to("out")

    check(
        builder,
        """
        a=1@0  ->
        a=2@1  ->
        b=x@11 -> a=["1","2"]@1
        a=3@12 ->
        """,
    )


def test_filter_after_suppress_deletes_windows_that_were_never_emitted() -> None:
    builder = StreamsBuilder()
    counts = builder.stream("in").group_by_key().windowed_by(TumblingWindows(10)).count()
    final = counts.suppress(Suppressed.until_window_closes(Buffer.unbounded()))
    final.filter(lambda key, count: count < 3).to_stream().to("out")

    check(
        builder,
        """
        a=x@0  ->
        a=x@1  ->
        a=x@2  ->
        c=x@10 -> a@0-10=None@2
        """,
    )


def test_two_suppressions_of_one_table() -> None:
    builder = StreamsBuilder()
    rows = builder.table("in")
    slow(rows).map_values(lambda value: f"slow-{value}").to_stream().to("out")
    quick = rows.suppress(Suppressed.until_time_limit(5, Buffer.unbounded()))
    quick.map_values(lambda value: f"quick-{value}").to_stream().to("out")

    check(
        builder,
        """
        a=1@0  ->
        a=2@5  -> a=quick-2@5
        b=1@10 -> a=slow-2@5
        """,
    )


def test_waiting_updates_survive_a_restart() -> None:
    topology = suppressed_table(10, Buffer.max_records(2)).build()
    config = {"default_value_serde": serdes.String}

    with TopologyTestDriver(topology, config) as driver:
        lines = driver.create_input_topic("in")
        lines.pipe_input("b", "1", 0)
        lines.pipe_input("a", "2", 1)
        snapshot = driver.snapshot()
    with TopologyTestDriver(topology, config, restore_from=snapshot) as driver:
        lines, out = driver.create_input_topic("in"), driver.create_output_topic("out")
        lines.pipe_input("c", "3", 2)
        first = out.read_key_values()
        lines.pipe_input("c", "4", 12)

        assert (first, out.read_key_values()) == ([("b", "1")], [("a", "2"), ("c", "4")])


def test_record_in_hand_is_the_one_that_waited() -> None:
    seen = []

    class Where(Processor[Any, Any]):
        def init(self, context: Any) -> None:
            self.context = context

        def process(self, record: Any) -> None:
            metadata = self.context.record_metadata
            assert metadata is not None
            seen.append((record.key, metadata.offset))

    builder = StreamsBuilder()
    slow(builder.table("in")).to_stream().process(Where)
    with TopologyTestDriver(builder.build()) as driver:
        lines = driver.create_input_topic("in", value_serde=serdes.Json)
        for key, timestamp in [("a", 0), ("a", 1), ("b", 10), ("c", 99)]:
            lines.pipe_input(key, "x", timestamp)

    assert seen == [("a", 1), ("b", 2)]
