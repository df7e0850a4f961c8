"""Changes of rules, and what each makes of six recorded calls, worked out by hand.

The calls, of an agent scout of bob's and an agent robin of carol's (group payments):
A scout sends a mail; B scout sends the mail “Invoice 12”, which rules denied then; C scout adds 1
and 2; D scout adds 1000 and 2; E robin adds 5 and 5; F robin sends a mail.
send_mail is destructive and open-world; add is read-only and does not say whether it is open.
"""

from __future__ import annotations

from datetime import timedelta
from functools import partialmethod
from typing import Any
from uuid import UUID

import pytest
import yaml
from django.contrib.auth.models import Group
from django.db import transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts import custom_roles, role_changes
from accounts import services as accounts
from accounts.models import Agent, AgentToken, User
from accounts.roles import Role
from approvals import services
from approvals.models import Approval, CardView, Vote
from approvals.policy_plans import applying, planning
from approvals.policy_plans.planning import NothingToPlan
from approvals.policy_plans.summaries import markdown
from calls.record.states import State
from calls.replay import recorded_calls
from calls.replay.replaying import CallReplay
from policies.models import PolicyPlan
from registry.models import Server, Tool
from registry.services import set_tags
from tests.console import scenery

pytestmark = pytest.mark.django_db

ALL = "{name: all, effect: allow}"
NO_MAIL = "{name: no mail, effect: deny, server: mailer, tool: send_mail}"
ASK_MAIL = "{name: ask mail, effect: ask, server: mailer, tool: send_mail}"
TWO = "{name: two, effect: ask, tool: send_mail, thresholds: [{approve: 2}]}"
SINKS = "{name: sinks, effect: ask, when: \"'sink' in tool.labels\"}"


def deny(more: str) -> str:
    return f"{{name: it, effect: deny, {more}}}"


def ask(more: str) -> str:
    return f"{{name: it, effect: ask, {more}}}"


def allow(more: str) -> str:
    return f"{{name: it, effect: allow, {more}}}"


