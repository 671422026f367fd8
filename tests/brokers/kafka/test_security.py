"""`error_messages` and `settings`, on a broker with TLS, logins and ACLs.

A client with access gets in, one without is told why, and no message shows a secret.
"""

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AclOperation

from headrace.brokers import Broker, connect
from headrace.errors import HeadraceError, StreamsError, TopicError
from tests.kafka.certificates import make_certificates
from tests.kafka.naming import unique
from tests.kafka.secured import PASSWORDS, SecuredBroker

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("secured")]

Open = Callable[..., Broker]


@pytest.fixture
def lines(secured: SecuredBroker) -> str:
    """Create a topic with one record, as a user who may."""
    with connect(secured.address, **secured.settings("admin")) as broker:
        name = broker.create_topic(unique("lines")).name
        broker.produce(name, [(b"k", b"v", 1)])
        return name


@pytest.fixture
def ann(secured: SecuredBroker) -> Broker:
    return connect(secured.address, **secured.settings("ann"))


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "PLAIN", "OAUTHBEARER"])
def test_a_known_user_gets_in(secured: SecuredBroker, mechanism: str) -> None:
    with connect(secured.address, **secured.settings("admin", mechanism)) as broker:
        name = broker.create_topic(unique("lines"), 2).name

        assert broker.produce(name, [(b"k", b"v", 1), (b"l", None, 2)]) == 2
        assert sorted(record.timestamp for record in broker.records(name)) == [1, 2]
        broker.delete_topic(name)


def test_a_token_may_come_from_a_function(secured: SecuredBroker) -> None:
    with connect(secured.address, **secured.with_token_of_a_function("admin")) as broker:
        assert isinstance(broker.topics(), dict)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sasl.password": "sesame-1"}, "the broker did not accept the login .*invalid credentials"),
        ({"sasl.username": "nobody"}, "the broker did not accept the login"),
        ({"sasl.mechanism": "PLAIN", "sasl.password": "sesame-1"}, "did not accept the login .*Invalid username or"),
        ({"sasl.mechanism": "SCRAM-SHA-512"}, r"did not accept the login .*supported mechanisms: .*SCRAM-SHA-256"),
        ({"security.protocol": "SASL_PLAINTEXT"}, "no answer from .* Check the address, .* and security.protocol"),
    ],
    ids=["password", "user", "plain password", "mechanism", "protocol"],
)
def test_an_unknown_user_is_told_why(secured: SecuredBroker, given: dict[str, Any], message: str) -> None:
    settings = {**secured.settings("ann"), "socket.timeout.ms": 5000, **given}

    with connect(secured.address, **settings) as broker, pytest.raises(StreamsError, match=message) as raised:
        broker.topics()

    assert secured.address in str(raised.value)


def test_a_certificate_of_somebody_else_is_not_trusted(secured: SecuredBroker, tmp_path: Path) -> None:
    other = make_certificates(tmp_path, "other")
    settings = {**secured.settings("ann"), "ssl.ca.location": str(other.authority)}

    with (
        connect(secured.address, **settings) as broker,
        pytest.raises(StreamsError, match=r"no secure connection .*certificate verify failed.*begin with 'ssl\.'"),
    ):
        broker.topics()


@pytest.mark.parametrize(
    ("allowed", "call", "message"),
    [
        ([], lambda b, t: b.records(t), "cannot find topic '{t}' at {a}: {u}. This needs an ACL that allows Read"),
        ([], lambda b, t: b.produce(t, []), "cannot find topic '{t}' at {a}: {u}. This needs an ACL that allows Write"),
        (
            [],
            lambda b, t: b.delete_topic(t),
            "cannot find topic '{t}' at {a}: {u}. This needs an ACL that allows Delete",
        ),
        (
            [],
            lambda b, t: b.end_offsets(t),
            "cannot find topic '{t}' at {a}: {u}. This needs an ACL that allows Describe",
        ),
        (["DESCRIBE"], lambda b, t: list(b.records(t)), "cannot read topic '{t}' at {a}: {u}. This .* allows Read"),
        (["READ"], lambda b, t: b.produce(t, [(b"k", b"v")]), "cannot write to topic '{t}' at {a}: {u}. This .* Write"),
        (["READ"], lambda b, t: b.delete_topic(t), "cannot delete topic '{t}' at {a}: {u}. This .* allows Delete"),
    ],
    ids=["read", "write", "delete", "ends", "only describe", "write, only read", "delete, only read"],
)
def test_a_user_without_permission_is_told_which_acl_is_missing(
    secured: SecuredBroker, ann: Broker, lines: str, allowed: list[str], call: Any, message: str
) -> None:
    for operation in allowed:
        secured.allow("ann", AclOperation[operation], lines)
    expected = message.format(t=lines, a=secured.address, u="user 'ann' is not allowed to")

    with ann, pytest.raises(TopicError, match=f"{expected} on topic '{lines}'"):
        call(ann, lines)


def test_a_user_who_may_not_create_topics_is_told_why(secured: SecuredBroker, ann: Broker) -> None:
    name = unique("lines")

    with ann, pytest.raises(TopicError, match=f"cannot create topic '{name}' .* allows Create on topic '{name}'"):
        ann.create_topic(name)


def test_a_topic_to_read_is_all_it_takes_to_read_it(secured: SecuredBroker, ann: Broker, lines: str) -> None:
    secured.allow("ann", AclOperation.READ, lines)

    with ann:
        assert [record.value for record in ann.records(lines)] == [b"v"]
        assert ann.topics()[lines].partitions == 1
        assert ann.end_offsets(lines) == {0: 1}


def test_a_topic_to_write_is_all_it_takes_to_write_it(secured: SecuredBroker, ann: Broker, lines: str) -> None:
    secured.allow("ann", AclOperation.WRITE, lines)

    with ann:
        assert ann.produce(lines, [(b"k", b"2")]) == 1


def test_no_message_shows_a_secret(secured: SecuredBroker, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret = "sesame-4713"
    wrong: list[dict[str, Any]] = [
        {"sasl.password": secret},
        {"sasl.password": secret, "sasl.mechanism": "PLAIN"},
        {"sasl.mechanism": "OAUTHBEARER", "sasl.oauthbearer.config": f"word={secret}"},
        {"ssl.key.pem": secret},
        {"ssl.key.password": secret, "ssl.key.location": "/nowhere"},
        {"sasl.password": secret, "no.such.setting": secret},
    ]
    said = []
    for given in wrong:
        settings = {**secured.settings("ann"), "enable.sasl.oauthbearer.unsecure.jwt": True, **given}
        with pytest.raises(HeadraceError) as raised, connect(secured.address, **settings) as broker:
            broker.topics()
        said += [str(raised.value), repr(broker.connection)]  # type: ignore[attr-defined]

    said += [record.getMessage() for record in caplog.records]
    assert not [message for message in said if secret in message or PASSWORDS["ann"] in message]
