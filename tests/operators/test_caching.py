"""Record caches: they pass on one update per key and commit, with the old value of the first.

Tests `task/caching.py` together with the operators that write to it.
"""

import random
from typing import Any

import pytest

from headrace import (
    Buffer,
    FixedKeyProcessor,
    HoppingWindows,
    KTable,
    LogAndContinue,
    Materialized,
    SessionWindows,
    SlidingWindows,
    StreamsBuilder,
    StreamsConfig,
    Suppressed,
    TumblingWindows,
    serdes,
)
from headrace.records import Record
from headrace.testing import TopologyTestDriver
from tests.operators.piping import Batches, append, check, check_batches, log_of


def counted(store: Any = None) -> StreamsBuilder:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().count(store=store).to_stream().to("out")
    return builder


def totals(builder: StreamsBuilder, store: Any = None) -> KTable[Any, Any]:
    grouped = builder.stream("in").group_by_key()
    return grouped.reduce(lambda total, value: str(int(total) + int(value)), store=store)


# -- one update per key and commit ------------------------------------------------------------------------------------


def test_one_update_per_key_goes_on_at_the_commit() -> None:
    check_batches(
        counted(),
        """
        a=x@0 b=x@1 a=x@2 a=x@3 b=x@4 -> a=3@3 b=2@4
        a=x@5                         -> a=4@5
        b=x@6 c=x@7 b=x@8             -> c=1@7 b=4@8
        """,
    )


def test_keys_go_on_in_the_order_of_their_last_update() -> None:
    check_batches(
        counted(),
        """
        a=x@0 b=x@1 c=x@2 a=x@3 -> b=1@1 c=1@2 a=2@3
        """,
    )


def test_nothing_goes_on_before_the_commit() -> None:
    batches = Batches(counted().build(), StreamsConfig(application_id="test", default_value_serde=serdes.String))
    batches.feed("in", [Record("a", "x", 0), Record("a", "x", 1)])
    batches.process()

    assert batches.results() == []
    batches.commit()
    assert batches.results() == ["a=2@1"]
    batches.commit()
    assert batches.results() == []


def test_driver_commits_after_every_record() -> None:
    check(
        counted(),
        """
        a=x@0 -> a=1@0
        a=x@1 -> a=2@1
        """,
        cached=True,
    )


def test_store_has_every_update_at_once() -> None:
    topology = counted(store="counts").build()
    batches = Batches(topology, StreamsConfig(application_id="test", default_value_serde=serdes.String))
    batches.feed("in", [Record("a", "x", 0), Record("a", "x", 1)])
    batches.process()

    assert batches.tasks[0].stores["counts"].get("a").value == 2  # type: ignore[union-attr]


def test_timestamp_is_that_of_the_last_result() -> None:
    check_batches(counted(), "a=x@9 a=x@3 -> a=2@9")


def test_headers_are_those_of_the_last_update() -> None:
    batches = Batches(counted().build(), StreamsConfig(application_id="test", default_value_serde=serdes.String))
    records = [Record("a", "x", 0, [("n", b"1")]), Record("a", "x", 1, [("n", b"2")]), Record("b", "x", 2)]
    batches.feed("in", records)
    batches.process()
    batches.tasks[0].commit()

    [(_, out)] = batches.tasks[0].take_outputs()
    assert list(out.headers) == [[("n", b"2")], []]


def test_updates_made_from_one_record_by_flat_map_values_go_on_as_one() -> None:
    builder = StreamsBuilder()
    builder.stream("in").flat_map_values(list).group_by_key().count().to_stream().to("out")

    check(builder, "a=xyz@0 -> a=3@0", cached=True)
    check(builder, "a=xyz@0 -> a=1@0 a=2@0 a=3@0", cached=False)


# -- deletes ----------------------------------------------------------------------------------------------------------


def test_row_that_comes_and_goes_between_commits_leaves_no_trace() -> None:
    builder = StreamsBuilder()
    builder.table("in", store="rows").to_stream().to("out")

    check_batches(
        builder,
        """
        a=1@0 a=None@1        ->
        a=1@2                 -> a=1@2
        a=None@3 a=2@4        -> a=2@4
        a=3@5 a=None@6        -> a=None@6
        a=None@7 b=None@8     ->
        """,
    )


