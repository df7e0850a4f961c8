"""Making a standing grant from a call that one approved, and taking it back."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _shown
from django.utils.translation import ngettext

from accounts.actors import By, account_of, acting
from accounts.models import User
from approvals import bounds, eligibility
from approvals.bounds import Bound, Path, Pattern
from approvals.grants import pattern
from approvals.models import MOST_DAYS, Approval, BreakGlass, Grant, GrantUse, Vote
from approvals.prefixes import is_path
from audit.models import ClockTime
from audit.services import record
from calls.basis import judged
from calls.models import Call
from core import exact_json
from core.english import gettext as _
from core.errors import CountersignError
from core.live import notify_on_commit
from policies.decide import Decision
from policies.models import Effect, Rule
from policies.thresholds import plain, stored
from registry.publishing import published_catalogue
from registry.schemas.violations import json_path

MOST_USES = 1000
LOOKED_BACK = 50


class GrantRefused(CountersignError):
    """It cannot be made, or not like this; says why."""


@dataclass(frozen=True, slots=True)
class Terms:
    """`start`, `end`: minutes of the day in the maker's time zone."""

    bounds: tuple[Bound, ...] = ()
    max_uses: int = 20
    days_valid: int = 7
    sum_path: Path | None = None
    max_sum: Decimal | None = None
    days: frozenset[int] = frozenset()
    start: int = 0
    end: int = 24 * 60
    note: str = ""


@dataclass(frozen=True, slots=True)
class PastDecisions:
    """The maker's past decisions on this agent and tool that the grant would have covered."""

    approved: int
    of_approved: int
    refused: int
    of_refused: int

    def __str__(self) -> str:
        said = ngettext(
            "It would have matched %(n)d of your %(of)d approval of this tool for this",
            "It would have matched %(n)d of your last %(of)d approvals of this tool for this",
            self.of_approved,
        )
        yes = said % {"n": self.approved, "of": self.of_approved}
        if not self.of_refused:
            return yes + _shown(" agent; you denied none.")
        if not self.refused:
            return yes + _shown(" agent, and none that you denied.")
        no = ngettext(
            " agent, and %(n)d of the %(of)d call that you denied.",
            " agent, and %(n)d of the %(of)d calls that you denied.",
            self.of_refused,
        )
        return yes + no % {"n": self.refused, "of": self.of_refused}


@dataclass(slots=True)
class Proposal:
    """Everything that is known before a grant is made."""

    terms: Terms
    past: PastDecisions
    warnings: list[str] = field(default_factory=list)


def why_not(call: Call, person: User) -> str:
    """Why this person may make no grant from this call, as a sentence; empty if they may."""
    approval = Approval.objects.filter(pk=call.pk).first()
    if approval is None or approval.state != Approval.State.APPROVED:
        return _("A standing approval is created from a call that was approved.")
    if BreakGlass.objects.filter(approval=approval).exists():
        return _("Break-glass is for one call: no standing approval is created from it.")
    yeses = list(approval.standing.filter(approve=True))
    if [vote.person_id for vote in yeses] != [person.pk]:
        return _(
            "A standing approval is one person's: only who approved the call alone can create one."
        )
    if _needs_widening(approval):
        return _(
            "It was not approved by the approvers that the rule asks first, so it cannot be "
            "used for a standing approval."
        )
    # Alone in single-person mode or not: no yes in advance for one's own agent.
    own = eligibility.parties(call) | eligibility.excluded_people(call)
    if said := own.get(person.pk):
        return said
    if call.tool is None or call.definition_id != call.tool.published_id:
        return _("The tool's definition changed since: approve a newer call first.")
    if not yeses[0].step_up and _confirms_grants(call):
        return _(
            "A rule wants standing approvals from those who confirmed with a passkey or a code."
        )
    return ""


def _needs_widening(approval: Approval) -> bool:
    """Do its votes suffice only since thresholds that count late do?"""
    first = [one for one in approval.thresholds if not one.get("after_min")]
    if len(first) == len(approval.thresholds):
        return False
    return eligibility.decided(approval.pk, first) != Approval.State.APPROVED


def _confirms_grants(call: Call) -> bool:
    """Does a rule that asks about the call, then or now, leave granting to those who confirmed?"""
    rule = Rule.objects.filter(pk=call.rule_id).first() if call.rule_id else None
    if rule is not None and rule.confirm_grants:
        return True
    tool = published_catalogue.one(call.tool_id) if call.tool_id else None
    return tool is not None and judged(call, tool, call.to_send).confirm_grants


def considered(call: Call, terms: Terms, *, by: User) -> Proposal:
    """Raises GrantRefused for terms that make no grant of this call."""
    _check(call, terms)
    pinned = pattern(call.to_send, terms.bounds)
    proposal = Proposal(terms, _past(call, pinned, by))
    for bound in terms.bounds:
        # Of a path whole parts are compared.
        ends = bound.prefix.endswith((" ", ":", "@", "-")) or is_path(bound.prefix)
        if bound.kind == bounds.PREFIX and not ends:
            said = _("%(what)s also covers whatever goes on from there, such as %(such)s.")
            such = exact_json.literal(bound.prefix + "x")
            proposal.warnings.append(said % {"what": bound, "such": such})
    return proposal


