"""The state log: an image holds what Spark has committed, whatever happens in between."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.engine import state_log
from headrace.engine.in_process import MemoryEpochStore
from headrace.engine.state_log import StateLog
from headrace.errors import ProcessorStateError
from headrace.state.image import Changes
from headrace.state.lmdb_image import LmdbImage

Content = dict[str, dict[bytes, bytes]]


class Batches:
    """A task that commits batches; Spark's state is copied before each, so that one can fail."""

    def __init__(self, folder: Path) -> None:
        self.image = LmdbImage(folder)
        self.state = MemoryEpochStore()
        self.cells: dict[str, dict[str, Any]] = {}
        self.expected: Content = {}

    def run(self, changes: dict[str, Changes], *, committed: bool = True, cells: int = 0) -> None:
        """Run one batch; when it is not committed, Spark goes back to the state before it."""
        before = deepcopy(self.state)
        log = StateLog(self.state, self.image)
        self.cells = log.restore()
        assert content(self.image) == self.expected
        log.shorten()
        log.commit(changes, {"": {"n": cells}})
        if not committed:
            self.state = before
            return
        for space, changed in changes.items():
            mine = self.expected.setdefault(space, {})
            for key, value in changed.items():
                if value is None:
                    mine.pop(key, None)
                else:
                    mine[key] = value
            if not mine:
                del self.expected[space]

    def check(self) -> None:
        StateLog(self.state, self.image).restore()
        assert content(self.image) == self.expected


def content(image: LmdbImage) -> Content:
    found: Content = {}
    for space, entries in image.entries():
        found.setdefault(space, {}).update(entries)
    return found


@pytest.fixture
def batches(tmp_path: Path) -> Batches:
    return Batches(tmp_path / "image")


def test_a_committed_batch_is_there_at_the_next(batches: Batches) -> None:
    batches.run({"s": {b"a": b"1"}}, cells=7)

    batches.run({})

    assert batches.cells == {"": {"n": 7}}


def test_the_image_does_not_hold_what_was_not_committed(batches: Batches) -> None:
    batches.run({"s": {b"a": b"1"}})
    batches.run({"s": {b"a": b"2", b"b": b"2"}}, committed=False)

    batches.run({"s": {b"c": b"3"}})
    batches.check()


def test_a_repeated_batch_takes_the_place_of_the_failed_one(batches: Batches) -> None:
    batches.run({"s": {b"a": b"1"}}, committed=False)
    batches.run({"s": {b"a": b"2"}})

    batches.check()


def test_a_lost_image_is_rebuilt_from_the_log(batches: Batches, tmp_path: Path) -> None:
    for number in range(5):
        batches.run({"s": {b"%d" % number: b"x"}})
    batches.image.close()
    batches.image = LmdbImage(tmp_path / "another host")

    batches.check()


def test_an_image_that_missed_batches_catches_up(batches: Batches, tmp_path: Path) -> None:
    batches.run({"s": {b"a": b"1"}})
    batches.check()
    here, batches.image = batches.image, LmdbImage(tmp_path / "another host")
    batches.run({"s": {b"b": b"2"}})
    batches.run({"s": {b"a": None}})
    batches.image = here
    read: list[tuple[int, int]] = []
    get = batches.state.get

    def noted(epoch: int, part: int) -> bytes | None:
        read.append((epoch, part))
        return get(epoch, part)

    batches.state.get = noted  # type: ignore[method-assign]

    batches.check()

    assert {epoch for epoch, _ in read} == {2, 3}


def test_an_image_of_a_batch_that_another_attempt_replaced_is_thrown_away(batches: Batches, tmp_path: Path) -> None:
    batches.run({"s": {b"a": b"1"}})
    fork = deepcopy(batches.state), deepcopy(batches.expected)
    batches.run({"s": {b"wrong": b"2"}})
    batches.check()  # applied here, though Spark went back to before it
    batches.state, batches.expected = fork
    other, batches.image = batches.image, LmdbImage(tmp_path / "another host")
    batches.run({"s": {b"right": b"2"}})
    batches.image = other

    batches.check()


def test_a_reset_application_finds_an_empty_image(batches: Batches) -> None:
    batches.run({"s": {b"a": b"1"}})
    batches.check()
    batches.state, batches.expected = MemoryEpochStore(), {}

    batches.check()


def test_large_changes_are_cut_into_parts(batches: Batches, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(state_log, "_PART_BYTES", 100)
    batches.run({"s": {b"%d" % number: b"x" * 20 for number in range(50)}, "t": {b"a": b"1"}}, cells=3)
    assert len(batches.state.blobs) > 5

    batches.check()
    batches.image = LmdbImage(tmp_path / "another host")
    batches.check()


def test_the_log_stays_within_a_small_factor_of_what_is_live(batches: Batches, tmp_path: Path) -> None:
    for number in range(60):
        batches.run({"s": {b"%d" % key: b"%d" % number * 200 for key in range(100)}}, cells=number)
    live = sum(len(key) + len(value) for space in batches.expected.values() for key, value in space.items())

    assert sum(map(len, batches.state.blobs.values())) < 4 * live + (2 << 20)

    batches.image = LmdbImage(tmp_path / "another host")
    batches.check()
    assert StateLog(batches.state, batches.image).restore() == {"": {"n": 59}}


def test_a_snapshot_leaves_out_spaces_that_are_no_longer_wanted(batches: Batches) -> None:
    batches.run({"old": {b"a": b"1" * 3_000_000}, "new": {b"a": b"1"}})
    for _ in range(3):
        batches.run({"old": {b"a": b"2" * 3_000_000}})
    log = StateLog(batches.state, batches.image, frozenset(["new"]))
    log.restore()

    assert log.shorten()

    assert sum(map(len, batches.state.blobs.values())) < 1000


def test_a_missing_part_is_an_error_that_says_what_to_do(batches: Batches, tmp_path: Path) -> None:
    batches.run({"s": {b"a": b"1"}})
    batches.state.blobs.clear()
    batches.image = LmdbImage(tmp_path / "another host")

    with pytest.raises(ProcessorStateError, match="headrace reset"):
        batches.check()


KEYS = st.binary(min_size=0, max_size=3)
CHANGES = st.dictionaries(st.sampled_from(["s", "t"]), st.dictionaries(KEYS, st.none() | st.binary(max_size=3)))
STEPS = st.lists(st.tuples(CHANGES, st.booleans(), st.sampled_from([0, 1, 2])), max_size=12)


@given(STEPS, st.sampled_from([20, 1000]), st.sampled_from([0, 1 << 20]))
@settings(max_examples=60)
def test_any_order_of_failures_and_hosts_ends_in_the_committed_state(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[dict[str, Changes], bool, int]],
    part_bytes: int,
    small_log: int,
) -> None:
    folder = tmp_path_factory.mktemp("images")
    hosts: Callable[[int], LmdbImage] = {number: LmdbImage(folder / str(number)) for number in range(3)}.__getitem__
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state_log, "_PART_BYTES", part_bytes)
        patch.setattr(state_log, "_SMALL_LOG_BYTES", small_log)
        patch.setattr(state_log, "_GARBAGE_FACTOR", 0.01)
        batches = Batches(folder / "first")
        for changes, committed, host in steps:
            batches.image = hosts(host)
            batches.run(changes, committed=committed)
        for number in range(3):
            batches.image = hosts(number)
            batches.check()
            batches.image.close()
