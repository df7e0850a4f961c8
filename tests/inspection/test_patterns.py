"""An operator's own patterns mask, and never take longer than they may."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import pytest

from inspection.patterns import (
    LIMIT_S,
    BadPattern,
    MaskPattern,
    PatternsTimedOut,
    TimedPatterns,
    check,
    literals,
)
from inspection.results import ResultRules, clean
from inspection.secrets import Masked

TICKETS = "ticket: \\bT-[0-9]{4}\\b\nbadge: (?i)badge no\\. \\d+"
SLOW = r"staff: (?:a|b|ab)+d"
# Each takes hours on a text that is made for it.
HOSTILE = (
    ("(a|a)*[^a]c", "a" * 200_000 + "c"),
    (r"(x+x+)+y|x", "x" * 100_000),
    (r"(?:.*a){30}b", "a" * 10_000 + "cB"),
)


def test_what_they_match_is_masked_by_their_name() -> None:
    body = json.dumps({"said": "T-1234, T-12345 and BADGE NO. 7\u200b7", "n": 1.0}).encode()

    done = clean(body, ResultRules(patterns=TICKETS))

    assert json.loads(done.body)["said"] == "[masked: ticket], T-12345 and [masked: badge]"
    assert done.found == {"masked.custom.ticket": 1, "masked.custom.badge": 1}
    assert b'"n": 1.0' in done.body
    plain = b'{"said": "nothing"}'
    assert clean(plain, ResultRules(patterns=TICKETS)).body is plain


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("abc|xyz", "xyz"),
        ("(?i)a(?:bc|bd)", "ABD"),
        ("ab?c", "ac"),
        ("ab*c", "ac"),
        ("ab{0,2}c", "ac"),
        ("ab+?c", "abbc"),
        ("(ab)?c", "c"),
        ("(?x) a b", "ab"),
        ("(?i-s:a) (?ix)b c", "a bc"),
        ("(?#a (comment)ab", "ab"),
        (r"\x41B", "AB"),
        (r"\101B", "AB"),
        (r"(a)\1b", "aab"),
        (r"\p{Lu}bc", "Abc"),
        (r"a\.b\-c", "a.b-c"),
        (r"a\\b", "a\\b"),
        (r"a/b", "a/b"),
        (r'a"b', 'a"b'),
        (r"a\tb", "a\tb"),
        ("[ab]c", "bc"),
        ("[]a]c", "]c"),
        ("[^]]c", "ac"),
        ("[[a-z]--[b]]c", "ac"),
        (r"[\]a]c", "]c"),
        ("(?:abc){e<=1}", "abd"),
        ("abc{e<=1}", "abd"),
        ("a{b", "a{b"),
        ("a]b}", "a]b}"),
        (r"\bkey: \d{3}\b", "a key: 123"),
        ("(?i)straße", "STRASSE"),
        ("(?i)ss-kelvin", "\u00df-\u212aelvin"),
        ("\uff21bc", "\uff21bc"),
        ("工号\\d", "工号1"),
        ("ABC", "\uff21BC"),
        ("abc", "a\u200bbc"),
        ("a&b<c", "a&b<c"),
    ],
)
def test_asking_the_document_first_misses_no_match(pattern: str, text: str) -> None:
    rules, long = ResultRules(patterns=f"mine: {pattern}"), "Nothing is in it. " * 40
    for texts in ([text], {"a": text}, [text, long], {"a": json.dumps({"b": text})}):
        for is_ascii in (True, False):
            body = json.dumps(texts, ensure_ascii=is_ascii).encode()
            assert clean(body, rules).found == {"masked.custom.mine": 1}, body
    assert clean(json.dumps([long]).encode(), rules).found == {}


def test_most_patterns_are_not_tried_where_a_word_of_them_is_missing() -> None:
    assert literals(f"{TICKETS}\nkey: (?:acme|corp)_live_[a-z0-9]{{20}}") == (
        *("t-", "badge no. "),
        "_live_",
    )
    assert literals("either: a|b") is None
    assert literals("") == ()


def test_a_name_may_be_of_any_script() -> None:
    body = json.dumps({"said": "工号1234, straße 7"}, ensure_ascii=False).encode()

    done = clean(body, ResultRules(patterns="工号：工号\\d{4}\nstraße: straße \\d: x|straße \\d"))

    assert json.loads(done.body)["said"] == "[masked: 工号], [masked: straße]"
    assert done.found == {"masked.custom.工号": 1, "masked.custom.straße": 1}


@pytest.mark.long
@pytest.mark.parametrize(("pattern", "text"), HOSTILE)
def test_a_hostile_one_costs_no_more_than_the_limit(pattern: str, text: str) -> None:
    body = json.dumps([text, text, text]).encode()
    began = time.monotonic()

    with pytest.raises(PatternsTimedOut):
        clean(body, ResultRules(patterns=f"mine: {pattern}"))

    # Hours, if nothing stopped it.
    assert time.monotonic() - began < LIMIT_S + 2


@pytest.mark.long
def test_texts_share_the_time() -> None:
    pattern, text = HOSTILE[0]
    timed = TimedPatterns(f"mine: {pattern}")
    with pytest.raises(PatternsTimedOut):
        list(timed.find(text))

    with pytest.raises(PatternsTimedOut):
        list(timed.find("b"))


@pytest.mark.long
def test_the_time_of_others_is_not_counted() -> None:
    text = " ".join(["ab" * 10 + "c"] * 400) + " d"
    began = time.thread_time()
    list(TimedPatterns(SLOW, total_s=60, each_s=60).find(text))
    alone_s = time.thread_time() - began

    def find(_number: int) -> list[Masked]:
        return list(TimedPatterns(SLOW, total_s=3 * alone_s, each_s=3 * alone_s).find(text))

    # They let each other run, so that together they are on every processor.
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(find, range(16))) == [[]] * 16


def test_one_that_took_its_own_time_is_not_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []
    timed = TimedPatterns("mine: a", total_s=0.01)

    class Slow:
        def finditer(self, _text: str, *, timeout: float, **_more: bool) -> list[str]:
            tried.append(timeout)
            began = time.thread_time()
            while time.thread_time() - began < timeout:
                pass
            raise TimeoutError

    monkeypatch.setattr(timed, "_patterns", (MaskPattern("mine", cast(Any, Slow())),))
    with pytest.raises(PatternsTimedOut):
        list(timed.find("a"))

    assert tried == [0.01]


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
