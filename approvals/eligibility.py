"""Whose word counts, and what the votes come to.

What counts is the database's to say (approvals/sql/counting_votes.sql): the same functions are
asked when a vote is cast, when a call is decided, and at its claim.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

import orjson
from django.db import connection
from django.utils import timezone

from accounts import role_changes
from accounts.models import Agent, User
from approvals.changes import find_more
from approvals.models import Approval, BreakGlass, Vote
from calls import pauses
from calls.models import Call
from core import planned
from core.english import gettext as _
from core.english import ngettext
from policies.decide import Decision
from policies.models import Effect
from policies.thresholds import DECIDE, PERSON, Threshold, plain, stored

Thresholds = list[dict[str, Any]]

_WAS_HELD = "SELECT FROM approvals_approval WHERE call_id = %s"

# The rule is as entries know it: it may have another name by now, or be gone.
_FACTS = f"""
SELECT a.call_id,
    e.details ->> 'rule', e.details ->> 'again',
    e.details ->> 'signed_in', e.details ->> 'credential',
    (SELECT jsonb_agg(jsonb_build_array(x.person_id, x.why))
     FROM approvals_excluded(a.call_id) x)::text,
    (SELECT jsonb_agg(jsonb_build_array(c.place, c.vote_id, c.approve))
     FROM approvals_counted(a.call_id, a.thresholds) c)::text,
    approvals_single_person(),
    ARRAY(SELECT p.person_id FROM approvals_parties(a.call_id) p),
    EXISTS (SELECT FROM accounts_user u WHERE u.unconfirmed_until IS NOT NULL),
    EXISTS (SELECT FROM approvals_comment o WHERE o.approval_id = a.call_id),
    EXISTS (SELECT FROM accounts_rolechange r WHERE r.decided_at > %(since)s),
    {pauses.IS_ANYTHING_STOPPED},
    CASE WHEN c.amendment_id IS NOT NULL THEN (
        SELECT jsonb_agg(
            jsonb_build_array(x.details ->> 'rule', x.details ->> 'why') ORDER BY x.seq)
        FROM audit_entry x
        WHERE x.call_id = a.call_id AND x.seq > 1 AND x.details ? 'why') END::text,
    CASE WHEN a.state = 'waiting' THEN (
        SELECT jsonb_agg(jsonb_build_array(d.delegator_id, d.delegate_id))
        FROM approvals_delegations(a.call_id) d) END::text,
    CASE WHEN a.state = 'waiting' THEN (
        SELECT jsonb_agg(jsonb_build_array(b.person_id, b.voter))
        FROM approvals_bound(a.call_id) b WHERE b.yields IS NOT NULL) END::text
FROM approvals_approval a
JOIN calls_call c ON c.id = a.call_id
LEFT JOIN audit_entry e ON e.call_id = a.call_id AND e.seq = 1
WHERE a.call_id = ANY(%(ids)s)
"""


# As approvals_excluded, of a call that nobody asked for yet.
_EXCLUDED_BY_AGENT = """
WITH party (id, why) AS (SELECT * FROM unnest(%s::bigint[], %s::text[]))
SELECT p.id, p.why FROM party p WHERE NOT approvals_alone(p.id)
UNION ALL
SELECT i.person_id, 'let_in:' || i.invited
FROM approvals_inviters(ARRAY(SELECT p.id FROM party p)) i WHERE NOT approvals_alone(i.person_id)
UNION ALL
SELECT d.person_id, 'invited:' || d.inviter
FROM approvals_dependents(ARRAY(SELECT p.id FROM party p)) d
"""


class CountedVote(NamedTuple):
    """A vote that counts for a threshold, of which the first has place 1."""

    place: int
    vote: int
    approve: bool


class EligibilityFacts(NamedTuple):
    """The database's facts on a held call and its votes."""

    # The rule that held it, by the name that it had; empty when no rule covered the call.
    rule: str
    # By person: why their word on this call is never taken, as a sentence.
    excluded: dict[int, str]
    tally: list[CountedVote]
    # Its agent means it, although it is the same as the call with this id, or as one unknown ("").
    again: str | None = None
    # By which client's token it is asked, and with which credential it would be sent.
    signed_in: dict[str, Any] | None = None
    credential: dict[str, Any] | None = None
    # Whoever decides at all is alone, and may decide on calls in which they have a part.
    single_person: bool = False
    parties: frozenset[int] = frozenset()
    # There are accounts that nobody but who let them in has confirmed.
    has_guests: bool = False
    has_comments: bool = False
    # Within the days for which cards show them.
    has_role_changes: bool = False
    # Something is, though maybe not this call.
    is_anything_stopped: bool = False
    # Of each edit for which rules ask: the rule, and why it does.
    asked_of_edits: Sequence[tuple[str, str]] = ()
    # Of a pending one: who votes in whose place, as (delegator, delegate).
    delegations: Sequence[tuple[int, int]] = ()
    # Of a pending one, by person: why they may deny and not approve, as a sentence.
    only_deny: Mapping[int, str] = MappingProxyType({})


