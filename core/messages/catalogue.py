"""Message files in pure Python: .po read and written, .mo compiled.

docs/en/contributing/dependencies.md says why.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

HEADER = {
    "Project-Id-Version": "Countersign",
    "Language": "zh_Hans",
    "MIME-Version": "1.0",
    "Content-Type": "text/plain; charset=UTF-8",
    "Content-Transfer-Encoding": "8bit",
    "Plural-Forms": "nplurals=1; plural=0;",
}
MAGIC = 0x950412DE
# gettext's own separators inside a .mo key.
CONTEXT_END, PLURAL_NEXT = "\x04", "\x00"


@dataclass(frozen=True, order=True)
class MessageKey:
    """The key by which gettext looks a message up."""

    msgid: str
    context: str = ""
    plural: str = ""


@dataclass
class Message:
    key: MessageKey
    # One of each plural form; Chinese has one form.
    translation: str = ""
    sources: list[str] = field(default_factory=list)
    flags: set[str] = field(default_factory=set)

    @property
    def is_fuzzy(self) -> bool:
        return "fuzzy" in self.flags

    @property
    def is_kept(self) -> bool:
        """In the record or in agents' answers, in English (core/english.py)."""
        return "kept" in self.flags


Catalogue = dict[MessageKey, Message]

_KEYWORD = re.compile(r'^(msgctxt|msgid|msgid_plural|msgstr(?:\[0\])?)\s+"(.*)"$')
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_UNESCAPES = {escaped: plain for plain, escaped in _ESCAPES.items()}


def read(path: Path) -> Catalogue:
    """The messages of a .po file, without its header."""
    found: Catalogue = {}
    for block in re.split(r"\n\s*\n", path.read_text(encoding="utf-8")):
        message = _parse(block.splitlines())
        if message.key.msgid:
            found[message.key] = message
    return found


def _parse(lines: Iterable[str]) -> Message:
    texts: dict[str, str] = {}
    sources: list[str] = []
    flags: set[str] = set()
    current = ""
    for line in lines:
        if line.startswith("#: "):
            sources += line[3:].split()
        elif line.startswith("#, "):
            flags |= {flag.strip() for flag in line[3:].split(",")}
        elif found := _KEYWORD.match(line):
            current = found[1].removesuffix("[0]")
            texts[current] = _unescaped(found[2])
        elif line.startswith('"'):
            texts[current] += _unescaped(line[1:-1])
    key = MessageKey(
        texts.get("msgid", ""), texts.get("msgctxt", ""), texts.get("msgid_plural", "")
    )
    return Message(key, texts.get("msgstr", ""), sources, flags)


def write(path: Path, catalogue: Catalogue) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(_blocks(catalogue)), encoding="utf-8")


def _blocks(catalogue: Catalogue) -> Iterator[str]:
    header = "".join(f'"{name}: {value}\\n"\n' for name, value in HEADER.items())
    yield f'msgid ""\nmsgstr ""\n{header}'
    for key in sorted(catalogue):
        message = catalogue[key]
        lines = [f"#: {' '.join(sorted(set(message.sources)))}"] if message.sources else []
        lines += [f"#, {', '.join(sorted(message.flags))}"] if message.flags else []
        lines += [f"msgctxt {_quoted(key.context)}"] if key.context else []
        lines.append(f"msgid {_quoted(key.msgid)}")
        lines += [f"msgid_plural {_quoted(key.plural)}"] if key.plural else []
        lines.append(f"msgstr{'[0]' if key.plural else ''} {_quoted(message.translation)}")
        yield "".join(f"{line}\n" for line in lines)


def _quoted(text: str) -> str:
    return '"' + "".join(_ESCAPES.get(character, character) for character in text) + '"'


def _unescaped(text: str) -> str:
    return re.sub(r"\\.", lambda found: _UNESCAPES.get(found[0], found[0]), text)


def compiled(catalogue: Catalogue) -> bytes:
    """The .mo file of a catalogue; messages without a translation, or fuzzy ones, stay English."""
    header = "".join(f"{name}: {value}\n" for name, value in HEADER.items())
    pairs = {b"": header.encode()}
    for key, message in catalogue.items():
        if message.translation and not message.is_fuzzy:
            pairs[_mo_key(key).encode()] = message.translation.encode()
    return _mo(sorted(pairs.items()))


def _mo_key(key: MessageKey) -> str:
    context = f"{key.context}{CONTEXT_END}" if key.context else ""
    return context + key.msgid + (f"{PLURAL_NEXT}{key.plural}" if key.plural else "")


def _mo(pairs: list[tuple[bytes, bytes]]) -> bytes:
    """The GNU .mo layout: a header, two tables of (length, offset), then the texts."""
    count = len(pairs)
    keys_at, texts_at = 28, 28 + 16 * count
    offset = texts_at
    tables: list[int] = []
    body = b""
    for column in (0, 1):
        for pair in pairs:
            text = pair[column]
            tables += [len(text), offset + len(body)]
            body += text + b"\0"
    head = struct.pack("<7I", MAGIC, 0, count, keys_at, keys_at + 8 * count, 0, 0)
    return head + struct.pack(f"<{len(tables)}I", *tables) + body