def _check(call: Call, terms: Terms) -> None:
    if not 1 <= terms.max_uses <= MOST_USES:
        raise GrantRefused(_("It is for 1 to %(most)d uses.") % {"most": MOST_USES})
    if not 1 <= terms.days_valid <= MOST_DAYS:
        raise GrantRefused(_("It holds for 1 to %(most)d days.") % {"most": MOST_DAYS})
    if not 0 <= terms.start < terms.end <= 24 * 60:
        raise GrantRefused(_("The window begins before it ends, on the same day."))
    document = exact_json.loads(call.to_send)
    if not pattern(call.to_send, terms.bounds).covers(document):
        raise GrantRefused(_uncovered(document, terms.bounds))
    if (terms.sum_path is None) != (terms.max_sum is None):
        raise GrantRefused(_("A sum needs both an argument and a most."))
    if terms.sum_path is not None and terms.max_sum is not None:
        _check_sum(document, terms.sum_path, terms.max_sum)


def _uncovered(document: Any, vary: Iterable[Bound]) -> str:
    wrong = next(b for b in vary if not _holds(b, document))
    said = _("The call that you approved would not be covered: %(what)s.") % {"what": wrong}
    if wrong.kind != bounds.PREFIX or not is_path(str(bounds.at(document, wrong.path))):
        return said
    return said + " " + _("Of a path or an address, give whole parts, such as reports/2026.")


def _holds(bound: Bound, document: Any) -> bool:
    approved = bounds.at(document, bound.path)
    return bound.holds(approved, approved)


def _check_sum(document: Any, path: Path, most: Decimal) -> None:
    if bounds.amount(document, path) is None:
        said = _("%(at)s is no number that can be added up.")
        raise GrantRefused(said % {"at": json_path(path)})
    if not 0 < most < Decimal(10) ** 18:
        raise GrantRefused(_("The sum is a positive number."))


def _past(call: Call, pinned: Pattern, by: User) -> PastDecisions:
    votes = Vote.objects.standing().filter(
        person=by, approval__call__agent=call.agent_id, approval__call__tool=call.tool_id
    )
    votes = votes.select_related("approval__call__amendment").order_by("-pk")
    approved = [v.approval.call for v in votes.filter(approve=True)[:LOOKED_BACK]]
    refused = [v.approval.call for v in votes.filter(approve=False)[: 4 * LOOKED_BACK]]
    return PastDecisions(
        _covered(call, pinned, approved),
        len(approved),
        _covered(call, pinned, refused),
        len(refused),
    )


def _covered(made_from: Call, pinned: Pattern, others: Iterable[Call]) -> int:
    return sum(
        1
        for other in others
        if other.definition_id == made_from.definition_id
        and pinned.covers(exact_json.loads(other.to_send))
    )


@transaction.atomic
def make(call: Call, terms: Terms, *, by: User) -> Grant:
    """Raises GrantRefused."""
    if obstacle := why_not(call, by):
        raise GrantRefused(obstacle)
    _check(call, terms)
    assert call.tool is not None
    assert call.definition is not None
    approval = Approval.objects.get(pk=call.pk)
    grant = Grant.objects.create(
        call=call,
        agent_id=call.agent_id,
        tool=call.tool,
        definition=call.definition,
        owner=by,
        arguments=call.to_send,
        bounds=[bound.plain() for bound in terms.bounds],
        thresholds=plain(stored(approval.thresholds)),
        step_up=approval.standing.get(approve=True).step_up,
        max_uses=terms.max_uses,
        sum_path=None if terms.sum_path is None else list(terms.sum_path),
        max_sum=terms.max_sum,
        days=sorted(terms.days),
        start_minute=terms.start,
        end_minute=terms.end,
        time_zone=by.time_zone,
        note=terms.note,
        # By the clock that its end is compared with.
        expires_at=ClockTime() + timedelta(days=terms.days_valid),
    )
    grant.refresh_from_db(fields=["expires_at", "created_at"])
    _record("grant.made", grant, by, bounds=[str(bound) for bound in terms.bounds])
    return grant


@transaction.atomic
def revoke(grant: Grant, *, by: By) -> bool:
    """Within a second no process goes by it; what waits for a worker is not sent. False: it was
    revoked before."""
    gone = Grant.objects.filter(pk=grant.pk, revoked_at=None)
    if not gone.update(revoked_at=ClockTime(), revoked_by=account_of(by)):
        return False
    _record("grant.revoked", grant, by, uses=grant.uses)
    notify_on_commit("queue")
    return True


def revoke_all(grants: Iterable[Grant], *, by: User) -> int:
    return sum(revoke(grant, by=by) for grant in grants)


def may_revoke(grant: Grant, person: User) -> bool:
    return grant.owner_id == person.pk or person.has_perm("approvals.revoke_grant")


def _record(action: str, grant: Grant, by: By, **details: Any) -> None:
    record(
        action,
        actor=acting(by),
        reason=grant.note,
        call_id=grant.call_id,
        agent=(grant.agent_id, grant.agent.name),
        tool=grant.tool.exposed_name,
        definition_digest=grant.definition.digest,
        grant=grant.pk,
        max_uses=grant.max_uses,
        expires_at=grant.expires_at.isoformat(),
        **details,
    )


def obstacle(call: Call, decision: Decision) -> str:
    """At the claim of a call that rules asked about and nobody decided: does its grant stand?"""
    if call.effect != Effect.ASK or Approval.objects.filter(pk=call.pk).exists():
        return ""
    use = GrantUse.objects.filter(pk=call.pk).select_related("grant__owner").first()
    if use is None:
        return _("Nobody approved the call.")
    grant = use.grant
    if grant.revoked_at is not None:
        return _("The standing approval that let it run was revoked.")
    if not Grant.objects.trusted().filter(pk=grant.pk).exists():
        return _("Who granted it may no longer decide.")
    if grant.owner_id in eligibility.parties(call) | eligibility.excluded_people(call):
        return _("Who granted it has a part in this call.")
    if decision.effect == Effect.ASK and stored(grant.thresholds) != decision.thresholds:
        return _("Policy now requires others than the standing approval covers.")
    return ""
