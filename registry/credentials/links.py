"""Addresses at which one person connects their account at a server; nobody else may open them."""

from __future__ import annotations

from django.conf import settings

from core import seal
from registry.models import CredentialOwner, Server

_PURPOSE = "connection link"
_SIZE = 16


def page_of(server: Server, owner: CredentialOwner) -> str:
    """For an operator the page with the server's settings; no credential of theirs is meant."""
    if owner.kind != "person" or owner.pk is None:
        return f"{settings.PUBLIC_URL}/servers/{server.slug}/sign-in/"
    mark = seal.to_text(_mark(server, owner.pk))
    return f"{settings.PUBLIC_URL}/connections/{server.slug}/{owner.pk}/{mark}/"


def is_mark(server: Server, person_id: int, mark: str) -> bool:
    try:
        shown = seal.from_text(mark)
    except ValueError:
        return False
    return len(shown) == _SIZE and seal.is_signature(_PURPOSE, _message(server, person_id), shown)


def _mark(server: Server, person_id: int) -> bytes:
    return seal.sign(_PURPOSE, _message(server, person_id))[:_SIZE]


def _message(server: Server, person_id: int) -> bytes:
    return f"{server.pk}|{person_id}".encode()
