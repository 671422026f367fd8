"""The few values that a task keeps beside its stores."""

from headrace.state.small_state import SmallState


def test_a_cell_begins_with_its_default() -> None:
    assert SmallState().cell("count/stream_time", -1) == [-1]


def test_a_name_always_gives_the_same_cell() -> None:
    cells = SmallState()

    cells.cell("time", -1)[0] = 7

    assert cells.cell("time", -1) == [7]


def test_values_restore_the_cells() -> None:
    before = SmallState()
    before.cell("time", -1)[0] = 7
    before.cell("sequence", 0)

    after = SmallState(before.values())

    assert after.cell("time", -1) == [7]
    assert after.cell("sequence", 5) == [0]


def test_restored_values_without_a_cell_are_kept() -> None:
    cells = SmallState({"time": 7, "later": 9})
    cells.cell("time", -1)[0] = 8

    assert cells.values() == {"time": 8, "later": 9}


def test_values_are_a_copy() -> None:
    cells = SmallState({"time": 7})
    values = cells.values()

    cells.cell("time", -1)[0] = 8

    assert values == {"time": 7}


def test_the_old_cell_no_longer_changes_the_state_after_renew() -> None:
    cells = SmallState({"due": 7})
    before = cells.cell("due", 0)

    after = cells.renew("due", 9)
    before[0] = None

    assert after == [9]
    assert cells.values() == {"due": 9}
