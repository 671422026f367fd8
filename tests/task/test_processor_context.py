"""The Processor API: what a processor can do, and how it is made (`processors`), started and closed (`binding`)."""

from collections.abc import Callable
from typing import Any

import pytest

from headrace import (
    FixedKeyProcessor,
    InvalidStateStoreError,
    Processor,
    Record,
    RecordMetadata,
    Stores,
    StreamsBuilder,
    StreamsError,
    TaskError,
    Topology,
    TopologyError,
    ValueAndTimestamp,
    Window,
    Windowed,
    serdes,
)
from headrace.testing import TopologyTestDriver
from tests.task.tasks import lane, outputs, processing, task_of


def one_step(supplier: Callable[[], Any], *sinks: str) -> Topology:
    """Build source → step → sinks; a sink has the name of its topic."""
    topology = Topology().add_source("source", "in").add_processor("step", supplier, "source")
    for sink in sinks or ("out",):
        topology.add_sink(sink, sink, "step")
    return topology


def piped(topology: Topology | StreamsBuilder, *records: tuple[Any, ...], **topics: Any) -> list[Record[Any, Any]]:
    """Pipe records into "in" and return what comes out of "out"."""
    built = topology.build() if isinstance(topology, StreamsBuilder) else topology
    with TopologyTestDriver(built) as driver:
        source = driver.create_input_topic("in")
        for record in records:
            source.pipe_input(*record)
        return driver.create_output_topic("out", **topics).read_records()


# -- forwarding -------------------------------------------------------------------------------------------------------


def test_a_record_is_forwarded_to_all_children_in_the_order_they_were_added() -> None:
    order: list[str] = []

    def note(name: str) -> Callable[[], Processor[Any, Any]]:
        return processing(lambda context, record: order.append(f"{name} {record.value}"))

    topology = Topology().add_source("source", "in")
    topology.add_processor("step", processing(lambda context, record: context.forward(record)), "source")
    topology.add_processor("second", note("second"), "step").add_processor("first", note("first"), "step")

    with TopologyTestDriver(topology) as driver:
        driver.create_input_topic("in").pipe_values([1, 2])

    assert order == ["second 1", "first 1", "second 2", "first 2"]


def test_a_child_is_done_before_forward_returns() -> None:
    order: list[str] = []

    def above(context: Any, record: Record[Any, Any]) -> None:
        context.forward(record.with_value("x"))
        order.append("forwarded x")
        context.forward(record.with_value("y"))
        order.append("forwarded y")

    topology = Topology().add_source("source", "in").add_processor("above", processing(above), "source")
    topology.add_processor("below", processing(lambda context, record: order.append(record.value)), "above")

    with TopologyTestDriver(topology) as driver:
        driver.create_input_topic("in").pipe_input("k", 1)

    assert order == ["x", "forwarded x", "y", "forwarded y"]


def test_a_record_is_forwarded_to_the_named_child_only() -> None:
    def route(context: Any, record: Record[Any, Any]) -> None:
        context.forward(record, "even" if record.value % 2 == 0 else "odd")

    with TopologyTestDriver(one_step(processing(route), "even", "odd")) as driver:
        driver.create_input_topic("in").pipe_values([1, 2, 3])

        assert driver.create_output_topic("even").read_values() == [2]
        assert driver.create_output_topic("odd").read_values() == [1, 3]


def test_an_unknown_child_is_an_error_that_names_the_known_ones() -> None:
    topology = one_step(processing(lambda context, record: context.forward(record, "nobody")), "one", "two")

    with pytest.raises(TaskError, match=r"^step 'step', .* has no child 'nobody' \(children: one, two\)"):
        piped(topology, ("k", 1))


def test_only_records_are_forwarded() -> None:
    topology = one_step(processing(lambda context, record: context.forward((record.key, 1))))

    with pytest.raises(TaskError, match=r"^step 'step', .* forward: expected a Record, got tuple \(\('k', 1\)\)"):
        piped(topology, ("k", 1))


def test_a_step_without_children_may_forward_to_nobody() -> None:
    topology = Topology().add_source("source", "in")
    topology.add_processor("step", processing(lambda context, record: context.forward(record)), "source")

    with TopologyTestDriver(topology) as driver:
        driver.create_input_topic("in").pipe_input("k", 1)


def test_any_number_of_records_may_be_forwarded_with_any_key_value_and_timestamp() -> None:
    def repeat(context: Any, record: Record[Any, Any]) -> None:
        for number in range(record.value):
            context.forward(Record(f"{record.key}{number}", number, record.timestamp + number))

    out = piped(one_step(processing(repeat)), ("a", 0, 5), ("b", 2, 7))

    assert out == [Record("b0", 0, 7), Record("b1", 1, 8)]


