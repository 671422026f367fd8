"""The garbage collector waits until it is asked."""

import gc

import pytest

from headrace.task import garbage_collection as collector


def test_the_collector_waits_until_it_is_asked_and_leaves_alone_what_was_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "_kept", False)
    try:
        collector.collect_when_asked()
        first = gc.get_freeze_count()
        later: list[list[int]] = [[] for _ in range(1_000)]
        collector.collect_when_asked()

        assert not gc.isenabled()
        assert first > 1_000
        assert gc.get_freeze_count() < first + len(later)
    finally:
        gc.unfreeze()
        gc.enable()
