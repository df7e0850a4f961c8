"""Chinese texts keep to one term for one thing (locale/GLOSSARY.md) and to Chinese punctuation."""

import re
from collections.abc import Iterator

import pytest

from core.messages import catalogue, files
from tests.docs.translations import BLOCK, translated

GLOSSARY = files.ROOT / "locale" / "GLOSSARY.md"
# English, 中文, and the words that are not used; one with a note in brackets has another meaning.
ROW = re.compile(
    r"^\| (?P<english>[^|]+) \| (?P<chinese>[^|]+) \| (?P<unused>[^|]*)\|$", re.MULTILINE
)
HAN = r"[\u3400-\u9fff]"
PUNCTUATION = re.compile(rf"{HAN}[,;:!?()]|[,;!?()]{HAN}|[0-9a-z)}}] %(?![a-z(])|[0-9] ?％")
CODE = re.compile(r"`[^`\n]*`|\]\([^)\s]*\)|<[^>\n]*>")


def unused_terms() -> Iterator[str]:
    for row in ROW.finditer(GLOSSARY.read_text()):
        yield from (
            term for term in re.split("[、 ]+", row["unused"]) if re.fullmatch(rf"{HAN}+", term)
        )


UNUSED = re.compile("|".join(map(re.escape, unused_terms())))


def texts() -> Iterator[tuple[str, str]]:
    for key, message in catalogue.read(files.PO).items():
        # What Django's filter `yesno` parts at the comma.
        if key.msgid != "Yes,No":
            yield key.msgid, message.translation.replace("%%", "%")
    for page in translated():
        for line in CODE.sub("`", BLOCK.sub("", page.read_text())).splitlines():
            yield page.name, line


# A message, the logic after it, and a space before what stands in the same line.
SENTENCE = re.compile(
    r"\{% translate (?P<quote>[\"'])(?P<msgid>.*?)(?P=quote) %\}"
    r"(?:\{% (?:if|elif|else|endif|with|endwith|endfor)\b(?:[^%]|%(?!\}))*%\})*"
    r" (?=\{[%{]|<[abcest])"
)


def test_no_space_follows_full_width_punctuation() -> None:
    """`{% space %}` stands there instead."""
    said = {key.msgid: one.translation for key, one in catalogue.read(files.PO).items()}
    found = [
        (page.name, sentence["msgid"])
        for page in sorted((files.ROOT / "templates").rglob("*.html"))
        for sentence in SENTENCE.finditer(page.read_text())
        if said.get(sentence["msgid"], "").endswith(tuple("。：，；！？"))
    ]

    assert found == []


def test_the_glossary_is_read() -> None:
    assert {"账号", "审阅", "恢复代码"} <= set(unused_terms())


@pytest.mark.parametrize("unused", [UNUSED, PUNCTUATION])
def test_no_text_has_a_term_or_a_sign_that_is_not_used(unused: re.Pattern[str]) -> None:
    found = [(place, hit[0], text) for place, text in texts() if (hit := unused.search(text))]

    assert found == []
