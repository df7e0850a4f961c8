"""Which tokens were shown lately, told to the record now and then and never waited for."""

from __future__ import annotations

import asyncio
import logging

from django.db import DatabaseError, connection

from accounts.services import note_used

log = logging.getLogger(__name__)

EVERY_S = 30.0


class TokenUsage:
    def __init__(self) -> None:
        # With the address that each came from last.
        self.tokens: dict[int, str] = {}
        self._task: asyncio.Task[None] | None = None

    def note(self, token_id: int, address: str) -> None:
        self.tokens[token_id] = address
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._tell(), name="tokens used")

    async def _tell(self) -> None:
        await asyncio.sleep(EVERY_S)
        tokens, self.tokens, self._task = self.tokens, {}, None
        await asyncio.to_thread(_write, tokens)


def _write(tokens: dict[int, str]) -> None:
    try:
        note_used(tokens)
    except DatabaseError as error:
        log.warning("tokens used: %s", str(error).strip())
    finally:
        connection.close()
