"""Test a topology without Spark and without Kafka."""

from headrace.testing.driver import TopologyTestDriver
from headrace.testing.snapshot import Snapshot
from headrace.testing.topics import TestInputTopic, TestOutputTopic

__all__ = ["Snapshot", "TestInputTopic", "TestOutputTopic", "TopologyTestDriver"]
