"""Joins of two streams among other steps: with themselves, in a row, after changed keys; what they are called with.

Tests `stream_join.py` and how the DSL builds it.
"""

from datetime import timedelta
from typing import Any

import pytest

from headrace import JoinWindows, StreamsBuilder, Topology, TopologyError, serdes
from headrace.records import Record
from headrace.testing import TopologyTestDriver
from tests.operators.join_piping import check, plus


def joined(window: JoinWindows) -> Topology:
    builder = StreamsBuilder()
    builder.stream("left").join(builder.stream("right"), plus, window=window).to("out")
    return builder.build()


# -- the same stream twice, several joins -----------------------------------------------------------------------------


def test_self_join_pairs_every_record_with_itself_and_the_others_both_ways() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("left")
    stream.join(stream, plus, window=JoinWindows(10_000, grace=timedelta(hours=24))).to("out")

    check(
        builder.build(),
        """
        left k=None@1 ->
        left k=A@2    -> k=A+A@2
        left k=B@3    -> k=B+A@3 k=A+B@3 k=B+B@3
        left k=None@4 ->
        left k=C@5    -> k=C+A@5 k=C+B@5 k=A+C@5 k=B+C@5 k=C+C@5
        left z=Z@6    -> z=Z+Z@6
        """,
    )


def test_two_streams_of_one_topic_join_as_one_with_itself() -> None:
    builder = StreamsBuilder()
    builder.stream("left").join(builder.stream("left"), plus, window=JoinWindows(10_000)).to("out")

    check(
        builder.build(),
        """
        left a=1@0     -> a=1+1@0
        left a=2@9999  -> a=2+1@9999 a=1+2@9999 a=2+2@9999
        left b=1@11000 -> b=1+1@11000
        left a=3@13000 -> a=3+2@13000 a=2+3@13000 a=3+3@13000
        left a=5@30000 -> a=5+5@30000
        left a=6@6000  -> a=6+3@13000 a=3+6@13000
        """,
    )


def test_self_join_with_an_asymmetric_window() -> None:
    builder = StreamsBuilder()
    stream = builder.stream("left")
    stream.join(stream, plus, window=JoinWindows(before=10, after=0, grace=100)).to("out")

    check(
        builder.build(),
        """
        left k=A@0  -> k=A+A@0
        left k=B@10 -> k=B+A@10 k=B+B@10
        left k=C@5  -> k=C+A@5 k=C+C@5 k=B+C@10
        """,
    )


def test_results_can_be_joined_again() -> None:
    builder = StreamsBuilder()
    left, right = builder.stream("left"), builder.stream("right")
    window = JoinWindows(10_000, grace=timedelta(hours=24))
    left.join(right, plus, window=window).join(right, plus, window=window).to("out")

    check(
        builder.build(),
        """
        left  k=A@3    ->
        right k=a@4    -> k=A+a+a@4
        left  k=B@5    -> k=B+a+a@5
        right k=b@6    -> k=A+b+a@6 k=B+b+a@6 k=A+a+b@6 k=B+a+b@6 k=A+b+b@6 k=B+b+b@6
        left  k=None@7 ->
        left  k=C@9    -> k=C+a+a@9 k=C+a+b@9 k=C+b+a@9 k=C+b+b@9
        """,
    )


def test_three_streams() -> None:
    builder = StreamsBuilder()
    one, two, three = (builder.stream(topic) for topic in ("one", "two", "three"))
    one.join(two, plus, window=JoinWindows(10)).join(three, plus, window=JoinWindows(5)).to("out")

    check(
        builder.build(),
        """
        three k=3@12 ->
        one   k=1@0  ->
        two   k=2@10 -> k=1+2+3@12
        three k=4@16 ->
        three k=5@15 -> k=1+2+5@15
        """,
    )


# -- changed keys -----------------------------------------------------------------------------------------------------