def test_delete_in_a_batch_has_the_timestamp_of_its_record() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key()
    grouped.aggregate(lambda: "", lambda key, value, text: None if value == "-" else text + value).to_stream().to("out")

    check_batches(
        builder,
        """
        a=x@9       -> a=x@9
        a=y@8 a=-@2 -> a=None@2
        """,
    )


# -- old values -------------------------------------------------------------------------------------------------------


def test_old_value_is_the_one_of_the_last_commit() -> None:
    builder = StreamsBuilder()
    log_of(totals(builder))

    check_batches(
        builder,
        """
        a=1@0 a=2@1       -> all=+3@1
        a=1@2 a=1@3 b=9@4 -> all=+3-3+5+9@4
        a=1@5             -> all=+3-3+5+9-5+6@5
        """,
    )


def test_old_value_goes_through_map_values_and_filter() -> None:
    builder = StreamsBuilder()
    shown = totals(builder).map_values(lambda value: f"<{value}>").filter(lambda key, value: value != "<4>")
    log_of(shown)

    check_batches(
        builder,
        """
        a=1@0 a=2@1 -> all=+<3>@1
        a=1@2       -> all=+<3>-<3>@2
        a=1@3 a=1@4 -> all=+<3>-<3>+<6>@4
        a=1@5 a=0@6 -> all=+<3>-<3>+<6>-<6>+<7>@6
        """,
    )


def test_filter_sees_only_what_goes_on() -> None:
    builder = StreamsBuilder()
    totals(builder).filter(lambda key, value: int(value) < 5).to_stream().to("out")

    check_batches(
        builder,
        """
        a=1@0 a=9@1  ->
        a=-8@2       -> a=2@2
        a=9@3 a=-9@4 -> a=2@4
        a=9@5        -> a=None@5
        """,
    )


def test_table_that_is_kept_in_the_middle_of_a_chain_has_a_cache_of_its_own() -> None:
    builder = StreamsBuilder()
    doubled = totals(builder).map_values(lambda value: str(2 * int(value)), store="doubled")
    log_of(doubled)

    check_batches(
        builder,
        """
        a=1@0 a=2@1 -> all=+6@1
        a=1@2 a=1@3 -> all=+6-6+10@3
        """,
    )


def test_grouping_gets_one_update_per_row() -> None:
    builder = StreamsBuilder()
    rows = builder.table("in")
    rows.group_by(lambda key, value: (value, value)).count().to_stream().to("out")

    check_batches(
        builder,
        """
        a=x@0 b=x@1 a=y@2 -> x=1@1 y=1@2
        a=x@3 b=y@4       -> x=1@4 y=1@4
        """,
    )


def test_values_that_change_in_place_do_not_change_waiting_updates() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key()
    lists = grouped.aggregate(list, append, store=Materialized("lists", value_serde=serdes.Json))
    log_of(lists.map_values("".join))

    check_batches(
        builder,
        """
        a=1@0 a=2@1 -> all=+12@1
        a=3@2 a=4@3 -> all=+12-12+1234@3
        """,
    )


# -- windows ----------------------------------------------------------------------------------------------------------


def test_every_window_is_a_key_of_its_own() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().windowed_by(HoppingWindows(10, advance=5)).count().to_stream().to("out")

    check_batches(
        builder,
        """
        a=x@5 a=x@7 a=x@12 -> a@0-10=2@7 a@5-15=3@12 a@10-20=1@12
        a=x@13             -> a@5-15=4@13 a@10-20=2@13
        """,
    )


def test_sliding_windows_go_on_once() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().windowed_by(SlidingWindows(10)).count().to_stream().to("out")

    check_batches(builder, "a=x@100 a=x@105 a=x@105 -> a@90-100=1@100 a@101-111=2@105 a@95-105=3@105")


