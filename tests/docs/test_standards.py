"""The table of requirements is whole, and each test that it names is there."""

import re

import pytest

from tests.docs.translations import CHINESE, ENGLISH, ROOT

# How many requirements each section of the standard has.
AISVS = {"9.1": 3, "9.2": 10, "9.3": 8, "9.4": 4, "9.5": 6, "9.6": 3}
AISVS |= {"12.1": 4, "12.2": 6, "12.3": 4, "12.4": 3, "12.5": 4}
NUMBERS = [f"{section}.{n}" for section, count in AISVS.items() for n in range(1, count + 1)]
NUMBERS += [f"MCP{n:02}" for n in range(1, 11)] + [f"ASI{n:02}" for n in range(1, 11)]
STATES = {
    ENGLISH: ("covered", "partly", "not covered", "outside"),
    CHINESE: ("已满足", "部分满足", "未满足", "不适用"),
}


@pytest.mark.parametrize("language", STATES, ids=["en", "zh"])
def test_each_requirement_has_a_line_and_what_is_said_to_hold_has_tests(language) -> None:
    covered, partly, *others = STATES[language]
    lines = re.findall(
        r"^\| ([\w.]*\d) \|(.*)\|$", (language / "reference/standards.md").read_text(), re.M
    )

    assert [number for number, _ in lines] == NUMBERS
    for number, line in lines:
        _, state, why, tests = (cell.strip() for cell in line.split("|"))
        assert state in (covered, partly, *others), number
        assert why, number
        named = re.findall(r"`(tests/[\w/]+\.py)`", tests)
        assert named or state not in (covered, partly), number
        assert all((ROOT / test).is_file() for test in named), number
