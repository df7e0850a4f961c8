"""Argument documents by the thousand, from a seed: JSON in every spelling, and what is no JSON or
could be read in two ways. By hand and not with Hypothesis, which takes longer than what is tested.
"""

import json
import random
from dataclasses import dataclass

from core.strict_json import MAX_DEPTH, MAX_INTEGER

# `arguments` stands in `params`, which stands in the message.
DEPTH = MAX_DEPTH - 2
SPACES = ["", "", "", " ", "  ", "\n", "\t", "\r\n", " \n\t "]
NUMBERS = [
    "0",
    "-0",
    "-0.0",
    "1",
    "-1",
    "1.0",
    "1.10",
    "0.1",
    "0.1000000000000000055511151231257827",
    "1e5",
    "1E+05",
    "1e-7",
    "1.7976931348623157e308",
    "5e-324",
    "1e-400",
    "123456789012345678.25",
    "9007199254740993.0",
    str(MAX_INTEGER),
    str(-MAX_INTEGER),
]
# Escapes, what hides, what passes for something else, what markup and we ourselves make of it.
PIECES = [
    *'abcXYZ019 _-./:@"\\',
    "é",
    "e\u0301",
    "漢字",
    "😀",
    "👩\u200d👩\u200d👧",
    "\u200b",
    "\u202e",
    "\u2066",
    "\u00a0",
    "\u3000",
    "\ufeff",
    "\u2028",
    "\x7f",
    "\x85",
    "\ufffd",
    "\uffff",
    "\U000e0041",
    "\U0010ffff",
    "а",  # Cyrillic
    "ρ",
    "⟦U+200B⟧",
    "⟦а U+0430⟧",
    "&amp;",
    "&#x200b;",
    "</pre><script>",
    "{{ call }}",
    "{% if %}",
    '"arguments":{}',
    ',"_meta":{}',
    "@@",
    "\t\n\r\b\f",
    "\0",
]


@dataclass(frozen=True, slots=True)
class Wrong:
    """No document, or two: `said` stands in the refusal."""

    kind: str
    body: bytes
    said: str


