"""`headrace`: all commands together."""

from __future__ import annotations

from typing import Annotated

import typer

from headrace.cli import consume, demo, describe, dev, produce, reset, run, topics
from headrace.cli.options import Traceback
from headrace.cli.reporting import Commands

app = typer.Typer(
    name="headrace",
    cls=Commands,
    help="Kafka Streams for Python, on Spark.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command("run")(run.run)
app.command("describe")(describe.describe)
app.add_typer(topics.app, name="topics")
app.command("produce")(produce.produce)
app.command("consume")(consume.consume)
app.command("reset")(reset.reset)
app.command("demo")(demo.demo)
app.add_typer(dev.app, name="dev")


def main() -> None:
    """Run the command line with the arguments of this process."""
    app(prog_name="headrace")


def _print_version(wanted: bool) -> None:
    if wanted:
        from headrace import __version__  # saves every other command some milliseconds

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def headrace(
    show_version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
    traceback: Traceback = False,
) -> None:
    pass
