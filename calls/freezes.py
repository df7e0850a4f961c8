"""The kill switch, as those see it who would take or start a call: what is frozen now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import connection
from django.db.models import Exists, OuterRef, Q

from calls.models import Call, Freeze
from core import planned
from core.english import gettext as _
from core.journal import Statement

# Taken by whoever starts a call, shared, and by whoever freezes, alone: once a freeze is written,
# nothing that it covers starts any more.
STARTING = 71003

# Of a call `c`, as part of a statement.
FROZEN = """
    (SELECT true FROM calls_freeze f
     WHERE f.ended_at IS NULL AND (f.agent_id IS NULL OR f.agent_id = c.agent_id)
       AND (f.server_id IS NULL OR f.server_id = c.server_id) LIMIT 1)
"""

# Of calls that are about to be sent, and were opened a while ago: who may still go.
STILL_FREE = Statement(
    "still free",
    f"""
SELECT c.id
FROM json_to_recordset(%s::json) AS a(id uuid, fence int) JOIN calls_call c ON c.id = a.id
WHERE c.id BETWEEN %s AND %s AND c.fence = a.fence AND c.state = 'running'
  AND {FROZEN} IS NOT TRUE AND NOT EXISTS (SELECT FROM calls_pause p WHERE p.ended_at IS NULL)
""",
    order=3,
    bounded=True,
)


@dataclass(frozen=True, slots=True)
class FreezeBook:
    """Why what is frozen is: sentences for agents."""

    everything: str = ""
    agents: Mapping[int, str] = field(default_factory=dict)
    servers: Mapping[int, str] = field(default_factory=dict)
    is_empty: bool = True

    def over(self, agent_id: int, server_id: int | None) -> str:
        """Why this agent may not call this server now; empty if it may."""
        if self.is_empty:
            return ""
        return self.everything or self.agents.get(agent_id) or self.servers.get(server_id or 0, "")


def load() -> FreezeBook:
    holding = list(Freeze.objects.holding().for_page())
    every = [_sentence(one) for one in holding if one.agent is None and one.server is None]
    return FreezeBook(
        everything="".join(every),
        agents={one.agent_id: _sentence(one) for one in holding if one.agent_id},
        servers={one.server_id: _sentence(one) for one in holding if one.server_id},
        is_empty=not holding,
    )


def _sentence(freeze: Freeze) -> str:
    if freeze.agent:
        said = _("Calls of this agent have been suspended since %(when)s by %(who)s: %(why)s")
    elif freeze.server:
        said = _("Calls to this server have been suspended since %(when)s by %(who)s: %(why)s")
    else:
        said = _("All calls have been suspended since %(when)s by %(who)s: %(why)s")
    when = f"{freeze.began_at:%Y-%m-%d %H:%M} UTC"
    return said % {"when": when, "who": freeze.by.username, "why": freeze.reason}


def frozen(prefix: str = "") -> Exists:
    """A condition on rows whose call is at `prefix`: an emergency stop covers the call now."""
    same_agent = Q(agent=None) | Q(agent=OuterRef(f"{prefix}agent_id"))
    same_server = Q(server=None) | Q(server=OuterRef(f"{prefix}server_id"))
    return Exists(Freeze.objects.holding().filter(same_agent, same_server))


def stopped_call(call_id: str) -> Exists:
    """A condition on rows that have the id of a call at `call_id`: an emergency stop covers it, or
    its clock has not been set again yet."""
    call = Call.objects.filter(pk=OuterRef(call_id))
    return Exists(call.filter(Q(frozen()) | Q(clock_stopped_at__isnull=False)))


def is_stopped(call: Call) -> bool:
    return oldest_stop(call) is not None


def oldest_stop(call: Call) -> int | None:
    """The id of the emergency stop that has covered the call for the longest."""
    covering = Freeze.objects.holding().filter(_covers(call)).order_by("began_at", "pk")
    return covering.values_list("pk", flat=True).first()


def _covers(call: Call) -> Q:
    same_agent = Q(agent=None) | Q(agent=call.agent_id)
    return same_agent & (Q(server=None) | Q(server=call.server_id))


def time_stopped(call: Call, since: datetime, until: datetime) -> timedelta:
    """For how long emergency stops covered the call; two at the same time count once."""
    every = Freeze.objects.filter(Q(ended_at=None) | Q(ended_at__gt=since), began_at__lt=until)
    total, counted_until = timedelta(), since
    for freeze in every.filter(_covers(call)).order_by("began_at"):
        begin, end = max(freeze.began_at, counted_until), freeze.ended_at or until
        total += max(end - begin, timedelta())
        counted_until = max(end, counted_until)
    return total


def wait_for_freezes() -> None:
    """Before a call is started; holds until the caller's transaction ends."""
    with connection.cursor() as cursor:
        # What follows in this transaction is the same for each call that is started.
        cursor.execute(f"SELECT pg_advisory_xact_lock_shared(%s), {planned.KEEP_PLANS}", [STARTING])


def wait_for_starts() -> None:
    """Before a freeze is written, and before it ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [STARTING])
