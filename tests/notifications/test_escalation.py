"""Escalation policies: who is notified first, who later, and that nobody else ever is."""

from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts.models import Agent, User
from accounts.roles import Role
from approvals import delegations, freezes
from approvals.models import Approval, Delegation
from approvals.widening import widen
from audit.models import Entry
from calls.freezes import time_stopped
from calls.models import Call, Freeze
from calls.record.states import State
from notifications import deliveries, escalation, escalation_policies, mail_texts, services
from notifications.cursor import read_entries
from notifications.events import Event
from notifications.models import Delivery, Escalation, EscalationPolicy, EscalationStep
from notifications.recipients import Audience
from policies.models import Rule
from policies.services import remove_rule
from policies.thresholds import Threshold
from registry.models import Tool
from tests.approvals.test_quorum import say
from tests.console import scenery
from tests.notifications.conftest import reader

pytestmark = pytest.mark.django_db

TURN, ALL, OTHERS = "turn", "everybody", "group"


@pytest.fixture
def team(db: None) -> list[User]:
    """Three people of the group that the rule asks, by the order of their names."""
    group = Group.objects.create(name="payments")
    people = [scenery.person(name, Role.APPROVER) for name in ("gina", "hugo", "ines")]
    for person in people:
        person.groups.add(group)
        reader(person)
    return people


@pytest.fixture
def lead(db: None) -> User:
    """Of the group to escalate to; the rule does not ask her, unless it asks everybody."""
    lead = scenery.person("lena", Role.APPROVER)
    lead.groups.add(Group.objects.create(name="leads"))
    return reader(lead)


def policy(
    by: User,
    *steps: tuple[int, str, object],
    group: str | None = "payments",
    rule: Rule | None = None,
) -> None:
    asked = Group.objects.get(name=group) if group and rule is None else None
    made = EscalationPolicy(group=asked, rule=rule)
    escalation_policies.save(made, [step(*one) for one in steps], by=by)


def step(after: int, target: str, of: object) -> EscalationStep:
    made = EscalationStep(after_min=after, target=target)
    if target == TURN:
        made.people = int(str(of))
    elif target == OTHERS:
        made.group = Group.objects.get(name=of)
    return made


@pytest.fixture
def ask(scout: Agent, send_mail: Tool, cursor: None) -> "Ask":
    return Ask(scout, send_mail)


class Ask:
    """scout asks, and a rule wants one approval of the group, or of these."""

    def __init__(self, scout: Agent, tool: Tool) -> None:
        self.scout, self.tool = scout, tool

    def __call__(
        self, *sources: str, rule: Rule | None = None, thresholds: tuple[Threshold, ...] = ()
    ) -> UUID:
        asked = thresholds or tuple(Threshold(source=one) for one in sources or ("group:payments",))
        subject = {**scenery.MAIL, "subject": f"No. {Delivery.objects.count()}"}
        named = {"rule_id": rule.pk, "rule": rule.name} if rule else {}
        made = scenery.call(self.scout, self.tool, subject, State.HELD, thresholds=asked, **named)
        read_entries()
        return made

    def many(self, count: int) -> list[UUID]:
        """So many calls, whose entries are read together."""
        asked = (Threshold(source="group:payments"),)
        mails = [{**scenery.MAIL, "subject": f"Of {count}: {one}"} for one in range(count)]
        held = [
            scenery.call(self.scout, self.tool, one, State.HELD, thresholds=asked) for one in mails
        ]
        read_entries()
        return held


def delegate(by: User, to: User) -> None:
    now = timezone.now()
    begins_at, ends_at = now - timedelta(days=1), now + timedelta(days=1)
    delegations.make(Delegation(delegator=by, delegate=to, begins_at=begins_at, ends_at=ends_at))


def told(call_id: UUID) -> Sequence[str]:
    """Who was notified of it, by name."""
    made = Delivery.objects.filter(call_id=call_id, event="approval.needed", person__isnull=False)
    return list(made.order_by("person__username").values_list("person__username", flat=True))


def pass_minutes(minutes: int) -> None:
    """As if the next steps had been due so much earlier, and the call as well."""
    for one in Escalation.objects.all():
        Escalation.objects.filter(pk=one.pk).update(
            next_at=one.next_at - timedelta(minutes=minutes)
        )


