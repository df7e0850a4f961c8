"""Asking a result as a whole whether it could hold anything misses nothing that a text has."""

import json
import random

import pytest

from inspection.results import HiddenText, ResultRules, clean
from tests.inspection.result_corpus import harmless, hostile

EACH = (
    ResultRules(hidden=HiddenText.REMOVE),
    ResultRules(secrets=True),
    ResultRules(personal=True),
    ResultRules(tracebacks=True),
    ResultRules(links=True),
)
FIRST_LINES = (
    "#0 /var/www/a.php(3): f()\n#1 {main}",
    "\tfrom a.rb:5:in `g'",
    "\tat a.B.c(B.java:1)\n\tat a.B.d(B.java:2)",
    "the account is 12345\rthe account is 99999",
)
PIECES = ("\r", "\n", "\t", "\b", "@", "://", ":", "-", "_", "password", "key", "İ", "５", "\u200b")


def findings_in(document: str, rules: ResultRules) -> dict[str, int]:
    return clean(document.encode(), rules).found


def escaped(text: str) -> str:
    """A document in which every text is asked by itself: an escape could spell anything."""
    units = text.encode("utf-16-be")
    pairs = (units[at : at + 2].hex() for at in range(0, len(units), 2))
    return '["' + "".join(f"\\u{pair}" for pair in pairs) + '"]'


def mutated(text: str, dice: random.Random) -> str:
    at, piece = dice.randrange(len(text) + 1), dice.choice(PIECES)
    return text[:at] + piece + text[at + dice.choice((0, 0, 1, 8)) :]


@pytest.mark.parametrize("rules", EACH)
def test_nothing_is_missed_that_a_text_alone_has(rules: ResultRules) -> None:
    dice = random.Random(21)
    texts = [*FIRST_LINES, *(one.text for one in (*hostile(120), *harmless(60)))]
    texts += [mutated(text, dice) for text in texts * 3]
    for text in texts:
        wanted = findings_in(escaped(text), rules)
        assert findings_in(json.dumps([text], ensure_ascii=False), rules) == wanted, text
        assert findings_in(json.dumps([text]), rules) == wanted, text
