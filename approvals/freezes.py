"""The kill switch: freezing an agent, a server or everything, and ending that again.

While it holds, no new call is taken, no waiting one starts, and no clock of one runs. Who froze
cannot end it: another person has to look, and say why.
"""

from __future__ import annotations

from typing import Any

from django.db import IntegrityError, connection, transaction

from accounts.actors import By, ServiceCaller, acting
from accounts.models import Agent, ServiceAccount, User
from approvals.models import Approval
from audit.models import ClockTime
from audit.services import record
from calls.freezes import FROZEN, wait_for_starts
from calls.models import Freeze
from core.english import gettext as _
from core.errors import CountersignError
from core.live import notify_on_commit
from registry.models import Server

BEGIN, END = "calls.begin_freeze", "calls.end_freeze"

STOP = f"""
    UPDATE calls_call c SET clock_stopped_at = clock_timestamp()
    WHERE c.state IN ('held', 'approved', 'queued') AND c.clock_stopped_at IS NULL AND {FROZEN}
"""
# What another freeze still covers goes on standing still. A call that came in at the very moment
# of the freeze was not stopped: its clock is set as if it had been.
RESUME = f"""
    WITH resumed AS (
        UPDATE calls_call c SET
            decide_by = c.decide_by + stood.still, start_by = c.start_by + stood.still,
            clock_stopped_at = NULL
        FROM (
            SELECT id, clock_timestamp()
                - COALESCE(clock_stopped_at, GREATEST(asked_at, %(began)s)) AS still
            FROM calls_call c
            WHERE state IN ('held', 'approved', 'queued') AND {FROZEN} IS NOT TRUE
              AND (clock_stopped_at IS NOT NULL
                   OR (%(agent)s::bigint IS NULL OR agent_id = %(agent)s)
                  AND (%(server)s::bigint IS NULL OR server_id = %(server)s))
        ) stood
        WHERE stood.id = c.id
        RETURNING c.id, c.decide_by, stood.still
    )
    UPDATE approvals_approval a SET decide_by = r.decide_by, widens_at = a.widens_at + r.still
    FROM resumed r WHERE a.call_id = r.id AND a.state = 'waiting'
"""


class NotFrozen(CountersignError):
    """The emergency stop was not changed; says why."""


@transaction.atomic
def begin(
    *,
    by: User | ServiceCaller,
    reason: str,
    agent: Agent | None = None,
    server: Server | None = None,
) -> Freeze:
    """Raises NotFrozen, without a reason or when it is frozen already."""
    if not by.has_perm(BEGIN):
        raise NotFrozen(_("You may not begin an emergency stop."))
    if not reason:
        raise NotFrozen(_("Say why: everybody who is stopped reads it."))
    wait_for_starts()
    try:
        with transaction.atomic():
            made = Freeze.objects.create(
                agent=agent,
                server=server,
                reason=reason[:300],
                by=_person(by),
                account=_service_account(by),
            )
    except IntegrityError:
        raise NotFrozen(_("That is suspended already.")) from None
    with connection.cursor() as cursor:
        cursor.execute(STOP)
        stopped = cursor.rowcount
    _record("freeze.began", made, by=by, reason=made.reason, calls=stopped)
    return made


@transaction.atomic
def end(freeze: Freeze, *, by: User | ServiceCaller, why: str) -> None:
    """Raises NotFrozen unless `by` is somebody else than who began it, and says why."""
    if not by.has_perm(END):
        raise NotFrozen(_("You may not end an emergency stop."))
    if _parties(by) & _parties_of_begin(freeze):
        raise NotFrozen(_("You started it: another user must check and end it."))
    if not why:
        raise NotFrozen(_("Say why it can resume: it is recorded."))
    # As voters do: the approval first, then its call.
    list(Approval.objects.waiting().order_by("pk").select_for_update().values_list("pk"))
    wait_for_starts()
    ended = Freeze.objects.holding().filter(pk=freeze.pk)
    if not ended.update(
        ended_at=ClockTime(),
        ended_by=_person(by),
        ended_account=_service_account(by),
        ended_why=why[:300],
    ):
        raise NotFrozen(_("Another user has already ended it."))
    with connection.cursor() as cursor:
        began = {"began": freeze.began_at, "agent": freeze.agent_id, "server": freeze.server_id}
        cursor.execute(RESUME, began)
    _record("freeze.ended", freeze, by=by, reason=why[:300])


def _person(by: User | ServiceCaller) -> User:
    return by.person if isinstance(by, ServiceCaller) else by


def _service_account(by: By) -> ServiceAccount | None:
    return by.account if isinstance(by, ServiceCaller) else None


def _parties(by: User | ServiceCaller) -> set[tuple[str, int]]:
    """A service account acts for who created its token, and for who made it and can run it."""
    if isinstance(by, User):
        return {("user", by.pk)}
    return _of_account(by.account) | {("user", by.person.pk)}


def _parties_of_begin(freeze: Freeze) -> set[tuple[str, int]]:
    account = freeze.account
    return {("user", freeze.by_id)} | (_of_account(account) if account else set())


def _of_account(account: ServiceAccount) -> set[tuple[str, int]]:
    return {("account", account.pk), ("user", account.created_by_id)}


def _record(action: str, freeze: Freeze, *, by: By, reason: str, **details: Any) -> None:
    record(
        action,
        actor=acting(by),
        reason=reason,
        agent=(freeze.agent.pk, freeze.agent.name) if freeze.agent else (0, ""),
        server=freeze.server.slug if freeze.server else "",
        freeze=freeze.pk,
        **details,
    )
    notify_on_commit("frozen", "queue", "calls")
