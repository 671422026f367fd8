"""Joiners and key functions that raise: the error names its step and record, or the result is left out.

Tests `stream_join.py`, `stream_table_join.py`, `table_join.py` and `foreign_key_join.py`.
"""

from typing import Any

import pytest

from headrace import JoinWindows, LogAndContinue, StreamsBuilder, TaskError, Topology, serdes
from headrace.testing import TopologyTestDriver
from tests.operators.join_piping import check


def picky(left: Any, right: Any) -> str:
    if "bad" in (left, right):
        raise ValueError("bad input")
    return f"{left}+{right}"


def streams(kind: str) -> Topology:
    builder = StreamsBuilder()
    getattr(builder.stream("left"), kind)(builder.stream("right"), picky, window=JoinWindows(10, grace=5)).to("out")
    return builder.build()


def stream_and_table() -> Topology:
    builder = StreamsBuilder()
    builder.stream("left").join(builder.table("right"), picky).to("out")
    return builder.build()


def stream_and_global_table() -> Topology:
    builder = StreamsBuilder()
    table = builder.global_table("right")
    builder.stream("left").join(table, picky, key=lambda key, value: key).to("out")
    return builder.build()


def tables() -> Topology:
    builder = StreamsBuilder()
    builder.table("left").join(builder.table("right"), picky).to_stream().to("out")
    return builder.build()


def tables_by_foreign_key() -> Topology:
    builder = StreamsBuilder()
    left, right = builder.table("left"), builder.table("right")
    left.join(right, picky, foreign_key=lambda key, value: key).to_stream().to("out")
    return builder.build()


FAMILIES = [
    pytest.param(streams("join"), "KSTREAM-JOINTHIS-0000000004", "left", id="streams"),
    pytest.param(stream_and_table(), "KSTREAM-JOIN-0000000004", "left", id="stream and table"),
    pytest.param(stream_and_global_table(), "KSTREAM-LEFTJOIN-0000000004", "left", id="stream and global table"),
    pytest.param(tables(), "KTABLE-JOINTHIS-0000000007", "left", id="tables"),
    pytest.param(
        tables_by_foreign_key(),
        "KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-RESOLVER-PROCESSOR-0000000017",
        "test-KTABLE-FK-JOIN-SUBSCRIPTION-RESPONSE-0000000014-topic",
        id="tables by foreign key",
    ),
]


@pytest.mark.parametrize(("topology", "step", "topic"), FAMILIES)
def test_error_of_the_joiner_names_step_record_and_key(topology: Topology, step: str, topic: str) -> None:
    with TopologyTestDriver(topology, {"default_value_serde": serdes.String}) as driver:
        driver.create_input_topic("right").pipe_input("k", "x", 0)
        with pytest.raises(TaskError) as raised:
            driver.create_input_topic("left").pipe_input("k", "bad", 0)

    assert f"step '{step}', topic '{topic}', partition 0, offset 0, key 'k': ValueError: bad input" in str(raised.value)


@pytest.mark.parametrize(("topology", "step", "topic"), FAMILIES)
def test_record_whose_joiner_fails_can_be_left_out(topology: Topology, step: str, topic: str) -> None:
    check(
        topology,
        """
        right k=x@0   ->
        left  k=bad@1 ->
        left  k=A@2   -> k=A+x@2
        """,
        processing_exception_handler=LogAndContinue,
    )


# -- streams ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["join", "left_join", "outer_join"])
def test_partners_before_the_failing_one_are_joined_and_those_after_it_are_not(kind: str) -> None:
    check(
        streams(kind),
        """
        right k=x@1   ->
        right k=bad@2 ->
        right k=y@3   ->
        left  k=A@4   -> k=A+x@4
        """,
        processing_exception_handler=LogAndContinue,
    )


@pytest.mark.parametrize("kind", ["join", "left_join"])
def test_record_whose_joiner_failed_is_kept_for_later_partners(kind: str) -> None:
    check(
        streams(kind),
        """
        right k=bad@1 ->
        left  k=A@2   ->
        right k=y@3   -> k=A+y@3
        """,
        processing_exception_handler=LogAndContinue,
    )


def test_record_whose_joiner_failed_counts_as_matched() -> None:
    check(
        streams("left_join"),
        """
        left  k=A@1   ->
        right k=bad@2 ->
        right q=x@99  ->
        """,
        processing_exception_handler=LogAndContinue,
    )


def test_failing_result_without_a_match_does_not_hold_back_the_others() -> None:
    # Kafka Streams tries it again with every record, repeats the result before it and loses the record's own result.
    check(
        streams("left_join"),
        """
        left  a=A@1   ->
        left  b=bad@2 ->
        left  c=C@3   ->
        right c=x@30  -> a=A+None@1 c=C+None@3
        left  c=D@31  -> c=D+x@31
        """,
        processing_exception_handler=LogAndContinue,
    )


# -- tables -----------------------------------------------------------------------------------------------------------


def test_row_whose_joiner_failed_is_kept_for_later_updates() -> None:
    check(
        tables(),
        """
        left  k=A@1   ->
        right k=bad@2 ->
        left  k=B@3   ->
        right k=x@4   -> k=B+x@4
        """,
        processing_exception_handler=LogAndContinue,
    )


def test_answer_to_one_row_fails_for_that_row_only() -> None:
    builder = StreamsBuilder()
    left, right = builder.table("left"), builder.table("right")
    left.join(right, picky, foreign_key=lambda value: "r").to_stream().to("out")

    check(
        builder.build(),
        """
        left  a=A@1   ->
        left  b=bad@2 ->
        left  c=C@3   ->
        right r=x@4   -> a=A+x@4 c=C+x@4
        """,
        processing_exception_handler=LogAndContinue,
    )


def test_row_whose_foreign_key_cannot_be_made_is_left_out() -> None:
    def foreign_key(value: str) -> str:
        if value == "bad":
            raise ValueError("no key")
        return "r"

    builder = StreamsBuilder()
    left, right = builder.table("left"), builder.table("right")
    left.join(right, picky, foreign_key=foreign_key).to_stream().to("out")

    check(
        builder.build(),
        """
        right r=x@0   ->
        left  a=bad@1 ->
        left  b=B@2   -> b=B+x@2
        """,
        processing_exception_handler=LogAndContinue,
    )


def test_record_whose_lookup_key_cannot_be_made_is_left_out() -> None:
    builder = StreamsBuilder()
    table = builder.global_table("right")
    builder.stream("left").left_join(table, picky, key=lambda key, value: value.split(",")[1]).to("out")

    check(
        builder.build(),
        """
        left k=A@1   ->
        left k=A,r@2 -> k=A,r+None@2
        """,
        processing_exception_handler=LogAndContinue,
    )