def test_a_step_may_have_several_parents() -> None:
    topology = Topology().add_source("one", "in1").add_source("two", "in2")
    topology.add_processor("step", processing(lambda context, record: context.forward(record)), "one", "two")
    topology.add_sink("out", "out", "step", "one")

    with TopologyTestDriver(topology) as driver:
        driver.create_input_topic("in1").pipe_input("a", 1)
        driver.create_input_topic("in2").pipe_input("b", 2)

        assert driver.create_output_topic("out").read_key_values() == [("a", 1), ("a", 1), ("b", 2)]


def test_null_keys_and_values_are_handed_over_as_they_are() -> None:
    out = piped(one_step(processing(lambda context, record: context.forward(record))), (None, None, 5))

    assert out == [Record(None, None, 5)]


# -- headers ----------------------------------------------------------------------------------------------------------


def test_a_processor_sees_and_changes_headers() -> None:
    def sign(context: Any, record: Record[Any, Any]) -> None:
        context.forward(record.with_headers([*record.headers, ("by", b"step")]))

    [out] = piped(one_step(processing(sign)), ("k", 1, 0, [("from", b"test")]))

    assert out.headers == [("from", b"test"), ("by", b"step")]


def test_headers_changed_in_place_go_on_too() -> None:
    def sign(context: Any, record: Record[Any, Any]) -> None:
        record.headers.append(("by", b"step"))
        context.forward(record)

    [out] = piped(one_step(processing(sign)), ("k", 1, 0, [("from", b"test")]))

    assert out.headers == [("from", b"test"), ("by", b"step")]


def test_headers_changed_after_the_forward_do_not_change_what_was_forwarded() -> None:
    def sign_twice(context: Any, record: Record[Any, Any]) -> None:
        context.forward(record)
        record.headers.append(("late", b""))
        context.forward(record)

    first, second = piped(one_step(processing(sign_twice)), ("k", 1))

    assert first.headers == []
    assert second.headers == [("late", b"")]


def test_headers_that_one_child_changes_are_not_seen_by_its_siblings() -> None:
    seen: list[Any] = []

    def spoil(context: Any, record: Record[Any, Any]) -> None:
        record.headers.append(("spoiled", b""))
        context.forward(record)

    topology = Topology().add_source("source", "in").add_processor("first", processing(spoil), "source")
    topology.add_processor("second", processing(lambda context, record: seen.append(record.headers)), "source")

    with TopologyTestDriver(topology) as driver:
        driver.create_input_topic("in").pipe_input("k", 1, headers={"a": b"1"})

    assert seen == [[("a", b"1")]]


def test_headers_stay_with_the_record_through_steps_of_the_dsl() -> None:
    builder = StreamsBuilder()
    signed = builder.stream("in").process(
        processing(lambda context, record: context.forward(record.with_headers([("by", b"step")])))
    )
    signed.map_values(lambda value: value + 1).to("out")

    [out] = piped(builder, ("k", 1))

    assert out == Record("k", 2, 0, [("by", b"step")])


# -- what it can know -------------------------------------------------------------------------------------------------


def test_record_metadata_says_where_the_record_came_from() -> None:
    seen: list[RecordMetadata] = []
    task = task_of(one_step(processing(lambda context, record: seen.append(context.record_metadata))))

    task.process_lanes([lane("in", [(0, 1), (1, 2)], partition=3, first_offset=41)])

    assert seen == [RecordMetadata("in", 3, 41), RecordMetadata("in", 3, 42)]
    assert seen[0].topic == "in"


def test_there_is_no_record_metadata_without_a_record() -> None:
    seen: list[Any] = []

    class Step(Processor[Any, Any]):
        def init(self, context: Any) -> None:
            self.context = context
            seen.append(context.record_metadata)

        def process(self, record: Record[Any, Any]) -> None:
            pass

        def close(self) -> None:
            seen.append(self.context.record_metadata)

    with TopologyTestDriver(one_step(Step)):
        pass

    assert seen == [None, None]


def test_the_application_the_task_and_both_clocks_are_known() -> None:
    seen: list[Any] = []

    class Step(Processor[Any, Any]):
        def init(self, context: Any) -> None:
            super().init(context)
            self.note()

        def process(self, record: Record[Any, Any]) -> None:
            self.note()

        def note(self) -> None:
            context = self.context
            seen.append((context.current_stream_time(), context.current_system_time()))
            assert (context.application_id, context.task_id) == ("shop", "0_0")

    with TopologyTestDriver(one_step(Step), {"application_id": "shop"}, initial_wall_clock=1000) as driver:
        source = driver.create_input_topic("in")
        source.pipe_input("k", 1, timestamp=50)
        driver.advance_wall_clock_time(5)
        source.pipe_input("k", 1, timestamp=40)

    assert seen == [(-1, 1000), (50, 1000), (50, 1005)]


