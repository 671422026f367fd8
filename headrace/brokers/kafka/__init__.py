"""Topics on Kafka, with `confluent-kafka`."""

from headrace.brokers.kafka.broker import KafkaBroker
from headrace.brokers.kafka.connection import Connection

__all__ = ["Connection", "KafkaBroker"]
