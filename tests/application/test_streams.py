"""The life of an application on Spark."""

import re
from collections.abc import Callable
from typing import Any, cast

import msgspec
import pytest

from headrace import (
    ConfigError,
    Materialized,
    Processor,
    PunctuationType,
    Record,
    StreamsBuilder,
    StreamsError,
    StreamsState,
    StreamThreadExceptionResponse,
    TaskError,
    TopicError,
    Topology,
    TopologyError,
    serdes,
)
from headrace.brokers.engine import EngineBroker
from headrace.errors import SupersededError
from headrace.spark.source import SourceSettings
from tests.spark.applications import Workspace, caught_up, still_runs, wait_for, word_count

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("spark")]


def test_until_caught_up_processes_what_is_there_and_returns(workspace: Workspace) -> None:
    workspace.create("lines", "counts", partitions=2)
    workspace.produce("lines", (None, "to be or not", 1), (None, "to be", 2))
    app = workspace.streams(word_count())

    app.run(until_caught_up=True)

    counts = workspace.read("counts", serdes.Long)
    assert {(word, count) for word, count, _ in counts} == {
        ("to", 1), ("to", 2), ("be", 1), ("be", 2), ("or", 1), ("not", 1),
    }  # fmt: skip
    assert app.state is StreamsState.NOT_RUNNING
    metrics = app.metrics()
    assert (metrics["records_in_total"], metrics["records_out_total"]) == (2, 6)
    assert metrics["lag"] == {"lines": {0: 0, 1: 0}}


def test_started_again_it_goes_on_where_it_stopped(workspace: Workspace) -> None:
    workspace.create("lines")
    workspace.produce("lines", (None, "a b", 1))
    workspace.streams(word_count()).run(until_caught_up=True)
    workspace.produce("lines", (None, "a", 2))

    workspace.streams(word_count()).run(until_caught_up=True)
    workspace.streams(word_count()).run(until_caught_up=True)

    assert workspace.read("counts", serdes.Long) == [("a", 1, 1), ("b", 1, 1), ("a", 2, 2)]


def test_it_runs_until_it_is_closed_and_tells_its_states(workspace: Workspace) -> None:
    seen: list[StreamsState] = []
    app = workspace.streams(word_count())
    app.set_state_listener(lambda new, old: seen.append(new))

    app.start()
    for number in range(3):
        workspace.produce("lines", (None, "a", number))
        wait_for(lambda: caught_up(app), "the record")
    assert app.close()

    assert [count for _, count, _ in workspace.read("counts", serdes.Long)] == [1, 2, 3]
    assert seen == [
        StreamsState.REBALANCING, StreamsState.RUNNING, StreamsState.PENDING_SHUTDOWN, StreamsState.NOT_RUNNING,
    ]  # fmt: skip


def test_it_is_closed_at_once_between_two_batches_that_are_far_from_each_other(workspace: Workspace) -> None:
    workspace.settings["commit_interval_ms"] = 3_600_000
    workspace.create("lines")
    workspace.produce("lines", (None, "a", 1))
    app = workspace.streams(word_count())
    app.start()
    wait_for(lambda: caught_up(app), "the record")

    assert app.close(timeout=120)
    assert app.state is StreamsState.NOT_RUNNING
    assert workspace.read("counts", serdes.Long) == [("a", 1, 1)]


def test_an_exception_of_the_users_function_reaches_the_user(workspace: Workspace) -> None:
    builder = StreamsBuilder()
    builder.stream("in", value_serde=serdes.String).map_values(int, name="parse").to("out", value_serde=serdes.Long)
    workspace.create("in")
    workspace.produce("in", ("k", "1", 1), ("k", "two", 2))
    app = workspace.streams(builder.build())

    with pytest.raises(
        TaskError, match=re.escape("step 'parse', topic 'in', partition 0, offset 1, key 'k'")
    ) as caught:
        app.run(until_caught_up=True)

    assert isinstance(caught.value.__cause__, ValueError)
    assert app.state is StreamsState.ERROR
    assert workspace.read("out", serdes.Long) == []


class Sometimes(Exception):
    pass


