"""`headrace demo`: run a well-known application over generated data."""

from __future__ import annotations

import shutil
import sys
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from headrace.brokers import Broker, connect
from headrace.cli.options import Traceback
from headrace.demos import DEMOS, Demo, Outputs
from headrace.errors import ConfigError

FOLDER = Path(".headrace") / "demos"
_CHUNK = 10_000


def demo(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of {', '.join(DEMOS)}.")] = "word_count",
    records: Annotated[
        int | None, typer.Option("--records", min=1, help="How many records to generate.", show_default="20000")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Another seed generates other records.")] = 7,
    partitions: Annotated[int, typer.Option("--partitions", min=1, help="The number of partitions of each topic.")] = 2,
    master: Annotated[str, typer.Option("--master", help="Spark's master.")] = "local[*]",
    traceback: Traceback = False,
) -> None:
    """Run a demo on Spark and the embedded log: generate records, process them and print the results.

    Every run starts from scratch. The topics stay in .headrace/demos/NAME, so that you can look at them.
    """
    wanted = name.replace("-", "_")
    if wanted not in DEMOS:
        raise ConfigError(f"there is no demo '{name}' (demos: {', '.join(DEMOS)})")
    run_demo(DEMOS[wanted], records, seed, partitions, master)


def run_demo(chosen: Demo, records: int | None, seed: int, partitions: int, master: str) -> None:
    """Run a demo in its own folder."""
    # Imported here to save time: `headrace --help` does not need Spark.
    from headrace import Streams, StreamsConfig
    from headrace.application.folder import ApplicationFolder

    folder = FOLDER / chosen.name
    config = StreamsConfig(
        application_id=f"demo-{chosen.name.replace('_', '-')}",
        bootstrap_servers=f"local:{folder}/topics.db",
        state_dir=str(folder),
        master=master,
        num_partitions=partitions,
    )
    ApplicationFolder(config.state_dir, config.application_id).check_unlocked()
    shutil.rmtree(folder, ignore_errors=True)
    print(f"{chosen.title}\n")
    started = time.perf_counter()
    with connect(config.bootstrap_servers) as broker:
        made = _make(broker, chosen, records or chosen.records, seed, partitions)
        print(f"generated {made:,} records in {time.perf_counter() - started:.1f} s, now starting Spark", flush=True)
        started = time.perf_counter()
        application = Streams(chosen.build_topology(), config)
        application.run(until_caught_up=True)
        values = application.metrics()
        took = time.perf_counter() - started
        print(
            f"processed {values['records_in_total']:,.0f} records into {values['records_out_total']:,.0f} "
            f"in {took:.1f} s, including the start of Spark\n"
        )
        print("\n".join(chosen.summarize(_read(broker, chosen))))
    print("\nTry next:")
    for topic, (_, value_serde) in chosen.outputs.items():
        named = repr(value_serde).removeprefix("serdes.")
        serde = f" --value-serde {named}" if named in ("Long", "Json") else ""
        print(f"  headrace consume {topic} --from-beginning{serde} -b {config.bootstrap_servers}")
    print(f"  headrace topics list -b {config.bootstrap_servers}")
    print(f"  headrace describe headrace.demos.{chosen.name}:build_topology")
    others = ", ".join(name for name in DEMOS if name != chosen.name)
    print(f"  headrace demo NAME  ({others})")
    sys.stdout.flush()


def _make(broker: Broker, chosen: Demo, count: int, seed: int, partitions: int) -> int:
    """Write the records of a demo, in order within each topic."""
    waiting: dict[str, list[Any]] = {}
    made = 0
    for topic, key, value, timestamp in chosen.make_records(count, seed):
        if topic not in waiting:
            broker.create_topic(topic, partitions)
            waiting[topic] = []
        waiting[topic].append((key, value, timestamp))
        made += 1
        if len(waiting[topic]) >= _CHUNK:
            broker.produce(topic, waiting[topic])
            waiting[topic] = []
    for topic, left in waiting.items():
        broker.produce(topic, left)
    return made


def _read(broker: Broker, chosen: Demo) -> Outputs:
    return {
        topic: [
            (keys.deserialize(topic, record.key), values.deserialize(topic, record.value))
            for record in broker.records(topic)
        ]
        for topic, (keys, values) in chosen.outputs.items()
    }
