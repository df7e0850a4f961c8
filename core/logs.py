"""Logging of every process: one line a record, as text or as JSON, with the call that it is about.

Nobody can write into a log: no record begins a second line, no character commands a terminal.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import threading
import time
from contextvars import ContextVar, Token
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, TypeAlias
from uuid import UUID

from django.core.exceptions import PermissionDenied

from core.bad_setting import BadSetting
from core.request_ids import current_id, request_trace_id
from core.telemetry import current_trace_id
from core.text import revealed

ExcInfo: TypeAlias = (
    tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
)
FORMATS = ("text", "json")
IDS = ("call_id", "request_id", "trace_id")
# A message may hold a stranger's megabyte.
LONGEST = 4000
# A line that is the same again is logged once in so many seconds; so many lines are remembered.
REPEATED_S, REPEATED_MAX = 60.0, 500
# Lines of a traceback, which no message can begin with: its line breaks are written out.
BELOW = "    | "
# What lets somebody in, wherever a library or a server quotes it: tokens, sign-in links, and
# passwords in URLs.
_SECRETS = re.compile(
    r"(cs[aps]_[0-9A-Za-z]{8}_|/sign-in/|/password-reset/|[Bb]earer )[\w.~+=-]{6,}|(://[^/\s:@]*:)[^/\s@]+(?=@)"
)


class CallContext:
    """While a thread or task handles a call, what it logs has the call's id."""

    __slots__ = ("_token", "call_id")
    _token: Token[CallContext | None]

    def __init__(self, call_id: UUID) -> None:
        self.call_id: UUID | None = call_id

    def __enter__(self) -> None:
        self._token = _current.set(self)

    def __exit__(self, *_error: object) -> None:
        _current.reset(self._token)
        # Tasks that were begun meanwhile, and outlive the call, have a copy of the variable.
        self.call_id = None


_current: ContextVar[CallContext | None] = ContextVar("call", default=None)


class IdFilter(logging.Filter):
    """Adds `call_id`, `request_id` and `trace_id` to a record: empty where there is none."""

    def filter(self, record: logging.LogRecord) -> bool:
        current = _current.get()
        record.call_id = str((current and current.call_id) or "")
        record.request_id = current_id()
        record.trace_id = current_trace_id() or request_trace_id()
        return True


class RefusalFilter(logging.Filter):
    """Logs a refusal, which is no error of ours, in a line without a traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.exc_info and isinstance(record.exc_info[1], PermissionDenied):
            record.exc_info = None
        return True


class RepeatFilter(logging.Filter):
    """Passes one line of level WARNING or above that is the same again in `REPEATED_S`, with the
    number of those left out (`repeated`). While the database is away, what tries each second
    would otherwise push older lines out of a log of limited size. Lines of a call or a request all
    pass."""

    def __init__(self) -> None:
        super().__init__()
        # By line: when one passed last, and how many did not since.
        self._seen: dict[tuple[str, int, str, str], tuple[float, int]] = {}
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        is_background = not (getattr(record, "call_id", "") or getattr(record, "request_id", ""))
        if record.levelno < logging.WARNING or not is_background:
            return True
        error = record.exc_info[1] if record.exc_info else None
        # As much as is logged of it: 500 of a stranger's megabytes are not kept.
        said = record.getMessage()[:LONGEST], repr(error)[:LONGEST] if error else ""
        line = (record.name, record.levelno, *said)
        with self._lock:
            passed_at, left_out = self._seen.get(line, (float("-inf"), 0))
            now = time.monotonic()
            if now - passed_at < REPEATED_S:
                self._seen[line] = (passed_at, left_out + 1)
                return False
            self._seen.pop(line, None)
            self._seen[line] = (now, 0)
            if len(self._seen) > REPEATED_MAX:
                self._seen.pop(next(iter(self._seen)))
        record.repeated = left_out
        return True


class TextFormatter(logging.Formatter):
    """`2026-11-23T01:01:44.123Z WARNING calls.dispatch [ids of call, request, trace] message`;
    `-` where there is no id."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s [%(ids)s] %(message)s")

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        return _time(record)

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = escaped(record.message)
        found = (getattr(record, name, "") for name in IDS)
        record.ids = " ".join(filter(None, found)) or "-"
        if left_out := getattr(record, "repeated", 0):
            record.message += f" ({left_out} more since the last one)"
        return super().formatMessage(record)

    def formatException(self, ei: ExcInfo) -> str:
        return _below(super().formatException(ei))

    def formatStack(self, stack_info: str) -> str:
        return _below(super().formatStack(stack_info))


class JsonFormatter(logging.Formatter):
    """One object a line: `time`, `level`, `logger`, `call_id`, `request_id` and `trace_id` (or
    null), `message`, and `repeated`, `http`, `exception` or `stack` where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": _time(record),
            "level": record.levelname,
            "logger": record.name,
            **{name: getattr(record, name, "") or None for name in IDS},
            "message": printable(record.getMessage()),
        }
        if left_out := getattr(record, "repeated", 0):
            line["repeated"] = left_out
        if facts := getattr(record, "http", None):
            line["http"] = {**facts, "path": printable(facts["path"])}
        if record.exc_info:
            lines = self.formatException(record.exc_info).split("\n")
            line["exception"] = "\n".join(map(escaped, lines))
        if record.stack_info:
            line["stack"] = "\n".join(map(escaped, record.stack_info.split("\n")))
        return json.dumps(line)


class StandardError(logging.StreamHandler):  # type: ignore[type-arg]
    """Writes to standard error as it is at that moment: tests take it and give it back."""

    def emit(self, record: logging.LogRecord) -> None:
        self.stream = sys.stderr
        super().emit(record)


def configuration(*, style: str, level: str) -> dict[str, Any]:
    """The argument of `logging.config.dictConfig`: everything goes to standard error."""
    formatter = JsonFormatter if style == "json" else TextFormatter
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {
            "ids": {"()": IdFilter},
            "refusals": {"()": RefusalFilter},
            "repeated": {"()": RepeatFilter},
        },
        "formatters": {"line": {"()": formatter}},
        "handlers": {
            "stderr": {
                "()": StandardError,
                "formatter": "line",
                "filters": ["ids", "refusals", "repeated"],
            }
        },
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {"aiohttp.access": {"level": "WARNING"}, "daphne.server": {"level": "WARNING"}},
    }


def style(named: str, *, terminal: bool) -> str:
    """“text” for people at a terminal and “json” for what collects logs, unless one is named."""
    if named and named not in FORMATS:
        raise BadSetting(f"COUNTERSIGN_LOG_FORMAT is {named!r}, and may be text or json.")
    return named or FORMATS[not terminal]


def escaped(text: str) -> str:
    """Printable, on one line."""
    return printable(text).replace("\n", "⏎").replace("\t", " ")


def printable(text: str) -> str:
    """Without secrets, and with every hidden character written out."""
    shown = revealed(_SECRETS.sub(r"\1\2…", text[:LONGEST]))
    return f"{shown}… ({len(text) - LONGEST} more)" if len(text) > LONGEST else shown


def _time(record: logging.LogRecord) -> str:
    at = datetime.fromtimestamp(record.created, UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{int(record.msecs):03d}Z"


def _below(text: str) -> str:
    return "\n".join(BELOW + escaped(line) for line in text.split("\n"))
