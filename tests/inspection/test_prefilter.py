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


# Each hides something in a place of its own, as JSON writes it and as a text.
HIDING = (
    "AKIA\bZ7RQWLKJX2MPND4T",
    "AKIA\fZ7RQWLKJX2MPND4T",
    "alice\b@corp-mail.de",
    "htt\bps://evil.example.org/x",
    "htt\np://evil.example.org/x",
    "file\r\n://evil.example.org/x",
    "see http\t:\\\\evil.example.org",
    "ht\ntp\n:/\n/evil.example.org/x",
    "![](//evil.example.org/x)",
    "![](/\n/evil.example.org/x)",
    "![](\\/evil.example.org/x)",
    '<img src="/\t/evil.example.org/x">',
    "http&colon;//evil.example.org",
    "ht&Tab;tp:/&sol;evil.example.org",
    "&#104;ttp:/&#47;evil.example.org",
    "WWW.evil.example.org",
    "HTTP\u017f://evil.example.org",
    "F\u0130LE://evil.example.org/x",
    "ht\u0131p ws:evil.example.org",
    "wss:evil.example.org",
    "http\\:evil.example.org",
    "a: http:evil.example.org",
)


@pytest.mark.parametrize("rules", EACH)
@pytest.mark.parametrize("text", HIDING)
def test_nothing_hides_in_an_escape(rules: ResultRules, text: str) -> None:
    wanted = findings_in(escaped(text), rules)

    for around in ({"a": text}, [text], {text: 1}, {"a": [f"a {text}"], "b:": 'x: "y"'}):
        for document in (json.dumps(around), json.dumps(around, ensure_ascii=False)):
            found = findings_in(document, rules)
            assert {kind: found.get(kind) for kind in wanted} == wanted, document


@pytest.mark.parametrize("rules", EACH)
def test_nothing_is_missed_that_a_text_alone_has(rules: ResultRules) -> None:
    dice = random.Random(21)
    texts = [*FIRST_LINES, *(one.text for one in (*hostile(120), *harmless(60)))]
    texts += [mutated(text, dice) for text in texts * 3]
    for text in texts:
        wanted = findings_in(escaped(text), rules)
        assert findings_in(json.dumps([text], ensure_ascii=False), rules) == wanted, text
        assert findings_in(json.dumps([text]), rules) == wanted, text
