"""The workload of approvers: what is measured, who sees it, and what is proposed."""

import html
import json
import re
from datetime import timedelta
from typing import Any
from uuid import UUID

import orjson
import pytest
from django.contrib.auth.models import Group, Permission
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import Agent, User
from accounts.roles import Role
from approvals import card_views, editing, workload
from approvals.editing import Edit
from approvals.models import Approval, BreakGlass, CardView, Grant
from approvals.services import expire, vote
from approvals.workload import TimedVote
from calls.record.states import State
from policies.models import Effect, Rule
from policies.services import save_rule
from policies.thresholds import Threshold
from registry.models import Tool
from tests.console import scenery

pytestmark = pytest.mark.django_db


@pytest.fixture
def send(olga: User) -> Tool:
    return scenery.server("mailer", olga, scenery.SEND).tools.for_catalogue().get()


@pytest.fixture
def finance(alice: User) -> Group:
    group = Group.objects.create(name="finance")
    alice.groups.add(group)
    return group


def hold(scout: Agent, send: Tool, n: int = 0, **changes: Any) -> UUID:
    arguments = {**scenery.MAIL, "subject": f"Minutes {n}"}
    return scenery.call(scout, send, arguments, State.HELD, **changes)


def decide(call_id: UUID, by: User, *, approve: bool = True) -> None:
    approval = Approval.objects.for_queue().get(pk=call_id)
    vote(approval, by=by, approve=approve, seen_digest=approval.call.call_digest)


