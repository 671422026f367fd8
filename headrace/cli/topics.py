"""`headrace topics`: list, create, delete, describe and clean topics."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from headrace.brokers import LocalBroker, TopicInfo
from headrace.cli.options import DEFAULT_ADDRESS, Address, KafkaConfig, Traceback, check_topic, local_path, open_broker
from headrace.cli.output import print_rows
from headrace.errors import ConfigError

app = typer.Typer(help="List, create, delete and describe topics.", no_args_is_help=True)


@app.command("list")
def list_topics(
    address: Address = DEFAULT_ADDRESS, kafka_config: KafkaConfig = None, traceback: Traceback = False
) -> None:
    """List the topics with partitions, cleanup (delete or compact) and retention in milliseconds."""
    path = local_path(address)
    if path is not None and not path.exists():
        return
    with open_broker(address, kafka_config) as broker:
        rows = [(info.name, str(info.partitions), *_rules(info)) for info in broker.topics().values()]
    print_rows(("topic", "partitions", "cleanup", "retention (ms)"), rows)


@app.command()
def create(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="The topics to create.")],
    partitions: Annotated[int, typer.Option("--partitions", "-p", help="The number of partitions.")] = 1,
    compact: Annotated[bool, typer.Option("--compact", help="Keep the latest record of each key.")] = False,
    retention_ms: Annotated[
        int | None,
        typer.Option("--retention-ms", help="How long to keep records.", show_default="forever, or as the broker says"),
    ] = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Accept a topic that already exists, and leave it unchanged.")
    ] = False,
    address: Address = DEFAULT_ADDRESS,
    kafka_config: KafkaConfig = None,
    traceback: Traceback = False,
) -> None:
    """Create topics."""
    with open_broker(address, kafka_config, make=True) as broker:
        for name in names:
            if if_not_exists and name in broker.topics():
                print(f"topic '{name}' already exists")
                continue
            broker.create_topic(name, partitions, compact=compact, retention_ms=retention_ms)
            print(f"created topic '{name}' with {partitions} partition{'' if partitions == 1 else 's'}")


@app.command()
def delete(
    names: Annotated[list[str], typer.Argument(metavar="NAME...", help="The topics to delete.")],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    address: Address = DEFAULT_ADDRESS,
    kafka_config: KafkaConfig = None,
    traceback: Traceback = False,
) -> None:
    """Delete topics and their records. On a terminal it asks first."""
    with open_broker(address, kafka_config) as broker:
        for name in names:
            check_topic(broker, name, address)
        if not yes and sys.stdin.isatty():
            what = ", ".join(f"'{name}'" for name in names)
            if not typer.confirm(f"Delete {what} and all records?"):
                raise typer.Exit(1)
        for name in dict.fromkeys(names):
            broker.delete_topic(name)
            print(f"deleted topic '{name}'")


@app.command("describe")
def describe_topics(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME...]", help="The topics to describe.", show_default="all")
    ] = None,
    address: Address = DEFAULT_ADDRESS,
    kafka_config: KafkaConfig = None,
    traceback: Traceback = False,
) -> None:
    """Print the partitions of topics, each with its end offset: the offset of the next record."""
    with open_broker(address, kafka_config) as broker:
        for name in names or ():
            check_topic(broker, name, address)
        rows = [
            (name, str(partition), str(end))
            for name in names or broker.topics()
            for partition, end in broker.end_offsets(name).items()
        ]
    print_rows(("topic", "partition", "end offset"), rows)


@app.command()
def clean(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME...]", help="The topics to clean.", show_default="all")
    ] = None,
    address: Address = DEFAULT_ADDRESS,
    kafka_config: KafkaConfig = None,
    traceback: Traceback = False,
) -> None:
    """Apply retention and compaction: delete the records that they no longer keep."""
    with open_broker(address, kafka_config) as broker:
        if not isinstance(broker, LocalBroker):
            raise ConfigError(
                f"expected an embedded log (local:PATH), got '{address}'. Kafka brokers clean topics themselves"
            )
        for name in names or ():
            check_topic(broker, name, address)
        for name in names or broker.topics():
            gone = broker.clean(name)
            print(f"topic '{name}': {gone} record{'' if gone == 1 else 's'} deleted")


def _rules(info: TopicInfo) -> tuple[str, str]:
    return "compact" if info.compact else "delete", "-" if info.retention_ms is None else str(info.retention_ms)
