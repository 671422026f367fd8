"""Reset an application: the next start begins at the beginning.

Tests: `tests/application/test_streams.py`.
"""

from __future__ import annotations

import shlex

from headrace.application.folder import ApplicationFolder
from headrace.brokers.connecting import shared_broker
from headrace.config import StreamsConfig


def reset_command(config: StreamsConfig) -> str:
    """Return the command that resets an application.

    >>> reset_command(StreamsConfig(application_id="sums", bootstrap_servers="kafka:9092", state_dir="/data/my state"))
    "headrace reset sums --state-dir '/data/my state' -b kafka:9092"
    """
    words = ["headrace", "reset", config.application_id]
    if config.state_dir != StreamsConfig.model_fields["state_dir"].default:
        words += ["--state-dir", str(config.state_dir)]
    return shlex.join([*words, "-b", config.bootstrap_servers])


def reset_application(config: StreamsConfig) -> None:
    """Delete an application's state and positions. Raise if it is running.

    The marker of the last batch is deleted last. If a reset is interrupted, the application refuses to start until it
    is reset again, instead of continuing with half a checkpoint.
    """
    folder = ApplicationFolder(config.state_dir, config.application_id)
    folder.lock()
    try:
        folder.remove()
        shared_broker(config.bootstrap_servers, config.kafka).forget_application(config.application_id)
    finally:
        folder.unlock()
