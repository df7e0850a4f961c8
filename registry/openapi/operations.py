"""Operations of an OpenAPI document as tools: our definitions, with the request that a call makes.

A definition holds its request in `_meta`, so that what people review and what is sent is one thing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from core.english import gettext as _
from registry.openapi.document import ApiDescription, Position, UnresolvedReference, base_url
from registry.openapi.naming import name_operations
from registry.openapi.parameters import (
    JSON,
    NotCallable,
    OperationArguments,
    is_media_type,
)
from registry.openapi.schemas import SchemaWriter
from registry.schemas import compiled, definitions

# Under which a definition holds the request.
REQUEST = "countersign/request"
METHODS = ("get", "post", "put", "patch", "delete")
# They bring nothing that an agent could read.
NOT_CALLED = ("head", "options", "trace")
MAX_DESCRIPTION = 2_000
_PAGES = re.compile(r"(page|per_?page|cursor|offset|limit|starting_after|page_?token|after)\Z")
# How an operation acts, as an operator may choose it.
READS, CHANGES, DESTROYS = "reads", "changes", "destroys"
EFFECTS = (READS, CHANGES, DESTROYS)


@dataclass(frozen=True, slots=True)
class ApiOperation:
    """One operation. `tool` is None where it cannot be one, and `problem` says why."""

    key: str
    name: str
    summary: str
    tags: tuple[str, ...]
    tool: dict[str, Any] | None
    problem: str
    notes: tuple[str, ...]

    @property
    def method(self) -> str:
        return self.key.partition(" ")[0]

    @property
    def path(self) -> str:
        return self.key.partition(" ")[2]


def list_operations(
    description: ApiDescription,
    *,
    slug: str,
    base: str,
    known: Mapping[str, str],
    effects: Mapping[str, str],
    only: Collection[str] | None = None,
) -> Iterator[ApiOperation]:
    """All operations in the document's order; `known`: names that stay, `effects`: as chosen,
    `only`: the keys of those that are wanted."""
    placed = list(_operations(description))
    wanted = [(key, _text(operation.node, "operationId")) for key, _item, operation in placed]
    names = name_operations(slug, wanted, known)
    for key, item, operation in placed:
        if only is not None and key not in only:
            continue
        yield _make_operation(
            description, key, names[key], base, item, operation, effects.get(key, "")
        )


def default_effect(method: str) -> str:
    """Source: RFC 9110, 9.2.1: GET is safe."""
    return {"GET": READS, "DELETE": DESTROYS}.get(method, CHANGES)


def _operations(description: ApiDescription) -> Iterator[tuple[str, Position, Position]]:
    for path in description.body["paths"]:
        if not path.startswith("/"):
            continue
        item = description.root.at("paths", path)
        try:
            item = description.followed(item)
        except UnresolvedReference:
            continue
        for method in (*METHODS, *NOT_CALLED):
            operation = item.at(method)
            if isinstance(operation.node, Mapping):
                yield f"{method.upper()} {path}", item, operation


def _make_operation(
    description: ApiDescription,
    key: str,
    name: str,
    base: str,
    item: Position,
    operation: Position,
    effect: str,
) -> ApiOperation:
    tool: dict[str, Any] | None = None
    problem, notes = "", list[str]()
    try:
        tool, notes = _tool(description, key, name, base, item, operation, effect)
    except (NotCallable, UnresolvedReference) as error:
        problem = str(error)
    except RecursionError:
        problem = _("Its schemas are nested too deeply to be read.")
    listed = operation.node.get("tags")
    tags = [one for one in (listed if isinstance(listed, list) else []) if isinstance(one, str)]
    summary = (_text(operation.node, "summary") or _text(operation.node, "description"))[:200]
    return ApiOperation(key, name, summary, tuple(tags), tool, problem, tuple(notes))


def _tool(
    description: ApiDescription,
    key: str,
    name: str,
    base: str,
    item: Position,
    operation: Position,
    effect: str,
) -> tuple[dict[str, Any], list[str]]:
    method, _space, path = key.partition(" ")
    if method.lower() in NOT_CALLED:
        raise NotCallable(_("%s brings no content that an agent could read.") % method)
    _check_address(description, base, item, operation)
    arguments = OperationArguments(description)
    arguments.read(item, operation)
    arguments.check_path(path)
    request: dict[str, Any] = {"method": method, "path": path}
    if arguments.plan:
        request["parameters"] = arguments.plan
    if arguments.body:
        request["body"] = arguments.body
    notes = arguments.notes
    tool: dict[str, Any] = {"name": name, "description": _described(operation.node, arguments)}
    if title := _text(operation.node, "summary"):
        tool["title"] = title[:200]
    tool["inputSchema"] = arguments.schema()
    result = _ResultSchema(description, operation)
    request["accept"] = result.accept
    if schema := result.schema(notes):
        tool["outputSchema"] = schema
        request["result"] = "wrapped" if result.is_wrapped else "object"
    tool["annotations"] = hints(method, effect)
    tool["_meta"] = {REQUEST: request}
    _check_definition(tool)
    return tool, notes


def hints(method: str, effect: str) -> dict[str, Any]:
    """The hints by the method, or by an operator who knows better."""
    effect = effect or default_effect(method)
    return {
        "readOnlyHint": effect == READS,
        "destructiveHint": effect == DESTROYS,
        "idempotentHint": effect == READS or method in ("GET", "PUT", "DELETE"),
        "openWorldHint": True,
    }


def _check_address(
    description: ApiDescription, base: str, item: Position, operation: Position
) -> None:
    """An operation of another address would carry the credential there."""
    for position in (operation, item):
        listed = position.node.get("servers")
        if isinstance(listed, list) and listed:
            urls = [base_url(one, description.source) for one in listed]
            if base not in urls:
                raise NotCallable(_("It is at another address, %s.") % (urls[0] or "?")[:200])
            return


def _check_definition(tool: dict[str, Any]) -> None:
    if problems := definitions.problems(tool):
        raise NotCallable(" ".join(problems))
    if len(orjson.dumps(tool)) > definitions.MAX_BYTES:
        raise NotCallable(_("Its definition is larger than %d bytes.") % definitions.MAX_BYTES)


def _described(node: Mapping[str, Any], arguments: OperationArguments) -> str:
    parts = [_text(node, "summary"), _text(node, "description")]
    said = "\n\n".join(dict.fromkeys(filter(None, parts)))[:MAX_DESCRIPTION]
    if node.get("deprecated") is True:
        said = _("Deprecated.") + f" {said}"
    steps = [one for one in arguments.plan if one["in"] == "query"]
    if paging := [one["argument"] for one in steps if _PAGES.match(one["name"].lower())]:
        note = _("Brings one page at a time: more with %s.") % ", ".join(paging)
        said = f"{said}\n\n{note}".strip()
    return said


class _ResultSchema:
    """The schema of a success, where every success is described as JSON."""

    def __init__(self, description: ApiDescription, operation: Position) -> None:
        self._description = description
        self.is_wrapped = False
        self._media: list[Position | None] = []
        kinds: list[str] = []
        responses = operation.node.get("responses")
        for status in responses if isinstance(responses, Mapping) else ():
            if re.fullmatch(r"2(\d\d|XX)", str(status)):
                response = description.followed(operation.at("responses", str(status)))
                content = response.at("content").node
                listed = list(content) if isinstance(content, Mapping) else []
                kinds += listed
                kind = next((one for one in listed if JSON.match(one)), None)
                self._media.append(response.at("content", kind) if kind else None)
        self.accept = _accepted(kinds)

    def schema(self, notes: list[str]) -> dict[str, Any] | None:
        described = [one for one in self._media if one is not None]
        if not described or len(described) < len(self._media):
            return None
        writer = SchemaWriter(self._description, for_result=True)
        written = [writer.schema(one.at("schema")) for one in described]
        different = {orjson.dumps(one): one for one in written}
        schema = next(iter(different.values()))
        if len(different) > 1:
            schema = {"anyOf": list(different.values())}
        made = self._object(schema, writer)
        if writer.definitions:
            made["$defs"] = writer.definitions
        if problem := compiled.problem(made):
            notes.append(_("Its result is not described: %s") % problem)
            return None
        return made

    def _object(self, schema: Any, writer: SchemaWriter) -> dict[str, Any]:
        """MCP's results are objects: everything else is the member `result` of one."""
        inner = schema
        for _jump in range(10):
            reference = inner.get("$ref") if isinstance(inner, dict) else None
            if not isinstance(reference, str):
                break
            inner = writer.definitions[reference.removeprefix("#/$defs/")]
        if isinstance(inner, dict) and inner.get("type") == "object":
            return dict(inner)
        self.is_wrapped = True
        return {"type": "object", "properties": {"result": schema}, "required": ["result"]}


def _accepted(kinds: list[str]) -> str:
    """The Accept field: JSON where there is any."""
    kinds = [kind for kind in kinds if is_media_type(kind)]
    json_kinds = list(dict.fromkeys(kind for kind in kinds if JSON.match(kind)))
    if json_kinds:
        return ", ".join(json_kinds[:3])
    return ", ".join(list(dict.fromkeys(kinds))[:3]) or "*/*"


def _text(node: Mapping[str, Any], name: str) -> str:
    value = node.get(name)
    return value.strip() if isinstance(value, str) else ""
