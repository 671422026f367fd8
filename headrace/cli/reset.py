"""`headrace reset`: take an application back to the beginning."""

from __future__ import annotations

from typing import Annotated

import typer

from headrace.cli.options import ADDRESS_VARIABLE, KafkaConfig, Traceback, local_path, settings_in
from headrace.errors import StreamsError


def reset(
    application_id: Annotated[str, typer.Argument(metavar="APPLICATION_ID", help="The application's name.")],
    state_dir: Annotated[
        str, typer.Option("--state-dir", metavar="DIR", envvar="HEADRACE_STATE_DIR", help="Where its state is.")
    ] = ".headrace",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    address: Annotated[
        str | None,
        typer.Option(
            "--bootstrap-servers",
            "-b",
            metavar="ADDRESS",
            envvar=ADDRESS_VARIABLE,
            help="Where the topics are.",
            show_default="topics.db under --state-dir",
        ),
    ] = None,
    kafka_config: KafkaConfig = None,
    traceback: Traceback = False,
) -> None:
    """Forget how far an application has read, its stores and its internal topics.

    Started again, it begins at the beginning of its topics. What it has written to its output topics stays: delete
    those with `headrace topics delete`, or its results come twice. An application that runs with that state is left
    alone; one on Kafka that has its state elsewhere is stopped.
    """
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
    committed = (
        None
        if path is not None and not path.exists()
        else shared_broker(address, config.kafka).last_batch(application_id)
    )
    if not folder.exists() and committed is None:
        raise StreamsError(
            f"there is nothing of application '{application_id}' in '{folder.path}' or in {address}. "
            "Name other places with --state-dir and --bootstrap-servers"
        )
    if committed is None and folder.has_begun() and not is_named:
        raise StreamsError(
            f"application '{application_id}' has a checkpoint in '{folder.path}', but {address} knows nothing of it: "
            "its topics are elsewhere. Name that place with --bootstrap-servers"
        )
    folder.check_unlocked()
    if not yes:
        batches = (
            "nothing committed" if committed is None or committed[1] < 0 else f"{committed[1] + 1} batches committed"
        )
        question = f"Delete the state of application '{application_id}' in '{folder.path}' ({batches})?"
        if not typer.confirm(question):
            raise typer.Exit(1)
    reset_application(config)
    print(f"reset application '{application_id}'")
