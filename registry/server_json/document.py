"""Reads server.json, which says how an MCP server is reached or run.

Source: modelcontextprotocol/registry, docs/reference/api/openapi.yaml, ServerDetail, of the schema
2025-12-11 (and older ones, whose names of members are the same). Nothing in it is trusted: each
remote and package that cannot be used here says why.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from urllib.parse import SplitResult, urlsplit

import orjson
from yarl import URL

from core import strict_json
from core.english import gettext as _
from core.errors import CountersignError
from core.json_words import has_nul
from core.strict_json import Ambiguous

Json = dict[str, Any]

MAX_BYTES = 256 * 1024
MAX_WAYS = 20
MAX_INPUTS = 50
LONGEST = 2000
_name = re.compile(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+").fullmatch
_digest = re.compile(r"[a-f0-9]{64}").fullmatch
_url = re.compile(r"(?:https?://\S+|\{[a-zA-Z_]\w*\}\S*)", re.ASCII).fullmatch
_range = re.compile(r"[\^~<>=*]|(?:^|\.)[xX](?:\.|$)").search
_variable = re.compile(r"\{([a-zA-Z_][\w-]*)\}", re.ASCII)


class ServerJsonRefused(CountersignError):
    """The document cannot be used; says where and why."""


def split_url(text: str) -> SplitResult:
    """Raises ServerJsonRefused."""
    try:
        # Its name and its port are read by this alone.
        URL(text).host  # noqa: B018
        return urlsplit(text)
    except ValueError as error:
        raise ServerJsonRefused(_("“%s” is not a URL.") % text[:200]) from error


@dataclass(frozen=True, slots=True)
class InputField:
    """One value that a person gives. `default` is the publisher's; secrets have none."""

    name: str
    about: str = ""
    is_required: bool = False
    is_secret: bool = False
    default: str = ""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HeaderTemplate:
    """A header with {variables}; without a `template` its value is asked for under its name."""

    name: str
    template: str


@dataclass(frozen=True, slots=True)
class Remote:
    """An address that the publisher runs."""

    kind: str
    url: str
    headers: tuple[HeaderTemplate, ...]
    fields: tuple[InputField, ...]

    @property
    def problem(self) -> str:
        known = ("streamable-http", "sse")
        return "" if self.kind in known else _("Its transport is not known: %s.") % self.kind


@dataclass(frozen=True, slots=True)
class Package:
    """A program in a package registry, started on the host of Countersign."""

    kind: str
    identifier: str
    version: str
    transport: str
    body: Json

    @property
    def problem(self) -> str:
        if self.transport == "stdio":
            return ""
        return _("Once started it is reached by URL: start it, then register its address.")

    @property
    def digest(self) -> str:
        return pinned_digest(self.body)


@dataclass(frozen=True, slots=True)
class ServerJson:
    name: str
    title: str
    description: str
    version: str
    remotes: tuple[Remote, ...]
    packages: tuple[Package, ...]
    body: Json

    @property
    def digest(self) -> str:
        written = orjson.dumps(self.body, option=orjson.OPT_SORT_KEYS)
        return f"sha256:{sha256(written).hexdigest()}"


def parse(text: bytes) -> Json:
    """One JSON object, which may be a registry's answer about it. Raises ServerJsonRefused."""
    if len(text) > MAX_BYTES:
        raise ServerJsonRefused(_("This is longer than any server.json: 256 KiB are read."))
    try:
        whole = strict_json.loads(text)
    except Ambiguous as error:
        raise ServerJsonRefused(_("This is not JSON: %s") % error) from error
    if isinstance(whole, dict) and isinstance(whole.get("server"), dict):
        whole = whole["server"]
    if not isinstance(whole, dict):
        raise ServerJsonRefused(_("A server.json is one JSON object."))
    return whole


def read(body: Json) -> ServerJson:
    """Raises ServerJsonRefused."""
    name = _read_text(body, "name", least=3, most=200)
    if not _name(name):
        said = _("name: “%s” is not of the form com.example/server.")
        raise ServerJsonRefused(said % name[:100])
    version = _read_text(body, "version", least=1, most=255)
    if _range(version):
        raise ServerJsonRefused(_("version: “%s” is a range, not one version.") % version[:100])
    remotes = [_read_remote(one, at) for one, at in _list_objects(body, "remotes", MAX_WAYS)]
    packages = [_read_package(one, at) for one, at in _list_objects(body, "packages", MAX_WAYS)]
    if not remotes and not packages:
        raise ServerJsonRefused(_("It has neither remotes nor packages: it cannot be reached."))
    # Also in members that nobody reads.
    if has_nul(json.dumps(body).encode()):
        raise ServerJsonRefused(_("A text cannot contain NUL characters."))
    return ServerJson(
        name=name,
        title=_read_text(body, "title", most=100),
        description=_read_text(body, "description", least=1, most=100),
        version=version,
        remotes=tuple(remotes),
        packages=tuple(packages),
        body=body,
    )