def test_replace_thread_goes_on_from_the_last_commit(workspace: Workspace, tmp_path: object) -> None:
    trap = f"{tmp_path}/trap"

    def fail_once(value: str) -> str:
        import os

        if value == "bad" and not os.path.exists(trap):
            open(trap, "w").close()
            raise Sometimes(value)
        return value.upper()

    builder = StreamsBuilder()
    upper = builder.stream("in", value_serde=serdes.String).map_values(fail_once)
    upper.group_by_key(value_serde=serdes.String).count(store="n").to_stream().to("out", value_serde=serdes.Long)
    workspace.settings["max_records_per_batch"] = 1
    workspace.create("in")
    workspace.produce("in", ("k", "good", 1), ("k", "bad", 2), ("k", "good", 3))
    app = workspace.streams(builder.build())
    seen: list[BaseException] = []

    def replace(error: BaseException) -> StreamThreadExceptionResponse:
        seen.append(error)
        return StreamThreadExceptionResponse.REPLACE_THREAD

    app.set_uncaught_exception_handler(replace)
    app.run(until_caught_up=True)

    assert workspace.read("out", serdes.Long) == [("k", 1, 1), ("k", 2, 2), ("k", 3, 3)]
    assert [type(error) for error in seen] == [TaskError]


def test_the_state_of_a_batch_that_failed_does_not_stay(workspace: Workspace) -> None:
    def counting(check: Callable[[str, int], None]) -> Topology:
        builder = StreamsBuilder()
        words = builder.stream("lines", value_serde=serdes.String)
        counts = words.group_by(lambda key, word: word, value_serde=serdes.String).count(store="counts")
        counts.to_stream().peek(check).to("counts", value_serde=serdes.Long)
        return builder.build()

    def refuse(word: str, count: int) -> None:
        if count == 2:
            raise ValueError("twice")

    workspace.create("lines")
    workspace.produce("lines", (None, "a", 1))
    workspace.streams(counting(refuse)).run(until_caught_up=True)
    for number in (2, 3):
        workspace.produce("lines", (None, "a", number))
        if number == 2:
            with pytest.raises(TaskError, match="twice"):
                workspace.streams(counting(refuse)).run(until_caught_up=True)
        workspace.streams(counting(lambda word, count: None)).run(until_caught_up=True)

    assert workspace.read("counts", serdes.Long) == [("a", 1, 1), ("a", 2, 2), ("a", 3, 3)]


@pytest.mark.parametrize(
    ("log", "is_latest"),
    [("offsets", True), ("commits", True), ("offsets", False)],
    ids=["begun by an older run", "done by an older run", "begun by a newer run"],
)
def test_a_batch_that_another_run_has_noted(workspace: Workspace, log: str, is_latest: bool) -> None:
    """The latest run goes on from there by itself; any other stops."""
    builder = StreamsBuilder()
    builder.stream("in", value_serde=serdes.String).map_values(str.upper).to("out", value_serde=serdes.String)
    app = workspace.streams(builder.build())
    app.start()
    workspace.produce("in", ("k", "one", 1))
    noted = workspace.folder / "app" / "checkpoint" / log
    wait_for(lambda: (noted / "0").exists() and caught_up(app), "the first batch")
    if not is_latest:
        with workspace.broker() as broker:
            cast(EngineBroker, broker).begin_run("app", "another")

    (noted / "1").write_bytes((noted / "0").read_bytes())
    workspace.produce("in", ("k", "two", 2))

    if is_latest:
        workspace.produce("in", ("k", "three", 3))
        wait_for(lambda: still_runs(app) and len(workspace.read("out")) == 3, "the others")
        app.close()
        assert [value for _, value, _ in workspace.read("out")] == ["ONE", "TWO", "THREE"]
        assert app.error is None
    else:
        wait_for(lambda: not app.state.is_running(), "it to stop")
        app.close()
        assert isinstance(app.error, SupersededError)
        assert re.search(r"was started again elsewhere \(run 2.*\): this one stops", str(app.error))