def test_streams_with_changed_keys_are_repartitioned_and_meet_by_the_new_key() -> None:
    builder = StreamsBuilder()
    left = builder.stream("left").map(lambda key, value: (value[0], value))
    right = builder.stream("right").flat_map(lambda key, value: [(key, value)]).select_key(lambda key, value: value[0])
    left.join(right, plus, window=JoinWindows(10)).to("out")
    topology = builder.build()

    check(
        topology,
        """
        left  k=a1@0 ->
        right q=a2@3 -> a=a1+a2@3
        right a=b2@3 ->
        left  b=b1@4 -> b=b1+b2@4
        """,
    )
    assert [name.endswith("-repartition") for name in topology.internal_topics] == [True, True]


def test_repartition_drops_the_null_keys_that_the_join_would_drop() -> None:
    builder = StreamsBuilder()
    left = builder.stream("left").select_key(lambda key, value: None if value == "none" else value)
    left.join(builder.stream("right"), plus, window=JoinWindows(10)).to("out")

    check(
        builder.build(),
        """
        right k=x@0    ->
        left  k=none@0 ->
        left  z=k@0    -> k=k+x@0
        """,
    )


def test_stream_with_a_changed_key_is_repartitioned_once_for_all_its_joins() -> None:
    builder = StreamsBuilder()
    streams = [builder.stream(topic) for topic in ("topic", "topic2", "topic3")]
    rekeyed = streams[0].map(lambda key, value: (value, key))
    rekeyed.join(streams[1], plus, window=JoinWindows(100)).to("out-one")
    rekeyed.join(streams[2], plus, window=JoinWindows(100)).to("out-two")

    topology = builder.build()

    assert set(topology.internal_topics) == {"KSTREAM-MAP-0000000003-repartition"}
    assert topology.nodes["KSTREAM-SOURCE-0000000006"].children == [
        "KSTREAM-WINDOWED-0000000007",
        "KSTREAM-WINDOWED-0000000016",
    ]
    assert {"KSTREAM-JOINTHIS-0000000018", "KSTREAM-JOINOTHER-0000000019", "KSTREAM-MERGE-0000000020"} <= set(
        topology.nodes
    )


def test_named_joins_have_a_repartition_of_their_own() -> None:
    builder = StreamsBuilder()
    streams = [builder.stream(topic) for topic in ("topic", "topic2", "topic3")]
    rekeyed = streams[0].map(lambda key, value: (value, key))
    rekeyed.join(streams[1], plus, window=JoinWindows(100), name="first-join").to("out-one")
    rekeyed.join(streams[2], plus, window=JoinWindows(100), name="second-join").to("out-two")

    topology = builder.build()

    assert set(topology.internal_topics) == {"first-join-left-repartition", "second-join-left-repartition"}
    assert {"first-join-this-windowed", "first-join-other-windowed", "first-join-merge"} <= set(topology.nodes)
    assert {"second-join-this-join", "second-join-other-join"} <= set(topology.nodes)
    assert {"KSTREAM-JOINTHIS-0000000009-store", "KSTREAM-JOINTHIS-0000000018-store"} <= set(topology.stores)


# -- how it is called -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["join", "left_join", "outer_join"])
def test_joiner_gets_the_key_first_when_asked(kind: str) -> None:
    builder = StreamsBuilder()
    left, right = builder.stream("left"), builder.stream("right")
    getattr(left, kind)(
        right, lambda key, left, right: f"{key}:{left}+{right}", window=JoinWindows(10), with_key=True
    ).to("out")

    check(
        builder.build(),
        """
        left  k=A@0 ->
        right k=x@0 -> k=k:A+x@0
        left  k=B@0 -> k=k:B+x@0
        """,
    )


def test_serdes_of_key_and_both_values_can_be_given() -> None:
    builder = StreamsBuilder()
    left = builder.stream("left", key_serde=serdes.Integer, value_serde=serdes.String)
    right = builder.stream("right", key_serde=serdes.Integer, value_serde=serdes.Long)
    left.map_values(len).join(
        right,
        lambda left, right: left * right,
        window=JoinWindows(10),
        key_serde=serdes.Integer,
        value_serde=serdes.Integer,
        other_value_serde=serdes.Long,
    ).to("out", value_serde=serdes.Long)

    with TopologyTestDriver(builder.build()) as driver:
        driver.create_input_topic("left").pipe_input(1, "three", 0)
        driver.create_input_topic("right").pipe_input(1, 2**40, 0)
        assert driver.create_output_topic("out").read_key_values() == [(1, 5 * 2**40)]


