"""A Chinese page translates the English page that there is now."""

from pathlib import Path

import pytest

from tests.docs import translations
from tests.docs.translations import (
    CHINESE_README,
    HEAD,
    HEADING,
    README,
    blocks,
    digest,
    original_of,
)

TRANSLATED = translations.translated()
FRESH = "translate again, then run: python -m tests.docs.translations --mark"


def name(page: Path) -> str:
    return page.relative_to(CHINESE_README.parent).as_posix()


def test_every_page_for_users_is_translated() -> None:
    missing = {
        name(chinese)
        for chinese in map(translations.translation_of, translations.pages())
        if not chinese.exists()
    }

    assert missing == set()


def test_the_readmes_of_both_languages_lead_to_each_other() -> None:
    assert "[简体中文](docs/README.zh-CN.md)" in README.read_text()
    assert "[English](../README.md)" in CHINESE_README.read_text()


@pytest.mark.parametrize("page", TRANSLATED, ids=name)
def test_it_is_as_new_as_its_original(page: Path) -> None:
    marked = HEAD.match(page.read_text())

    assert marked, FRESH
    assert marked[1] == digest(original_of(page)), FRESH


@pytest.mark.parametrize("page", TRANSLATED, ids=name)
def test_it_has_the_code_and_the_headings_of_its_original(page: Path) -> None:
    chinese, english = page.read_text(), original_of(page).read_text()

    assert blocks(chinese) == blocks(english)
    for block in blocks(english):
        chinese, english = chinese.replace(block, ""), english.replace(block, "")
    assert len(HEADING.findall(chinese)) == len(HEADING.findall(english))


def test_a_changed_original_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    english, chinese = tmp_path / "en" / "page.md", tmp_path / "zh-hans" / "page.md"
    for page in (english, chinese):
        page.parent.mkdir()
        page.write_text("# Page\n\n```sh\nold\n```\n")
    monkeypatch.setattr(translations, "ENGLISH", english.parent)
    monkeypatch.setattr(translations, "CHINESE", chinese.parent)
    translations.mark(english)
    before = chinese.read_text()

    english.write_text("# Page\n\n```sh\nnew\n```\n")

    assert digest(english) not in before
    translations.mark(english)
    assert digest(english) in chinese.read_text()
    assert blocks(chinese.read_text()) == blocks(english.read_text())
