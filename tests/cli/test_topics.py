"""`headrace topics`.

Tests: headrace.cli.topics, headrace.cli.options
"""

from pathlib import Path

import pytest

from headrace.brokers import TopicInfo, connect
from tests.cli.running import Outcome, headrace, run, topics


def test_from_create_to_delete_with_the_real_command(folder: Path) -> None:
    assert run("topics", "create", "orders", "--partitions", "2") == Outcome(
        0, "created topic 'orders' with 2 partitions\n", ""
    )
    assert run("topics", "list") == Outcome(0, "orders\t2\tdelete\t-\n", "")
    assert run("topics", "describe", "orders") == Outcome(0, "orders\t0\t0\norders\t1\t0\n", "")
    assert run("topics", "delete", "orders") == Outcome(0, "deleted topic 'orders'\n", "")
    assert run("topics", "list") == Outcome(0, "", "")
    assert (folder / ".headrace" / "topics.db").is_file()


def test_create_takes_all_settings() -> None:
    headrace("topics", "create", "a", "b", "-p", "3", "--compact", "--retention-ms", "1000")

    with topics() as broker:
        assert broker.topics() == {name: TopicInfo(name, 3, True, 1000) for name in ("a", "b")}
    assert headrace("topics", "list").output == "a\t3\tcompact\t1000\nb\t3\tcompact\t1000\n"


def test_create_refuses_what_exists_unless_told() -> None:
    headrace("topics", "create", "a")

    again = headrace("topics", "create", "a")
    assert (again.status, again.errors) == (1, "error: topic 'a' already exists in '.headrace/topics.db'\n")
    assert headrace("topics", "create", "a", "--if-not-exists") == Outcome(0, "topic 'a' already exists\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a b"], "expected a name of up to 249 letters"),
        (["a", "--partitions", "0"], "topic 'a': expected at least 1 partition, got 0"),
        (["a", "--retention-ms", "-5"], "topic 'a': expected retention_ms of at least 0, got -5"),
        (["a", "-b", "localhost"], "expected 'local:PATH' or 'HOST:PORT,...', got 'localhost'"),
        (["a", "--kafka-config", "nowhere"], "--kafka-config: 'nowhere' cannot be read"),
    ],
)
def test_create_says_what_is_wrong(arguments: list[str], message: str) -> None:
    outcome = headrace("topics", "create", *arguments)

    assert outcome.status == 1
    assert message in outcome.errors


def test_list_makes_no_file(folder: Path) -> None:
    assert headrace("topics", "list") == Outcome(0, "", "")
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [["topics", "describe"], ["topics", "delete", "a"], ["topics", "clean"], ["produce", "a"], ["consume", "a"]],
    ids=" ".join,
)
def test_other_commands_say_that_there_is_no_file_and_make_none(folder: Path, arguments: list[str]) -> None:
    assert headrace(*arguments) == Outcome(
        1,
        "",
        "error: there are no topics yet: '.headrace/topics.db' does not exist. "
        "Create one with: headrace topics create NAME\n",
    )
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [["topics", "describe", "lnes"], ["topics", "delete", "lnes"], ["topics", "clean", "lnes"], ["consume", "lnes"]],
    ids=" ".join,
)
def test_a_misspelt_topic_gets_a_suggestion(arguments: list[str]) -> None:
    headrace("topics", "create", "lines", "other")

    assert headrace(*arguments) == Outcome(
        1,
        "",
        "error: there is no topic 'lnes' in local:.headrace/topics.db. Did you mean 'lines'? "
        "Create it with: headrace topics create lnes\n",
    )


def test_describe_shows_where_each_partition_ends() -> None:
    headrace("topics", "create", "a", "b", "-p", "2")
    headrace("produce", "b", "--partition", "1", given="1\n2\n")

    assert headrace("topics", "describe").output == "a\t0\t0\na\t1\t0\nb\t0\t0\nb\t1\t2\n"
    assert headrace("topics", "describe", "b").output == "b\t0\t0\nb\t1\t2\n"


def test_delete_deletes_all_or_none() -> None:
    headrace("topics", "create", "a", "b")

    assert headrace("topics", "delete", "a", "nope").status == 1
    assert headrace("topics", "delete", "a", "b", "a").output == "deleted topic 'a'\ndeleted topic 'b'\n"


def test_clean_applies_the_rules() -> None:
    headrace("topics", "create", "kept")
    headrace("topics", "create", "table", "--compact")
    headrace("produce", "table", "--key-separator", "=", given="a=1\na=2\nb=3\n")

    assert headrace("topics", "clean").output == "topic 'kept': 0 records deleted\ntopic 'table': 1 record deleted\n"
    assert headrace("consume", "table").output == "a\t2\nb\t3\n"


def test_the_address_comes_from_the_option_then_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_BOOTSTRAP_SERVERS", "local:environment.db")
    headrace("topics", "create", "a")
    headrace("topics", "create", "b", "-b", "local:option.db")
    headrace("topics", "create", "c", "--bootstrap-servers", "local:option.db")

    with connect("local:environment.db") as broker:
        assert list(broker.topics()) == ["a"]
    with connect("local:option.db") as broker:
        assert list(broker.topics()) == ["b", "c"]


def test_the_way_out_names_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    headrace("topics", "create", "a", "-b", "local:my topics.db")
    outcome = headrace("consume", "x", "-b", "local:my topics.db")
    assert outcome.errors.endswith("Create it with: headrace topics create x -b 'local:my topics.db'\n")

    monkeypatch.setenv("HEADRACE_BOOTSTRAP_SERVERS", "local:my topics.db")
    assert headrace("consume", "x").errors.endswith("Create it with: headrace topics create x\n")
