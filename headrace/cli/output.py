"""The output of commands: tables for people, lines with tabs for programs."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

NUMBERS = frozenset({"partitions", "partition", "end offset", "retention (ms)"})
_CONTROLS = {code: f"\\x{code:02x}" for code in (*range(32), *range(127, 160)) if chr(code) not in "\t\n"}
"""Control characters are shown by their code, so that a record cannot command the terminal."""
STYLES = {"key": "cyan", "timestamp": "dim", "partition": "dim", "offset": "dim", "headers": "magenta"}


def print_rows(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table on a terminal, and plain rows with tabs anywhere else."""
    if not sys.stdout.isatty():
        for row in rows:
            print("\t".join(row))
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, justify="right" if column in NUMBERS else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(part) for part in row))
    Console(highlight=False).print(table)


class LinePrinter:
    """Print records as they arrive, with tabs between the columns and colours on a terminal."""

    def __init__(self, columns: Sequence[str], *, at_once: bool) -> None:
        self._styles = [STYLES.get(column, "") for column in columns]
        self._console = Console(highlight=False) if sys.stdout.isatty() else None
        self._at_once = at_once

    def print(self, parts: Sequence[str]) -> None:
        if self._console is None:
            print("\t".join(parts), flush=self._at_once)
        else:
            pairs = zip(parts, self._styles)
            text = Text("\t").join(Text(part.translate(_CONTROLS), style) for part, style in pairs)
            self._console.print(text, soft_wrap=True)
