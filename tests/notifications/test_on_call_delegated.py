"""On-call schedules and delegations at once: zones, changed clocks, overrides, gaps, and several
delegations that overlap."""

from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta
from itertools import permutations
from typing import NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import Group
from django.db import transaction
from django.utils import timezone
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from accounts.models import User
from accounts.roles import Role
from approvals import delegations
from approvals.delegations import DelegationRefused
from approvals.models import Delegation
from notifications import escalation, escalation_policies, schedules, services
from notifications.models import (
    Delivery,
    EscalationPolicy,
    EscalationStep,
    OnCallOverride,
    OnCallSchedule,
)
from notifications.on_call import person_on_call
from tests.console import scenery
from tests.notifications.conftest import reader
from tests.notifications.test_escalation import Ask, ask, lead, team

__all__ = ["ask", "lead", "team"]

pytestmark = [pytest.mark.django_db, pytest.mark.long]

# bob is in the group and owns the agent; vera may not decide; the rule asks lena only where it asks
# everybody.
NAMES = ("gina", "hugo", "ines", "lena", "bob", "vera")
MAY_DECIDE = {"group:payments": {"gina", "hugo", "ines"}, "": {"gina", "hugo", "ines", "lena"}}
ZONES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "UTC")
# Around these days clocks are changed somewhere.
CHANGES = [date(2026, 3, 8), date(2026, 3, 29), date(2026, 4, 5), date(2026, 10, 25)]


class Override(NamedTuple):
    person: str
    begins_h: int
    hours: int

    def covers_now(self) -> bool:
        return self.begins_h <= 0 < self.begins_h + self.hours


class Delegated(NamedTuple):
    """Days are from now."""

    delegator: str
    delegate: str
    begins: int
    days: int
    asks_both: bool
    group: str | None

    def holds_now(self) -> bool:
        return self.begins <= 0 < self.begins + self.days


class Plan(NamedTuple):
    now: datetime
    zone: str
    handover: time
    # Days from the first hand-over to now; below 0: the rotation has not begun.
    days: int
    people: list[str]
    overrides: list[Override]
    delegated: list[Delegated]
    muted: set[str]
    source: str

    @property
    def starts_on(self) -> date:
        return self.now.astimezone(ZoneInfo(self.zone)).date() - timedelta(days=self.days)

    def on_call(self) -> str | None:
        """By counting hand-overs on the wall's clock, one after the other."""
        if covering := [one.person for one in self.overrides if one.covers_now()]:
            return covering[-1]
        zone, passed = ZoneInfo(self.zone), -1
        begin = datetime.combine(self.starts_on, self.handover, zone)
        while begin.astimezone(UTC) <= self.now:
            passed += 1
            begin = datetime.combine(begin.date() + timedelta(days=7), self.handover, zone)
        return self.people[passed % len(self.people)] if passed >= 0 and self.people else None


names = st.sampled_from(NAMES)
deciders = st.sampled_from(NAMES[:4])
plans = st.builds(
    Plan,
    st.builds(
        lambda day, minutes: datetime.combine(day, time(0), UTC) + timedelta(minutes=minutes),
        st.sampled_from(CHANGES) | st.dates(date(2025, 1, 1), date(2027, 12, 31)),
        st.integers(-2 * 24 * 60, 3 * 24 * 60),
    ),
    st.sampled_from(ZONES),
    st.sampled_from([time(2, 30), time(9)]) | st.times().map(lambda at: at.replace(microsecond=0)),
    st.integers(-8, 60) | st.sampled_from([7, 14]),
    st.lists(names, max_size=4),
    st.lists(st.builds(Override, names, st.integers(-30, 10), st.integers(1, 40)), max_size=3),
    st.lists(
        st.builds(
            lambda pair, *more: Delegated(*pair, *more),
            st.sampled_from(list(permutations(NAMES[:4], 2))),
            st.integers(-3, 1),
            st.integers(2, 6),
            st.booleans(),
            st.sampled_from([None, None, "payments", "leads"]),
        ),
        min_size=1,
        max_size=4,
    ),
    st.sets(deciders, max_size=3),
    st.sampled_from(list(MAY_DECIDE)),
)


