"""The command line: `headrace --help`."""

from headrace.cli.app import app, main

__all__ = ["app", "main"]
