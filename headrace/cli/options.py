"""The options that several commands share, and the broker they name."""

from __future__ import annotations

import json
import os
import shlex
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from headrace.brokers import Broker, connect
from headrace.cli.reporting import want_traceback
from headrace.errors import ConfigError, TopicError, UnknownTopicError

ADDRESS_VARIABLE = "HEADRACE_BOOTSTRAP_SERVERS"
SETTINGS_VARIABLE = "HEADRACE_KAFKA"
DEFAULT_ADDRESS = "local:.headrace/topics.db"
_SHOWN = 20

Address: TypeAlias = Annotated[
    str,
    typer.Option(
        "--bootstrap-servers",
        "-b",
        metavar="ADDRESS",
        envvar=ADDRESS_VARIABLE,
        help="The address of the topics: local:PATH for an embedded log, HOST:PORT,... for a Kafka cluster.",
    ),
]
KafkaConfig: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--kafka-config",
        metavar="FILE",
        help="A file with settings of Kafka's clients, one NAME=VALUE per line, such as security.protocol=SSL.",
        show_default=f"{SETTINGS_VARIABLE}, which also adds settings that the file does not have",
    ),
]
Traceback: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--traceback", help="Show the Python traceback of an error.", callback=want_traceback, expose_value=False
    ),
]


def open_broker(address: str, kafka_config: Path | None, *, make: bool = False) -> Broker:
    """Open the topics of an address; create a missing file only with `make`."""
    path = local_path(address)
    if path is not None and not path.exists() and not make:
        raise TopicError(f"there are no topics yet: '{path}' does not exist. {_how_to_create('one', 'NAME', address)}")
    return connect(address, **client_settings(address, kafka_config))


def client_settings(address: str, kafka_config: Path | None) -> dict[str, Any]:
    """Return the settings of Kafka's clients: those in the file, then those in the environment."""
    others = {} if local_path(address) is not None else _settings_of_environment()
    return others | ({} if kafka_config is None else settings_in(kafka_config))


def local_path(address: str) -> Path | None:
    """Return the file of an embedded log; None for any other address."""
    scheme, _, path = address.partition(":")
    return Path(path).expanduser() if scheme == "local" and path else None


def check_topic(broker: Broker, topic: str, address: str) -> None:
    """Raise if the topic does not exist, and say how to create it."""
    known = list(broker.topics())
    if topic in known or _is_hidden(broker, topic):
        return
    close = get_close_matches(topic, known, n=1)
    where = f"there is no topic '{topic}' in {address}"
    if close:
        raise TopicError(f"{where}. Did you mean '{close[0]}'? {_how_to_create('it', topic, address)}")
    shown = ", ".join(known[:_SHOWN]) + (f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else "")
    raise TopicError(f"{where} (topics: {shown or 'none'}). {_how_to_create('it', topic, address)}")


def _is_hidden(broker: Broker, topic: str) -> bool:
    """Tell whether the topic exists but is not listed, because the user may not see it.

    The command then continues, and the broker's answer says which permission is missing.
    """
    try:
        broker.end_offsets(topic)
    except TopicError as error:
        return not isinstance(error, UnknownTopicError)
    return True


def settings_in(file: Path) -> dict[str, str]:
    """Return the settings in a properties file."""
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--kafka-config: '{file}' cannot be read: {error}") from error
    settings = {}
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.strip().startswith(("#", "!")):
            continue
        name, separator, value = line.partition("=")
        if not separator or not name.strip():
            raise ConfigError(f"--kafka-config: '{file}', line {number}: expected NAME=VALUE")
        settings[name.strip()] = value.strip()
    return settings


def _settings_of_environment() -> dict[str, Any]:
    """Return the settings in the environment, where applications find them too."""
    given = os.environ.get(SETTINGS_VARIABLE)
    if not given:
        return {}
    try:
        settings = json.loads(given)
    except ValueError:
        settings = None
    if not isinstance(settings, dict):
        raise ConfigError(f'{SETTINGS_VARIABLE}: expected a JSON object such as {{"security.protocol": "SSL"}}')
    return settings


def _how_to_create(what: str, topic: str, address: str) -> str:
    usual = os.environ.get(ADDRESS_VARIABLE) or DEFAULT_ADDRESS
    where = "" if address == usual else f" -b {shlex.quote(address)}"
    return f"Create {what} with: headrace topics create {topic}{where}"
