from typing import Any

import pytest

from tests.examples.running import Connection

EXAMPLE = "text_analyser"
TEXT = "The ferry sails. The ferry stops!\n\nNobody overrules the captain of a ferry."


def structured(server: Connection, tool: str, **arguments: Any) -> Any:
    return server.call(tool, **arguments).structured_content


def test_it_counts(server: Connection) -> None:
    assert structured(server, "count_words", text=TEXT) == {
        "characters": len(TEXT),
        "words": 13,
        "different_words": 9,
        "sentences": 3,
        "paragraphs": 2,
        "reading_minutes": 0.06,
    }


def test_it_counts_words_with_accents_and_apostrophes_as_one(server: Connection) -> None:
    counts = structured(server, "count_words", text="Blåbærgrød can’t well-known 42")

    assert (counts["words"], counts["sentences"]) == (3, 1)


def test_it_tells_plain_from_hard_text(server: Connection) -> None:
    hard = "Notwithstanding considerable organisational responsibilities, interdepartmental "
    hard += "communication necessitates comprehensive documentation of administrative procedures."

    plain = "The ship sails at six. We wait for the bus. Then we go home and eat."

    easy, difficult = (
        structured(server, "measure_readability", text=text) for text in (plain, hard)
    )

    assert easy["verdict"] == "Easy"
    assert difficult["verdict"] == "Very hard"
    assert difficult["school_grade"] > easy["school_grade"] + 10


def test_it_finds_the_most_common_words(server: Connection) -> None:
    found = structured(server, "most_common_words", text=TEXT, limit=1)

    assert found == {"result": [{"word": "ferry", "times": 3, "share": 0.2308}]}


def test_it_counts_stop_words_when_asked_to(server: Connection) -> None:
    found = structured(server, "most_common_words", text=TEXT, with_stop_words=True, shortest=1)

    assert {"the": 3, "ferry": 3, "a": 1}.items() <= {
        each["word"]: each["times"] for each in found["result"]
    }.items()


@pytest.mark.parametrize("tool", ["count_words", "measure_readability", "most_common_words"])
def test_it_refuses_a_text_without_words(server: Connection, tool: str) -> None:
    assert "There is no word in this text." in server.error(tool, text="42 …")
    assert "at least 1 character" in server.error(tool, text="")


def test_it_refuses_a_limit_outside_its_bounds(server: Connection) -> None:
    assert "less than or equal to 100" in server.error("most_common_words", text=TEXT, limit=101)


def test_every_tool_only_reads(server: Connection) -> None:
    tools = server.tools()

    assert list(tools) == ["count_words", "measure_readability", "most_common_words"]
    assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools.values())
