"""`headrace run`: run an application on Spark."""

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
            help="A module and the name of a Topology, a StreamsBuilder, a Streams or a function that returns one.",
        ),
    ],
    until_caught_up: Annotated[
        bool, typer.Option("--until-caught-up", help="Process the records that are there now, then stop.")
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
        typer.Option("--bootstrap-servers", "-b", metavar="ADDRESS", help="The address of the topics."),
    ] = None,
    kafka_config: KafkaConfig = None,
    state_dir: Annotated[
        str | None,
        typer.Option("--state-dir", metavar="DIR", help="The folder for its state.", show_default=".headrace"),
    ] = None,
    setting: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Another setting of StreamsConfig; repeatable."),
    ] = None,
    traceback: Traceback = False,
) -> None:
    """Run an application until Ctrl-C, which finishes the current batch and stops.

    Options override the application's own configuration, which overrides HEADRACE_* in the environment. An application
    that is started again continues where it stopped.
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
        for clients in ("py4j", "headrace.kafka"):  # the application reports in one line where these log many
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
            shown = f", got '{text}'" if text.isidentifier() else ""  # any other text may contain a secret
            raise ConfigError(f"--set: expected NAME=VALUE{shown}")
        found[name] = value
    return found
