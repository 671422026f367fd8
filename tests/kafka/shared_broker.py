"""The broker that the tests of Kafka share."""

from pathlib import Path

from headrace.dev.kafka_broker import DevBroker, free_port

# A killed broker comes back as soon as the controller gives up its predecessor. Compaction starts soon, and a
# transaction that takes too long ends soon.
SETTINGS = {
    "broker.session.timeout.ms": "4000",
    "broker.heartbeat.interval.ms": "1000",
    "log.cleaner.backoff.ms": "200",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
}


def shared_broker(folder: Path) -> DevBroker:
    """Return a broker that is not started yet."""
    return DevBroker(folder, free_port(), settings=SETTINGS)
