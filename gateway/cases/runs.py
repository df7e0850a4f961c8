"""Running saved cases: each run is an ordinary call, and its outcome is compared once it ended."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import timedelta

from django.db import transaction
from django.utils import timezone

from accounts.models import User
from audit.services import SYSTEM, record
from calls.models import Call
from calls.record.states import LIVE, NOT_SENT
from core import strict_json
from core.english import gettext as _
from core.errors import CountersignError, RecordUnsure
from core.ids import uuid7
from gateway.cases.expectations import CheckedExpectation, check
from gateway.models import CaseRun, SavedCase
from gateway.submit import try_call
from gateway.submit.try_call import TryRoute

log = logging.getLogger(__name__)

# Of each case; older ones are dropped.
KEPT = 50
# Of one press, and of one turn of a schedule.
AT_ONCE = 100
# A run whose call is not recorded after so long is given up.
LOST_AFTER = timedelta(minutes=10)


def run_case(
    case: SavedCase,
    way: TryRoute | None,
    *,
    by: User,
    scheduled: bool = False,
    wait_s: float = 0,
    obstacle: str = "",
) -> CaseRun:
    """Sends the call, by a worker unless it is waited for. `way`: None where no agent gets the
    tool. `obstacle`: why it must not be sent."""
    run = CaseRun.objects.create(
        case=case,
        # Known before it is sent: a process that ends meanwhile leaves no call that nobody finds.
        call_id=uuid7(),
        definition=case.tool.published,
        agent=way.agent if way else None,
        person=by,
        is_scheduled=scheduled,
    )
    SavedCase.objects.filter(pk=case.pk).update(last_run=run)
    if obstacle:
        _give_up(run, obstacle)
    else:
        _send(run, way, wait_s)
    settle([run])
    _prune(case)
    return run


def _send(run: CaseRun, way: TryRoute | None, wait_s: float) -> None:
    arguments = bytes(run.case.arguments)
    try:
        if way is None:
            raise try_call.TryRefused(_("The agent does not get this tool any more."))
        sent = try_call.send(
            run.case.tool,
            way,
            arguments,
            strict_json.loads(arguments),
            seconds=wait_s,
            call_id=run.call_id,
        )
    except RecordUnsure:
        # It may be sent: whether it was, its call says once the record answers.
        return
    except CountersignError as error:
        _give_up(run, str(error))
        return
    if sent.joined and sent.state not in LIVE:
        reason = _("An identical call was sent before, and duplicates are blocked.")
        run.call_id = sent.call_id
        _end(run, CaseRun.State.NOT_RUN, reason)
        return
    if sent.call_id != run.call_id:
        run.call_id = sent.call_id
        CaseRun.objects.filter(pk=run.pk).update(call=sent.call_id)


def settle(runs: Iterable[CaseRun]) -> None:
    """Ends those whose calls have ended."""
    for run in runs:
        if run.is_open:
            _settle(run)


def settle_shown(cases: Iterable[SavedCase]) -> None:
    """The last runs of cases that a page lists."""
    for case in cases:
        if case.last_run is not None:
            case.last_run.case = case
            settle([case.last_run])


def settle_all() -> None:
    open_runs = CaseRun.objects.filter(state=CaseRun.State.OPEN)
    for run in open_runs.select_related("case__tool__server").order_by("pk"):
        try:
            _settle(run)
        except Exception:
            # Others, and what is due, do not wait for it.
            log.exception("The run %s of a saved case was not compared.", run.pk)


def _settle(run: CaseRun) -> None:
    calls = Call.objects.select_related("definition")
    call = calls.filter(pk=run.call_id).first() if run.call_id else None
    if call is None:
        if run.at < timezone.now() - LOST_AFTER:
            _give_up(run, _("It was interrupted before it was sent."))
        return
    if call.state in LIVE:
        return
    run.call = call
    if call.state in NOT_SENT or call.sent_at is None:
        _end(run, CaseRun.State.NOT_RUN, call.outcome or call.reason)
        return
    checks = check(run.case, call)
    failed = [one for one in checks if one.problem]
    state = CaseRun.State.FAILED if failed else CaseRun.State.PASSED
    _end(run, state, _summary(failed), checks)


def _give_up(run: CaseRun, reason: str) -> None:
    """There is no call of it."""
    run.call_id = None
    _end(run, CaseRun.State.NOT_RUN, reason)


def _summary(failed: list[CheckedExpectation]) -> str:
    return " ".join(f"{one.expected} {one.problem}" for one in failed[:3])


@transaction.atomic
def _end(run: CaseRun, state: str, reason: str, checks: Iterable[CheckedExpectation] = ()) -> None:
    """Once, whoever comes first: a page or the clock."""
    ended = {
        "state": state,
        "reason": reason,
        "checks": [one._asdict() for one in checks],
        "call": run.call_id,
    }
    if not CaseRun.objects.filter(pk=run.pk, state=CaseRun.State.OPEN).update(**ended):
        run.refresh_from_db()
        return
    run.state, run.reason, run.checks = state, reason, ended["checks"]
    if run.is_scheduled and state != CaseRun.State.PASSED and not _is_as_before(run):
        _record_trouble(run)


def _is_as_before(run: CaseRun) -> bool:
    """The scheduled run before ended alike: one entry says so for all of them."""
    scheduled = CaseRun.objects.filter(case=run.case, is_scheduled=True, pk__lt=run.pk)
    before = scheduled.order_by("-pk").values_list("state", "reason").first()
    return before == (run.state, run.reason)


def _record_trouble(run: CaseRun) -> None:
    tool = run.case.tool
    record(
        "saved_case.failed" if run.state == CaseRun.State.FAILED else "saved_case.not_run",
        actor=SYSTEM,
        reason=run.reason,
        agent=(run.agent.pk, run.agent.name) if run.agent else (0, ""),
        server=tool.server.slug,
        tool=tool.exposed_name,
        case=run.case.name,
        call=str(run.call_id or ""),
    )


def _prune(case: SavedCase) -> None:
    kept = list(case.runs.values_list("pk", flat=True)[KEPT : KEPT + 1])
    if kept:
        case.runs.filter(pk__lte=kept[0]).delete()
