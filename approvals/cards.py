"""Approval cards: facts of ours, and claims marked as claims."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.sessions.backends.base import SessionBase

from accounts import role_changes
from accounts.models import RoleChange, User
from approvals import eligibility, history, step_up_proofs
from approvals.break_glass import is_offered
from approvals.budgets import why_kept_pending
from approvals.comments import Discussion, discussions
from approvals.copied_texts import NOT_ASKED, CopiedTexts, find_copied
from approvals.eligibility import EligibilityFacts
from approvals.history import Past, PastCall, PastDecision
from approvals.models import Approval
from approvals.reasons import SHORT
from approvals.risk import Risk, risk
from approvals.risk_history import (
    NO_HISTORY,
    Histories,
    RiskHistory,
    histories,
    pending_pairs,
)
from approvals.second_accounts import second_accounts
from approvals.services import why_stopped
from approvals.statements import is_statement
from approvals.step_up_proofs import StepUpOptions
from approvals.votes import VoteSummary, pictures
from calls import pauses
from calls.chain import ChainLink, chain_of, credential_name
from calls.content.amendments import Amendments, edited, edits_of
from calls.freezes import FreezeBook
from calls.models import Amendment, Call
from calls.record.states import State
from policies.flow import Flow, FlowQuestion
from policies.lookback import read_flows
from registry.labels import Label
from registry.schemas.arguments import Arguments, arguments


@dataclass(frozen=True, slots=True)
class DuplicateOf:
    """Its agent asks on purpose for the same again; `call`: the one before, as far as known."""

    call: Call | None


@dataclass(frozen=True, slots=True)
class Card:
    approval: Approval
    call: Call
    arguments: Arguments
    risk: Risk
    rule: str
    # Others that ask because of how the arguments were edited, each with its reason.
    more_rules: Sequence[tuple[str, str]]
    # The agent's last calls before this one, and decisions on calls like it.
    before: list[PastCall]
    similar: list[PastDecision]
    # Why this person may not decide; empty if they may.
    obstacle: str
    votes: VoteSummary
    talk: Discussion
    # What people made of the arguments.
    edited: Amendments | None
    # What this person's yes asks for beyond the session.
    step: StepUpOptions
    # The emergency stop or pause under which nobody can approve it; empty without one.
    stopped: str = ""
    # Why this person may deny and not approve.
    only_denies: str = ""
    # The budget for which it is pending although its votes suffice.
    over_budget: str = ""
    again: DuplicateOf | None = None
    # This person has a part in the call, and decides on it because nobody else may.
    single_person: bool = False
    # Who got or lost a role that decides, or says who does, in the last days.
    newcomers: Sequence[RoleChange] = ()
    # Who may be one person with somebody who has a part in the call, and is not refused.
    second_accounts: Sequence[str] = ()
    # What its agent read before it asked to send outside, and which of its texts stood there.
    flow: Flow | None = None
    copied: CopiedTexts = NOT_ASKED
    # Whose credential the call carries to its server.
    credential: str = ""
    # Who acts for whom, and by which token and credential.
    chain: Sequence[ChainLink] = ()
    # This person is shown the way to break the glass.
    may_break_glass: bool = False
    # Why what they just pressed was not done, and what they had written.
    error: str = ""
    typed: str = ""

    @property
    def waits(self) -> bool:
        return self.approval.state == Approval.State.WAITING

    @property
    def is_queued(self) -> bool:
        return self.call.state == State.QUEUED and self.call.start_by is not None

    @property
    def left_s(self) -> float | None:
        return left_s(self.approval)

    @property
    def reasons(self) -> list[tuple[str, str]]:
        return [(name, str(short)) for name, short in SHORT.items()]

    @property
    def hints(self) -> dict[str, bool]:
        return self.call.definition.hints if self.call.definition else {}


@dataclass(frozen=True, slots=True)
class CardNews:
    """The parts of a pending card that change while it is shown."""

    approval: Approval
    votes: VoteSummary
    talk: Discussion
    stopped: str

    @property
    def waits(self) -> bool:
        return self.approval.state == Approval.State.WAITING

    @property
    def left_s(self) -> float | None:
        return left_s(self.approval)


def left_s(approval: Approval) -> float | None:
    """To decide, once the emergency stop that covers it has ended; None without one."""
    stopped_at = approval.call.clock_stopped_at
    return (approval.decide_by - stopped_at).total_seconds() if stopped_at else None


def news(approvals: Sequence[Approval], person: User) -> list[CardNews]:
    if not approvals:
        return []
    facts = eligibility.facts([approval.pk for approval in approvals])
    votes, said = pictures(approvals, person, facts), discussions(approvals, person, facts)
    stops = _stops(facts)
    return [
        CardNews(one, votes[one.pk], said[one.pk], why_stopped(one, stops)) for one in approvals
    ]


def card(
    approval: Approval,
    person: User,
    *,
    past: Histories | None = None,
    error: str = "",
    typed: str = "",
    session: SessionBase | None = None,
) -> Card:
    """`past`: what the list beside it knows already; `session`: the one that would approve it."""
    return _cards([approval], person, past, error, typed, session)[0]


def cards(
    approvals: Iterable[Approval], person: User, *, session: SessionBase | None = None
) -> list[Card]:
    """Cards of these approvals, with a constant number of queries."""
    approvals = list(approvals)
    # At most rings, nothing that a page shows was decided.
    return _cards(approvals, person, None, "", "", session) if approvals else []


def _cards(
    approvals: list[Approval],
    person: User,
    past: Histories | None,
    error: str,
    typed: str,
    session: SessionBase | None = None,
) -> list[Card]:
    ids = [approval.pk for approval in approvals]
    known = _facts_of(approvals, ids, person, past, session)
    return [_card(approval, known, person, error, typed) for approval in approvals]


@dataclass(frozen=True, slots=True)
class CardFacts:
    """The facts for all cards of a page, read at once."""

    facts: dict[UUID, EligibilityFacts]
    past: dict[UUID, Past]
    risk_histories: Histories
    votes: dict[UUID, VoteSummary]
    talks: dict[UUID, Discussion]
    steps: dict[UUID, StepUpOptions]
    again: dict[UUID, DuplicateOf]
    edits: dict[UUID, list[Amendment]]
    role_changes: list[RoleChange]
    stops: FreezeBook
    second_accounts: dict[UUID, list[str]]
    flows: dict[UUID, Flow]


def _facts_of(
    approvals: list[Approval],
    ids: list[UUID],
    person: User,
    past: Histories | None,
    session: SessionBase | None,
) -> CardFacts:
    facts = eligibility.facts(ids)
    waiting = [one for one in approvals if one.state == one.State.WAITING]
    return CardFacts(
        facts,
        history.past(ids),
        histories(pending_pairs(ids)) if past is None else past,
        pictures(approvals, person, facts),
        discussions(approvals, person, facts),
        step_up_proofs.steps(waiting, person, session),
        _duplicates(facts),
        _edits(approvals),
        _role_changes(facts),
        _stops(facts),
        second_accounts(facts),
        _flows(waiting),
    )


def _flows(waiting: list[Approval]) -> dict[UUID, Flow]:
    """Reads what agents read before they asked to send outside."""
    calls = [one.call for one in waiting if one.call.tool and Label.SINK in one.call.tool.labels]
    asked = [FlowQuestion(one.agent_id, one.pk, one.asked_at) for one in calls]
    found = read_flows(asked)
    return {call_id: flow for call_id, flow in found.items() if flow.is_tainted}


def _role_changes(facts: dict[UUID, EligibilityFacts]) -> list[RoleChange]:
    return role_changes.recent() if any(one.has_role_changes for one in facts.values()) else []


def _stops(facts: dict[UUID, EligibilityFacts]) -> FreezeBook:
    return pauses.load() if any(one.is_anything_stopped for one in facts.values()) else FreezeBook()


def _edits(approvals: list[Approval]) -> dict[UUID, list[Amendment]]:
    changed = [one.pk for one in approvals if one.call.amendment_id is not None]
    return edits_of(changed) if changed else {}


def _duplicates(facts: dict[UUID, EligibilityFacts]) -> dict[UUID, DuplicateOf]:
    meant = {call_id: known.again for call_id, known in facts.items() if known.again is not None}
    if not meant:
        return {}
    earlier = Call.objects.in_bulk([UUID(one) for one in meant.values() if one])
    return {pk: DuplicateOf(earlier.get(UUID(one)) if one else None) for pk, one in meant.items()}


def _card(approval: Approval, known: CardFacts, person: User, error: str, typed: str) -> Card:
    call, pk = approval.call, approval.pk
    given, past = call.exact_arguments, known.past.get(pk, history.NOTHING)
    facts, votes = known.facts[pk], known.votes[pk]
    return Card(
        approval=approval,
        call=call,
        arguments=arguments(_schema(call), given),
        risk=risk(call, given, _risk_history(approval, known)),
        rule=facts.rule,
        more_rules=_more_rules(facts),
        before=past.calls,
        similar=past.decisions,
        obstacle=eligibility.hindrance(
            approval, person, facts.excluded, votes.own, person.group_names
        ),
        votes=votes,
        talk=known.talks[pk],
        edited=edited(call, known.edits.get(pk)),
        step=known.steps.get(pk, step_up_proofs.NO_STEP),
        stopped=why_stopped(approval, known.stops),
        only_denies=facts.only_deny.get(person.pk, ""),
        # Mostly votes are missing, and then nothing is asked.
        over_budget=why_kept_pending(approval) if votes.may_suffice else "",
        again=known.again.get(pk),
        single_person=facts.single_person and person.pk in facts.parties - set(facts.excluded),
        newcomers=_newcomers(known.role_changes, approval, votes),
        second_accounts=_second_accounts(known.second_accounts.get(pk, []), approval, votes),
        flow=known.flows.get(pk),
        copied=_copied(call, given, known.flows.get(pk)),
        chain=chain_of(call, facts.signed_in, facts.credential, _approvers(votes)),
        credential=credential_name((facts.credential or {}).get("owner", "")),
        # Never for one's own agent or a statement: the page would only say so.
        may_break_glass=is_offered(person)
        and person.pk not in {*facts.parties, *facts.excluded}
        and not is_statement(call),
        error=error,
        typed=typed,
    )


def _approvers(votes: VoteSummary) -> list[tuple[str, str]]:
    approving = [given.vote for given in votes.given if given.vote.approve]
    return [(vote.person.shown_name, vote.step_up) for vote in approving]


def _risk_history(approval: Approval, known: CardFacts) -> RiskHistory:
    """Nothing once it was decided: the call itself and later ones would count."""
    if approval.state != Approval.State.WAITING:
        return NO_HISTORY
    pair = approval.call.agent_id, approval.call.tool_id
    return known.risk_histories.get(pair, NO_HISTORY)


def _copied(call: Call, given: Any, flow: Flow | None) -> CopiedTexts:
    return find_copied(call, given) if flow and (flow.untrusted or flow.unread) else NOT_ASKED


def _more_rules(facts: EligibilityFacts) -> Sequence[tuple[str, str]]:
    """Each once; the one that held the call is named anyway."""
    return [one for one in dict.fromkeys(facts.asked_of_edits) if one[0] != facts.rule]


def _newcomers(
    changes: list[RoleChange], approval: Approval, votes: VoteSummary
) -> Sequence[RoleChange]:
    """All while it waits; of what was decided, those of who voted."""
    if approval.state == Approval.State.WAITING:
        return changes
    voted = {given.vote.person_id for given in votes.given}
    return [change for change in changes if change.person_id in voted]


def _second_accounts(names: list[str], approval: Approval, votes: VoteSummary) -> Sequence[str]:
    if approval.state == Approval.State.WAITING:
        return names
    voted = {given.vote.person.shown_name for given in votes.given}
    return [name for name in names if name in voted]


def _schema(call: Call) -> dict[str, Any]:
    content: dict[str, Any] = call.definition.content if call.definition else {}
    return content.get("inputSchema") or {}
