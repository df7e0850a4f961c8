"""Tracebacks, and paths of the machine that a server runs on."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple


class Trace(NamedTuple):
    start: int
    end: int
    # What went wrong, in the traceback's own words.
    said: str


_HEAD = "Traceback (most recent call last):"
_NAMED_ERROR = re.compile(r"[A-Za-z_][\w.]{0,200}(?::|\Z)")
_CHAINED = ("During handling of the above", "The above exception was")
# Frames from the first line on that begins as only frames do. What went wrong stands before them.
_AT = re.compile(
    r"(?m)^[ \t]{1,40}at [^\n]*(?:\n(?:[ \t]{1,40}(?:at |\.\.\. \d|Suppressed: )"
    r"|Caused by: )[^\n]*)*"
)
_FRAME = re.compile(
    r"(?m)^[ \t]{1,40}at [^\n]*(?:[(:][^\n():]{0,300}:\d+(?::\d+)?\)?|:line \d+"
    r"|\((?:Native Method|Unknown Source|<anonymous>)\))[ \t\r]*$"
)
_GO = re.compile(r"(?m)^goroutine \d+ \[[^\n\]]{1,60}\]:(?:\n[^\n]+)+")
_PHP = re.compile(r"(?m)^#0 [^\n]*(?:\n#\d+ [^\n]*)+(?:\n  thrown in [^\n]*)?")
_RUBY = re.compile(r"(?m)^[ \t]{1,8}from [^\n]*:\d+:in [^\n]*(?:\n[ \t]{1,8}from [^\n]*)*")
# Where a machine's own files are, not what somebody asked about.
_PATH = re.compile(
    r"(?<![\w/.:\-])/(?:home|root|Users|usr|var|opt|srv|app|etc|tmp|mnt|data|private|proc"
    r"|workspace)"
    r"/[\w.\-+@/]{1,400}(?::\d{1,7})?"
    r"|\b[A-Za-z]:\\(?:[\w.\-+@ ]{1,80}\\){1,20}[\w.\-+@]{1,80}"
)


class _Language(NamedTuple):
    mark: str
    frames: re.Pattern[str]
    # How many lines before the frames say what went wrong.
    before: int = 1
    holds: Callable[[str], bool] = lambda text: True


_LANGUAGES = (
    _Language("goroutine ", _GO, 3),
    _Language("#0 ", _PHP, 2),
    _Language(":in ", _RUBY),
    _Language("at ", _AT, holds=lambda text: len(_FRAME.findall(text)) >= 2),
)


def traces(text: str) -> list[Trace]:
    """In order, none within another."""
    found = list(_python(text))
    for language in _LANGUAGES:
        if language.mark in text:
            found += _framed(text, language)
    kept: list[Trace] = []
    for one in sorted(found):
        if not kept or one.start >= kept[-1].end:
            kept.append(one)
    return kept


def _python(text: str) -> Iterator[Trace]:
    at = text.find(_HEAD)
    while at >= 0:
        end, said = _end_of_python(text, at + len(_HEAD))
        if said:
            yield Trace(at, end, said)
        at = text.find(_HEAD, end)


def _end_of_python(text: str, at: int) -> tuple[int, str]:
    """Where it ends, and its last error; "" where no frame came."""
    end, said, has_frame = at, "", False
    while at < len(text):
        line_end = text.find("\n", at + 1)
        line_end = len(text) if line_end < 0 else line_end
        line = text[at + 1 : line_end].rstrip("\r")
        if line.startswith(_CHAINED) or line == _HEAD:
            pass
        elif line[:1] in (" ", "\t", ""):
            has_frame = has_frame or line.lstrip().startswith("File ")
        elif has_frame and _NAMED_ERROR.match(line):
            end, said = line_end, line
            if not text.startswith(_CHAINED, _after_blank(text, line_end)):
                return end, said
        else:
            break
        at = line_end
    return max(end, at if not said else end), said


def _after_blank(text: str, at: int) -> int:
    while at < len(text) and text[at] in " \t\r\n":
        at += 1
    return at


def _framed(text: str, language: _Language) -> Iterator[Trace]:
    for match in language.frames.finditer(text):
        if not language.holds(match.group()):
            continue
        start = match.start()
        lines: list[str] = []
        for _ in range(language.before):
            line_start = text.rfind("\n", 0, max(start - 1, 0)) + 1 if start else 0
            if start == 0 or start - line_start > 500:
                break
            lines.insert(0, text[line_start:start].strip())
            start = line_start
            if lines[0] and lines[0] != "Stack trace:":
                break
        said = next((line for line in lines if line and line != "Stack trace:"), "")
        yield Trace(start, match.end(), said)


def paths(text: str) -> Iterator[re.Match[str]]:
    return _PATH.finditer(text) if "/" in text or "\\" in text else iter(())


def could_be(document: str) -> bool:
    """Whether any text of this JSON document could hold a traceback: its lines end as escapes."""
    if _HEAD in document or "goroutine " in document or _FIRST_LINE.search(document):
        return True
    return "\\" in document and _LATER_LINE.search(document) is not None


_FRAMES = r"(?:(?:[ ]|\\t){1,40}(?:at|from) |#0 )"
# A text begins with one, or a line within it. Apart: each begins with letters to look for.
_FIRST_LINE, _LATER_LINE = (re.compile(begin + _FRAMES) for begin in ('"', r"\\n"))
