"""Step-up by passkey or code, where a rule needs more than a session."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from accounts import stepup
from accounts.attempts import TooManyAttempts
from accounts.models import Proof, User
from accounts.passkeys import key_digest
from accounts.relying_party import expected_origins
from accounts.stepup import NotProven, Ticket
from approvals.eligibility import addressed, groups_of
from approvals.models import VOTE_STATEMENT, Approval, Vote
from approvals.services import DecisionRefused
from audit.models import Entry
from core.english import gettext as _
from policies.thresholds import StepUp

STRENGTH = [StepUp.NONE, StepUp.TOTP, StepUp.PASSKEY]


@dataclass(frozen=True, slots=True)
class StepUpOptions:
    """The step-up that this person's approval needs, and their means for it."""

    wanted: StepUp
    passkeys: bool
    codes: bool
    origin: str

    @property
    def takes_codes(self) -> bool:
        return self.wanted == StepUp.TOTP and self.codes


NO_STEP = StepUpOptions(StepUp.NONE, passkeys=False, codes=False, origin="")


def steps(approvals: Iterable[Approval], person: User) -> dict[UUID, StepUpOptions]:
    """Step-up options of the approvals for which this person needs step-up."""
    asked = {one.pk: _strongest(one, person, person.group_names) for one in approvals}
    wanted = {pk: step_up for pk, step_up in asked.items() if step_up}
    if not wanted:
        return {}
    passkeys, codes = person.proof_means
    origin = expected_origins()[0]
    return {pk: StepUpOptions(step_up, passkeys, codes, origin) for pk, step_up in wanted.items()}


def _wanted(approval: Approval, person: User) -> StepUp:
    return _strongest(approval, person, groups_of(person))


def _strongest(approval: Approval, person: User, groups: Collection[str]) -> StepUp:
    """The strongest proof demanded by the thresholds that this user's vote counts for."""
    asked = (threshold.step_up for threshold in addressed(approval, person, groups))
    return max(asked, key=STRENGTH.index, default=StepUp.NONE)


def statement(approval: Approval, person: User, ticket: Ticket) -> str:
    """The whole statement that is approved: its SHA-256 is what the passkey signs. The database
    reads its first lines (ProvenVote)."""
    call = approval.call
    head = VOTE_STATEMENT.format(
        vote="yes", person=person.pk, call=call.pk, digest=call.call_digest
    )
    return f"{head}name: {person.username}\ntool: {call.tool_name}\n{ticket.lines}"


def offer(approval: Approval, person: User) -> dict[str, Any]:
    ticket = Ticket.new()
    return stepup.offer(person, ticket, statement(approval, person, ticket))


def prove(approval: Approval, person: User, given: Mapping[str, str]) -> Proof | None:
    """Verifies and stores the proof that the rule needs for an approval; None if it needs none.

    Raises DecisionRefused.
    """
    asked = _wanted(approval, person)
    if not asked:
        return None
    try:
        return _prove(approval, person, given, asked)
    except (NotProven, TooManyAttempts) as error:
        raise DecisionRefused(str(error)) from error


def _prove(approval: Approval, person: User, given: Mapping[str, str], asked: StepUp) -> Proof:
    answer, code = given.get("answer", ""), given.get("code", "").strip()
    if answer:
        ticket = given.get("ticket", "")
        said = statement(approval, person, stepup.read_ticket(ticket))
        return stepup.prove(person, said, ticket=ticket, answer=answer)
    if code and asked == StepUp.TOTP:
        return stepup.prove_by_code(person, statement(approval, person, Ticket.new()), code=code)
    if asked == StepUp.TOTP:
        raise NotProven(_("The rule asks you to confirm by a passkey, or by a code of your app."))
    raise NotProven(_("The rule asks you to confirm by a passkey. No code will do."))


def problem(proof: Proof, vote: Vote | None) -> str:
    """Checks a kept proof again, from its rows alone; what is wrong, or nothing."""
    if why := stepup.problem(proof) or _other_key(proof):
        return why
    if vote is None:
        # Confirmed, and then not taken: somebody else was first.
        return ""
    head = VOTE_STATEMENT.format(
        vote="yes" if vote.approve else "no",
        person=vote.person_id,
        call=vote.approval_id,
        digest=vote.seen_digest,
    )
    return "" if proof.statement.startswith(head) else _("it stands under another vote")


def _other_key(proof: Proof) -> str:
    """A passkey that somebody put in the place of the one that was recorded when it was added."""
    if proof.passkey is None:
        return ""
    added = Entry.objects.filter(
        action="passkey.added", details__passkey_id=proof.passkey.pk
    ).first()
    # The details may have been forgotten.
    known = added.details.get("public_key") if added is not None else None
    if known is not None and known != key_digest(proof.passkey):
        return _("the passkey is not the one that was added")
    return ""
