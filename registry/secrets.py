"""Headers and credentials of servers: checked, sealed to their row, never shown again."""

from __future__ import annotations

import re
from collections.abc import Mapping

import orjson

from core import seal
from core.english import gettext as _
from core.errors import CountersignError
from registry.connections import PURPOSE, place
from registry.models import Server

_name = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}").fullmatch
_value = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,8000}[\x21-\x7e])?").fullmatch
_credential = re.compile(r"[\x21-\x7e]{1,8000}").fullmatch
# The client's own: whoever could set them could speak in its name.
_OURS = {
    "accept",
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "cookie",
    "expect",
    "forwarded",
    "host",
    "keep-alive",
    "last-event-id",
    "origin",
    "proxy-authorization",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
}


class SecretRefused(CountersignError):
    """The header or credential cannot be sent; never repeats its value."""


def put(server: Server, *, headers: Mapping[str, str], credential: str) -> None:
    """Seal both for the row as it is now: its key and connection version must be final."""
    check(server, headers=headers, credential=credential)
    server.sealed_headers = _sealed(server, "sealed_headers", dict(headers))
    named = {"credential": credential} if credential else {}
    server.sealed_credential = _sealed(server, "sealed_credential", named)


def check(server: Server, *, headers: Mapping[str, str], credential: str) -> None:
    if server.transport == Server.Transport.STDIO and (headers or credential):
        raise SecretRefused(
            _("A command gets its secrets from the host's catalogue of commands, as env.")
        )
    for name, value in headers.items():
        if not _name(name) or name.lower() in _OURS or name.lower().startswith("mcp-"):
            raise SecretRefused(_("“%s” is not a header that may be set.") % name[:100])
        if not _value(value):
            raise SecretRefused(_("The value of “%s” is not printable ASCII on one line.") % name)
    if credential and not _credential(credential):
        raise SecretRefused(_("The credential is not printable ASCII without spaces."))
    if credential and "authorization" in map(str.lower, headers):
        raise SecretRefused(_("Give either a credential or an Authorization header, not both."))


def _sealed(server: Server, name: str, value: dict[str, str]) -> bytes | None:
    if not value:
        return None
    return seal.seal(PURPOSE, orjson.dumps(value), place=place(server, name))
