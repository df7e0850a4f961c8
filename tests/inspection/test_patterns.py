"""An operator's own patterns mask, and never take longer than they may."""

import json
import time

import pytest

from inspection.patterns import LIMIT_S, BadPattern, PatternsTimedOut, TimedPatterns, check
from inspection.results import ResultRules, clean

TICKETS = "ticket: \\bT-[0-9]{4}\\b\nbadge: (?i)badge no\\. \\d+"
# Each takes hours on a text that is made for it.
HOSTILE = (
    ("(a|a)*[^a]c", "a" * 200_000 + "c"),
    (r"(x+x+)+y|x", "x" * 100_000),
    (r"(?:.*a){30}b", "a" * 10_000 + "c"),
)


def test_what_they_match_is_masked_by_their_name() -> None:
    body = json.dumps({"said": "T-1234, T-12345 and BADGE NO. 7\u200b7", "n": 1.0}).encode()

    done = clean(body, ResultRules(patterns=TICKETS))

    assert json.loads(done.body)["said"] == "[masked: ticket], T-12345 and [masked: badge]"
    assert done.found == {"masked.custom.ticket": 1, "masked.custom.badge": 1}
    assert b'"n": 1.0' in done.body
    plain = b'{"said": "nothing"}'
    assert clean(plain, ResultRules(patterns=TICKETS)).body is plain


@pytest.mark.parametrize(("pattern", "text"), HOSTILE)
def test_a_hostile_one_costs_no_more_than_the_limit(pattern: str, text: str) -> None:
    body = json.dumps([text, text, text]).encode()
    began = time.monotonic()

    with pytest.raises(PatternsTimedOut):
        clean(body, ResultRules(patterns=f"mine: {pattern}"))

    # Hours, if nothing stopped it.
    assert time.monotonic() - began < LIMIT_S + 2


def test_texts_share_the_time() -> None:
    pattern, text = HOSTILE[0]
    timed = TimedPatterns(f"mine: {pattern}")
    with pytest.raises(PatternsTimedOut):
        list(timed.find(text))

    with pytest.raises(PatternsTimedOut):
        list(timed.find("b"))


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("no name", "is not of the form"),
        ("Name: x", "is not of the form"),
        ("mine:", "is not of the form"),
        ("mine: (", "cannot be used"),
        ("mine: a*", "fits where there is nothing"),
        (f"mine: {'a' * 501}", "longer than 500"),
        ("mine: a\n" * 21, "At most 20"),
    ],
)
def test_what_cannot_be_used_is_said(text: str, why: str) -> None:
    with pytest.raises(BadPattern, match=why):
        check(text)
