"""Topologies that cannot be built: the error names the step and says what to do."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from headrace import (
    Buffer,
    EmitStrategy,
    JoinWindows,
    StreamsBuilder,
    Suppressed,
    Topology,
    UnlimitedWindows,
)
from headrace.testing import TopologyTestDriver
from tests.topology.cases.steps import (
    SESSIONS,
    WINDOW,
    Forward,
    both,
    empty,
    fold,
    merge_sessions,
    rekeyed,
    same,
    stream,
    table,
    to_value,
    yes,
)
from tests.topology.refusals import refused

# -- the graph ---------------------------------------------------------------------------------------------------------


def test_unknown_parent() -> None:
    topology = Topology().add_source("source", "in")
    with refused("processor 'p'", "there is no step 'sorce'", "Add a step's parents before it", "known steps: source"):
        topology.add_processor("p", Forward, "sorce")


def test_unknown_parent_of_a_sink() -> None:
    with refused("sink 'out'", "there is no step 'p'", "known steps: none"):
        Topology().add_sink("out", "out-topic", "p")


def test_no_parent() -> None:
    with refused("processor 'p'", "expected at least one parent", "Name the step before it"):
        Topology().add_processor("p", Forward)


def test_own_parent() -> None:
    with refused("processor 'p'", "cannot be its own parent", "Name the step before it"):
        Topology().add_processor("p", Forward, "p")


def test_sink_as_parent() -> None:
    topology = Topology().add_source("source", "in").add_sink("sink", "out", "source")
    with refused("processor 'p'", "sink 'sink' cannot be a parent", "Name the step before the sink"):
        topology.add_processor("p", Forward, "sink")


def test_parents_in_a_list() -> None:
    topology: Any = Topology().add_source("source", "in")
    with refused("processor 'p'", "expected the names of its parents", "['source']"):
        topology.add_processor("p", Forward, ["source"])


def test_no_source() -> None:
    with refused("no source", "add one with stream(), table() or add_source()"):
        StreamsBuilder().build()


def test_no_source_in_the_processor_api() -> None:
    with refused("no source", "add_source()"):
        TopologyTestDriver(Topology())


# -- names -------------------------------------------------------------------------------------------------------------


def test_duplicate_name() -> None:
    topology = Topology().add_source("in", "in")
    with refused("processor 'in'", "already a step with this name", "Give each step its own name"):
        topology.add_processor("in", Forward, "in")


def test_duplicate_name_in_the_dsl() -> None:
    builder = StreamsBuilder()
    stream(builder, "in").filter(yes, name="step").map_values(same, name="step")
    with refused("processor 'step'", "already a step with this name", "Give each step its own name"):
        builder.build()


def test_generated_name_given_by_hand() -> None:
    builder = StreamsBuilder()
    stream(builder, "in").filter(yes, name="KSTREAM-MAPVALUES-0000000002").map_values(same)
    with refused("'KSTREAM-MAPVALUES-0000000002'", "Give each step its own name"):
        builder.build()


# -- topics ------------------------------------------------------------------------------------------------------------


def test_two_sources_of_one_topic() -> None:
    topology = Topology().add_source("one", "in")
    with refused("source 'two'", "topic 'in' is already read by source 'one'", "Read it once"):
        topology.add_source("two", "other", "in")


def test_topic_that_matches_a_pattern() -> None:
    topology = Topology().add_source("one", re.compile("in.*"))
    with refused("source 'two'", "topic 'in-1' matches the pattern of source 'one'", "Read it once"):
        topology.add_source("two", "in-1")


def test_pattern_that_matches_a_topic() -> None:
    topology = Topology().add_source("one", "in-1")
    with refused("source 'two'", "its pattern matches topic 'in-1', read by source 'one'", "Read it once"):
        topology.add_source("two", re.compile("in.*"))


def test_pattern_beside_topics() -> None:
    with refused("source 'one'", "expected either topics or one pattern"):
        Topology().add_source("one", "in", re.compile("out.*"))


def test_source_without_topics() -> None:
    with refused("source 'one'", "expected at least one topic"):
        Topology().add_source("one")
    with refused("stream: expected at least one topic"):
        StreamsBuilder().stream([])


@pytest.mark.parametrize("second", ["table", "global_table"])
def test_stream_and_table_of_one_topic(second: str) -> None:
    builder = StreamsBuilder()
    builder.stream("in", name="records")
    getattr(builder, second)("in", name="rows")
    with refused("source 'rows-source'", "topic 'in' is already read by source 'records'", "Read it once"):
        builder.build()


def test_two_tables_of_one_topic() -> None:
    builder = StreamsBuilder()
    builder.table("in", name="one")
    builder.table("in", name="two")
    with refused("source 'two-source'", "topic 'in' is already read by source 'one-source'", "Read it once"):
        builder.build()


def test_streams_of_overlapping_topics() -> None:
    builder = StreamsBuilder()
    builder.stream(["a", "b"], name="both")
    builder.stream("a", name="one")
    with refused("source 'one'", "topic 'a' is also read by source 'both'", "Read it once"):
        builder.build()


def test_sink_that_is_a_source_of_the_same_sub_topology() -> None:
    builder = StreamsBuilder()
    stream(builder, "in").map_values(same).to("in", name="back")
    with refused("sink 'back'", "topic 'in'", "of the same sub-topology", "Write to another topic"):
        builder.build()


def test_sink_that_another_source_of_the_same_sub_topology_reads() -> None:
    topology = Topology().add_source("one", "a").add_source("two", "b").add_processor("p", Forward, "one", "two")
    topology.add_sink("sink", "b", "one")
    with refused("sink 'sink' writes to topic 'b', which source 'two' of the same sub-topology reads"):
        TopologyTestDriver(topology)


def test_sink_that_matches_the_pattern_of_its_source() -> None:
    builder = StreamsBuilder()
    builder.stream(re.compile(".*"), name="all").to("out", name="sink")
    with refused("sink 'sink'", "source 'all' of the same sub-topology", "Write to another topic"):
        builder.build()


def test_cycle_through_topics() -> None:
    builder = StreamsBuilder()
    stream(builder, "a").to("b", name="to-b")
    stream(builder, "b").to("c")
    stream(builder, "c").to("a")
    with refused("sink 'to-b' writes to topic 'b'", "the topology is a cycle", "Write to another topic"):
        builder.build()


def test_cycle_through_a_repartition() -> None:
    builder = StreamsBuilder()
    stream(builder, "a").group_by(to_value).count().to_stream().to("a", name="back")
    with refused("sink 'back' writes to topic 'a'", "the topology is a cycle"):
        builder.build()


def test_topics_that_only_lead_on_are_no_cycle() -> None:
    builder = StreamsBuilder()
    rows = table(builder, "a")
    rows.join(table(builder, "b"), both, foreign_key=same).to_stream().to("c")
    stream(builder, "c").to("d")
    builder.build()


# -- joins -------------------------------------------------------------------------------------------------------------


def test_join_of_different_numbers_of_partitions() -> None:
    builder = StreamsBuilder()
    left = stream(builder, "a").repartition(name="left", partitions=4)
    left.join(stream(builder, "b").repartition(name="right", partitions=5), both, window=WINDOW, name="joined")
    with refused("joined", "'left-repartition' has 4, 'right-repartition' has 5", "the same number"):
        builder.build()


def test_table_join_of_different_numbers_of_partitions() -> None:
    builder = StreamsBuilder()
    left = stream(builder, "a").repartition(name="left", partitions=4).to_table()
    left.join(stream(builder, "b").repartition(name="right", partitions=5).to_table(), both, name="joined")
    with refused("step 'joined'", "'left-repartition' has 4, 'right-repartition' has 5", "the same number"):
        builder.build()


def test_cogroup_of_different_numbers_of_partitions() -> None:
    builder = StreamsBuilder()
    left = stream(builder, "a").repartition(name="left", partitions=4).group_by_key().cogroup(fold)
    right = stream(builder, "b").repartition(name="right", partitions=5).group_by_key()
    left.cogroup(right, fold).aggregate(empty, name="together")
    with refused("step 'together-cogroup-merge'", "'left-repartition' has 4", "the same number"):
        builder.build()


def test_cogroup_of_changed_keys_without_names() -> None:
    builder = StreamsBuilder()
    first = rekeyed(builder, "a").group_by_key().cogroup(fold).cogroup(rekeyed(builder, "b").group_by_key(), fold)
    with refused("aggregate: 2 cogrouped streams need a repartition", "group_by_key(name=...)"):
        first.aggregate(empty)


@pytest.mark.parametrize(
    "call",
    [
        lambda one, two: stream(one, "a").merge(stream(two, "b")),
        lambda one, two: stream(one, "a").join(stream(two, "b"), both, window=WINDOW),
        lambda one, two: stream(one, "a").left_join(table(two, "b"), both),
        lambda one, two: stream(one, "a").join(two.global_table("b"), both, key=to_value),
        lambda one, two: table(one, "a").outer_join(table(two, "b"), both),
        lambda one, two: table(one, "a").join(table(two, "b"), both, foreign_key=same),
        lambda one, two: stream(one, "a").group_by_key().cogroup(fold).cogroup(stream(two, "b").group_by_key(), fold),
    ],
    ids=["merge", "stream", "table", "global", "tables", "foreign key", "cogroup"],
)
def test_sides_of_different_builders(call: Callable[[StreamsBuilder, StreamsBuilder], Any]) -> None:
    with refused("must come from the same StreamsBuilder"):
        call(StreamsBuilder(), StreamsBuilder())


@pytest.mark.parametrize("kind", ["join", "left_join", "outer_join"])
def test_join_of_streams_without_window(kind: str) -> None:
    builder = StreamsBuilder()
    with refused(f"{kind} of two streams needs window=JoinWindows(...)"):
        getattr(stream(builder, "a"), kind)(stream(builder, "b"), both)


def test_join_with_what_is_for_other_joins() -> None:
    b: Any = StreamsBuilder()
    with refused("window= is only for joins of two streams"):
        stream(b, "a").join(table(b, "b"), both, window=JoinWindows(5))
    with refused("key= is only for global tables"):
        stream(b, "c").join(table(b, "d"), both, key=to_value)
    with refused("a stream cannot be outer-joined with a table"):
        stream(b, "e").outer_join(b.table("f"), both)
    with refused("GlobalKTable needs key=f(key, value)"):
        stream(b, "g").join(b.global_table("h"), both)


def test_sessions_without_merger() -> None:
    cogrouped = stream(StreamsBuilder(), "in").group_by_key().cogroup(fold).windowed_by(SESSIONS)
    with refused("aggregate: sessions need merger=f(key, left, right)"):
        cogrouped.aggregate(empty)
    cogrouped.aggregate(empty, merger=merge_sessions)


def test_final_results_without_windows() -> None:
    counts = stream(StreamsBuilder(), "in").group_by_key().count()
    with refused("step 'held'", "needs a windowed aggregation above it", "Use windowed_by(...)", "until_time_limit"):
        counts.suppress(Suppressed.until_window_closes(Buffer.unbounded()), name="held")


def test_unlimited_windows_never_close() -> None:
    windowed = stream(StreamsBuilder(), "in").group_by_key().windowed_by(UnlimitedWindows())
    with refused("emit_strategy: unlimited windows never close", "Use on_window_update"):
        windowed.emit_strategy(EmitStrategy.on_window_close())