def look() -> int:
    return deliveries.create_escalated()


def test_without_a_policy_everybody_is_notified_at_once(ask: "Ask", team: list[User]) -> None:
    assert told(ask()) == ["gina", "hugo", "ines"]
    assert not Escalation.objects.exists()


def test_a_round_robin_asks_who_was_asked_longest_ago(
    ask: "Ask", team: list[User], olga: User
) -> None:
    policy(olga, (0, TURN, 1))

    assert [told(ask()) for _n in range(4)] == [["gina"], ["hugo"], ["ines"], ["gina"]]


def test_more_people_cost_no_more_queries(ask: "Ask", team: list[User], olga: User) -> None:
    policy(olga, (0, TURN, 1))
    ask()
    with CaptureQueriesContext(connection) as few:
        ask()
    for n in range(12):
        person = scenery.person(f"more{n}", Role.APPROVER)
        person.groups.add(Group.objects.get(name="payments"))
        reader(person)

    with CaptureQueriesContext(connection) as many:
        ask()

    assert len(many) == len(few)


def test_the_messages_of_a_month_are_not_read_for_the_next_one(
    ask: "Ask", team: list[User], olga: User
) -> None:
    policy(olga, (0, TURN, 1))
    month = timezone.now() - timedelta(days=15)
    sent = {"event": "approval.needed", "channel": "email", "state": "sent", "created_at": month}
    Delivery.objects.bulk_create(
        Delivery(entry_id=-n, person=team[n % 3], next_at=month, **sent) for n in range(3000)
    )
    with CaptureQueriesContext(connection) as captured, connection.cursor() as cursor:
        cursor.execute("ANALYZE notifications_delivery")
        assert told(ask()) == ["gina"]
        reads = [one["sql"] for one in captured if "= 'approval.needed'" in one["sql"]]
        plans = [plan(cursor, one) for one in reads if "call_id" not in one]

    assert len(plans) == 3
    for one in plans:
        assert "notifications_asked" in one
        assert "Seq Scan on notifications_delivery" not in one


def plan(cursor: Any, query: str) -> str:
    cursor.execute(f"EXPLAIN (COSTS OFF) {query}")
    return "\n".join(line for (line,) in cursor.fetchall())


