"""Steps of escalation policies: who is notified of a pending call first, and who later.

Only people whose vote would count are notified, at any step: a policy never changes who may decide.
Where a rule lets others decide after some minutes, an entry begins the steps of those as well; an
edit begins all steps again.
Nothing waits in memory: a row says when the next step is due, and whichever worker sees it first
takes it, in the transaction that makes the deliveries. While an emergency stop covers the call its
clock is stopped here too: steps follow later by as much.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.utils import timezone

from accounts.models import User
from approvals import delegations
from approvals.eligibility import addressed
from approvals.models import Approval
from audit.models import ClockTime, Entry
from calls.freezes import stopped_call, time_stopped
from notifications.escalation_models import Escalation, EscalationPolicy, EscalationStep
from notifications.events import Event
from notifications.models import Delivery
from notifications.on_call import person_on_call
from notifications.quiet_hours import waiting_people
from notifications.recipients import Audience, Receiver, deciders
from policies.models import Rule
from policies.thresholds import clauses

ASKING = Event.APPROVAL_NEEDED
# Of messages that reached their reader, or still may.
UNENDED = (Delivery.State.PENDING, Delivery.State.SENT)
# Steps that one round takes.
BATCH = 100


def begin(entry: Entry, audience: Audience) -> list[Receiver]:
    """Receivers of the first steps of a call that became pending. Remembers which come later."""
    run = _Run(entry, audience)
    for source in run.sources():
        run.advance(source, done_min=-1, known=None)
    return run.receivers()


def claim_due() -> list[Escalation]:
    """In the caller's transaction, which also makes the deliveries."""
    due = Escalation.objects.filter(~stopped_call("call_id"), next_at__lte=ClockTime())
    due = due.order_by("next_at", "pk")
    return list(due.select_for_update(skip_locked=True)[:BATCH])


def go_on(known: Escalation, entry: Entry, audience: Audience) -> list[Receiver]:
    """Receivers of the steps that are due by now."""
    run = _Run(entry, audience)
    run.advance(known.source, done_min=known.done_min, known=known)
    return run.receivers()


def hurry(call_id: UUID) -> bool:
    """Makes the next steps of the call due now, since somebody could not be notified; False if
    none are left. They become due as early as their entry was written: no ordinary step is, so
    that no emergency stop puts them off again."""
    written = Entry.objects.filter(pk=OuterRef("entry_id")).values("at")[:1]
    next_at = Coalesce(Subquery(written), ClockTime())
    return bool(Escalation.objects.filter(call_id=call_id).update(next_at=next_at))


def everybody(entry: Entry, audience: Audience) -> list[Receiver]:
    """Receivers who may decide on the pending call, and were not notified of it."""
    able = {one.pk for one in deciders(entry.call_id, audience.people(ASKING))}
    return audience.ask(able - _asked_people(entry), timezone.now())


def can_suffice(entry: Entry, audience: Audience) -> bool:
    """Whether those whom messages on the pending call reach now could decide it."""
    run = _Run(entry, audience)
    return all(run.can_suffice(source) for source in run.sources())