# -- stores -----------------------------------------------------------------------------------------------------------


def test_a_store_is_shared_by_the_processors_it_is_connected_to() -> None:
    def remember(context: Any, record: Record[Any, Any]) -> None:
        context.state_store("seen").put(record.key, record.value)

    def recall(context: Any, record: Record[Any, Any]) -> None:
        context.forward(record.with_value(context.state_store("seen").get(record.value)))

    topology = Topology().add_source("values", "in").add_source("questions", "questions")
    topology.add_processor("remember", processing(remember), "values")
    topology.add_processor("recall", processing(recall), "questions")
    topology.add_state_store(Stores.key_value("seen"), "remember", "recall").add_sink("out", "out", "recall")

    with TopologyTestDriver(topology) as driver:
        driver.create_input_topic("in").pipe_key_values([("a", 1), ("b", 2)])
        driver.create_input_topic("questions").pipe_key_values([("x", "b"), ("y", "c")])

        assert driver.create_output_topic("out").read_key_values() == [("x", 2), ("y", None)]


def test_a_store_must_be_connected_to_be_used() -> None:
    topology = one_step(processing(lambda context, record: context.state_store("seen")))
    topology.add_processor("other", processing(lambda context, record: None), "source")
    topology.add_state_store(Stores.key_value("seen"), "other").add_state_store(Stores.key_value("mine"), "step")

    with pytest.raises(
        TaskError,
        match=r"step 'step' is not connected to store 'seen' \(connected: mine\)\. "
        r"Connect it with add_state_store\(builder, 'step'\) or process\(supplier, 'seen'\)",
    ):
        piped(topology, ("k", 1))


def test_a_store_that_is_missing_is_reported_when_the_processor_starts() -> None:
    class Step(Processor[Any, Any]):
        def init(self, context: Any) -> None:
            context.state_store("missing")

    with pytest.raises(TopologyError, match=r"^step 'step' is not connected to store 'missing' \(connected: none\)"):
        TopologyTestDriver(one_step(Step))


def test_a_timestamped_store_gives_values_with_timestamps_to_a_processor() -> None:
    def latest(context: Any, record: Record[Any, Any]) -> None:
        store = context.state_store("latest")
        before = store.get(record.key)
        store.put(record.key, ValueAndTimestamp(record.value, record.timestamp))
        context.forward(record.with_value(None if before is None else [before.value, before.timestamp]))

    topology = one_step(processing(latest))
    topology.add_state_store(Stores.key_value("latest", timestamped=True), "step")

    with TopologyTestDriver(topology) as driver:
        driver.create_input_topic("in").pipe_input("k", 1, 10)
        driver.create_input_topic("in").pipe_input("k", 2, 20)

        assert driver.create_output_topic("out").read_values() == [None, [1, 10]]
        assert driver.state_store("latest").get("k") == 2


def test_every_kind_of_store_can_be_used() -> None:
    def put_all(context: Any, record: Record[Any, Any]) -> None:
        context.state_store("kv").put(record.key, 1)
        context.state_store("window").put(record.key, 2, record.timestamp)
        context.state_store("session").put(Windowed(record.key, Window(0, record.timestamp)), 3)
        context.state_store("versioned").put(record.key, 4, record.timestamp)

    topology = one_step(processing(put_all))
    topology.add_state_store(Stores.key_value("kv"), "step")
    topology.add_state_store(Stores.window("window", retention=100, window_size=10), "step")
    topology.add_state_store(Stores.session("session", retention=100), "step")
    topology.add_state_store(Stores.versioned("versioned", history_retention=100), "step")

    with TopologyTestDriver(topology) as driver:
        driver.create_input_topic("in").pipe_input("k", 0, 5)

        assert driver.state_store("kv").get("k") == 1
        assert driver.state_store("window").fetch("k", 5) == 2
        assert driver.state_store("session").fetch_session("k", 0, 5) == 3
        assert driver.state_store("versioned").get("k").value == 4


