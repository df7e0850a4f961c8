"""Nine mistakes that a house like ours could make, each with the run that shows it."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any
from uuid import UUID

from tests.faults.plan import Plan


@dataclass(frozen=True)
class Variant:
    # By the module that is changed when the product imports it.
    changes: dict[str, Callable[[Any], None]]
    plan: Plan


def acknowledge_before_commit(journal: Any) -> None:
    real = journal.GroupCommit.write

    async def write(self: Any, *lines: Any, within: float | None = 2.0) -> Any:
        if [statement.name for statement, _ in lines] not in (["open"], ["open usual"]):
            return await real(self, *lines, within=within)
        self.later = getattr(self, "later", set())
        self.later.add(asyncio.create_task(real(self, *lines, within=None)))
        return [None]

    journal.GroupCommit.write = write


def no_fence(transitions: Any) -> None:
    fence = "(a.fence IS NULL OR c.fence = a.fence)"
    transitions.MOVE = _without(fence, transitions.MOVE)


def no_fence_of_successes(usual_calls: Any) -> None:
    usual_calls.SUCCEED = _without("c.fence = a.fence", usual_calls.SUCCEED)


def _without(fence: str, statement: Any) -> Any:
    assert fence in statement.sql
    return replace(statement, sql=statement.sql.replace(fence, "true"))


def retry_on_unknown(client: Any) -> None:
    from registry.upstream.values import CancelledUpstream, OutcomeUnknown

    real = client.Upstreams.call_tool

    async def call_tool(self: Any, target: Any, call: Any, pause: Any = None) -> Any:
        try:
            return await real(self, target, call, pause)
        except CancelledUpstream:
            raise
        except OutcomeUnknown:
            return await real(self, target, call, pause)

    client.Upstreams.call_tool = call_tool


def resend_on_status(http_statuses: Any) -> None:
    """A status with which servers turn unknown sessions away is taken for their word that they took
    nothing."""
    real = http_statuses.meaning

    def meaning(bad: Any, id_: int, **how: Any) -> Any:
        if bad.status in http_statuses.RENEGOTIATE:
            said = f"The server wants to be greeted anew (HTTP {bad.status})."
            return http_statuses.SessionInvalid(said, bad.status)
        return real(bad, id_, **how)

    http_statuses.meaning = meaning


def sweep_without_claim(claiming: Any) -> None:
    def claim(call_id: UUID, *, owner: str) -> Any:
        call = claiming.Call.objects.filter(pk=call_id, state="queued").first()
        if call is None:
            return None
        return claiming.ExecutionRequest(
            call_id=call.pk,
            fence=call.fence + 1,
            tool=claiming.published_catalogue.one(call.tool_id),
            arguments=bytes(call.arguments),
            background=True,
            claimed_at=time.monotonic(),
        )

    claiming.claim = claim


def cursor_that_skips(turns: Any) -> None:
    """Ids grow with time, so what is older was seen: but calls wait for people, and come back."""
    real = turns.whose_turn
    seen = {"last": 0}

    def whose_turn(*, most: int, older_s: float = 0.0) -> list[UUID]:
        found: list[UUID] = real(most=most, older_s=older_s)
        found = [call for call in found if call.int > seen["last"]]
        if found:
            seen["last"] = max(call.int for call in found)
        return found

    turns.whose_turn = whose_turn


def spool_not_fsynced(spool: Any) -> None:
    careless = SimpleNamespace(**vars(os))
    careless.fsync = lambda descriptor: None
    spool.os = careless


def cancel_reported_before_known(services: Any) -> None:
    real = services._ask_to_stop

    def ask_to_stop(call_id: UUID, by: Any) -> bool:
        asked = real(call_id, by)
        services.move_now(
            services.Move(
                call_id,
                services.State.RUNNING,
                services.State.CANCELLED,
                by,
                outcome="Cancelled.",
                executed=services.Executed.NO,
            )
        )
        return bool(asked)

    services._ask_to_stop = ask_to_stop


def heartbeat_in_the_calls_own_thread(leases: Any) -> None:
    async def run(self: Any) -> None:
        """Whoever waits for a server cannot renew."""

    leases.Leases._run = run


_BRIEF = Plan(
    seed=0, calls=150, calls_within_s=15, rounds=0, seconds=1, settle_s=15, misbehaving=False
)
_STOPPED = replace(_BRIEF, only="pause worker", rounds=10, lease_s=2)
_WITHOUT_DATABASE = replace(_BRIEF, only="cut database,pause database", rounds=4, cut_s=2)

VARIANTS: dict[str, Variant] = {
    "acknowledge-before-commit": Variant(
        {"core.journal": acknowledge_before_commit}, _WITHOUT_DATABASE
    ),
    "no-fence": Variant(
        {
            "calls.record.transitions": no_fence,
            "calls.record.usual_calls": no_fence_of_successes,
        },
        _STOPPED,
    ),
    "retry-on-unknown": Variant(
        {"registry.upstream.client": retry_on_unknown}, replace(_BRIEF, misbehaving=True)
    ),
    "resend-on-status": Variant(
        {"registry.upstream.session.http_statuses": resend_on_status},
        replace(_BRIEF, errands="misbehaving", misbehaving=True),
    ),
    "sweep-without-claim": Variant({"calls.queue.claiming": sweep_without_claim}, _BRIEF),
    "cursor-that-skips": Variant(
        {"calls.queue.scheduling": cursor_that_skips}, replace(_BRIEF, errands="task,approved")
    ),
    "spool-not-fsynced": Variant(
        {"core.spool": spool_not_fsynced}, replace(_BRIEF, only="power cut", rounds=4)
    ),
    "cancel-before-known": Variant({"calls.services": cancel_reported_before_known}, _BRIEF),
    "heartbeat-in-the-call": Variant(
        {"calls.running.leases": heartbeat_in_the_calls_own_thread}, replace(_BRIEF, lease_s=2)
    ),
}
