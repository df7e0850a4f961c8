"""Hostile texts take no longer than others of their length: what looked at all of a megabyte for
each of its characters would not end within the time that a test has."""

import json
import time
from collections.abc import Callable

import pytest

from inspection import personal, secrets, tracebacks
from inspection.definitions import scan
from inspection.marking import reads_as_instruction
from inspection.nested_texts import NestedTooDeep, texts_within
from inspection.patterns import TimedPatterns
from inspection.results import ResultRules, clean

ALL = ResultRules(
    hidden="remove", secrets=True, personal=True, tracebacks=True, links=True, marking="found"
)
# What makes patterns look again and again, each of them repeated.
REPEATED = (
    *("a", " ", "\n ", "a_", "a.b ", "\u200b", "a\u200b", "a\ufe0f", "👩\u200d", "\u202ea"),
    *("\x1b[", "\x1b]", "\x9b0", "1", "1 ", "1-", "+1", "+12345678901234567890123/", "13800"),
    *("\x1b[m\u200ea", "\x9bm\u202a1"),
    *("a@", "a@a.", "a@a.a.a.a.a.a.a.a", "://", "://a:", "://a:bcd", "password=", "token:"),
    *("eyJ", "eyJa.", "eyJhbGciOi.eyJ", "AKIA", "ghp_", "sk-", "SG.", "AIza", "bearer "),
    *("-----BEGIN PRIVATE KEY-----", "-----BEGIN ", "DE44 ", "GB82WEST", "/home/", "C:\\a\\"),
    *("\n at x", "\n at x(y:1)", "#0 a\n", " from a:1:in b\n", "goroutine 1 [a]:\n"),
    *("\n at (/./", "\n at in in ", "\n at (.a:1", "1%\r", "\u2067a\u2069", "ש\u2066", "ก\u200b"),
    *("password=a,", "password=,", 'password="a', "password:&&&&a", "token:a;", "basic ", "dapi"),
    *("{", '[{"a":', '["', '"{', "[1,", "\\n1", "://a:b@", "sig=a", "ya29."),
    *("Traceback (most recent call last):\n", "  File x\n", "During handling of the above\n"),
    *("https:", "https://a", "](", "](//a", "]: ", "src=", "&#58;", "https://a,", "https://@"),
    *("&#97;", "a\\_", "&commat;", "&amp;amp;", "SGVsbG8g", "%61"),
    *("&#0", "&#104;&Tab;", "https:&sol;,", "https://)", "https:/\t", "www.a", "href=//a,", "h\t"),
    *(
        "cookie:",
        "cookie: a=",
        "mailgun ",
        "ATATT",
        "/api/webhooks/a",
        "pass=",
        "a%40",
        "%25",
        "\\u0",
    ),
    # A Cyrillic letter, alone and beside Latin ones.
    *("а", "аb "),
    *("send ", "do not tell ", "ignore all ", "before a_b ", "the ", "![](", "{", '"', "\\"),
)
ONCE = (
    "\x1b]",
    "\x1b[0",
    "+1",
    "-----BEGIN PRIVATE KEY-----",
    "Traceback (most recent call last):\n",
)


def hostile(size: int) -> list[str]:
    texts = [(one * size)[:size] for one in REPEATED]
    return [*texts, *((f"{one}{'0 ' * size}")[:size] for one in ONCE)]


def look(text: str) -> None:
    clean(body_of(text), ALL, is_error=True)
    list(secrets.find(text))
    list(personal.find(text))
    list(tracebacks.paths(text))


def body_of(text: str) -> bytes:
    return json.dumps({"content": [{"type": "text", "text": text}], "isError": True}).encode()


def cleaning(rules: ResultRules) -> Callable[[str], object]:
    return lambda text: clean(body_of(text), rules, is_error=True)


def look_within(text: str) -> None:
    for given in (text, json.dumps(text), f"[{text}]"):
        try:
            list(texts_within({"a": given}))
        except NestedTooDeep:
            continue


OWN = "ticket: \\bTKT-[0-9]{6}\\b"
DETECTORS: dict[str, Callable[[str], object]] = {
    "hidden": cleaning(ResultRules(hidden="remove")),
    "shown": cleaning(ResultRules(hidden="show")),
    "secrets": cleaning(ResultRules(secrets=True)),
    "personal": cleaning(ResultRules(personal=True)),
    "tracebacks": cleaning(ResultRules(tracebacks=True)),
    "links": cleaning(ResultRules(links=True)),
    "listed links": cleaning(ResultRules(links=True, hosts="a a.b *.a.a")),
    "size": cleaning(ResultRules(max_bytes=2000)),
    "own patterns": lambda text: list(TimedPatterns(OWN, total_s=60, each_s=60).find(text)),
    "marking": reads_as_instruction,
    "marking of a result": cleaning(ResultRules(marking="found")),
    "nested": look_within,
    "definitions": lambda text: scan({"name": text[:200], "description": text}),
}
SMALL, TIMES = 2 * 1024, 16
# What looks at all of a text for each of its characters takes 256 times as long for one that is 16
# times as long. Half of that is noise enough; less than this is too little to compare.
MOST, LEAST_S = 128, 0.0005


def took_s(detector: Callable[[str], object], text: str) -> float:
    """CPU seconds of this process, of which a busy machine takes none."""
    began = time.process_time()
    detector(text)
    return time.process_time() - began


@pytest.mark.long
@pytest.mark.parametrize("name", DETECTORS)
def test_a_longer_text_takes_longer_by_its_length_alone(name: str) -> None:
    detector = DETECTORS[name]
    for short, long in zip(hostile(SMALL), hostile(SMALL * TIMES), strict=True):
        usual = max(min(took_s(detector, short) for _ in range(2)), LEAST_S)
        spent = took_s(detector, long)
        assert spent < MOST * usual, (long[:40], usual, spent)


@pytest.mark.long
def test_hostile_texts_of_sixteen_kilobytes() -> None:
    for text in hostile(16 * 1024):
        look(text)
        scan({"name": text[:200], "description": text})


@pytest.mark.long
def test_hostile_megabytes() -> None:
    for text in hostile(1024 * 1024):
        look(text)