def test_sessions_that_were_merged_before_the_commit_are_never_seen() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().windowed_by(SessionWindows(10, grace=50)).count().to_stream().to("out")

    check_batches(
        builder,
        """
        a=x@0 a=x@5 a=x@8  -> a@0-8=3@8
        a=x@30             -> a@30-30=1@30
        a=x@15 a=x@20      -> a@0-8=None@8 a@30-30=None@30 a@0-30=6@30
        a=x@10 a=x@11      -> a@0-30=8@30
        """,
    )


def test_late_record_joins_a_session_that_the_store_would_have_forgotten() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().windowed_by(SessionWindows(30)).count().to_stream().to("out")

    check(
        builder,
        """
        a=x@0  -> a@0-0=1@0
        b=x@31 -> b@31-31=1@31
        a=x@29 -> a@0-29=2@29
        """,
        cached=True,
    )


def test_late_record_finds_sliding_windows_that_the_store_would_have_forgotten() -> None:
    builder = StreamsBuilder()
    builder.stream("in").group_by_key().windowed_by(SlidingWindows(10)).count().to_stream().to("out")

    check(
        builder,
        """
        a=x@100 -> a@90-100=1@100
        d=x@111 -> d@101-111=1@111
        a=x@107 -> a@101-111=1@107
        """,
        cached=True,
    )


def test_late_record_of_a_cogroup_finds_the_window_that_another_stream_has_pushed_out() -> None:
    builder = StreamsBuilder()
    one, two = builder.stream("in").group_by_key(), builder.stream("in2").group_by_key()
    both = one.cogroup(lambda key, value, text: text + value).cogroup(two, lambda key, value, text: text + value)
    both.windowed_by(TumblingWindows(100)).aggregate(str).to_stream().to("out")

    check(
        builder,
        """
        e=5@52      -> e@0-100=5@52
        in2 d=8@110 -> d@100-200=8@110
        e=4@71      -> e@0-100=54@71
        """,
        cached=True,
    )


def test_suppress_behind_a_cache_gets_what_goes_on() -> None:
    builder = StreamsBuilder()
    counts = builder.stream("in").group_by_key().windowed_by(TumblingWindows(10)).count()
    counts.suppress(Suppressed.until_window_closes(Buffer.unbounded())).to_stream().to("out")

    check_batches(
        builder,
        """
        a=x@0 a=x@5 b=x@12 -> a@0-10=2@5
        b=x@13 b=x@20      -> b@10-20=2@13
        """,
    )


# -- a window that several records of a batch are for -----------------------------------------------------------------

_ANY_KEY: serdes.Serde[str] = serdes.Serde(str.encode, bytes.decode)
"""A serde of which nothing is known: windows are then looked for every time."""


def _sums(key_serde: serdes.Serde[Any], windows: Any) -> StreamsBuilder:
    """Sum up in windows. A sum of 5 deletes its window; a record of the key "x" deletes the windows of the key "a"."""

    class Deletes(FixedKeyProcessor[Any, Any]):
        def init(self, context: Any) -> None:
            self._store = context.state_store("sums")

        def process(self, record: Any) -> None:
            if record.key == "x":
                self._store.put("a", None, record.timestamp - record.timestamp % 10)

    def add(key: str, value: str, total: list[int]) -> list[int] | None:
        if value == "fail":
            raise ValueError("a value that cannot be added")
        total[0] += int(value)
        return None if total[0] == 5 else total

    builder = StreamsBuilder()
    records = builder.stream("in", key_serde=key_serde)
    windowed = records.group_by_key(key_serde=key_serde).windowed_by(windows)
    store = Materialized("sums", key_serde=key_serde, value_serde=serdes.Json)
    sums = windowed.aggregate(lambda: [0], add, store=store)
    sums.to_stream().map(lambda key, value: (f"{key.key}@{key.window.start}", f"{value}")).to("out")
    records.process_values(Deletes, "sums")
    return builder


