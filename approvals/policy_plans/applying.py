"""Applies a confirmed plan: whole, once, and only onto what it was made for."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import OperationalError, transaction
from django.utils import timezone

from accounts.actors import By, acting
from accounts.independence import are_independent, unconfirmed_inviters
from approvals.policy_plans.planning import digest_of_plan, make_plan
from audit.services import record
from core.english import gettext as _
from core.english import ngettext
from core.errors import CountersignError
from policies.as_code import writing
from policies.as_code.differences import (
    PolicyChange,
    all_changes,
    base_digest,
    digest_of,
    needed_permissions,
)
from policies.as_code.documents import read_file
from policies.as_code.sections import mistakes_of
from policies.models import PlanConfirmation, PolicyPlan

VALID_FOR = timedelta(days=7)
CONFIRM = "policies.confirm_policyplan"


class PlanNotApplied(CountersignError):
    """Says why, and what to do."""


class BaseMoved(PlanNotApplied):
    """The base of the plan is not there any more."""


def needed() -> int:
    """How many people confirm a plan."""
    return 2 if settings.POLICY_NEEDS_TWO else 1


def permissions_of(plan: PolicyPlan) -> list[str]:
    """The permissions that whoever confirms the plan needs."""
    found = [PolicyChange(*(one[name] for name in PolicyChange._fields)) for one in plan.changes]
    return sorted({CONFIRM, *needed_permissions(found)})


def valid_confirmations(plan: PolicyPlan) -> list[PlanConfirmation]:
    """Confirmations that count: of active people who may still confirm it, each independent of the
    others."""
    permissions, known = permissions_of(plan), unconfirmed_inviters()
    counted: list[PlanConfirmation] = []
    for one in plan.confirmations.select_related("person"):
        person = one.person
        if not person.is_active or not person.has_perms(permissions):
            continue
        if all(are_independent(person, other.person, known) for other in counted):
            counted.append(one)
    return counted


def why_not(plan: PolicyPlan) -> str:
    """Why the plan cannot be applied, its base apart, as a sentence; empty if it can."""
    if plan.applied_at is not None:
        return _("This plan was applied already.")
    if timezone.now() > plan.created_at + VALID_FOR:
        return _("This plan is older than 7 days. Create a new one.")
    missing = needed() - len(valid_confirmations(plan))
    if missing > 0:
        return ngettext(
            "It takes one more person who opens the plan in the console and confirms it.",
            "It takes %d more people who open the plan in the console and confirm it.",
            missing,
        ) % ({} if missing == 1 else missing)
    return ""


def is_stale(plan: PolicyPlan) -> bool:
    """Whether what it was made for changed since, or is not there any more."""
    try:
        return base_digest(read_file(plan.proposal)) != plan.base_digest
    except CountersignError:
        return True


def apply_plan(digest: str, *, by: By) -> PolicyPlan:
    """Raises PlanNotApplied, after which nothing is changed."""
    plan = PolicyPlan.objects.filter(digest=digest).first()
    if plan is None:
        raise PlanNotApplied(_("There is no plan with this digest."))
    return _apply_or_record(plan, by, as_owner=False)


def apply_as_owner(text: str, *, origin: str = "") -> PolicyPlan:
    """For the host's command line alone: without confirmation, and recorded as such. Raises
    BadPolicyFile, NothingToPlan and PlanNotApplied."""
    plan = make_plan(text, by=None, origin=origin, calls=0)
    return _apply_or_record(plan, None, as_owner=True)


def _apply_or_record(plan: PolicyPlan, by: By, *, as_owner: bool) -> PolicyPlan:
    try:
        with transaction.atomic():
            return _apply(plan, by, as_owner=as_owner)
    except (CountersignError, ValidationError, OperationalError) as error:
        why = " ".join(said for _path, said in mistakes_of(error))
        record("policy.apply_failed", actor=acting(by), reason=why[:500], plan=plan.digest)
        kind = type(error) if isinstance(error, PlanNotApplied) else PlanNotApplied
        raise kind(why) from error


def _apply(plan: PolicyPlan, by: By, *, as_owner: bool) -> PolicyPlan:
    # Two who apply it at once: one waits here, and finds it applied.
    locked = PolicyPlan.objects.select_for_update().get(pk=plan.pk)
    if digest_of_plan(locked) != locked.digest:
        raise PlanNotApplied(_("The plan is not what its digest says."))
    if not as_owner and (why := why_not(locked)):
        raise PlanNotApplied(why)
    writing.lock(read_file(locked.proposal).wanted)
    file = read_file(locked.proposal)
    # By a newer version of Countersign, the same file may mean something else.
    found = [one.plain() for one in all_changes(file)]
    if base_digest(file) != locked.base_digest or digest_of(found) != digest_of(locked.changes):
        raise BaseMoved(_("What the plan was created for has changed since. Create a new plan."))
    writing.write(file.present, file.wanted, by=acting(by))
    writing.manage_parts(file.wanted, file.managed_by)
    return _note(locked, by, as_owner=as_owner)


def _note(plan: PolicyPlan, by: By, *, as_owner: bool) -> PolicyPlan:
    plan.applied_at, plan.applied_by = timezone.now(), acting(by).name
    plan.save(update_fields=["applied_at", "applied_by"])
    confirmed = [one.person.username for one in valid_confirmations(plan)]
    record(
        "policy.applied",
        actor=acting(by),
        plan=plan.digest,
        changes=len(plan.changes),
        managed_by=plan.managed_by,
        origin=plan.origin,
        confirmed_by=confirmed,
        as_owner=as_owner,
    )
    return plan
