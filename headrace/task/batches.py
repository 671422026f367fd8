"""The records of a batch, in the order of their causes, page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeAlias

import numpy as np

from headrace.raw_records import RawRecord
from headrace.task.lanes import Causes, Lane, Numbers, joined, merge_order, taken_in
from headrace.task.outputs import PAGE

ProcessRecords: TypeAlias = Callable[[str, int, Sequence[RawRecord], int], object]
"""Processes records of one topic partition: process(topic, partition, records, ordinal of the first)."""


def process_lanes(lanes: Sequence[Lane], process: ProcessRecords) -> Causes:
    """Process several lanes in the order of their causes. Return the causes by ordinal."""
    if len(lanes) == 1:
        return process_pages(lanes, process)
    causes = joined([lane.causes for lane in lanes])
    order = merge_order(causes)
    records = taken_in(order, [record for lane in lanes for record in lane.records])
    # A topic partition may have several lanes. Their records can follow each other, and are then processed together.
    topic_partitions = list({(lane.topic, lane.partition): None for lane in lanes})
    numbers = [topic_partitions.index((lane.topic, lane.partition)) for lane in lanes]
    number_of_record = np.repeat(np.array(numbers, np.int64), [len(lane.records) for lane in lanes])
    if order is not None:
        causes, number_of_record = causes.at(order), number_of_record[order]
    starts = _starts(number_of_record)
    # In the worst case the lanes alternate with every record, so this loop does as little as it can.
    for start, end, number in zip(starts, [*starts[1:], len(records)], number_of_record[starts].tolist()):
        topic, partition = topic_partitions[number]
        process(topic, partition, records[start:end], start)
    return causes


def process_pages(pages: Iterable[Lane], process: ProcessRecords) -> Causes:
    """Process a batch of a single lane, page by page as they come. Return the causes by ordinal."""
    causes, ordinal = [], 0
    for page in pages:
        process(page.topic, page.partition, page.records, ordinal)
        ordinal += len(page.records)
        causes.append(page.causes)
    return joined(causes)


def _starts(numbers: Numbers) -> list[int]:
    """Return the indexes at which another number or another page begins."""
    begins = np.ones(len(numbers), bool)
    begins[1:] = numbers[1:] != numbers[:-1]
    begins[::PAGE] = True
    return np.flatnonzero(begins).tolist()