@pytest.mark.parametrize("limit", [10 << 20, 3000], ids=["large cache", "small cache"])
@pytest.mark.parametrize("windows", [TumblingWindows(10, grace=10), HoppingWindows(10, advance=5, grace=5)], ids=str)
def test_window_of_several_records_is_found_again_as_if_it_were_looked_for(windows: Any, limit: int) -> None:
    rng = random.Random(17)
    records = [
        Record(rng.choice("aabcx"), rng.choice(["1", "2", "3", "fail"]), max(0, 2 * number + rng.randrange(-25, 3)))
        for number in range(400)
    ]

    def results(key_serde: serdes.Serde[Any]) -> list[str]:
        config = StreamsConfig(
            application_id="test",
            default_value_serde=serdes.String,
            statestore_cache_max_bytes=limit,
            processing_exception_handler=LogAndContinue,
        )
        batches = Batches(_sums(key_serde, windows).build(), config)
        for first in range(0, len(records), 50):
            batches.feed("in", records[first : first + 50])
            batches.process()
            batches.commit()
        return batches.results()

    short, long = results(serdes.String), results(_ANY_KEY)

    assert short == long
    assert any(text.startswith("a@") and "=None@" in text for text in short)


def test_windows_of_a_cogroup_are_found_again_by_the_streams_that_share_them() -> None:
    builder = StreamsBuilder()
    one, two = builder.stream("in").group_by_key(), builder.stream("in2").group_by_key()
    both = one.cogroup(lambda key, value, text: text + value).cogroup(two, lambda key, value, text: text + value)
    both.windowed_by(TumblingWindows(10)).aggregate(str).to_stream().to("out")
    batches = Batches(builder.build(), StreamsConfig(application_id="test", default_value_serde=serdes.String))
    batches.feed("in", [Record("a", "1", 1), Record("a", "2", 3), Record("b", "3", 4), Record("a", "5", 6)])
    batches.feed("in2", [Record("a", "x", 2), Record("a", "y", 5), Record("b", "z", 7)])
    batches.process()
    batches.commit()

    assert batches.results() == ["a@0-10=1x2y5@6", "b@0-10=3z@7"]


# -- without a cache --------------------------------------------------------------------------------------------------


def test_store_without_caching_passes_every_update_on() -> None:
    check_batches(counted(Materialized(caching=False)), "a=x@0 a=x@1 b=x@2 -> a=1@0 a=2@1 b=1@2")


def test_cache_size_of_zero_turns_all_caches_off() -> None:
    check_batches(counted(), "a=x@0 a=x@1 b=x@2 -> a=1@0 a=2@1 b=1@2", statestore_cache_max_bytes=0)


def test_each_store_says_for_itself_whether_it_is_cached() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key()
    grouped.count(store=Materialized("quick", caching=False)).map_values(lambda n: f"quick-{n}").to_stream().to("out")
    grouped.count(store="slow").map_values(lambda n: f"slow-{n}").to_stream().to("out")

    check_batches(builder, "a=x@0 a=x@1 -> a=quick-1@0 a=quick-2@1 a=slow-2@1")


@pytest.mark.parametrize(
    "windows", [TumblingWindows(10), HoppingWindows(10, advance=10), SlidingWindows(10), SessionWindows(10)], ids=str
)
def test_windowed_store_without_caching_passes_every_update_on(windows: Any) -> None:
    builder = StreamsBuilder()
    windowed = builder.stream("in").group_by_key().windowed_by(windows)
    windowed.count(store=Materialized("counts", caching=False)).to_stream(lambda key, count: key.key).to("out")

    check_batches(builder, "a=x@100 b=x@100 a=x@100 -> a=1@100 b=1@100 a=2@100")


def test_versioned_table_is_never_cached() -> None:
    builder = StreamsBuilder()
    builder.table("in", store=Materialized("rows", history_retention=1000)).to_stream().to("out")

    check_batches(builder, "a=1@0 a=2@1 -> a=1@0 a=2@1")


def test_stateless_steps_are_never_cached() -> None:
    builder = StreamsBuilder()
    builder.table("in").map_values(str.upper).to_stream().to("out")

    check_batches(builder, "a=x@0 a=y@1 -> a=X@0 a=Y@1")


# -- caches that are too small ----------------------------------------------------------------------------------------


