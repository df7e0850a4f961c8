"""An outcome that waits to be written when nobody waits for it any more is written all the same."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import psycopg
import pytest
from asgiref.sync import sync_to_async
from django.conf import settings

from accounts.models import Agent, User
from audit.services import SYSTEM
from calls.models import Call
from calls.record.states import Executed, State
from calls.record.transitions import Outcome, ending
from calls.running.execution import ExecutionRequest, Unwritten
from calls.running.listeners import NO_LISTENER, CallListener
from calls.running.outcome_writer import OutcomeWriter, PendingOutcome
from core.journal import GroupCommit
from gateway.process.runtime import Runtime
from gateway.submit.run import run_until_reply
from tests.calls.test_states import opened, opening
from tests.gateway.conftest import until

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass
class Flight:
    end: PendingOutcome | None = None
    is_patient: bool = True


@pytest.fixture
async def journal() -> AsyncIterator[GroupCommit]:
    made = GroupCommit(settings.DATABASE_URL)
    yield made
    await made.aclose()


@sync_to_async
def running(scout: Agent) -> UUID:
    return opened(opening(scout, State.RUNNING, lease_owner="us:1"))


@contextmanager
def locked(call_id: UUID) -> Iterator[None]:
    """Nothing of this call is written meanwhile."""
    with psycopg.connect(settings.DATABASE_URL) as link:
        link.execute("SELECT 1 FROM calls_call WHERE id = %s FOR UPDATE", [call_id])
        yield
        link.rollback()


def line(call_id: UUID) -> dict[str, Any]:
    outcome = Outcome(State.SUCCEEDED, "", Executed.YES, kind="result", result=b'{"content":[]}')
    return ending(call_id, 1, outcome, SYSTEM)


async def test_it_outlives_who_waited_for_it(
    journal: GroupCommit, scout: Agent, tmp_path: Any, settings: Any
) -> None:
    settings.DATA_DIR = tmp_path
    writer = OutcomeWriter(journal, {}, "us")
    before, call_id = await running(scout), await running(scout)
    with locked(before):
        first = asyncio.create_task(writer.write(Flight(), line(before)))
        await until(sync_to_async(lambda: str(before) in journal._away))
        # Behind the one that hangs, and in no transaction yet.
        cut_off = asyncio.create_task(writer.write(Flight(), line(call_id)))
        for _turn in range(10):
            await asyncio.sleep(0)

        cut_off.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await cut_off
    await first
    await writer.aclose()

    assert (await Call.objects.aget(pk=call_id)).state == State.SUCCEEDED
    # Kept on disk meanwhile, and no longer.
    assert not list((tmp_path / "spool").glob("*/*.reply"))


async def test_a_call_that_nobody_waits_for_any_more_is_written_down(bob: User) -> None:
    answered, finished = asyncio.Event(), asyncio.Event()

    async def finish() -> None:
        finished.set()

    class Engine:
        async def execute(self, request: object, listener: CallListener) -> Unwritten:
            await answered.wait()
            return Unwritten(finish())

    keeping: set[asyncio.Task[Any]] = set()

    def keep(work: Any) -> asyncio.Task[Any]:
        keeping.add(task := asyncio.create_task(work))
        return task

    runtime = SimpleNamespace(call_runtime=SimpleNamespace(engine=Engine()), keep=keep)
    asked = asyncio.create_task(
        run_until_reply(cast(Runtime, runtime), cast(ExecutionRequest, None), NO_LISTENER)
    )
    await until(sync_to_async(lambda: bool(keeping)))

    asked.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await asked
    answered.set()

    await asyncio.wait_for(finished.wait(), 5)
