"""The calculator in the low-level style offers and answers what the other one does."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.examples.alike import assert_same_tools
from tests.examples.running import Connection, http_server, over_http, text_of

EXAMPLE = "low_level_calculator"


@pytest.fixture(scope="module")
def other() -> Iterator[Connection]:
    with http_server("calculator") as (url, log), over_http(url, log) as connection:
        yield connection


def test_both_offer_the_same_tools(server: Connection, other: Connection) -> None:
    assert_same_tools(server, other)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("evaluate", {"expression": "2 * (3 + 4) ** 2"}),
        ("add", {"a": 0.5, "b": 2}),
        ("divide", {"dividend": 1, "divisor": 8}),
    ],
)
def test_both_answer_the_same(
    server: Connection, other: Connection, tool: str, arguments: dict[str, Any]
) -> None:
    ours, theirs = server.call(tool, **arguments), other.call(tool, **arguments)

    assert text_of(ours) == text_of(theirs)
    assert ours.structured_content == theirs.structured_content


@pytest.mark.parametrize(
    ("tool", "arguments", "words"),
    [
        ("evaluate", {"expression": "x + 1"}, "'x' is not something this calculator knows."),
        ("evaluate", {"expression": "1" * 201}, "1 to 200 characters"),
        ("evaluate", {}, "expression must be a text"),
        ("add", {"a": 1}, "b must be a number."),
        ("add", {"a": True, "b": 1}, "a must be a number."),
        ("divide", {"dividend": 1, "divisor": 0}, "1.0 cannot be divided by 0."),
    ],
)
def test_its_errors_are_sentences(
    server: Connection, tool: str, arguments: dict[str, Any], words: str
) -> None:
    assert words in server.error(tool, **arguments)


def test_an_unknown_tool_is_an_error_of_the_protocol(server: Connection) -> None:
    with pytest.raises(Exception, match="There is no tool 'multiply'"):
        server.call("multiply", a=1, b=2)
