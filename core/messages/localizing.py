"""Shows a sentence that was kept in English (core/english.py) in the language of the page.

The catalogue itself says how: a kept sentence is one of its messages with the placeholders filled
in, so the message that fits is found, and its translation filled with the same values. Whatever no
message fits (a person's own words, a server's) stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from django.utils.translation import get_language

from core.messages import files
from core.messages.catalogue import Message, read

# What is longer, or holds more sentences, was written by others.
MAX_LENGTH = 2000
MOST_SENTENCES = 12
MOST_LINES = 50
MOST_PARTS = 20
# Sentences within sentences.
MAX_DEPTH = 6
_PART = re.compile(
    r"%\((?P<name>\w+)\)(?P<kind>[sd])|%(?P<plain>[sd])|\{(?P<brace>\w*)\}|(?P<percent>%%)"
)
_NUMBER = re.compile(r"-?[\d,]+")
# A number, and what it counts: “5 calls”, “1 EUR”.
_MEASURE = re.compile(r"[\d,.]+( \w+)*")
# A placeholder that stands for people or agents, whose names have no blanks.
_PEOPLE = "who"
_IN_PLACE = re.compile(r" \(for ([^()]+)\)")
_END = re.compile(r"(?<=[.?!:”。？！]) ")
_QUOTED = re.compile("“[^“”]*”")
_UNPAIRED = re.compile("[“”]")
_SENTENCE_END = re.compile(r"[.?!。？！]”? ")
# Lists in a sentence: who decides, which obstacles.
_JOINTS = {" – and also: ": "——并且：", ", or ": "，或", "; ": "；", ", ": "，", " and ": "、"}
_ENDS_AND_JOINTS = re.compile("|".join([_SENTENCE_END.pattern, *map(re.escape, _JOINTS)]))


@dataclass(frozen=True)
class MessagePattern:
    """One message with placeholders: the texts between them, in order, and what each is called."""

    texts: tuple[str, ...]
    names: tuple[str, ...]
    numbers: frozenset[int]
    translation: str
    # So short that it would fit others' words: taken only as a measure, “5 calls per hour”.
    is_short: bool = False

    def values(self, sentence: str) -> list[str] | None:
        """The values of the placeholders. Reads each text once, whoever wrote it."""
        first, *middle, last = self.texts
        if not (sentence.startswith(first) and sentence.endswith(last)):
            return None
        found: list[str] = []
        at, end = len(first), len(sentence) - len(last)
        for text in middle:
            there = sentence.find(text, at + 1, end)
            if there < 0:
                return None
            found.append(sentence[at:there])
            at = there + len(text)
        found.append(sentence[at:end])
        fits = all(found) and all(_NUMBER.fullmatch(found[n]) for n in self.numbers)
        # What goes on after a whole sentence is another sentence, not the end of this one.
        fits = fits and not (last == "." and _SENTENCE_END.search(found[-1]))
        return found if fits and at < end else None


def localized(sentence: str) -> str:
    """`sentence` in the page's language, as far as it is one of ours; several lines each by
    itself."""
    if get_language() in (None, "en") or not sentence:
        return sentence
    if "\n" not in sentence:
        return _line(sentence)
    # A value may have several lines.
    whole = _whole(sentence, 0, _SENTENCE_END) if len(sentence) <= MAX_LENGTH else None
    return whole or "\n".join(map(_line, sentence.split("\n", MOST_LINES)))


def _line(text: str) -> str:
    return _translated(text) if 0 < len(text) <= MAX_LENGTH else text


@lru_cache(4096)
def _translated(sentence: str) -> str:
    return _value(sentence, 0)


def _whole(sentence: str, depth: int, ends: re.Pattern[str] | None = None) -> str | None:
    """One message of the catalogue, no value of which goes over one of `ends`: the placeholder of
    a short message would take the sentence before it, or half a list, for its value."""
    plain, patterns = _catalogue()
    if found := plain.get(sentence):
        return found
    for pattern in patterns:
        values = pattern.values(sentence)
        if values is None or (ends and any(_is_more(value, ends) for value in values)):
            continue
        if pattern.is_short and not _is_measure(values):
            continue
        named = zip(pattern.names, values, strict=True)
        shown = {name: _translate(name, value, depth + 1) for name, value in named}
        return _filled(pattern.translation, shown)
    return None


def _is_more(value: str, ends: re.Pattern[str]) -> bool:
    """It goes over an end, or out of its own quotation marks."""
    return _UNPAIRED.search(_QUOTED.sub("", value)) is not None or ends.search(value) is not None


def _translate(name: str, value: str, depth: int) -> str:
    found = _value(value, depth)
    return _people(value) if found == value and name == _PEOPLE else found


def _people(names: str) -> str:
    """“alice, bob and carol (for dora)”."""
    return re.sub(", | and ", "、", _IN_PLACE.sub(r"（代 \1）", names))


def _is_measure(values: list[str]) -> bool:
    first, *more = values
    return bool(_MEASURE.fullmatch(first)) and all(one in _catalogue()[0] for one in more)


def _value(text: str, depth: int) -> str:
    """A value may be a sentence or a list of ours itself."""
    if depth > MAX_DEPTH:
        return text
    return (
        _whole(text, depth, _ENDS_AND_JOINTS)
        or (not _SENTENCE_END.search(text) and _as_list(text, depth, is_all=True))
        or _whole(text, depth, _SENTENCE_END)
        or _by_sentences(text, depth)
        or _whole(text, depth)
        or _as_list(text, depth, is_all=False)
        or text
    )


def _as_list(text: str, depth: int, *, is_all: bool) -> str | None:
    """Parts of ours between commas: all of them, or some."""
    for joint, chinese in _JOINTS.items():
        parts = text.split(joint)
        if 1 < len(parts) <= MOST_PARTS:
            shown = [_value(part, depth + 1) for part in parts]
            ours = [one != part for one, part in zip(shown, parts, strict=True)]
            if all(ours) if is_all else any(ours):
                return chinese.join(shown)
    return None


def _by_sentences(text: str, depth: int) -> str | None:
    """Several sentences one after another, the longest that is ours first."""
    parts = _END.split(text)
    if not 1 < len(parts) <= MOST_SENTENCES:
        return None
    shown: list[str] = []
    is_ours, at = False, 0
    while at < len(parts):
        for end in range(len(parts), at, -1):
            if (end - at) < len(parts) and (
                found := _whole(" ".join(parts[at:end]), depth, _SENTENCE_END)
            ):
                shown.append(found)
                is_ours, at = True, end
                break
        else:
            shown.append(parts[at] + (" " if at + 1 < len(parts) else ""))
            at += 1
    return "".join(shown) if is_ours else None


def _filled(translation: str, values: dict[str, str]) -> str:
    in_order = iter(values.values())

    def value(part: re.Match[str]) -> str:
        if part["percent"]:
            return "%"
        name = part["name"] or part["brace"]
        return values[name] if name else next(in_order)

    return _PART.sub(value, translation).replace("。。", "。").replace("”。”", "”")


@lru_cache(1)
def _catalogue() -> tuple[dict[str, str], list[MessagePattern]]:
    """The translations of our sentences, and patterns for those with placeholders."""
    plain: dict[str, str] = {}
    patterns: list[MessagePattern] = []
    for key, message in read(files.PO).items():
        if not message.translation or not any(s.endswith(".py") for s in message.sources):
            continue
        for msgid in filter(None, (key.msgid, key.plural)):
            if not _PART.search(msgid):
                plain[msgid] = _for_one(message) if key.plural else message.translation
            elif message.is_kept:
                patterns.extend(_pattern(msgid, message.translation))
    # What says more of the sentence goes first.
    patterns.sort(key=lambda pattern: -sum(map(len, pattern.texts)))
    return plain, patterns


def _for_one(message: Message) -> str:
    """“One more person …”: its translation has a number where the English has a word."""
    return _PART.sub(lambda part: part[0] if part["percent"] else "1", message.translation)


def _pattern(msgid: str, translation: str) -> Iterator[MessagePattern]:
    texts, names = [""], list[str]()
    numbers: set[int] = set()
    at = 0
    for part in _PART.finditer(msgid):
        texts[-1] += msgid[at : part.start()]
        at = part.end()
        if part["percent"]:
            texts[-1] += "%"
            continue
        if "d" in (part["kind"], part["plain"]):
            numbers.add(len(names))
        names.append(part["name"] or part["brace"] or str(len(names)))
        texts.append("")
    texts[-1] += msgid[at:]
    letters = sum(character.isalpha() for text in texts for character in text)
    # A sign and two placeholders would fit anything.
    if letters and all(texts[1:-1]):
        yield MessagePattern(
            tuple(texts), tuple(names), frozenset(numbers), translation, is_short=letters < 4
        )
