"""Step-up by passkey, code or identity provider, where a rule needs more than a session."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from django.contrib.sessions.backends.base import SessionBase
from django.http import HttpRequest

from accounts import stepup
from accounts.attempts import TooManyAttempts
from accounts.models import Proof, User
from accounts.oidc import step_up as at_provider
from accounts.oidc.metadata import ProviderFailed
from accounts.oidc.providers import BadConfiguration
from accounts.passkeys import key_digest
from accounts.relying_party import expected_origins
from accounts.stepup import NotProven, Ticket
from approvals.eligibility import addressed, groups_of
from approvals.models import VOTE_STATEMENT, VOTES_STATEMENT, VOTES_STATEMENT_CALL, Approval, Vote
from approvals.services import DecisionRefused
from audit.names import named
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
    # Where they may confirm by signing in anew; empty where they may not.
    provider: str = ""
    # They did, and have to press Approve.
    is_confirmed: bool = False

    @property
    def takes_codes(self) -> bool:
        return self.wanted == StepUp.TOTP and self.codes

    @property
    def is_possible(self) -> bool:
        """They have a means for it, or need none."""
        return not self.wanted or self.passkeys or self.takes_codes or bool(self.provider)


NO_STEP = StepUpOptions(StepUp.NONE, passkeys=False, codes=False, origin="")


class ShownCall(NamedTuple):
    """A pending call as its approver was shown it."""

    call_id: UUID
    digest: str
    tool_name: str

    @classmethod
    def of(cls, approval: Approval) -> ShownCall:
        call = approval.call
        return cls(call.pk, call.call_digest, call.tool_name)


def steps(
    approvals: Iterable[Approval], person: User, session: SessionBase | None = None
) -> dict[UUID, StepUpOptions]:
    """Step-up options of the approvals for which this person needs step-up."""
    groups = person.group_names
    asked = {one: _strongest([one], person, groups) for one in approvals}
    wanted = {one: step_up for one, step_up in asked.items() if step_up}
    if not wanted:
        return {}
    passkeys, codes = person.proof_means
    origin = expected_origins()[0]
    return {
        one.pk: StepUpOptions(
            step_up, passkeys, codes, origin, *_there([ShownCall.of(one)], person, step_up, session)
        )
        for one, step_up in wanted.items()
    }


def joint_step(
    approvals: Sequence[Approval], person: User, session: SessionBase | None
) -> StepUpOptions:
    """Step-up options of one confirmation for all of these."""
    asked = _strongest(approvals, person, person.group_names)
    if not asked:
        return NO_STEP
    there = _there([ShownCall.of(one) for one in approvals], person, asked, session)
    return StepUpOptions(asked, *person.proof_means, expected_origins()[0], *there)


def _there(
    calls: Sequence[ShownCall], person: User, asked: StepUp, session: SessionBase | None
) -> tuple[str, bool]:
    """The provider at which they may confirm it, and whether they did."""
    if asked != StepUp.TOTP or session is None:
        return "", False
    if (at := at_provider.place(session, person)) is None:
        return "", False
    kept = at_provider.confirmation(session)
    is_this = kept is not None and kept.statement == at.whole(statement(calls, person, kept.ticket))
    return at.provider.label, is_this


def _strongest(approvals: Iterable[Approval], person: User, groups: Collection[str]) -> StepUp:
    """The strongest proof demanded by the thresholds that this user's votes count for."""
    asked = (threshold.step_up for one in approvals for threshold in addressed(one, person, groups))
    return max(asked, key=STRENGTH.index, default=StepUp.NONE)


def statement(calls: Sequence[ShownCall], person: User, ticket: Ticket, more: str = "") -> str:
    """The whole statement that is approved: its SHA-256 is what the passkey signs. The database
    reads the lines before the name (ProvenVote); `more`: further ones of these."""
    first = calls[0]
    if len(calls) == 1:
        head = VOTE_STATEMENT.format(
            vote="yes", person=person.pk, call=first.call_id, digest=first.digest
        )
    else:
        lines = [VOTES_STATEMENT_CALL.format(call=one.call_id, digest=one.digest) for one in calls]
        head = VOTES_STATEMENT.format(vote="yes", person=person.pk) + "".join(lines)
    return f"{head}{more}name: {person.username}\ntool: {first.tool_name}\n{ticket.lines}"


def offer(calls: Sequence[ShownCall], person: User, more: str = "") -> dict[str, Any]:
    ticket = Ticket.new()
    return stepup.offer(person, ticket, statement(calls, person, ticket, more))


