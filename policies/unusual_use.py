"""Looks once a minute whether agents are used unusually: pages show it, and people are told."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import connection, transaction
from django.utils import timezone

from accounts.models import Agent
from audit.services import SYSTEM, record
from policies.lookback import read_unusual
from policies.models import UnusualUse
from policies.unusual import UnusualFinding

# A call of the last round may have come after its look.
LATELY_S = 180
# What ended so long ago is told again if it comes again.
FORGOTTEN_AFTER = timedelta(hours=24)
# Of a flood, the newest entries name its agent too.
NEWEST, MOST_AGENTS = 20_000, 200

ACTIVE = f"""
    SELECT DISTINCT n.subject FROM (
        SELECT agent, at FROM audit_entryrow ORDER BY id DESC LIMIT {NEWEST}
    ) r JOIN audit_name n ON n.id = r.agent
    WHERE r.at > clock_timestamp() - make_interval(secs => %s) LIMIT {MOST_AGENTS}
"""


def watch() -> int:
    """Returns how many agents' use was told as unusual. Repeated, it tells nothing twice."""
    now = timezone.now()
    UnusualUse.objects.filter(seen_at__lt=now - FORGOTTEN_AFTER).delete()
    return sum(_look_at(agent, now) for agent in _active_agents())


def _active_agents() -> list[Agent]:
    with connection.cursor() as cursor:
        cursor.execute(ACTIVE, [LATELY_S])
        ids = [pk for (pk,) in cursor.fetchall()]
    return list(Agent.objects.filter(pk__in=ids).order_by("pk"))


def _look_at(agent: Agent, now: datetime) -> bool:
    found = read_unusual(agent.pk)
    findings = list(found.findings()) if found else []
    return bool(findings) and _keep(agent, findings, now)


@transaction.atomic
def _keep(agent: Agent, findings: list[UnusualFinding], now: datetime) -> bool:
    """Returns whether something of it was told for the first time."""
    empty = {"kinds": [], "reasons": [], "since": now, "seen_at": now}
    row, _is_new = UnusualUse.objects.select_for_update().get_or_create(agent=agent, defaults=empty)
    new = [one for one in findings if one.kind not in row.kinds]
    row.kinds = [*row.kinds, *(one.kind for one in new)]
    row.reasons, row.seen_at = [one.reason for one in findings], now
    row.save()
    if new:
        record(
            "agent.unusual",
            actor=SYSTEM,
            agent=(agent.pk, agent.name),
            reason=" ".join(one.reason for one in new),
            kinds=[one.kind for one in new],
        )
    return bool(new)
