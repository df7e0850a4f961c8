"""The table of attacks on sign-in names tests that exist, and actions of entries."""

import re

import pytest

from tests.processes import ROOT

PAGE = (ROOT / "docs" / "en" / "contributing" / "testing.md").read_text()
TABLE = PAGE.partition("## Attacks on sign-in")[2].partition("\n## ")[0]
ENTRIES = (ROOT / "docs" / "en" / "reference" / "entries.md").read_text()
TESTS = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", TABLE)))


@pytest.mark.parametrize(("file", "name"), TESTS, ids=["::".join(one) for one in TESTS])
def test_the_test_is_there(file: str, name: str) -> None:
    assert f"def {name}(" in (ROOT / file).read_text()


def test_each_attack_has_a_test_and_an_entry() -> None:
    rows = [line.split(" | ") for line in TABLE.splitlines() if line.startswith("| ")][1:]

    assert len(rows) > 15
    for _attack, entry, tests in rows:
        assert "::" in tests
        found = re.findall(r"`([a-z_]+\.[a-z_]+)`", entry)
        assert found
        assert all(f"| `{action}` |" in ENTRIES for action in found)
