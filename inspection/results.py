"""Cleaning of a tool's result before its agent gets it, as an operator chose for the tool."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

from inspection import characters, links, personal, secrets, tracebacks
from inspection.json_text import JsonString, encoded, replaced, strings
from inspection.marking import Marks, reads_as_instruction
from inspection.patterns import TimedPatterns
from inspection.secrets import Detector, Masked


class SchemaCheck(StrEnum):
    OFF = ""
    NOTE = "note"
    BLOCK = "block"


class HiddenText(StrEnum):
    KEEP = ""
    REMOVE = "remove"
    SHOW = "show"


class Marking(StrEnum):
    OFF = ""
    FOUND = "found"
    ALL = "all"


class ResultRules(NamedTuple):
    """The settings of one tool. With all of them off, its results pass byte for byte."""

    schema: str = SchemaCheck.OFF
    hidden: str = HiddenText.KEEP
    secrets: bool = False
    personal: bool = False
    tracebacks: bool = False
    max_bytes: int | None = None
    links: bool = False
    # Links to these stay: inspection/links.py::hosts_of.
    hosts: str = ""
    # What a model is to read as data.
    marking: str = Marking.OFF
    # More to mask: inspection/patterns.py.
    patterns: str = ""

    @property
    def cleans(self) -> bool:
        masks = self.secrets or self.personal or self.patterns
        return bool(self.hidden or masks or self.tracebacks or self.links or self.marking)


PASS_ALL = ResultRules()


def rules_of(stored: Mapping[str, Any]) -> ResultRules:
    """The rules of an object with those members that are not as by default."""
    return PASS_ALL._replace(**{key: stored[key] for key in ResultRules._fields if key in stored})


def stored_rules(rules: ResultRules) -> dict[str, Any]:
    usual = PASS_ALL._asdict()
    return {key: value for key, value in rules._asdict().items() if value != usual[key]}


Found = defaultdict[str, int]


class ResultTooLong(Exception):
    """It cannot be cut to the size that it may have."""


@dataclass(frozen=True, slots=True)
class CleanedResult:
    """`found`: how often what was found, by its kind; empty where nothing was changed."""

    body: bytes
    found: dict[str, int] = field(default_factory=dict)


# In an ASCII document without any of these, or DEL, no text can hold a hidden character.
_COULD_HIDE = (rb"\u", rb"\b", rb"\f", rb"\r")
# Escapes that may spell anything, hide an address, or stand for what nobody sees.
_SPELL = ("\\u", "\\/", "\\b", "\\f")
# Deleting all others is many times faster than looking for a pattern.
_SEEN = bytes([*b"\t\n\r", *range(0x20, 0x7F)])
_NO_DIGITS = bytes({*range(256)} - {*b"0123456789"})
# As personal.find has it: no number of a person has fewer.
_FEWEST_DIGITS = 7
# How names of members end that hold a secret.
_NAME_ENDS = ('password"', 'passwd"', 'pwd"', 'secret"', 'key"', 'token"')
_LONG_NAME = 500
# No personal data is written without one of these, or an @.
_COULD_BE_NUMBER = re.compile(r"\d[\d \-.()]{6}")
_ASCII_NUMBER = re.compile(rb"[0-9][0-9 \-.()]{6}")


def clean(
    body: bytes,
    rules: ResultRules,
    *,
    is_error: bool = False,
    timed: TimedPatterns | None = None,
) -> CleanedResult:
    """The result as its agent may have it. What needs no change stays byte for byte. Raises
    ResultTooLong and PatternsTimedOut. `timed`: patterns whose time several results share."""
    # A Counter takes ten times as long to make.
    found: Found = defaultdict(int)
    if rules.cleans:
        body = _cleaned(body, rules, found, timed, is_error=is_error)
    if rules.max_bytes is not None and len(body) > rules.max_bytes:
        body = _cut(body, rules.max_bytes)
        found["cut"] += 1
    if rules.marking:
        # At last, so that nothing cuts the marks off.
        body = _marked(body, rules.marking, found)
    return CleanedResult(body, dict(found))


def _cleaned(
    body: bytes,
    rules: ResultRules,
    found: Found,
    timed: TimedPatterns | None,
    *,
    is_error: bool,
) -> bytes:
    is_plain = body.isascii() and not body.translate(None, _SEEN)
    has_escape = b"\\" in body
    hides = bool(rules.hidden) and not (is_plain and not (has_escape and _could_hide(body)))
    # Characters that nobody sees hide whatever they stand in: then each text is asked by itself.
    document = body.decode()
    is_escaped = (has_escape and any(escape in document for escape in _SPELL)) or (
        not is_plain and characters.could_disguise(document)
    )
    detectors: tuple[Detector, ...] = ()
    names = rules.secrets and is_escaped
    if names:
        detectors = secrets.DETECTORS
    elif rules.secrets:
        folded = document.lower()
        stemmed = secrets.has_stem(folded)
        detectors = secrets.wanted(document, folded, stemmed=stemmed)
        names = stemmed and any(end in folded for end in _NAME_ENDS)
    traces = rules.tracebacks and (is_error or is_escaped or tracebacks.could_be(document))
    is_personal = rules.personal and (is_escaped or _could_be_personal(body, document))
    can_link = rules.links and (
        is_escaped or links.document_could_link(document, has_escape=has_escape)
    )
    if not (hides or detectors or names or traces or is_personal or can_link or rules.patterns):
        return body
    timed = timed or TimedPatterns(rules.patterns)
    cleaner = _Cleaner(rules, detectors, found, timed, is_error=is_error)
    changed = replaced(document, cleaner.text)
    return body if changed is document else changed.encode()


def _could_hide(body: bytes) -> bool:
    return any(mark in body for mark in _COULD_HIDE)


def _could_be_personal(body: bytes, document: str) -> bool:
    if "@" in document:
        return True
    if body.isascii():
        has_enough = len(body.translate(None, _NO_DIGITS)) >= _FEWEST_DIGITS
        return has_enough and _ASCII_NUMBER.search(body) is not None
    return _COULD_BE_NUMBER.search(document) is not None


def is_named(name: str) -> bool:
    """Whether a member of this name holds a secret, as a person reads the name."""
    seen = characters.undisguised(name) if len(name) < _LONG_NAME else None
    return secrets.is_named(characters.plain(name if seen is None else seen.text))


class _Cleaner:
    def __init__(
        self,
        rules: ResultRules,
        detectors: tuple[Detector, ...],
        found: Found,
        timed: TimedPatterns,
        *,
        is_error: bool,
    ) -> None:
        self._rules, self._detectors, self._found = rules, detectors, found
        self._is_error = is_error
        self._names = 0
        self._patterns = timed
        self._hosts = links.hosts_of(rules.hosts)

    def text(self, one: JsonString) -> str:
        # First what is masked: hidden characters that are written out would stand within it.
        text = self._masked(one)
        if self._rules.hidden:
            text = self._shown(text, is_name=one.is_name)
        if self._rules.tracebacks and not one.is_name:
            text = self._untraced(text)
        if self._rules.links and links.could_link(text):
            text = self._unlinked(text)
        return text

    def _masked(self, one: JsonString) -> str:
        if not (self._rules.secrets or self._rules.personal or self._rules.patterns):
            return one.text
        seen = characters.undisguised(one.text)
        text = one.text if seen is None else seen.text
        found = self._in_text(one, text)
        # Each in the place of what it stands for.
        if (plain := characters.plain(text)) is not text:
            found += self._in_text(one, plain)
        if seen is not None:
            found = [Masked(*seen.stretch(each.start, each.end), each.kind) for each in found]
        return self._replaced(one.text, found, is_name=one.is_name) if found else one.text

    def _in_text(self, one: JsonString, text: str) -> list[Masked]:
        found = self._secrets(one, text)
        if self._rules.personal:
            found += personal.find(text)
        found += self._patterns.find(text)
        return found

    def _shown(self, text: str, *, is_name: bool) -> str:
        spans = characters.spans(text)
        if not spans:
            return text
        for span in spans:
            self._found[f"hidden.{span.kind}"] += 1
        # Two members could come to have one name.
        show = is_name or self._rules.hidden == HiddenText.SHOW
        return characters.without(text, spans, show=show)

    def _untraced(self, text: str) -> str:
        parts, at = [], 0
        for trace in tracebacks.traces(text):
            self._found["traceback"] += 1
            said = self._without_paths(trace.said) if trace.said else "an internal error"
            parts += [text[at : trace.start], f"[traceback left out: {said}]"]
            at = trace.end
        rest = text[at:]
        parts.append(self._without_paths(rest) if self._is_error or parts else rest)
        return "".join(parts)

    def _without_paths(self, text: str) -> str:
        parts, at = [], 0
        for path in tracebacks.paths(text):
            self._found["path"] += 1
            parts += [text[at : path.start()], "[internal path]"]
            at = path.end()
        return "".join([*parts, text[at:]])

    def _unlinked(self, text: str) -> str:
        """Characters that nobody sees are no part of an address, or end it early."""
        seen = characters.undisguised(text)
        parts, at = [], 0
        for link in links.outside(text if seen is None else seen.text, self._hosts):
            self._found["link"] += 1
            start, end = seen.stretch(link.start, link.end) if seen else (link.start, link.end)
            parts += [text[at:start], link.inert]
            at = end
        return "".join([*parts, text[at:]])

    def _secrets(self, one: JsonString, text: str) -> list[Masked]:
        if not self._rules.secrets:
            return []
        if not one.is_name and is_named(one.name) and secrets.is_value(text):
            return [Masked(0, len(text), "password")]
        return list(secrets.find(text, self._detectors)) if self._detectors else []

    def _replaced(self, text: str, masked: list[Masked], *, is_name: bool) -> str:
        parts, at = [], 0
        for one in sorted(masked, key=lambda one: (one.start, -one.end)):
            if one.start < at:
                # Within another, or it goes on where that ends.
                at = max(at, one.end)
                continue
            self._found[f"masked.{one.kind}"] += 1
            number = ""
            if is_name:
                self._names += 1
                number = f" {self._names}"
            parts += [text[at : one.start], f"[masked: {_called(one.kind)}{number}]"]
            at = one.end
        return "".join([*parts, text[at:]])


def _called(kind: str) -> str:
    return kind.removeprefix("custom.").replace("_", " ")


def _marked(body: bytes, marking: str, found: Found) -> bytes:
    marks = Marks()

    def marked(one: JsonString) -> str:
        is_whole = marking == Marking.ALL and one.name == "text" and bool(one.text)
        if one.is_name or not (is_whole or reads_as_instruction(one.text)):
            return one.text
        found["marked"] += 1
        return marks.around(one.text)

    document = body.decode()
    changed = replaced(document, marked)
    return body if changed is document else changed.encode()


# Shorter texts are not cut: what they say would be lost, and little room won.
_WORTH_A_CUT = 256


def _cut(body: bytes, most: int) -> bytes:
    """Shortens as few of its longest texts as needed, each with a note that says so."""
    document = body.decode()
    left = len(body) - most
    longest = sorted(
        (one for one in strings(document) if not one.is_name),
        key=lambda one: one.start - one.end,
    )
    shorter: dict[int, str] = {}
    for one in longest:
        size = len(document[one.start : one.end].encode())
        if left <= 0 or size < _WORTH_A_CUT:
            break
        text = _shortened(one.text, max(size - left, _WORTH_A_CUT // 2))
        shorter[one.start] = text
        left -= size - len(encoded(text).encode())
    if left > 0:
        raise ResultTooLong
    return replaced(document, lambda one: shorter.get(one.start, one.text)).encode()


def _shortened(text: str, most: int) -> str:
    """At most so many bytes as JSON, with how much is gone at its end."""
    said = f" [… cut here: {len(text):,} characters in all]"
    room = most - len(encoded(said).encode())
    kept = text[: max(room, 0)]
    # As JSON a character has up to six bytes and more.
    while kept and len(encoded(kept).encode()) > room:
        kept = kept[: len(kept) * max(room, 0) // len(encoded(kept).encode())]
    return kept + said


def summary(found: dict[str, int]) -> dict[str, Any]:
    """For the record: kinds and counts, and nothing of what was there."""
    return dict(sorted(found.items()))
