"""The cycle collector, kept out of a batch's way."""

import gc

import pytest

from headrace.task import collector


def test_what_a_process_has_is_set_aside_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "_kept", False)
    try:
        collector.keep_what_there_is()
        first = gc.get_freeze_count()
        later: list[list[int]] = [[] for _ in range(1_000)]
        collector.keep_what_there_is()

        assert first > 1_000
        assert gc.get_freeze_count() < first + len(later)
    finally:
        gc.unfreeze()