def pinned_digest(package: Json) -> str:
    """The digest that the document pins, with its kind; empty if it pins none."""
    if package.get("fileSha256"):
        return f"sha256:{package['fileSha256']}"
    _image, at, digest = str(package.get("identifier", "")).partition("@")
    return digest if at and package.get("registryType") == "oci" else ""


def variables_of(template: str) -> list[str]:
    return list(dict.fromkeys(_variable.findall(template)))


def fill(template: str, values: dict[str, str]) -> str:
    return _variable.sub(lambda found: values.get(found[1], found[0]), template)


def _read_remote(body: Json, at: str) -> Remote:
    url = _read_text(body, "url", at, least=1, most=LONGEST)
    if not _url(url):
        raise ServerJsonRefused(_("%s.url: this is no http or https URL.") % at)
    fields = _read_variables(body, at, url)
    headers = []
    for one, where in _list_objects(body, "headers", MAX_INPUTS, at):
        header = HeaderTemplate(
            _read_text(one, "name", where, least=1, most=100), _read_value(one, where)
        )
        headers.append(header)
        if header.template:
            fields |= _read_variables(one, where, header.template)
        else:
            fields[header.name] = _read_input(header.name, one, where)
    kind = _read_text(body, "type", at, least=1, most=40)
    return Remote(kind, url, tuple(headers), tuple(fields.values()))


def _read_variables(body: Json, at: str, template: str) -> dict[str, InputField]:
    """Those that the template has. One that is not described is asked for too."""
    described = body.get("variables") or {}
    if not isinstance(described, dict):
        raise ServerJsonRefused(_("%s.variables: this is no object.") % at)
    fields = {}
    for name in variables_of(template):
        about = described.get(name) or {"isRequired": True}
        fields[name] = _read_input(name, about, f"{at}.variables.{name}")
    return fields


def _read_input(name: str, body: Any, at: str) -> InputField:
    if not isinstance(body, dict):
        raise ServerJsonRefused(_("%s: this is no object.") % at)
    is_secret = body.get("isSecret") is True
    listed = body.get("choices") or []
    choices = tuple(one for one in listed if isinstance(one, str)) if listed else ()
    default = _read_text(body, "value", at, most=LONGEST) or _read_text(
        body, "default", at, most=LONGEST
    )
    return InputField(
        name=name,
        about=_read_text(body, "description", at, most=LONGEST),
        is_required=body.get("isRequired") is True,
        is_secret=is_secret,
        default="" if is_secret else default,
        choices=choices[:MAX_INPUTS],
    )


def _read_value(body: Json, at: str) -> str:
    return _read_text(body, "value", at, most=LONGEST)


def _read_package(body: Json, at: str) -> Package:
    digest = _read_text(body, "fileSha256", at, most=64)
    if digest and not _digest(digest):
        raise ServerJsonRefused(_("%s.fileSha256: this is no SHA-256 digest.") % at)
    version = _read_text(body, "version", at, most=255)
    if version == "latest" or _range(version):
        raise ServerJsonRefused(_("%s.version: this is not one version.") % at)
    transport = body.get("transport")
    if not isinstance(transport, dict):
        raise ServerJsonRefused(_("%s.transport: this is no object.") % at)
    return Package(
        kind=_read_text(body, "registryType", at, least=1, most=40),
        identifier=_read_text(body, "identifier", at, least=1, most=LONGEST),
        version=version,
        transport=_read_text(transport, "type", f"{at}.transport", least=1, most=40),
        body=body,
    )


def _list_objects(body: Json, name: str, most: int, at: str = "") -> list[tuple[Json, str]]:
    """Objects of a list with where each stands."""
    found, where = body.get(name) or [], f"{at}.{name}" if at else name
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise ServerJsonRefused(_("%s: this is no list of objects.") % where)
    if len(found) > most:
        raise ServerJsonRefused(_("%(at)s: at most %(most)d.") % {"at": where, "most": most})
    return [(one, f"{where}[{number}]") for number, one in enumerate(found)]


def _read_text(body: Json, name: str, at: str = "", *, least: int = 0, most: int) -> str:
    found, where = body.get(name, ""), f"{at}.{name}" if at else name
    if found is None:
        found = ""
    if not isinstance(found, str) or not least <= len(found) <= most:
        said = _("%(at)s: a text of %(least)d to %(most)d characters is expected.")
        raise ServerJsonRefused(said % {"at": where, "least": least, "most": most})
    if "\0" in found:
        raise ServerJsonRefused(_("%s: a text may not hold NUL.") % where)
    return found
