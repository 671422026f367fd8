"""The records of a batch, in the order of their causes, page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias

import numpy as np

from headrace.raw_records import RawRecord
from headrace.task.lanes import Causes, Lane, Numbers, joined, merge_order, taken_in
from headrace.task.outputs import PAGE

ProcessRecords: TypeAlias = Callable[[str, int, Sequence[RawRecord], int], object]
"""Processes records of one topic partition: process(topic, partition, records, ordinal of the first)."""


def process_lanes(lanes: Sequence[Lane], process: ProcessRecords) -> Causes:
    """Process several lanes in the order of their causes; return the causes by ordinal."""
    if len(lanes) == 1:
        return process_pages(lanes, process)
    causes = joined([lane.causes for lane in lanes])
    order = merge_order(causes)
    ordinal = 0
    for topic, partition, records in _in_order(lanes, order):
        for first in range(0, len(records), PAGE):
            page = records[first : first + PAGE]
            process(topic, partition, page, ordinal)
            ordinal += len(page)
    return causes if order is None else causes.at(order)


def process_pages(pages: Iterable[Lane], process: ProcessRecords) -> Causes:
    """Process a batch that is one lane, page by page as they come; return the causes by ordinal."""
    causes, ordinal = [], 0
    for page in pages:
        process(page.topic, page.partition, page.records, ordinal)
        ordinal += len(page.records)
        causes.append(page.causes)
    return joined(causes)


def _in_order(lanes: Sequence[Lane], order: Numbers | None) -> Iterator[tuple[str, int, Sequence[RawRecord]]]:
    """Walk the records of lanes in an order, those together that follow each other in one topic partition."""
    if order is None:
        for lane in lanes:
            yield lane.topic, lane.partition, lane.records
        return
    records = taken_in(order, [record for lane in lanes for record in lane.records])
    # A topic partition may have several lanes, so that their records can follow each other in one run of the loop.
    topic_partitions = list({(lane.topic, lane.partition): None for lane in lanes})
    of_lanes = [topic_partitions.index((lane.topic, lane.partition)) for lane in lanes]
    of_records = np.repeat(of_lanes, [len(lane.records) for lane in lanes])[order]
    starts = [0, *(np.flatnonzero(np.diff(of_records)) + 1).tolist()]
    for start, end, number in zip(starts, [*starts[1:], len(records)], of_records[starts].tolist()):
        yield *topic_partitions[number], records[start:end]