# Name: rules before, rules after, the decisions that change.
TABLE: dict[str, tuple[list[str], list[str], str]] = {
    "allow all": ([], [ALL], "ABCDEF ask>allow"),
    "allow nothing": ([ALL], [], "ABCDEF allow>ask"),
    "deny all": ([ALL], [deny("server: '*'")], "ABCDEF allow>deny"),
    "deny a tool": ([ALL], [ALL, NO_MAIL], "ABF allow>deny"),
    "ask about a tool": ([ALL], [ALL, ASK_MAIL], "ABF allow>ask"),
    "take a denial away": ([ALL, NO_MAIL], [ALL], "ABF deny>allow"),
    "ask in place of denying": ([ALL, NO_MAIL], [ALL, ASK_MAIL], "ABF deny>ask"),
    "deny in place of asking": ([ALL, ASK_MAIL], [ALL, NO_MAIL], "ABF ask>deny"),
    "another name": ([ALL], ["{name: other, effect: allow}"], ""),
    "another order": ([ALL, NO_MAIL], [NO_MAIL, ALL], ""),
    "another reason": ([ALL], ["{name: all, effect: allow, reason: It may.}"], ""),
    "deny beats ask": ([ask("tool: '*'")], [ask("tool: '*'"), NO_MAIL], "ABF ask>deny"),
    "ask beats allow": ([ALL], [ALL, ask("tool: add")], "CDE allow>ask"),
    "observe a denial": (
        [ALL, deny("tool: send_mail")],
        [ALL, deny("tool: send_mail, mode: shadow")],
        "ABF deny>allow",
    ),
    "enforce what was observed": (
        [ALL, deny("tool: send_mail, mode: shadow")],
        [ALL, deny("tool: send_mail")],
        "ABF allow>deny",
    ),
    "switch on": ([ALL, deny("mode: off")], [ALL, deny("mode: enforce")], "ABCDEF allow>deny"),
    "switch off": ([ALL, deny("tool: add")], [ALL, deny("tool: add, mode: off")], "CDE deny>allow"),
    "observe one more": ([ALL], [ALL, deny("mode: shadow")], ""),
    "a pattern for a name": (
        [ALL, deny("server: mailer, tool: add")],
        [ALL, deny("server: mail*, tool: add")],
        "",
    ),
    "any tool": ([ALL, deny("tool: send_mail")], [ALL, deny("tool: '*'")], "CDE allow>deny"),
    "letters of a set": ([ALL], [ALL, deny("tool: '[as]*'")], "ABCDEF allow>deny"),
    "one letter": ([ALL], [ALL, ask("tool: '?dd'")], "CDE allow>ask"),
    "capital letters": ([ALL], [ALL, deny("tool: ADD")], ""),
    "another server": ([ALL], [ALL, deny("server: bank")], ""),
    "destructive tools": ([ALL], [ALL, deny("hint: destructive")], "ABF allow>deny"),
    "tools that write": ([ALL], [ALL, ask("hint: writes")], "ABF allow>ask"),
    "open tools, or not declared": ([ALL], [ALL, ask("hint: open_world")], "ABCDEF allow>ask"),
    "one agent": ([ALL], [ALL, deny("agents: [scout]")], "ABCD allow>deny"),
    "the other agent": ([ALL], [ALL, ask("agents: [robin]")], "EF allow>ask"),
    "allow a group": ([], [allow("owner_groups: [payments]")], "EF ask>allow"),
    "deny a group": ([ALL], [ALL, deny("owner_groups: [payments]")], "EF allow>deny"),
    "an amount": ([ALL], [ALL, deny("tool: add, when: args.a > 100")], "D allow>deny"),
    "an amount that mails do not have": (
        [ALL],
        [ALL, deny("when: args.a > 100")],
        "ABF allow>ask, D allow>deny",
    ),
    "an amount where there is one": (
        [ALL],
        [ALL, deny("when: has(args.a) && args.a > 100")],
        "D allow>deny",
    ),
    "one subject": (
        [],
        [allow("server: mailer, tool: send_mail, when: args.subject == 'Invoice 12'")],
        "B ask>allow",
    ),
    "a lower amount": (
        [ALL, deny("tool: add, when: args.a > 100")],
        [ALL, deny("tool: add, when: args.a > 1")],
        "E allow>deny",
    ),
    "the amount itself": (
        [ALL, deny("tool: add, when: args.a > 100")],
        [ALL, deny("tool: add, when: args.a >= 1")],
        "CE allow>deny",
    ),
    "two people": ([ALL, ASK_MAIL], [ALL, TWO], "ABF ask>ask"),
    "two people besides one": ([ALL, ASK_MAIL], [ALL, ASK_MAIL, TWO], "ABF ask>ask"),
    "one person, written out": (
        [ALL, ask("tool: add")],
        [ALL, ask("tool: add, thresholds: [{approve: 1}]")],
        "",
    ),
    "less time": ([ALL, ask("tool: add")], [ALL, ask("tool: add, decide_within: 60")], ""),
    "a tag": ([], [allow("when: \"'sums' in tool.tags\"")], "CDE ask>allow"),
    "an agent by condition": ([ALL], [ALL, deny("when: agent.name == 'robin'")], "EF allow>deny"),
    "an owner by condition": ([ALL], [ALL, deny("when: agent.owner == 'bob'")], "ABCD allow>deny"),
    "groups by condition": (
        [ALL],
        [ALL, deny("when: \"'payments' in agent.groups\"")],
        "EF allow>deny",
    ),
    "an hour long ago": ([ALL], [ALL, deny("when: now.getFullYear() < 2000")], ""),
    "read-only by condition": ([ALL], [ALL, deny("when: tool.risk == 'reads'")], "CDE allow>deny"),
    "tools that send outside": ([ALL], [ALL, SINKS], "ABCDEF allow>ask"),
    "first calls of the hour": ([ALL], [ALL, ask("when: history.calls_1h > 0")], "BD allow>ask"),
}
EMAIL = {**scenery.MAIL, "subject": "Invoice 12"}