@settings(
    max_examples=60,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    database=None,
    derandomize=True,
)
@given(plan=plans)
def test_people_who_may_decide_are_notified_once_or_their_delegates_and_never_nobody(
    ask: Ask, team: list[User], lead: User, bob: User, olga: User, plan: Plan
) -> None:
    with transaction.atomic(), pytest.MonkeyPatch.context() as patch:
        people = cast([*team, lead, bob])
        # Delegations go by the database's clock, and schedules by the plan's.
        patch.setattr(escalation, "person_on_call", lambda of, _: person_on_call(of, plan.now))
        made = [one for one in plan.delegated if delegate(one, people)]
        prepare(plan, people, olga)

        call = ask(plan.source)

        told = notified(call)
        able = MAY_DECIDE[plan.source]
        held = {one for one in made if one.holds_now() and holds_for(one, plan.source)}
        assert told
        assert len(told) == len(set(told))
        assert set(told) <= able
        for one in held:
            if one.delegate in able - plan.muted and not one.asks_both:
                assert one.delegator not in told
        assert set(told) == expected(plan, held)
        event(f"on call: {plan.on_call() in able}, delegations: {len(held)}")
        transaction.set_rollback(True)


def cast(people: list[User]) -> dict[str, User]:
    for name in ("payments", "leads"):
        Group.objects.get_or_create(name=name)
    *_others, bob = people
    bob.groups.add(Group.objects.get(name="payments"))
    found = [*people, reader(scenery.person("vera", Role.VIEWER))]
    reader(bob)
    return {one.username: one for one in found}


def delegate(one: Delegated, people: dict[str, User]) -> bool:
    """False: of these people, or beside another one, it is not made."""
    begins_at = timezone.now() + timedelta(days=one.begins, hours=-1)
    made = Delegation(
        delegator=people[one.delegator],
        delegate=people[one.delegate],
        begins_at=begins_at,
        ends_at=begins_at + timedelta(days=one.days),
        asks_both=one.asks_both,
        group=Group.objects.get(name=one.group) if one.group else None,
    )
    with suppress(DelegationRefused):
        delegations.make(made)
    return made.pk is not None


def prepare(plan: Plan, people: dict[str, User], by: User) -> None:
    schedule = OnCallSchedule(
        name="primary",
        time_zone=plan.zone,
        handover_weekday=plan.starts_on.weekday(),
        handover_at=plan.handover,
        starts_on=plan.starts_on,
    )
    schedules.save(schedule, [people[name] for name in plan.people], by=by)
    for one in plan.overrides:
        begins_at = plan.now + timedelta(hours=one.begins_h)
        override = OnCallOverride(
            schedule=schedule,
            person=people[one.person],
            begins_at=begins_at,
            ends_at=begins_at + timedelta(hours=one.hours),
        )
        schedules.add_override(override, by=by)
    group = Group.objects.get(name="payments") if plan.source else None
    step = EscalationStep(after_min=0, target="on_call", schedule=schedule)
    escalation_policies.save(EscalationPolicy(group=group), [step], by=by)
    for name in plan.muted:
        services.mute(people[name], timezone.now() + timedelta(hours=1))


def notified(call: UUID) -> list[str]:
    made = Delivery.objects.filter(call_id=call, event="approval.needed", person__isnull=False)
    return list(made.values_list("person__username", flat=True))


def holds_for(one: Delegated, source: str) -> bool:
    """A delegation gives nobody a vote that the rule does not ask for."""
    if one.group and source != f"group:{one.group}":
        return False
    able = MAY_DECIDE[source]
    return one.delegator not in able or one.delegate in able


def expected(plan: Plan, held: set[Delegated]) -> set[str]:
    """The person on call or the delegate; the group in a gap, or where that reaches nobody."""
    able = MAY_DECIDE[plan.source]
    person = plan.on_call()
    asked = replaced({person} if person in able else able, held, able - plan.muted)
    return asked if asked - plan.muted else replaced(able, held, able - plan.muted)


def replaced(chosen: set[str], held: set[Delegated], reachable: set[str]) -> set[str]:
    """These people, with their delegates."""
    own = [one for one in held if one.delegator in chosen and one.delegate in reachable]
    away = {one.delegator for one in own if not one.asks_both}
    return chosen - away | {one.delegate for one in own}
