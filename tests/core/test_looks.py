"""Characters that pass for others are written out, and honest text is left alone."""

import pytest

from core.text import lookalike_count, reveal, revealed

PRETENDING = {
    "a Cyrillic letter in a name": ("pаypal.com", "p⟦а U+0430⟧ypal.com"),
    "a word of nothing but such": ("log in to раур now", None),
    "a Greek letter": ("gοogle.com", "g⟦ο U+03BF⟧ogle.com"),
    "a slash that is none": ("https://bank.com∕pay", "https://bank.com⟦∕ U+2215⟧pay"),
    "a full-width dot": ("bank．com", "bank⟦． U+FF0E⟧com"),
    "an ideographic stop in a host": ("bank。com", "bank⟦。 U+3002⟧com"),
    "mathematical letters": ("𝐩𝐚𝐲 now", None),
    "full-width letters": ("ａdmin", "⟦ａ U+FF41⟧dmin"),
    "a dotless i": ("admın", "adm⟦ı U+0131⟧n"),
    "an Armenian o": ("gօogle", "g⟦օ U+0585⟧ogle"),
}
HONEST = [
    "plain text",
    "Привет, мир",
    "письмо от Анны: see attachment",
    "ο λόγος, the word",
    "10 μm and ΔE, α = 0.05",
    "漢字とカタカナ、ＡＢＣ",
    "これは文です。次の文。",
    "naïve café, Ærø, Łódź",
    "2024–2025, well‑known",
    "한국어 text",
    "a/b:c.d@e",
]


@pytest.mark.parametrize(("text", "shown"), PRETENDING.values(), ids=PRETENDING)
def test_it_writes_out_what_passes_for_something_else(text: str, shown: str | None) -> None:
    assert lookalike_count(text) > 0
    assert any(segment.kind == "lookalike" for segment in reveal(text))
    if shown:
        assert revealed(text) == shown


@pytest.mark.parametrize("text", HONEST)
def test_it_leaves_honest_text_alone(text: str) -> None:
    assert lookalike_count(text) == 0


def test_hidden_and_pretending_characters_are_both_shown() -> None:
    assert revealed("p\u200bаy") == "p⟦U+200B⟧⟦а U+0430⟧y"


def test_nothing_of_the_text_is_lost() -> None:
    text = "a\u202e pаypal\u00ad. com∕y " * 3

    kept = "".join(segment.text for segment in reveal(text) if not segment.kind)

    assert kept == "".join(character for character in text if character.isascii())
