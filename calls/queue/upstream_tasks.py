"""Calls that go on although whoever ran them is gone: those that their server runs as a task, and
those whose server asked something and keeps nothing until it gets the answers. The task's id, or
what was asked, stands in the row before anybody waits, so that another takes it up where it is."""

from __future__ import annotations

import time
from typing import Any

import orjson
from django.conf import settings
from django.db import connection, transaction

from audit import rollback
from audit.services import SYSTEM, record
from calls.basis import Obstacle, judged
from calls.freezes import FROZEN
from calls.models import Call
from calls.queue.recheck import Start, find_costs, judge_sending, may_start
from calls.record.call_options import options_of
from calls.record.states import State
from calls.running.execution import ExecutionRequest
from core.english import gettext
from registry.credentials.owners import owner_for
from registry.publishing.published_tools import PublishedTool

# As long as its server may have said nothing of it yet, it is as good as lost. What would be sent
# with answers waits for the end of an emergency stop; what is cancelled is sent no more.
LOST = f"""
    SELECT c.id FROM calls_call c
    WHERE c.state = 'running' AND c.upstream_task <> '' AND c.lease_until < clock_timestamp()
      AND (strpos(c.upstream_task, '"asked":') = 0 OR c.cancel_asked_at IS NOT NULL
           OR {FROZEN} IS NOT TRUE)
    ORDER BY c.id LIMIT 1 FOR UPDATE SKIP LOCKED
"""
TAKE = """
    UPDATE calls_call SET fence = fence + 1, lease_owner = %s,
        lease_until = clock_timestamp() + make_interval(secs => %s)
    WHERE id = %s RETURNING fence, extract(epoch FROM clock_timestamp() - sent_at)::float
"""
_TASK = gettext("Its server goes on with it; another worker asks how far it is.")
_ANSWERS = gettext("It waits for its agent's answers; another worker goes on with them.")


@transaction.atomic
def take_over(*, owner: str) -> ExecutionRequest | None:
    """A call whose keeper is gone, and whose task goes on at its server; None if there is none."""
    start = may_start()
    if start is None:
        return None
    with connection.cursor() as cursor:
        cursor.execute(LOST)
        row = cursor.fetchone()
        if row is None:
            return None
        call = Call.objects.get(pk=row[0], state=State.RUNNING)
        is_paused = "asked" in orjson.loads(call.upstream_task)
        tool = _tool_to_follow(call, start, is_paused=is_paused)
        if tool is None:
            _give_up(cursor, call)
            return None
        cursor.execute(TAKE, [owner, settings.LEASE_S, call.pk])
        fence, since_s = cursor.fetchone()
    if is_paused:
        rollback.note_position()
    record(
        "call.taken_over",
        actor=SYSTEM,
        call_id=call.pk,
        tool=call.tool_name,
        reason=str(_ANSWERS if is_paused else _TASK),
    )
    return ExecutionRequest(
        call_id=call.pk,
        fence=fence,
        tool=tool,
        arguments=call.to_send,
        background=True,
        claimed_at=time.monotonic(),
        doubtful=True,
        upstream_task=call.upstream_task,
        # Each round has the whole time, as for who never stopped.
        since_s=0.0 if is_paused else since_s,
        options=options_of(call.pk),
        revision=call.revision,
        agent_id=call.agent_id,
        credential_owner=owner_for(call.agent, tool.connection),
        is_cancelled=call.cancel_asked_at is not None,
        costs=find_costs(call, tool, start.configuration),
    )


def _tool_to_follow(call: Call, start: Start, *, is_paused: bool) -> PublishedTool | None:
    """The call's tool; None where it is not to go on."""
    configuration = start.configuration
    tool = configuration.tool(call.tool_id) if call.tool_id else None
    if tool is None:
        return None
    if not is_paused:
        decision = judged(call, tool, call.to_send, configuration=configuration)
        return tool.with_results(decision.results)
    # To go on after answers is to send again: what has changed since stands against it.
    found = judge_sending(call, tool, configuration)
    return None if isinstance(found, Obstacle) else found


def _give_up(cursor: Any, call: Call) -> None:
    """Forgets the task, which must not be polled any more, so that the call counts as lost."""
    cursor.execute("UPDATE calls_call SET upstream_task = '' WHERE id = %s", [call.pk])
