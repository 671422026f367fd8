"""One task with state for one batch: restore its state, process its records, keep its changes, send its outputs.

Tests: `tests/conformance/test_engines.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from time import perf_counter

from headrace.engine.crash import crash_point
from headrace.engine.delivery import Delivery, needs_causes
from headrace.engine.failures import failure_messages
from headrace.engine.images import image_folder, open_image
from headrace.engine.inputs import Inputs, only_range
from headrace.engine.messages import FOR_DRIVER, ForTask, Report, Routed
from headrace.engine.state_log import EpochStore, StateLog
from headrace.engine.stateless import StatelessTasks
from headrace.engine.tasks import CellValues, UnitTasks
from headrace.engine.worker import Worker
from headrace.raw_records import OutputColumns
from headrace.state.image import Changes
from headrace.state.lmdb_image import LmdbImage
from headrace.task.garbage_collection import collection_paused, keep_memory, sample
from headrace.task.lanes import Causes
from headrace.task.running import TaskRunner


class StatefulTask:
    """A task in a batch. Call `finish`, which commits its outputs, once it is known that the task has had all records.

    An exception becomes a message, so that it reaches the user unchanged.
    """

    def __init__(self, worker: Worker, delivery: Delivery, number: int, epochs: EpochStore, batch: int) -> None:
        self._worker, self._number, self._epochs = worker, number, epochs
        self._unit, self._partition = worker.application.units[number]
        self._inputs = Inputs(worker, with_causes=needs_causes(worker, delivery))
        self._outbox = delivery.open(worker, batch)
        self._numbers: dict[str, float] | None = None

    def run(self, messages: Sequence[ForTask]) -> list[Routed]:
        """Process the records, also in tasks without state that they lead to. Return the messages for other tasks."""
        try:
            with collection_paused():
                started = perf_counter()
                application = self._worker.application
                images = image_folder(application.image_dir, application.config.application_id)
                with open_image(images / str(self._number)) as image:
                    return self._run_over(image, messages, started)
        except Exception as error:
            return self._failed(error)

    def finish(self) -> list[Routed]:
        """Commit the outputs and report what the task did, unless it has failed."""
        if self._numbers is None:
            return []
        try:
            with collection_paused(), self._outbox as outbox:
                outbox.commit()
        except Exception as error:
            return self._failed(error)
        numbers = {**self._numbers, **self._outbox.numbers()}
        return [(FOR_DRIVER, Report(f"task {self._unit.number}_{self._partition}", numbers))]

    def _run_over(self, image: LmdbImage, messages: Sequence[ForTask], started: float) -> list[Routed]:
        now = max(message.now for message in messages)
        tasks = UnitTasks(self._worker, self._unit, self._partition, image, now)
        log = StateLog(self._epochs, image, tasks.open_spaces())
        cells = log.restore()
        log.shorten()
        restored = perf_counter()
        with closing(tasks.build(cells)) as running:
            causes = self._process(running, messages)
            crash_point("mid-task")
            running.advance_wall_clock(now)
            changes, new_cells = tasks.commit(running)
            outputs, dropped = running.take_outputs(), running.dropped_records
        processed = perf_counter()
        if changes or new_cells != cells:
            log.commit(changes, new_cells)
        crash_point("after-state-write")
        kept = perf_counter()
        following = StatelessTasks(self._worker, self._outbox)
        sent = following.follow(str(self._number), self._send(tasks, outputs, changes, new_cells, causes, now))
        self._numbers = {
            **self._inputs.numbers,
            "dropped_records": dropped + following.dropped_records,
            "state_seconds": restored - started + kept - processed,
            "process_seconds": processed - restored + perf_counter() - kept - self._inputs.numbers["source_seconds"],
            "state_bytes": image.total_bytes(),
            "log_bytes": log.logged_bytes,
        }
        return sent

    def _process(self, running: TaskRunner, messages: Sequence[ForTask]) -> Causes:
        """Process all inputs of the task; a single range page by page."""
        alone = only_range(messages)
        if alone is not None:
            causes = running.process_pages(self._inputs.pages(alone))
            keep_memory("inputs", ())
            return causes
        lanes = self._inputs.lanes(messages)
        causes = running.process_lanes(lanes)
        keep_memory("inputs", [sample(lane.records) for lane in lanes])
        return causes

    def _send(
        self,
        tasks: UnitTasks,
        outputs: Sequence[tuple[str, OutputColumns]],
        changes: dict[str, Changes],
        cells: CellValues,
        causes: Causes,
        now: int,
    ) -> list[Routed]:
        """Send the outputs, then the changes of stores that have changelogs."""
        routes, lane = self._worker.application.routes, str(self._number)
        sent = routes.send(outputs, causes, lane, 0, self._partition, now, self._outbox)
        for topic, partition, entries in tasks.changelogs(changes, cells):
            sent += self._outbox.put_changelog(lane, topic, partition, entries, causes)
        return sent

    def _failed(self, error: Exception) -> list[Routed]:
        return failure_messages(self._worker.application, self._unit.level, error)
