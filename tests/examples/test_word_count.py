"""Word count, and the application around it.

Tests: headrace.demos.word_count
"""

import re
from collections import Counter
from pathlib import Path

import pytest

from examples import word_count as application
from headrace.brokers import connect
from headrace.demos import START, word_count
from headrace.demos.word_count import DEMO, make_records, summarize, words_of
from headrace.testing import TopologyTestDriver
from tests.examples.running import outputs_of


def counts_of(*lines: str) -> list[tuple[str, int]]:
    return outputs_of(DEMO, [("lines", None, line.encode(), START) for line in lines])["word-counts"]


def test_each_word_comes_out_with_its_count_so_far() -> None:
    assert counts_of("to be or not", "to be") == [("to", 1), ("be", 1), ("or", 1), ("not", 1), ("to", 2), ("be", 2)]


def test_capitals_and_what_stands_around_a_word_do_not_matter() -> None:
    assert dict(counts_of("Tea, tea; (TEA)!", "“tea” – tea?")) == {"tea": 5}


def test_a_word_twice_in_a_line_counts_twice() -> None:
    assert counts_of("tea for tea") == [("tea", 1), ("for", 1), ("tea", 2)]


@pytest.mark.parametrize("line", ["", "   ", "... -- !"])
def test_a_line_without_words_gives_nothing(line: str) -> None:
    assert counts_of(line) == []


def test_an_apostrophe_belongs_to_a_word_only_inside_it() -> None:
    assert words_of("'Don't!' said the boys' aunt") == ["don't", "said", "the", "boys", "aunt"]


def test_words_of_any_language_are_words() -> None:
    assert words_of("Über Straße, ναι 42 да") == ["über", "straße", "ναι", "42", "да"]


def test_a_count_has_the_time_of_its_latest_line() -> None:
    with TopologyTestDriver(word_count.build_topology()) as driver:
        lines = driver.create_input_topic("lines")
        lines.pipe_input(None, "tea", timestamp=50)
        lines.pipe_input(None, "tea", timestamp=20)

        records = driver.create_output_topic("word-counts").read_records()

        assert [(record.value, record.timestamp) for record in records] == [(1, 50), (2, 50)]
        assert driver.state_store("counts").get("tea") == 2


def test_generated_lines_are_counted_as_plain_python_counts_them() -> None:
    records = list(make_records(400))
    text = " ".join(value.decode() for _, _, value, _ in records)

    counts = dict(outputs_of(DEMO, records)["word-counts"])

    stripped = [word.strip(".,;!?–").lower() for word in text.split()]
    assert counts == Counter(word for word in stripped if word)


def test_generated_lines_have_no_key() -> None:
    assert {key for _, key, _, _ in make_records(100)} == {None}


def test_generated_lines_look_like_sentences() -> None:
    lines = [value.decode() for _, _, value, _ in make_records(300)]

    assert all(re.fullmatch(r"[A-Z].*[.!?]", line) for line in lines)
    assert any("," in line for line in lines)
    assert any("'" in line for line in lines)


def test_few_generated_words_are_frequent_and_most_are_rare() -> None:
    counts = Counter(word for _, _, value, _ in make_records(4000) for word in words_of(value.decode()))
    ranked = [count for _, count in counts.most_common()]

    assert next(iter(counts.most_common(1)))[0] == "the"
    assert len(counts) > 2000
    assert 3 < ranked[0] / ranked[9] < 9  # Zipf: about (10 + 1) / 2 times as frequent
    assert sum(ranked[:150]) > sum(ranked) / 2


def test_the_summary_has_the_last_count_of_the_ten_most_frequent_words() -> None:
    updates = [(word, count) for word in "abcdefghijkl" for count in range(1, 1001 if word == "c" else 3)]

    lines = summarize({"word-counts": updates})

    assert lines[0] == "1,022 words, 12 different ones"
    assert lines[1:4] == ["     1,000  c", "         2  a", "         2  b"]
    assert len(lines) == 11


# -- the application --------------------------------------------------------------------------------------------------


def test_the_application_has_the_topology_of_the_demo() -> None:
    assert application.build_topology is word_count.build_topology


def test_the_application_writes_lines_and_reads_counts(tmp_path: Path) -> None:
    with connect(f"local:{tmp_path}/topics.db") as broker, TopologyTestDriver(application.build_topology()) as driver:
        application.write_lines(broker, 50)
        for line in broker.records("lines"):
            driver.pipe("lines", line.key, line.value, line.timestamp, [])
        broker.produce("word-counts", [record[:2] for record in driver.queue("word-counts")])

        assert {name: topic.partitions for name, topic in broker.topics().items()} == {"lines": 2, "word-counts": 2}
        assert sum(broker.end_offsets("lines").values()) == 50
        assert application.read_top_words(broker) == summarize(outputs_of(DEMO, make_records(50)))


@pytest.mark.slow
@pytest.mark.xdist_group("spark")
def test_the_application_runs_and_prints_the_most_frequent_words(capsys: pytest.CaptureFixture[str]) -> None:
    application.main()

    printed = capsys.readouterr().out.splitlines()

    words = Counter(word for _, _, value, _ in make_records(20_000) for word in words_of(value.decode()))
    assert printed == summarize({"word-counts": list(words.items())})
