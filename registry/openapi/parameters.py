"""Parameters and bodies of an operation: what arguments a tool has, and where each one goes.

Source: OpenAPI Specification 3.1.1, "Parameter Object", "Request Body Object", "Encoding Object".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from core.english import gettext as _
from core.errors import CountersignError
from registry.openapi.document import ApiDescription, Position
from registry.openapi.schemas import SchemaWriter
from registry.upstream.transport.api_request import leads_elsewhere

BODY = "body"
# "they SHALL be ignored" (Parameter Object); the others are the client's own.
IGNORED_HEADERS = {"accept", "content-type", "authorization"}
OWN_HEADERS = {
    *("accept-encoding", "connection", "content-encoding", "content-length", "cookie", "expect"),
    *("forwarded", "host", "keep-alive", "origin", "proxy-authorization", "te", "trailer"),
    *("transfer-encoding", "upgrade", "user-agent", "via"),
    # By which a request would be another one, or another client's.
    *("x-http-method", "x-http-method-override", "x-method-override", "x-original-url"),
    *("x-real-ip", "x-rewrite-url"),
}
OWN_PREFIXES = ("proxy-", "x-forwarded-")
# Source: RFC 9110, 5.6.2 and 8.3.1.
_is_token = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch
is_media_type = re.compile(
    r"[!#$%&'*+.^_`|~0-9A-Za-z-]+/[!#$%&'*+.^_`|~0-9A-Za-z-]+(?:[ \t]*;[\t\x20-\x7e]*)?"
).fullmatch
STYLES = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
JSON = re.compile(r"application/(?:json|[a-z0-9.+-]+\+json)\Z")
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
# It would end the path, begin with another host, or break a line, now or once it is decoded.
_NO_PATH = re.compile(
    r"\A//|[\x00-\x1f\x7f-\x9f\\?#]|%(?![0-9A-Fa-f]{2})|%(?:[01][0-9A-Fa-f]|7[Ff])"
)
_plain = re.compile(r"[^A-Za-z0-9_.-]+").sub


class NotCallable(CountersignError):
    """The operation cannot be a tool; says why."""


class OperationArguments:
    """The arguments of a tool; `plan` says for each where it goes in the request."""

    def __init__(self, description: ApiDescription) -> None:
        self._description = description
        self.writer = SchemaWriter(description, for_result=False)
        self.properties: dict[str, Any] = {}
        self.required: list[str] = []
        self.plan: list[dict[str, Any]] = []
        self.body: dict[str, Any] | None = None
        self.notes: list[str] = []

    def schema(self) -> dict[str, Any]:
        made: dict[str, Any] = {"type": "object", "properties": self.properties}
        if self.required:
            made["required"] = self.required
        made["additionalProperties"] = False
        if self.writer.definitions:
            made["$defs"] = self.writer.definitions
        return made

    def read(self, item: Position, operation: Position) -> None:
        """Raises NotCallable and UnresolvedReference."""
        if operation.node.get("requestBody") is not None:
            # Its name first: it is the same in every tool.
            self._read_body(self._description.followed(operation.at("requestBody")))
        found: dict[tuple[str, str], Position] = {}
        for listed in (item.at("parameters"), operation.at("parameters")):
            for one in _each(listed):
                parameter = self._description.followed(one)
                if isinstance(parameter.node, Mapping):
                    place = (str(parameter.node.get("in")), str(parameter.node.get("name")))
                    found[place] = parameter
        for (where, name), parameter in found.items():
            self._read_parameter(where, name, parameter)

    def check_path(self, path: str) -> None:
        """Raises NotCallable for a path that is none of HTTP, and for a variable of it that nothing
        fills."""
        if _NO_PATH.search(path) or leads_elsewhere(path):
            raise NotCallable(
                _("Its path holds “..”, “?”, “#”, “\\” or something else that no path may have.")
            )
        filled = {one["name"] for one in self.plan if one["in"] == "path"}
        missing = sorted(set(re.findall(r"\{([^{}]*)\}", path)) - filled)
        if missing:
            raise NotCallable(_("No parameter fills “%s” of its path.") % missing[0][:100])

    def _read_parameter(self, where: str, name: str, parameter: Position) -> None:
        if where not in STYLES:
            raise NotCallable(_("Its parameter “%s” is in no place that is known.") % name[:100])
        node = parameter.node
        is_required = node.get("required") is True or where == "path"
        if where == "header" and name.lower() in IGNORED_HEADERS:
            return
        if where == "header" and not self._may_be_sent(name, is_required):
            return
        argument = self._free_name(name, where)
        step = {"argument": argument, "name": name, "in": where}
        step |= self._style(name, where, node)
        schema = self._parameter_schema(parameter)
        said = node.get("description")
        said = said if isinstance(said, str) else ""
        if argument != name:
            # What the API calls it may be all that tells what it is for.
            said = f"{name[:200]}: {said}" if said else name[:200]
        if said and schema is not False:
            schema = {**({} if schema is True else schema), "description": said[:1000]}
        self.properties[argument] = schema
        if is_required:
            self.required.append(argument)
        self.plan.append(step)

    def _may_be_sent(self, header: str, is_required: bool) -> bool:
        """Raises NotCallable for a header that the operation needs."""
        shown = header[:100]
        if not _is_token(header):
            needed = _("It needs the header “%s”, whose name no header can have.")
            left_out = _("The header “%s” is left out: no header can have its name.")
        elif header.lower() in OWN_HEADERS or header.lower().startswith(OWN_PREFIXES):
            needed = _("It needs the header “%s”, which is ours.")
            left_out = _("The header “%s” is left out: it is ours.")
        else:
            return True
        if is_required:
            raise NotCallable(needed % shown)
        self.notes.append(left_out % shown)
        return False

    def _style(self, name: str, where: str, node: Mapping[str, Any]) -> dict[str, Any]:
        """Only what is not as usual."""
        content = node.get("content")
        if isinstance(content, Mapping) and content:
            kind = next(iter(content))
            if not JSON.match(kind):
                said = _("Its parameter “%(name)s” is written as %(kind)s.")
                raise NotCallable(said % {"name": name[:100], "kind": kind[:100]})
            return {"style": "json"}
        usual = STYLES[where][0]
        style = node.get("style", usual)
        if style not in STYLES[where]:
            said = _("Its parameter “%(name)s” has the style %(style)s, which is not known.")
            raise NotCallable(said % {"name": name[:100], "style": str(style)[:40]})
        explode = node.get("explode", style == "form")
        made: dict[str, Any] = {} if style == usual else {"style": style}
        if bool(explode) != (style == "form"):
            made["explode"] = bool(explode)
        if node.get("allowReserved") is True and where == "query":
            made["reserved"] = True
        return made

    def _parameter_schema(self, parameter: Position) -> Any:
        content = parameter.node.get("content")
        if isinstance(content, Mapping) and content:
            return self.writer.schema(parameter.at("content", next(iter(content)), "schema"))
        return self.writer.schema(parameter.at("schema"))

    def _free_name(self, name: str, where: str) -> str:
        base = _plain("_", name).strip("_.-")[:64] or where
        if base not in self.properties:
            return base
        other = f"{base[:52]}_in_{where}"
        n, found = 2, other
        while found in self.properties:
            found, n = f"{other}_{n}", n + 1
        return found

    def _read_body(self, request: Position) -> None:
        content = request.node.get("content") if isinstance(request.node, Mapping) else None
        if not isinstance(content, Mapping) or not content:
            return
        kind = best_type(content)
        if kind is None:
            listed = ", ".join(sorted(map(str, content)))[:200]
            raise NotCallable(_("Its body is %s, which cannot be written here.") % listed)
        media = request.at("content", kind)
        self.body = {"argument": BODY, "type": kind}
        schema = self._body_schema(kind, media)
        said = request.node.get("description")
        if isinstance(said, str) and said and isinstance(schema, dict):
            schema = {"description": said[:1000], **schema}
        self.properties[BODY] = schema
        if request.node.get("required") is True:
            self.required.append(BODY)

    def _body_schema(self, kind: str, media: Position) -> Any:
        if kind in (FORM, MULTIPART):
            return self._form_schema(kind, media)
        if JSON.match(kind):
            return self.writer.schema(media.at("schema"))
        if kind.startswith("text/") or kind.endswith(("/xml", "+xml")):
            return {"type": "string", "description": _("The whole text, as %s.") % kind}
        if self.body is not None:
            self.body["base64"] = True
        said = _("The whole content, as %s, in base64.") % kind
        return {"type": "string", "contentEncoding": "base64", "description": said}

    def _form_schema(self, kind: str, media: Position) -> Any:
        fields = self._description.followed(media.at("schema"))
        schema = self.writer.schema(media.at("schema"))
        files = sorted(self._files(fields)) if kind == MULTIPART else []
        encoding = {name: made for name, made in self._encodings(media, kind) if made}
        if self.body is not None:
            self.body |= {"files": files} if files else {}
            self.body |= {"encoding": encoding} if encoding else {}
        if isinstance(schema, dict) and not ({"type", "$ref"} & set(schema)):
            schema = {"type": "object", **schema}
        return schema

    def _files(self, fields: Position) -> Iterator[str]:
        """Members that are files, or lists of such."""
        node = fields.node if isinstance(fields.node, Mapping) else {}
        for n, _one in enumerate(node.get("allOf") or ()):
            inner = Position(node["allOf"][n], fields.document, f"{fields.pointer}/allOf/{n}")
            yield from self._files(self._description.followed(inner))
        members = node.get("properties")
        for name in members if isinstance(members, Mapping) else ():
            member = self._description.followed(fields.at("properties", name))
            items = self._description.followed(member.at("items"))
            if _is_file(member.node) or _is_file(items.node):
                yield name

    def _encodings(self, media: Position, kind: str) -> Iterator[tuple[str, dict[str, Any]]]:
        listed = media.node.get("encoding")
        for name, one in (listed if isinstance(listed, Mapping) else {}).items():
            if not isinstance(one, Mapping):
                continue
            made: dict[str, Any] = {}
            if kind == MULTIPART and isinstance(one.get("contentType"), str):
                made["type"] = one["contentType"].split(",")[0].strip()
                if not is_media_type(made["type"]):
                    del made["type"]
                    said = _("The content type of its field “%s” is none, and is not sent.")
                    self.notes.append(said % str(name)[:100])
            if kind == FORM and one.get("style", "form") in STYLES["query"]:
                made |= self._style(name, "query", one)
            yield name, made


def best_type(content: Mapping[str, Any]) -> str | None:
    """The media type among several that says most to a model, and is written here."""
    kinds = [kind for kind in content if isinstance(kind, str) and is_media_type(kind)]
    orders = (
        lambda kind: kind == "application/json",
        lambda kind: JSON.match(kind.split(";")[0].strip().lower()) is not None,
        lambda kind: kind == FORM,
        lambda kind: kind == MULTIPART,
        lambda kind: kind.startswith("text/"),
        lambda kind: kind.endswith(("/xml", "+xml")),
        lambda kind: "*" not in kind and not kind.startswith("multipart/"),
    )
    for is_it in orders:
        if found := next((kind for kind in kinds if is_it(kind)), None):
            return found
    # Any type at all: bytes.
    return "application/octet-stream" if "*/*" in kinds else None


def _is_file(node: Any) -> bool:
    if not isinstance(node, Mapping):
        return False
    is_binary = node.get("format") == "binary"
    return is_binary or ("contentMediaType" in node and node.get("type") != "object")


def _each(listed: Position) -> Iterator[Position]:
    node = listed.node if isinstance(listed.node, list) else []
    for n, one in enumerate(node):
        yield Position(one, listed.document, f"{listed.pointer}/{n}")
