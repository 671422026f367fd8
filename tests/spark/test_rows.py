"""Messages as rows of Spark."""

from headrace.engine.messages import ClockTick, Report, decode
from headrace.spark.rows import batch_of


def test_rows_keep_their_tasks_and_messages() -> None:
    same = ClockTick(3)
    report = Report("reader", {"in": 1.0}, {"in": {0: 5}})
    batch = batch_of([(4, same), (-2, report), (9, same), (1, b"as it is")])
    assert batch.column(0).to_pylist() == [4, -2, 9, 1]
    messages = batch.column(1).to_pylist()
    assert [decode(message) for message in messages[:3]] == [same, report, same]
    assert messages[3] == b"as it is"
