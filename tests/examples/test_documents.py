from collections.abc import Iterator
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from mcp import Client, MCPError
from mcp_types import EmbeddedResource, ResourceLink, TextResourceContents

from examples import documents
from tests.examples.running import EXAMPLES, Connection
from tests.upstreams.embeddings import Embedder, embedder

EXAMPLE = "documents"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(
        copytree(EXAMPLES / "data" / "documents", tmp_path_factory.mktemp("library") / "docs")
    )


@pytest.fixture(scope="module")
def options(folder: Path) -> list[str]:
    return ["--folder", str(folder)]


def hits(server: Connection, query: str, **arguments: Any) -> Any:
    return server.call("search_documents", query=query, **arguments).structured_content["hits"]


@pytest.mark.parametrize(
    ("question", "best", "words"),
    [
        ("Who approves large refunds?", "refunds", "approved by the office manager"),
        ("What does a car cost to Holm?", "ticket-prices", "Car"),
        ("May we sail in fog and wind?", "bad-weather", "fog"),
        ("I lost my umbrella", "lost-property", "Umbrellas"),
        ("wheelchair", "accessibility", "wheelchair"),
        ("谁批准超过 2,000 克朗的退款？", "refunds-zh", "办公室经理批准"),
        ("雨伞丢了怎么办", "lost-property-zh", "雨伞"),
        ("轮椅", "accessibility-zh", "轮椅"),
        ("风速多大会停航", "bad-weather-zh", "风速"),
    ],
)
def test_it_finds_the_document_that_answers(
    server: Connection, question: str, best: str, words: str
) -> None:
    first = hits(server, question)[0]

    assert first["name"] == best
    assert words in first["passage"]


def test_it_ranks_and_links_what_it_found(server: Connection) -> None:
    result = server.call("search_documents", query="refund for a cancelled crossing", limit=3)

    schema = server.tools()["search_documents"].output_schema
    assert schema is not None
    Draft202012Validator(schema).validate(result.structured_content)
    scores = [hit["score"] for hit in result.structured_content["hits"]]
    links = [block for block in result.content if isinstance(block, ResourceLink)]
    assert len(scores) == 3
    assert scores == sorted(scores, reverse=True)
    assert [str(link.uri) for link in links] == [
        hit["uri"] for hit in result.structured_content["hits"]
    ]


def test_it_finds_nothing_where_nothing_is(server: Connection) -> None:
    assert hits(server, "zebra") == []


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"query": ""}, "at least 1 character"),
        ({"query": "x", "limit": 21}, "less than or equal to 20"),
        ({}, "Field required"),
    ],
)
def test_it_refuses_an_argument_outside_its_schema(
    server: Connection, arguments: dict[str, Any], reason: str
) -> None:
    assert reason in server.error("search_documents", **arguments)


def test_it_reads_a_document_as_an_embedded_resource(server: Connection) -> None:
    (block,) = server.call("read_document", name="refunds").content

    assert isinstance(block, EmbeddedResource)
    assert isinstance(block.resource, TextResourceContents)
    assert block.resource.uri == "documents://refunds"
    assert block.resource.text.startswith("# Refunds\n")


def test_it_refuses_to_read_a_document_it_has_not(server: Connection) -> None:
    error = server.error("read_document", name="../climate")

    assert "There is no document '../climate'. There are: accessibility-zh, accessibility," in error


def test_its_documents_are_resources_too(server: Connection) -> None:
    async def read(client: Client) -> tuple[list[str], str]:
        resources = (await client.list_resources()).resources
        (contents,) = (await client.read_resource("documents://timetable")).contents
        assert isinstance(contents, TextResourceContents)
        assert contents.mime_type == "text/markdown"
        return [resource.name for resource in resources], contents.text

    names, text = server.run(read)

    listed = server.call("list_documents").structured_content["result"]
    assert names == [each["name"] for each in listed]
    assert text.startswith("# Timetable")


def test_it_says_when_there_is_no_such_resource(server: Connection) -> None:
    async def read(client: Client) -> None:
        await client.read_resource("documents://missing")

    with pytest.raises(MCPError, match="There is no document 'missing'") as refusal:
        server.run(read)

    assert refusal.value.code in (-32602, -32002)


def test_it_learns_of_a_new_document_when_the_index_is_rebuilt(
    server: Connection, folder: Path
) -> None:
    new = folder / "zebras.md"
    new.write_text("# Zebras\n\nA zebra travels as a bicycle.\n")
    try:
        names = [each["name"] for each in server.call("rebuild_index").structured_content["result"]]
        assert "zebras" in names
        assert hits(server, "zebra")[0]["passage"] == "A zebra travels as a bicycle."
    finally:
        new.unlink()

    server.call("rebuild_index")

    assert hits(server, "zebra") == []


def test_only_rebuilding_the_index_changes_something(server: Connection) -> None:
    hints = {name: tool.annotations for name, tool in server.tools().items()}

    assert {name: hint and hint.read_only_hint for name, hint in hints.items()} == {
        "search_documents": True,
        "read_document": True,
        "list_documents": True,
        "rebuild_index": False,
    }
    rebuild = hints["rebuild_index"]
    assert rebuild is not None
    assert rebuild.destructive_hint is False


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Embedder]]:
    with embedder() as (kind, url):
        monkeypatch.setenv("EMBEDDINGS_URL", url)
        monkeypatch.setenv("EMBEDDINGS_MODEL", "small")
        monkeypatch.setenv("EMBEDDINGS_API_KEY", "key")
        monkeypatch.delenv("DOCUMENTS_FOLDER", raising=False)
        documents.index.cache_clear()
        documents.vectors.cache_clear()
        yield kind
        documents.index.cache_clear()
        documents.vectors.cache_clear()


def found(query: str) -> list[str]:
    result = documents.search_documents(query)
    assert result.structured_content is not None
    return [hit["name"] for hit in result.structured_content["hits"]]


def test_with_embeddings_other_words_of_the_same_meaning_find_it(
    endpoint: type[Embedder], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert found("brolly")[0].startswith("lost-property")
    assert set(found("a gale")[:2]) & {"bad-weather", "bad-weather-zh"}
    # Words count too.
    assert found("Who approves large refunds?")[0] == "refunds"
    path, key, body = endpoint.asked[0]
    assert (path, key, body["model"]) == ("/v1/embeddings", "Bearer key", "small")
    # The documents are sent once.
    assert [len(one["input"]) for _path, _key, one in endpoint.asked if len(one["input"]) > 1] == [
        sum(len(one.paragraphs) for one in documents.index().values())
    ]

    monkeypatch.delenv("EMBEDDINGS_URL")
    assert found("brolly") == []


def test_an_endpoint_that_fails_leaves_the_words(
    endpoint: type[Embedder], capsys: pytest.CaptureFixture[str]
) -> None:
    endpoint.status = 500

    assert found("Who approves large refunds?")[0] == "refunds"
    assert "searching without embeddings" in capsys.readouterr().err