@pytest.mark.parametrize(("kind", "stores"), [("join", 2), ("left_join", 3), ("outer_join", 3)])
def test_stores_of_a_join(kind: str, stores: int) -> None:
    builder = StreamsBuilder()
    getattr(builder.stream("left"), kind)(builder.stream("right"), plus, window=JoinWindows(10)).to("out")

    with TopologyTestDriver(builder.build()) as driver:
        assert len(driver.state_stores()) == stores


def test_result_has_the_headers_of_the_record_that_completes_it() -> None:
    with TopologyTestDriver(joined(JoinWindows(10)), {"default_value_serde": serdes.String}) as driver:
        driver.create_input_topic("left").pipe_input("k", "A", 0, headers={"h": b"1"})
        driver.create_input_topic("right").pipe_input("k", "x", 0, headers={"h": b"2"})
        assert driver.create_output_topic("out").read_records() == [Record("k", "A+x", 0, [("h", b"2")])]


def test_both_sides_are_one_sub_topology() -> None:
    assert len(joined(JoinWindows(10)).sub_topologies()) == 1


# -- what is refused --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"difference": -1}, "difference"),
        ({"difference": 10, "grace": -1}, "grace"),
        ({"difference": 10, "after": -11}, "add up to at least 0"),
        ({"difference": 10, "before": -11}, "add up to at least 0"),
        ({"before": 10}, "give a difference, or before and after"),
        ({}, "give a difference, or before and after"),
    ],
)
def test_window_must_have_an_end_after_its_start(arguments: dict[str, Any], reason: str) -> None:
    with pytest.raises(TopologyError, match=reason):
        JoinWindows(**arguments)


def test_windows_are_compared_by_their_bounds() -> None:
    assert JoinWindows(3) == JoinWindows(timedelta(milliseconds=3)) == JoinWindows(before=3, after=3)
    assert JoinWindows(3, grace=2) != JoinWindows(3, grace=9)
    assert JoinWindows(3, after=2) != JoinWindows(3, after=9)
    assert JoinWindows(3, before=2) != JoinWindows(3, before=9)


def test_bounds_do_not_change_the_grace() -> None:
    assert JoinWindows(3, grace=7, before=1, after=2) == JoinWindows(before=1, after=2, grace=7)


@pytest.mark.parametrize("kind", ["join", "left_join", "outer_join"])
def test_join_of_streams_needs_a_window(kind: str) -> None:
    builder = StreamsBuilder()
    with pytest.raises(TopologyError, match=f"{kind} of two streams needs window=JoinWindows"):
        getattr(builder.stream("left"), kind)(builder.stream("right"), plus)


def test_join_of_streams_takes_no_lookup_key() -> None:
    builder = StreamsBuilder()
    with pytest.raises(TopologyError, match="key= is only for global tables"):
        builder.stream("left").join(builder.stream("right"), plus, window=JoinWindows(1), key=lambda key, value: key)


def test_streams_of_two_builders_cannot_be_joined() -> None:
    with pytest.raises(TopologyError, match="same StreamsBuilder"):
        StreamsBuilder().stream("left").join(StreamsBuilder().stream("right"), plus, window=JoinWindows(1))


@pytest.mark.parametrize("joiner", [None, "plus"])
def test_joiner_must_be_callable(joiner: Any) -> None:
    builder = StreamsBuilder()
    with pytest.raises(TopologyError, match="join: expected joiner to be a function, got"):
        builder.stream("left").join(builder.stream("right"), joiner, window=JoinWindows(1))


def test_other_side_must_be_a_stream_or_a_table() -> None:
    with pytest.raises(TopologyError, match="expected a KStream, KTable or GlobalKTable, got str"):
        StreamsBuilder().stream("left").join("right", plus, window=JoinWindows(1))  # type: ignore[arg-type]
