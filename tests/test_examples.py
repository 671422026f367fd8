"""The examples run and end with what they promise."""

import pytest

from examples import word_count


def test_word_count_counts_and_says_it_is_the_test_driver(capsys: pytest.CaptureFixture[str]) -> None:
    word_count.main()

    printed = capsys.readouterr().out
    assert "test driver" in printed
    assert "kafka=3" in printed
