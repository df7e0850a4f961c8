"""Cleaning of a tool's result before its agent gets it, as an operator chose for the tool."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple

from inspection import (
    characters,
    instructions,
    links,
    patterns,
    personal,
    prefilter,
    secret_names,
    secrets,
    spelling,
    tracebacks,
)
from inspection.json_text import (
    JsonString,
    encoded,
    is_document,
    replaced,
    replaced_within,
    strings,
)
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
# JSON in a text of JSON, whose texts hold some again. Deeper, it is looked at as it is written.
LEVELS_MAX = 4


class ResultTooLong(Exception):
    """It cannot be cut to the size that it may have."""


@dataclass(frozen=True, slots=True)
class CleanedResult:
    """`found`: how often what was found, by its kind; empty where nothing was changed."""

    body: bytes
    found: dict[str, int] = field(default_factory=dict)


# In a plain document without any of these no text can hold a hidden character.
_COULD_HIDE = (rb"\u", rb"\b", rb"\f", rb"\r")
# Escapes that may spell anything, hide an address, or stand for what nobody sees.
_SPELL = re.compile(r"\\[u/bf]")
_ODD = re.compile(r'\\[^nt"\\]')
_NO_DIGITS = bytes({*range(256)} - {*b"0123456789"})
# As personal.find has it: no number of a person has fewer.
_FEWEST_DIGITS = 7
# How names of members end that hold a secret, also in JSON that is a text of another.
_NAME_ENDS = tuple(f'{end}"' for end in secret_names.ENDS)
_INNER_NAME_ENDS = tuple(f"{end}\\" for end in secret_names.ENDS)
_LONG_NAME = 500
# Members with the name of the one beside them, which is called "value".
_LABELS = ("name", "key")
# No personal data is written without one of these, or an @, perhaps encoded.
_COULD_BE_NUMBER = re.compile(r"\d[\d \-.()]{6}")
_ASCII_NUMBER = re.compile(rb"[0-9][0-9 \-.()]{6}")


# Longer ones are asked for one thing after the other: that takes less time then.
_LOOKED_AT_ONCE = 500


def is_clean(body: bytes, rules: ResultRules) -> bool:
    """Whether one look says that nothing in this result, which is no error, is to be changed."""
    if len(body) > _LOOKED_AT_ONCE or not characters.is_plain(body):
        return False
    pattern = _could_change(rules)
    if pattern is None or pattern.search(body):
        return False
    return not rules.marking or not instructions.could_order(body.decode())


@lru_cache(maxsize=1000)
def _could_change(rules: ResultRules) -> re.Pattern[bytes] | None:
    """Finds what could be changed in a short plain document; None where all have to be asked."""
    words = patterns.literals(rules.patterns)
    cuts = rules.max_bytes is not None and rules.max_bytes < _LOOKED_AT_ONCE
    if words is None or cuts or rules.marking == Marking.ALL:
        return None
    looks = (
        (prefilter.ESCAPES, True),
        (prefilter.SECRETS, rules.secrets),
        (prefilter.PERSONAL, rules.personal),
        (prefilter.TRACEBACKS, rules.tracebacks),
        (prefilter.LINKS, rules.links),
    )
    parts = [part for look, is_chosen in looks if is_chosen for part in look]
    parts += [part for word in words for part in prefilter.literal(word, folds=True)]
    return prefilter.pattern(parts)


def clean(
    body: bytes,
    rules: ResultRules,
    *,
    is_error: bool = False,
    timed: TimedPatterns | None = None,
) -> CleanedResult:
    """The result as its agent may have it. What needs no change stays byte for byte. Raises
    ResultTooLong and PatternsTimedOut. `timed`: patterns whose time several results share."""
    if not is_error and is_clean(body, rules):
        return CleanedResult(body)
    return clean_fully(body, rules, is_error=is_error, timed=timed)


def clean_fully(
    body: bytes,
    rules: ResultRules,
    *,
    is_error: bool = False,
    timed: TimedPatterns | None = None,
) -> CleanedResult:
    """`clean` for a result of which `is_clean` was asked before."""
    # A Counter takes ten times as long to make.
    found: Found = defaultdict(int)
    orders: set[str] = set()
    if rules.cleans:
        body = _cleaned(body, rules, found, orders, timed, is_error=is_error)
    if rules.max_bytes is not None and len(body) > rules.max_bytes:
        body = _cut(body, rules.max_bytes)
        found["cut"] += 1
    if rules.marking:
        # At last, so that nothing cuts the marks off.
        body = _marked(body, rules.marking, found, orders)
    return CleanedResult(body, dict(found))


def _cleaned(
    body: bytes,
    rules: ResultRules,
    found: Found,
    orders: set[str],
    timed: TimedPatterns | None,
    *,
    is_error: bool,
) -> bytes:
    """`orders`: gets the texts that read like instructions before something was removed."""
    is_plain = characters.is_plain(body)
    has_escape = b"\\" in body
    hides = bool(rules.hidden) and not (is_plain and not (has_escape and _could_hide(body)))
    # Characters that nobody sees hide whatever they stand in: then each text is asked by itself.
    document = body.decode()
    is_escaped = (has_escape and _SPELL.search(document) is not None) or (
        not is_plain and characters.could_disguise(document)
    )
    # Asked for words: with those that HTML or Markdown spells.
    asked = document
    if spelling.could_spell(document):
        asked, is_plain = spelling.with_spelled(document), False
        is_escaped = is_escaped or characters.could_disguise(asked)
    detectors: tuple[Detector, ...] = ()
    names = rules.secrets and is_escaped
    if names:
        detectors = secrets.DETECTORS
    elif rules.secrets:
        folded = asked.lower()
        stemmed = secret_names.has_stem(folded)
        detectors = secrets.wanted(asked, folded, stemmed=stemmed)
        names = stemmed and _could_be_named(folded, has_escape=has_escape)
    traces = rules.tracebacks and (is_error or is_escaped or tracebacks.could_be(document))
    is_personal = rules.personal and (
        is_escaped or _could_be_personal(body, asked, is_plain=is_plain)
    )
    can_link = rules.links and (
        is_escaped or links.document_could_link(document, has_escape=has_escape, is_plain=is_plain)
    )
    words = () if is_escaped else patterns.literals(rules.patterns)
    has_own = bool(rules.patterns) and (
        words is None or is_escaped or not is_plain or _has_any(asked, words)
    )
    if not (hides or detectors or names or traces or is_personal or can_link or has_own):
        return body
    # What the document cannot have is looked for in none of its texts.
    wanted = rules._replace(
        hidden=rules.hidden if hides else HiddenText.KEEP,
        secrets=bool(detectors or names),
        personal=is_personal,
        tracebacks=traces,
        links=can_link,
        patterns=rules.patterns if has_own else "",
    )
    timed = timed or TimedPatterns(rules.patterns)
    cleaner = _Cleaner(wanted, detectors, found, orders, timed, is_error=is_error, names=names)
    changed = replaced(document, cleaner.text)
    return body if changed is document else changed.encode()


def _could_be_named(folded: str, *, has_escape: bool) -> bool:
    """Whether a member of the document, in lower case, could have a name of a secret."""
    ends = _NAME_ENDS + _INNER_NAME_ENDS if has_escape else _NAME_ENDS
    return any(end in folded for end in ends)


def _has_any(document: str, words: tuple[str, ...]) -> bool:
    """Whether one of these words in lower case is in it."""
    folded = document.lower()
    return any(word in folded for word in words)


def _could_hide(body: bytes) -> bool:
    return any(mark in body for mark in _COULD_HIDE)


def _could_be_personal(body: bytes, document: str, *, is_plain: bool) -> bool:
    if "@" in document or "%40" in document:
        return True
    if is_plain:
        has_enough = len(body.translate(None, _NO_DIGITS)) >= _FEWEST_DIGITS
        return has_enough and _ASCII_NUMBER.search(body) is not None
    return _COULD_BE_NUMBER.search(document) is not None


def seen_name(name: str) -> str:
    """The name of a member as a person reads it."""
    seen = characters.undisguised(name) if len(name) < _LONG_NAME else None
    return characters.plain(name if seen is None else seen.text)


class _Cleaner:
    def __init__(
        self,
        rules: ResultRules,
        detectors: tuple[Detector, ...],
        found: Found,
        orders: set[str],
        timed: TimedPatterns,
        *,
        is_error: bool,
        names: bool,
    ) -> None:
        """`names`: those of some members could be of secrets."""
        self._rules, self._detectors, self._found = rules, detectors, found
        self._orders, self._is_error = orders, is_error
        self._looks_at_names, self._names = names, 0
        self._patterns = timed
        self._hosts = links.hosts_of(rules.hosts)
        self._levels, self._label = 0, ""

    def text(self, one: JsonString) -> str:
        if one.is_name or self._levels == LEVELS_MAX or not is_document(one.text):
            return self._plain_text(one)
        if self._is_secret(one, one.text):
            return self._masked(one)
        self._levels += 1
        text = replaced_within(one, self.text)
        self._levels -= 1
        return text

    def _plain_text(self, one: JsonString) -> str:
        # First what is masked: hidden characters that are written out would stand within it.
        text = self._masked(one)
        if self._rules.hidden:
            shown = self._shown(text, is_name=one.is_name)
            text = self._without_hidden(one, shown) if shown != text else text
        if self._rules.tracebacks and not one.is_name:
            text = self._untraced(text)
        if self._rules.links and links.could_link(text):
            text = self._unlinked(text)
        return text

    def _without_hidden(self, one: JsonString, text: str) -> str:
        """Looks again: removed characters may have parted a secret, or words of an instruction."""
        if self._rules.hidden == HiddenText.REMOVE and not one.is_name:
            text = self._masked(one._replace(text=text))
        if self._rules.marking and reads_as_instruction(one.text):
            self._orders.add(text)
        return text

    def _masked(self, one: JsonString) -> str:
        if not (self._rules.secrets or self._rules.personal or self._rules.patterns):
            return one.text
        found = self._as_seen(one, one.text)
        if spelled := spelling.spelled_out(one.text):
            found += _as_written(spelled, self._as_seen(one, spelled.text))
        return self._replaced(one.text, found, is_name=one.is_name) if found else one.text

    def _as_seen(self, one: JsonString, text: str) -> list[Masked]:
        seen = characters.undisguised(text)
        if seen is not None:
            text = seen.text
        found = self._in_text(one, text)
        # Each in the place of what it stands for.
        if (plain := characters.plain(text)) is not text:
            found += self._in_text(one, plain)
        return found if seen is None else _as_written(seen, found)

    def _in_text(self, one: JsonString, text: str) -> list[Masked]:
        found = self._secrets(one, text)
        if self._rules.personal:
            found += personal.find(text, "" if one.is_name else one.name)
        if self._rules.patterns:
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
        if self._is_secret(one, text):
            return [Masked(0, len(text), "password")]
        return list(secrets.find(text, self._detectors)) if self._detectors else []

    def _is_secret(self, one: JsonString, text: str) -> bool:
        """By the name of its member, or by the text beside it: {"name": "password", "value": …}."""
        if not self._looks_at_names or one.is_name:
            return False
        name = seen_name(one.name)
        if name.lower() in _LABELS:
            self._label = text
        elif name.lower() == "value":
            name = seen_name(self._label)
        return secret_names.holds_secret(name, text)

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


def _as_written(
    read: characters.Undisguised | spelling.SpelledOut, found: list[Masked]
) -> list[Masked]:
    return [Masked(*read.stretch(one.start, one.end), one.kind) for one in found]


def _called(kind: str) -> str:
    return kind.removeprefix("custom.").replace("_", " ")


def _marked(body: bytes, marking: str, found: Found, orders: set[str]) -> bytes:
    document = body.decode()
    if marking == Marking.FOUND and not orders and _has_no_order(body, document):
        return body
    changed = replaced(document, _Marker(marking, found, orders).text)
    return body if changed is document else changed.encode()


def _has_no_order(body: bytes, document: str) -> bool:
    if not characters.is_plain(body) or ("\\" in document and _ODD.search(document)):
        return False
    return not (spelling.could_spell(document) or instructions.could_order(document))


class _Marker:
    def __init__(self, marking: str, found: Found, orders: set[str]) -> None:
        self._marks, self._found, self._orders = Marks(), found, orders
        self._is_all = marking == Marking.ALL
        self._levels = 0

    def text(self, one: JsonString) -> str:
        if one.is_name or not one.text:
            return one.text
        if self._is_all and one.name == "text" and not self._levels:
            return self._around(one.text)
        if self._levels < LEVELS_MAX and is_document(one.text):
            self._levels += 1
            text = replaced_within(one, self.text)
            self._levels -= 1
            return text
        is_order = one.text in self._orders or reads_as_instruction(one.text)
        return self._around(one.text) if is_order else one.text

    def _around(self, text: str) -> str:
        self._found["marked"] += 1
        return self._marks.around(text)


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
