"""`headrace produce`: append lines to a topic."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from io import BufferedReader
from typing import Annotated, cast

import typer

from headrace.brokers.broker import Produced
from headrace.cli.options import DEFAULT_ADDRESS, Address, KafkaConfig, Traceback, check_topic, open_broker
from headrace.cli.values import TextSerde
from headrace.errors import ConfigError, SerializationError
from headrace.records import Headers

_CHUNK = 1 << 20


def produce(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic. It must exist.")],
    key_separator: Annotated[
        str | None,
        typer.Option(
            "--key-separator", help="The text between key and value; \\t is a tab. Without it records have no key."
        ),
    ] = None,
    key_serde: Annotated[str, typer.Option("--key-serde", help="The serde of keys.")] = "String",
    value_serde: Annotated[str, typer.Option("--value-serde", help="The serde of values.")] = "String",
    partition: Annotated[
        int | None, typer.Option("--partition", help="The partition for all records.", show_default="the key decides")
    ] = None,
    timestamp: Annotated[
        int | None,
        typer.Option("--timestamp", help="The timestamp for all records, in milliseconds.", show_default="now"),
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", metavar="NAME=VALUE", help="A header for all records; repeatable.")
    ] = None,
    null_marker: Annotated[
        str | None, typer.Option("--null-marker", help="The text that stands for a null key or value.")
    ] = None,
    address: Address = DEFAULT_ADDRESS,
    kafka_config: KafkaConfig = None,
    traceback: Traceback = False,
) -> None:
    """Append the lines of standard input to a topic, one record per line.

    Lines are written as they arrive. If a line is wrong, the lines before it stay in the topic.
    """
    lines = LineReader(
        topic,
        _separator(key_separator),
        TextSerde(key_serde, "--key-serde", null_marker),
        TextSerde(value_serde, "--value-serde", null_marker),
        timestamp,
        [_header(text) for text in header or ()],
    )
    with open_broker(address, kafka_config) as broker:
        check_topic(broker, topic, address)
        broker.produce(topic, [], partition)  # refuses a wrong partition before it reads any input
        if sys.stdin.isatty():
            print("Type one record per line. Press Ctrl-D to finish.", file=sys.stderr)
        count = 0
        for records in lines.batches():
            count += broker.produce(topic, records, partition)
    print(f"{count} record{'' if count == 1 else 's'} to topic '{topic}'")


class LineReader:
    """Turn lines into records."""

    def __init__(
        self,
        topic: str,
        separator: str | None,
        key_serde: TextSerde,
        value_serde: TextSerde,
        timestamp: int | None,
        headers: Headers,
    ) -> None:
        self._topic = topic
        self._separator = separator
        self._key_serde = key_serde
        self._value_serde = value_serde
        self._timestamp = timestamp
        self._headers = headers

    def batches(self) -> Iterator[list[Produced]]:
        """Yield the records of the complete lines that have arrived; raise for a wrong line after those before it."""
        number = 0
        for lines in _available_lines():
            records: list[Produced] = []
            for line in lines:
                try:
                    records.append(self._record(line))
                except SerializationError as error:
                    yield records
                    before = {0: "nothing was produced", 1: "the line before it was produced"}
                    said = before.get(number, f"the {number} lines before it were produced")
                    raise SerializationError(f"line {number + 1}: {error} ({said})") from error
                number += 1
            yield records

    def _record(self, line: bytes) -> Produced:
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise SerializationError(f"expected UTF-8 text, got {line!r}: {error}") from error
        key = None
        if self._separator is not None:
            key_text, found, text = text.partition(self._separator)
            if not found:
                raise SerializationError(f"expected a key, {self._separator!r} and a value, got {key_text!r}")
            key = self._key_serde.to_bytes(self._topic, key_text)
        return key, self._value_serde.to_bytes(self._topic, text), self._timestamp, self._headers


def _available_lines() -> Iterator[list[bytes]]:
    """Yield lines of standard input as they arrive; the last one may lack its newline."""
    stdin = cast("BufferedReader", sys.stdin.buffer)
    rest = b""
    while piece := stdin.read1(_CHUNK):
        *lines, rest = (rest + piece).split(b"\n")
        if lines:
            yield [line.removesuffix(b"\r") for line in lines]
    if rest:
        yield [rest]


def _separator(text: str | None) -> str | None:
    if text == "":
        raise ConfigError("--key-separator: expected at least one character, got ''")
    return "\t" if text == "\\t" else text


def _header(text: str) -> tuple[str, bytes]:
    name, separator, value = text.partition("=")
    if not separator:
        raise ConfigError(f"--header: expected NAME=VALUE, got '{text}'")
    return name, value.encode()
