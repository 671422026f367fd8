"""Columns of records: whole, in slices, and by index."""

from headrace.raw_records import OutputColumns, RecordColumns, RecordToWrite

ROWS: list[RecordToWrite] = [(b"a", b"1", 5, None), (b"b", None, 6, [("h", b"x")]), (None, b"3", 7, None)]
OUTPUTS = OutputColumns([None, 1, None], [b"a", b"b", b"c"], [b"1", b"2", None], [5, 6, 7], [[], [], []], [0, 0, 2])


def test_columns_are_the_records_that_they_were_made_of() -> None:
    columns = RecordColumns.of(ROWS)

    assert (len(columns), list(columns), columns[1], columns[1:]) == (3, ROWS, ROWS[1], ROWS[1:])
    assert RecordColumns.of(columns) is columns


def test_no_records_are_columns_too() -> None:
    assert list(RecordColumns.of([])) == []


def test_outputs_are_chosen_by_index() -> None:
    assert OUTPUTS.at([0, 1, 2]) is OUTPUTS
    assert list(zip(*OUTPUTS.at([0, 2]))) == [(None, b"a", b"1", 5, [], 0), (None, b"c", None, 7, [], 2)]


def test_one_output_is_still_columns() -> None:
    assert list(zip(*OUTPUTS.at([1]))) == [(1, b"b", b"2", 6, [], 0)]