def test_the_store_of_a_table_can_be_used_by_naming_it() -> None:
    def compare(context: Any, record: Record[Any, Any]) -> None:
        count = context.state_store("counts").get(record.key)
        context.forward(record.with_value(None if count is None else [count.value, count.timestamp]))

    builder = StreamsBuilder()
    stream = builder.stream("in")
    stream.group_by_key().count(store="counts")
    stream.process(processing(compare), "counts").to("out")

    out = piped(builder, ("a", "x", 3), ("b", "x", 5), ("a", "x", 7))

    assert [record.value for record in out] == [[1, 3], [1, 5], [2, 7]]


def test_a_supplier_may_bring_its_stores_along() -> None:
    def keep(context: Any, record: Record[Any, Any]) -> None:
        store = context.state_store("brought")
        store.put(record.key, (store.get(record.key) or 0) + record.value)
        context.forward(record.with_value(store.get(record.key)))

    class Supplier:
        def stores(self) -> list[Any]:
            return [Stores.key_value("brought", serdes.String, serdes.Long)]

        def __call__(self) -> Processor[Any, Any]:
            return processing(keep)()

    builder = StreamsBuilder()
    builder.stream("in").process(Supplier()).to("out")

    for topology in (one_step(Supplier()), builder.build()):
        assert [record.value for record in piped(topology, ("k", 1), ("k", 2))] == [1, 3]


def global_lookup(process: Callable[[Any, Record[Any, Any]], None], *stores: str) -> Topology:
    builder = StreamsBuilder()
    builder.global_table("names-topic", store="names")
    builder.stream("in").process(processing(process), *stores).to("out")
    return builder.build()


@pytest.mark.parametrize("named", [(), ("names",)])
def test_a_global_store_is_readable_whether_or_not_it_is_named(named: tuple[str, ...]) -> None:
    def look_up(context: Any, record: Record[Any, Any]) -> None:
        names = context.state_store("names")
        found = names.get(record.value)
        context.forward(record.with_value([None if found is None else found.value, len(list(names.all()))]))

    with TopologyTestDriver(global_lookup(look_up, *named)) as driver:
        driver.create_input_topic("names-topic").pipe_key_values([("1", "one"), ("2", "two")])
        driver.create_input_topic("in").pipe_key_values([("x", "2"), ("y", "3")])

        assert driver.create_output_topic("out").read_values() == [["two", 2], [None, 2]]


@pytest.mark.parametrize(
    "write",
    [
        lambda store: store.put("1", ValueAndTimestamp("x", 0)),
        lambda store: store.delete("1"),
        lambda store: store.put_if_absent("1", ValueAndTimestamp("x", 0)),
        lambda store: store.put_all([]),
    ],
)
def test_a_global_store_cannot_be_written_by_a_processor(write: Callable[[Any], None]) -> None:
    topology = global_lookup(lambda context, record: write(context.state_store("names")))

    with pytest.raises(TaskError, match=r"store 'names' is global: a processor can only read it") as caught:
        piped(topology, ("k", 1))
    assert isinstance(caught.value.__cause__, InvalidStateStoreError)


# -- processors that keep the key -------------------------------------------------------------------------------------


def test_a_fixed_key_processor_changes_values_and_timestamps() -> None:
    class Double(FixedKeyProcessor[Any, Any]):
        def process(self, record: Record[Any, Any]) -> None:
            self.context.forward(record.with_value(record.value * 2).with_timestamp(9))

    builder = StreamsBuilder()
    builder.stream("in").process_values(Double).to("out")

    assert piped(builder, ("a", 1), (None, 2)) == [Record("a", 2, 9), Record(None, 4, 9)]


def test_a_fixed_key_processor_cannot_change_the_key() -> None:
    class Rekey(FixedKeyProcessor[Any, Any]):
        def process(self, record: Record[Any, Any]) -> None:
            self.context.forward(record.with_key("other"))

    builder = StreamsBuilder()
    builder.stream("in").process_values(Rekey, name="rekey").to("out")

    with pytest.raises(
        TaskError,
        match=r"^step 'rekey', .* forward: a FixedKeyProcessor keeps the key 'a', got 'other'\. Use process\(\)",
    ):
        piped(builder, ("a", 1))


# -- from start to end ------------------------------------------------------------------------------------------------


def test_processors_are_started_parents_first_and_closed_in_the_same_order() -> None:
    events: list[str] = []

    def recording(name: str) -> Callable[[], Processor[Any, Any]]:
        class Recording(Processor[Any, Any]):
            def init(self, context: Any) -> None:
                super().init(context)
                events.append(f"init {name}")

            def process(self, record: Record[Any, Any]) -> None:
                events.append(f"process {name}")
                self.context.forward(record)

            def close(self) -> None:
                events.append(f"close {name}")

        return Recording

    topology = Topology().add_source("source", "in")
    topology.add_processor("above", recording("above"), "source").add_processor("below", recording("below"), "above")

    with TopologyTestDriver(topology) as driver:
        driver.create_input_topic("in").pipe_input("k", 1)
        driver.close()

    assert events == ["init above", "init below", "process above", "process below", "close above", "close below"]


