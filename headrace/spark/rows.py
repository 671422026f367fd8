"""Rows: messages in the form that Spark takes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headrace.engine.messages import Message, encode

SCHEMA = "task int, block binary"
"""Checkpoints know the second column by this name."""
_ARROW_SCHEMA = pa.schema([("task", pa.int32()), ("block", pa.binary())])


def batch_of(rows: Sequence[tuple[int, Message | bytes]]) -> pa.RecordBatch:
    """Return rows as an Arrow batch. Encode a message for several tasks only once."""
    encoded: dict[int, bytes] = {}
    column = []
    for _, message in rows:
        if isinstance(message, bytes):
            column.append(message)
        else:
            if id(message) not in encoded:
                encoded[id(message)] = encode(message)
            column.append(encoded[id(message)])
    # From buffers, because `pa.array` would import pandas. That takes longer than all else before a first record.
    ends = np.cumsum([0, *map(len, column)], dtype=np.int32)
    tasks = np.fromiter((task for task, _ in rows), np.int32, len(rows))
    return pa.RecordBatch.from_arrays(
        [
            pa.Array.from_buffers(pa.int32(), len(rows), [None, pa.py_buffer(tasks)]),
            pa.Array.from_buffers(pa.binary(), len(rows), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(column))]),
        ],
        schema=_ARROW_SCHEMA,
    )
