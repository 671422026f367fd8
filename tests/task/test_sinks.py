"""The sinks of a task: what is put out, and with which headers and partitions."""

from typing import Any

import pytest

from headrace import StreamsBuilder, TaskError, Topology, serdes
from tests.task.tasks import lane, outputs, processing, raw_lane, task_of


def test_an_output_has_topic_key_value_timestamp_and_headers() -> None:
    task = task_of(Topology().add_source("source", "in").add_sink("sink", "out", "source"))

    task.process_lanes([raw_lane("in", 0, [(0, 5, b"a", b"1", [("h", b"x")]), (1, 6, None, None, None)])])

    assert outputs(task) == [("out", None, b"a", b"1", 5, [("h", b"x")]), ("out", None, None, None, 6, [])]
    assert outputs(task) == []


def test_a_partitioner_chooses_one_partition_or_several_or_none() -> None:
    def choose(topic: str, key: Any, value: Any, partitions: int) -> Any:
        assert (topic, key, partitions) == ("out", "k", 4)
        return value

    topology = Topology().add_source("source", "in").add_sink("sink", "out", "source", partitioner=choose)
    task = task_of(topology, partition_count=lambda topic: 4)

    task.process_lanes([lane("in", [(0, "2"), (1, "[1, 3]"), (2, "[]"), (3, None)])])

    assert [(partition, value) for _, partition, _, value, _, _ in outputs(task)] == [
        (2, b"2"),
        (1, b"[1,3]"),
        (3, b"[1,3]"),
        (None, None),
    ]


@pytest.mark.parametrize("chosen", ["4", "-1", '"x"', "[0, 9]"])
def test_a_partition_that_is_not_there_is_an_error(chosen: str) -> None:
    topology = Topology().add_source("source", "in").add_sink("sink", "out", "source", partitioner=lambda *a: a[2])
    task = task_of(topology, partition_count=lambda topic: 4)

    with pytest.raises(TaskError, match=r"step 'sink', .* the partitioner must return 0 to 3 for topic 'out', got"):
        task.process_lanes([lane("in", [(0, chosen)])])


@pytest.mark.parametrize("topic", ["out", lambda key, value, context: "out"], ids=["fixed", "chosen"])
def test_a_negative_timestamp_cannot_be_written(topic: Any) -> None:
    topology = Topology().add_source("source", "in")
    back = processing(lambda context, record: context.forward(record.with_timestamp(-1)))
    topology.add_processor("back", back, "source").add_sink("sink", topic, "back")
    task = task_of(topology)

    with pytest.raises(TaskError, match=r"^step 'sink', .* needs a timestamp of at least 0, got -1"):
        task.process_lanes([lane("in", [(0, 1)])])


def test_serdes_may_use_the_headers_of_a_record() -> None:
    def shift(value: bytes, headers: Any, sign: int) -> bytes:
        by = int(dict(headers).get("shift", b"0"))
        return bytes(byte + sign * by for byte in value)

    shifted: serdes.Serde[str] = serdes.Serde(
        lambda topic, text, headers: shift(text.encode(), headers, 1),
        lambda topic, data, headers: shift(data, headers, -1).decode(),
    )
    topology = Topology().add_source("source", "in", value_serde=shifted)
    upper = processing(lambda context, record: context.forward(record.with_value(record.value.upper())))
    topology.add_processor("upper", upper, "source").add_sink("sink", "out", "upper", value_serde=shifted)
    task = task_of(topology)

    task.process_lanes([raw_lane("in", 0, [(0, 0, b"k", b"bcd", [("shift", b"1")]), (1, 0, b"k", b"xyz", None)])])

    assert [value for _, _, _, value, _, _ in outputs(task)] == [b"BCD", b"XYZ"]


def test_a_serde_adds_headers_for_its_topic_alone() -> None:
    def write(topic: str, text: str, headers: Any) -> bytes:
        headers.append(("type", b"text"))
        return text.encode()

    typed: serdes.Serde[str] = serdes.Serde(write, lambda topic, data, headers: data.decode())
    builder = StreamsBuilder()
    stream = builder.stream("in", key_serde=serdes.String, value_serde=serdes.String)
    for topic, serde in (("plain", serdes.String), ("typed", typed), ("also-plain", serdes.String)):
        stream.to(topic, key_serde=serdes.String, value_serde=serde)
    task = task_of(builder.build())

    task.process_lanes(
        [raw_lane("in", 0, [(0, 0, b"k", b"a", None), (1, 0, b"k", b"b", [("own", b"1")]), (2, 0, b"k", b"c", None)])]
    )

    own: list[Any] = [[], [("own", b"1")], []]
    headers: dict[str, list[Any]] = {}
    for topic, *_, mine in outputs(task):
        headers.setdefault(topic, []).append(mine)
    assert headers == {"plain": own, "also-plain": own, "typed": [[*mine, ("type", b"text")] for mine in own]}


def test_what_reads_a_record_does_not_change_its_headers() -> None:
    def read(topic: str, data: bytes, headers: Any) -> str:
        headers.append(("seen", b"1"))
        return data.decode()

    seeing: serdes.Serde[str] = serdes.Serde(lambda value: value.encode(), read)
    builder = StreamsBuilder()
    builder.stream("in", key_serde=serdes.String, value_serde=seeing).to(
        "out", key_serde=serdes.String, value_serde=serdes.String
    )
    task = task_of(builder.build())

    task.process_lanes([raw_lane("in", 0, [(0, 0, b"k", b"a", None), (1, 0, b"k", b"b", [("own", b"1")])])])

    assert [headers for *_, headers in outputs(task)] == [[], [("own", b"1")]]
