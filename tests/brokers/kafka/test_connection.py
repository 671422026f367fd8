"""`connection` and `settings`: addresses and settings are checked before a connection is made."""

import logging
import pickle
import subprocess
import sys
from typing import Any

import pytest

from headrace.brokers import connect
from headrace.brokers.kafka.connection import Connection
from headrace.brokers.kafka.settings import FIXED, JAVA_ONLY
from headrace.errors import ConfigError


@pytest.mark.parametrize("address", ["localhost:9092", "a:1,b.example.org:65535", "[::1]:9092", "10.0.0.1:9092, b:1"])
def test_an_address_is_one_or_more_servers(address: str) -> None:
    assert Connection(address).address == address


@pytest.mark.parametrize(
    "address",
    ["", "local", "local:", "topics.db", "host", "host:", "host:0", "host:65536", "host:port", "a:1,", "a b:1"],
)
def test_connect_says_what_an_address_looks_like(address: str) -> None:
    with pytest.raises(ConfigError) as raised:
        connect(address)
    assert str(raised.value) == f"expected 'local:PATH' or 'HOST:PORT,...', got {address!r}"


@pytest.mark.parametrize("name", FIXED)
def test_settings_that_headrace_fixes_cannot_be_set(name: str) -> None:
    with pytest.raises(ConfigError, match=f"Kafka setting '{name}' cannot be set: {FIXED[name]}"):
        connect("localhost:9092", **{name: "x"})


@pytest.mark.parametrize("name", JAVA_ONLY)
def test_a_setting_of_java_is_told_from_ours(name: str) -> None:
    with pytest.raises(ConfigError, match=f"Kafka setting '{name}' belongs to Java's clients. Instead: "):
        connect("localhost:9092", **{name: "x"})


@pytest.mark.parametrize(
    ("name", "instead", "value"),
    [
        ("buffer.memory", "queue.buffering.max.kbytes", 32768),
        ("compression.zstd.level", "compression.level", 3),
        ("default.api.timeout.ms", "socket.timeout.ms", 60000),
        ("fetch.max.wait.ms", "fetch.wait.max.ms", 500),
        ("max.block.ms", "socket.timeout.ms", 60000),
        ("max.request.size", "message.max.bytes", 1048576),
    ],
)
def test_a_setting_of_java_that_has_another_name_here_gets_it(name: str, instead: str, value: int) -> None:
    with pytest.raises(ConfigError, match=f"Kafka setting '{name}' belongs to Java's clients. Instead: {instead}"):
        connect("localhost:9092", **{name: value})
    assert Connection("localhost:9092", {instead: value}).producer()  # the client library knows it


@pytest.mark.parametrize("name", ["ssl.protocol", "ssl.enabled.protocols"])
def test_the_version_of_tls_is_not_set(name: str) -> None:
    with pytest.raises(ConfigError, match=f"'{name}' belongs to Java's clients. Instead: none: the clients take the h"):
        connect("localhost:9092", **{name: "TLSv1.3"})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"no.such.setting": 1}, 'No such configuration property: "no.such.setting"'),
        ({"security.protocol": "TLS"}, 'Invalid value "TLS" for configuration property "security.protocol"'),
        ({"socket.timeout.ms": "soon"}, "Kafka setting 'socket.timeout.ms': expected a number, got 'soon'"),
        ({"ssl.ca.location": "/nowhere", "security.protocol": "SSL"}, "ssl.ca.location failed"),
    ],
)
def test_settings_that_the_client_library_refuses(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message), connect("localhost:9092", **settings) as broker:
        broker.topics()


def test_a_connection_can_be_sent_to_another_process() -> None:
    sent = pickle.loads(pickle.dumps(Connection("a:1", {"sasl.password": "abc", "socket.timeout.ms": 1500})))

    assert (sent.address, sent.settings["sasl.password"], sent.patience) == ("a:1", "abc", 1.5)
    assert repr(sent) == "Connection('a:1')"


def test_messages_of_the_client_library_are_logged_and_not_printed() -> None:
    program = """
import logging, sys
from headrace.brokers import connect
from headrace.errors import StreamsError
if sys.argv[1] == "logged":
    logging.basicConfig(level=logging.INFO)
with connect("localhost:1", **{"socket.timeout.ms": 300}) as broker:
    try:
        broker.topics()
    except StreamsError:
        pass
"""
    printed = {
        kind: subprocess.run([sys.executable, "-c", program, kind], capture_output=True, text=True, check=True).stderr
        for kind in ("plain", "logged")
    }

    assert printed["plain"] == ""
    assert printed["logged"].startswith("ERROR:headrace.kafka:FAIL")
    assert logging.getLogger("headrace.kafka").handlers
