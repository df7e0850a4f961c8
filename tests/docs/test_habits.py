"""English pages for users are plain: roles and nouns, plain verbs, short sentences."""

import re
from pathlib import Path

import pytest

from tests.docs.reference import NOTE
from tests.docs.translations import BLOCK, ENGLISH, ROOT

LONGEST = 40
HABITS = {
    # Name the noun: "the reason", not "what became of it".
    "what-clause": r"\bwhat (?:is|was|were|are|they|we|no|came|comes|became|waits)\b",
    # Name the role: approver, operator, agent, user.
    "nameless person": r"\b(?:whoever|whomever|whom|somebody|nobody|anybody|everybody)\b",
    # Programs return, report, log, receive and check.
    "talking machine": r"\b(?:says?|said|tells?|told|hears?|heard)\b",
    "archaic word": (
        r"\b(?:house|doorbell|doors?|nudges?|anew|by now|meanwhile|all the same|so long"
        r"|by itself|by themselves)\b"
    ),
    "vague verb": r"\b(?:stands?|stood|goes on|go on|went on)\b",
    "fused possessive": r"\bof (?:its|their|your|his|her|our) own\b|\bof ours\b",
}
# Pages that are still to be rewritten; none is added.
TO_REWRITE = {
    "concepts/audit-manipulations.md",
    "guides/identity.md",
}


def name(page: Path) -> str:
    return page.relative_to(ENGLISH if ENGLISH in page.parents else ROOT).as_posix()


def prose(page: Path) -> str:
    text = BLOCK.sub("", page.read_text())
    # Inline code, and *labels* of the console's pages.
    return re.sub(r"`[^`\n]*`|(?<!\*)\*[^*\n]+\*(?!\*)", "x", text)


def sentences(text: str) -> list[str]:
    """Of paragraphs and list items; cells of tables are no sentences."""
    parts = re.split(r"\n\s*\n|\n(?= *(?:[-*|#] ?|\d+\. ))", text)
    plain = (re.sub(r"\s+", " ", part) for part in parts if not part.lstrip().startswith("|"))
    return [one for part in plain for one in re.split(r"(?<=[.!?:;])\s+", part)]


def habits(page: Path) -> list[tuple[str, str]]:
    text = prose(page)
    found = [
        (habit, text[max(0, one.start() - 30) : one.end() + 20].replace("\n", " "))
        for habit, pattern in HABITS.items()
        for one in re.finditer(pattern, text, re.IGNORECASE)
    ]
    return found + [("long", one) for one in sentences(text) if len(one.split()) > LONGEST]


WRITTEN = [
    page
    for page in [ROOT / "README.md", *sorted(ENGLISH.rglob("*.md"))]
    # Generated pages quote the code.
    if "contributing" not in page.parts and NOTE not in page.read_text()
]


@pytest.mark.parametrize("page", WRITTEN, ids=name)
def test_the_page_has_no_old_habits(page: Path) -> None:
    found = habits(page)

    if name(page) in TO_REWRITE:
        assert found, "it is plain now: take it out of TO_REWRITE"
    else:
        assert found == []


def test_habits_are_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "Whoever opens the door hears what became of it.\n\n"
        f"{'word ' * LONGEST}end.\n\n`Whoever` *says*\n\n```sh\nsays\n```\n"
    )

    assert [habit for habit, _ in habits(page)] == [
        "what-clause", "nameless person", "talking machine", "archaic word", "long"
    ]  # fmt: skip