def test_init_may_forward() -> None:
    class Step(Processor[Any, Any]):
        def init(self, context: Any) -> None:
            context.forward(Record("started", None, 0))

        def process(self, record: Record[Any, Any]) -> None:
            pass

    task = task_of(one_step(Step))

    assert [key for _, _, key, _, _, _ in outputs(task)] == [b"started"]


def test_a_processor_need_not_be_a_subclass() -> None:
    class Anything:
        def process(self, record: Record[Any, Any]) -> None:
            seen.append(record.value)

    seen: list[Any] = []
    with TopologyTestDriver(one_step(Anything)) as driver:
        driver.create_input_topic("in").pipe_input("k", 1)

    assert seen == [1]


def test_a_processor_without_a_process_of_its_own_says_so() -> None:
    class Forgetful(Processor[Any, Any]):
        pass

    with pytest.raises(TaskError, match=r"NotImplementedError: Forgetful must override process\(record\)"):
        piped(one_step(Forgetful), ("k", 1))


def test_a_processor_that_fails_to_start_is_named() -> None:
    class Step(Processor[Any, Any]):
        def init(self, context: Any) -> None:
            raise ValueError("no connection")

    with pytest.raises(TaskError, match=r"^step 'step' failed to start: ValueError: no connection") as caught:
        TopologyTestDriver(one_step(Step))
    assert isinstance(caught.value.__cause__, ValueError)


def test_all_processors_are_closed_though_one_fails_to() -> None:
    closed: list[str] = []

    def closing(name: str) -> Callable[[], Processor[Any, Any]]:
        class Closing(Processor[Any, Any]):
            def close(self) -> None:
                closed.append(name)
                if name == "first":
                    raise ValueError("stuck")

        return Closing

    topology = Topology().add_source("one", "in1").add_source("two", "in2")
    topology.add_processor("first", closing("first"), "one").add_processor("second", closing("second"), "first")
    topology.add_processor("third", closing("third"), "two")
    driver = TopologyTestDriver(topology)

    with pytest.raises(TaskError, match=r"^step 'first' failed to close: ValueError: stuck"):
        driver.close()
    assert closed == ["first", "second", "third"]
    driver.close()
    assert closed == ["first", "second", "third"]


# -- suppliers --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("made", [None, 5, "processor", Processor])
def test_a_supplier_must_give_a_processor(made: Any) -> None:
    with pytest.raises(TopologyError, match=r"^step 'step': the supplier must return a Processor, got "):
        TopologyTestDriver(one_step(lambda: made))


def test_a_supplier_that_fails_is_named() -> None:
    def supplier() -> Processor[Any, Any]:
        raise ValueError("no model")

    with pytest.raises(TopologyError, match=r"^step 'step': the supplier failed: ValueError: no model"):
        TopologyTestDriver(one_step(supplier))


def test_a_supplier_must_make_a_new_processor_each_time() -> None:
    same = processing(lambda context, record: None)()

    with pytest.raises(TopologyError, match=r"^step 'step': the supplier must make a new processor each time it is"):
        TopologyTestDriver(one_step(lambda: same))


def test_each_task_has_a_processor_of_its_own() -> None:
    topology = one_step(processing(lambda context, record: context.forward(record)))

    one, other = task_of(topology), task_of(topology, partition=1)
    one.process_lanes([lane("in", [(0, 1)])])

    assert len(outputs(one)) == 1
    assert outputs(other) == []


def test_a_processor_is_not_a_supplier() -> None:
    with pytest.raises(
        TopologyError, match=r"^processor 'step': expected a supplier, a function that makes a processor"
    ):
        one_step(processing(lambda context, record: None)())  # type: ignore[arg-type]


# -- errors of its own ------------------------------------------------------------------------------------------------


def test_an_error_is_reported_once_at_the_step_where_it_happened() -> None:
    def fail(context: Any, record: Record[Any, Any]) -> None:
        raise StreamsError("not this one")

    topology = Topology().add_source("source", "in")
    topology.add_processor("above", processing(lambda context, record: context.forward(record)), "source")
    topology.add_processor("below", processing(fail), "above")

    with pytest.raises(TaskError) as caught:
        piped(topology, ("k", 1))
    assert str(caught.value) == "step 'below', topic 'in', partition 0, offset 0, key 'k': not this one"
