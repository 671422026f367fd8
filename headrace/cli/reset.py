"""`headrace reset`: start an application over from the beginning."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from headrace.cli.options import ADDRESS_VARIABLE, KafkaConfig, Traceback, local_path, settings_in
from headrace.errors import StreamsError

if TYPE_CHECKING:
    from headrace.application.folder import ApplicationFolder


def reset(
    application_id: Annotated[str, typer.Argument(metavar="APPLICATION_ID", help="The application's name.")],
    state_dir: Annotated[
        str, typer.Option("--state-dir", metavar="DIR", envvar="HEADRACE_STATE_DIR", help="The folder of its state.")
    ] = ".headrace",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    address: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-servers",
            "-b",
            metavar="ADDRESS",
            envvar=ADDRESS_VARIABLE,
            help="The address of its topics.",
            show_default="topics.db under --state-dir",
        ),
    ] = None,
    kafka_config: KafkaConfig = None,
    traceback: Traceback = False,
) -> None:
    """Delete an application's positions, stores and internal topics.

    When it starts again, it reads its topics from the beginning. Its output topics keep their records: delete them
    with `headrace topics delete`, or the results appear twice. The command refuses if the application is running with
    this state. On Kafka, it stops an application that is running with its state elsewhere.
    """
    # Imported here to save time: `headrace --help` does not need them.
    from headrace.application.folder import ApplicationFolder
    from headrace.application.reset import reset_application
    from headrace.brokers.connecting import shared_broker
    from headrace.config import StreamsConfig

    config = StreamsConfig(
        application_id=application_id,
        bootstrap_servers=address or "",
        state_dir=state_dir,
        kafka={} if kafka_config is None else settings_in(kafka_config),
    )
    is_named, address = address is not None, config.bootstrap_servers
    folder = ApplicationFolder(config.state_dir, application_id)
    path = local_path(address)
    is_there = path is None or path.exists()
    committed = shared_broker(address, config.kafka).last_batch(application_id) if is_there else None
    _check_found(folder, committed, address, is_named=is_named)
    folder.check_unlocked()
    if not yes and not typer.confirm(_question(folder, committed)):
        raise typer.Exit(1)
    reset_application(config)
    print(f"reset application '{application_id}'")


def _check_found(folder: ApplicationFolder, committed: tuple[str, int] | None, address: str, *, is_named: bool) -> None:
    """Raise when there is nothing to reset, or when the topics are somewhere else."""
    if not folder.exists() and committed is None:
        raise StreamsError(
            f"application '{folder.application_id}' is unknown: there is no state in '{folder.path}' and no commit "
            f"in {address}. Use --state-dir and --bootstrap-servers if they are somewhere else"
        )
    if committed is None and folder.has_begun() and not is_named:
        raise StreamsError(
            f"application '{folder.application_id}' has a checkpoint in '{folder.path}', but no commit in {address}: "
            "its topics are somewhere else. Give their address with --bootstrap-servers"
        )


def _question(folder: ApplicationFolder, committed: tuple[str, int] | None) -> str:
    batches = f"{committed[1] + 1} batches committed" if committed and committed[1] >= 0 else "nothing committed"
    return f"Delete the state of application '{folder.application_id}' in '{folder.path}' ({batches})?"