def facts(ids: Collection[UUID]) -> dict[UUID, EligibilityFacts]:
    """The facts on these approvals, in one query."""
    since = timezone.now() - role_changes.SHOWN
    with connection.cursor() as cursor:
        cursor.execute(_FACTS, {"ids": list(ids), "since": since})
        return {call_id: _facts(*row) for call_id, *row in cursor.fetchall()}


def _facts(
    rule: str | None,
    again: str | None,
    signed_in: str | None,
    credential: str | None,
    excluded: str | None,
    counted: str | None,
    single_person: bool,
    parties: list[int],
    has_guests: bool,
    has_comments: bool,
    has_role_changes: bool,
    is_anything_stopped: bool,
    asked_of_edits: str | None,
    delegations: str | None,
    bound: str | None,
) -> EligibilityFacts:
    never = _sentences(orjson.loads(excluded or "[]"))
    tally = [CountedVote(*one) for one in orjson.loads(counted or "[]")]
    return EligibilityFacts(
        rule or "",
        never,
        tally,
        again,
        orjson.loads(signed_in or "null"),
        orjson.loads(credential or "null"),
        single_person,
        frozenset(parties),
        has_guests,
        has_comments,
        has_role_changes,
        is_anything_stopped,
        [(rule, why) for rule, why in orjson.loads(asked_of_edits or "[]")],
        [(delegator, delegate) for delegator, delegate in orjson.loads(delegations or "[]")],
        {person: _spoken_for(voter) for person, voter in orjson.loads(bound or "[]")},
    )


def end_single_person_mode() -> None:
    """Ends it once there is a second approver. Triggers do so too, but the clock alone confirms an
    account as well."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT approvals_end_if_two()")


def excluded_people(call: Call) -> dict[int, str]:
    """The reason, by person, why their vote on this call never counts."""
    return _sentences(_rows("SELECT person_id, why FROM approvals_excluded(%s)", call.pk))


def why_not_approve(approval: Approval, person: User) -> str:
    """Why this person, who may vote, may only deny; empty if they may approve."""
    asked = "SELECT person_id, voter FROM approvals_bound(%s) WHERE yields IS NOT NULL"
    rows = _rows(asked, approval.pk)
    voter = dict(rows).get(person.pk)
    return _spoken_for(voter) if voter else ""


def yielding_votes(approval: Approval, person: User) -> list[Vote]:
    """Approvals whose place this person's denial takes: those of people whose delegate they are."""
    asked = "SELECT yields FROM approvals_bound(%s) WHERE person_id = %s AND yields IS NOT NULL"
    with connection.cursor() as cursor:
        cursor.execute(asked, [approval.pk, person.pk])
        ids = {vote for (vote,) in cursor.fetchall()}
    return list(Vote.objects.filter(pk__in=ids).select_related("person").order_by("pk"))


def parties(call: Call) -> dict[int, str]:
    """The reason, by person, why the call is their own; mere editors are not included."""
    rows = _rows("SELECT person_id, why FROM approvals_parties(%s)", call.pk)
    return _sentences((person, why) for person, why in rows if why != "editor")


def involved(call: Call) -> dict[int, str]:
    """The reason, by person, why they have a part in the call, or may be one person with somebody
    who has; single-person mode or not."""
    return _sentences(_rows("SELECT person_id, why FROM approvals_involved(%s)", call.pk))


def excluded_by_agent(agent: Agent) -> dict[int, str]:
    """`excluded_people` of whatever call the agent asks for next. The issuer of its token is not
    known yet."""
    parties = {agent.owner_id: "owner"}
    if agent.created_by_id:
        parties.setdefault(agent.created_by_id, "creator")
    with connection.cursor() as cursor:
        cursor.execute(_EXCLUDED_BY_AGENT, [list(parties), list(parties.values())])
        return _sentences(cursor.fetchall())


def same_hands(people: Collection[int]) -> set[int]:
    """Ids of accounts that may belong to the same person as one of these accounts."""
    given = list(people)
    rows = _rows("SELECT person_id, inviter FROM approvals_dependents(%s)", given)
    rows += _rows("SELECT person_id, invited FROM approvals_inviters(%s)", given)
    return {person for person, _name in rows}


def _rows(question: str, value: Any) -> list[tuple[int, str]]:
    with connection.cursor() as cursor:
        cursor.execute(question, [value])
        return list(cursor.fetchall())


def _sentences(rows: Iterable[Sequence[Any]]) -> dict[int, str]:
    """The first reason of each person."""
    found: dict[int, str] = {}
    for person, why in rows:
        found.setdefault(person, _exclusion(why))
    return found


