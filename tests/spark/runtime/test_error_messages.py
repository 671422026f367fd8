"""What Spark says when something fails."""

import pytest
from pyspark.errors import PySparkException

from headrace.errors import StreamsError, UnavailableError
from headrace.spark.runtime.error_messages import readable

FROM_A_READER = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Failed when Python streaming
data source perform latestOffset: Traceback (most recent call last):
  File "worker.py", line 1, in main
headrace.errors.{} SQLSTATE: XXKST"""
BROKER_KILLED = "no answer from localhost:9092 (Receive failed: Connection reset by peer)"


def test_a_broker_that_was_killed_is_no_worker_that_died() -> None:
    error = readable(PySparkException(FROM_A_READER.format(f"UnavailableError: {BROKER_KILLED}")))

    assert isinstance(error, UnavailableError)
    assert BROKER_KILLED in str(error)


@pytest.mark.parametrize(
    "said", ["Python worker exited unexpectedly (crashed)", "java.net.SocketException: Connection reset"]
)
def test_a_worker_that_died_is_told_so(said: str) -> None:
    error = readable(PySparkException(f"Job aborted due to stage failure: {said}\n\tat java.base/Thread.run"))

    assert isinstance(error, StreamsError)
    assert "a Python worker died" in str(error)


def test_an_error_of_python_is_told_without_what_spark_says_around_it() -> None:
    assert str(readable(PySparkException("Job aborted\nValueError: no number\n"))) == "ValueError: no number"
    assert str(readable(PySparkException("Job aborted\nheadrace.errors.TaskError: no number"))) == "no number"


def test_what_python_had_no_part_in_is_told_as_spark_says_it() -> None:
    said = "An error occurred while calling o1.start.\n: java.io.IOException: No space left on device\n\tat x.Y"

    assert str(readable(PySparkException(said))) == "Spark failed: No space left on device"
