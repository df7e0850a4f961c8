"""What a text is, so that it is shown as that."""

import pytest

from core.text import reveal
from core.text_kinds import address, segments, shape

SHAPES = {
    '{"a": [1, 2]}': "json",
    "[not json": "",
    "SELECT * FROM users WHERE id = 1": "sql",
    "select a nice hat": "",
    "DROP TABLE users": "sql",
    "Update the minutes, please": "",
    "-- all\nDELETE FROM users": "sql",
    "--- a/x\n+++ b/x\n@@ -1 +1 @@": "change",
    "#!/bin/sh\nrm -rf /": "program",
    "Dear Ana": "",
}


@pytest.mark.parametrize(("text", "kind"), SHAPES.items())
def test_a_text_is_known_for_what_it_is(text: str, kind: str) -> None:
    assert shape(text) == kind


def test_a_program_is_known_by_the_name_of_its_argument() -> None:
    assert shape("print(1)", "code") == "program"


def test_an_address_is_split_and_shows_its_host() -> None:
    found = address("https://accounts.google.com@evil.example:8443/login?next=/")

    assert found
    assert "".join(s.text for s in found.user) == "accounts.google.com@"
    assert "".join(s.text for s in found.host) == "evil.example:8443"
    assert "".join(s.text for s in found.rest) == "/login?next=/"


def test_a_host_in_other_letters_is_shown_as_the_network_knows_it() -> None:
    found = address("https://pаypal.com/")

    assert found
    assert found.wire == "xn--pypal-4ve.com"
    assert any(s.kind == "lookalike" for s in found.host)


@pytest.mark.parametrize("text", ["see https://a.example", "a: b", "", "https://"])
def test_what_is_more_than_an_address_is_text(text: str) -> None:
    assert address(text) is None


@pytest.mark.parametrize("text", SHAPES)
def test_nothing_is_lost_in_colours(text: str) -> None:
    assert "".join(s.text for s in segments(text, shape(text))) == text


def test_what_stands_in_quotes_is_no_comment_and_what_is_one_is_no_command() -> None:
    found = segments('SELECT "a--" FROM t; DELETE FROM u /* DROP TABLE u */', "sql")

    kinds = {s.text: s.kind for s in found}
    assert kinds["DELETE"] == "key"
    assert kinds["/* DROP TABLE u */"] == "muted"


def test_line_ends_stay_as_they_are() -> None:
    text = "SELECT 1\r\nFROM t\r\n\n"

    assert "".join(s.text for s in segments(text, "sql")) == "".join(s.text for s in reveal(text))


def test_what_is_no_json_has_no_colours() -> None:
    assert segments("no message at all", "json") == reveal("no message at all")
