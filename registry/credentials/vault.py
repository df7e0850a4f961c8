"""Sealed secrets of server clients and credentials: each opens in its own row alone."""

from __future__ import annotations

from typing import Any

import orjson

from core import seal
from core.english import gettext as _
from core.errors import CountersignError
from core.sealed_fields import SealedField
from registry.connections import PURPOSE
from registry.models import ServerClient, ServerCredential


class NotOpened(CountersignError):
    """The sealed value is of another row, or of another installation."""


def seal_secret(client: ServerClient, secret: str) -> None:
    """For the row as it is now: its key must be final."""
    place = _client_place(client)
    client.sealed_secret = seal.seal(PURPOSE, secret.encode(), place=place) if secret else None


def client_secret(client: ServerClient) -> str:
    if client.sealed_secret is None:
        return ""
    return _open(client.sealed_secret, _client_place(client)).decode()


def seal_values(credential: ServerCredential, values: dict[str, str]) -> None:
    """For the row as it is now: its key, owner, issuer and generation must be final."""
    sealed = seal.seal(PURPOSE, orjson.dumps(values), place=_credential_place(credential))
    credential.sealed = sealed


def open_values(credential: ServerCredential) -> dict[str, str]:
    """Raises NotOpened."""
    if credential.sealed is None:
        raise NotOpened(_("The credential is gone."))
    values: dict[str, str] = orjson.loads(_open(credential.sealed, _credential_place(credential)))
    return values


def _open(sealed: Any, place: str) -> bytes:
    try:
        return seal.unseal(PURPOSE, bytes(sealed), place=place)
    except seal.Unsealable as error:
        raise NotOpened(_("The credential cannot be opened here: sign in again.")) from error


def _client_place(client: ServerClient) -> str:
    return f"registry_serverclient|{client.pk}|{client.server_id}|{client.client_id}"


def _credential_place(one: ServerCredential) -> str:
    bound = (one.pk, one.server_id, one.nameless_owner.mark, one.issuer, one.generation)
    return "registry_servercredential|" + "|".join(map(str, bound))


SEALED = (
    SealedField(ServerClient, "sealed_secret", PURPOSE, _client_place),
    SealedField(ServerCredential, "sealed", PURPOSE, _credential_place),
)
