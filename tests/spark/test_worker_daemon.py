"""What a worker of Spark's prints when it dies."""

import pytest

from headrace.spark.worker_daemon import print_exception


@pytest.mark.parametrize(
    ("error", "printed"), [(BrokenPipeError(), ""), (ConnectionResetError(), ""), (ValueError("no"), "ValueError: no")]
)
def test_all_but_a_socket_that_spark_has_closed_is_printed(
    error: Exception, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        raise error
    except Exception:
        print_exception()

    assert capsys.readouterr().err.strip().rpartition("\n")[2] == printed
