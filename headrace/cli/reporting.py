"""How commands end: errors print one line, interruptions and closed pipes print nothing."""

from __future__ import annotations

import os
import sys
import traceback
from typing import Any

import typer
from rich.console import Console
from rich.text import Text
from typer.core import TyperGroup

from headrace.errors import HeadraceError

INTERRUPTED = 130
_WANTED = "headrace.traceback"


class Commands(TyperGroup):
    """Commands that report errors to users: in one line, with a traceback only on request."""

    def invoke(self, ctx: Any) -> Any:
        try:
            done = super().invoke(ctx)
            sys.stdout.flush()  # flush here, where a closed pipe can still be distinguished from an error
            return done
        except KeyboardInterrupt:
            raise typer.Exit(INTERRUPTED) from None
        except BrokenPipeError:
            # Discard the rest of the buffer: Python would complain about it on exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None
        except HeadraceError as error:
            if ctx.meta.get(_WANTED):
                traceback.print_exception(error)
            report(error)
            raise typer.Exit(1) from None


def want_traceback(ctx: typer.Context, wanted: bool) -> None:
    """Remember `--traceback`, which any command accepts."""
    if wanted:
        ctx.meta[_WANTED] = True


def report(error: HeadraceError) -> None:
    """Print an error as one line, red on a terminal."""
    message = " ".join(f"error: {error}".split("\n"))
    Console(stderr=True, highlight=False).print(Text(message, style="red"), soft_wrap=True)
