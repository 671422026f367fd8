"""`headrace run`: an application on Spark."""

from __future__ import annotations

import logging
import sys
from typing import Annotated, Any

import typer

from headrace.cli.loading import load_application
from headrace.cli.options import KafkaConfig, Traceback, settings_in
from headrace.errors import ConfigError


def run(
    app: Annotated[
        str,
        typer.Argument(
            metavar="MODULE:APP",
            help="A Topology, a StreamsBuilder, a Streams, or a function that returns one, in a module.",
        ),
    ],
    until_caught_up: Annotated[
        bool, typer.Option("--until-caught-up", help="End when all that is there has been processed.")
    ] = False,
    application_id: Annotated[
        str | None,
        typer.Option(
            "--application-id", metavar="ID", help="The application's name.", show_default="from the module's name"
        ),
    ] = None,
    master: Annotated[str | None, typer.Option("--master", help="Spark's master.", show_default="local[*]")] = None,
    address: Annotated[
        str | None,
        typer.Option("--bootstrap-servers", "-b", metavar="ADDRESS", help="Where the topics are."),
    ] = None,
    kafka_config: KafkaConfig = None,
    state_dir: Annotated[
        str | None, typer.Option("--state-dir", metavar="DIR", help="Where state is kept.", show_default=".headrace")
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any other setting of StreamsConfig; repeatable."),
    ] = None,
    traceback: Traceback = False,
) -> None:
    """Run an application until it is interrupted: Ctrl-C finishes the batch in hand and stops.

    Settings come from the options, then from the application's own configuration, then from HEADRACE_* in the
    environment. Started again, an application goes on where it stopped.
    """
    given = {
        "application_id": application_id,
        "master": master,
        "bootstrap_servers": address,
        "state_dir": state_dir,
        "kafka": None if kafka_config is None else settings_in(kafka_config),
        **_settings(setting or ()),
    }
    chosen = {name: value for name, value in given.items() if value is not None}
    application = load_application(app, chosen)
    if not sys.stderr.isatty():
        logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", datefmt="%H:%M:%S")
        for clients in ("py4j", "headrace.kafka"):  # many lines of what the application says in one
            logging.getLogger(clients).setLevel(logging.CRITICAL)
    application.run(until_caught_up=until_caught_up)
    values = application.metrics()
    print(
        f"{values['records_in_total']:,.0f} records in, {values['records_out_total']:,.0f} out, "
        f"{values['batches_total']:,.0f} batches",
        file=sys.stderr,
    )


def _settings(texts: list[str] | tuple[()]) -> dict[str, Any]:
    found = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not separator or not name:
            shown = f"'{text}'" if text.isidentifier() else "another text"  # which may have a secret in it
            raise ConfigError(f"--set: expected NAME=VALUE, got {shown}")
        found[name] = value
    return found
