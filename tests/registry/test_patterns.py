"""No pattern of a published schema holds up everybody else."""

import random
import time
from typing import Any

import pytest

from registry.publishing.published_tools import ParsedDefinition
from registry.schemas import compiled, definitions, patterns
from registry.schemas.violations import Violation

LETTERS = "".join(random.Random(1).choices("ab", k=1_000_000))
SLOW = ["a[ab]{500}c", "[ab]*a[ab]{1000}c", "(a[ab]{500}){2}c", "[ab]*a[ab]{30}c"]


def shape(**part: Any) -> ParsedDefinition:
    schema = {"type": "object", "properties": {"x": {"type": "string", **part}}}
    return ParsedDefinition(definitions.body({"name": "t", "inputSchema": schema}))


@pytest.mark.parametrize("pattern", SLOW)
def test_a_slow_pattern_is_not_tried_on_a_long_text(pattern: str) -> None:
    checked = shape(pattern=pattern)
    most = patterns.longest(pattern)
    checked.violations({"x": ""})

    began = time.thread_time()
    found = checked.violations({"x": LETTERS})

    assert time.thread_time() - began < 0.3
    said = f"is too long to be checked against its pattern: give at most {most} characters"
    assert found == [Violation("$.x", said)]


@pytest.mark.parametrize("pattern", SLOW)
def test_what_is_tried_does_not_take_long(pattern: str) -> None:
    checked = shape(pattern=pattern)
    checked.violations({"x": ""})

    began = time.thread_time()
    checked.violations({"x": LETTERS[: patterns.longest(pattern)]})

    # Twice: whether it fits, and what is wrong.
    assert time.thread_time() - began < 0.6


@pytest.mark.parametrize(
    ("pattern", "weight"),
    [
        ("^[a-z]+$", 4),
        (r"^\d{4}-\d{2}-\d{2}$", 12),
        ("[0-9a-f]{64}", 64),
        ("(ab{3}){10}", 40),
        ("((a{10}){10}){10}", 1000),
        (r"\p{L}{2,50}", 50),
        (r"[\]{9}]{3}", 3),
        (r"\{9}", 3),
        ("a{,5}", 5),
        ("(?:x|y){0,7}", 21),
        ("", 1),
        ("))((", 2),
        ("a{99999999999}", patterns.STEPS),
    ],
)
def test_a_pattern_weighs_its_states(pattern: str, weight: int) -> None:
    assert patterns.weight(pattern) == weight


def test_other_texts_of_the_call_may_be_long() -> None:
    checked = shape(pattern="a[ab]{500}c")

    assert checked.violations({"x": "a" + "b" * 500 + "c", "content": LETTERS}) == []


def test_a_schemas_own_limit_is_said_as_such() -> None:
    checked = shape(pattern="a[ab]{500}c", maxLength=9)

    (found,) = checked.violations({"x": LETTERS})

    assert found.expected == "must have at most 9 characters"


def test_ordinary_patterns_are_checked_as_before() -> None:
    (found,) = shape(pattern="^[a-z]+$").violations({"x": "A" * 500_000})

    assert found.expected == "must match the pattern ^[a-z]+$"


def test_names_that_count_far_are_refused_with_the_reason() -> None:
    schema = {"type": "object", "patternProperties": {"a[ab]{500}c": True}}

    assert "the pattern a[ab]{500}c of names counts too far" in compiled.problem(schema)
    assert compiled.problem({"type": "object", "patternProperties": {"^x-[a-z]+$": True}}) == ""


def test_who_publishes_is_told_of_the_bound() -> None:
    def notes(pattern: str) -> list[str]:
        properties = {"x": {"type": "string", "pattern": pattern}}
        return definitions.notes({"inputSchema": {"type": "object", "properties": properties}})

    assert notes("a[ab]{500}c") == [
        "Texts for the pattern a[ab]{500}c are invalid beyond 9960 characters."
    ]
    assert notes("^[a-z]+$") == []