def prove_break_glass(
    approval: Approval, person: User, more: str, given: Mapping[str, str]
) -> Proof:
    """By passkey alone, of a statement with these lines. Raises DecisionRefused."""
    try:
        ticket = given.get("ticket", "")
        said = statement([ShownCall.of(approval)], person, stepup.read_ticket(ticket), more)
        return stepup.prove(person, said, ticket=ticket, answer=given.get("answer", ""))
    except NotProven as error:
        raise DecisionRefused(str(error)) from error


def begin_at_provider(
    request: HttpRequest, approvals: Sequence[Approval], person: User, page: str
) -> str:
    """The URL at the provider where they confirm it, to come back to `page`. Raises
    DecisionRefused."""
    if _strongest(approvals, person, groups_of(person)) != StepUp.TOTP:
        raise DecisionRefused(_("The rule asks you to confirm by a passkey. No code will do."))
    said = statement([ShownCall.of(one) for one in approvals], person, Ticket.new())
    try:
        return at_provider.begin(request, person, said, next_page=page)
    except (NotProven, ProviderFailed, BadConfiguration) as error:
        raise DecisionRefused(str(error)) from error


def prove(
    approvals: Sequence[Approval], calls: Sequence[ShownCall], person: User, request: HttpRequest
) -> Proof | None:
    """Verifies and stores the proof that rules need for approving these; None if they need none.

    `calls`: all that were confirmed together, as they were shown; some of them may not be among
    the approvals any more. Raises DecisionRefused.
    """
    asked = _strongest(approvals, person, groups_of(person))
    if not asked:
        return None
    try:
        return _prove(calls, person, request, asked)
    except (NotProven, TooManyAttempts) as error:
        raise DecisionRefused(str(error)) from error


def _prove(calls: Sequence[ShownCall], person: User, request: HttpRequest, asked: StepUp) -> Proof:
    given = request.POST
    answer, code = given.get("answer", ""), given.get("code", "").strip()
    if answer:
        ticket = given.get("ticket", "")
        said = statement(calls, person, stepup.read_ticket(ticket))
        return stepup.prove(person, said, ticket=ticket, answer=answer)
    if code and asked == StepUp.TOTP:
        return stepup.prove_by_code(person, statement(calls, person, Ticket.new()), code=code)
    if asked == StepUp.TOTP and (kept := at_provider.confirmation(request.session)):
        return at_provider.prove(request, person, statement(calls, person, kept.ticket))
    if asked == StepUp.TOTP:
        raise NotProven(_("The rule asks you to confirm by a passkey, or by a code of your app."))
    raise NotProven(_("The rule asks you to confirm by a passkey. No code will do."))


def problem(proof: Proof, votes: Iterable[Vote]) -> str:
    """Checks a kept proof again, from its rows alone; what is wrong, or nothing. Without a vote it
    was confirmed, and then not taken: somebody else was first."""
    if why := stepup.problem(proof) or _other_key(proof):
        return why
    is_good = all(_is_of(vote, proof.statement) for vote in votes)
    return "" if is_good else _("it stands under another vote")


def _is_of(vote: Vote, confirmed: str) -> bool:
    """Whether the statement names this vote, by the rule of the trigger ProvenVote."""
    said, person = "yes" if vote.approve else "no", vote.person_id
    call, digest = vote.approval_id, vote.seen_digest
    if confirmed.startswith(
        VOTE_STATEMENT.format(vote=said, person=person, call=call, digest=digest)
    ):
        return True
    head, _name, _rest = confirmed.partition("name: ")
    line = "\n" + VOTES_STATEMENT_CALL.format(call=call, digest=digest)
    return head.startswith(VOTES_STATEMENT.format(vote=said, person=person)) and line in head


def _other_key(proof: Proof) -> str:
    """A key that somebody put in the place of the one that was recorded: when a passkey was added,
    or something was confirmed at a provider."""
    if proof.method == Proof.Method.OIDC:
        return _other_provider_key(proof)
    if proof.passkey is None:
        return ""
    known = _recorded("passkey.added", "public_key", passkey_id=proof.passkey.pk)
    if known is not None and known != key_digest(proof.passkey):
        return _("the passkey is not the one that was added")
    return ""


def _recorded(action: str, detail: str, **about: object) -> str | None:
    """A detail of the first entry about this; None where there is none, or it was forgotten."""
    rows = named({"action": action}).in_order(newest=False)
    first = rows.filter(details__contains=about).values_list("details", flat=True).first()
    return first.get(detail) if first else None


def _other_provider_key(proof: Proof) -> str:
    known = _recorded("step_up.confirmed", "key", proof=proof.statement_digest)
    if known is not None and known != stepup.key_digest(orjson.loads(proof.assertion)["key"]):
        return _("the key is not the one with which the provider signed")
    return ""
