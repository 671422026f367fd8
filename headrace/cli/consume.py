"""`headrace consume`: print the records of a topic as lines."""

from __future__ import annotations

from itertools import islice
from typing import Annotated

import typer

from headrace.brokers import TopicRecord
from headrace.cli.options import DEFAULT_ADDRESS, Address, KafkaConfig, Traceback, check_topic, open_broker
from headrace.cli.output import LinePrinter
from headrace.cli.values import TextSerde, bytes_as_text
from headrace.errors import ConfigError, SerializationError

COLUMNS = ("key", "value", "timestamp", "partition", "offset", "headers")


def consume(
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.")],
    from_beginning: Annotated[
        bool,
        typer.Option("--from-beginning", help="Start at the first record. Without --follow this is the default."),
    ] = False,
    follow: Annotated[
        bool,
        typer.Option(
            "--follow", "-f", help="Keep waiting for new records, and skip older ones unless --from-beginning is given."
        ),
    ] = False,
    most: Annotated[
        int | None, typer.Option("--max", "-n", min=1, help="Stop after this many records.", show_default="no limit")
    ] = None,
    columns: Annotated[
        str,
        typer.Option("--print", metavar="COLUMNS", help=f"The columns to print, with commas: {', '.join(COLUMNS)}."),
    ] = "key,value",
    key_serde: Annotated[str, typer.Option("--key-serde", help="The serde of keys.")] = "String",
    value_serde: Annotated[str, typer.Option("--value-serde", help="The serde of values.")] = "String",
    null_marker: Annotated[str, typer.Option("--null-marker", help="The text to print for null.")] = "null",
    address: Address = DEFAULT_ADDRESS,
    kafka_config: KafkaConfig = None,
    traceback: Traceback = False,
) -> None:
    """Print the records of a topic, one per line, with a tab between key and value.

    Without --follow it prints the records that are there now and stops. With --follow it prints the records that
    arrive from now on, until Ctrl-C; with --from-beginning it prints the older ones first.
    """
    chosen = _columns(columns)
    texts = RecordTexts(
        TextSerde(key_serde, "--key-serde", null_marker), TextSerde(value_serde, "--value-serde", null_marker)
    )
    printer = LinePrinter(chosen, at_once=follow)
    with open_broker(address, kafka_config) as broker:
        check_topic(broker, topic, address)
        start = broker.end_offsets(topic) if follow and not from_beginning else None
        for record in islice(broker.records(topic, start=start, until_end=not follow), most):
            printer.print([texts.text(record, column) for column in chosen])


class RecordTexts:
    """The columns of a record as text."""

    def __init__(self, key_serde: TextSerde, value_serde: TextSerde) -> None:
        self._key_serde = key_serde
        self._value_serde = value_serde

    def text(self, record: TopicRecord, column: str) -> str:
        match column:
            case "key" | "value":
                return self._deserialized(record, column)
            case "headers":
                return ",".join(f"{name}={bytes_as_text(value)}" for name, value in record.headers)
            case _:
                return str(getattr(record, column))

    def _deserialized(self, record: TopicRecord, column: str) -> str:
        serde, data = (self._key_serde, record.key) if column == "key" else (self._value_serde, record.value)
        try:
            return serde.to_text(record.topic, data)
        except SerializationError as error:
            where = f"{column} of partition {record.partition}, offset {record.offset}"
            raise SerializationError(f"{where}: {error}") from error


def _columns(text: str) -> list[str]:
    chosen = [column.strip() for column in text.split(",")]
    unknown = [column for column in chosen if column not in COLUMNS]
    if unknown:
        raise ConfigError(f"--print: there is no column '{unknown[0]}'. Choose from {', '.join(COLUMNS)}")
    return chosen