@pytest.fixture
def calls(scout: Agent) -> dict[str, UUID]:
    olga, carol = scenery.person("olga", Role.OPERATOR), scenery.person("carol")
    for name in ("alice", "anna"):
        scenery.person(name, Role.APPROVER)
    carol.groups.add(Group.objects.create(name="payments"))
    robin = accounts.create_agent("robin", owner=carol, by=carol)
    mailer = scenery.server("mailer", olga, scenery.SEND, scenery.ADD)
    send, add = (Tool.objects.get(server=mailer, name=name) for name in ("send_mail", "add"))
    set_tags(add, ["sums"], by=olga)
    denied = {"effect": "deny", "reason": "Rule “x” says so."}
    return {
        "A": scenery.call(scout, send, scenery.MAIL, State.QUEUED),
        "B": scenery.call(scout, send, EMAIL, State.REFUSED, **denied),
        "C": scenery.call(scout, add, {"a": 1, "b": 2}, State.QUEUED),
        "D": scenery.call(scout, add, {"a": 1000, "b": 2}, State.QUEUED),
        "E": scenery.call(robin, add, {"a": 5, "b": 5}, State.QUEUED),
        "F": scenery.call(robin, send, scenery.MAIL, State.QUEUED),
    }


def planned(rules: list[str], more: str = "") -> PolicyPlan:
    text = "version: 1\nrules:\n" + "".join(f"  - {rule}\n" for rule in rules) + more
    return planning.make_plan(text if rules else f"version: 1\nrules: []\n{more}", by=None)


def there(rules: list[str]) -> None:
    if rules:
        text = "version: 1\nrules:\n" + "".join(f"  - {rule}\n" for rule in rules)
        applying.apply_as_owner(text)


def changed(plan: PolicyPlan, calls: dict[str, UUID]) -> str:
    letters = {str(pk): letter for letter, pk in calls.items()}
    found: dict[str, str] = {}
    for one in sorted(plan.result["examples"], key=lambda one: letters[one["call"]]):
        kind = f"{one['before']}>{one['after']}"
        found[kind] = found.get(kind, "") + letters[one["call"]]
    return ", ".join(sorted(f"{which} {kind}" for kind, which in found.items()))


@pytest.mark.parametrize("name", TABLE)
def test_what_a_change_would_have_done(name: str, calls: dict[str, UUID]) -> None:
    before, after, expected = TABLE[name]
    there(before)

    plan = planned(after)

    assert changed(plan, calls) == expected
    result = plan.result
    assert (result["calls"], result["replayed"], result["unread"]) == (6, 6, 0)
    letters = [part.partition(" ") for part in expected.split(", ") if part]
    assert result["changed"] == sum(len(which) for which, _space, _kind in letters)
    runs = any("B" in which and kind.endswith(">allow") for which, _space, kind in letters)
    assert result["would_run_total"] == (1 if runs else 0)
    assert [one["call"] for one in result["would_run"]] == [str(calls["B"])] * runs


def test_it_counts_by_rule_agent_tool_and_who_is_asked(calls: dict[str, UUID]) -> None:
    there([ALL])

    result = planned([ALL, TWO]).result

    assert result["by_rule"] == [
        {"rule_before": "all", "rule_after": "two", "before": "allow", "after": "ask", "calls": 3}
    ]
    assert result["by_agent"] == [
        {"agent": "scout", "before": "allow", "after": "ask", "calls": 2},
        {"agent": "robin", "before": "allow", "after": "ask", "calls": 1},
    ]
    assert result["by_tool"] == [
        {"tool": "mailer.send_mail", "before": "allow", "after": "ask", "calls": 3}
    ]
    assert result["asked"] == [{"who": "2 approvals; 1 denial decides", "calls": 3}]


def test_other_labels_are_replayed_too(calls: dict[str, UUID]) -> None:
    there([ALL, SINKS])

    plan = planned([ALL, SINKS], "tools:\n  mailer.add: {labels: {sink: 'no'}}\n")

    assert changed(plan, calls) == "CDE ask>allow"


