"""Inputs: what a task reads in a batch. These are ranges of topics, and records that other tasks have sent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from time import perf_counter

from headrace.engine.crash import crash_point
from headrace.engine.messages import ForTask, SentRecords, TopicRange, lanes_of
from headrace.engine.worker import Worker
from headrace.task.lanes import Lane, joined, unknown_causes


class Inputs:
    """Reads the inputs of the tasks of one process in a batch, as lanes.

    Without `with_causes`, pages that are read one after the other get no causes, because their outputs are not merged.
    """

    def __init__(self, worker: Worker, *, with_causes: bool) -> None:
        self._worker, self._with_causes = worker, with_causes
        self.numbers = {"records_read": 0.0, "source_seconds": 0.0}
        """How many records were read from the topics of sources, and how long reading took in all."""

    def lanes(self, messages: Sequence[ForTask]) -> list[Lane]:
        """Return all inputs of a task. Among records with equal causes, those of the first lane come first.

        Messages come in any order, but the lanes have the same order in every attempt. The records of global tables
        come before those of other topics.
        """
        tables = self._worker.application.plan.global_readers
        ranges = [message for message in messages if isinstance(message, TopicRange)]
        ranges.sort(key=lambda one: (one.topic not in tables, one.topic, one.partition))
        lanes = self.sent([message for message in messages if isinstance(message, SentRecords)])
        return lanes + [lane for wanted in ranges for lane in self._whole(wanted)]

    def sent(self, messages: Sequence[SentRecords]) -> list[Lane]:
        """Return the lanes of records that other tasks have sent."""
        started = perf_counter()
        lanes = lanes_of(messages)
        self.numbers["source_seconds"] += perf_counter() - started
        return lanes

    def pages(self, wanted: TopicRange) -> Iterator[Lane]:
        """Read a range page by page, so that not all of it is in memory."""
        return self._pages(wanted, self._with_causes)

    def _whole(self, wanted: TopicRange) -> Iterator[Lane]:
        """Read a range as one lane, unless it is empty."""
        pages = list(self._pages(wanted, with_causes=True))
        if pages:
            records = [record for page in pages for record in page.records]
            yield Lane(wanted.topic, wanted.partition, records, joined([page.causes for page in pages]))

    def _pages(self, wanted: TopicRange, with_causes: bool) -> Iterator[Lane]:
        topic, partition, numbers = wanted.topic, wanted.partition, self.numbers
        counted = topic in self._worker.application.plan.readers
        before, is_first = (-1, -1), True
        started = perf_counter()
        for page in self._worker.pages(wanted):
            if is_first:
                crash_point("after-read")
                is_first = False
            if with_causes:
                lane = Lane.of_source(topic, partition, page, before)
                before = lane.causes.last()
            else:
                lane = Lane(topic, partition, page, unknown_causes(len(page)))
            numbers["records_read"] += len(page) if counted else 0
            numbers["source_seconds"] += perf_counter() - started
            yield lane
            started = perf_counter()
        numbers["source_seconds"] += perf_counter() - started


def only_range(messages: Sequence[ForTask]) -> TopicRange | None:
    """Return the range if it is the only input of a task in a batch; None if there are more inputs, or none."""
    inputs = [message for message in messages if isinstance(message, TopicRange | SentRecords)]
    only = inputs[0] if len(inputs) == 1 else None
    return only if isinstance(only, TopicRange) else None
