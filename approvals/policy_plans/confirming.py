"""A person confirms a plan that they opened in the console, with a second factor of their own."""

from __future__ import annotations

from django.db import IntegrityError, transaction
from django.http import QueryDict

from accounts import stepup
from accounts.models import Proof, User
from accounts.permission_names import PERMISSION_NAMES
from accounts.stepup import NotProven, Ticket
from approvals.policy_plans.applying import PlanNotApplied, is_stale, permissions_of, why_not
from audit.services import record
from core.english import gettext as _
from policies.models import PlanConfirmation, PolicyPlan


def statement(plan: PolicyPlan, by: User, ticket: Ticket) -> str:
    head = f"Countersign: confirm a plan of a policy file\nplan: {plan.digest}\n"
    return f"{head}changes: {len(plan.changes)}\nby: {by.username}\n{ticket.lines}"


def why_not_confirm(plan: PolicyPlan, by: User) -> str:
    """Why `by` cannot confirm it, as a sentence; empty if they can."""
    if plan.confirmations.filter(person=by).exists():
        return _("You confirmed this plan.")
    if missing := [name for name in permissions_of(plan) if not by.has_perm(name)]:
        said = _("You do not have the permission “%s”, which this plan takes.")
        return said % _(PERMISSION_NAMES[missing[0]])
    return ""


def confirm(plan: PolicyPlan, by: User, given: QueryDict) -> PlanConfirmation:
    """`given`: the form's, with the passkey's answer or the code. Raises NotProven,
    TooManyAttempts and PlanNotApplied."""
    if why := why_not_confirm(plan, by):
        raise PlanNotApplied(why)
    if plan.applied_at is not None:
        raise PlanNotApplied(why_not(plan))
    if is_stale(plan):
        raise PlanNotApplied(
            _("What the plan was created for has changed since. Create a new plan.")
        )
    return _keep(plan, by, _prove(plan, by, given))


def _prove(plan: PolicyPlan, by: User, given: QueryDict) -> Proof:
    if answer := given.get("answer", ""):
        ticket = given.get("ticket", "")
        said = statement(plan, by, stepup.read_ticket(ticket))
        return stepup.prove(by, said, ticket=ticket, answer=answer)
    if code := given.get("code", "").strip():
        return stepup.prove_by_code(by, statement(plan, by, Ticket.new()), code=code)
    raise NotProven(_("Confirm with a passkey or a code of your own."))


def _keep(plan: PolicyPlan, by: User, proof: Proof) -> PlanConfirmation:
    try:
        with transaction.atomic():
            made = PlanConfirmation.objects.create(plan=plan, person=by, proof=proof)
            digest = proof.statement_digest
            record("policy.confirmed", actor=by.actor, plan=plan.digest, proof=digest)
    except IntegrityError as error:
        raise PlanNotApplied(_("You confirmed this plan.")) from error
    return made