@pytest.mark.parametrize(
    ("condition", "expected"),
    [("client.id == 'https://ide.example'", "G allow>deny"), ("credential.owner == ''", "")],
)
def test_it_knows_the_client_and_whose_credential_is_used(
    calls: dict[str, UUID], scout: Agent, condition: str, expected: str
) -> None:
    token = AgentToken.objects.create(
        agent=scout,
        created_by=scout.owner,
        client_id="https://ide.example",
        resource="https://countersign.example/mcp",
        expires_at=timezone.now() + timedelta(days=1),
        digest=b"",
    )
    send = Tool.objects.get(name="send_mail")
    calls["G"] = scenery.call(scout, send, scenery.MAIL, State.QUEUED, token_id=token.pk)
    Server.objects.update(sign_in=Server.SignIn.PERSON)
    there([ALL])

    plan = planned([ALL, deny(f'when: "{condition}"')])

    assert changed(plan, calls) == expected
    assert plan.result["unread"] == 0


def test_the_owner_was_renamed_and_left_a_group_since(calls: dict[str, UUID]) -> None:
    """What they were called, and which groups they were in, is as of the calls."""
    ada = scenery.person("ada", Role.ADMINISTRATOR)
    carol = User.objects.get(username="carol")
    accounts.set_groups(carol, [], by=ada)
    accounts.rename(carol, "caroline", by=ada)
    there([ALL])
    was = [ALL, deny("when: \"agent.owner == 'carol' && 'payments' in agent.groups\"")]
    now = [ALL, deny("when: \"agent.owner == 'caroline' || !('payments' in agent.groups)\"")]

    assert changed(planned(was), calls) == "EF allow>deny"
    assert changed(planned(now), calls) == "ABCD allow>deny"


def test_a_role_was_retired_and_a_group_deleted_since(
    calls: dict[str, UUID], client: Client, django_user_model: Any
) -> None:
    """Calls before are of somebody who had both."""
    ada = scenery.person("ada", Role.ADMINISTRATOR)
    carol = User.objects.get(username="carol")
    terms = custom_roles.RoleTerms(frozenset({"registry.view_tool"}))
    clerk = custom_roles.create("Clerk", description="Reads.", terms=terms, by=ada)
    carol.groups.add(clerk.group)
    custom_roles.retire(clerk, by=ada)
    root = django_user_model.objects.create_superuser("root")
    client.force_login(root)
    payments = Group.objects.get(name="payments")
    client.post(reverse("admin:auth_group_delete", args=[payments.pk]), {"post": "yes"})
    assert not Group.objects.filter(name="payments").exists()
    there([ALL])
    had = [ALL, deny("when: \"'payments' in agent.groups && 'Clerk' in agent.groups\"")]

    assert changed(planned(had), calls) == "EF allow>deny"


def test_the_past_is_read_for_a_while(
    calls: dict[str, UUID], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        CallReplay, "__init__", partialmethod(CallReplay.__init__, lookbacks_left_s=0)
    )
    there([ALL])

    result = planned([ALL, ask("tool: add, when: history.calls_1h > 0")]).result

    assert (result["replayed"], result["unread"]) == (3, 3)


@pytest.fixture
def a_minute_each(calls: dict[str, UUID], scout: Agent) -> None:
    """One more addition, which alice approved a minute after its card was shown to her."""
    alice, add = User.objects.get(username="alice"), Tool.objects.get(name="add")
    pending = scenery.call(scout, add, {"a": 1, "b": 1}, State.HELD)
    approval = Approval.objects.get(pk=pending)
    services.vote(approval, by=alice, approve=True, seen_digest=approval.call.call_digest)
    voted = Vote.objects.get(approval=approval).at
    CardView.objects.update_or_create(
        call_id=pending, person=alice, defaults={"at": voted - timedelta(minutes=1)}
    )