def test_a_task_that_does_not_see_the_end_of_its_records_fails(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark ends a task's input also when it could not get all of it."""
    dumps = SourceSettings.dumps
    monkeypatch.setattr(SourceSettings, "dumps", lambda whole: dumps(msgspec.structs.replace(whole, last_numbers=[])))
    workspace.create("lines", "counts")
    workspace.produce("lines", (None, "a b", 1))

    with pytest.raises(StreamsError, match="a part of a batch did not arrive, so its task writes nothing"):
        workspace.streams(word_count()).run(until_caught_up=True)
    assert workspace.read("counts", serdes.Long) == []

    monkeypatch.undo()
    workspace.streams(word_count()).run(until_caught_up=True)
    assert {word for word, _, _ in workspace.read("counts", serdes.Long)} == {"a", "b"}


def test_two_levels_in_one_batch_and_through_a_topic_of_the_users(workspace: Workspace) -> None:
    builder = StreamsBuilder()
    words = builder.stream("in", value_serde=serdes.String).flat_map_values(str.split)
    counts = words.group_by(lambda key, word: word, value_serde=serdes.String).count(store="first").to_stream()
    counts.map_values(str).to("between", value_serde=serdes.String)
    again = builder.stream("between", value_serde=serdes.String)
    again.group_by(lambda key, value: "all", value_serde=serdes.String).count(store="second").to_stream().to(
        "out", value_serde=serdes.Long
    )
    workspace.create("in", "between", "out", partitions=2)
    workspace.produce("in", ("k", "a b a", 1), ("j", "b c", 2))

    workspace.streams(builder.build()).run(until_caught_up=True)

    assert workspace.read("out", serdes.Long)[-1][1] == 5


class Ticker(Processor[str, str]):
    """Forwards the number of records it has seen, every 50 ms of wall clock."""

    def init(self, context):  # type: ignore[no-untyped-def]
        super().init(context)
        self.seen = 0
        context.schedule(50, PunctuationType.WALL_CLOCK_TIME, self.tick)

    def tick(self, now: int) -> None:
        self.context.forward(Record("tick", "tock", now))

    def process(self, record: Record[str, str]) -> None:
        self.seen += 1


def test_a_function_may_bring_megabytes_along(workspace: Workspace) -> None:
    workspace.create("in", "out")
    workspace.produce("in", ("a", "0299999", 1))
    words = [f"{number:07}" for number in range(300_000)]
    builder = StreamsBuilder()
    looked_up = builder.stream("in", value_serde=serdes.String).map_values(lambda value: words[int(value)])
    looked_up.group_by_key().reduce(max, store="largest").to_stream().to("out", value_serde=serdes.String)

    workspace.streams(builder.build()).run(until_caught_up=True)

    assert workspace.read("out", serdes.String) == [("a", "0299999", 1)]


def test_a_topic_that_comes_to_match_a_pattern_is_read(workspace: Workspace) -> None:
    workspace.create("in-a", "out")
    workspace.produce("in-a", ("k", "1", 1))
    builder = StreamsBuilder()
    builder.stream(re.compile("in-.*"), value_serde=serdes.String).to("out", value_serde=serdes.String)
    with workspace.streams(builder.build()) as app:
        app.start()
        wait_for(lambda: workspace.read("out") == [("k", "1", 1)], "the topic that was there")
        workspace.create("in-b")
        workspace.produce("in-b", ("k", "2", 2))

        wait_for(lambda: len(workspace.read("out")) == 2, "the topic that came")
    assert workspace.read("out") == [("k", "1", 1), ("k", "2", 2)]


def test_a_pattern_without_a_topic_waits_for_one(workspace: Workspace, caplog: pytest.LogCaptureFixture) -> None:
    builder = StreamsBuilder()
    counts = builder.stream(re.compile("in-.*"), value_serde=serdes.String).group_by_key().count()
    counts.to_stream().to("out", value_serde=serdes.Long)
    with workspace.streams(builder.build()) as app:
        app.start()
        wait_for(lambda: "no topic matches the pattern 'in-.*'" in caplog.text, "a word about it")
        assert app.state is StreamsState.REBALANCING
        workspace.create("in-a", partitions=2)
        workspace.produce("in-a", ("k", "1", 1), ("l", "2", 2))

        wait_for(lambda: len(workspace.read("out")) == 2, "the topic that came")
        wait_for(lambda: app.state is StreamsState.RUNNING, "its query")
    assert app.error is None


def test_an_application_that_waits_for_a_topic_can_be_closed(workspace: Workspace) -> None:
    builder = StreamsBuilder()
    builder.stream(re.compile("in-.*")).to("out")
    app = workspace.streams(builder.build())
    app.start()

    assert app.close(30)
    assert (app.state, app.error) == (StreamsState.NOT_RUNNING, None)
    with pytest.raises(TopicError, match="no topic matches the pattern"):
        workspace.streams(builder.build()).run(until_caught_up=True)


def test_the_wall_clock_ticks_when_nothing_comes(workspace: Workspace) -> None:
    builder = StreamsBuilder()
    builder.stream("in", value_serde=serdes.String).process(Ticker).to("out", value_serde=serdes.String)
    app = workspace.streams(builder.build())

    app.start()
    wait_for(lambda: len(workspace.read("out")) >= 3, "ticks")
    app.close()

    times = [timestamp for _, _, timestamp in workspace.read("out")]
    assert times == sorted(set(times))


def test_a_global_table_is_seen_by_every_task(workspace: Workspace) -> None:
    builder = StreamsBuilder()
    names = builder.global_table("names", value_serde=serdes.String)
    builder.stream("in", value_serde=serdes.String).left_join(
        names, lambda value, name: f"{value}/{name}", key=lambda key, value: value
    ).to("out", value_serde=serdes.String)
    workspace.create("in", "out", partitions=3)
    workspace.create("names", partitions=2)
    workspace.produce("names", ("x", "old", 1), ("y", "Y", 2))
    workspace.produce("in", *((f"k{number}", "x", 10) for number in range(6)))
    workspace.produce("names", ("x", "new", 20))
    workspace.produce("in", *((f"k{number}", "x", 30) for number in range(6)))

    workspace.streams(builder.build()).run(until_caught_up=True)

    found = workspace.read("out")
    assert sorted(value for _, value, timestamp in found if timestamp == 10) == ["x/old"] * 6
    assert sorted(value for _, value, timestamp in found if timestamp == 30) == ["x/new"] * 6


def test_the_same_application_cannot_run_twice(workspace: Workspace) -> None:
    app = workspace.streams(word_count())
    app.start()

    with pytest.raises(StreamsError, match="'app' is already running"):
        workspace.streams(word_count()).start()

    with pytest.raises(StreamsError, match="Close it first"):
        app.clean_up()
    app.close()


def test_clean_up_begins_at_the_beginning(workspace: Workspace) -> None:
    workspace.create("lines")
    workspace.produce("lines", (None, "a", 1))
    app = workspace.streams(word_count())
    app.run(until_caught_up=True)

    app.clean_up()
    workspace.streams(word_count()).run(until_caught_up=True)

    assert workspace.read("counts", serdes.Long) == [("a", 1, 1), ("a", 1, 1)]


def test_a_lost_checkpoint_is_not_a_new_beginning(workspace: Workspace) -> None:
    workspace.create("lines")
    workspace.produce("lines", (None, "a", 1))
    workspace.streams(word_count()).run(until_caught_up=True)
    workspace.settings["bootstrap_servers"] = workspace.config.bootstrap_servers
    workspace.settings["state_dir"] = str(workspace.folder / "elsewhere")

    with pytest.raises(StreamsError, match=f"headrace reset app --state-dir {workspace.folder}/elsewhere -b local:"):
        workspace.streams(word_count()).run(until_caught_up=True)


def test_metrics_as_prometheus_reads_them(workspace: Workspace) -> None:
    workspace.create("lines")
    workspace.produce("lines", (None, "a b", 1))
    app = workspace.streams(word_count())
    app.run(until_caught_up=True)

    text = app.prometheus()

    assert 'headrace_records_in_total{application_id="app"} 1.0' in text
    assert 'headrace_lag{application_id="app",partition="0",topic="lines"} 0.0' in text


def test_joined_topics_must_have_as_many_partitions(workspace: Workspace) -> None:
    builder = StreamsBuilder()
    table = builder.table("rows", value_serde=serdes.String)
    builder.stream("in", value_serde=serdes.String).join(table, lambda one, other: one).to("out")
    workspace.create("in", partitions=2)
    workspace.create("rows", partitions=3)

    with pytest.raises(TopologyError, match="'in' has 2, 'rows' has 3"):
        workspace.streams(builder.build()).start()


def test_wrong_arguments_are_named() -> None:
    from headrace import Streams

    with pytest.raises(TopologyError, match=r"build\(\)"):
        Streams(StreamsBuilder(), None)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"expected a StreamsConfig, got dict$"):  # and there may be secrets in it
        Streams(word_count(), {"application_id": "a"})  # type: ignore[arg-type]


