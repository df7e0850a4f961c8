"""Disabling and enabling a user: the one way, for administrators and for identity providers.

What a user had when they were disabled does not come back with the account: sessions and sign-in
links (accounts/services.py), tokens of their agents, tokens of service accounts that they issued,
votes, standing approvals, and open calls.
"""

from __future__ import annotations

from contextlib import suppress

from django.db import transaction
from django.utils import timezone

from accounts import service_accounts
from accounts import services as accounts
from accounts.actors import By, acting
from accounts.models import AgentToken, ServiceToken, User
from approvals import denials, standing_approvals
from approvals.models import Approval, Grant, Vote
from approvals.services import DecisionRefused, fall, lock, reconsider
from audit.services import Actor, record
from calls import pauses
from calls import services as calls
from calls.models import Call
from calls.record.states import State
from core.english import gettext as _
from core.live import notify_on_commit


@transaction.atomic
def set_active(person: User, active: bool, *, by: By, reason: str = "") -> bool:
    """False if it was so before. Raises AccountRefused."""
    locked = User.objects.select_for_update(no_key=True).get(pk=person.pk)
    if locked.is_active == active:
        return False
    if active:
        # A vote may have been cast, or a token issued, at the moment of disabling.
        _end_rights(locked, by)
    accounts.set_active(person, active, by=by, reason=reason)
    if not active:
        _end_rights(locked, by)
    return True


def _end_rights(person: User, by: By) -> None:
    why = _("The account of “%s” was disabled.") % person.username
    tokens = AgentToken.objects.filter(agent__owner=person, revoked_at=None)
    for token in tokens.filter(expires_at__gt=timezone.now()).select_related("agent"):
        accounts.revoke_token(token, by=by, reason=why)
    # Whoever made one has seen it.
    seen = ServiceToken.objects.filter(created_by=person, revoked_at=None)
    for shown in seen.filter(expires_at__gt=timezone.now()).select_related("account__created_by"):
        service_accounts.revoke_token(shown, by=by, reason=why)
    grants = Grant.objects.not_ended().filter(owner=person)
    for grant in grants.select_related("agent", "tool", "definition").order_by("pk"):
        standing_approvals.revoke(grant, by=by)
    if pauses.why_undeclared():
        # The declaration of the restored database ends every open call.
        return
    for vote in _open_votes(person):
        _void(vote, by, why)
    _end_calls(person, acting(by))


def _open_votes(person: User) -> list[Vote]:
    given = Vote.objects.standing().filter(person=person, approval__state=Approval.State.WAITING)
    # In one order: two who disable at once never wait for each other.
    return list(given.select_related("approval__call__agent").order_by("approval_id"))


def _void(vote: Vote, by: By, why: str) -> None:
    approval = vote.approval
    # Where its time is over, the call expires.
    with suppress(DecisionRefused):
        lock(approval, for_take_back=True)
        fall(vote, Vote.Fallen.DISABLED)
        call = approval.call
        record(
            "approval.voided",
            actor=acting(by),
            reason=why,
            call_id=call.pk,
            agent=(call.agent_id, call.agent.name),
            tool=call.tool_name,
            person=vote.person.username,
            voter=vote.person_id,
            approve=vote.approve,
        )
        denials.end(approval)
        notify_on_commit("queue", "calls", f"call.{call.pk}")
        reconsider(approval)


def _end_calls(person: User, actor: Actor) -> None:
    """Calls of their agents: pending ones become superseded, queued ones are cancelled, and running
    ones are asked to stop."""
    live = Call.objects.live().filter(agent__owner=person).order_by("pk")
    for call_id, state in live.values_list("pk", "state"):
        if state != State.HELD:
            calls.cancel(call_id, by=actor)
            continue
        with suppress(DecisionRefused):
            reconsider(Approval(pk=call_id))
