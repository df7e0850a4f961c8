"""Every command, option, path and link that a document names is there."""

import re
from argparse import ArgumentParser, _SubParsersAction
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
COMMAND = re.compile(r"manage\.py (?!<)([a-z_]+)((?: +[^\s`|)]+)*)")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
# Of the product's own tree: what begins with one of its folders, and ends like a file.
TREE = (
    "accounts|approvals|audit|benchmarks|calls|client|config|core|docker|docs|examples|gateway|inspection"
    "|notifications|policies"
)
PATH = re.compile(rf"`((?:{TREE}|registry|static|templates|tests)/[\w./-]*\w\.\w+)`")
LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s]*)\)")
# What pages say in other words (CONTRIBUTING.md).
REPLACED = re.compile(
    r"""(?xi)\b(
    standing\s+grants?|waits?\s+to\s+be\s+published|asks?\s+a\s+person|said\s+(yes|no)|yeses|noes|
    may\s+destroy|stands?\s+still|safe\s+to\s+repeat|reaches\s+outside|took\s+too\s+long|
    in\s+your\s+own\s+words|wait\w*\s+for\s+approval|no\s+comments\s+yet|went\s+wrong
    )\b"""
)
# It says what was so when it was written.
HISTORY = "CHANGELOG.md"
# `manage.py` knows them by itself, and hands their options on.
OWN = {"test", "faults", "help"}


@cache
def options_of(command: str) -> set[str]:
    made = load_command_class(get_commands()[command], command)
    return set(_options(made.create_parser("manage.py", command)))


def _options(parser: ArgumentParser) -> Iterator[str]:
    """The parser's own, and those of its subcommands."""
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, _SubParsersAction):
            for one in action.choices.values():
                yield from _options(one)


@cache
def anchors_of(document: Path) -> set[str]:
    """As GitHub makes them of headings."""
    headings = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    plain = (re.sub(r"[^\w\s-]", "", heading.lower()).strip() for heading in headings)
    return {heading.replace(" ", "-") for heading in plain}


def name(document: Path) -> str:
    return str(document.relative_to(ROOT))


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_its_commands_exist(document: Path) -> None:
    for command, rest in COMMAND.findall(document.read_text()):
        wrong = set() if command in OWN else set(OPTION.findall(rest)) - options_of(command)
        assert not wrong, f"manage.py {command} has no {wrong}"


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_its_paths_exist(document: Path) -> None:
    missing = [path for path in PATH.findall(document.read_text()) if not (ROOT / path).exists()]
    assert missing == []


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_its_links_lead_somewhere(document: Path) -> None:
    for link in LINK.findall(document.read_text()):
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        assert target.exists(), link
        if anchor and target.suffix == ".md":
            assert anchor in anchors_of(target), link


def test_documents_use_the_words_of_pages() -> None:
    wrong = {name(one): REPLACED.findall(one.read_text()) for one in DOCUMENTS}

    assert {path: found for path, found in wrong.items() if found and path != HISTORY} == {}
