"""Puts values into a remote's URL and headers, so that none of them leads elsewhere.

A variable in the host is one label of it. One in the path or query is encoded. A URL that begins
with a variable has whatever address the person enters there.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import quote

from core.english import gettext as _
from registry.server_json.document import Remote, ServerJsonRefused, fill, split_url, variables_of

_label = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?").fullmatch
_start = re.compile(r"\{([a-zA-Z_]\w*)\}", re.ASCII).match
_port = re.compile(r"[0-9]{1,5}").fullmatch
_parts = re.compile(r"(https?://)([^/?#]*)(.*)", re.DOTALL).fullmatch


class FilledRemote(NamedTuple):
    url: str
    headers: dict[str, str]


def fill_remote(remote: Remote, given: Mapping[str, str]) -> FilledRemote:
    """Raises ServerJsonRefused."""
    values = {field.name: given.get(field.name, "").strip() for field in remote.fields}
    if unknown := sorted(given.keys() - values.keys()):
        raise ServerJsonRefused(_("The remote asks for no “%s”.") % unknown[0][:200])
    for field in remote.fields:
        if field.is_required and not values[field.name]:
            raise ServerJsonRefused(_("“%s” needs a value.") % field.name)
        if values[field.name] and field.choices and values[field.name] not in field.choices:
            raise ServerJsonRefused(_("“%s” is one of the choices.") % field.name)
    headers = {
        header.name: fill(header.template, values) if header.template else values[header.name]
        for header in remote.headers
        if _is_given(header.template, values)
    }
    return FilledRemote(
        _url(remote.url, values), {name: text for name, text in headers.items() if text}
    )


def _is_given(template: str, values: Mapping[str, str]) -> bool:
    """A header whose variables are all empty is not sent."""
    names = variables_of(template)
    return not names or any(values[name] for name in names)


def _url(template: str, values: dict[str, str]) -> str:
    if first := _start(template):
        template = _base(first[1], values) + template[first.end() :]
    parts = _parts(template)
    if parts is None:
        raise ServerJsonRefused(_("The URL is no http or https URL."))
    scheme, authority, rest = parts.groups()
    for name in variables_of(authority):
        if not (_label(values[name]) or _port(values[name])):
            said = _("“%s” stands in the host: use letters, digits and hyphens.")
            raise ServerJsonRefused(said % name)
    encoded = {name: quote(value, safe="") for name, value in values.items()}
    url = scheme + fill(authority, values) + fill(rest, encoded)
    split = split_url(url)
    if "@" in split.netloc or not split.hostname or split.fragment:
        raise ServerJsonRefused(_("The URL may have neither a user nor a fragment."))
    if any(segment in (".", "..") for segment in split.path.split("/")):
        raise ServerJsonRefused(_("The path of the URL may not go up."))
    return url


def _base(name: str, values: Mapping[str, str]) -> str:
    base = values[name].rstrip("/")
    split = split_url(base)
    if split.scheme not in ("http", "https") or not split.hostname or split.query:
        raise ServerJsonRefused(_("“%s” must be an http or https URL.") % name)
    return base
