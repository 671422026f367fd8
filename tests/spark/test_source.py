"""What the reader hands out, and how blocks travel."""

from __future__ import annotations

import pickle

from headrace import StreamsConfig, StreamsError, Topology
from headrace.engine.application import Application
from headrace.engine.batches import Reading, batch_of, share_out
from headrace.engine.identity import first_number, last_number, spark_partition
from headrace.engine.messages import Report, Stretch, Tick, decode, failure, unpack_failure
from headrace.engine.plan import make_plan
from headrace.spark.stages import Packed
from tests.engine.planning import reading_of


def stretch(partition: int, size: int) -> Stretch:
    return Stretch("in", partition, 0, size, 7)


def sizes(shares: list[list[tuple[Stretch, list[int]]]]) -> list[int]:
    return sorted(sum(each.end - each.start for each, _ in share) for share in shares)


def test_readers_get_about_as_much_each() -> None:
    stretches = [(stretch(number, size), [number]) for number, size in enumerate((10, 90, 40, 60))]
    assert sizes(share_out(stretches, 2)) == [100, 100]


def test_no_reader_is_left_without_work() -> None:
    assert sizes(share_out([(stretch(0, 5), [1])], 4)) == [5]
    assert share_out([], 4) == []


def test_what_one_task_takes_stays_together() -> None:
    stretches = [(stretch(number, size), [task]) for number, size, task in ((0, 9, 1), (1, 1, 2), (2, 9, 1), (3, 5, 2))]
    assert sizes(share_out(stretches, 4)) == [6, 18]


def test_every_stretch_keeps_its_tasks() -> None:
    stretches = [(stretch(number, number + 1), [number, number + 10]) for number in range(7)]
    shared = [entry for share in share_out(stretches, 3) for entry in share]
    assert sorted(shared, key=lambda entry: entry[0].partition) == stretches


def test_numbers_cover_every_shuffle_partition_from_both_ends() -> None:
    first, last = ([number_of(wanted, 5) for wanted in range(5)] for number_of in (first_number, last_number))
    assert [spark_partition(number, 5) for number in first] == [0, 1, 2, 3, 4]
    assert [spark_partition(number, 5) for number in last] == [0, 1, 2, 3, 4]
    assert max(first) < 100 < 2**31 - 100 < min(last)


def test_a_used_number_is_not_given_again() -> None:
    used: set[int] = set()
    for _ in range(4):
        used.add(first_number(1, 2, used))
    assert len(used) == 4
    assert {spark_partition(number, 2) for number in used} == {1}


def test_rows_keep_their_tasks_and_blocks() -> None:
    same = Tick(3)
    report = Report("reader", {"in": 1.0}, {"in": {0: 5}})
    batch = batch_of([(4, same), (-2, report), (9, same), (1, b"as it is")])
    assert batch.column(0).to_pylist() == [4, -2, 9, 1]
    blocks = batch.column(1).to_pylist()
    assert [decode(block) for block in blocks[:3]] == [same, report, same]
    assert blocks[3] == b"as it is"


def test_an_exception_arrives_with_its_cause() -> None:
    error = StreamsError("the step broke")
    error.__cause__ = KeyError("colour")
    arrived = unpack_failure(failure(error))
    assert isinstance(arrived, StreamsError)
    assert str(arrived) == "the step broke"
    assert isinstance(arrived.__cause__, KeyError)


class Unpicklable(Exception):
    """An exception that cannot be made anew from its arguments."""

    def __init__(self, left: str, right: str) -> None:
        super().__init__(f"{left} and {right}")


def test_an_exception_that_cannot_travel_arrives_as_text() -> None:
    assert pickle.dumps(Unpicklable("a", "b"))  # it is the way back that fails
    arrived = unpack_failure(failure(Unpicklable("a", "b")))
    assert isinstance(arrived, StreamsError)
    assert str(arrived) == "Unpicklable: a and b"


def test_a_reading_has_one_broker_though_functions_are_among_its_settings() -> None:
    def token(config: str) -> tuple[str, float]:
        return "t", 0.0

    config = StreamsConfig(application_id="app", bootstrap_servers="localhost:1", kafka={"oauth_cb": token})
    arrived = Reading.loads(reading_of("localhost:1", {}, settings=pickle.dumps(config.kafka)).dumps())

    assert arrived.broker is arrived.broker


def test_so_have_the_applications_that_come_to_a_worker_run_after_run() -> None:
    def token(config: str) -> tuple[str, float]:
        return "t", 0.0

    config = StreamsConfig(application_id="app", bootstrap_servers="localhost:1", kafka={"oauth_cb": token})
    topology = Topology().add_source("source", "in")
    application = Application(topology, config, make_plan(topology, config, {"in": 1}), {0: [0]}, {}, None)

    arrived = [Packed(f"run {number % 3}", application).application() for number in range(6)]

    assert len({id(one) for one in arrived}) > 1
    assert len({id(one.broker) for one in arrived}) == 1
