"""Records that cannot be read, processed or written."""

import logging
from collections.abc import Callable
from typing import Any

import pytest

from headrace import (
    DeadLetter,
    ErrorContext,
    HandlerResponse,
    LogAndContinue,
    LogAndFail,
    Processor,
    PunctuationType,
    Record,
    SerializationError,
    Stores,
    StreamsBuilder,
    StreamsConfig,
    TaskError,
    Topology,
    serdes,
)
from headrace.testing import TopologyTestDriver
from tests.task.tasks import outputs, processing, raw_lane, task_of

HEADERS = [("from", b"test")]
PREFIX = "__streams.errors."


def halves() -> Topology:
    """Build a stream that halves even numbers and fails on others: reading, processing and writing can all fail."""

    def halve(value: int) -> Any:
        if value % 2:
            raise ValueError(f"{value} is odd")
        return value // 2 if value >= 0 else "negative"

    builder = StreamsBuilder()
    stream = builder.stream("in", key_serde=serdes.String, value_serde=serdes.Long)
    stream.map_values(halve, name="halve").to("out", value_serde=serdes.Long, name="write")
    return builder.build()


def piped(
    settings: dict[str, Any], *values: Any, topology: Topology | None = None, raw: bytes | None = None
) -> TopologyTestDriver:
    """Pipe values, and raw bytes if given, with the key "k" and a header, at times 100, 101, …"""
    driver = TopologyTestDriver(topology or halves(), settings)
    source = driver.create_input_topic("in", value_serde=serdes.Long, start_timestamp=100, auto_advance=1)
    if raw is not None:
        driver.create_input_topic("in", value_serde=serdes.Bytes).pipe_input("k", raw, 100, HEADERS)
    for value in values:
        source.pipe_input("k", value, headers=HEADERS)
    return driver


def dead_letters(driver: TopologyTestDriver) -> list[Record[Any, Any]]:
    return driver.create_output_topic("dead", key_serde=serdes.Bytes, value_serde=serdes.Bytes).read_records()


def out(driver: TopologyTestDriver) -> list[Any]:
    return driver.create_output_topic("out").read_values()


# The three phases, with a value that fails in each and what the error says.
PHASES = [
    pytest.param("deserialization_exception_handler", b"\1\2", "expected 8 bytes, got 2", id="deserialization"),
    pytest.param("processing_exception_handler", 3, "ValueError: 3 is odd", id="processing"),
    pytest.param("production_exception_handler", -2, "expected int, got str ('negative')", id="production"),
]


def run(setting: str, handler: Any, bad: Any) -> TopologyTestDriver:
    """Pipe a bad value and then a good one through a handler."""
    if isinstance(bad, bytes):
        return piped({setting: handler}, 4, raw=bad)
    return piped({setting: handler}, bad, 4)


