"""A user's processors as steps of a task."""

from __future__ import annotations

from typing import Any

from headrace.errors import TaskError, TopologyError
from headrace.records import Record
from headrace.task.current_record import CurrentRecord
from headrace.task.processor_context import NO_KEY, TaskProcessorContext
from headrace.topology.nodes import Fail, Process, ProcessorNode


def make_processor(node: ProcessorNode) -> Any:
    """Ask a node's supplier for a processor."""
    assert node.supplier is not None
    try:
        processor = node.supplier()
    except Exception as error:
        raise TopologyError(f"step '{node.name}': the supplier failed: {type(error).__name__}: {error}") from error
    if not callable(getattr(processor, "process", None)) or isinstance(processor, type):
        raise TopologyError(
            f"step '{node.name}': the supplier must return a Processor, got {type(processor).__name__} ({processor!r})"
        )
    return processor


def check_supplier(node: ProcessorNode) -> None:
    """Raise if a node's supplier returns the same processor twice: tasks would share it."""
    if make_processor(node) is make_processor(node):
        raise TopologyError(
            f"step '{node.name}': the supplier must make a new processor each time it is called, but returned one twice"
        )


def bind_processor(
    node: ProcessorNode, processor: Any, context: TaskProcessorContext, current: CurrentRecord, fail: Fail
) -> Process:
    """Return the function that passes one record to a processor."""
    handle = processor.process

    def process(key: Any, value: Any, timestamp: int) -> None:
        try:
            handle(Record(key, value, timestamp, list(current.headers)))
        except TaskError:
            raise
        except Exception as error:
            fail(error, key, value, timestamp)

    def process_fixed_key(key: Any, value: Any, timestamp: int) -> None:
        context.key_in_hand = key
        try:
            process(key, value, timestamp)
        finally:
            context.key_in_hand = NO_KEY

    return process_fixed_key if node.fixed_key else process
