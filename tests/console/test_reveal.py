"""Nothing in the text of agents and servers can hide from the person who reads it."""

import time

import pytest
from django.template import Context, Template

from core.text import hidden_count, reveal, revealed
from core.text_kinds import segments

HIDDEN = {
    "zero-width space": "\u200b",
    "zero-width joiner": "\u200d",
    "soft hyphen": "\u00ad",
    "combining grapheme joiner": "\u034f",
    "right-to-left override": "\u202e",
    "left-to-right isolate": "\u2066",
    "Arabic letter mark": "\u061c",
    "escape": "\u001b",
    "null": "\u0000",
    "carriage return": "\r",
    "next line": "\u0085",
    "line separator": "\u2028",
    "no-break space": "\u00a0",
    "en quad": "\u2000",
    "ideographic space": "\u3000",
    "Hangul filler": "\u3164",
    "half-width Hangul filler": "\uffa0",
    "Braille blank": "\u2800",
    "Khmer inherent vowel": "\u17b4",
    "Mongolian vowel separator": "\u180e",
    "variation selector": "\ufe0f",
    "supplementary variation selector": "\U000e0100",
    "tag letter": "\U000e0041",
    "byte order mark": "\ufeff",
    "interlinear anchor": "\ufff9",
    "object replacement": "\ufffc",
    "musical null notehead": "\U0001d159",
    "shorthand control": "\U0001bca0",
    "Egyptian joiner": "\U00013430",
    "private use": "\ue000",
    "lone surrogate": "\ud800",
    "noncharacter": "\uffff",
}


@pytest.mark.parametrize("character", HIDDEN.values(), ids=HIDDEN)
def test_it_writes_out_what_does_not_show_itself(character: str) -> None:
    before, shown, after = reveal(f"pay{character}ee")

    assert (before.text, after.text) == ("pay", "ee")
    assert shown.text == f"⟦U+{ord(character):04X}⟧"
    assert shown.kind


@pytest.mark.parametrize("text", ["plain", "naïve Ωμέγα 漢字 한국어 שלום", "a\n\tb", "😀"])
def test_it_leaves_alone_what_shows_itself(text: str) -> None:
    assert [segment.text for segment in reveal(text)] == [text]
    assert hidden_count(text) == 0


def test_it_loses_nothing() -> None:
    text = "".join(f"{n}{character}" for n, character in enumerate(HIDDEN.values()))

    assert "".join(segment.text for segment in reveal(text)) == revealed(text)


@pytest.mark.long
@pytest.mark.parametrize("text", ["a" * 10**6, "a\u200b" * 500_000, "\u200b\u202e" * 500_000])
def test_a_megabyte_does_not_stall_a_page(text: str) -> None:
    began = time.process_time()

    segments = reveal(text)

    assert time.process_time() - began < 3
    # Few enough to draw, and still every one of them written out.
    assert len(segments) < 10_000
    assert sum(segment.text.count("⟦U+") for segment in segments) == hidden_count(text)


def test_markup_of_a_stranger_stays_text() -> None:
    page = Template("{% load console %}{% reveal text %}").render(
        Context({"text": "<script>alert(1)</script>\u200b<b>"})
    )

    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert '<span class="hidden-character" data-kind="unseen">⟦U+200B⟧</span>' in page


def test_json_keeps_every_byte_and_says_what_each_token_is() -> None:
    text = '{"a\u200b": [1.50, "x", null], "b" : true}'

    shown = segments(text, "json")

    assert "".join(segment.text for segment in shown) == revealed(text)
    kinds = {segment.text: segment.kind for segment in shown}
    assert kinds["1.50"] == "number"
    assert kinds['"x"'] == "string"
    assert kinds["null"] == "literal"
    assert kinds['"b"'] == "key"
    assert kinds["⟦U+200B⟧"] == "unseen"
