"""The embedded log: topics in one SQLite file."""

from headrace.brokers.local.broker import LocalBroker

__all__ = ["LocalBroker"]