# -- fail -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("setting", "bad", "says"), PHASES)
def test_log_and_fail_raises_and_logs(setting: str, bad: Any, says: str, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(TaskError) as caught:
        run(setting, LogAndFail, bad)

    assert says in str(caught.value)
    [logged] = caplog.records
    assert logged.levelno == logging.ERROR
    assert says.removeprefix("ValueError: ") in logged.getMessage()


@pytest.mark.parametrize(("setting", "bad", "says"), PHASES)
def test_to_fail_is_the_default(setting: str, bad: Any, says: str) -> None:
    with pytest.raises(TaskError):
        piped({}, raw=bad) if isinstance(bad, bytes) else piped({}, bad)


def test_the_message_names_step_topic_partition_offset_and_key_and_chains_the_error() -> None:
    task = task_of(halves(), StreamsConfig(application_id="app"))

    with pytest.raises(TaskError) as caught:
        task.process_lanes([raw_lane("in", 3, [(41, 0, b"some key", (7).to_bytes(8), None)])])

    assert str(caught.value) == "step 'halve', topic 'in', partition 3, offset 41, key 'some key': ValueError: 7 is odd"
    assert isinstance(caught.value.__cause__, ValueError)
    assert str(caught.value.__cause__) == "7 is odd"


def test_the_key_is_the_one_that_the_failing_step_saw() -> None:
    builder = StreamsBuilder()
    builder.stream("in").select_key(lambda key, value: "new key").filter(lambda key, value: 1 / 0, name="divide")

    with (
        TopologyTestDriver(builder.build()) as driver,
        pytest.raises(TaskError, match=r"^step 'divide', .* key 'new key': ZeroDivisionError: division by zero"),
    ):
        driver.create_input_topic("in").pipe_input("old key", 1)


def test_bytes_that_cannot_be_read_are_named_with_the_source() -> None:
    with pytest.raises(
        TaskError,
        match=r"^step 'KSTREAM-SOURCE-0000000000', topic 'in', partition 0, offset 0, key b'k': serdes.Long on topic",
    ) as caught:
        piped({}, raw=b"\1\2")
    assert isinstance(caught.value.__cause__, SerializationError)


def test_a_value_that_cannot_be_written_is_named_with_the_sink() -> None:
    with pytest.raises(
        TaskError,
        match=r"^step 'write', topic 'in', partition 0, offset 0, key 'k': serdes.Long on topic 'out': expected int",
    ):
        piped({}, -2)


def test_an_error_in_nested_steps_is_reported_once_at_the_innermost() -> None:
    asked: list[str] = []

    def count(context: ErrorContext, error: Exception) -> HandlerResponse:
        asked.append(context.step)
        return HandlerResponse.FAIL

    builder = StreamsBuilder()
    passing = builder.stream("in").process(processing(lambda context, record: context.forward(record)), name="outer")
    inner = passing.map_values(lambda value: value, name="middle")
    inner.process(processing(lambda context, record: [][1]), name="inner")

    with (
        TopologyTestDriver(builder.build(), {"processing_exception_handler": count}) as driver,
        pytest.raises(TaskError, match=r"^step 'inner', .*IndexError: list index out of range$"),
    ):
        driver.create_input_topic("in").pipe_input("k", 1)
    assert asked == ["inner"]


# -- continue ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("setting", "bad", "says"), PHASES)
def test_log_and_continue_drops_the_record_and_logs(
    setting: str, bad: Any, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    driver = run(setting, LogAndContinue, bad)

    assert out(driver) == [2]
    [logged] = caplog.records
    assert logged.levelno == logging.WARNING
    assert "topic 'in', partition 0, offset 0" in logged.getMessage()
    assert says.removeprefix("ValueError: ") in logged.getMessage()


@pytest.mark.parametrize(("setting", "bad", "says"), PHASES)
def test_a_function_may_decide(setting: str, bad: Any, says: str) -> None:
    contexts: list[tuple[ErrorContext, Exception]] = []

    def decide(context: ErrorContext, error: Exception) -> HandlerResponse:
        contexts.append((context, error))
        return HandlerResponse.CONTINUE

    driver = run(setting, decide, bad)

    assert out(driver) == [2]
    [(context, error)] = contexts
    assert context.phase == setting.removesuffix("_exception_handler")
    assert (context.topic, context.partition, context.offset, context.task_id) == ("in", 0, 0, "0_0")
    assert (context.timestamp, context.headers) == (100, HEADERS)
    assert context.raw_key == b"k"
    assert context.raw_value == (bad if isinstance(bad, bytes) else bad.to_bytes(8, signed=True))
    assert says.removeprefix("ValueError: ") in str(error)


def test_the_context_has_key_and_value_as_the_step_saw_them() -> None:
    seen: dict[str, tuple[str, Any, Any]] = {}

    def look(context: ErrorContext, error: Exception) -> HandlerResponse:
        seen[context.phase] = (context.step, context.key, context.value)
        return HandlerResponse.CONTINUE

    handlers = [f"{phase}_exception_handler" for phase in ("deserialization", "processing", "production")]
    piped(dict.fromkeys(handlers, look), 3, -2, raw=b"\1\2")

    assert seen == {
        "deserialization": ("KSTREAM-SOURCE-0000000000", b"k", b"\1\2"),
        "processing": ("halve", "k", 3),
        "production": ("write", "k", "negative"),
    }


def test_a_function_may_decide_record_by_record() -> None:
    def decide(context: ErrorContext, error: Exception) -> HandlerResponse:
        return HandlerResponse.FAIL if context.value == 7 else HandlerResponse.CONTINUE

    settings = {"processing_exception_handler": decide}

    assert out(piped(settings, 3, 4, 5)) == [2]
    with pytest.raises(TaskError, match=r"7 is odd"):
        piped(settings, 3, 7)


def test_only_the_branch_that_fails_is_cut_off() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in")
    stream.map_values(lambda value: 1 // value).to("fragile")
    stream.to("robust")

    with TopologyTestDriver(builder.build(), {"processing_exception_handler": LogAndContinue}) as driver:
        driver.create_input_topic("in").pipe_values([0, 1])

        assert driver.create_output_topic("fragile").read_values() == [1]
        assert driver.create_output_topic("robust").read_values() == [0, 1]


def test_dropped_records_are_counted() -> None:
    config = StreamsConfig(application_id="app", processing_exception_handler=LogAndContinue)
    task = task_of(halves(), config)

    task.process_lanes([raw_lane("in", 0, [(offset, 0, b"k", offset.to_bytes(8), None) for offset in range(5)])])

    assert task.dropped_records == 2
    assert len(outputs(task)) == 3


def test_a_batch_goes_on_after_a_record_that_cannot_be_read() -> None:
    config = StreamsConfig(application_id="app", deserialization_exception_handler=LogAndContinue)
    task = task_of(halves(), config)
    records = [(0, 5, b"k", b"x", None), (1, 6, b"k", bytes(8), None), (2, 7, b"k", b"x", None)]

    task.process_lanes([raw_lane("in", partition, records) for partition in (0, 1)])

    assert task.dropped_records == 4
    assert len(outputs(task)) == 2


# -- what a failing record leaves behind ------------------------------------------------------------------------------


def test_an_aggregator_that_fails_halfway_does_not_spoil_the_aggregate() -> None:
    def collect(key: str, value: Any, aggregate: list[Any]) -> list[Any]:
        aggregate.append(value)
        if value == "bad":
            raise ValueError("bad value")
        return aggregate

    builder = StreamsBuilder()
    builder.stream("in").group_by_key().aggregate(list, collect, store="lists").to_stream().to("out")

    with TopologyTestDriver(builder.build(), {"processing_exception_handler": LogAndContinue}) as driver:
        driver.create_input_topic("in").pipe_key_values([("k", "a"), ("k", "bad"), ("k", "b")])

        assert out(driver) == [["a"], ["a", "b"]]
        assert driver.state_store("lists").get("k") == ["a", "b"]


def test_a_store_keeps_what_a_processor_put_before_it_failed() -> None:
    def put_and_fail(context: Any, record: Record[Any, Any]) -> None:
        context.state_store("seen").put(record.key, record.value)
        context.forward(record)
        raise ValueError("too late")

    topology = Topology().add_source("source", "in").add_processor("step", processing(put_and_fail), "source")
    topology.add_state_store(Stores.key_value("seen"), "step").add_sink("sink", "out", "step")

    with TopologyTestDriver(topology, {"processing_exception_handler": LogAndContinue}) as driver:
        driver.create_input_topic("in").pipe_key_values([("a", 1), ("b", 2)])

        assert list(driver.state_store("seen").all()) == [("a", 1), ("b", 2)]
        assert out(driver) == [1, 2]


def test_a_value_of_the_wrong_type_leaves_the_store_as_it_was() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key()
    grouped.reduce(lambda aggregate, value: value, store="latest").to_stream().to("out")
    config = {"processing_exception_handler": LogAndContinue, "default_value_serde": serdes.Long}

    with TopologyTestDriver(builder.build(), config) as driver:
        driver.create_input_topic("in").pipe_input("k", 1)
        with pytest.raises(SerializationError):
            driver.state_store("latest").put("k", "text")

        assert driver.state_store("latest").get("k") == 1


# -- dead letters -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("setting", "bad", "says"), PHASES)
def test_a_dead_letter_is_the_source_record_with_the_error_in_its_headers(
    setting: str, bad: Any, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    driver = run(setting, DeadLetter("dead"), bad)

    assert out(driver) == [2]
    [letter] = dead_letters(driver)
    assert letter.key == b"k"
    assert letter.value == (bad if isinstance(bad, bytes) else bad.to_bytes(8, signed=True))
    assert letter.timestamp == 100
    assert letter.headers[0] == ("from", b"test")
    said = {name.removeprefix(PREFIX): data.decode() for name, data in letter.headers[1:]}
    assert list(said) == ["exception", "message", "stacktrace", "topic", "partition", "offset"]
    assert says.removeprefix("ValueError: ") in said["message"]
    assert (said["topic"], said["partition"], said["offset"]) == ("in", "0", "0")
    assert "record goes to 'dead'" in caplog.text


def test_the_headers_name_the_exceptions_class_and_where_it_was_raised() -> None:
    [letter] = dead_letters(piped({"processing_exception_handler": DeadLetter("dead")}, 3))
    headers = dict(letter.headers)

    assert headers[f"{PREFIX}exception"] == b"builtins.ValueError"
    assert headers[f"{PREFIX}message"] == b"3 is odd"
    assert b"in halve\n" in headers[f"{PREFIX}stacktrace"]
    assert headers[f"{PREFIX}stacktrace"].endswith(b"ValueError: 3 is odd\n")


def test_the_offset_is_that_of_the_failing_record() -> None:
    letters = dead_letters(piped({"processing_exception_handler": DeadLetter("dead")}, 2, 3, 4, 5))

    assert [dict(letter.headers)[f"{PREFIX}offset"] for letter in letters] == [b"1", b"3"]
    assert [letter.timestamp for letter in letters] == [101, 103]


def test_a_message_is_utf_8() -> None:
    def fail(value: Any) -> None:
        raise ValueError("größer als 5 €")

    builder = StreamsBuilder()
    builder.stream("in", value_serde=serdes.Long).map_values(fail)

    [letter] = dead_letters(piped({"processing_exception_handler": DeadLetter("dead")}, 1, topology=builder.build()))

    assert dict(letter.headers)[f"{PREFIX}message"] == "größer als 5 €".encode()


def test_a_record_changed_on_its_way_is_a_dead_letter_as_it_was_read() -> None:
    builder = StreamsBuilder()
    changed = builder.stream("in", value_serde=serdes.Long).map(lambda key, value: ("other", value + 1))
    changed.process(
        processing(lambda context, record: context.forward(record.with_timestamp(7).with_headers([("new", b"")])))
    ).filter(lambda key, value: 1 / 0)

    [letter] = dead_letters(piped({"processing_exception_handler": DeadLetter("dead")}, 1, topology=builder.build()))

    assert (letter.key, letter.value) == (b"k", (1).to_bytes(8))


def test_null_keys_and_values_are_dead_letters_too() -> None:
    builder = StreamsBuilder()
    builder.stream("in").map_values(len)

    with TopologyTestDriver(builder.build(), {"processing_exception_handler": DeadLetter("dead")}) as driver:
        driver.create_input_topic("in").pipe_input(None, None, 5)

        [letter] = dead_letters(driver)
    assert (letter.key, letter.value, letter.timestamp) == (None, None, 5)


def test_a_function_may_choose_the_topic_of_a_dead_letter() -> None:
    def choose(context: ErrorContext, error: Exception) -> DeadLetter:
        return DeadLetter(f"dead-{context.phase}")

    driver = piped({"processing_exception_handler": choose, "production_exception_handler": choose}, 3, -2)

    assert driver.produced_topic_names() == {"dead-processing", "dead-production"}


def test_a_record_that_fails_in_two_branches_makes_two_letters() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("in")
    stream.map_values(lambda value: 1 // 0, name="one")
    stream.map_values(lambda value: 1 // 0, name="two")
    config = StreamsConfig(application_id="app", processing_exception_handler=DeadLetter("dead"))
    task = task_of(builder.build(), config)

    task.process_lanes([raw_lane("in", 0, [(0, 0, b"k", b"1", None)])])

    assert len(outputs(task)) == 2
    assert task.dropped_records == 2


def test_a_negative_timestamp_cannot_keep_a_record_from_being_a_dead_letter() -> None:
    config = {"deserialization_exception_handler": DeadLetter("dead")}
    with TopologyTestDriver(halves(), config) as driver:
        driver.create_input_topic("in", value_serde=serdes.Bytes).pipe_input("k", b"x", -1)

        [letter] = dead_letters(driver)
    assert letter.timestamp == 0


# -- punctuations -----------------------------------------------------------------------------------------------------


class Tick(Processor[Any, Any]):
    """Fails at every second call of the wall clock."""

    def init(self, context: Any) -> None:
        super().init(context)
        self.calls = 0
        context.schedule(10, PunctuationType.WALL_CLOCK_TIME, self.tick)

    def process(self, record: Record[Any, Any]) -> None:
        pass

    def tick(self, timestamp: int) -> None:
        self.calls += 1
        if self.calls % 2 == 0:
            raise ValueError("second tick")
        self.context.forward(Record("tick", timestamp, timestamp))


def ticking(handler: Any) -> TopologyTestDriver:
    topology = Topology().add_source("source", "in").add_processor("step", Tick, "source")
    return TopologyTestDriver(topology.add_sink("sink", "out", "step"), {"processing_exception_handler": handler})


def test_a_failing_punctuation_fails_the_task() -> None:
    driver = ticking(LogAndFail)
    driver.advance_wall_clock_time(10)

    with pytest.raises(TaskError, match=r"^step 'step', punctuation, key None: ValueError: second tick$"):
        driver.advance_wall_clock_time(10)


def test_a_failing_punctuation_may_be_passed_over() -> None:
    contexts: list[ErrorContext] = []

    def decide(context: ErrorContext, error: Exception) -> HandlerResponse:
        contexts.append(context)
        return HandlerResponse.CONTINUE

    driver = ticking(decide)
    for _ in range(4):
        driver.advance_wall_clock_time(10)

    assert out(driver) == [10, 30]
    assert [(context.phase, context.topic, context.timestamp) for context in contexts] == [
        ("processing", None, 20),
        ("processing", None, 40),
    ]
    assert (contexts[0].raw_key, contexts[0].raw_value, contexts[0].offset) == (None, None, -1)


def test_a_failing_punctuation_makes_a_dead_letter_without_a_record() -> None:
    driver = ticking(DeadLetter("dead"))
    driver.advance_wall_clock_time(10)
    driver.advance_wall_clock_time(10)

    [letter] = dead_letters(driver)
    assert (letter.key, letter.value, letter.timestamp) == (None, None, 20)
    assert dict(letter.headers)[f"{PREFIX}message"] == b"second tick"
    assert dict(letter.headers)[f"{PREFIX}topic"] == b""


def test_a_step_that_fails_on_what_a_punctuation_forwards_is_reported_at_that_step() -> None:
    topology = Topology().add_source("source", "in").add_processor("step", Tick, "source")
    topology.add_processor("below", processing(lambda context, record: [][1]), "step")

    with (
        TopologyTestDriver(topology) as driver,
        pytest.raises(TaskError, match=r"^step 'below', punctuation, key 'tick': IndexError"),
    ):
        driver.advance_wall_clock_time(10)


# -- handlers that fail themselves ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("setting", "bad", "says"), PHASES)
def test_a_handler_that_fails_is_reported_with_both_errors(setting: str, bad: Any, says: str) -> None:
    def broken(context: ErrorContext, error: Exception) -> HandlerResponse:
        raise RuntimeError("handler is broken")

    phase = setting.removesuffix("_handler").replace("_", " ")
    with pytest.raises(TaskError, match=rf"offset 0, .* the {phase} handler failed: handler is broken") as caught:
        run(setting, broken, bad)
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert caught.value.__cause__.__context__ is not None


@pytest.mark.parametrize("nonsense", [None, True, "continue", HandlerResponse])
@pytest.mark.parametrize(("setting", "bad", "says"), PHASES)
def test_a_handler_that_answers_nonsense_is_reported(setting: str, bad: Any, says: str, nonsense: Any) -> None:
    handler: Callable[..., Any] = lambda context, error: nonsense  # noqa: E731

    with pytest.raises(
        TaskError,
        match=r"handler must return HandlerResponse.FAIL, HandlerResponse.CONTINUE or a DeadLetter, got ",
    ) as caught:
        run(setting, handler, bad)
    assert caught.value.__cause__ is not None


def test_a_handler_with_the_wrong_arguments_is_reported() -> None:
    with pytest.raises(TaskError, match=r"the processing exception handler failed: .*takes 0 positional arguments"):
        piped({"processing_exception_handler": lambda: HandlerResponse.CONTINUE}, 3)
