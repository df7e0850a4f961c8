"""A rolling restart: each process is followed by a new one, and nobody who calls notices."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg

from config.fingerprint import is_prepared
from config.supervisor import Supervisor

RENEW = signal.SIGUSR1
# Those that calls come in by first, those that carry them out next.
IN_TURN = ("agents", "web", "worker", "beat", "seal")
NOTE = "restart.json"


def role_of(name: str) -> str:
    """`agents` of `agents-2`, which is one of several."""
    return name.partition("-")[0]


def read(data: Path) -> dict[str, Any]:
    """How often it was done here, and what was wrong with the last time."""
    with suppress(FileNotFoundError):
        return dict(json.loads((data / NOTE).read_text()))
    return {"times": 0, "failed": ""}


class RollingRestart:
    def __init__(self, supervisor: Supervisor, data: Path, env: Mapping[str, str]) -> None:
        self._supervisor, self._data, self._env = supervisor, data, env
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="renewal")

    async def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        say = self._supervisor.output.say
        say("up", "restarting one process after the other …")
        failed = await self._renew()
        say("up", failed or "every process was restarted")
        note = {"times": read(self._data)["times"] + 1, "failed": failed}
        draft = self._data / f"{NOTE}.draft"
        draft.write_text(json.dumps(note))
        draft.rename(self._data / NOTE)

    def _in_turn(self) -> list[str]:
        names = [
            child.name for child in self._supervisor.children if role_of(child.name) in IN_TURN
        ]
        return sorted(names, key=lambda name: (IN_TURN.index(role_of(name)), name))

    async def _renew(self) -> str:
        """Restarts one process; returns the error, "" if none."""
        try:
            prepared = await asyncio.to_thread(is_prepared, self._env["DATABASE_URL"])
        except psycopg.OperationalError as error:
            return f"The database does not answer: {error}"
        if not prepared:
            return "This release has other migrations: stop, and start again."
        for name in self._in_turn():
            if not await self._supervisor.replace(name):
                return f"The new {name} did not get ready, and the old one goes on."
        return ""