def _exclusion(why: str) -> str:
    reason, _colon, name = why.partition(":")
    match reason:
        case "editor":
            return _("You edited the arguments: another user must decide.")
        case "creator":
            return _("You created the agent: another user must decide.")
        case "issuer":
            return _("You issued the token that requested this: another user must decide.")
        case "asker":
            return _("You requested this call again: another user must decide.")
        case "spoken_for":
            return _spoken_for(name)
        case "let_in":
            said = _(
                "You invited %(who)s, who has a part in this call. Your vote counts here once "
                "another user has confirmed that account: another administrator, or the person "
                "who runs the host, by `manage.py confirm_person`."
            )
            return said % {"who": name}
        case "invited":
            said = _(
                "%(who)s invited you, and has a part in this call. Your vote counts here once "
                "another user has confirmed your account: another administrator, or the person "
                "who runs the host, by `manage.py confirm_person`."
            )
            return said % {"who": name}
    return _("The agent is yours: another user must decide.")


def _spoken_for(name: str) -> str:
    said = _("%(who)s voted already, and one of you is the other's delegate.")
    return said % {"who": name}


def why_not(approval: Approval, person: User) -> str:
    """Why this person may not vote, as a sentence; empty if they may."""
    own = approval.standing.filter(person=person).first()
    return hindrance(approval, person, excluded_people(approval.call), own, groups_of(person))


def hindrance(
    approval: Approval,
    person: User,
    excluded: Mapping[int, str],
    own: Vote | None,
    groups: Collection[str],
) -> str:
    """`why_not`, of what was read already."""
    if not person.has_perm(DECIDE):
        return _("You are not among those who decide.")
    if never := excluded.get(person.pk):
        return never
    if not person.is_vouched_for:
        why = _("You signed in by a link from %(who)s. Set a password on your profile first.")
        return why % {"who": person.let_in_by}
    if not addressed(approval, person, groups):
        return _not_addressed(approval, person, groups)
    return _said_already(own)


def _not_addressed(approval: Approval, person: User, groups: Collection[str]) -> str:
    later = _of_person(stored(approval.thresholds), person, groups)
    if later and approval.state == Approval.State.WAITING:
        said = ngettext(
            "The rule asks you only once it has been pending for %(n)d minute.",
            "The rule asks you only once it has been pending for %(n)d minutes.",
            n := min(one.after_min for one in later),
        )
        return said % {"n": n}
    return _("The rule asks other people: %(who)s.") % {"who": who(approval)}


def _said_already(own: Vote | None) -> str:
    if own is None:
        return ""
    if own.approve:
        return _("You approved it already. You may withdraw your vote until the call is decided.")
    return _("You denied it already. You may withdraw your vote until the call is decided.")


def addressed(approval: Approval, person: User, groups: Collection[str]) -> list[Threshold]:
    """Whose word this person's is by now."""
    return _of_person(approval.open_thresholds, person, groups)


def _of_person(
    asked: Sequence[Threshold], person: User, groups: Collection[str]
) -> list[Threshold]:
    # Their earlier names are looked up only where a rule names anybody.
    named = any(one.source.startswith(PERSON) for one in asked)
    names = person.all_names if named else ()
    return [one for one in asked if one.is_from(names, groups)]


def groups_of(person: User) -> set[str]:
    """Now, not as they were when the person was read."""
    return set(person.groups.values_list("name", flat=True))


def who(approval: Approval) -> str:
    names = [one.source.partition(":")[2] for one in approval.open_thresholds if one.source]
    return ", ".join(dict.fromkeys(names))


def decided(call_id: UUID, thresholds: Thresholds) -> str:
    """ "approved", "denied", or "" while the votes that count meet nothing."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT approvals_decided(%s, %s::jsonb)", [call_id, orjson.dumps(thresholds).decode()]
        )
        (verdict,) = cursor.fetchone()
    return str(verdict)


def obstacle(call: Call, decision: Decision) -> str:
    """At the claim: do people still stand behind the call? Says why not."""
    if not planned.execute(_WAS_HELD, [call.pk]).rowcount:
        return "" if call.effect == Effect.ALLOW else _("Nobody approved the call.")
    approval = Approval.objects.get(pk=call.pk)
    if decided(call.pk, approval.thresholds) != Approval.State.APPROVED:
        return _("The votes no longer count: %(why)s") % {"why": _lost(approval)}
    if decision.effect == Effect.ASK:
        now = plain(decision.thresholds)
        if decided(call.pk, now) != Approval.State.APPROVED:
            said = _("Policy now asks for more than the votes that there are: %(what)s.")
            return said % {"what": decision.who}
        if (more := find_more(approval, decision)) and _is_broken(approval):
            return more.why
    return ""


def _is_broken(approval: Approval) -> bool:
    """Break-glass stands for every yes that was asked for then, and for no more."""
    return BreakGlass.objects.filter(approval=approval).exists()


def _lost(approval: Approval) -> str:
    counted = {one.vote for one in facts([approval.pk])[approval.pk].tally}
    lost = [
        vote.person.username
        for vote in approval.standing.filter(approve=True).select_related("person")
        if vote.pk not in counted
    ]
    if not lost:
        return _("fewer than the rule asks for.")
    return _("%(who)s may no longer decide.") % {"who": ", ".join(lost)}
