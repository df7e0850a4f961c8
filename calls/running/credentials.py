"""Credentials that calls carry to servers that are signed in at: found and renewed for one event
loop, each once for all calls that want it at that moment."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Hashable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from channels.db import database_sync_to_async

from core import outage
from core.english import gettext as _
from core.errors import RecordUnavailable
from registry.credentials import credential_store
from registry.credentials.authorization_server import params_of
from registry.credentials.credential_store import CredentialMissing, OpenCredential
from registry.credentials.token_endpoint import TokenRejected
from registry.models import CredentialOwner
from registry.publishing.published_tools import ServerConnection

T = TypeVar("T")
# Of each server: one whose authorization server hangs leaves the threads of the others free.
RENEWALS_AT_ONCE = 4
RENEWED = _("The server wanted a newer access token (HTTP 401), and it was renewed.")


class CallCredentials:
    def __init__(self) -> None:
        self._asking: dict[Hashable, asyncio.Task[OpenCredential]] = {}
        self._renewing = defaultdict[int, ThreadPoolExecutor](
            partial(ThreadPoolExecutor, RENEWALS_AT_ONCE, "renewals")
        )

    async def wants_consent(self, connection: ServerConnection, owner: CredentialOwner) -> bool:
        """Whether somebody has to sign in first, or to allow more."""
        return await _in_thread(partial(credential_store.wants_consent, connection.signs_in, owner))

    async def facts(
        self, connection: ServerConnection, owner: CredentialOwner
    ) -> dict[str, Any] | None:
        """Which credential a call would carry, for its entry; None where there is none."""
        return await _in_thread(partial(credential_store.facts, connection.signs_in, owner))

    async def missing(
        self, connection: ServerConnection, owner: CredentialOwner
    ) -> CredentialMissing:
        """The error that names who has to sign in, and the page."""
        return await _in_thread(partial(credential_store.missing, connection.signs_in, owner))

    async def current(self, connection: ServerConnection, owner: CredentialOwner) -> OpenCredential:
        """Raises CountersignError: CredentialMissing where somebody has to sign in first."""
        find = partial(credential_store.find, connection.signs_in, owner)
        found = await self._once((connection.signs_in, owner), find)
        return await self._renew(found) if credential_store.is_due(found) else found

    async def renewed(self, used: OpenCredential, status: int, challenge: str) -> OpenCredential:
        """After a refusal: the credential to try once more with. Raises CountersignError, which
        says where to sign in anew."""
        said = params_of(challenge)
        if said.get("error") == "insufficient_scope" and (scope := said.get("scope")):
            await _in_thread(partial(credential_store.want_scopes, used.row, scope))
            raise credential_store.lacks_scopes(used.row, scope)
        if status != 401 or not said or not used.can_be_renewed:
            raise await self.refused(used)
        return await self._renew(used)

    async def refused(self, used: OpenCredential) -> CredentialMissing:
        row = used.row
        return await _in_thread(partial(credential_store.missing, row.server_id, row.owner))

    async def _renew(self, used: OpenCredential) -> OpenCredential:
        """Raises CountersignError, which says where to sign in anew."""
        row = used.row
        renew = partial(credential_store.renew, row.pk, row.generation)
        threads = self._renewing[row.server_id]
        try:
            return await self._once((row.pk, row.generation, "renew"), renew, threads)
        except TokenRejected as error:
            raise await self.refused(used) from error

    async def _once(
        self,
        key: Hashable,
        work: Callable[[], OpenCredential],
        threads: ThreadPoolExecutor | None = None,
    ) -> OpenCredential:
        """Shares one answer among all who ask for it at that moment."""
        task = self._asking.get(key)
        if task is None:
            task = self._asking[key] = asyncio.create_task(_in_thread(work, threads))
            task.add_done_callback(lambda _task: self._asking.pop(key, None))
        # Whoever goes away leaves it to the others.
        return await asyncio.shield(task)


async def _in_thread(work: Callable[[], T], threads: ThreadPoolExecutor | None = None) -> T:
    """`threads`: None for those of the loop. Raises RecordUnavailable without the database: nothing
    was sent so far."""
    run: Callable[[], Awaitable[T]] = database_sync_to_async(
        work, thread_sensitive=False, executor=threads
    )
    try:
        return await run()
    except outage.AWAY as error:
        raise RecordUnavailable(_("The record cannot be read right now.")) from error
