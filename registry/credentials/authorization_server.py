"""Finds the authorization server of an MCP server: from its 401 to the endpoints.

Sources: MCP 2026-07-28, basic/authorization; RFC 9728, RFC 8414, OpenID Connect Discovery 1.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

import orjson
from django.conf import settings

from core.database_pool import release_connection
from core.english import gettext as _
from core.errors import CountersignError
from core.guarded_http import PlainReply, RequestFailed, check_url, fetch, is_wholly_inside
from core.outbound import AddressRefused
from core.text import is_storable

# Bounded: a server may send thousands of letters, and a call waits for this.
_PARAM = re.compile(r'([a-zA-Z_]{1,40})[ \t]{0,5}=[ \t]{0,5}(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,200}").fullmatch
SCOPES_MAX = 50
# An address that is stored is so long at most.
URL_MAX = 2000
_PROBE = orjson.dumps(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "countersign", "version": "1"},
        },
    }
)
# Some let everybody greet them, and want a token for what comes after that.
_LIST = orjson.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}})
_MCP = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
# Those that a browser or a token is sent to.
_ENDPOINTS = ("authorization_endpoint", "token_endpoint", "registration_endpoint")
ENDPOINTS = (*_ENDPOINTS, "revocation_endpoint")
_LISTS = ("scopes_supported", "token_endpoint_auth_methods_supported")
_FLAGS = (
    "client_id_metadata_document_supported",
    "authorization_response_iss_parameter_supported",
)


CHANGED = _("The server's sign-in was changed in the meantime. Begin again.")


class SignInFailed(CountersignError):
    """The server's sign-in cannot be used; says why, and repeats no secret."""


@dataclass(frozen=True, slots=True)
class AuthorizationServer:
    """Where tokens for one resource come from. `metadata`: as published, as far as it is used."""

    resource: str
    metadata: Mapping[str, Any]
    scopes: tuple[str, ...] = ()

    @property
    def issuer(self) -> str:
        return str(self.metadata["issuer"])


def discover(url: str) -> AuthorizationServer:
    """Asks the server without a credential, and follows what it says. Raises SignInFailed."""
    status, challenged = _challenge(url)
    found = _resource(url, challenged)
    if status not in (401, 403) and not found:
        said = _("The server did not ask to sign in: it answered with HTTP %d.")
        raise SignInFailed(said % status)
    issuers = _texts(found.get("authorization_servers"))
    scopes = scopes_in(challenged.get("scope", "")) or scopes_in(
        " ".join(_texts(found.get("scopes_supported")))
    )
    # Before RFC 9728, servers were their own authorization servers (MCP 2025-03-26).
    metadata = _metadata(url, issuers[0]) if issuers else _own_metadata(url)
    return AuthorizationServer(
        resource=str(found.get("resource") or url),
        metadata=metadata,
        scopes=tuple(scopes[:SCOPES_MAX]),
    )


def networks_for(url: str) -> Sequence[str]:
    """The networks that documents of a server may point to: only one that is itself in a named
    network, by all of its addresses, may lead there. A public one cannot make us ask inside."""
    named: Sequence[str] = settings.UPSTREAM_NETWORKS
    return named if is_wholly_inside(url) else ()


def params_of(challenge: str) -> dict[str, str]:
    """The parameters of a WWW-Authenticate header with the scheme Bearer (RFC 6750, 3)."""
    scheme, _space, rest = challenge.strip().partition(" ")
    if scheme.lower() != "bearer":
        return {}
    return {
        name.lower(): re.sub(r"\\(.)", r"\1", quoted) or plain
        for name, quoted, plain in _PARAM.findall(rest[:8000])
    }


def scopes_in(text: str) -> list[str]:
    return [scope for scope in dict.fromkeys(text.split()) if _SCOPE(scope)][:SCOPES_MAX]


def origin_of(url: str) -> str:
    """Raises SignInFailed."""
    parts = _split(url)
    return f"{parts.scheme}://{parts.netloc}"


def _split(url: str) -> SplitResult:
    """Raises SignInFailed for what is no address, or none that can be stored."""
    try:
        if len(url) > URL_MAX or not is_storable(url):
            raise ValueError(url)
        return urlsplit(url)
    except ValueError as error:
        raise SignInFailed(_("“%s” is not a URL.") % url[:200].replace("\0", "�")) from error


def ask(
    server_url: str, method: str, url: str, headers: Mapping[str, str], body: bytes = b""
) -> PlainReply:
    """A request on behalf of the server at `server_url`. Raises SignInFailed."""
    release_connection()
    try:
        return fetch(method, url, headers, body, networks=networks_for(server_url))
    except RequestFailed as error:
        raise SignInFailed(str(error)) from error


def read_object(reply: PlainReply) -> dict[str, Any]:
    """Raises SignInFailed."""
    try:
        read = orjson.loads(reply.body)
    except orjson.JSONDecodeError:
        read = None
    if not isinstance(read, dict):
        raise SignInFailed(_("The authorization server's answer is not what was asked for."))
    return read