# All calls are of the last day, which counts as one: three mails a day are 21 a week.
@pytest.mark.parametrize(
    ("before", "after", "minutes"),
    [
        ([ALL], [ALL, ASK_MAIL], 21.0),
        ([ALL, ASK_MAIL], [ALL], -21.0),
        ([ALL], [ALL, TWO], 42.0),
        ([ALL, ASK_MAIL], [ALL, TWO], 21.0),
        ([ALL, NO_MAIL], [ALL], 0.0),
    ],
)
def test_reviewer_minutes_by_hand(
    a_minute_each: None, before: list[str], after: list[str], minutes: float
) -> None:
    there(before)

    plan = planned(after)

    result = plan.result
    assert (result["timed_votes"], result["median_vote_s"]) == (1, 60.0)
    assert result["minutes_a_week"] == minutes
    verb = "saves" if minutes < 0 else "adds"
    said = f"It {verb} about {abs(minutes)} reviewer minutes a week (median 60 s of 1 timed votes)"
    assert said in markdown(plan)


def test_minutes_of_calls_that_were_not_judged(
    a_minute_each: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two of the four additions are judged, and stand for all: 28 a week."""
    monkeypatch.setattr(
        CallReplay, "__init__", partialmethod(CallReplay.__init__, lookbacks_left=2)
    )
    there([ALL])

    result = planned([ALL, ask("tool: add, when: history.calls_1h >= 0")]).result

    assert (result["replayed"], result["unread"], result["changed"]) == (5, 2, 2)
    assert result["minutes_a_week"] == 28.0
    assert result["bound_points"] is None


def test_minutes_are_unknown_where_no_past_was_read(
    a_minute_each: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        CallReplay, "__init__", partialmethod(CallReplay.__init__, lookbacks_left=0)
    )
    there([ALL])

    plan = planned([ALL, ask("tool: add, when: history.calls_1h >= 0")])

    assert plan.result["minutes_a_week"] is None
    assert "unknown: too few calls could be judged" in markdown(plan)


def test_calls_are_judged_in_an_order_by_chance(calls: dict[str, UUID]) -> None:
    taken = recorded_calls.sample(days=30, most=1_000, until=timezone.now())

    with transaction.atomic():
        found = [call.id for call in recorded_calls.stream(taken)]

    assert found == sorted(calls.values(), key=lambda pk: pk.bytes[-2:])


def test_who_denied_is_said_of_denied_calls_alone(calls: dict[str, UUID]) -> None:
    result = planned([ALL]).result

    denied = {one["call"]: one["denied_by"] for one in result["examples"]}
    assert denied.pop(str(calls["B"])) == "rules"
    assert {*denied.values()} == {None}


def test_a_role_was_confirmed_since(calls: dict[str, UUID], settings: Any) -> None:
    """By a second administrator: calls before are of somebody who did not have it."""
    settings.TWO_ADMINISTRATORS = True
    ada, eve = (scenery.person(name, Role.ADMINISTRATOR) for name in ("ada", "eve"))
    User.objects.filter(username="carol").update(invited_by=None)
    carol = User.objects.get(username="carol")
    accounts.set_groups(carol, [*carol.groups.all(), Group.objects.get(name=Role.APPROVER)], by=ada)
    (change,) = role_changes.requested()
    role_changes.confirm(change, by=eve)
    assert Role.APPROVER in {*carol.groups.values_list("name", flat=True)}
    there([ALL])

    assert changed(planned([ALL, deny(f"owner_groups: [{Role.APPROVER}]")]), calls) == ""
    assert changed(planned([ALL, deny("owner_groups: [payments]")]), calls) == "EF allow>deny"


def test_the_same_rules_are_no_plan(calls: dict[str, UUID]) -> None:
    there([ALL, NO_MAIL])

    with pytest.raises(NothingToPlan):
        planned([ALL, NO_MAIL])


def test_the_table_has_forty_changes_that_can_be_read() -> None:
    assert len(TABLE) >= 40
    assert all(
        isinstance(yaml.safe_load(rule), dict) for row in TABLE.values() for rule in row[0] + row[1]
    )
