"""Indexes a folder of text documents, finds those that answer a question, and hands them out.

Every document is also a resource: documents://<name>. With --embeddings URL and --model NAME the
search also finds what means nearly the same in other words, by an endpoint in the dialect of
OpenAI's embeddings (the key: EMBEDDINGS_API_KEY).
"""

import argparse
import math
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated

import httpx2
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
# Chinese has no spaces between words: pairs of neighbouring characters stand for them.
CHINESE = "\u3400-\u9fff"
TERM = re.compile(rf"[{CHINESE}]+|[^\W{CHINESE}]+")
# Okapi BM25: how fast repeating a term stops helping, and how much length counts.
K1, B = 1.5, 0.75
# Reciprocal rank fusion of two rankings, and how near a meaning has to be (cosine).
FUSION, NEAR = 60, 0.5

Vector = list[float]
Ranking = list[tuple[float, "Document"]]


@dataclass(frozen=True)
class Document:
    name: str
    text: str
    terms: Counter[str]

    @property
    def title(self) -> str:
        return self.text.split("\n", 1)[0].lstrip("# ")

    @property
    def paragraphs(self) -> list[str]:
        return [part for part in self.text.split("\n\n") if not part.startswith("#")]

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
    score: float = Field(gt=0, description="Comparable within one answer only.")
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
    ranked = in_order((score(each, wanted, documents), each) for each in documents)
    nearest = nearest_paragraphs(query)
    if nearest:
        ranked = fused(ranked, in_order((nearest[each.name][0], each) for each in documents))
    hits = [hit(each, points, wanted, nearest) for points, each in ranked[:limit]]
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
    vectors.cache_clear()
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
    return [term for word in TERM.findall(text.lower()) for term in stems(word)]


def stems(word: str) -> list[str]:
    if not re.match(f"[{CHINESE}]", word):
        return [re.sub(r"(?<=\w{3})(?:e|ed|es|s)$", "", word)]
    return [word[place : place + 2] for place in range(max(1, len(word) - 1))]


def in_order(scored: Iterable[tuple[float, Document]]) -> Ranking:
    found = [pair for pair in scored if pair[0] > 0]
    return sorted(found, key=lambda pair: (-pair[0], pair[1].name))


def fused(*rankings: Ranking) -> Ranking:
    """A document's places in both count, whatever the scores there were."""
    scores: dict[str, float] = {}
    for ranking in rankings:
        for place, (_points, each) in enumerate(ranking):
            scores[each.name] = scores.get(each.name, 0.0) + 1 / (FUSION + place)
    return in_order((points, index()[name]) for name, points in scores.items())


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


def nearest_paragraphs(query: str) -> dict[str, tuple[float, str]]:
    """In each document the paragraph that means most nearly the same, and how near it is (0: not);
    {} without embeddings."""
    if "EMBEDDINGS_URL" not in os.environ:
        return {}
    try:
        (wanted,), known = embedded([query]), vectors()
        pairs = zip(index().values(), known, strict=True)
        return {each.name: nearest(wanted, each, of_it) for each, of_it in pairs}
    except (httpx2.HTTPError, LookupError, TypeError, ValueError) as error:
        print(f"documents: searching without embeddings: {error}", file=sys.stderr)
        return {}


def nearest(wanted: Vector, document: Document, known: list[Vector]) -> tuple[float, str]:
    pairs = zip(known, document.paragraphs, strict=True)
    return max(((nearness(wanted, one), text) for one, text in pairs), default=(0.0, ""))


@cache
def vectors() -> list[list[Vector]]:
    """One for each paragraph of each document, by one request."""
    counts = [len(each.paragraphs) for each in index().values()]
    found = iter(embedded([part for each in index().values() for part in each.paragraphs]))
    return [[next(found) for _ in range(count)] for count in counts]


def embedded(texts: list[str]) -> list[Vector]:
    url, model = os.environ["EMBEDDINGS_URL"], os.environ.get("EMBEDDINGS_MODEL", "")
    headers = {"Authorization": f"Bearer {os.environ.get('EMBEDDINGS_API_KEY', '')}"}
    asked = {"model": model, "input": texts}
    reply = httpx2.post(f"{url.rstrip('/')}/embeddings", json=asked, headers=headers, timeout=60)
    reply.raise_for_status()
    return [one["embedding"] for one in sorted(reply.json()["data"], key=lambda one: one["index"])]


def wordiest(document: Document, wanted: set[str]) -> str:
    """The paragraph with most of the words."""
    paragraphs = document.paragraphs
    return max(paragraphs, key=lambda part: len(wanted & set(terms_of(part))), default="")


def nearness(one: Vector, other: Vector) -> float:
    """The cosine of the angle between them, or 0 if it is too wide."""
    lengths = math.hypot(*one) * math.hypot(*other)
    cosine = sum(a * b for a, b in zip(one, other, strict=True)) / lengths if lengths else 0.0
    return cosine if cosine >= NEAR else 0.0


def hit(
    document: Document, points: float, wanted: list[str], nearest: dict[str, tuple[float, str]]
) -> Hit:
    near, passage = nearest.get(document.name, (0.0, ""))
    if not near:
        passage = wordiest(document, set(wanted))
    return Hit(
        name=document.name,
        title=document.title,
        uri=document.uri,
        score=round(points, 4),
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
    parser.add_argument("--embeddings", metavar="URL", help="of an endpoint, with its /v1")
    parser.add_argument("--model", default="", help="that it uses for embeddings")
    options = parser.parse_args()
    if options.embeddings:
        os.environ |= {"EMBEDDINGS_URL": options.embeddings, "EMBEDDINGS_MODEL": options.model}
    if options.folder:
        os.environ["DOCUMENTS_FOLDER"] = options.folder
    if options.http is None:
        server.run()
    else:
        server.run("streamable-http", port=options.http)


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        main()