class _Run:
    """One call, the people who may decide it, and whom its steps chose among them."""

    def __init__(self, entry: Entry, audience: Audience) -> None:
        self.entry, self.audience, self.now = entry, audience, timezone.now()
        waiting = Approval.objects.waiting().select_related("call")
        self.approval = waiting.filter(pk=entry.call_id).first()
        self.able = list(deciders(entry.call_id, audience.people(ASKING)))
        self.waiting = waiting_people(ASKING, self.now)
        self.held = delegations.of_call(self.approval.pk) if self.approval else []
        self.chosen: set[int] = set()
        self.stopped_for = timedelta()
        if self.approval:
            self.stopped_for = time_stopped(self.approval.call, entry.at, self.now)

    def asked(self) -> set[int]:
        """People whom the steps chose, or their delegates."""
        return self._with_delegates(self.chosen)

    def receivers(self) -> list[Receiver]:
        return self.audience.ask(self.asked(), self.now)

    def _with_delegates(self, chosen: set[int]) -> set[int]:
        """A delegate who wants no messages now takes nobody's place."""
        able = {one.pk for one in self.able} - self.waiting
        return delegations.ask_delegates(chosen, able, self.held)

    def sources(self) -> list[str]:
        if self.approval is None:
            return []
        asked = self.approval.open_thresholds
        if after := (self.entry.details or {}).get("after_min"):
            asked = [one for one in asked if one.after_min == after]
        return list(dict.fromkeys(one.source for one in asked))

    def advance(self, source: str, *, done_min: int, known: Escalation | None) -> None:
        """Takes the steps that are due, and remembers when the next one is."""
        policy = self._policy(source)
        steps = list(policy.steps.all()) if policy else []
        if not steps or self.approval is None:
            # Nobody made one, or it was removed meanwhile: nobody is left out by that.
            self.chosen |= {one.pk for one in self._of(source)}
            self._remember(source, None, done_min, known)
            return
        steps = [step for step in steps if step.after_min > done_min]
        is_ordinary = known and known.next_at != self.entry.at
        if is_ordinary and steps and self.stopped_for and self._at(steps[0]) > self.now:
            # An emergency stop came between.
            self._remember(source, steps[0], done_min, known)
            return
        # The first of those that are left is due: so its row was claimed, or the call is new.
        reached = False
        for step in steps:
            if reached and self._at(step) > self.now:
                self._remember(source, step, done_min, known)
                return
            reached = self._take(step, source)
            done_min = step.after_min
        if not (reached and self.can_suffice(source)):
            self.chosen |= {one.pk for one in self._of(source)}
        self._remember(source, None, done_min, known)

    def _policy(self, source: str) -> EscalationPolicy | None:
        """The policy of the rule that holds the call, where this rule asks the source; else that of
        the group: other rules may ask about the same call."""
        known = EscalationPolicy.objects.prefetch_related("steps__group", "steps__schedule")
        rule = self.approval.call.rule_id if self.approval else None
        of_rule = known.filter(rule=rule).select_related("rule").first() if rule else None
        if of_rule and of_rule.rule and source in _sources(of_rule.rule):
            return of_rule
        kind, _colon, name = source.partition(":")
        if kind not in ("", "group"):
            return None
        return known.filter(rule=None, group__name=name or None).first()

    def _take(self, step: EscalationStep, source: str) -> bool:
        """Whether it reaches anybody now who could meet the thresholds of the source. Where it does
        not, the next step is due at once."""
        people = {one.pk for one in self._targets(step, source)}
        self.chosen |= people
        return all(
            self._with_delegates(people & wanted) - self.waiting for wanted in self._clauses(source)
        )

    def can_suffice(self, source: str) -> bool:
        """Whether those who were notified, with the votes that there are, could meet each clause
        that has this source."""
        assert self.approval is not None
        votes = self.approval.standing.filter(approve=True).select_related("person")
        told = (self.asked() | _asked_people(self.entry, UNENDED)) - self.waiting
        met = {one.person_id: one.person for one in votes}
        people = [*met.values(), *(one for one in self.able if one.pk in told)]
        return all(
            any(sum(self._is_of(one, to.source) for one in people) >= to.approve for to in clause)
            for clause in clauses(self.approval.open_thresholds)
            if source in {one.source for one in clause}
        )

    def _clauses(self, source: str) -> list[set[int]]:
        """Everybody whom each clause with this source asks, also by its alternatives."""
        assert self.approval is not None
        found = clauses(self.approval.open_thresholds)
        sources = [{one.source for one in clause} for clause in found]
        return [
            {person.pk for one in clause for person in self._of(one)}
            for clause in sources
            if source in clause
        ]

    def _targets(self, step: EscalationStep, source: str) -> Iterable[User]:
        match step.target:
            case EscalationStep.Target.ROUND_ROBIN:
                return self._in_turn(source, step.people or 1)
            case EscalationStep.Target.ON_CALL:
                return self._on_call(step) or self._of(source)
            case EscalationStep.Target.GROUP:
                assert step.group is not None
                name = step.group.name
                return [one for one in self.able if name in one.group_names]
        return self._of(source)

    def _on_call(self, step: EscalationStep) -> list[User]:
        """The person on call; empty for a gap, or if they may not decide on this call."""
        assert step.schedule is not None
        person = person_on_call(step.schedule, self.now)
        return [one for one in self.able if one.pk == person]

    def _in_turn(self, source: str, people: int) -> Sequence[User]:
        """Those who were asked longest ago, and not on this call: they, or whoever is asked in
        their place, so that a delegate has one turn and not two."""
        asked, found = self.audience.asked_at, list[User]()
        before = self.asked() | _asked_people(self.entry)
        places = {one: self._with_delegates({one.pk}) for one in self._reachable(self._of(source))}

        def turn(person: User) -> tuple[float, int]:
            return max(asked.get(pk, 0.0) for pk in places[person]), person.pk

        for one in sorted(places, key=turn):
            if len(found) < people and not places[one] <= before:
                found.append(one)
                before |= places[one]
        return found

    def _of(self, source: str) -> list[User]:
        """People whom the rule asks under this name, among those who may decide."""
        if self.approval is None:
            return []
        return [one for one in self.able if self._is_of(one, source)]

    def _is_of(self, person: User, source: str) -> bool:
        assert self.approval is not None
        asked = addressed(self.approval, person, person.group_names)
        return any(one.source == source for one in asked)

    def _reachable(self, people: Iterable[User]) -> list[User]:
        return [one for one in people if one.pk not in self.waiting]

    def _at(self, step: EscalationStep) -> datetime:
        return self.entry.at + timedelta(minutes=step.after_min) + self.stopped_for

    def _remember(
        self, source: str, step: EscalationStep | None, done_min: int, known: Escalation | None
    ) -> None:
        if step is None:
            if known:
                known.delete()
            return
        given = {"entry_id": self.entry.pk, "done_min": max(done_min, 0), "next_at": self._at(step)}
        assert self.entry.call_id is not None
        Escalation.objects.update_or_create(
            call_id=self.entry.call_id, source=source, defaults=given
        )


def _sources(rule: Rule) -> set[str]:
    return {one.get("from", "") for one in rule.thresholds or [{}]}


def _asked_people(entry: Entry, states: Sequence[str] = Delivery.State.values) -> set[int]:
    """People who were notified of the call before; of an edited one, since its edit."""
    reader = Coalesce("person_id", "device__person_id")
    asked = Delivery.objects.filter(call_id=entry.call_id, event=ASKING, webhook__isnull=True)
    asked = asked.filter(state__in=states)
    if entry.action == "call.amended":
        asked = asked.filter(entry_id__gte=entry.pk)
    return set(asked.values_list(reader, flat=True))
