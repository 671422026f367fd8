"""`headrace/cli`: the commands on a Kafka cluster."""

import json
import signal
from pathlib import Path

import pytest

from headrace.brokers import Broker, connect
from headrace.dev.kafka_broker import DevBroker
from tests.cli.running import Outcome, headrace, run, started
from tests.kafka.naming import unique
from tests.kafka.secured import PASSWORDS, SecuredBroker

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("kafka")]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kafka: DevBroker) -> Path:
    """Work in an empty folder that has the broker's address in its environment."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADRACE_BOOTSTRAP_SERVERS", kafka.address)
    monkeypatch.delenv("HEADRACE_KAFKA", raising=False)
    monkeypatch.setenv("COLUMNS", "200")
    return tmp_path


def test_from_create_to_delete_with_the_real_command(kafka: DevBroker, folder: Path) -> None:
    name = unique("orders")

    assert run("topics", "create", name, "-p", "2", "--retention-ms", "5000", "-b", kafka.address) == Outcome(
        0, f"created topic '{name}' with 2 partitions\n", ""
    )
    assert f"{name}\t2\tdelete\t5000\n" in run("topics", "list").output
    assert run(
        "produce", name, "--key-separator", ":", "--timestamp", "7", "--header", "a=b", given="k:v\n"
    ) == Outcome(0, f"1 record to topic '{name}'\n", "")
    assert run("consume", name, "--print", "key,value,timestamp,offset,headers") == Outcome(0, "k\tv\t7\t0\ta=b\n", "")
    ends = run("topics", "describe", name).output
    assert sorted(line.split("\t")[2] for line in ends.splitlines()) == ["0", "1"]
    assert run("topics", "delete", name) == Outcome(0, f"deleted topic '{name}'\n", "")
    assert name not in run("topics", "list").output
    assert list(folder.iterdir()) == []


def test_create_refuses_what_exists_unless_told(kafka: DevBroker) -> None:
    name = unique("orders")
    headrace("topics", "create", name, "--compact")

    again = headrace("topics", "create", name)
    assert (again.status, again.errors) == (1, f"error: topic '{name}' already exists at {kafka.address}\n")
    assert headrace("topics", "create", name, "--if-not-exists").output == f"topic '{name}' already exists\n"
    assert f"{name}\t1\tcompact\t-\n" in headrace("topics", "list").output


def test_an_unknown_topic_may_be_a_slip(kafka: DevBroker) -> None:
    name = unique("orders")
    headrace("topics", "create", name)

    assert headrace("consume", name[:-1]).errors == (
        f"error: there is no topic '{name[:-1]}' in {kafka.address}. Did you mean '{name}'? "
        f"Create it with: headrace topics create {name[:-1]}\n"
    )


def test_cleaning_is_the_brokers_own_business(kafka: DevBroker) -> None:
    assert headrace("topics", "clean").errors == (
        f"error: expected an embedded log (local:PATH), got '{kafka.address}'. Kafka brokers clean topics themselves\n"
    )


def test_following_gets_what_is_there_and_what_comes_until_ctrl_c(broker: Broker) -> None:
    name = broker.create_topic(unique("lines")).name
    broker.produce(name, [(b"k", b"one")])
    consumer = started("consume", name, "--follow", "--from-beginning")
    assert consumer.stdout is not None
    assert consumer.stdout.readline() == "k\tone\n"

    broker.produce(name, [(b"k", b"two")])
    assert consumer.stdout.readline() == "k\ttwo\n"
    consumer.send_signal(signal.SIGINT)

    assert consumer.communicate() == ("", "")
    assert consumer.returncode == 130


def test_ctrl_c_ends_a_producer_quietly_and_keeps_its_lines(broker: Broker) -> None:
    name = broker.create_topic(unique("lines")).name
    producer = started("produce", name)
    assert producer.stdin is not None
    producer.stdin.write("hello\n")
    producer.stdin.flush()
    assert next(broker.records(name, until_end=False)).value == b"hello"

    producer.send_signal(signal.SIGINT)

    assert producer.communicate() == ("", "")
    assert (producer.returncode, broker.end_offsets(name)) == (130, {0: 1})


def test_many_lines_come_back_as_they_were(broker: Broker) -> None:
    name = broker.create_topic(unique("lines")).name
    text = "".join(f"key {number}\tvalue {number}\n" for number in range(20_000))

    headrace("produce", name, "--key-separator", "\\t", given=text)

    assert headrace("consume", name).output == text


def test_settings_come_from_a_file(secured: SecuredBroker, folder: Path) -> None:
    settings = [f"{name} = {value}" for name, value in secured.settings("admin").items()]
    (folder / "client.properties").write_text("\n".join(["# how to get in", "", *settings, "! done"]))
    where = ["-b", secured.address, "--kafka-config", "client.properties"]
    name = unique("orders")

    assert headrace("topics", "create", name, *where).status == 0
    assert headrace("produce", name, *where, given="hello\n").status == 0
    assert headrace("consume", name, "--print", "value", *where).output == "hello\n"
    assert headrace("topics", "describe", name, *where).output == f"{name}\t0\t1\n"
    assert headrace("topics", "delete", name, *where).status == 0


def test_settings_come_from_the_environment_as_for_applications(
    secured: SecuredBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_KAFKA", json.dumps(secured.settings("admin")))

    assert headrace("topics", "list", "-b", secured.address).status == 0
    assert headrace("topics", "create", "lines", "-b", "local:topics.db").status == 0  # which needs none


def test_a_wrong_password_is_told_in_a_line_without_it(secured: SecuredBroker, folder: Path) -> None:
    settings = {**secured.settings("ann"), "sasl.password": "sesame"}
    (folder / "client.properties").write_text("\n".join(f"{name}={value}" for name, value in settings.items()))

    outcome = run("topics", "list", "-b", secured.address, "--kafka-config", "client.properties", "--traceback")

    assert outcome.status == 1
    assert f"error: cannot list the topics at {secured.address}: the broker did not accept the login" in outcome.errors
    assert "sesame" not in outcome.errors
    assert PASSWORDS["ann"] not in outcome.errors


@pytest.mark.parametrize(
    ("command", "needed"),
    [
        (["consume"], "Read"),
        (["produce"], "Write"),
        (["topics", "describe"], "Describe"),
        (["topics", "delete", "--yes"], "Delete"),
    ],
    ids=["consume", "produce", "describe", "delete"],
)
def test_a_user_who_may_not_see_a_topic_is_told_which_acl_is_missing(
    secured: SecuredBroker, monkeypatch: pytest.MonkeyPatch, command: list[str], needed: str
) -> None:
    name = unique("orders")
    with connect(secured.address, **secured.settings("admin")) as broker:
        broker.create_topic(name)
    monkeypatch.setenv("HEADRACE_KAFKA", json.dumps(secured.settings("ann")))

    errors = headrace(*command, name, "-b", secured.address).errors

    assert f"user 'ann' is not allowed to. This needs an ACL that allows {needed} on topic '{name}'" in errors


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "--kafka-config: 'client.properties' cannot be read: "),
        ("security.protocol", "--kafka-config: 'client.properties', line 1: expected NAME=VALUE"),
        (
            "group.id=g",
            "Kafka setting 'group.id' cannot be set: the group belongs to the application",
        ),
        ("sasl.jaas.config=x", "Instead: sasl.username and sasl.password"),
    ],
)
def test_a_file_of_settings_that_is_wrong(folder: Path, text: str | None, message: str) -> None:
    if text is not None:
        (folder / "client.properties").write_text(text)

    outcome = headrace("topics", "list", "--kafka-config", "client.properties")

    assert outcome.status == 1
    assert message in outcome.errors


def test_the_environment_is_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_KAFKA", "security.protocol=SSL")

    assert headrace("topics", "list").errors == (
        'error: HEADRACE_KAFKA: expected a JSON object such as {"security.protocol": "SSL"}\n'
    )


def test_an_application_is_run_and_reset(kafka: DevBroker, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = unique("app")
    (folder / "words.py").write_text(
        f"""
