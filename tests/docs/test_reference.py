"""Reference pages say what the code has now."""

import re

import pytest

from core import actions
from tests.docs import reference, reference_words
from tests.processes import ROOT

STALE = "write it again: python -m tests.docs.reference --write"


@pytest.mark.parametrize("name", reference.WRITERS)
def test_the_page_is_what_the_code_writes(name: str) -> None:
    assert reference.path(name, "en").read_text() == reference.WRITERS[name]("en"), STALE


@pytest.mark.parametrize("name", reference.WRITERS)
def test_the_chinese_page_is_too(name: str) -> None:
    written = reference.path(name, "zh-hans").read_text()
    rows = [line for line in written.splitlines() if line.startswith("|")]
    made = reference.WRITERS[name]("zh-hans")

    assert rows == [line for line in made.splitlines() if line.startswith("|")], STALE


def test_every_action_with_words_is_listed() -> None:
    listed = {actions._SAID.get(one) or actions.plain(one) for one in reference.known_actions()}

    assert [words for words in actions.OTHERS if words not in listed] == []
    assert [words for words in actions._SAID.values() if words not in listed] == []


def test_every_recorded_action_has_words() -> None:
    recorded = re.compile(r"\b(?:record|entry)\(\s*\"([a-z_]+\.[a-z_]+)\"")
    paths = (one for package in reference.PACKAGES for one in (ROOT / package).rglob("*.py"))
    names = {name for path in paths for name in recorded.findall(path.read_text())}

    assert len(names) > 100
    assert sorted(names - set(reference.known_actions())) == []


def test_every_kind_has_advice_and_words() -> None:
    kinds = reference.known_kinds()

    assert all(kinds.values())
    assert kinds.keys() == reference_words.KINDS.keys()
    assert set().union(*kinds.values()) == reference_words.ADVICE.keys()
