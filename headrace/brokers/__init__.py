"""Topics: create, list, produce and consume, on the embedded log or on Kafka."""

from headrace.brokers.broker import Broker, TopicInfo, TopicRecord
from headrace.brokers.connecting import connect
from headrace.brokers.local.broker import LocalBroker

__all__ = ["Broker", "LocalBroker", "TopicInfo", "TopicRecord", "connect"]