def test_dead_letters_go_to_a_topic_that_is_made_for_them(workspace: Workspace) -> None:
    from headrace import DeadLetter

    builder = StreamsBuilder()
    builder.stream("in", value_serde=serdes.String).map_values(int).to("out", value_serde=serdes.Long)
    workspace.settings["processing_exception_handler"] = DeadLetter("bad")
    workspace.create("in")
    workspace.produce("in", ("k", "1", 1), ("k", "two", 2))

    app = workspace.streams(builder.build())
    app.run(until_caught_up=True)

    assert workspace.read("bad") == [("k", "two", 2)]
    assert app.metrics()["dropped_records_total"] == 1


def test_a_changed_topology_goes_on_with_the_stores_that_fit(workspace: Workspace) -> None:
    def changed(value_serde: Any) -> Topology:
        builder = StreamsBuilder()
        builder.stream("others").group_by_key().count(store="others").to_stream().to("other-counts")
        words = builder.stream("lines", value_serde=serdes.String).flat_map_values(str.split)
        grouped = words.filter(lambda key, word: word != "b").group_by(
            lambda key, word: word, value_serde=serdes.String, name="counts"
        )
        if value_serde is None:
            grouped.count(store="counts").to_stream().to("counts", value_serde=serdes.Long)
        else:
            kept = Materialized("counts", value_serde=value_serde)
            grouped.reduce(lambda one, other: other, store=kept).to_stream().to("counts", value_serde=value_serde)
        return builder.build()

    workspace.create("lines", "others")
    workspace.produce("lines", (None, "a b", 1))
    workspace.streams(word_count()).run(until_caught_up=True)
    workspace.produce("lines", (None, "a b", 2))

    workspace.streams(changed(None)).run(until_caught_up=True)
    assert workspace.read("counts", serdes.Long) == [("a", 1, 1), ("b", 1, 1), ("a", 2, 2)]

    with pytest.raises(StreamsError, match="store 'counts' has changed"):
        workspace.streams(changed(serdes.String)).run(until_caught_up=True)

    workspace.settings["drop_stores"] = ["counts"]
    workspace.produce("lines", (None, "z", 3))
    workspace.streams(changed(serdes.String)).run(until_caught_up=True)
    with workspace.broker() as broker:
        assert [(record.key, record.value) for record in broker.records("counts")][-1] == (b"z", b"z")


def test_a_topic_made_anew_is_not_taken_for_the_old_one(workspace: Workspace) -> None:
    workspace.create("lines")
    workspace.produce("lines", (None, "a", 1))
    workspace.streams(word_count()).run(until_caught_up=True)
    with workspace.broker() as broker:
        broker.delete_topic("lines")
    workspace.create("lines")
    workspace.produce("lines", (None, "a", 2), (None, "b", 3))

    with pytest.raises(StreamsError, match="topic 'lines' was deleted and created again"):
        workspace.streams(word_count()).run(until_caught_up=True)


def test_a_checkpoint_that_is_gone_is_not_a_new_beginning(workspace: Workspace) -> None:
    import shutil

    workspace.create("lines")
    workspace.produce("lines", (None, "a", 1))
    workspace.streams(word_count()).run(until_caught_up=True)
    shutil.rmtree(workspace.folder / "app" / "checkpoint")

    with pytest.raises(StreamsError, match=r"the checkpoint in .* is missing or older"):
        workspace.streams(word_count()).run(until_caught_up=True)