def as_(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def test_a_card_is_shown_once_and_only_to_those_who_decide(
    alice: User, olga: User, scout: Agent, send: Tool
) -> None:
    call_id = hold(scout, send)
    vera = scenery.person("ines", Role.AUDITOR)

    as_(vera).get(f"/queue/{call_id}/")
    as_(alice).get(f"/queue/{call_id}/")
    first = CardView.objects.get()
    as_(alice).get(f"/queue/{call_id}/card/")

    assert (first.call_id, first.person) == (call_id, alice)
    assert CardView.objects.get().at == first.at


def test_what_was_decided_is_not_shown_any_more(alice: User, scout: Agent, send: Tool) -> None:
    call_id = hold(scout, send)
    decide(call_id, alice)

    as_(alice).get(f"/queue/{call_id}/")

    assert not CardView.objects.exists()


def test_views_are_kept_for_ninety_days(alice: User, scout: Agent, send: Tool) -> None:
    for n, days in enumerate((10, 91)):
        shown = CardView.objects.create(call_id=hold(scout, send, n), person=alice)
        CardView.objects.filter(pk=shown.pk).update(at=timezone.now() - timedelta(days=days))

    assert card_views.remove_old() == 1


def test_the_week_has_load_share_and_median_by_group_and_person(
    alice: User, finance: Group, scout: Agent, send: Tool
) -> None:
    for n in range(4):
        call_id = hold(scout, send, n)
        if n:
            CardView.objects.create(
                call_id=call_id, person=alice, at=timezone.now() - timedelta(seconds=n * 60)
            )
        decide(call_id, alice, approve=n != 1)

    found = workload.read(None, timezone.now() - timedelta(days=1))

    (row,) = found.people
    assert (row.name, row.decided, row.denied_percent, row.timed) == ("alice", 4, 25, 3)
    assert row.median_s == pytest.approx(120, abs=20)
    assert {"finance", "Approver"} == {one.name for one in found.groups}
    assert sum(row.decided for row in found.hours) == 4


def test_whoever_only_edits_is_counted_too(
    alice: User, finance: Group, scout: Agent, send: Tool
) -> None:
    call_id = hold(scout, send)
    approval = Approval.objects.for_queue().get(pk=call_id)
    changed = Edit(
        seen_digest=approval.call.call_digest,
        arguments=orjson.dumps({**scenery.MAIL, "subject": "Changed"}),
    )
    editing.edit(approval, changed, by=alice)

    found = workload.read(None, timezone.now() - timedelta(days=1))

    assert [(row.name, row.decided, row.edits) for row in found.people] == [("alice", 0, 1)]
    assert ("finance", 1) in {(row.name, row.edits) for row in found.groups}


@pytest.mark.long
def test_the_page_of_an_approver_says_nothing_of_others_bursts(
    alice: User, scout: Agent, send: Tool
) -> None:
    carol = scenery.person("carol", Role.APPROVER)
    for n in range(10):
        decide(hold(scout, send, n), carol)

    of_alice = as_(alice).get("/workload/").text

    assert "carol" not in of_alice
    assert "Nobody approved ten or more calls" not in of_alice
    assert "You did not approve ten or more calls within three minutes." in of_alice


def test_a_vote_on_a_card_that_was_not_shown_has_no_time(
    alice: User, scout: Agent, send: Tool
) -> None:
    decide(hold(scout, send), alice)

    page = as_(alice).get("/workload/").text

    assert "not measured" in page


def test_an_expired_call_that_somebody_opened_is_abandoned(
    alice: User, scout: Agent, send: Tool
) -> None:
    opened, unseen = hold(scout, send, 1), hold(scout, send, 2)
    as_(alice).get(f"/queue/{opened}/")
    Approval.objects.filter(pk__in=[opened, unseen]).update(decide_by=timezone.now())
    expire()

    found = workload.read(None, timezone.now() - timedelta(days=1))

    assert (found.expired, found.abandoned) == (2, 1)


def test_many_approvals_in_a_short_time_are_one_outlier() -> None:
    now = timezone.now()
    fast = [TimedVote(1, "a", "", True, now + timedelta(seconds=4 * n), None) for n in range(41)]
    slow = [TimedVote(1, "a", "", True, now + timedelta(hours=n), None) for n in range(1, 30)]
    denials = [TimedVote(1, "a", "", False, now, None)] * 30

    (burst,) = workload.find_bursts("alice", [*fast, *slow])

    assert (burst.name, burst.approvals, burst.seconds) == ("alice", 41, 160)
    assert not workload.find_bursts("alice", denials)
    assert not workload.find_bursts("alice", fast[:9])


@pytest.mark.long
@pytest.mark.parametrize("ending", ["approved", "denied", "expired"])
def test_a_rule_that_was_never_denied_is_proposed_with_its_bounds(
    ending: str, alice: User, scout: Agent, send: Tool
) -> None:
    rule = Rule(name="mail leaves", effect=Effect.ASK, server="mailer", position=10)
    save_rule(rule, by=alice.actor)
    for n in range(10):
        call_id = hold(scout, send, n, rule_id=rule.pk, rule=rule.name)
        decide(call_id, alice, approve=not (n == 5 and ending == "denied"))
    if ending == "expired":
        hold(scout, send, 11, rule_id=rule.pk, rule=rule.name)
        Approval.objects.waiting().update(decide_by=timezone.now())
        expire()
    ada = scenery.person("ada", Role.ADMINISTRATOR)

    page = as_(ada).get("/workload/").text

    query = f"relax={rule.pk}&server=mailer&tool=send_mail&agent={scout.pk}"
    there = f"{reverse('policies:add_rule')}?{query}"
    assert (there.replace("&", "&amp;") in page) == (ending == "approved")
    editor = as_(ada).get(there).text
    assert "mailer.send_mail without asking" in editor
    assert 'value="shadow" selected' in editor or 'value="shadow" checked' in editor
    assert not Rule.objects.exclude(pk=rule.pk).exists()


TRANSFER = {
    "name": "transfer",
    "inputSchema": {
        "type": "object",
        "properties": {
            "amount": {"type": "number"}, "to": {"type": "array", "items": {"type": "string"}},
            "bank": {"type": "string"}, "note": {"type": "string"}, "at": {"type": "object"},
        },
    },
}  # fmt: skip


@pytest.fixture
def transferred(alice: User, olga: User, scout: Agent) -> Rule:
    """Ten transfers that alice approved alone, by one rule."""
    tool = scenery.server("bank", olga, TRANSFER).tools.for_catalogue().get()
    rule = Rule(name="money leaves", effect=Effect.ASK, server="bank", position=10)
    save_rule(rule, by=alice.actor)
    for n in range(10):
        arguments = {
            "amount": 10 * n, "to": ["ana", "ben"][: 1 + n % 2], "bank": "one",
            "note": f"“{n}”\n", "at": {"place": ["home", "work"][n % 2]},
        }  # fmt: skip
        held = scenery.call(scout, tool, arguments, State.HELD, rule_id=rule.pk, rule=rule.name)
        decide(held, alice)
    return rule


def proposal_of(person: User) -> str:
    found = re.search(
        r'href="(/queue/[^"]+/grant/\?bounds=past)"', as_(person).get("/workload/").text
    )
    return found[1] if found else ""


@pytest.mark.long
def test_a_standing_approval_is_proposed_within_what_was_approved(
    transferred: Rule, alice: User, scout: Agent
) -> None:
    there = proposal_of(alice)

    page = as_(alice).get(there).text

    chosen = dict(re.findall(r'name="is\.(\d)">.*?value="(\w+)" selected', page))
    assert chosen == {"0": "range", "1": "set", "2": "equal", "3": "set", "4": "set"}
    assert 'name="least.0" value="0"' in page
    assert 'name="most.0" value="90"' in page
    assert "It would have matched 10 of your last 10 approvals of this tool" in page
    assert not Grant.objects.exists()
    given = dict(
        re.findall(
            r'name="((?:least|most|prefix)\.\d|looked|max_uses|days_valid)" value="([^"]*)"', page
        )
    )
    values = re.findall(r'name="(values\.\d)"[^>]*>\n(.*?)</textarea>', page, re.DOTALL)
    given |= {name: html.unescape(text) for name, text in values}
    kinds = {f"is.{n}": kind for n, kind in chosen.items()}
    made = as_(alice).post(there, given | kinds | {"do": "make"})
    assert made.status_code == 302, made.text
    assert len(Grant.objects.get().bounds) == 4


@pytest.mark.long
def test_what_another_denied_or_approved_too_widens_no_proposal(
    transferred: Rule, alice: User, scout: Agent
) -> None:
    carol = scenery.person("carol", Role.APPROVER)
    alice.user_permissions.add(Permission.objects.get(codename="break_glass"))
    tool = Tool.objects.get(server__slug="bank")
    made = []
    for n, approves in ((1000, False), (2000, True), (3000, True)):
        arguments = {
            "amount": n, "to": ["mallory"], "bank": "two", "note": "x", "at": {"place": "home"},
        }  # fmt: skip
        two = (Threshold(approve=2 if n < 3000 else 1),)
        named = {"rule_id": transferred.pk, "rule": transferred.name}
        made.append(scenery.call(scout, tool, arguments, State.HELD, thresholds=two, **named))
        if n == 3000:
            seen = Approval.objects.get(pk=made[-1]).call.call_digest
            BreakGlass.objects.create(
                approval_id=made[-1], person=alice, second=carol, reason="Fire.", seen_digest=seen
            )
        decide(made[-1], alice)
        if n < 3000:
            decide(made[-1], carol, approve=approves)
    first = Approval.objects.filter(state="approved").order_by("pk")[0]

    page = as_(alice).get(reverse("approvals:new_grant", args=[first.pk]) + "?bounds=past").text

    assert [Approval.objects.get(pk=one).state for one in made[:2]] == ["denied", "approved"]
    assert re.findall(r'name="most.0" value="([^"]*)"', page) == ["90"]
    values = re.findall(r'name="values\.\d"[^>]*>\n(.*?)</textarea>', page, re.DOTALL)
    assert "mallory" not in "".join(values)


@pytest.mark.long
@pytest.mark.parametrize("text", ["a\rb", "a\nb", "a\u202eb", " a"])
def test_a_value_that_a_line_would_not_show_is_proposed_as_json(
    alice: User, olga: User, scout: Agent, text: str
) -> None:
    tool = scenery.server("bank", olga, TRANSFER).tools.for_catalogue().get()
    for to in (text, "ben"):
        arguments = {"amount": 1, "to": [to], "bank": "one", "note": "x", "at": {"place": "home"}}
        made = scenery.call(scout, tool, arguments, State.HELD)
        decide(made, alice)

    page = as_(alice).get(reverse("approvals:new_grant", args=[made]) + "?bounds=past").text

    (lines,) = re.findall(r'name="values\.1"[^>]*>\n(.*?)</textarea>', page, re.DOTALL)
    assert html.unescape(lines).split("\n") == ["ben", json.dumps(text, ensure_ascii="\r" in text)]


@pytest.mark.long
def test_it_is_proposed_to_whoever_approved_alone(transferred: Rule, scout: Agent) -> None:
    carol = scenery.person("carol", Role.APPROVER)
    auditor = scenery.person("ines", Role.AUDITOR)

    assert proposal_of(carol) == ""
    assert proposal_of(auditor) == ""
    assert "money leaves" in as_(carol).get("/workload/").text


@pytest.mark.long
def test_the_week_has_the_figures_of_each_rule(
    transferred: Rule, alice: User, scout: Agent, send: Tool
) -> None:
    decide(hold(scout, send, 1), alice, approve=False)
    hold(scout, send, 2, rule_id=transferred.pk, rule=transferred.name)
    Approval.objects.waiting().update(decide_by=timezone.now())
    expire()
    decide(hold(scout, send, 3, rule_id=999, rule="gone"), alice)

    found = workload.read(None, timezone.now() - timedelta(days=1))

    rows = [(one.name, one.decided, one.denied_percent, one.expired) for one in found.rules]
    assert rows == [("money leaves", 10, 0, 1), ("a removed rule", 1, 0, 0), ("no rule", 1, 100, 0)]
    shown = as_(alice).get("/workload/").text
    assert "By rule" in shown
    assert re.findall(r'href="(/people/\d+/decisions/|/policies/\d+/usage/)"', shown) == [
        f"/people/{alice.pk}/decisions/",
        f"/policies/{transferred.pk}/usage/",
    ]
    reader = scenery.person("reader")
    reader.user_permissions.add(Permission.objects.get(codename="view_user"))
    assert "By rule" not in as_(reader).get("/workload/").text


@pytest.mark.long
def test_approvers_see_their_groups_and_themselves_and_auditors_everybody(
    alice: User, finance: Group, scout: Agent, send: Tool
) -> None:
    carol = scenery.person("carol", Role.APPROVER)
    carol.groups.remove(Group.objects.get(name=Role.APPROVER))
    others = Group.objects.create(name="others")
    carol.groups.add(others, Group.objects.get(name=Role.APPROVER))
    decide(hold(scout, send, 1), alice)
    decide(hold(scout, send, 2), carol)

    of_alice = as_(alice).get("/workload/").text
    of_auditor = as_(scenery.person("ines", Role.AUDITOR)).get("/workload/").text

    assert "finance" in of_alice
    assert "others" not in of_alice
    assert "carol" not in of_alice
    assert "counted in each of them" in of_auditor
    for name in ("finance", "others", "alice", "carol"):
        assert name in of_auditor


def ask_ten_times(rule: Rule, scout: Agent, send: Tool, by: User, **changes: Any) -> None:
    for n in range(10):
        decide(hold(scout, send, n, rule_id=rule.pk, rule=rule.name, **changes), by)


@pytest.fixture
def secret_rule(alice: User) -> Rule:
    rule = Rule(name="Secret rule", effect=Effect.ASK, server="mailer", position=10)
    save_rule(rule, by=alice.actor)
    return rule


def decider(name: str, *rights: str) -> User:
    """In a group that is no role."""
    made = scenery.person(name)
    made.groups.add(Group.objects.get_or_create(name=f"group of {name}")[0])
    made.user_permissions.add(*Permission.objects.filter(codename__in=rights))
    return User.objects.get(pk=made.pk)


@pytest.mark.long
def test_rules_are_proposed_only_to_users_who_may_see_rules(
    alice: User, finance: Group, secret_rule: Rule, scout: Agent, send: Tool
) -> None:
    ask_ten_times(secret_rule, scout, send, alice)
    dora = decider("dora", "decide_approval")
    dora.groups.add(finance)

    page = as_(dora).get("/workload/").text

    assert "finance" in page
    assert "Secret rule" not in page
    assert "never denied" not in page
    assert workload.read_for(dora, timezone.now() - timedelta(days=1)).proposals == []
    assert "Secret rule" in as_(alice).get("/workload/").text


@pytest.mark.long
def test_of_rules_an_approver_sees_what_their_groups_decided(
    alice: User, secret_rule: Rule, scout: Agent, send: Tool
) -> None:
    ask_ten_times(secret_rule, scout, send, alice)
    rita = decider("rita", "decide_approval", "view_rule")

    without = as_(rita).get("/workload/").text
    ask_ten_times(secret_rule, scout, send, rita)
    own = as_(rita).get("/workload/").text

    assert "Secret rule" not in without
    assert "asked 10 times" in own
    assert "asked 20 times" in as_(scenery.person("ada", Role.ADMINISTRATOR)).get("/workload/").text


def test_of_expired_calls_an_approver_sees_those_their_groups_were_asked_about(
    alice: User, finance: Group, scout: Agent, send: Tool
) -> None:
    hold(scout, send, 1, thresholds=(Threshold(source="group:finance"),))
    hold(scout, send, 2)
    Approval.objects.waiting().update(decide_by=timezone.now())
    expire()
    since = timezone.now() - timedelta(days=1)

    of_dora = workload.read_for(decider("dora", "decide_approval"), since)
    of_alice = workload.read_for(User.objects.get(pk=alice.pk), since)
    of_auditor = workload.read_for(scenery.person("ines", Role.AUDITOR), since)

    assert [one.expired for one in (of_dora, of_alice, of_auditor)] == [1, 2, 2]


@pytest.mark.long
def test_each_approver_group_and_hour_has_what_expired_and_what_was_left_open(
    alice: User, finance: Group, scout: Agent, send: Tool
) -> None:
    carol = scenery.person("carol", Role.APPROVER)
    of_finance = (Threshold(source="group:finance"),)
    decide(hold(scout, send, 1), alice, approve=False)
    opened, unseen = (hold(scout, send, n, thresholds=of_finance) for n in (2, 3))
    of_all = hold(scout, send, 4)
    as_(alice).get(f"/queue/{opened}/")
    as_(carol).get(f"/queue/{of_all}/")
    Approval.objects.filter(pk__in=[opened, unseen, of_all]).update(decide_by=timezone.now())
    expire()

    found = workload.read(None, timezone.now() - timedelta(days=1))

    of = {row.name: (row.decided, row.expired, row.abandoned) for row in found.people}
    assert of == {"alice": (1, 3, 1), "carol": (0, 1, 1)}
    of = {row.name: (row.decided, row.expired, row.abandoned) for row in found.groups}
    assert of == {"finance": (1, 3, 1), "Approver": (1, 3, 2)}
    assert sum(row.decided for row in found.hours) == 1
    assert [sum(getattr(row, of) for row in found.hours) for of in ("expired", "abandoned")] == [
        3,
        2,
    ]


def test_an_hour_has_time_share_denied_and_edits(alice: User, scout: Agent, send: Tool) -> None:
    for n in range(2):
        call_id = hold(scout, send, n)
        shown_at = timezone.now() - timedelta(seconds=60)
        CardView.objects.create(call_id=call_id, person=alice, at=shown_at)
        decide(call_id, alice, approve=bool(n))
    edited = Approval.objects.for_queue().get(pk=hold(scout, send, 2))
    arguments = orjson.dumps({**scenery.MAIL, "subject": "Changed"})
    editing.edit(edited, Edit(edited.call.call_digest, arguments), by=alice)

    found = workload.read(None, timezone.now() - timedelta(days=1))

    assert sum(row.edits for row in found.hours) == 1
    voted = [row for row in found.hours if row.decided]
    assert {row.denied_percent for row in voted} in ({50}, {0, 100})
    assert voted[0].median_s == pytest.approx(60, abs=20)
    shown = as_(alice).get("/workload/").text
    assert f'<th scope="row">{voted[0].name}</th>' in shown


def test_what_asked_others_or_their_owner_did_not_expire_on_an_approver(
    alice: User, finance: Group, bob: User, scout: Agent, send: Tool
) -> None:
    bob.user_permissions.add(Permission.objects.get(codename="decide_approval"))
    carol = scenery.person("carol", Role.APPROVER)
    hold(scout, send, 1, thresholds=(Threshold(source="person:carol"),))
    hold(
        scout,
        send,
        2,
        thresholds=(
            Threshold(source="group:finance", after_min=5),
            Threshold(source="person:carol"),
        ),
    )
    Approval.objects.waiting().update(decide_by=timezone.now())
    expire()
    since = timezone.now() - timedelta(days=1)

    assert [(row.name, row.expired) for row in workload.read(None, since).people] == [("carol", 2)]
    assert workload.read_for(User.objects.get(pk=carol.pk), since).expired == 2
    assert workload.read_for(User.objects.get(pk=alice.pk), since).expired == 0


def test_approvers_in_no_group_see_their_own(alice: User, scout: Agent, send: Tool) -> None:
    dora = decider("dora", "decide_approval")
    dora.groups.clear()
    decide(hold(scout, send), dora)

    found = workload.read_for(User.objects.get(pk=dora.pk), timezone.now() - timedelta(days=1))

    assert [(row.name, row.decided) for row in found.people] == [("dora", 1)]


def test_nobody_else_sees_it(mallory: User, olga: User) -> None:
    assert as_(mallory).get("/workload/").status_code == 403
    assert as_(olga).get("/workload/").status_code == 403
    assert Client().get("/workload/").status_code == 302


@pytest.mark.parametrize("week", ["0", "3", "999", "x", "-1", "99999999"])
def test_a_week_without_decisions_says_so(week: str, alice: User) -> None:
    page = as_(alice).get(f"/workload/?week={week}")

    assert "No decisions in this week" in page.text


@pytest.mark.long
def test_the_page_asks_twelve_queries_at_most(
    alice: User, scout: Agent, send: Tool, django_assert_max_num_queries: Any
) -> None:
    rule = Rule(name="mail leaves", effect=Effect.ASK, server="mailer", position=10)
    save_rule(rule, by=alice.actor)
    for n in range(12):
        decide(hold(scout, send, n, rule_id=rule.pk, rule=rule.name), alice)
    client = as_(scenery.person("ada", Role.ADMINISTRATOR))
    client.get("/workload/")

    with django_assert_max_num_queries(12):
        page = client.get("/workload/").text

    assert "alice approved 12 in" in page
