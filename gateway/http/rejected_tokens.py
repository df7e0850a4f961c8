"""Entries of tokens that open nothing (any more), or not without proof of a key; few of each."""

from __future__ import annotations

import asyncio
import time
from hashlib import sha256
from typing import Any

from django.db import connection

from accounts import refusals, rejected_tokens
from accounts.agent_sign_in import access_tokens
from accounts.attempts import WINDOW
from accounts.rejected_tokens import LOOK_UPS
from accounts.tokens import TokenBook
from core.english import gettext as _
from gateway.http.request_checks import token_of
from gateway.http.signed_tokens import address_of
from gateway.protocol.headers import Headers

# A token that was noted is not noted again by this process for a while.
NOTED_MAX = 1_000
NOTED_S = WINDOW.total_seconds()


class RejectedTokens:
    def __init__(self) -> None:
        self._noted: dict[bytes, float] = {}

    async def note(
        self, scope: Any, headers: Headers, token: str, book: TokenBook, resource: str
    ) -> None:
        """Whatever was shown. An address has one entry of each kind in a while."""
        address = address_of(scope, headers)
        if not self._is_first(f"{token} {resource}") or LOOK_UPS.wait_s(address):
            return
        if access_tokens.has_form(token):
            await asyncio.to_thread(_write, address, _why(token, book, resource), token, resource)
        else:
            await asyncio.to_thread(_write_static, address, token, resource)

    async def note_proof(self, scope: Any, headers: Headers, why: str, resource: str) -> None:
        """A token that is known, without the proof that it needs. Each reason once for a token."""
        token = token_of(headers)
        if self._is_first(f"{token} {resource} {why}"):
            await asyncio.to_thread(_write, address_of(scope, headers), why, token, resource)

    def _is_first(self, what: str) -> bool:
        key = sha256(what.encode()).digest()
        if self._noted.get(key, 0.0) > time.monotonic():
            return False
        if len(self._noted) >= NOTED_MAX:
            self._noted.clear()
        self._noted[key] = time.monotonic() + NOTED_S
        return True


def _why(token: str, book: TokenBook, resource: str) -> str:
    read = access_tokens.read(token)
    if read is None:
        return _("The access token has a signature that is not ours.")
    if read.expires_at <= time.time():
        return _("The access token has expired.")
    bearer = book.bearer(token)
    if bearer is None or bearer.signed_in is None:
        return _("The sign-in of the access token was revoked, has expired, or is disabled.")
    if bearer.signed_in.resource != resource:
        return _("The access token is for another address.")
    return _("Agents are no longer signed in at this address, or this agent may not use it.")


def _write(address: str, why: str, token: str, resource: str) -> None:
    read = access_tokens.read(token)
    try:
        grant = read.grant if read else ""
        refusals.access_token(address, why, resource=resource, token=grant)
    finally:
        connection.close()


def _write_static(address: str, token: str, resource: str) -> None:
    try:
        rejected_tokens.note(token, address, resource)
    finally:
        connection.close()
