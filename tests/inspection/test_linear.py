"""Hostile texts take no longer than others of their length: what looked at all of a megabyte for
each of its characters would not end within the time that a test has."""

import json

import pytest

from inspection import personal, secrets, tracebacks
from inspection.definitions import scan
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
    *("Traceback (most recent call last):\n", "  File x\n", "During handling of the above\n"),
    *("https:", "https://a", "](", "](//a", "]: ", "src=", "&#58;", "https://a,", "https://@"),
    *("&#0", "&#104;&Tab;", "https:&sol;,", "https://)", "https:/\t", "www.a", "href=//a,", "h\t"),
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
    body = json.dumps({"content": [{"type": "text", "text": text}], "isError": True}).encode()
    clean(body, ALL, is_error=True)
    list(secrets.find(text))
    list(personal.find(text))
    list(tracebacks.paths(text))


def test_hostile_texts_of_sixteen_kilobytes() -> None:
    for text in hostile(16 * 1024):
        look(text)
        scan({"name": text[:200], "description": text})


@pytest.mark.long
def test_hostile_megabytes() -> None:
    for text in hostile(1024 * 1024):
        look(text)
