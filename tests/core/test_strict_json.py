"""The short road through a document, and the long one, come to the same."""

import json
import re
from random import Random
from typing import Any

import orjson
import pytest
from django.utils.translation import override

from core import strict_json
from core.messages.localizing import localized

CHARACTERS = 'ab"\\/\x00\x1f\n é😀\u2028'
CHINESE = re.compile("[\u4e00-\u9fff]")
# Two words in a row; names such as JSON and UTF-8 stand alone.
ENGLISH = re.compile(r"[A-Za-z]{2,} [A-Za-z]{2,}")
NUMBERS = [0, -1, 2**53 - 1, 2**53, 10**15, 10**16, 0.5, -0.0, 1e300, 1.0, 123456789.25]


def drawn(random: Random, depth: int = 0) -> Any:
    match random.randrange(7 if depth < 5 else 4):
        case 0:
            return random.choice(NUMBERS)
        case 1:
            return random.choice([True, False, None])
        case 2 | 3:
            return "".join(random.choices(CHARACTERS, k=random.randrange(5)))
        case 4:
            return [drawn(random, depth + 1) for _ in range(random.randrange(4))]
        case _:
            return {f"k{n}": drawn(random, depth + 1) for n in range(random.randrange(4))}


def judged(data: bytes) -> Any:
    try:
        return repr(strict_json.loads(b" " + data))
    except strict_json.Ambiguous:
        return None


def test_what_is_taken_as_it_is_means_the_same() -> None:
    random = Random(20261121)
    taken = 0
    for _ in range(5_000):
        value = {"": drawn(random)}
        compact = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
        for data in (orjson.dumps(value), compact, json.dumps(value).encode()):
            plain = strict_json.plain(data)
            taken += plain is not None
            assert plain is None or repr(plain) == judged(data)

    assert taken > 3_000


@pytest.mark.parametrize(
    "data",
    [
        b'{"a":1,"a":1}',
        b'{"a":{"b":1,"b":2}}',
        b'{"a":1,"\\u0061":2}',
        b"[9007199254740992]",
        b"[-9007199254740993]",
        b"[18446744073709551616]",
        b"[1e400]",
        b"[NaN]",
        b'["\\ud800"]',
        b"\xef\xbb\xbf[]",
        b'["\xff"]',
        b"[" * 33 + b"]" * 33,
        b"[1] 2",
        b"[1.50]",
        b"[1e5]",
        b"",
    ],
)
def test_what_needs_a_closer_look_gets_it(data: bytes) -> None:
    assert strict_json.plain(data) is None


BROKEN = [
    *("", "{", '{"a":1,}', "nul", '{"a" 1}', "[1 2]", '{"a":"\x01"}', '"\\x"', '"\\u12"', "[1,]"),
    *("{a:1}", '{"a":1}x', '"\\ud800"', '"abc', "1e", "[", "// x", '{"a":NaN}', '{"a":1,"a":2}'),
    *("1" * 20, "1e999", "[" * 40 + "]" * 40, "\ufeff{}"),
]


@pytest.mark.parametrize("text", BROKEN)
def test_what_is_wrong_is_said_in_the_language_of_the_page(text: str) -> None:
    with pytest.raises(strict_json.Ambiguous) as refused:
        strict_json.loads(text.encode())

    with override("zh-hans"):
        shown = localized(str(refused.value))

    assert CHINESE.search(shown)
    assert not ENGLISH.search(shown), shown