class Documents:
    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    # -- What every parser reads alike ------------------------------------------------------------

    def document(self, depth: int = DEPTH) -> str:
        """An object."""
        deep = self.random.random() < 0.02
        return self._tower(depth) if deep else self._object(self.random.randint(0, 4), depth)

    def _tower(self, depth: int) -> str:
        """As deep as may be."""
        text = "{}"
        for _ in range(depth - 2):
            text = self.random.choice([f"[{text}]", f'{{"a":{text}}}', f"[1,{text},[]]"])
        return f'{{"deep":{text}}}'

    def _object(self, most: int, depth: int) -> str:
        names = dict.fromkeys(self._characters() for _ in range(self.random.randint(0, 4)))
        members = [
            f"{self._string(name)}{self._space()}:{self._space()}{self._value(most - 1, depth - 1)}"
            for name in names
        ]
        return self._listed("{", members, "}")

    def _value(self, most: int, depth: int) -> str:
        kinds = [self._number, self._text, lambda: self.random.choice(["true", "false", "null"])]
        if most > 0 and depth > 0:
            kinds += [
                lambda: self._object(most, depth),
                lambda: self._listed("[", self._items(most - 1, depth - 1), "]"),
            ]
        return self.random.choice(kinds)()

    def _items(self, most: int, depth: int) -> list[str]:
        return [self._value(most, depth) for _ in range(self.random.randint(0, 4))]

    def _listed(self, begin: str, items: list[str], end: str) -> str:
        spaced = (f"{self._space()}{item}{self._space()}" for item in items)
        return f"{begin}{','.join(spaced) or self._space()}{end}"

    def _space(self) -> str:
        return self.random.choice(SPACES)

    def _number(self) -> str:
        if self.random.random() < 0.5:
            return self.random.choice(NUMBERS)
        whole = self.random.randint(-(10 ** self.random.randint(0, 15)), 10**15)
        tail = str(self.random.randint(0, 10**9)) if self.random.random() < 0.5 else ""
        power = self.random.choice(["", "", "e3", "E-12", "e+00"])
        return f"{whole}.{tail}{power}" if tail else f"{whole}{power}"

    def _text(self) -> str:
        return self._string(self._characters())

    def _characters(self) -> str:
        return "".join(self.random.choices(PIECES, k=self.random.randint(0, 6)))

    def _string(self, text: str) -> str:
        """The same text, each character as itself or in one of its escapes."""
        return f'"{"".join(self._character(one) for one in text)}"'

    def _character(self, one: str) -> str:
        escaped = json.dumps(one, ensure_ascii=False)[1:-1]
        if self.random.random() < 0.1:
            units = one.encode("utf-16-be").hex()
            form = self.random.choice([str.lower, str.upper])
            return "".join(f"\\u{form(units[n : n + 4])}" for n in range(0, len(units), 4))
        return "\\/" if one == "/" and self.random.random() < 0.5 else escaped

    # -- What they do not -------------------------------------------------------------------------

    def wrong(self) -> Wrong:
        kind = self.random.choice(list(WRONG))
        said, make = WRONG[kind]
        return Wrong(kind, self._among_others(make(self)), said)

    def _among_others(self, piece: bytes) -> bytes:
        """Somewhere in a document that is right but for this."""
        for _ in range(self.random.randint(0, 4)):
            before, after = (self._value(2, 4).encode() for _ in range(2))
            piece = self.random.choice([b"[%b,%b,%b]", b'{"x":%b,"y":%b,"z":%b}']) % (
                *(before, piece, after),
            )
        return b'{"piece":%b}' % piece

    def twice(self) -> bytes:
        """One name, in two spellings perhaps."""
        name = self._characters() or "to"
        one, other = self._string(name), self._string(name)
        return f"{{{one}:{self._value(1, 3)},{other}:{self._value(1, 3)}}}".encode()

    def beyond(self) -> bytes:
        beyond = MAX_INTEGER + self.random.randint(1, 2 ** self.random.randint(1, 2000))
        return str(self.random.choice([beyond, -beyond])).encode()

    def too_large(self) -> bytes:
        return self.random.choice([b"1e400", b"-1E309", b"1" + b"0" * 400 + b".0"])

    def constant(self) -> bytes:
        return self.random.choice([b"NaN", b"Infinity", b"-Infinity"])

    def half_a_pair(self) -> bytes:
        high, low = (f"\\u{self.random.randint(*span):x}" for span in (HIGH, LOW))
        halves = [high, low, f"{low}{high}", f"{high}{high}", f"{high}x{low}", f"{high}\\n"]
        broken = f'"{self._plain()}{self.random.choice(halves)}"'
        return self.random.choice([broken, f"{{{broken}:1}}"]).encode()

    def no_text(self) -> bytes:
        bad = [b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\x80"]
        return b'"%b%b"' % (self._plain().encode(), self.random.choice(bad))

    def too_deep(self) -> bytes:
        levels = self.random.choice([MAX_DEPTH, MAX_DEPTH + 1, 100, 5000])
        return self.random.choice([b"[" * levels + b"]" * levels, self._deep_object(levels)])

    def _deep_object(self, levels: int) -> bytes:
        return b'{"a":' * levels + b"1" + b"}" * levels

    def control(self) -> bytes:
        return f'"{self._plain()}{chr(self.random.randint(0, 31))}"'.encode()

    def no_json(self) -> bytes:
        return self.random.choice(NO_JSON)

    def _plain(self) -> str:
        return "".join(self.random.choices("abc XYZ", k=self.random.randint(0, 5)))


HIGH, LOW = (0xD800, 0xDBFF), (0xDC00, 0xDFFF)
NO_JSON = [
    b"01",
    b"+1",
    b".5",
    b"1.",
    b"0x10",
    b"1_000",
    b"'a'",
    b"{a:1}",
    b"[1,]",
    b'{"a":1,}',
    b"[1 2]",
    b'{"a" 1}',
    b"[1,,2]",
    b"True",
    b"undefined",
    b"/* x */ 1",
    b"1 // x",
    b'"\\x41"',
    b'"\\u12"',
    b'"\\ud83d\\u"',
    b'"abc',
    b"[1",
    b"\xc2\xa01",
    b"",
]
WRONG = {
    "twice": ("appears twice in one object", Documents.twice),
    "beyond": ("where parsers begin to disagree", Documents.beyond),
    "too large": ("too large to be exact", Documents.too_large),
    "constant": ("is not JSON", Documents.constant),
    "half a pair": ("half of a surrogate pair", Documents.half_a_pair),
    "no text": ("is not UTF-8", Documents.no_text),
    "too deep": ("nested deeper than 32 levels", Documents.too_deep),
    "control": ("Not JSON", Documents.control),
    "no JSON": ("Not JSON", Documents.no_json),
}
