"""Small values that survive a commit beside the stores."""

from headrace.state.small_state import SmallState


def test_a_cell_begins_with_its_default() -> None:
    assert SmallState().cell("count/stream_time", -1) == [-1]


def test_everybody_who_asks_for_a_name_gets_the_same_cell() -> None:
    cells = SmallState()

    cells.cell("time", -1)[0] = 7

    assert cells.cell("time", -1) == [7]


def test_values_give_back_the_cells_of_the_one_before() -> None:
    before = SmallState()
    before.cell("time", -1)[0] = 7
    before.cell("sequence", 0)

    after = SmallState(before.values())

    assert after.cell("time", -1) == [7]
    assert after.cell("sequence", 5) == [0]


def test_restored_values_that_nobody_asked_for_yet_are_kept() -> None:
    cells = SmallState({"time": 7, "later": 9})
    cells.cell("time", -1)[0] = 8

    assert cells.values() == {"time": 8, "later": 9}


def test_values_are_a_copy() -> None:
    cells = SmallState({"time": 7})
    values = cells.values()

    cells.cell("time", -1)[0] = 8

    assert values == {"time": 7}


def test_who_has_a_cell_that_was_renewed_can_no_longer_change_it() -> None:
    cells = SmallState({"due": 7})
    before = cells.cell("due", 0)

    after = cells.renew("due", 9)
    before[0] = None

    assert after == [9]
    assert cells.values() == {"due": 9}
