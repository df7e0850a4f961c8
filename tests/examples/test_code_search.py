import os
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.examples.running import Connection, text_of

EXAMPLE = "code_search"
LANGUAGES = ["python", "javascript", "sql", "css"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source")
    (folder / "sub").mkdir()
    (folder / "new.py").write_text("def refund():\n    pass\n\n\nrefund()  # refunds\n")
    (folder / "sub" / "old.sql").write_text("CREATE TABLE Refund (id int);\n")
    (folder / "notes.txt").write_text("refund\n")
    os.utime(folder / "sub" / "old.sql", (0, 86_400 * 365))
    outside = tmp_path_factory.mktemp("outside") / "secret.py"
    outside.write_text("refund = 'secret'\n")
    (folder / "link.py").symlink_to(outside)
    return folder


@pytest.fixture(scope="module")
def options(folder: Path) -> list[str]:
    return ["--folder", str(folder)]


def found(server: Connection, **arguments: Any) -> list[tuple[str, int]]:
    matches = server.call("search_code", **arguments).structured_content["matches"]
    return [(each["path"], each["line"]) for each in matches]


def test_its_input_schema_uses_the_whole_vocabulary(server: Connection) -> None:
    schema = server.tools()["search_code"].input_schema

    Draft202012Validator.check_schema(schema)
    assert schema == {
        "type": "object",
        "title": "search_codeArguments",
        "required": ["query"],
        "properties": {
            "query": {
                "type": "string",
                "title": "Query",
                "description": "What to look for.",
                "minLength": 1,
                "maxLength": 200,
                "pattern": r"\S",
            },
            "mode": {
                "type": "string",
                "title": "Mode",
                "description": "Anywhere, as a whole word, or only where that name is defined.",
                "enum": ["text", "word", "definition"],
                "default": "text",
            },
            "languages": {
                "type": "array",
                "title": "Languages",
                "description": "Only files in these languages.",
                "items": {"type": "string", "enum": LANGUAGES},
                "minItems": 1,
                "uniqueItems": True,
                "default": LANGUAGES,
            },
            "case_sensitive": {
                "type": "boolean",
                "title": "Case Sensitive",
                "description": "Tell a from A.",
                "default": False,
            },
            "context_lines": {
                "type": "integer",
                "title": "Context Lines",
                "description": "Lines to show above and below a match.",
                "minimum": 0,
                "maximum": 10,
                "default": 1,
            },
            "limit": {
                "type": "integer",
                "title": "Limit",
                "description": "Most matches to return.",
                "minimum": 1,
                "maximum": 100,
                "default": 20,
            },
            "changed_since": {
                "type": "string",
                "title": "Changed Since",
                "description": "Only files changed on this day or later.",
                "format": "date",
                "default": "1970-01-01",
            },
        },
    }


def test_it_finds_text_in_every_language(server: Connection) -> None:
    assert found(server, query="refund") == [("new.py", 1), ("new.py", 5), ("sub/old.sql", 1)]


def test_it_tells_upper_from_lower_case_when_asked_to(server: Connection) -> None:
    assert found(server, query="Refund", case_sensitive=True) == [("sub/old.sql", 1)]


def test_it_finds_whole_words(server: Connection) -> None:
    assert found(server, query="refunds", mode="word") == [("new.py", 5)]
    assert found(server, query="fund", mode="word") == []


def test_it_finds_where_a_name_is_defined(server: Connection) -> None:
    definitions = found(server, query="refund", mode="definition")

    assert definitions == [("new.py", 1), ("sub/old.sql", 1)]


def test_it_takes_a_query_as_text_and_not_as_a_pattern(server: Connection) -> None:
    assert found(server, query="refund()") == [("new.py", 1), ("new.py", 5)]
    assert found(server, query=".*") == []


def test_it_keeps_to_the_languages_asked_for(server: Connection) -> None:
    assert found(server, query="refund", languages=["sql", "css"]) == [("sub/old.sql", 1)]


def test_it_leaves_out_files_that_did_not_change(server: Connection) -> None:
    recent = found(server, query="refund", changed_since="2000-01-01")

    assert recent == [("new.py", 1), ("new.py", 5)]


def test_it_shows_the_lines_around_a_match(server: Connection) -> None:
    result = server.call("search_code", query="pass", context_lines=2).structured_content

    (match,) = result["matches"]
    assert (match["before"], match["text"]) == (["def refund():"], "    pass")
    assert match["after"] == ["", ""]


def test_it_says_when_there_is_more(server: Connection) -> None:
    few = server.call("search_code", query="refund", limit=2).structured_content
    all_of_them = server.call("search_code", query="refund", limit=3).structured_content

    assert (len(few["matches"]), few["complete"]) == (2, False)
    assert (len(all_of_them["matches"]), all_of_them["complete"]) == (3, True)


@pytest.mark.parametrize(
    ("argument", "value", "reason"),
    [
        ("query", "", "at least 1 character"),
        ("query", "  ", "match pattern"),
        ("mode", "regex", "'text', 'word' or 'definition'"),
        ("languages", [], "at least 1 item"),
        ("languages", ["sql", "sql"], "name each language once"),
        ("languages", ["cobol"], "'python', 'javascript', 'sql' or 'css'"),
        ("context_lines", 11, "less than or equal to 10"),
        ("limit", 0, "greater than or equal to 1"),
        ("changed_since", "2026-13-01", "valid date"),
    ],
)
def test_it_refuses_an_argument_outside_its_schema(
    server: Connection, argument: str, value: Any, reason: str
) -> None:
    assert reason in server.error("search_code", **{"query": "x", argument: value})


def test_it_reads_numbered_lines(server: Connection) -> None:
    result = server.call("read_source", path="new.py", first_line=2, lines=1)

    assert text_of(result) == "   2     pass"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("missing.py", "There is no file 'missing.py'."),
        ("notes.txt", "'notes.txt' is not a source file inside the folder."),
        ("sub/../../outside/secret.py", "is not a source file inside the folder."),
        ("link.py", "is not a source file inside the folder."),
        ("/etc/passwd", "match pattern"),
        ("sub", "is not a source file inside the folder."),
    ],
)
def test_it_refuses_to_read_anything_else(server: Connection, path: str, reason: str) -> None:
    assert reason in server.error("read_source", path=path)


def test_it_says_how_long_a_file_is_when_asked_beyond_its_end(server: Connection) -> None:
    error = server.error("read_source", path="new.py", first_line=9)

    assert "new.py has 5 lines; first_line was 9." in error


def test_every_tool_only_reads(server: Connection) -> None:
    tools = server.tools()

    assert list(tools) == ["search_code", "read_source"]
    assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools.values())
