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
MOST_PARTS = 20
# Sentences within sentences.
MAX_DEPTH = 6
_PART = re.compile(
    r"%\((?P<name>\w+)\)(?P<kind>[sd])|%(?P<plain>[sd])|\{(?P<brace>\w*)\}|(?P<percent>%%)"
)
_NUMBER = re.compile(r"-?[\d,]+")
_END = re.compile(r"(?<=[.?!:”]) ")
# Lists in a sentence: who decides, which obstacles.
_JOINTS = {" – and also: ": "——并且：", ", or ": "，或", "; ": "；", ", ": "，", " and ": "、"}


@dataclass(frozen=True)
class MessagePattern:
    """One message with placeholders: the texts between them, in order, and what each is called."""

    texts: tuple[str, ...]
    names: tuple[str, ...]
    numbers: frozenset[int]
    translation: str

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
        fits = fits and not (last == "." and _END.search(found[-1]))
        return found if fits and at < end else None


def localized(sentence: str) -> str:
    """`sentence` in the page's language, as far as it is one of ours."""
    if get_language() in (None, "en") or not sentence or len(sentence) > MAX_LENGTH:
        return sentence
    return _translated(sentence)


@lru_cache(4096)
def _translated(sentence: str) -> str:
    return _value(sentence, 0)


def _whole(sentence: str, depth: int) -> str | None:
    plain, patterns = _catalogue()
    if found := plain.get(sentence):
        return found
    for pattern in patterns:
        if (values := pattern.values(sentence)) is not None:
            shown = [_value(value, depth + 1) for value in values]
            return _filled(pattern.translation, dict(zip(pattern.names, shown, strict=True)))
    return None


def _value(text: str, depth: int) -> str:
    """A value may be a sentence or a list of ours itself."""
    if depth > MAX_DEPTH:
        return text
    return (
        _catalogue()[0].get(text)
        or _as_list(text, depth, is_all=True)
        or _whole(text, depth)
        or _by_sentences(text, depth)
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
            if (end - at) < len(parts) and (found := _whole(" ".join(parts[at:end]), depth)):
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
    # A sign and two placeholders would fit anything.
    if sum(character.isalpha() for text in texts for character in text) >= 4 and all(texts[1:-1]):
        yield MessagePattern(tuple(texts), tuple(names), frozenset(numbers), translation)