def test_steps_follow_after_their_minutes_and_each_person_is_told_once(
    ask: "Ask", team: list[User], olga: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy(olga, (0, TURN, 2), (5, ALL, None))
    call = ask()
    assert told(call) == ["gina", "hugo"]
    waiting = Escalation.objects.get()
    entry = Entry.objects.get(pk=waiting.entry_id)
    assert waiting.next_at == entry.at + timedelta(minutes=5)
    assert look() == 0

    pass_minutes(5)
    assert look() == 1

    assert told(call) == ["gina", "hugo", "ines"]
    assert look() == 0
    assert not Escalation.objects.exists()


def test_during_an_emergency_stop_no_step_follows_and_after_it_later(
    ask: "Ask", team: list[User], olga: User, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy(olga, (0, TURN, 1), (5, ALL, None))
    call = ask()
    stop = freezes.begin(by=alice, reason="Something is wrong.")
    pass_minutes(6)
    assert look() == 0
    freezes.end(stop, by=olga, why="It is well again.")
    stop.refresh_from_db()

    look()

    assert told(call) == ["gina"]
    entry = Entry.objects.get(pk=Escalation.objects.get().entry_id)
    assert stop.ended_at is not None
    stopped_for = stop.ended_at - stop.began_at
    assert Escalation.objects.get().next_at == entry.at + timedelta(minutes=5) + stopped_for
    pass_minutes(6)
    later = timezone.now() + timedelta(minutes=6)
    monkeypatch.setattr(timezone, "now", lambda: later)
    look()
    assert told(call) == ["gina", "hugo", "ines"]
    assert not Escalation.objects.exists()


def test_after_an_emergency_stop_too_whoever_is_next_is_asked_at_once_for_who_cannot_be(
    ask: "Ask", team: list[User], olga: User, alice: User
) -> None:
    policy(olga, (0, TURN, 1), (30, ALL, None))
    call = ask()
    stop = freezes.begin(by=alice, reason="Something is wrong.")
    assert escalation.hurry(call)
    assert look() == 0
    freezes.end(stop, by=olga, why="It is well again.")

    look()

    assert told(call) == ["gina", "hugo", "ines"]


def test_stops_that_overlap_count_once_and_those_of_others_not(
    ask: "Ask", team: list[User], olga: User, alice: User, send_mail: Tool
) -> None:
    call = Call.objects.get(pk=ask())
    other = Agent.objects.create(name="other", owner=olga)
    at = timezone.now()
    for begin, end, of in (
        (-5, 2, {"agent": call.agent}),
        (1, 4, {"server": send_mail.server}),
        (2, 3, {}),
        (0, 60, {"agent": other}),
        (6, 7, {}),
    ):
        Freeze.objects.create(
            **of,
            by=alice,
            reason="Something is wrong.",
            ended_by=olga,
            began_at=at + timedelta(minutes=begin),
            ended_at=at + timedelta(minutes=end),
        )

    assert time_stopped(call, at, at + timedelta(minutes=10)) == timedelta(minutes=5)


@pytest.fixture
def large(db: None) -> Rule:
    asked = [Threshold(source=one).plain() for one in ("group:payments", "")]
    return Rule.objects.create(name="Large payments", effect="ask", thresholds=asked)


def test_a_rules_own_policy_comes_before_that_of_the_group(
    ask: "Ask", team: list[User], lead: User, olga: User, large: Rule
) -> None:
    other = Rule.objects.create(name="Small payments", effect="ask")
    policy(olga, (0, TURN, 1))
    policy(olga, (0, TURN, 2), (5, ALL, None), rule=large)

    assert told(ask(rule=other)) == ["gina"]
    held = ask(rule=large)
    assert told(held) == ["hugo", "ines"]
    pass_minutes(6)
    look()

    assert told(held) == ["gina", "hugo", "ines"]
    assert told(ask("", rule=large)) != []


def test_a_rules_policy_asks_nobody_who_may_not_decide(
    ask: "Ask", team: list[User], lead: User, olga: User, large: Rule
) -> None:
    policy(olga, (0, OTHERS, "leads"), (5, ALL, None), rule=large)

    # The lead is in a group that the rule does not ask: the next step follows at once.
    assert told(ask(rule=large)) == ["gina", "hugo", "ines"]


@pytest.mark.parametrize("own", [True, False])
def test_a_rules_policy_stands_for_no_other_rule(
    ask: "Ask", team: list[User], lead: User, olga: User, large: Rule, own: bool
) -> None:
    """Two rules ask about one call: the first, which has a policy of its own, asks the leads."""
    thresholds = [Threshold(source="group:leads").plain()]
    Rule.objects.filter(pk=large.pk).update(thresholds=thresholds)
    policy(olga, (0, OTHERS, "leads"), rule=large)
    if own:
        policy(olga, (0, OTHERS, "leads"), group="payments")
    asked = (Threshold(source="group:leads"), Threshold(source="group:payments", clause=1))

    held = ask(rule=large, thresholds=asked)

    # A step of a policy of its own reaches none of the other group either.
    assert told(held) == ["gina", "hugo", "ines", "lena"]
    assert not Escalation.objects.exists()


LATER = Threshold(source="group:leads", after_min=15)


@pytest.fixture
def widened(scout: Agent, send_mail: Tool, cursor: None) -> Callable[[], UUID]:
    """A call that the group may decide, and by now the leads."""

    def hold() -> UUID:
        asked = (Threshold(source="group:payments"), LATER)
        made = scenery.call(
            scout, send_mail, scenery.MAIL, State.HELD, thresholds=asked, pending_min=15
        )
        read_entries()
        return made

    return hold


def test_whom_a_rule_lets_decide_later_is_told_then(
    widened: Callable[[], UUID], team: list[User], lead: User
) -> None:
    held = widened()
    assert told(held) == ["gina", "hugo", "ines"]

    widen()
    read_entries()

    assert told(held) == ["gina", "hugo", "ines", "lena"]


@pytest.mark.long
def test_their_own_policy_says_who_of_them_first(
    widened: Callable[[], UUID], team: list[User], lead: User, olga: User
) -> None:
    second = reader(scenery.person("lotte", Role.APPROVER))
    second.groups.add(Group.objects.get(name="leads"))
    policy(olga, (0, TURN, 1), (5, ALL, None), group="leads")
    held = widened()

    widen()
    read_entries()
    assert told(held) == ["gina", "hugo", "ines", "lena"]
    pass_minutes(5)
    look()

    assert told(held) == ["gina", "hugo", "ines", "lena", "lotte"]


@pytest.mark.long
def test_their_mail_says_why_they_are_asked(
    widened: Callable[[], UUID], team: list[User], lead: User
) -> None:
    held = widened()
    widen()
    read_entries()

    said = mail_texts.compose(Delivery.objects.get(call_id=held, person=lead), lead)

    assert said.subject.startswith("Approval needed: mailer.send_mail for scout")
    why = "Pending for 15 minutes, so its rule lets others decide too: 1 approval of leads"
    assert said.lead.startswith(why)


def test_a_step_alone_lets_nobody_decide(
    widened: Callable[[], UUID], team: list[User], lead: User, olga: User
) -> None:
    """Before the entry that says so, a step that names the leads reaches none of them."""
    policy(olga, (0, OTHERS, "leads"), (5, ALL, None))

    assert told(widened()) == ["gina", "hugo", "ines"]


@pytest.mark.long
def test_who_could_decide_instead_is_asked_first(
    ask: "Ask", team: list[User], lead: User, olga: User, large: Rule
) -> None:
    """Of one rule thresholds are alternatives: the leads alone would do."""
    thresholds = [Threshold(source=one).plain() for one in ("group:leads", "group:payments")]
    Rule.objects.filter(pk=large.pk).update(thresholds=thresholds)
    policy(olga, (0, OTHERS, "leads"), (5, ALL, None), rule=large)

    held = ask("group:leads", "group:payments", rule=large)

    assert told(held) == ["lena"]
    pass_minutes(5)
    look()
    assert told(held) == ["gina", "hugo", "ines", "lena"]


def test_a_rules_policy_goes_with_the_rule(
    ask: "Ask", team: list[User], olga: User, large: Rule
) -> None:
    policy(olga, (0, TURN, 1), (60, ALL, None), rule=large)
    held = ask(rule=large)
    assert told(held) == ["gina"]

    remove_rule(large, by=olga.actor)
    pass_minutes(61)
    look()

    assert not EscalationPolicy.objects.exists()
    removed = Entry.objects.get(action="escalation_policy.removed")
    assert (removed.actor, removed.details["rule"]) == ("olga", "Large payments")
    assert told(held) == ["gina", "hugo", "ines"]


@pytest.mark.long
def test_escalation_never_asks_who_may_not_decide(
    ask: "Ask", team: list[User], lead: User, olga: User
) -> None:
    policy(olga, (0, TURN, 1), (5, OTHERS, "leads"))
    call = ask()

    pass_minutes(5)
    look()
    # The step reaches nobody, since no lead may decide: then the group is asked.
    assert told(call) == ["gina", "hugo", "ines"]

    # Where the rule asks the leads too, they are.
    policy(olga, (0, ALL, None), group="leads")
    second = ask("group:payments", "group:leads")
    assert told(second) == ["gina", "lena"]


def test_a_step_that_reaches_nobody_goes_on_at_once(
    ask: "Ask", team: list[User], lead: User, olga: User
) -> None:
    policy(olga, (0, TURN, 1), (5, OTHERS, "leads"), (15, ALL, None), group=None)
    for person in team:
        services.mute(person, timezone.now() + timedelta(hours=1))

    assert told(ask("")) == ["lena"]
    services.mute(lead, timezone.now() + timedelta(hours=1))

    # Nobody can be reached at any step: each is told when their mute ends.
    assert told(ask("")) == ["gina", "hugo", "ines", "lena"]


def test_a_delegate_who_wants_no_messages_takes_nobodys_place(
    ask: "Ask", team: list[User], lead: User
) -> None:
    gina, hugo, _ines = team
    delegate(gina, hugo)
    assert told(ask()) == ["hugo", "ines"]
    services.mute(hugo, timezone.now() + timedelta(hours=1))

    held = ask()

    assert told(held) == ["gina", "hugo", "ines"]
    entry = Entry.objects.get(call_id=held, seq=1)
    reminded = Audience().readers(entry, Event.APPROVAL_REMINDER)
    assert [one.person.username for one in reminded] == ["gina", "hugo", "ines"]


@pytest.mark.long
def test_a_delegate_has_one_turn_for_both(ask: "Ask", team: list[User], olga: User) -> None:
    gina, hugo, _ines = team
    policy(olga, (0, TURN, 1), (5, TURN, 1))
    delegate(gina, hugo)

    calls = [ask() for _ in range(4)]
    assert [told(call) for call in calls] == [["hugo"], ["ines"]] * 2

    pass_minutes(5)
    look()
    assert [told(call) for call in calls] == [["hugo", "ines"]] * 4


def test_where_two_have_to_approve_a_last_step_that_reaches_one_reaches_all(
    ask: "Ask", team: list[User], olga: User
) -> None:
    two = (Threshold(source="group:payments", approve=2),)
    policy(olga, (0, TURN, 1))
    assert told(ask(thresholds=two)) == ["gina", "hugo", "ines"]
    assert len(told(ask())) == 1


def test_a_step_follows_where_two_have_to_approve_and_counts_the_vote_that_is_there(
    ask: "Ask", team: list[User], olga: User
) -> None:
    policy(olga, (0, TURN, 1), (5, TURN, 1))
    first, second = (
        ask(thresholds=(Threshold(source="group:payments", approve=count),)) for count in (2, 3)
    )
    assert (told(first), told(second)) == (["gina"], ["hugo"])
    say(first, team[0])

    pass_minutes(5)
    look()

    assert len(told(first)) == 2
    assert told(second) == ["gina", "hugo", "ines"]


def test_calls_that_are_read_together_are_taken_in_turn(
    ask: "Ask", team: list[User], olga: User
) -> None:
    policy(olga, (0, TURN, 1))

    with CaptureQueriesContext(connection) as asked:
        calls = ask.many(3)

    assert [told(call) for call in calls] == [["gina"], ["hugo"], ["ines"]]
    turns = 'FROM "notifications_delivery" U0 WHERE (U0."event"'
    assert len([one for one in asked if turns in one["sql"]]) == 1


def test_a_step_that_reaches_a_delegate_waits_for_the_next(
    ask: "Ask", team: list[User], lead: User, olga: User
) -> None:
    """Whoever delegates is away: their own quiet hours call nobody else."""
    Group.objects.create(name="first").user_set.add(team[0])
    policy(olga, (0, OTHERS, "first"), (5, OTHERS, "leads"), group=None)
    gina, hugo, _ines = team
    services.mute(gina, timezone.now() + timedelta(hours=1))
    delegate(gina, hugo)

    assert told(ask("")) == ["hugo"]


def test_a_decided_call_is_not_escalated(ask: "Ask", team: list[User], olga: User) -> None:
    from tests.notifications.test_mail import decide

    policy(olga, (0, TURN, 1), (5, ALL, None))
    call = ask()
    decide(call, team[2])

    pass_minutes(5)
    look()

    assert told(call) == ["gina"]
    assert not Escalation.objects.exists()


def test_a_call_whose_entry_is_detached_holds_up_no_others(
    ask: "Ask", team: list[User], olga: User
) -> None:
    policy(olga, (0, TURN, 1), (5, ALL, None))
    detached, other = ask(), ask()
    Escalation.objects.filter(call_id=detached).update(entry_id=2**40)

    pass_minutes(5)
    look()

    assert sorted(told(other)) == ["gina", "hugo", "ines"]
    assert not Escalation.objects.exists()


def test_a_removed_policy_leaves_nobody_out(ask: "Ask", team: list[User], olga: User) -> None:
    policy(olga, (0, TURN, 1), (5, TURN, 1))
    call = ask()
    escalation_policies.remove(EscalationPolicy.objects.get(), by=olga)

    pass_minutes(5)
    look()

    assert told(call) == ["gina", "hugo", "ines"]


def test_a_step_is_taken_once_also_where_its_process_dies(
    ask: "Ask", team: list[User], olga: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy(olga, (0, TURN, 1), (5, ALL, None))
    call = ask()
    pass_minutes(5)

    def dies(*_given: object) -> None:
        raise SystemExit

    with monkeypatch.context() as broken:
        broken.setattr(deliveries, "_insert", dies)
        with pytest.raises(SystemExit):
            look()
    assert told(call) == ["gina"]

    assert look() == 1
    assert look() == 0
    assert told(call) == ["gina", "hugo", "ines"]


def test_the_card_says_who_was_notified_when_and_when_the_next_are(
    client: Client, ask: "Ask", team: list[User], olga: User
) -> None:
    policy(olga, (0, TURN, 1), (5, ALL, None))
    call = ask()
    address = reverse("notifications:notified", args=[call])
    client.force_login(team[2])

    assert address in client.get(reverse("approvals:detail", args=[call])).text
    page = client.get(address).text
    part = client.get(address, headers={"HX-Request": "true"}).text

    assert "<html" in page
    assert "<html" not in part
    for said in ("gina", "E-mail&nbsp;· Queued", "Next step of the escalation policy:"):
        assert said in page
        assert said in part
    assert "hugo" not in part
    client.force_login(olga)
    assert client.get(address).status_code == 403


@pytest.fixture
def ada(db: None) -> User:
    return scenery.person("ada", Role.ADMINISTRATOR)


def form(*steps: tuple[str, str], group: str = "") -> dict[str, str]:
    given = {"group": group, "steps-TOTAL_FORMS": "5", "steps-INITIAL_FORMS": "0"}
    for n, (after, who) in enumerate(steps):
        given |= {f"steps-{n}-after": after, f"steps-{n}-who": who}
    return given


@pytest.mark.long
def test_an_administrator_makes_changes_and_removes_one(client: Client, ada: User) -> None:
    leads = Group.objects.create(name="leads")
    client.force_login(ada)
    address = reverse("notifications:add_escalation")
    assert "Group: leads" in client.get(address).text

    page = client.post(address, form(("0", "turn:2"), ("15", f"group:{leads.pk}")), follow=True)

    assert "at once: 2 people in turn&nbsp;· after 15 min: Group: leads" in page.text
    made = EscalationPolicy.objects.get()
    edit = reverse("notifications:edit_escalation", args=[made.pk])
    page = client.get(edit)
    assert f'value="group:{leads.pk}" selected' in page.text
    # Those that are filled in and one more; the others are folded.
    assert len(page.context["steps"].shown()) == 3
    assert page.text.count("One more step") == 2
    client.post(edit, form(("0", "everybody"), group=str(leads.pk)))
    assert made.steps.get().target == "everybody"
    client.post(reverse("notifications:remove_escalation", args=[made.pk]))

    assert not EscalationPolicy.objects.exists()
    recorded = Entry.objects.filter(action__startswith="escalation_policy.").order_by("id")
    assert [(one.action, one.actor) for one in recorded] == [
        ("escalation_policy.saved", "ada"),
        ("escalation_policy.saved", "ada"),
        ("escalation_policy.removed", "ada"),
    ]
    assert recorded[0].details == {
        "group": "",
        "steps": [
            {"after_min": 0, "notify": "turn", "people": 2},
            {"after_min": 15, "notify": "group", "group": "leads"},
        ],
    }


@pytest.mark.parametrize(
    ("steps", "said"),
    [
        ([], "Choose who is notified first."),
        ([("5", "everybody")], "The first step must be after 0 minutes."),
        ([("0", "turn:1"), ("0", "everybody")], "Each step must be later than the one before."),
        ([("0", "turn:1"), ("", "everybody")], "After how many minutes?"),
        ([("0", "turn:99")], "is not one of the available choices"),
        ([("0", "turn:1"), ("9999", "everybody")], "less than or equal to 1440"),
    ],
)
def test_what_is_wrong_is_said(
    client: Client, ada: User, steps: list[tuple[str, str]], said: str
) -> None:
    client.force_login(ada)

    page = client.post(reverse("notifications:add_escalation"), form(*steps))

    assert page.status_code == 200
    assert said in page.text
    assert not EscalationPolicy.objects.exists()


@pytest.mark.long
def test_a_policy_of_one_rule_is_made_from_the_rules_page(
    client: Client, ada: User, large: Rule
) -> None:
    client.force_login(ada)
    there = f"{reverse('notifications:add_escalation')}?rule={large.pk}"
    assert there in client.get(reverse("policies:rule", args=[large.pk])).text
    assert f'value="{large.pk}" selected' in client.get(there).text
    both = form(("0", "turn:2"), group=str(Group.objects.create(name="leads").pk))
    assert (
        "Choose a group or a rule, not both."
        in client.post(there, both | {"rule": str(large.pk)}).text
    )

    page = client.post(there, form(("0", "turn:2")) | {"rule": str(large.pk)}, follow=True)

    assert "Rule: Large payments" in page.text
    made = EscalationPolicy.objects.get()
    assert Entry.objects.get(action="escalation_policy.saved").details["rule"] == "Large payments"
    edit = reverse("notifications:edit_escalation", args=[made.pk])
    assert client.get(there)["Location"] == edit
    for wrong in ("x", "99999", "9" * 30):
        assert client.get(f"{there.partition('=')[0]}={wrong}").status_code == 200


def test_a_group_has_one_policy(client: Client, ada: User) -> None:
    client.force_login(ada)
    address = reverse("notifications:add_escalation")
    client.post(address, form(("0", "everybody")))

    page = client.post(address, form(("0", "everybody")))

    assert "There is an escalation policy for it already." in page.text
    assert EscalationPolicy.objects.count() == 1


def test_only_administrators_change_them(
    client: Client, olga: User, alice: User, ada: User
) -> None:
    policy(ada, (0, ALL, None), group=None)
    made = EscalationPolicy.objects.get()
    for person in (olga, alice):
        client.force_login(person)
        assert client.get(reverse("notifications:add_escalation")).status_code == 403
        for name in ("edit_escalation", "remove_escalation"):
            address = reverse(f"notifications:{name}", args=[made.pk])
            assert client.post(address).status_code == 403
    client.force_login(ada)
    page = client.get(reverse("notifications:remove_escalation", args=[made.pk])).text
    assert "Everybody who may decide on such a call is then notified at once" in page
    assert "at once: " in page
    assert Approval.objects.count() == 0
    assert EscalationPolicy.objects.exists()


def test_a_policy_stays_with_its_rule_whose_effect_changed(
    client: Client, ada: User, olga: User, large: Rule
) -> None:
    policy(olga, (0, ALL, None), rule=large)
    Rule.objects.filter(pk=large.pk).update(effect="deny")
    made = EscalationPolicy.objects.get()
    client.force_login(ada)
    edit = reverse("notifications:edit_escalation", args=[made.pk])
    assert f'<option value="{large.pk}" selected>' in client.get(edit).text

    client.post(edit, form(("0", "turn:2")) | {"rule": str(large.pk)})

    made.refresh_from_db()
    assert made.rule_id == large.pk
    assert [one.target for one in made.steps.all()] == ["turn"]
    # Another one cannot be chosen.
    other = Rule.objects.create(name="Other", effect="deny")
    client.post(edit, form(("0", "turn:1")) | {"rule": str(other.pk)})
    made.refresh_from_db()
    assert made.rule_id == large.pk


@pytest.mark.long
@pytest.mark.parametrize("at_once", [True, False])
def test_a_second_policy_of_one_rule_is_not_saved_in_silence(
    client: Client,
    ada: User,
    olga: User,
    large: Rule,
    monkeypatch: pytest.MonkeyPatch,
    at_once: bool,
) -> None:
    client.force_login(ada)
    there = f"{reverse('notifications:add_escalation')}?rule={large.pk}"
    save = escalation_policies.save

    def save_second(*given: Any, **more: Any) -> None:
        monkeypatch.setattr(escalation_policies, "save", save)
        policy(olga, (0, ALL, None), rule=large)
        save(*given, **more)

    if at_once:
        monkeypatch.setattr(escalation_policies, "save", save_second)
    else:
        policy(olga, (0, ALL, None), rule=large)

    page = client.post(there, form(("0", "turn:2")) | {"rule": str(large.pk)}, follow=True)

    assert "There is an escalation policy for it already." in page.text
    assert [one.target for one in EscalationPolicy.objects.get().steps.all()] == ["everybody"]
    assert client.get(there).status_code == 302
