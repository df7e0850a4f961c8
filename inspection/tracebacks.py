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
# A file with its line, as (A.java:3), (/a.js:3:4), /a.js:3:4 and a.cs:line 3 have it. What is in it
# is looked for from the line's beginning, so that no part of it has many ways to fit.
_FRAME = re.compile(
    r"(?m)^[ \t]{1,40}at (?:"
    r"(?=[^\n(]{0,300}\()(?=[^\n]{0,600}?(?:[/\\>]|\.[A-Za-z]{1,6}:\d|SourceFile))"
    r"[^\n]{0,900}[^\s:(]:\d{1,7}\)"
    r"|[^\n]{0,900}\((?:Native Method|Unknown Source|<anonymous>|<generated>)\)"
    r"|(?:async )?(?=\S{0,600}?[./\\])\S{1,600}:\d{1,7}:\d{1,7}"
    r"|(?=[^\n]{0,600}? in )[^\n]{0,900}:line \d{1,7})[ \t\r]*$"
)
# How a line begins that says what went wrong. After it one frame is a traceback, and in .NET also a
# frame without a file.
_ERROR_LINE = re.compile(
    r"(?:Uncaught |Unhandled exception\. |Exception in thread \"[^\"\n]{1,200}\" |Caused by: )?"
    r"(?:[A-Za-z_][\w.$]{0,200})?(?:Exception|Error|Throwable)(?::|\Z)"
)
_METHOD = re.compile(
    r"(?m)^[ \t]{1,40}at \w{1,200}[.+`<>\w\[\],]{0,300}\.[^\s(]{1,200}\([^()\n]{0,500}\)\s*$"
)
_GO = re.compile(r"(?m)^goroutine \d+ \[[^\n\]]{1,60}\]:(?:\n[^\n]+)+")
_PHP = re.compile(r"(?m)^#0 (?:\{main\}|[^\n]*(?:\n#\d+ [^\n]*)+)(?:\n  thrown in [^\n]*)?")
_PHP_FRAME = re.compile(
    r"(?m)^#\d{1,5}\s{1,8}(?:\S{1,300}\.\w{1,8}\(\d{1,7}\): |\[internal function\]: |\{main\}"
    r"|0x[0-9a-f]{6,16} in |[^\n]{1,200}(?:\(| at )[^\n()\s]{1,200}\.\w{1,5}:\d)"
)
_RUBY = re.compile(r"(?m)^[ \t]{1,8}from [^\n]*:\d+:in [`'][^\n]*(?:\n[ \t]{1,8}from [^\n]*)*")
# Where a machine's own files are, not what somebody asked about.
_PATH = re.compile(
    r"/(?<![\w/.:\-].)(?:home|root|Users|usr|var|opt|srv|app|etc|tmp|mnt|data|private|proc"
    r"|workspace)"
    r"/[\w.\-+@/]{1,400}(?::\d{1,7})?"
)
_PATH_OR_DRIVE = re.compile(
    rf"{_PATH.pattern}|\b[A-Za-z]:\\(?:[\w.\-+@ ]{{1,80}}\\){{1,20}}[\w.\-+@]{{1,80}}"
)


class _Language(NamedTuple):
    mark: str
    frames: re.Pattern[str]
    # How many lines before the frames say what went wrong.
    before: int = 1
    # The line before the frames, and the frames.
    holds: Callable[[str, str], bool] = lambda error, text: True


def _has_frames(error: str, text: str) -> bool:
    frames = len(_FRAME.findall(text))
    if frames >= 2 or _ERROR_LINE.match(error) is None:
        return frames >= 2
    return frames == 1 or ("." in error.partition(":")[0] and _METHOD.search(text) is not None)


_LANGUAGES = (
    _Language("goroutine ", _GO, 3),
    _Language("#0 ", _PHP, 2, holds=lambda _error, text: _PHP_FRAME.search(text) is not None),
    _Language(":in ", _RUBY),
    _Language("at ", _AT, holds=_has_frames),
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
        start = match.start()
        if not language.holds(_line_before(text, start), match.group()):
            continue
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


def _line_before(text: str, start: int) -> str:
    line_start = text.rfind("\n", max(start - 500, 0), max(start - 1, 0)) + 1
    return text[line_start:start].strip() if start - line_start <= 500 else ""


def paths(text: str) -> Iterator[re.Match[str]]:
    return (_PATH_OR_DRIVE if ":\\" in text else _PATH).finditer(text)


def could_be(document: str) -> bool:
    """Whether any text of this JSON document could hold a traceback: its lines end as escapes."""
    # Its end is rarer than its beginning, and found sooner.
    if "(most recent" in document or "goroutine " in document or _FIRST_LINE.search(document):
        return True
    return "\\" in document and _LATER_LINE.search(document) is not None


_FRAMES = r"(?:(?:[ ]|\\{1,16}t){1,40}(?:at|from) |#0 )"
# A text begins with one, or a line within it. Apart: each begins with letters to look for.
_FIRST_LINE, _LATER_LINE = (re.compile(begin + _FRAMES) for begin in ('"', r"\\n"))
