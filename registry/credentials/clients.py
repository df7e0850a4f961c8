"""This installation as a client of a server's authorization server.

Sources: MCP 2026-07-28, basic/authorization, "Client Registration"; RFC 7591;
draft-ietf-oauth-client-id-metadata-document.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

import orjson
from django.conf import settings
from django.db import transaction

from accounts.actors import By, acting
from audit.services import record
from core.english import gettext as _
from core.text import is_storable
from registry import secrets
from registry.credentials import authorization_server, credential_store, vault
from registry.credentials.authorization_server import (
    CHANGED,
    AuthorizationServer,
    SignInFailed,
    ask,
    read_object,
)
from registry.credentials.locks import REGISTRATION, alone
from registry.models import Server, ServerClient, ServerCredential

CALLBACK = "/connections/callback/%d/"
DOCUMENT = "/connections/client/%d.json"
_NAME = "Countersign"
_FOUND_OUT = (
    *("issuer", "resource", "metadata", "named_scopes"),
    *("client_id", "sealed_secret", "registration"),
)


def redirect_uri(server_id: int) -> str:
    """Each server's own: of an answer at the address of another one, the code goes nowhere.

    Source: RFC 9700, 4.4.2.2, for authorization servers that do not name themselves (RFC 9207).
    """
    return f"{settings.PUBLIC_URL}{CALLBACK % server_id}"


def client_document(server_id: int) -> dict[str, Any]:
    """The document whose URL is our client id, where a server takes such."""
    client_id = f"{settings.PUBLIC_URL}{DOCUMENT % server_id}"
    return {"client_id": client_id, **_about_us(server_id, "none")}


@transaction.atomic
def set_sign_in(
    server: Server,
    mode: str,
    *,
    by: By,
    header: str = "",
    client_id: str = "",
    client_secret: str = "",
    scopes: str = "",
    if_changed: bool = False,
) -> bool:
    """Sets whose credential calls of the server carry, and how it is got. Every credential that
    there was is deleted: it may have been of another client. Raises SignInFailed and
    SecretRefused.

    `if_changed`: for programs that repeat their setting. Where nothing differs, deletes nothing and
    returns False; a given secret always differs.
    """
    asked = _settings(mode, header, client_id, authorization_server.scopes_in(scopes))
    if if_changed and not client_secret and asked == _settings_of(server):
        return False
    _check(server, mode, header=header)
    wanted = Server.SignIn(mode)
    Server.objects.select_for_update().get(pk=server.pk)
    credential_store.remove(
        ServerCredential.objects.filter(server=server), by=by, reason=_("Set again.")
    )
    ServerClient.objects.filter(server=server).delete()
    if mode:
        client = ServerClient.objects.create(
            server=server,
            header=header if wanted.takes_keys else "",
            client_id="" if wanted.takes_keys else client_id,
            registration=""
            if wanted.takes_keys or not client_id
            else ServerClient.Registration.GIVEN,
            scopes=authorization_server.scopes_in(scopes),
        )
        vault.seal_secret(client, client_secret if client.client_id else "")
        client.save(update_fields=["sealed_secret"])
    server.sign_in = mode
    if mode:
        server.sealed_credential = None
    server.save(update_fields=["sign_in", "sealed_credential"])
    record("server.sign_in_set", actor=acting(by), server=server.slug, sign_in=mode or "none")
    return True


def _settings(mode: str, header: str, client_id: str, scopes: list[str]) -> tuple[object, ...]:
    if not mode:
        return ("",)
    takes_keys = mode.startswith("key-")
    return (mode, header if takes_keys else "", "" if takes_keys else client_id, scopes)


def _settings_of(server: Server) -> tuple[object, ...]:
    client = ServerClient.objects.filter(server=server).first() or ServerClient(server=server)
    given = client.registration == ServerClient.Registration.GIVEN
    return _settings(
        server.sign_in, client.header, client.client_id if given else "", client.scopes
    )


def client_of(server: Server) -> ServerClient:
    """Raises SignInFailed where an operator took the sign-in away at this moment."""
    found = ServerClient.objects.select_related("server").filter(server=server).first()
    if found is None:
        raise SignInFailed(CHANGED)
    return found


def prepared(server: Server) -> ServerClient:
    """The client with what its authorization server says now, registered there if it was not.

    Asks over the network: outside of transactions. Raises SignInFailed.
    """
    found = authorization_server.discover(server.url)
    # Two who begin at once are of one registration.
    with alone(REGISTRATION, server.pk):
        return _prepared(server, found)


def _prepared(server: Server, found: AuthorizationServer) -> ServerClient:
    client = client_of(server)
    is_other = bool(client.issuer) and client.issuer != found.issuer
    if is_other and client.registration == ServerClient.Registration.GIVEN:
        # The secret is for the one that the operator meant.
        raise SignInFailed(
            _("The server names another authorization server now: %s. Set its sign-in again.")
            % found.issuer[:200]
        )
    if is_other:
        client.client_id, client.sealed_secret, client.registration = "", None, ""
    client.issuer, client.resource = found.issuer, found.resource
    client.metadata, client.named_scopes = dict(found.metadata), list(found.scopes)
    if not client.client_id:
        _register(client)
    # Not saved: that would bring back what an operator deleted while others were asked.
    found_out = {name: getattr(client, name) for name in _FOUND_OUT}
    if not ServerClient.objects.filter(pk=client.pk).update(**found_out):
        raise SignInFailed(CHANGED)
    return client


def _check(server: Server, mode: str, *, header: str) -> None:
    if mode not in Server.SignIn.values:
        raise SignInFailed(_("There is no such way to sign in."))
    if mode and not server.is_at_url:
        raise SignInFailed(_("Only servers at a URL can be signed in at."))
    if Server.SignIn(mode).takes_keys:
        secrets.check(server, headers={header: "key"}, credential="")


def _register(client: ServerClient) -> None:
    """Source: MCP, "Registration Approaches": by document first, then by itself."""
    metadata = client.metadata
    is_public = urlsplit(settings.PUBLIC_URL).scheme == "https"
    if metadata.get("client_id_metadata_document_supported") is True and is_public:
        client.client_id = str(client_document(client.server_id)["client_id"])
        client.registration = ServerClient.Registration.DOCUMENT
    elif metadata.get("registration_endpoint"):
        _register_by_itself(client, metadata["registration_endpoint"])
    else:
        raise SignInFailed(
            _("The authorization server registers no clients by itself: enter a client ID.")
        )


def _register_by_itself(client: ServerClient, url: str) -> None:
    methods = client.metadata.get("token_endpoint_auth_methods_supported") or [
        "client_secret_basic"
    ]
    known = ("none", "client_secret_basic", "client_secret_post")
    method = next((one for one in known if one in methods), "none")
    wanted = _about_us(client.server_id, method) | {"scope": " ".join(wanted_scopes(client))}
    body = orjson.dumps({name: value for name, value in wanted.items() if value})
    reply = ask(client.server.url, "POST", url, {"Content-Type": "application/json"}, body)
    if reply.status not in (200, 201):
        raise SignInFailed(
            _("The authorization server did not register Countersign (HTTP %d).") % reply.status
        )
    said = read_object(reply)
    client_id, secret = said.get("client_id"), said.get("client_secret") or ""
    is_id = isinstance(client_id, str) and 0 < len(client_id) <= 2000 and is_storable(client_id)
    if not (is_id and isinstance(secret, str)):
        raise SignInFailed(_("The authorization server gave no client ID."))
    client.client_id = str(client_id)
    client.registration = ServerClient.Registration.DYNAMIC
    vault.seal_secret(client, secret)


def wanted_scopes(client: ServerClient, more: list[str] | None = None) -> list[str]:
    """To be asked for. Where the authorization server knows it, also to be renewed without us."""
    known = client.metadata.get("scopes_supported") or []
    offline = ["offline_access"] if "offline_access" in known else []
    return list(dict.fromkeys([*client.named_scopes, *client.scopes, *(more or []), *offline]))


def _about_us(server_id: int, method: str) -> dict[str, Any]:
    return {
        "client_name": _NAME,
        "client_uri": settings.PUBLIC_URL,
        "redirect_uris": [redirect_uri(server_id)],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
        "application_type": "web",
    }
