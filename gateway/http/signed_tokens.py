"""Access tokens of identity providers at the agents' endpoint, checked in threads, few at a time.

What is found is kept beside the static tokens (request_checks.TokenCache): the second request with
a token costs what it costs with one of ours.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import sha256
from typing import Any

import jwt
from django.db import connection

from accounts import refusals
from accounts.oidc.access_tokens import ScopeMissing, agent_providers, authenticate, issuer_of
from accounts.oidc.metadata import ProviderAway, ProviderFailed
from accounts.tokens import Bearer, TokenBook
from core.client_address import address_from
from core.english import gettext as _
from core.errors import RecordUnavailable
from gateway.http.request_checks import token_of
from gateway.http.resource_metadata import challenge
from gateway.process.runtime import Snapshot
from gateway.protocol.errors import CLOSE, RpcError, unauthorized, unavailable
from gateway.protocol.headers import Headers

# Of each provider: one that hangs leaves the threads of the others free.
AT_ONCE, WAITING_MAX = 4, 60
_AWAY = "The identity provider cannot be asked right now. Try again soon."
# A refused token is not checked anew for so long, so that whoever repeats it costs little.
REFUSED_S, REFUSED_MAX = 5.0, 1_000


class _Room:
    """Threads for the tokens of one provider, and how many tokens are inside."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="signed-tokens")
        self._inside = 0

    async def run(self, check: Callable[[], Bearer | RpcError]) -> Bearer | RpcError:
        """Raises RpcError where too many wait already."""
        if self._inside >= AT_ONCE + WAITING_MAX:
            raise unavailable(RecordUnavailable(_AWAY))
        self._inside += 1
        work = self._threads.submit(check)
        # Not by who waits: they may leave before their thread does.
        loop = asyncio.get_running_loop()
        work.add_done_callback(lambda _: loop.call_soon_threadsafe(self._leave))
        return await asyncio.wrap_future(work)

    def _leave(self) -> None:
        self._inside -= 1


class SignedTokens:
    def __init__(self) -> None:
        # By issuer; what is of none that is taken shares one.
        self._rooms: dict[str, _Room] = defaultdict(_Room)
        self._refused: dict[bytes, tuple[float, RpcError]] = {}

    async def bearer(
        self, scope: Any, headers: Headers, snapshot: Snapshot, resource: str
    ) -> Bearer:
        """Raises RpcError where the token makes nobody an agent at this address."""
        # Of this configuration and address: what was refused may be good after a change.
        token = token_of(headers)
        key = sha256(f"{snapshot.generation} {resource} {token}".encode()).digest()
        until, refusal = self._refused.get(key, (0.0, unauthorized()))
        if until > time.monotonic():
            raise _anew(refusal)
        address = address_of(scope, headers)
        check = partial(_checked, token, snapshot.tokens, resource, scope["path"], address)
        answer = await self._rooms[issuer_of(token)].run(check)
        if isinstance(answer, Bearer):
            return answer
        if answer.status == 503:
            # It is no answer about the token.
            raise answer
        if len(self._refused) >= REFUSED_MAX:
            self._refused.clear()
        self._refused[key] = (time.monotonic() + REFUSED_S, answer)
        raise _anew(answer)


def _anew(refusal: RpcError) -> RpcError:
    """One that is raised keeps the frames that it passed."""
    return RpcError(refusal.status, str(refusal), headers=refusal.headers)


def _checked(
    token: str, book: TokenBook, resource: str, path: str, address: str
) -> Bearer | RpcError:
    try:
        if not agent_providers():
            raise ProviderFailed(_("No identity provider gives agents tokens here."))
        return authenticate(token, book, resource=resource)
    except ProviderAway:
        return unavailable(RecordUnavailable(_AWAY))
    except ProviderFailed as error:
        refusals.access_token(address, str(error), resource=resource, **_named(token))
        return _refusal(error, path)
    finally:
        connection.close()


def _refusal(error: ProviderFailed, path: str) -> RpcError:
    """One answer for everything but a missing scope, which a client can ask for."""
    if not isinstance(error, ScopeMissing):
        return unauthorized()
    wanted = challenge(path, error="insufficient_scope", scope=error.scope)
    return RpcError(403, str(error), headers=(wanted, CLOSE))


def _named(token: str) -> dict[str, str]:
    """Whose the token says it is; never the token."""
    try:
        claims = jwt.decode(token, options={"verify_signature": False})
    except (jwt.PyJWTError, ValueError, TypeError, OverflowError, RecursionError):
        return {}
    told = {"issuer": claims.get("iss"), "client_id": claims.get("client_id", claims.get("azp"))}
    return {
        name: value.encode(errors="replace").decode().replace("\0", "�")
        for name, value in told.items()
        if isinstance(value, str)
    }


def address_of(scope: Any, headers: Headers) -> str:
    peer = (scope.get("client") or ("",))[0]
    forwarded = headers.text(b"x-forwarded-for") or "", headers.text(b"forwarded") or ""
    return address_from(str(peer), *forwarded)
