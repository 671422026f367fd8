"""Top ten: an aggregation in two phases, with adder and subtractor.

Tests: headrace.demos.top_ten
"""

import json
from collections import Counter
from typing import Any

import pytest

from headrace.demos import InputRecord
from headrace.demos.top_ten import DEMO, Row, make_records, summarize, with_symbol, without_symbol
from headrace.testing import TopologyTestDriver
from tests.examples.running import NO_CACHE, outputs_of, pipe, record

CONFIGS = pytest.mark.parametrize("config", [{}, NO_CACHE], ids=["with caches", "without caches"])


def trade(symbol: str, size: int, at: int = 0) -> InputRecord:
    return record("trades", None, {"symbol": symbol, "size": size}, at)


def lists_of(*trades: InputRecord, config: dict[str, Any] | None = None) -> list[list[tuple[str, int]]]:
    lists = outputs_of(DEMO, trades, config)["top-ten"]
    return [[(row["symbol"], row["volume"]) for row in rows] for _, rows in lists]


def top_of(*trades: InputRecord) -> list[tuple[str, int]]:
    return lists_of(*trades)[-1]


def rows(*pairs: tuple[str, int]) -> list[Row]:
    return [Row(symbol=symbol, volume=volume) for symbol, volume in pairs]


def ranked(volumes: Counter[str]) -> list[tuple[str, int]]:
    return sorted(volumes.items(), key=lambda row: (-row[1], row[0]))[:10]


TEN = [trade(symbol, 100 * (10 - place)) for place, symbol in enumerate("ABCDEFGHIJ")]
"""A has 1000, B 900 … J 100."""


@CONFIGS
def test_every_trade_gives_one_list(config: dict[str, Any]) -> None:
    lists = lists_of(trade("A", 5), trade("B", 7), trade("A", 4), config=config)

    assert lists == [[("A", 5)], [("B", 7), ("A", 5)], [("A", 9), ("B", 7)]]


def test_all_lists_have_the_same_key() -> None:
    assert {key for key, _ in outputs_of(DEMO, TEN)["top-ten"]} == {"all"}


def test_a_symbol_stands_in_the_list_once() -> None:
    assert top_of(trade("A", 1), trade("A", 2), trade("A", 3)) == [("A", 6)]


@CONFIGS
def test_a_symbol_that_trades_moves_up(config: dict[str, Any]) -> None:
    *_, before, after = lists_of(*TEN, trade("J", 850), config=config)

    assert [symbol for symbol, _ in before] == list("ABCDEFGHIJ")
    assert after[:4] == [("A", 1000), ("J", 950), ("B", 900), ("C", 800)]
    assert len(after) == 10


def test_of_equal_volumes_the_first_in_the_alphabet_comes_first() -> None:
    assert top_of(trade("C", 5), trade("A", 5), trade("B", 5)) == [("A", 5), ("B", 5), ("C", 5)]


def test_the_eleventh_is_not_in_the_list() -> None:
    assert "K" not in dict(top_of(*TEN, trade("K", 99)))


@CONFIGS
def test_the_eleventh_takes_the_place_of_the_tenth_when_it_has_more(config: dict[str, Any]) -> None:
    top = dict(lists_of(*TEN, trade("K", 99), trade("K", 2), config=config)[-1])

    assert "J" not in top
    assert top["K"] == 101
    assert len(top) == 10


@pytest.mark.parametrize(("symbol", "is_in"), [("AA", True), ("Z", False)])
def test_a_tie_for_the_tenth_place_goes_by_the_alphabet_too(symbol: str, is_in: bool) -> None:
    assert (symbol in dict(top_of(*TEN, trade(symbol, 100)))) is is_in


def test_a_symbol_that_dropped_out_comes_back_with_all_it_has() -> None:
    top = dict(top_of(*TEN, trade("K", 150), trade("J", 60)))

    assert top["J"] == 160
    assert "K" not in top


def test_order_of_trades_does_not_matter_for_the_last_list() -> None:
    trades = list(make_records(300))

    assert top_of(*trades) == top_of(*reversed(trades))


def test_a_late_trade_counts_and_the_list_keeps_its_time() -> None:
    with TopologyTestDriver(DEMO.build_topology()) as driver:
        pipe(driver, [trade("A", 5, at=100), trade("A", 1, at=20)])

        last = driver.create_output_topic("top-ten").read_records()[-1]

    assert (last.value, last.timestamp) == (rows(("A", 6)), 100)


def test_volumes_and_the_list_can_be_read_from_their_stores() -> None:
    with TopologyTestDriver(DEMO.build_topology()) as driver:
        pipe(driver, [*TEN, trade("K", 99)])

        assert driver.state_store("volumes").get("K") == 99
        assert driver.state_store("top-ten").get("all") == rows(
            *((symbol, 100 * (10 - place)) for place, symbol in enumerate("ABCDEFGHIJ"))
        )


def test_both_phases_repartition() -> None:
    with TopologyTestDriver(DEMO.build_topology(), {"application_id": "trading"}) as driver:
        pipe(driver, TEN)

        assert driver.produced_topic_names() == {
            "trading-volumes-repartition",
            "trading-top-ten-repartition",
            "top-ten",
        }


def test_the_adder_leaves_the_list_it_was_given_as_it_is() -> None:
    given = rows(("A", 5))

    assert with_symbol("all", Row(symbol="B", volume=7), given) == rows(("B", 7), ("A", 5))
    assert given == rows(("A", 5))


def test_the_subtractor_takes_out_that_symbol_only() -> None:
    given = rows(("A", 5), ("B", 5))

    assert without_symbol("all", Row(symbol="A", volume=5), given) == rows(("B", 5))
    assert without_symbol("all", Row(symbol="K", volume=0), given) == given
    assert given == rows(("A", 5), ("B", 5))


@CONFIGS
def test_generated_trades_give_what_plain_python_computes_after_each(config: dict[str, Any]) -> None:
    records = list(make_records(1200))
    volumes: Counter[str] = Counter()
    expected = []
    for _, _, data, _ in records:
        value = json.loads(data)
        volumes[value["symbol"]] += value["size"]
        expected.append(ranked(volumes))

    assert lists_of(*records, config=config) == expected
    assert len(volumes) > 100


def test_generated_trades_have_no_key_and_are_of_200_symbols() -> None:
    records = list(make_records(5000))

    assert {key for _, key, _, _ in records} == {None}
    assert len({json.loads(value)["symbol"] for _, _, value, _ in records}) == 200


def test_the_summary_is_the_last_list() -> None:
    lists = [("all", rows(("A", 5))), ("all", rows(("BRIO", 1234567), ("A", 5)))]

    assert summarize({"top-ten": lists}) == ["   1. BRIO     1,234,567", "   2. A                5"]
