"""Punctuations: callbacks that stream time or the wall clock make due."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from headrace import Processor, PunctuationType, Record, Stores, TaskError, Topology, TopologyError
from headrace.task.punctuation import NEVER, Schedule, Schedules
from headrace.testing import TopologyTestDriver
from tests.task.tasks import lane, raw_lane, resumed, task_of, values

STREAM_TIME, WALL_CLOCK_TIME = PunctuationType.STREAM_TIME, PunctuationType.WALL_CLOCK_TIME


class Punctuated(Processor[Any, Any]):
    """Schedules callbacks in `init` and notes when they are called."""

    def __init__(self, calls: list[Any], *schedules: tuple[Any, PunctuationType]) -> None:
        self.calls = calls
        self.wanted = schedules
        self.handles: list[Any] = []

    def init(self, context: Any) -> None:
        super().init(context)
        for number, (interval, kind) in enumerate(self.wanted):
            self.handles.append(context.schedule(interval, kind, self.caller(number)))

    def caller(self, number: int) -> Callable[[int], None]:
        return lambda timestamp: self.punctuate(number, timestamp)

    def process(self, record: Record[Any, Any]) -> None:
        pass

    def punctuate(self, number: int, timestamp: int) -> None:
        self.calls.append(timestamp if len(self.wanted) == 1 else (number, timestamp))


def topology_of(supplier: Callable[[], Any]) -> Topology:
    topology = Topology().add_source("source", "in").add_processor("step", supplier, "source")
    return topology.add_sink("sink", "out", "step")


def called_at(*timestamps: int, interval: Any = 10) -> list[list[int]]:
    """Pipe records; return for each when its punctuations were called."""
    calls: list[int] = []
    came = []
    with TopologyTestDriver(topology_of(lambda: Punctuated(calls, (interval, STREAM_TIME)))) as driver:
        source = driver.create_input_topic("in")
        for timestamp in timestamps:
            source.pipe_input("k", 1, timestamp)
            came.append(calls[:])
            calls.clear()
    return came


# -- stream time ------------------------------------------------------------------------------------------------------


def test_stream_time_calls_after_the_first_record_and_then_at_multiples_of_the_interval() -> None:
    assert called_at(42, 42, 51, 52, 61, 65, 71, 72, 95, 101, 102) == [
        [42],
        [],
        [51],
        [],
        [61],
        [],
        [71],
        [],
        [95],
        [101],
        [],
    ]


def test_a_gap_in_stream_time_calls_once() -> None:
    assert called_at(0, 1000, 1001, 1010) == [[0], [1000], [], [1010]]


def test_late_records_call_nothing() -> None:
    assert called_at(25, 10, 29, 30) == [[25], [], [], [30]]


def test_the_interval_may_be_a_duration() -> None:
    assert called_at(0, 999, 1000, interval=timedelta(seconds=1)) == [[0], [], [1000]]


def test_records_of_all_partitions_move_stream_time() -> None:
    calls: list[int] = []
    topology = Topology().add_source("one", "topic1").add_source("two", "topic2")
    topology.add_processor("step", lambda: Punctuated(calls, (10, STREAM_TIME)), "one", "two")
    task = task_of(topology)

    task.process_lanes(
        [
            lane("topic1", [(20, 1), (142, 1), (155, 1), (160, 1)]),
            lane("topic2", [(25, 1), (145, 1), (159, 1), (161, 1)]),
        ]
    )

    assert calls == [20, 142, 155, 160]


def test_records_that_are_dropped_later_move_stream_time() -> None:
    calls: list[int] = []
    topology = topology_of(lambda: Punctuated(calls, (10, STREAM_TIME)))
    topology.add_processor("other", lambda: Punctuated([]), "source")

    with TopologyTestDriver(topology) as driver:
        driver.create_input_topic("in").pipe_input(None, None, 5)
        driver.create_input_topic("in").pipe_input(None, None, 15)

    assert calls == [5, 15]


def test_the_callback_comes_after_the_record_has_been_processed() -> None:
    order: list[str] = []

    class Step(Punctuated):
        def process(self, record: Record[Any, Any]) -> None:
            order.append(f"record {record.timestamp}")

        def punctuate(self, number: int, timestamp: int) -> None:
            order.append(f"punctuation {timestamp}")

    with TopologyTestDriver(topology_of(lambda: Step([], (10, STREAM_TIME)))) as driver:
        driver.create_input_topic("in").pipe_input("k", 1, 5)
        driver.create_input_topic("in").pipe_input("k", 1, 12)

    assert order == ["record 5", "punctuation 5", "record 12", "punctuation 12"]


def test_a_batch_of_records_calls_in_between() -> None:
    order: list[Any] = []

    class Step(Punctuated):
        def process(self, record: Record[Any, Any]) -> None:
            order.append(record.value)

        def punctuate(self, number: int, timestamp: int) -> None:
            order.append(f"at {timestamp}")

    task = task_of(topology_of(lambda: Step([], (10, STREAM_TIME))))

    task.process_lanes([lane("in", [(1, 1), (5, 2), (11, 3), (12, 4)])])

    assert order == [1, "at 1", 2, 3, "at 11", 4]


# -- wall-clock time --------------------------------------------------------------------------------------------------


def test_the_wall_clock_calls_one_interval_after_the_start_and_then_at_multiples() -> None:
    calls: list[int] = []
    came = []
    with TopologyTestDriver(topology_of(lambda: Punctuated(calls, (10, WALL_CLOCK_TIME)))) as driver:
        for duration in (5, 9, 1, 20, 5):
            driver.advance_wall_clock_time(duration)
            came.append(calls[:])
            calls.clear()

    assert came == [[], [14], [], [35], [40]]


def test_records_do_not_move_the_wall_clock() -> None:
    calls: list[int] = []
    with TopologyTestDriver(topology_of(lambda: Punctuated(calls, (10, WALL_CLOCK_TIME)))) as driver:
        driver.create_input_topic("in").pipe_input("k", 1, 10_000)

    assert calls == []


def test_the_first_call_is_counted_from_when_the_driver_starts() -> None:
    calls: list[int] = []
    topology = topology_of(lambda: Punctuated(calls, (10, WALL_CLOCK_TIME)))
    with TopologyTestDriver(topology, initial_wall_clock=1003) as driver:
        driver.advance_wall_clock_time(9)
        assert calls == []
        driver.advance_wall_clock_time(1)

    assert calls == [1013]


def test_the_clock_moves_for_all_tasks() -> None:
    one: list[int] = []
    two: list[int] = []
    topology = Topology().add_source("s1", "in1").add_source("s2", "in2")
    topology.add_processor("p1", lambda: Punctuated(one, (10, WALL_CLOCK_TIME)), "s1")
    topology.add_processor("p2", lambda: Punctuated(two, (10, WALL_CLOCK_TIME)), "s2")

    with TopologyTestDriver(topology) as driver:
        driver.advance_wall_clock_time(10)

    assert (one, two) == ([10], [10])


# -- several schedules ------------------------------------------------------------------------------------------------


def test_what_is_due_earlier_is_called_first() -> None:
    calls: list[Any] = []
    topology = topology_of(lambda: Punctuated(calls, (30, WALL_CLOCK_TIME), (10, WALL_CLOCK_TIME)))
    with TopologyTestDriver(topology) as driver:
        driver.advance_wall_clock_time(10)
        driver.advance_wall_clock_time(20)

    assert calls == [(1, 10), (1, 30), (0, 30)]


def test_both_clocks_may_be_used_at_once() -> None:
    calls: list[Any] = []
    topology = topology_of(lambda: Punctuated(calls, (10, STREAM_TIME), (10, WALL_CLOCK_TIME)))
    with TopologyTestDriver(topology) as driver:
        driver.create_input_topic("in").pipe_input("k", 1, 77)
        driver.advance_wall_clock_time(10)

    assert calls == [(0, 77), (1, 10)]


# -- cancelling -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", PunctuationType)
def test_a_cancelled_schedule_is_not_called_any_more(kind: PunctuationType) -> None:
    calls: list[int] = []
    made: list[Punctuated] = []

    def supplier() -> Punctuated:
        made.append(Punctuated(calls, (10, kind)))
        return made[-1]

    with TopologyTestDriver(topology_of(supplier)) as driver:
        source = driver.create_input_topic("in")
        source.pipe_input("k", 1, 20)
        driver.advance_wall_clock_time(20)
        assert calls == [20]

        made[-1].handles[0].cancel()
        made[-1].handles[0].cancel()
        source.pipe_input("k", 1, 60)
        driver.advance_wall_clock_time(60)

    assert calls == [20]


@pytest.mark.parametrize("kind", PunctuationType)
def test_a_schedule_may_be_cancelled_by_its_own_callback(kind: PunctuationType) -> None:
    class Once(Punctuated):
        def punctuate(self, number: int, timestamp: int) -> None:
            super().punctuate(number, timestamp)
            self.handles[0].cancel()

    calls: list[int] = []
    with TopologyTestDriver(topology_of(lambda: Once(calls, (10, kind)))) as driver:
        for time in (10, 20, 30):
            driver.create_input_topic("in").pipe_input("k", 1, time)
            driver.advance_wall_clock_time(10)

    assert calls == [10]


def test_a_schedule_may_be_cancelled_by_another_that_is_due_with_it() -> None:
    class CancelsOther(Punctuated):
        def punctuate(self, number: int, timestamp: int) -> None:
            super().punctuate(number, timestamp)
            self.handles[1 - number].cancel()

    calls: list[Any] = []
    topology = topology_of(lambda: CancelsOther(calls, (10, STREAM_TIME), (10, STREAM_TIME)))
    with TopologyTestDriver(topology) as driver:
        for time in (10, 20):
            driver.create_input_topic("in").pipe_input("k", 1, time)

    assert calls == [(0, 10), (0, 20)]


# -- schedules made while running -------------------------------------------------------------------------------------


class OnRecord(Punctuated):
    """Makes a schedule with every record."""

    def process(self, record: Record[Any, Any]) -> None:
        kind = STREAM_TIME if record.value == "stream" else WALL_CLOCK_TIME
        self.handles.append(self.context.schedule(10, kind, self.calls.append))


def test_a_schedule_made_by_process_is_due_at_once_by_stream_time() -> None:
    calls: list[int] = []
    with TopologyTestDriver(topology_of(lambda: OnRecord(calls))) as driver:
        driver.create_input_topic("in").pipe_input("k", "stream", 15)
        assert calls == [15]
        driver.create_input_topic("in").pipe_input("k", "clock", 22)

    assert calls == [15, 22]


def test_a_schedule_made_by_process_is_due_after_an_interval_by_the_clock() -> None:
    calls: list[int] = []
    with TopologyTestDriver(topology_of(lambda: OnRecord(calls))) as driver:
        driver.advance_wall_clock_time(7)
        driver.create_input_topic("in").pipe_input("k", "clock", 15)
        driver.advance_wall_clock_time(9)
        assert calls == []
        driver.advance_wall_clock_time(1)

    assert calls == [17]


class OneShot(Processor[Any, Any]):
    """Reports each record ten milliseconds later, by a schedule that cancels itself."""

    def process(self, record: Record[Any, Any]) -> None:
        def report(timestamp: int) -> None:
            handle.cancel()
            self.context.forward(record.with_timestamp(timestamp))

        handle = self.context.schedule(10, WALL_CLOCK_TIME, report)


def test_schedules_that_come_and_go_leave_nothing_in_the_tasks_state() -> None:
    task = task_of(topology_of(OneShot))
    sizes = []
    for number in range(20):
        task.process_lanes([lane("in", [(number, number)], first_offset=number)])
        task.advance_wall_clock(10 * (number + 1))
        sizes.append(len(task.commit()[0].state))

    assert values(task) == [str(number) for number in range(20)]
    assert len(set(sizes)) == 1


def test_a_handle_of_a_cancelled_schedule_does_not_cancel_a_later_one() -> None:
    calls: list[int] = []
    made: list[OnRecord] = []

    def supplier() -> OnRecord:
        made.append(OnRecord(calls))
        return made[-1]

    task = task_of(topology_of(supplier))
    task.process_lanes([lane("in", [(0, '"clock"')])])
    first = made[-1].handles[0]
    first.cancel()
    task.process_lanes([lane("in", [(1, '"clock"')])])
    first.cancel()

    task.advance_wall_clock(10)

    assert calls == [10]


def test_a_schedule_made_after_a_restart_is_called_though_its_like_was_cancelled_before() -> None:
    topology = topology_of(OneShot)
    task = task_of(topology)
    task.process_lanes([lane("in", [(0, 1)])])
    task.advance_wall_clock(10)
    assert values(task) == ["1"]

    again = resumed(topology, task.commit(), now=10)
    again.process_lanes([lane("in", [(1, 2)], first_offset=1)])
    again.advance_wall_clock(20)

    assert values(again) == ["2"]


# -- what a callback can do -------------------------------------------------------------------------------------------


def test_a_callback_can_use_stores_and_forward() -> None:
    class Flush(Punctuated):
        def process(self, record: Record[Any, Any]) -> None:
            self.context.state_store("waiting").put(record.key, record.value)

        def punctuate(self, number: int, timestamp: int) -> None:
            store = self.context.state_store("waiting")
            for key, value in store.all():
                self.context.forward(Record(key, value, timestamp))
                store.delete(key)

    topology = topology_of(lambda: Flush([], (60_000, WALL_CLOCK_TIME)))
    topology.add_state_store(Stores.key_value("waiting"), "step")
    with TopologyTestDriver(topology) as driver:
        driver.create_input_topic("in").pipe_key_values([("b", 2), ("a", 1)])
        driver.advance_wall_clock_time(timedelta(minutes=1))
        out = driver.create_output_topic("out")

        assert out.read_records() == [Record("a", 1, 60_000), Record("b", 2, 60_000)]
        assert driver.state_store("waiting").approximate_num_entries() == 0


def test_there_is_no_record_in_a_callback() -> None:
    seen: list[Any] = []

    class Look(Punctuated):
        def punctuate(self, number: int, timestamp: int) -> None:
            seen.append(self.context.record_metadata)
            self.context.forward(Record("k", None, timestamp))

    with TopologyTestDriver(topology_of(lambda: Look([], (10, STREAM_TIME)))) as driver:
        driver.create_input_topic("in").pipe_input("k", 1, 5, headers={"of": b"the record"})

        assert seen == [None]
        assert driver.create_output_topic("out").read_record().headers == []


def test_headers_of_one_callback_are_not_seen_by_the_next() -> None:
    class Sign(Punctuated):
        def punctuate(self, number: int, timestamp: int) -> None:
            headers = [("only", b"once")] if not self.calls else []
            self.calls.append(timestamp)
            self.context.forward(Record("k", None, timestamp, headers))

    calls: list[int] = []
    with TopologyTestDriver(topology_of(lambda: Sign(calls, (10, WALL_CLOCK_TIME)))) as driver:
        driver.advance_wall_clock_time(10)
        driver.advance_wall_clock_time(10)
        first, second = driver.create_output_topic("out").read_records()

    assert (first.headers, second.headers) == ([("only", b"once")], [])


def test_the_record_is_in_hand_again_after_a_callback() -> None:
    seen: list[Any] = []

    class Look(Punctuated):
        def process(self, record: Record[Any, Any]) -> None:
            where = self.context.record_metadata
            assert where is not None
            seen.append((where.offset, record.headers))

    task = task_of(topology_of(lambda: Look([], (1, STREAM_TIME))))
    task.process_lanes([raw_lane("in", 4, [(8, 1, b"k", b"1", [("a", b"1")]), (9, 2, b"k", b"1", None)])])

    assert seen == [(8, [("a", b"1")]), (9, [])]


def test_an_error_in_a_callback_names_the_step() -> None:
    class Fail(Punctuated):
        def punctuate(self, number: int, timestamp: int) -> None:
            raise ValueError("out of time")

    with TopologyTestDriver(topology_of(lambda: Fail([], (10, WALL_CLOCK_TIME)))) as driver:
        with pytest.raises(TaskError, match=r"^step 'step', punctuation, .*ValueError: out of time") as caught:
            driver.advance_wall_clock_time(10)
        assert isinstance(caught.value.__cause__, ValueError)


# -- mistakes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("interval", "message"),
    [
        (0, r"step 'step', schedule: expected at least 1 ms, got 0 ms"),
        (-5, r"step 'step', schedule: expected at least 1 ms, got -5 ms"),
        (timedelta(microseconds=500), r"step 'step', schedule: expected at least 1 ms, got 0 ms"),
        ("10", r"step 'step', schedule: expected a timedelta or whole milliseconds, got str \('10'\)"),
        (1.5, r"step 'step', schedule: expected a timedelta or whole milliseconds, got float \(1.5\)"),
    ],
)
def test_an_interval_that_makes_no_sense_is_refused(interval: Any, message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        TopologyTestDriver(topology_of(lambda: Punctuated([], (interval, STREAM_TIME))))


def test_a_clock_that_is_none_is_refused() -> None:
    with pytest.raises(
        TopologyError,
        match=r"^step 'step', schedule: expected PunctuationType.STREAM_TIME or PunctuationType.WALL_CLOCK_TIME, got",
    ):
        TopologyTestDriver(topology_of(lambda: Punctuated([], (10, "stream-time"))))  # type: ignore[arg-type]


def test_what_cannot_be_called_is_refused() -> None:
    class Step(Punctuated):
        def caller(self, number: int) -> Any:
            return None

    with pytest.raises(
        TopologyError, match=r"^step 'step', schedule: expected a function to call with the time, got None"
    ):
        TopologyTestDriver(topology_of(lambda: Step([], (10, STREAM_TIME))))


# -- the schedules of one clock ---------------------------------------------------------------------------------------


def test_next_due_is_precisely_the_least_due_time() -> None:
    called: list[int] = []
    schedules = Schedules()
    assert schedules.next_due == NEVER

    schedules.add(Schedule("step", 100, called.append, [50]))
    dues = [schedules.next_due]
    for now in (49, 50, 149, 150, 1051, 1052, 1150):
        schedules.punctuate(now, lambda schedule, at: schedule.callback(at))
        dues.append(schedules.next_due)

    assert called == [50, 150, 1051, 1150]
    assert dues == [50, 50, 150, 150, 250, 1150, 1150, 1250]


def test_nothing_is_due_once_all_are_cancelled() -> None:
    schedules = Schedules()
    called: list[int] = []

    def cancel(timestamp: int) -> None:
        called.append(timestamp)
        schedule.cancel()

    schedule = Schedule("step", 100, cancel, [0])
    schedules.add(schedule)

    schedules.punctuate(100, lambda due, at: due.callback(at))
    assert schedules.next_due == NEVER
    schedules.punctuate(10_000, lambda due, at: due.callback(at))
    assert called == [100]
