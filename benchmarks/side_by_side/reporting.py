"""The tables for docs/benchmarks.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from benchmarks.side_by_side.catalogue import PEERS, WORK
from benchmarks.side_by_side.measuring import Outcome

YARDSTICK = "kafka-streams"


def tables(outcomes: Iterable[Outcome]) -> str:
    """Return the outcomes as Markdown: records/s, the other figures, and the failures."""
    found = {(outcome.peer, outcome.work): outcome for outcome in outcomes}
    peers = [name for name in PEERS if any(peer == name for peer, _ in found)]
    works = [name for name in WORK if any(work == name for _, work in found)]
    rates = [["", *works]]
    others = [["", "first output", "peak memory", "exact windows of W4", "latency, median", "p99"]]
    for name in peers:
        mine = [found.get((name, _measured_as(name, work))) for work in works]
        yardsticks = [found.get((YARDSTICK, work)) for work in works]
        rates.append([PEERS[name].title, *map(_rate, mine, yardsticks)])
        others.append([PEERS[name].title, *_others(name, found)])
    return "\n\n".join([*map(_markdown, (rates, others)), "\n".join(_remarks(found.values()))]).rstrip()


def line(outcome: Outcome) -> str:
    """Return an outcome in one line."""
    start = f"{outcome.peer:18}{outcome.work:12}"
    if outcome.failed is not None:
        return f"{start}{outcome.failed}"
    rest = f"first output {outcome.first_output_seconds:.1f} s, peak {outcome.peak_bytes / 1e6:,.0f} MB"
    if outcome.median_ms is not None and outcome.p99_ms is not None:
        return f"{start}median {outcome.median_ms:,.0f} ms, p99 {outcome.p99_ms:,.0f} ms, {rest}"
    return (
        f"{start}{outcome.rate:11,.0f}/s  {outcome.records:,} in, {outcome.records_out:,} out, "
        f"{outcome.right:,} of {outcome.wanted:,} results right, {rest}"
    )


def _measured_as(peer: str, work: str) -> str:
    """Return the work whose figure counts. A peer that has no caches does the same work without caches."""
    return WORK[work].base if PEERS[peer].every_change else work


def _rate(outcome: Outcome | None, yardstick: Outcome | None) -> str:
    if outcome is None:
        return ""
    if outcome.failed is not None:
        return "–"
    ratio = f" ({outcome.rate / yardstick.rate:.2f})" if yardstick and yardstick.rate else ""
    return f"{outcome.rate:,.0f}/s{ratio}"


def _others(name: str, found: dict[tuple[str, str], Outcome]) -> list[str]:
    mine = [outcome for (peer, _), outcome in found.items() if peer == name and outcome.failed is None]
    if not mine:
        return ["–"] * 5
    firsts = [outcome.first_output_seconds for outcome in mine]
    windows, latency = found.get((name, "W4")), found.get((name, "latency"))
    exact = f"{windows.right:,} of {windows.wanted:,}" if windows and windows.failed is None else "–"
    timed = latency is not None and latency.median_ms is not None and latency.p99_ms is not None
    return [
        f"{min(firsts):.1f} to {max(firsts):.1f} s",
        f"{max(outcome.peak_bytes for outcome in mine) / 1e6:,.0f} MB",
        exact,
        *([f"{latency.median_ms:,.0f} ms", f"{latency.p99_ms:,.0f} ms"] if latency and timed else ["–", "–"]),
    ]


def _remarks(outcomes: Iterable[Outcome]) -> Iterable[str]:
    for outcome in outcomes:
        about = f"- {PEERS[outcome.peer].title}, {outcome.work}:"
        if outcome.failed is not None:
            yield f"{about} {outcome.failed}"
        elif outcome.right < outcome.wanted:
            lost = f", {outcome.lost_records:,} records lost" if outcome.lost_records is not None else ""
            yield f"{about} {outcome.right:,} of {outcome.wanted:,} results are right{lost}"


def _markdown(rows: Sequence[Sequence[str]]) -> str:
    head, *rest = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([head, "|" + "---|" * len(rows[0]), *rest])
