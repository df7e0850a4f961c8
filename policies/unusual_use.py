"""Looks once a minute whether agents are used unusually: pages show it, and people are told."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from django.db import connection, transaction
from django.utils import timezone

from accounts.agent_addresses import forget_old
from accounts.models import Agent
from audit.services import SYSTEM, record
from policies.lookback import read_unusual
from policies.models import UnusualUse
from policies.unusual import UnusualFinding

log = logging.getLogger(__name__)

# A call of the last round may have come after its look.
LATELY_S = 180
# What ended so long ago is told again if it comes again.
FORGOTTEN_AFTER = timedelta(hours=24)
# Of the record, and of agents in one round: the others come in the next ones.
NEWEST, MOST_AGENTS = 100_000, 200

ACTIVE = f"""
    SELECT DISTINCT n.subject FROM (
        SELECT agent, at, seq FROM audit_entryrow ORDER BY id DESC LIMIT {NEWEST}
    ) r JOIN audit_name n ON n.id = r.agent
    WHERE r.seq = 1 AND r.at > clock_timestamp() - make_interval(secs => %s)
"""


def watch() -> int:
    """Returns how many agents' use was told as unusual. Repeated, it tells nothing twice."""
    now = timezone.now()
    forget_old()
    UnusualUse.objects.filter(seen_at__lt=now - FORGOTTEN_AFTER).delete()
    results = [_look_at(agent, now) for agent in _active_agents(now)]
    if unread := results.count(None):
        log.warning("unusual use: %d agents could not be read in time", unread)
    return results.count(True)


def _active_agents(now: datetime) -> list[Agent]:
    """Those that called lately. Where they are too many for one round, rounds take turns."""
    with connection.cursor() as cursor:
        cursor.execute(ACTIVE, [LATELY_S])
        ids = [pk for (pk,) in cursor.fetchall()]
    agents = list(Agent.objects.filter(pk__in=ids).order_by("pk"))
    if len(agents) <= MOST_AGENTS:
        return agents
    log.warning("unusual use: %d agents wait for the next round", len(agents) - MOST_AGENTS)
    start = int(now.timestamp()) // 60 * MOST_AGENTS % len(agents)
    return (agents[start:] + agents[:start])[:MOST_AGENTS]


def _look_at(agent: Agent, now: datetime) -> bool | None:
    """Returns whether something was told for the first time; None if it could not be read."""
    found = read_unusual(agent.pk)
    if found is None:
        return None
    findings = list(found.findings())
    return bool(findings) and _keep(agent, findings, now)


@transaction.atomic
def _keep(agent: Agent, findings: list[UnusualFinding], now: datetime) -> bool:
    """Returns whether something of it was told for the first time."""
    empty = {"reasons": [], "since": now, "seen_at": now}
    row, _is_new = UnusualUse.objects.select_for_update().get_or_create(agent=agent, defaults=empty)
    oldest = (now - FORGOTTEN_AFTER).timestamp()
    seen = {kind: at for kind, at in row.kinds_seen.items() if at >= oldest}
    new = [one for one in findings if one.kind not in seen]
    row.kinds_seen = seen | {one.kind: now.timestamp() for one in findings}
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
