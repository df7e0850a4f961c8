"""Indexes a folder of text documents, finds those that answer a question, and hands them out.

Every document is also a resource: documents://<name>.
"""

import argparse
import math
import os
import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ResourceNotFoundError, ToolError
from mcp_types import (
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    Resource,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from pydantic import BaseModel, Field

SHIPPED = Path(__file__).parent / "data" / "documents"
MARKDOWN = "text/markdown"
TERM = re.compile(r"\w+")
# Okapi BM25: how fast repeating a term stops helping, and how much length counts.
K1, B = 1.5, 0.75


@dataclass(frozen=True)
class Document:
    name: str
    text: str
    terms: Counter[str]

    @property
    def title(self) -> str:
        return self.text.split("\n", 1)[0].lstrip("# ")

    @property
    def uri(self) -> str:
        return f"documents://{self.name}"

    @property
    def length(self) -> int:
        return self.terms.total()


class Hit(BaseModel):
    name: str
    title: str
    uri: str
    score: float = Field(gt=0, description="Okapi BM25: comparable within one answer only.")
    passage: str = Field(description="The paragraph that fits best.")


class Hits(BaseModel):
    hits: list[Hit]
    documents_searched: int


class IndexedDocument(BaseModel):
    name: str
    title: str
    words: int


class DocumentServer(MCPServer):
    async def list_resources(self) -> list[Resource]:
        return [
            Resource(uri=each.uri, name=each.name, title=each.title, mime_type=MARKDOWN)
            for each in index().values()
        ]


READ_ONLY = ToolAnnotations(read_only_hint=True, open_world_hint=False)
server = DocumentServer(
    "documents",
    title="Documents",
    version="1.0",
    instructions="The handbook of a small ferry company. Search first, then read.",
)


@server.tool(title="Search the documents", annotations=READ_ONLY)
def search_documents(
    query: Annotated[
        str, Field(min_length=1, max_length=500, description="A question, or some words.")
    ],
    limit: Annotated[int, Field(ge=1, le=20, description="Most documents to return.")] = 5,
) -> Annotated[CallToolResult, Hits]:
    """Find the documents that best fit a question, each with its best passage and a link."""
    documents = list(index().values())
    wanted = terms_of(query)
    ranked = sorted(
        ((score(each, wanted, documents), each) for each in documents),
        key=lambda pair: (-pair[0], pair[1].name),
    )
    hits = [hit(each, points, wanted) for points, each in ranked[:limit] if points > 0]
    return with_links(Hits(hits=hits, documents_searched=len(documents)))


@server.tool(title="Read a document", annotations=READ_ONLY)
def read_document(
    name: Annotated[str, Field(description="A name that search_documents or list_documents gave.")],
) -> EmbeddedResource:
    """Read a whole document."""
    document = index().get(name)
    if document is None:
        raise ToolError(f"There is no document {name!r}. There are: {', '.join(index())}.")
    contents = TextResourceContents(uri=document.uri, mime_type=MARKDOWN, text=document.text)
    return EmbeddedResource(type="resource", resource=contents)


@server.tool(title="List the documents", annotations=READ_ONLY)
def list_documents() -> list[IndexedDocument]:
    """List every document in the index."""
    return [
        IndexedDocument(name=each.name, title=each.title, words=each.length)
        for each in index().values()
    ]


@server.tool(
    title="Rebuild the index",
    annotations=ToolAnnotations(
        read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
    ),
)
async def rebuild_index(ctx: Context) -> list[IndexedDocument]:
    """Read the folder again, after documents were added, changed or removed."""
    index.cache_clear()
    await ctx.notify_resources_changed()
    return list_documents()


@server.resource("documents://{name}", title="A document", mime_type=MARKDOWN)
def document(name: str) -> str:
    """The text of one document."""
    if name not in index():
        raise ResourceNotFoundError(f"There is no document {name!r}.")
    return index()[name].text


@cache
def index() -> dict[str, Document]:
    folder = Path(os.environ.get("DOCUMENTS_FOLDER", SHIPPED))
    files = sorted([*folder.glob("*.md"), *folder.glob("*.txt")])
    return {file.stem: read(file) for file in files}


def read(file: Path) -> Document:
    text = file.read_text(encoding="utf-8", errors="replace")
    return Document(file.stem, text, Counter(terms_of(text)))


def terms_of(text: str) -> list[str]:
    """Words in lower case without their common endings: “approved” finds “approves”."""
    return [re.sub(r"(?<=\w{3})(?:e|ed|es|s)$", "", word) for word in TERM.findall(text.lower())]


def score(document: Document, wanted: list[str], documents: list[Document]) -> float:
    average = sum(each.length for each in documents) / len(documents)
    damping = K1 * (1 - B + B * document.length / average)
    return sum(
        rarity(term, documents) * document.terms[term] * (K1 + 1) / (document.terms[term] + damping)
        for term in set(wanted)
    )


def rarity(term: str, documents: list[Document]) -> float:
    having = sum(term in each.terms for each in documents)
    return math.log(1 + (len(documents) - having + 0.5) / (having + 0.5))


def hit(document: Document, points: float, wanted: list[str]) -> Hit:
    paragraphs = [part for part in document.text.split("\n\n") if not part.startswith("#")]
    passage = max(paragraphs, key=lambda part: len(set(wanted) & set(terms_of(part))), default="")
    return Hit(
        name=document.name,
        title=document.title,
        uri=document.uri,
        score=round(points, 3),
        passage=passage.strip(),
    )


def with_links(hits: Hits) -> CallToolResult:
    content: list[ContentBlock] = [TextContent(type="text", text=hits.model_dump_json(indent=2))]
    content += [
        ResourceLink(type="resource_link", uri=each.uri, name=each.name, mime_type=MARKDOWN)
        for each in hits.hits
    ]
    return CallToolResult(content=content, structured_content=hits.model_dump(mode="json"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--http", type=int, metavar="PORT", help="serve HTTP instead of stdio")
    parser.add_argument("--folder", help="the folder to index (default: the one shipped with us)")
    options = parser.parse_args()
    if options.folder:
        os.environ["DOCUMENTS_FOLDER"] = options.folder
    if options.http is None:
        server.run()
    else:
        server.run("streamable-http", port=options.http)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