def _challenge(url: str) -> tuple[int, dict[str, str]]:
    reply = ask(url, "POST", url, _MCP, _PROBE)
    if reply.status not in (401, 403):
        reply = ask(url, "POST", url, _MCP, _LIST)
    return reply.status, params_of(reply.headers.get(b"www-authenticate"))


def _resource(url: str, challenged: Mapping[str, str]) -> dict[str, Any]:
    """The document of the resource; empty where there is none."""
    named = challenged.get("resource_metadata")
    for place in [named] if named else list(_resource_places(url)):
        reply = ask(url, "GET", place, {})
        if reply.status == 200:
            return _of_server(url, read_object(reply))
    if named:
        raise SignInFailed(_("The server names a document about its sign-in that is not there."))
    return {}


def _resource_places(url: str) -> Iterator[str]:
    origin, path = origin_of(url), urlsplit(url).path.rstrip("/")
    if path:
        yield f"{origin}/.well-known/oauth-protected-resource{path}"
    yield f"{origin}/.well-known/oauth-protected-resource"


def _of_server(url: str, document: dict[str, Any]) -> dict[str, Any]:
    """Source: RFC 9728, 3.3: tokens of another resource would be sent here, and the reverse."""
    resource = document.get("resource")
    if not isinstance(resource, str) or origin_of(resource) != origin_of(url):
        raise SignInFailed(_("The document about the server's sign-in is of another server."))
    below, path = urlsplit(resource).path.rstrip("/"), urlsplit(url).path
    if below and path.rstrip("/") != below and not path.startswith(f"{below}/"):
        raise SignInFailed(_("The document about the server's sign-in is of another server."))
    return document


def _metadata(url: str, issuer: str) -> dict[str, Any]:
    found = _published(url, issuer)
    if found is None:
        raise SignInFailed(_("The authorization server %s publishes no metadata.") % issuer[:200])
    return found


def _own_metadata(url: str) -> dict[str, Any]:
    """Source: MCP 2025-03-26, basic/authorization, "Fallbacks for Servers without Metadata
    Discovery": its clients always use PKCE."""
    issuer = origin_of(url)
    usual = {"authorization": "authorize", "token": "token", "registration": "register"}
    endpoints = {f"{name}_endpoint": f"{issuer}/{path}" for name, path in usual.items()}
    return _published(url, issuer) or {"issuer": issuer, **endpoints}


def _published(url: str, issuer: str) -> dict[str, Any] | None:
    """Raises SignInFailed where there is a document that cannot be used."""
    for place in _metadata_places(issuer):
        reply = ask(url, "GET", place, {})
        if reply.status == 200:
            return _checked(url, issuer, read_object(reply))
    return None


def _metadata_places(issuer: str) -> Iterator[str]:
    """Source: MCP 2026-07-28, basic/authorization, "Authorization Server Metadata Discovery"."""
    origin, path = origin_of(issuer), urlsplit(issuer).path.rstrip("/")
    yield f"{origin}/.well-known/oauth-authorization-server{path}"
    yield f"{origin}/.well-known/openid-configuration{path}"
    if path:
        yield f"{origin}{path}/.well-known/openid-configuration"


def _checked(url: str, issuer: str, document: dict[str, Any]) -> dict[str, Any]:
    """Source: RFC 8414, 3.3; MCP, "Authorization Code Protection": without S256 no sign-in."""
    # Servers that know their issuer as a URL write a slash at its end, which it may not have.
    own = document.get("issuer")
    if not isinstance(own, str) or own.rstrip("/") != issuer.rstrip("/"):
        raise SignInFailed(_("The authorization server's metadata is of another issuer."))
    _split(own)
    if "S256" not in _texts(document.get("code_challenge_methods_supported")):
        raise SignInFailed(_("The authorization server offers no PKCE with S256."))
    for name in ("authorization_endpoint", "token_endpoint"):
        if not isinstance(document.get(name), str):
            raise SignInFailed(_("The authorization server's metadata has no “%s”.") % name)
    # Many servers write null for what they do not have.
    said = {name: value for name, value in document.items() if value is not None}
    networks = networks_for(url)
    for name in ENDPOINTS:
        if name in said:
            _check_endpoint(networks, name, said[name])
    return {
        "issuer": own,
        **{name: said[name] for name in ENDPOINTS if name in said},
        **{name: list(filter(is_storable, _texts(said[name]))) for name in _LISTS if name in said},
        **{name: said[name] is True for name in _FLAGS if name in said},
    }


def _check_endpoint(networks: Sequence[str], name: str, url: Any) -> None:
    try:
        check_url(str(url), networks)
    except AddressRefused as error:
        raise SignInFailed(
            _("The authorization server's metadata names a “%(name)s” that cannot be used: %(why)s")
            % {"name": name, "why": str(error)}
        ) from error


def _texts(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []
