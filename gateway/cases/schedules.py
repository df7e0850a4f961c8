"""Cases that run by themselves: as an agent of whoever scheduled them, as long as both may."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

import orjson
from django.db import transaction
from django.utils import timezone

from accounts.models import Agent, User
from accounts.scopes import ScopeTarget
from audit.services import SYSTEM, Actor, record
from core.english import english
from core.english import gettext as _
from core.errors import CountersignError
from gateway.cases.runs import AT_ONCE, run_case
from gateway.cases.services import PERMISSION
from gateway.models import CaseRun, CaseSchedule, SavedCase
from gateway.submit import try_call
from registry.models import Server, Tool

log = logging.getLogger(__name__)

Every = CaseSchedule.Every
PERIODS = {Every.HOUR: timedelta(hours=1), Every.DAY: timedelta(days=1)}
PERIODS[Every.WEEK] = timedelta(weeks=1)


class ScheduleRefused(CountersignError):
    """The schedule cannot be set so; says why."""


def find(target: SavedCase | Server) -> CaseSchedule | None:
    found = CaseSchedule.objects.select_related("person", "agent")
    return found.filter(**_key(target)).first()


def cases_of(target: SavedCase | Server) -> list[SavedCase]:
    if isinstance(target, SavedCase):
        return [target]
    return list(
        SavedCase.objects.filter(tool__server=target).select_related("tool__server", "last_run")
    )


def unconfirmed(cases: Iterable[SavedCase]) -> list[Tool]:
    """The tools that are not read-only: a schedule runs them only where that was confirmed."""
    tools = {case.tool_id: case.tool for case in cases}
    return [tool for tool in tools.values() if tool.risk != Tool.Risk.READS]


def left_out(schedule: CaseSchedule, cases: Iterable[SavedCase]) -> list[SavedCase]:
    return [case for case in cases if _obstacle(schedule, case)]


@transaction.atomic
def set_schedule(
    target: SavedCase | Server, every: str, *, agent: Agent, confirmed: bool, by: User
) -> CaseSchedule:
    """Every run is one of `agent`. `confirmed`: tools that are not read-only run too; else they
    are left out of a server's runs, and a case of one is not scheduled. Raises ScheduleRefused."""
    cases = cases_of(target)
    if unconfirmed(cases) and not confirmed and isinstance(target, SavedCase):
        said = _("The tool is not read-only: confirm that it runs by itself.")
        raise ScheduleRefused(said)
    if agent.owner_id != by.pk or not agent.enabled:
        raise ScheduleRefused(_("Choose one of your own active agents."))
    values = {
        "every": every,
        "person": by,
        "agent": agent,
        "confirmed": _confirmed(cases, with_risks=confirmed),
        # At once, so that whoever schedules sees the first outcome.
        "next_at": timezone.now(),
        "stopped": "",
    }
    schedule, _made = CaseSchedule.objects.update_or_create(defaults=values, **_key(target))
    _record("case_schedule.set", schedule, by.actor, every=english(Every(every).label))
    return schedule


@transaction.atomic
def end_schedule(target: SavedCase | Server, *, by: User) -> None:
    schedule = CaseSchedule.objects.filter(**_key(target)).first()
    if schedule is not None:
        _record("case_schedule.ended", schedule, by.actor)
        schedule.delete()


def _key(target: SavedCase | Server) -> dict[str, Any]:
    return {"case" if isinstance(target, SavedCase) else "server": target}


def run_due(now: datetime) -> None:
    while schedule := _take_due(now):
        _run(schedule)


@transaction.atomic
def _take_due(now: datetime) -> CaseSchedule | None:
    """The next one that is due, which no other process takes: its time is moved on first, so that
    one which was missed is not made up for."""
    due = CaseSchedule.objects.filter(next_at__lte=now, stopped="").order_by("next_at")
    schedule = due.select_for_update(skip_locked=True).first()
    if schedule is None:
        return None
    schedule.next_at = now + PERIODS[Every(schedule.every)]
    schedule.save(update_fields=["next_at"])
    if why := _why_stopped(schedule):
        schedule.stopped = why
        schedule.save(update_fields=["stopped"])
        _record("case_schedule.stopped", schedule, SYSTEM, reason=why)
    return schedule


def _why_stopped(schedule: CaseSchedule) -> str:
    person, agent = schedule.person, schedule.agent
    # Where a role of theirs holds for some servers alone, this one is meant.
    person.find_target = lambda: ScopeTarget("server", {"server": schedule.of_server.tags})
    if not person.is_active:
        return _("%s, who scheduled it, was disabled.") % person.username
    if not person.has_perm(PERMISSION):
        return _("%s, who scheduled it, may no longer run cases.") % person.username
    if not agent.enabled:
        return _("The agent %s was disabled.") % agent.name
    if agent.owner_id != person.pk:
        return _("The agent %s has another owner now.") % agent.name
    return ""


def _run(schedule: CaseSchedule) -> None:
    if schedule.stopped:
        return
    target = schedule.case or schedule.server
    assert target is not None
    for case, obstacle in _turn(schedule, cases_of(target))[:AT_ONCE]:
        _run_case(schedule, case, obstacle)


def _turn(schedule: CaseSchedule, cases: list[SavedCase]) -> list[tuple[SavedCase, str]]:
    """The cases to run with what is in the way of each, those that ran longest ago first. A run
    that is still open, whoever asked for it, is not asked for again."""
    open_runs = CaseRun.objects.filter(case__in=cases, state=CaseRun.State.OPEN)
    busy = set(open_runs.values_list("case_id", flat=True))
    found = [(one, _obstacle(schedule, one)) for one in cases if one.pk not in busy]
    if schedule.server:
        # Its page names the tools that its schedule leaves out.
        found = [(one, obstacle) for one, obstacle in found if not obstacle]
    return sorted(found, key=lambda each: each[0].last_run_id or 0)


def _run_case(schedule: CaseSchedule, case: SavedCase, obstacle: str) -> None:
    try:
        way = try_call.route_of(case.tool, schedule.agent)
        run_case(case, way, by=schedule.person, scheduled=True, obstacle=obstacle)
    except Exception:
        # The others of this turn do not wait for it.
        log.exception("The saved case %s was not run by its schedule.", case.pk)


def _obstacle(schedule: CaseSchedule, case: SavedCase) -> str:
    """Why it must not run by itself; "" where it is as harmless as was confirmed."""
    tool, known = case.tool, schedule.confirmed
    is_as_seen = known.get(_key_of(case)) == _digest(case)
    if not is_as_seen and case.written_by_id != schedule.person_id:
        # They would act as the agent of somebody else, and could approve that themselves.
        return _("Another user changed it after it was scheduled.")
    if tool.risk == Tool.Risk.READS:
        return ""
    if known.get(str(tool.pk)) not in (tool.risk, Tool.Risk.DESTROYS):
        return _("The tool is not read-only, and that was not confirmed when it was scheduled.")
    if not is_as_seen:
        return _("The tool is not read-only, and the case is not the one that was confirmed.")
    return ""


def _confirmed(cases: Iterable[SavedCase], *, with_risks: bool) -> dict[str, str]:
    seen, risks = {}, {}
    for case in cases:
        seen[_key_of(case)] = _digest(case)
        if with_risks and case.tool.risk != Tool.Risk.READS:
            risks[str(case.tool_id)] = str(case.tool.risk)
    return seen | risks


def _key_of(case: SavedCase) -> str:
    return f"case {case.pk}"


def _digest(case: SavedCase) -> str:
    """Digest of what is sent and of what is looked for in the result."""
    expected = (case.outcome, case.fits_schema, case.contains, case.values, case.within_ms)
    return sha256(bytes(case.arguments) + orjson.dumps(expected)).hexdigest()


def _record(
    action: str, schedule: CaseSchedule, actor: Actor, *, reason: str = "", **details: str
) -> None:
    case = schedule.case
    record(
        action,
        actor=actor,
        reason=reason,
        agent=(schedule.agent.pk, schedule.agent.name),
        server=schedule.of_server.slug,
        tool=case.tool.exposed_name if case else "",
        **(details | ({"case": case.name} if case else {})),
    )
