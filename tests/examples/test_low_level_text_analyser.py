"""The text analyser in the low-level style offers and answers what the other one does."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.examples.alike import assert_same_tools
from tests.examples.running import Connection, http_server, over_http, text_of

EXAMPLE = "low_level_text_analyser"
TEXT = "The ferry sails. The ferry stops!\n\nNobody overrules the captain of a ferry."


@pytest.fixture(scope="module")
def other() -> Iterator[Connection]:
    with http_server("text_analyser") as (url, log), over_http(url, log) as connection:
        yield connection


def test_both_offer_the_same_tools(server: Connection, other: Connection) -> None:
    assert_same_tools(server, other)


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("count_words", {}),
        ("measure_readability", {}),
        ("most_common_words", {}),
        ("most_common_words", {"limit": 1, "shortest": 1, "with_stop_words": True}),
    ],
)
def test_both_answer_the_same(
    server: Connection, other: Connection, tool: str, arguments: dict[str, Any]
) -> None:
    ours, theirs = (
        server.call(tool, text=TEXT, **arguments),
        other.call(tool, text=TEXT, **arguments),
    )

    assert ours.structured_content == theirs.structured_content
    assert "{" in text_of(ours)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"text": "42 …"}, "There is no word in this text."),
        ({"text": ""}, "text must be a text of 1 to 100,000 characters."),
        ({}, "text must be a text"),
        ({"text": TEXT, "limit": 101}, "limit must be a whole number from 1 to 100."),
        ({"text": TEXT, "shortest": True}, "shortest must be a whole number from 1 to 20."),
        ({"text": TEXT, "with_stop_words": 1}, "with_stop_words must be true or false."),
    ],
)
def test_its_errors_are_sentences(
    server: Connection, arguments: dict[str, Any], words: str
) -> None:
    assert words in server.error("most_common_words", **arguments)
