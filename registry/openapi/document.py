"""Reads OpenAPI documents, 3.0 and 3.1, and follows their references.

Source: OpenAPI Specification 3.0.4 and 3.1.1, "Reference Object"; RFC 6901.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from urllib.parse import unquote, urldefrag, urljoin

import orjson
import yaml
from yarl import URL

from core import json_words, yaml_words
from core.english import gettext as _
from core.errors import CountersignError

MAX_BYTES = 24 * 1024 * 1024
# Of YAML; JSON has the reader's own limit.
MAX_DEPTH = 200
MAX_NODES = 3_000_000
# Schemas and references that are read for all operations together: one that several operations
# refer to counts for each. @octokit/openapi has a third of it.
MAX_READ = 400_000
MAX_OTHERS = 50
MAX_JUMPS = 20
_version = re.compile(r"3\.[01]\.\d+").match
_LEADS_NOWHERE = _("The reference %s leads nowhere.")
# Gets a document by its URL. Raises DocumentRefused.
Fetch = Callable[[str], bytes]


class DocumentRefused(CountersignError):
    """The document cannot be used; says why."""


class UnresolvedReference(Exception):
    """A `$ref` leads nowhere; says which and why."""


class Position(NamedTuple):
    """A node, the URL of the document that it stands in ("": the main one) and its pointer."""

    node: Any
    document: str
    pointer: str

    def at(self, *names: str) -> Position:
        """Its member; None where it has none."""
        node, pointer = self.node, self.pointer
        for name in names:
            node = node.get(name) if isinstance(node, Mapping) else None
            pointer += "/" + name.replace("~", "~0").replace("/", "~1")
        return Position(node, self.document, pointer)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """JSON's types alone: dates stay texts, and only true and false are truth."""


_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern)
        for tag, pattern in resolvers
        if tag not in ("tag:yaml.org,2002:timestamp", "tag:yaml.org,2002:bool")
    ]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)


@dataclass(slots=True)
class ReadCount:
    """How many schemas and references were read; few references can lead to many."""

    number: int = 0

    def add(self) -> None:
        """Raises DocumentRefused."""
        self.number += 1
        if self.number > MAX_READ:
            said = _(
                "With what its references repeat, the document has more than %d schemas. "
                "Leave out operations, or references that fan out."
            )
            raise DocumentRefused(said % MAX_READ)


@dataclass(frozen=True, slots=True)
class ApiDescription:
    """One parsed document with those that it refers to."""

    body: dict[str, Any]
    # Where it was found, against which relative URLs are read.
    source: str = ""
    others: Mapping[str, Any] = field(default_factory=dict)
    read_count: ReadCount = field(default_factory=ReadCount, compare=False)

    @property
    def is_3_0(self) -> bool:
        return str(self.body["openapi"]).startswith("3.0")

    @property
    def root(self) -> Position:
        return Position(self.body, "", "#")

    def followed(self, position: Position) -> Position:
        """The position itself, or where its `$ref` leads. Raises UnresolvedReference."""
        for _jump in range(MAX_JUMPS):
            node = position.node
            if not isinstance(node, Mapping) or not isinstance(node.get("$ref"), str):
                return position
            position = self.target(node["$ref"], position.document)
        raise UnresolvedReference(_("A reference leads in a circle."))

    def target(self, reference: str, document: str) -> Position:
        """Where a reference in this document leads. Raises UnresolvedReference, DocumentRefused."""
        self.read_count.add()
        try:
            address, pointer = urldefrag(reference)
            joined = urljoin(document or self.source, address)
        except ValueError:
            raise UnresolvedReference(_LEADS_NOWHERE % reference[:200]) from None
        if address:
            document = "" if joined == self.source else joined
        if document and document not in self.others:
            said = _("It refers to another document, %s, which was not fetched.")
            raise UnresolvedReference(said % document[:200])
        node = self.others[document] if document else self.body
        return Position(_pointed(node, pointer, reference), document, f"#{pointer}")


def read(data: bytes, *, source: str = "") -> ApiDescription:
    """Raises DocumentRefused."""
    body = parse(data)
    if isinstance(body, dict) and str(body.get("swagger", "")).startswith("2"):
        raise DocumentRefused(_("This is Swagger 2.0: convert it to OpenAPI 3.0 or 3.1 first."))
    if not isinstance(body, dict) or not _version(str(body.get("openapi", ""))):
        raise DocumentRefused(_("This is no OpenAPI document of version 3.0 or 3.1."))
    if not isinstance(body.get("paths"), dict) or not body["paths"]:
        raise DocumentRefused(_("The document has no paths, so nothing can be called."))
    return ApiDescription(body, source)