from headrace import StreamsBuilder, serdes

def build():
    builder = StreamsBuilder()
    lines = builder.stream("{name}-lines", value_serde=serdes.String)
    lines.group_by(lambda key, line: line, value_serde=serdes.String).count(store="lines").to_stream().to(
        "{name}-counts", value_serde=serdes.Long
    )
    return builder.build()
""",
        encoding="utf-8",
    )
    (folder / "client.properties").write_text("session.timeout.ms=6000\nfetch.min.bytes=1\n", encoding="utf-8")
    monkeypatch.setenv("HEADRACE_STATE_DIR", str(folder / "state"))
    headrace("topics", "create", f"{name}-lines")
    headrace("produce", f"{name}-lines", given="tea\ncake\n")
    command = ["run", "words:build", "--until-caught-up", "--application-id", name, "--kafka-config"]

    ran = run(*command, "client.properties")
    assert ran.status == 0, ran.errors
    assert "CONFWARN" not in ran.errors  # a setting of readers is none of writers: the clients say so, each of them
    reset = run("reset", name, "--yes", "--kafka-config", "client.properties")

    assert (reset.status, reset.output) == (0, f"reset application '{name}'\n"), reset.errors
    left = [line.split("\t")[0] for line in headrace("topics", "list").output.splitlines()]
    assert sorted(topic for topic in left if topic.startswith(name)) == [f"{name}-counts", f"{name}-lines"]
    assert not (folder / "state" / name / "checkpoint").exists()
    counts = headrace("consume", f"{name}-counts", "--value-serde", "Long", "--print", "key,value").output
    assert sorted(counts.splitlines()) == ["cake\t1", "tea\t1"]
