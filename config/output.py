"""The output of `up`: its own lines and those of its children, in the format of the logs."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from contextlib import suppress
from typing import Any

from core.logs import JsonFormatter, TextFormatter, style

# How grave PostgreSQL calls a line of its log. LOG and what it says to clients are INFO.
GRAVE = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \S+ (WARNING|ERROR|FATAL|PANIC):  ")
LEVELS = {
    "WARNING": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.ERROR,
    "PANIC": logging.CRITICAL,
}
COLOURS = (36, 35, 33, 32, 34, 96)


class Output:
    """Standard output: in columns at a terminal, else one JSON object a line."""

    def __init__(self) -> None:
        terminal = sys.stdout.isatty()
        self.style = style(os.environ.get("COUNTERSIGN_LOG_FORMAT", ""), terminal=terminal)
        self.coloured = terminal and "NO_COLOR" not in os.environ

    def say(self, process: str, message: str, *, level: int = logging.INFO) -> None:
        """A line of our own about `process`."""
        if self.style == "json":
            _print(json.dumps({"process": process, **_parsed(process, message, level)}))
        else:
            self._column(process, TextFormatter().format(_record(process, message, level)))

    def relay(self, process: str, line: str) -> None:
        """A line that `process` wrote: a log record, or whatever its programs print."""
        if self.style == "json":
            _print(
                json.dumps(
                    {"process": process, **(_logged(line) or _parsed(process, line, _level(line)))}
                )
            )
        else:
            self._column(process, line)

    def greet(self, text: str) -> None:
        if self.style == "json":
            self.say("up", text)
        else:
            _print(text)

    def _column(self, process: str, line: str) -> None:
        prefix = f"{process:<8} │ "
        if self.coloured:
            colour = COLOURS[sum(process.encode()) % len(COLOURS)]
            prefix = f"\x1b[{colour}m{prefix}\x1b[0m"
        _print(prefix + line)


def _logged(line: str) -> dict[str, Any] | None:
    """The record that a child of ours wrote as JSON."""
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, dict) and "message" in found else None


def _parsed(process: str, message: str, level: int) -> dict[str, Any]:
    return dict(json.loads(JsonFormatter().format(_record(process, message, level))))


def _level(line: str) -> int:
    """INFO of whatever is no line of PostgreSQL's log."""
    found = GRAVE.match(line)
    return LEVELS[found[1]] if found else logging.INFO


def _record(process: str, message: str, level: int) -> logging.LogRecord:
    return logging.LogRecord(process, level, "", 0, message, None, None)


def _print(line: str) -> None:
    # On a full disk a line is lost. Whoever stopped reading its child here would stop the child,
    # too, once the pipe between them is full.
    with suppress(OSError):
        print(line, flush=True)  # noqa: T201 this is the program's output