def check_length(data: bytes) -> None:
    """Raises DocumentRefused."""
    if len(data) > MAX_BYTES:
        said = _("The document is larger than %d MiB.")
        raise DocumentRefused(said % (MAX_BYTES // 1024**2))


def parse(data: bytes) -> Any:
    """The value of a JSON or YAML text. Raises DocumentRefused."""
    check_length(data)
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as error:
        if data.lstrip()[:1] in (b"{", b"["):
            said = _("The document is not JSON (line %(line)d, column %(column)d: %(why)s).")
            where = {"line": error.lineno, "column": error.colno}
            raise DocumentRefused(said % (where | {"why": json_words.describe(error)})) from error
        return _of_yaml(data)
    if json_words.has_nul(data):
        raise DocumentRefused(_("A text cannot contain NUL characters."))
    return value


def _of_yaml(data: bytes) -> Any:
    try:
        text = data.decode()
        _check_depth(text)
        value = yaml.load(text, Loader=_Loader)  # noqa: S506 a safe loader
        _check_size(value)
        return orjson.loads(orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS))
    except UnicodeDecodeError as error:
        raise DocumentRefused(_("The document is not UTF-8.")) from error
    except yaml.YAMLError as error:
        said = _("The document is neither JSON nor YAML (line %(line)d: %(why)s).")
        where = {"line": yaml_words.line_of(error), "why": yaml_words.describe(error)}
        raise DocumentRefused(said % where) from error
    except (TypeError, ValueError, RecursionError) as error:
        said = _("The document is neither JSON nor YAML: %s")
        raise DocumentRefused(said % str(error)[:300]) from error


def _check_depth(text: str) -> None:
    """A loader in C goes down as deep as the text does, and its process ends there."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise ValueError(_("it is nested too deeply"))
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _check_size(value: Any) -> None:
    """An anchor that is repeated often is small in YAML alone."""
    waiting, seen = [value], 0
    while waiting:
        node = waiting.pop()
        seen += 1
        if seen > MAX_NODES:
            raise ValueError(_("it repeats its anchors too often"))
        if isinstance(node, dict):
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node


def with_others(description: ApiDescription, fetch: Fetch) -> ApiDescription:
    """The same with all documents that it refers to, and those that they refer to."""
    others: dict[str, Any] = {}
    waiting = list(_elsewhere(description.body, description.source))
    size = 0
    while waiting:
        address = waiting.pop()
        if address in others or address == description.source:
            continue
        if len(others) >= MAX_OTHERS:
            raise DocumentRefused(_("It refers to more than %d other documents.") % MAX_OTHERS)
        data = fetch(address)
        size += len(data)
        if size > MAX_BYTES:
            raise DocumentRefused(_("The documents that it refers to are too large together."))
        others[address] = parse(data)
        waiting += _elsewhere(others[address], address)
    return ApiDescription(description.body, description.source, others)


def _elsewhere(value: Any, base: str) -> Iterator[str]:
    waiting = [value]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            reference = node.get("$ref")
            if isinstance(reference, str) and (other := reference.partition("#")[0]):
                yield from filter(None, [_joined(base, other)])
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node


def _pointed(node: Any, pointer: str, reference: str) -> Any:
    for part in unquote(pointer).split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(node, list) and name.isdecimal() and int(name) < len(node):
            node = node[int(name)]
        elif isinstance(node, dict) and name in node:
            node = node[name]
        else:
            raise UnresolvedReference(_LEADS_NOWHERE % reference[:200])
    if pointer and not pointer.startswith("/"):
        raise UnresolvedReference(_LEADS_NOWHERE % reference[:200])
    return node


def _joined(base: str, url: str) -> str:
    """ "" where it is no URL."""
    try:
        joined = urljoin(base, url)
        # Its name and its port are read by this alone.
        URL(joined).host  # noqa: B018
        return joined
    except ValueError:
        return ""


def base_urls(description: ApiDescription) -> list[str]:
    """Where the document says that its API is, with its variables' defaults."""
    listed = description.body.get("servers")
    servers = listed if isinstance(listed, list) and listed else [{"url": "/"}]
    return [url for one in servers if (url := base_url(one, description.source))]


def base_url(server: Any, source: str) -> str:
    """One server's URL without an end slash; "" where it has none."""
    if not isinstance(server, dict) or not isinstance(server.get("url"), str):
        return ""
    url, variables = server["url"], server.get("variables")
    for name, variable in (variables if isinstance(variables, dict) else {}).items():
        if isinstance(variable, dict):
            url = url.replace(f"{{{name}}}", str(variable.get("default", "")))
    joined = _joined(source, url)
    return joined.rstrip("/") if joined.startswith(("https://", "http://")) else ""


def canonical(body: Any) -> str:
    return json.dumps(body, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
