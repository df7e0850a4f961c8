"""Logs that nobody can write into: one line a record, and no character that a terminal obeys."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import TypeAlias

from core.text import revealed

ExcInfo: TypeAlias = (
    tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]
)
# A message may hold a stranger's megabyte.
LONGEST = 4000
# Lines of a traceback, which no message can begin with: its line breaks are written out.
BELOW = "    | "


class OneLine(logging.Formatter):
    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = escaped(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: ExcInfo) -> str:
        return _below(super().formatException(ei))

    def formatStack(self, stack_info: str) -> str:
        return _below(super().formatStack(stack_info))


def escaped(text: str) -> str:
    kept = text[:LONGEST]
    shown = revealed(kept).replace("\n", "⏎").replace("\t", " ")
    return f"{shown}… ({len(text) - LONGEST} more)" if len(text) > LONGEST else shown


def _below(text: str) -> str:
    return "\n".join(BELOW + escaped(line) for line in text.split("\n"))
