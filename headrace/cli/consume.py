"""`headrace consume`: the records of a topic, as lines."""

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
        typer.Option("--from-beginning", help="Begin with the first record: what it does anyway without --follow."),
    ] = False,
    follow: Annotated[
        bool,
        typer.Option("--follow", "-f", help="Wait for new records, and begin with those unless --from-beginning."),
    ] = False,
    most: Annotated[
        int | None, typer.Option("--max", "-n", min=1, help="End after this many records.", show_default="no limit")
    ] = None,
    columns: Annotated[
        str, typer.Option("--print", metavar="PARTS", help=f"What to print, with commas: of {', '.join(COLUMNS)}.")
    ] = "key,value",
    key_serde: Annotated[str, typer.Option("--key-serde", help="The serde of keys.")] = "String",
    value_serde: Annotated[str, typer.Option("--value-serde", help="The serde of values.")] = "String",
    null_marker: Annotated[str, typer.Option("--null-marker", help="What to print for null.")] = "null",
    address: Address = DEFAULT_ADDRESS,
    kafka_config: KafkaConfig = None,
    traceback: Traceback = False,
) -> None:
    """Print the records of a topic, one a line, with tabs between key and value.

    Without --follow: from the first record to what is the last one now. With --follow: the records that come from now
    on, until Ctrl-C; with --from-beginning those that are there before them.
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
    """The parts of a record as text."""

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
        raise ConfigError(f"--print: expected some of {', '.join(COLUMNS)}, got '{unknown[0]}'")
    return chosen
