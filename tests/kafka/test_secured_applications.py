"""`headrace/application`: applications on a broker with TLS, logins and ACLs."""

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AclOperation, ResourceType

from headrace import HeadraceError, Streams, StreamsBuilder, StreamsConfig, serdes
from headrace.brokers import connect
from tests.kafka.naming import unique
from tests.kafka.secured import PASSWORDS, SecuredBroker
from tests.spark.applications import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("secured")]


class Counting:
    """A count of what is in a topic, as Ann runs it."""

    def __init__(self, folder: Path, secured: SecuredBroker) -> None:
        self.name, self.folder, self.secured = unique("counting"), folder, secured
        self.lines, self.counts = f"{self.name}-lines", f"{self.name}-counts"
        self.internal = [f"{self.name}-commits", f"{self.name}-words-changelog"]
        with connect(secured.broker.address) as broker:
            for topic in (self.lines, self.counts):
                broker.create_topic(topic)
            broker.produce(self.lines, [(b"k", b"tea", 1000)])

    def allow_all_but_writing(self) -> None:
        allow = self.secured.allow
        allow("ann", AclOperation.READ, self.lines)
        for topic in self.internal:
            for operation in (AclOperation.CREATE, AclOperation.READ, AclOperation.WRITE):
                allow("ann", operation, topic)
        allow("ann", AclOperation.DESCRIBE, self.counts)
        allow("ann", AclOperation.READ, self.name, ResourceType.GROUP)
        self.secured.allow_transactions("ann", self.name)

    def app(self, kafka: dict[str, Any] | None = None) -> Streams:
        builder = StreamsBuilder()
        counts = builder.stream(self.lines, value_serde=serdes.String).group_by_key().count(store="words")
        counts.to_stream().to(self.counts, value_serde=serdes.Long)
        config = StreamsConfig(
            application_id=self.name,
            bootstrap_servers=self.secured.address,
            state_dir=self.folder,
            master="local[*]",
            kafka=kafka or self.secured.settings("ann"),
        )
        return Streams(builder.build(), config)

    def written(self) -> int:
        with connect(self.secured.broker.address) as broker:
            return sum(1 for _ in broker.records(self.counts))


@pytest.fixture
def counting(tmp_path: Path, secured: SecuredBroker) -> Counting:
    return Counting(tmp_path, secured)


def test_a_user_with_the_documented_acls_can_run_an_application(counting: Counting) -> None:
    counting.allow_all_but_writing()
    counting.secured.allow("ann", AclOperation.WRITE, counting.counts)

    counting.app().run(until_caught_up=True)

    wait_for(lambda: counting.written() == 1, "the count", 20, every=0.1)


@pytest.mark.parametrize("login", ["PLAIN", "oauth_cb"])
def test_an_application_runs_with_every_kind_of_login(counting: Counting, login: str) -> None:
    counting.allow_all_but_writing()
    counting.secured.allow("ann", AclOperation.WRITE, counting.counts)
    secured = counting.secured
    by_function = login == "oauth_cb"

    app = counting.app(secured.with_token_of_a_function("ann") if by_function else secured.settings("ann", login))
    app.run(until_caught_up=True)

    wait_for(lambda: counting.written() == 1, "the count", 20, every=0.1)


def test_a_topic_that_may_not_be_seen_is_not_taken_for_missing(counting: Counting) -> None:
    with pytest.raises(
        HeadraceError, match=f"allows Read or Write, or Create if there is none, on topic '{counting.lines}'"
    ):
        counting.app().run(until_caught_up=True)


def test_a_reset_says_what_it_may_not_do(counting: Counting) -> None:
    counting.allow_all_but_writing()
    counting.secured.allow("ann", AclOperation.WRITE, counting.counts)
    app = counting.app(counting.secured.settings("ann", **{"session.timeout.ms": "6000"}))
    app.run(until_caught_up=True)
    for topic in counting.internal:
        counting.secured.allow("ann", AclOperation.DELETE, topic)

    with pytest.raises(HeadraceError, match=f"ACL that allows Delete on group '{counting.name}'"):
        app.clean_up()
    counting.secured.allow("ann", AclOperation.DELETE, counting.name, ResourceType.GROUP)
    app.clean_up()


def test_a_wrong_password_is_told_and_nothing_is_written(counting: Counting) -> None:
    app = counting.app(counting.secured.settings("ann", **{"sasl.password": "wrong-4713"}))

    with pytest.raises(HeadraceError, match="did not accept the login") as raised:
        app.run(until_caught_up=True)

    assert "4713" not in str(raised.value)
    assert counting.written() == 0


def test_a_missing_acl_is_told_and_nothing_is_written(counting: Counting, caplog: pytest.LogCaptureFixture) -> None:
    counting.allow_all_but_writing()

    with pytest.raises(HeadraceError, match=f"ACL that allows .*Write on topic '{counting.counts}'") as raised:
        counting.app().run(until_caught_up=True)

    assert PASSWORDS["ann"] not in f"{raised.value!r} {caplog.text}"
    assert counting.written() == 0


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (ResourceType.TRANSACTIONAL_ID, "Write on transactional ids that begin with"),
        (ResourceType.GROUP, "Read on group"),
    ],
    ids=["transactional id", "group"],
)
def test_a_missing_acl_of_a_transaction_is_told(counting: Counting, kind: ResourceType, message: str) -> None:
    counting.allow_all_but_writing()
    counting.secured.allow("ann", AclOperation.WRITE, counting.counts)
    counting.secured.forbid("ann", counting.name, kind)

    with pytest.raises(HeadraceError, match=f"{message} '{counting.name}'"):
        counting.app().run(until_caught_up=True)

    assert counting.written() == 0
