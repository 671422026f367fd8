"""`headrace dev`: a Kafka broker on your laptop, and faster starts."""

from __future__ import annotations

import shlex
import signal
from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.options import ADDRESS_VARIABLE, Traceback

app = typer.Typer(help="Tools for development: a Kafka broker on your laptop, and faster starts.", no_args_is_help=True)


@app.callback()
def dev() -> None:
    pass


@app.command()
def broker(
    port: Annotated[
        int, typer.Option("--port", min=1, max=65535, help="The port to listen on. Only this machine can reach it.")
    ] = 9092,
    folder: Annotated[Path, typer.Option("--folder", metavar="DIR", help="The folder for its topics.")] = Path(
        ".headrace/kafka"
    ),
    traceback: Traceback = False,
) -> None:
    """Run a Kafka broker on this machine until Ctrl-C. It needs no Docker and no setup.

    The first start downloads Kafka from Maven Central. The topics stay in the folder for the next start.
    """
    # Imported here to save time: `headrace --help` needs neither Kafka's client nor Spark.
    from headrace.dev.kafka_broker import DevBroker
    from headrace.dev.kafka_jars import VERSION, jars_folder

    running = DevBroker(folder, port)
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        if not jars_folder().is_dir():
            print(f"downloading Kafka {VERSION}, about 55 MB, into {jars_folder()}", flush=True)
        with running:
            print(f"Kafka {VERSION} is running at {running.address}, with its topics in '{folder}'. Ctrl-C stops it.\n")
            print(f'  StreamsConfig(..., bootstrap_servers="{running.address}")')
            print(f"  export {ADDRESS_VARIABLE}={shlex.quote(running.address)}")
            print(f"  headrace topics create lines -b {running.address}", flush=True)
            running.wait()
    except KeyboardInterrupt:
        print(f"stopped Kafka at {running.address}")
    finally:
        signal.signal(signal.SIGTERM, before)


@app.command()
def classes(traceback: Traceback = False) -> None:
    """Write Spark's classes to a file, so that applications start in two thirds of the time.

    It takes a minute and 180 MB in the Python environment, and lasts until Spark or Java changes.
    """
    # Imported here to save time: `headrace --help` does not need Spark.
    from headrace.spark.runtime.class_archive import make_archive

    print(f"wrote Spark's classes to {make_archive()}")
