"""Binding: make a function of each step of a task, and start the processors."""

from __future__ import annotations

from typing import Any

from headrace.errors import HeadraceError, TaskError
from headrace.task.context import TaskContext
from headrace.task.failures import Failures
from headrace.task.processor_context import TaskProcessorContext
from headrace.task.processors import bind_processor, make_processor
from headrace.task.sinks import bind_sink
from headrace.task.step_context import TaskStepContext
from headrace.topology.nodes import Process, ProcessorNode, SinkNode, SourceNode


class BoundSteps:
    """The steps of a task as functions, bound children first, with the user's processors."""

    def __init__(self, context: TaskContext, failures: Failures) -> None:
        self._context, self._failures = context, failures
        self.functions: dict[str, Process] = {}
        """The function of each step. The function of a source hands a record to the steps after it."""
        self._processors: list[tuple[str, Any, TaskProcessorContext]] = []
        for name in reversed(context.sub_topology.nodes):
            self.functions[name] = self._bind(name)
        # Caches are flushed in the order of the stores, not of the steps.
        caches = context.caches
        context.caches = {name: caches[name] for name in context.sub_topology.stores if name in caches}
        self._processors.reverse()

    def _bind(self, name: str) -> Process:
        context, node = self._context, self._context.topology.nodes[name]
        children = {child: self.functions[child] for child in node.children}
        if isinstance(node, SinkNode):
            return bind_sink(context, self._failures, node)
        if isinstance(node, SourceNode):
            return fan_out(list(children.values()), changes=False)
        step = TaskStepContext(context, self._failures, node, children)
        if node.operator is not None:
            return node.operator.bind(step, fan_out(list(children.values()), changes=node.operator.emits_changes))
        return self._bind_processor(node, step, children)

    def _bind_processor(self, node: ProcessorNode, step: TaskStepContext, children: dict[str, Process]) -> Process:
        processor, processor_context = make_processor(node), TaskProcessorContext(self._context, node, children)
        self._processors.append((node.name, processor, processor_context))
        return bind_processor(node, processor, processor_context, step.record, step.fail)

    def start(self) -> None:
        """Call `init` of the processors, in the order of the topology."""
        for name, processor, context in self._processors:
            try:
                if hasattr(processor, "init"):
                    processor.init(context)
                context.started()
            except HeadraceError:
                raise
            except Exception as error:
                raise TaskError(f"step '{name}' failed to start: {type(error).__name__}: {error}") from error

    def close(self) -> None:
        """Call `close` of the processors, in the order of the topology. After the last call, raise the first error."""
        failed: TaskError | None = None
        for name, processor, _ in self._processors:
            try:
                close = getattr(processor, "close", None)
                if close is not None:
                    close()
            except Exception as error:
                if failed is None:
                    failed = TaskError(f"step '{name}' failed to close: {type(error).__name__}: {error}")
                    failed.__cause__ = error
        if failed is not None:
            raise failed


def fan_out(children: list[Process], *, changes: bool) -> Process:
    """Return the function that hands a record to all children, in order."""
    if not children:
        return _drop
    if len(children) == 1:
        return children[0]

    def forward(key: Any, value: Any, timestamp: int) -> None:
        for child in children:
            child(key, value, timestamp)

    def forward_change(key: Any, new: Any, old: Any, timestamp: int) -> None:
        for child in children:
            child(key, new, old, timestamp)

    return forward_change if changes else forward


def _drop(*_: Any) -> None:
    pass
