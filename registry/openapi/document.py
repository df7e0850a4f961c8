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

from core.english import gettext as _
from core.errors import CountersignError

MAX_BYTES = 24 * 1024 * 1024
MAX_NODES = 3_000_000
MAX_OTHERS = 50
MAX_JUMPS = 20
_version = re.compile(r"3\.[01]\.\d+").match
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


@dataclass(frozen=True, slots=True)
class ApiDescription:
    """One parsed document with those that it refers to."""

    body: dict[str, Any]
    # Where it was found, against which relative URLs are read.
    source: str = ""
    others: Mapping[str, Any] = field(default_factory=dict)

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
        """Where a reference in this document leads. Raises UnresolvedReference."""
        address, pointer = urldefrag(reference)
        if address:
            document = urljoin(document or self.source, address)
            if document == self.source:
                document = ""
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


def parse(data: bytes) -> Any:
    """The value of a JSON or YAML text. Raises DocumentRefused."""
    if len(data) > MAX_BYTES:
        said = _("The document is larger than %d MiB.")
        raise DocumentRefused(said % (MAX_BYTES // 1024**2))
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        if data.lstrip()[:1] in (b"{", b"["):
            raise DocumentRefused(_("The document is not JSON: %s.") % error) from error
    return _of_yaml(data)


def _of_yaml(data: bytes) -> Any:
    try:
        value = yaml.load(data.decode(), Loader=_Loader)  # noqa: S506 a safe loader
        _check_size(value)
        return orjson.loads(orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS))
    except UnicodeDecodeError as error:
        raise DocumentRefused(_("The document is not UTF-8.")) from error
    except (yaml.YAMLError, TypeError, ValueError, RecursionError) as error:
        said = _("The document is neither JSON nor YAML: %s")
        raise DocumentRefused(said % str(error)[:300]) from error


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
            if isinstance(reference, str) and not reference.startswith("#"):
                yield urljoin(base, urldefrag(reference)[0])
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
            raise UnresolvedReference(_("The reference %s leads nowhere.") % reference[:200])
    if pointer and not pointer.startswith("/"):
        raise UnresolvedReference(_("The reference %s leads nowhere.") % reference[:200])
    return node


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
    joined = urljoin(source, url)
    return joined.rstrip("/") if joined.startswith(("https://", "http://")) else ""


def canonical(body: Any) -> str:
    return json.dumps(body, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
