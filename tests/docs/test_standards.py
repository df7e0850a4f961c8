"""The table of requirements is whole, and each test that it names is there."""

import ast
import json
import re
from functools import cache
from pathlib import Path

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


# By requirement, the tests that show what its line says.
SHOWN_BY: dict[str, list[str]] = json.loads((Path(__file__).parent / "standards.json").read_text())


@cache
def functions(file: str) -> set[str]:
    found = ast.walk(ast.parse((ROOT / file).read_text()))
    return {one.name for one in found if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}


@pytest.mark.parametrize("language", STATES, ids=["en", "zh"])
def test_each_line_names_the_files_of_its_tests(language) -> None:
    text = (language / "reference/standards.md").read_text()
    lines = re.findall(r"^\| ([\w.]*\d) \|(.*)\|$", text, re.M)
    named = {number: re.findall(r"`(tests/[\w/]+\.py)`", line) for number, line in lines}

    assert {number: files for number, files in named.items() if files} == {
        number: list(dict.fromkeys(test.partition("::")[0] for test in tests))
        for number, tests in SHOWN_BY.items()
    }
    for test in (one for tests in SHOWN_BY.values() for one in tests):
        file, _, function = test.partition("::")
        assert function in functions(file), test