def test_cache_that_overflows_passes_on_what_it_has() -> None:
    check_batches(
        counted(),
        "a=x@0 a=x@1 b=x@2 a=x@3 -> a=1@0 a=2@1 b=1@2 a=3@3",
        statestore_cache_max_bytes=1,
    )


def test_updates_that_go_on_early_have_their_old_values_right() -> None:
    builder = StreamsBuilder()
    log_of(totals(builder))

    check_batches(
        builder,
        """
        a=1@0 a=2@1 -> all=+1@0 all=+1-1+3@1
        a=1@2       -> all=+1-1+3-3+4@2
        """,
        statestore_cache_max_bytes=1,
    )


def test_cache_holds_more_keys_the_larger_it_is() -> None:
    results = {}
    for size in (1, 2_000, 10_000, 10_000_000):
        config = StreamsConfig(
            application_id="test", default_value_serde=serdes.String, statestore_cache_max_bytes=size
        )
        batches = Batches(counted().build(), config)
        batches.feed("in", [Record(f"k{n % 50}", "x", n) for n in range(500)])
        batches.process()
        batches.commit()
        results[size] = len(batches.results())

    assert results[1] == 500
    assert results[10_000_000] == 50
    assert results[1] >= results[2_000] >= results[10_000] >= results[10_000_000]


def test_value_that_grows_counts_for_what_it_is_now() -> None:
    builder = StreamsBuilder()
    grouped = builder.stream("in").group_by_key()
    grouped.reduce(lambda text, value: text + value).to_stream().to("out")
    long = "x" * 300

    check_batches(
        builder,
        f"a=y@0 a={long}@1 a=z@2 -> a=y{long}@1 a=y{long}z@2",
        statestore_cache_max_bytes=800,
    )


# -- several stores ---------------------------------------------------------------------------------------------------


def test_stores_are_flushed_in_the_order_of_the_topology() -> None:
    builder = StreamsBuilder()
    first = totals(builder, store="first")
    second = first.map_values(lambda value: f"{value}!", store="second")
    second.filter(lambda key, value: True, store="third").to_stream().to("out")

    check_batches(
        builder,
        """
        a=1@0 a=2@1 b=5@2 -> a=3!@1 b=5!@2
        a=1@3             -> a=4!@3
        """,
    )


def test_join_sees_the_rows_that_still_wait() -> None:
    builder = StreamsBuilder()
    left, right = builder.table("in"), builder.table("right")
    left.join(right, lambda one, other: f"{one}+{other}").to_stream().to("out")
    topology = builder.build()
    batches = Batches(topology, StreamsConfig(application_id="test", default_value_serde=serdes.String))
    batches.feed("in", [Record("a", "1", 0), Record("a", "2", 1)])
    batches.feed("right", [Record("a", "x", 2), Record("a", "y", 3)])
    batches.process()
    batches.commit()

    assert batches.results() == ["a=2+y@3", "a=2+y@3"]


def test_stream_joined_with_a_cached_table_sees_its_latest_row() -> None:
    builder = StreamsBuilder()
    rows = builder.table("right")
    builder.stream("in").join(rows, lambda value, row: f"{value}+{row}").to("out")
    batches = Batches(builder.build(), StreamsConfig(application_id="test", default_value_serde=serdes.String))
    batches.feed("right", [Record("a", "x", 0), Record("a", "y", 1)])
    batches.feed("in", [Record("a", "1", 2)])
    batches.process()

    assert batches.results() == ["a=1+y@2"]


# -- restarts ---------------------------------------------------------------------------------------------------------


def test_old_values_are_right_after_a_restart() -> None:
    builder = StreamsBuilder()
    log_of(totals(builder))
    topology = builder.build()
    config = {"default_value_serde": serdes.String}

    with TopologyTestDriver(topology, config) as driver:
        driver.create_input_topic("in").pipe_input("a", "1", 0)
        snapshot = driver.snapshot()
    with TopologyTestDriver(topology, config, restore_from=snapshot) as driver:
        driver.create_input_topic("in").pipe_input("a", "2", 1)

        assert driver.create_output_topic("out").read_values() == ["+1-1+3"]
