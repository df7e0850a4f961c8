"""Applying plans: who confirms, what is refused, and nothing or all."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db import connections
from django.db.models.signals import pre_save
from django.test import Client
from django.utils import timezone
from django.utils.translation import override

from accounts.models import Agent, User
from accounts.roles import Role
from approvals.policy_plans import applying, planning, summaries
from approvals.policy_plans.applying import BaseMoved, PlanNotApplied, apply_plan
from audit.models import Entry
from policies import services
from policies.limits.services import save_limit
from policies.models import Limit, PlanConfirmation, PolicyPlan, Rule
from registry import managed
from registry.models import ManagedPart, Server, Tool, Toolset
from registry.services import delete_server, set_enabled, set_relays
from tests.accounts.factors import Clock, clock
from tests.approvals.test_policy_plans import confirm, new_code
from tests.console import scenery
from tests.gateway.service_api import program

pytestmark = pytest.mark.django_db
__all__ = ["clock"]

FILE = """\
version: 1
rules:
  - {name: rest, effect: allow}
  - {name: mail, effect: deny, server: mailer, tool: send_mail}
limits:
  - {name: a minute, kind: calls, amount: 60, period: minute, effect: deny}
"""
HERE = "https://git.example/policy.yaml"
MANAGED = f"managed_by: {HERE}\n{FILE}"


MAY = (
    "policies.view_rule",
    "policies.view_limit",
    "registry.view_server",
    "registry.view_tool",
    "registry.view_toolset",
    "accounts.view_agent",
    "notifications.view_oncallschedule",
    "policies.view_policyplan",
    "policies.add_policyplan",
    "policies.apply_policyplan",
    "policies.add_rule",
    "calls.view_call",
)


@pytest.fixture
def ada(db: None) -> User:
    return scenery.person("ada", Role.ADMINISTRATOR, Role.OPERATOR)


@pytest.fixture
def eve(db: None) -> User:
    return scenery.person("eve", Role.ADMINISTRATOR)


def plan_of(text: str = FILE, by: Any = None) -> PolicyPlan:
    return planning.make_plan(text, by=by)


def signed(client: Client, ada: User, clock: Clock, text: str = FILE) -> PolicyPlan:
    plan = plan_of(text)
    confirm(client, ada, plan, clock)
    return plan


def press(client: Client, person: User, plan: PolicyPlan, **given: str) -> Any:
    client.force_login(person)
    return client.post(f"/policies/plans/{plan.digest}/confirm/", given)


# Who confirms.


def test_nothing_is_applied_without_a_confirmation(ada: User) -> None:
    plan = plan_of()

    with pytest.raises(PlanNotApplied, match="one more person"):
        apply_plan(plan.digest, by=ada)

    assert not Rule.objects.exists()
    assert Entry.objects.get(action="policy.apply_failed").reason.startswith("It takes one more")


def test_a_plan_of_limits_is_not_said_to_decide_nothing(client: Client, ada: User) -> None:
    Limit.objects.create(name="few", kind="calls", amount=1, period="day", effect="deny")
    plan = plan_of("version: 1\nlimits: []\n")
    client.force_login(ada)

    page = client.get(f"/policies/plans/{plan.digest}/").content.decode()

    assert "Limits, toolsets and servers are not replayed." in page
    assert "Limits, toolsets and servers are not replayed." in summaries.markdown(plan)


def test_nothing_hides_on_the_page_of_a_plan(client: Client, ada: User) -> None:
    Rule.objects.create(name="a\u202eb", effect="deny")
    text = 'version: 1\nmanaged_by: "x\\u202ey"\nrules: [{name: "a\\u202eb", effect: ask}]\n'
    plan = planning.make_plan(text, by=ada, origin="pull \u202e7")
    client.force_login(ada)

    assert "\u202e" not in client.get(f"/policies/plans/{plan.digest}/").content.decode()
    assert "\u202e" not in client.get("/policies/plans/").content.decode()


def test_opening_a_plan_confirms_nothing(client: Client, ada: User) -> None:
    plan = plan_of()
    client.force_login(ada)

    assert client.get(f"/policies/plans/{plan.digest}/").status_code == 200
    assert client.get(f"/policies/plans/{plan.digest}/confirm/").status_code == 405
    assert not PlanConfirmation.objects.exists()


@pytest.mark.parametrize("given", [{}, {"code": "000000"}, {"answer": "{}", "ticket": "x"}])
def test_it_takes_a_factor(client: Client, ada: User, clock: Clock, given: dict[str, str]) -> None:
    plan = plan_of()
    new_code(ada, clock)

    assert press(client, ada, plan, **given).status_code == 403
    assert not PlanConfirmation.objects.exists()


def test_a_code_of_another_plan_is_spent(client: Client, ada: User, clock: Clock) -> None:
    code = new_code(ada, clock)
    assert press(client, ada, plan_of(), code=code).status_code == 302

    assert press(client, ada, plan_of(MANAGED), code=code).status_code == 403


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.APPROVER, Role.AUDITOR, Role.VIEWER])
def test_other_roles_confirm_nothing(client: Client, clock: Clock, role: Role) -> None:
    plan, pat = plan_of(), scenery.person("pat", role)

    assert press(client, pat, plan, code=new_code(pat, clock)).status_code == 403
    assert not PlanConfirmation.objects.exists()


def test_who_confirms_may_make_each_of_its_changes(
    client: Client, ada: User, eve: User, clock: Clock
) -> None:
    """An administrator who is no operator sets no servers."""
    scenery.server("mailer", ada, scenery.SEND)
    plan = plan_of("version: 1\nservers:\n  mailer: {relays: [roots]}\n")

    answer = press(client, eve, plan, code=new_code(eve, clock))

    assert answer.status_code == 403
    assert "Change servers" in answer.content.decode()
    confirm(client, ada, plan, clock)
    apply_plan(plan.digest, by=ada)
    assert Server.objects.get(slug="mailer").relays == ["roots"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tools:\n  mailer.send_mail: {labels: {sensitive: yes}}\n", "operate_server"),
        ("servers:\n  mailer: {results: {secrets: true}}\n", "operate_server"),
        ("servers:\n  mailer: {enabled: false}\n", "change_server"),
    ],
)
def test_labels_and_results_take_what_their_forms_take(ada: User, text: str, said: str) -> None:
    scenery.server("mailer", ada, scenery.SEND)

    needed = applying.permissions_of(plan_of(f"version: 1\n{text}"))

    assert f"registry.{said}" in needed
    assert ("registry.operate_server" in needed) == (said == "operate_server")


def test_a_confirmation_ends_with_the_right_to_it(client: Client, ada: User, clock: Clock) -> None:
    plan = signed(client, ada, clock)
    ada.groups.clear()

    with pytest.raises(PlanNotApplied, match="one more person"):
        apply_plan(plan.digest, by=None)


@pytest.mark.long
def test_two_people_where_it_is_set_so(
    client: Client, ada: User, eve: User, clock: Clock, settings: Any
) -> None:
    settings.POLICY_NEEDS_TWO = True
    plan = signed(client, ada, clock)
    with pytest.raises(PlanNotApplied, match="one more person"):
        apply_plan(plan.digest, by=ada)
    assert press(client, ada, plan, code="1").status_code == 403

    confirm(client, eve, plan, clock)

    assert apply_plan(plan.digest, by=ada).applied_at


@pytest.mark.long
def test_a_plan_that_needs_a_second_person_is_in_their_queue(
    client: Client, ada: User, eve: User, clock: Clock, settings: Any
) -> None:
    settings.POLICY_NEEDS_TWO = True
    plan = plan_of()

    def is_listed(person: User) -> bool:
        client.force_login(person)
        return f"/policies/plans/{plan.digest}/" in client.get("/queue/").text

    eve.groups.add(Group.objects.get(name=Role.APPROVER))
    assert not is_listed(eve), "nobody confirmed it"
    confirm(client, ada, plan, clock)
    assert is_listed(eve)
    assert "Needs a second person" in client.get("/policies/plans/").text
    assert not is_listed(ada), "they confirmed it"
    assert "Needs a second person" not in client.get("/policies/plans/").text
    assert not is_listed(scenery.person("pat", Role.APPROVER)), "they may not confirm it"
    Rule.objects.create(name="late", effect="deny")
    assert not is_listed(eve), "its base moved"
    Rule.objects.all().delete()
    settings.POLICY_NEEDS_TWO = False
    assert not is_listed(eve)
    settings.POLICY_NEEDS_TWO = True
    confirm(client, eve, plan, clock)
    assert not is_listed(eve)


def test_who_invited_the_second_one_is_no_other_person(
    client: Client, ada: User, eve: User, clock: Clock, settings: Any
) -> None:
    settings.POLICY_NEEDS_TWO = True
    until = timezone.now() + timedelta(days=9)
    User.objects.filter(pk=eve.pk).update(invited_by=ada, unconfirmed_until=until)
    plan = signed(client, ada, clock)
    confirm(client, User.objects.get(pk=eve.pk), plan, clock)

    with pytest.raises(PlanNotApplied, match="one more person"):
        apply_plan(plan.digest, by=ada)


def test_a_token_proposes_and_applies_and_never_confirms(
    client: Client, ada: User, clock: Clock
) -> None:
    robot = program("robot", ada, *MAY)
    made = robot.post("policy/plans", {"proposal": FILE, "origin": "pull 7"})
    there = f"policy/plans/{made['digest']}"
    assert robot.ask("POST", f"{there}/apply", {}).status_code == 409
    for path in ("confirm", "apply"):
        refused = Client().post(
            f"/policies/plans/{made['digest']}/{path}/",
            headers={"Authorization": f"Bearer {robot.token}"},
        )
        assert refused.status_code == 302, "to the page of signing in"
    assert not PlanConfirmation.objects.exists()

    confirm(client, ada, PolicyPlan.objects.get(), clock)

    assert robot.get(there)["confirmed_by"] == ["ada"]
    assert robot.post(f"{there}/apply")["applied_at"]
    assert Rule.objects.count() == 2
    saved = Entry.objects.filter(action="rule.saved").values_list("actor", flat=True)
    assert set(saved) == {"service account robot"}


def test_the_api_says_what_is_wrong_and_keeps_nothing(ada: User) -> None:
    robot = program("robot", ada, *MAY)

    answer = robot.ask("POST", "policy/plans", {"proposal": "version: 1\nrules: 3\n"})
    same = robot.ask("POST", "policy/plans", {"proposal": "version: 1\nrules: []\n"})

    assert answer.status_code == 400
    assert answer.json()["errors"][0]["line"] == 2
    assert answer.json()["errors"][0]["path"] == "rules"
    assert same.status_code == 204
    assert not PolicyPlan.objects.exists()


@pytest.mark.parametrize("calls", [0, 1, 999, 100_001])
def test_no_token_keeps_a_plan_from_being_judged(ada: User, calls: int) -> None:
    robot = program("robot", ada, *MAY)

    answer = robot.ask("POST", "policy/plans", {"proposal": FILE, "calls": calls})

    assert answer.status_code == 400
    assert not PolicyPlan.objects.exists()


def test_what_a_file_changes_is_shown_to_who_may_export(ada: User) -> None:
    Rule.objects.create(name="secret plans", effect="deny")
    few = program("few", ada, "policies.add_policyplan", "policies.view_limit")

    for path in ("policy/plans", "policy/difference"):
        answer = few.ask("POST", path, {"proposal": FILE})
        assert answer.status_code == 403
        assert b"secret plans" not in answer.content


@pytest.mark.parametrize("lacking", [one for one in MAY if ".view_" in one])
def test_a_plan_is_shown_to_who_may_see_all_that_is_in_it(ada: User, lacking: str) -> None:
    plan = plan_of()
    few = program("few", ada, *(one for one in MAY if one != lacking))
    path = f"policy/plans/{plan.digest}"

    for method, where in (("GET", "policy/plans"), ("GET", path), ("POST", f"{path}/apply")):
        assert few.ask(method, where, {} if method == "POST" else None).status_code == 403


def test_the_api_exports_and_compares(ada: User) -> None:
    robot = program("robot", ada, *MAY)

    export = robot.get("policy/export")["policy"]

    # Editors find the schema beside the file: they have no token for the address of ours.
    assert export.startswith("# yaml-language-server: $schema=./policy.schema.json\n")
    assert robot.post("policy/difference", {"proposal": export}) == {"changes": []}
    found = robot.post("policy/difference", {"proposal": FILE})["changes"]
    assert [(one["section"], one["kind"]) for one in found] == [
        ("rules", "added"),
        ("rules", "added"),
        ("limits", "added"),
    ]
    assert robot.get("policy/schema.json")["properties"]["version"] == {"const": 1}


# Onto what it was made for, once, whole.


def test_a_plan_is_applied_once(client: Client, ada: User, clock: Clock) -> None:
    plan = signed(client, ada, clock)
    apply_plan(plan.digest, by=ada)

    with pytest.raises(PlanNotApplied, match="applied already"):
        apply_plan(plan.digest, by=ada)


@pytest.mark.long
@pytest.mark.parametrize("between", ["rule", "limit", "order"])
def test_a_base_that_moved_is_refused(
    client: Client, ada: User, clock: Clock, between: str
) -> None:
    for place, name in enumerate(("a", "b")):
        Rule.objects.create(name=name, effect="ask", position=place)
    plan = signed(client, ada, clock)
    if between == "rule":
        services.save_rule(Rule(name="late", effect="deny"), by=ada.actor)
    elif between == "limit":
        late = Limit(name="late", kind="calls", amount=1, period="day", effect="deny")
        save_limit(late, by=ada.actor)
    else:
        services.place_rule(Rule.objects.get(name="b"), 1, by=ada.actor)
    before = list(Rule.objects.in_order().values_list("name", "effect"))

    with pytest.raises(BaseMoved):
        apply_plan(plan.digest, by=ada)

    assert list(Rule.objects.in_order().values_list("name", "effect")) == before
    client.force_login(ada)
    page = client.get(f"/policies/plans/{plan.digest}/").content.decode()
    assert "has changed since" in page
    assert "Confirm with a code" not in page


def test_a_plan_of_what_is_gone_is_stale(client: Client, ada: User, clock: Clock) -> None:
    mailer = scenery.server("mailer", ada, scenery.SEND)
    plan = signed(client, ada, clock, "version: 1\nservers:\n  mailer: {relays: [roots]}\n")
    delete_server(mailer, by=ada, has_open_calls=lambda server: False)

    page = client.get(f"/policies/plans/{plan.digest}/")

    assert page.status_code == 200
    assert "has changed since" in page.content.decode()
    with pytest.raises(PlanNotApplied, match="There is no such server"):
        apply_plan(plan.digest, by=ada)


def test_what_is_applied_is_what_was_confirmed(
    client: Client, ada: User, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A newer version reads more from the same file."""
    plan = signed(client, ada, clock)
    monkeypatch.setattr(Rule._meta.get_field("unnamed"), "_get_default", lambda: True)

    with pytest.raises(BaseMoved):
        apply_plan(plan.digest, by=ada)

    assert not Rule.objects.exists()


def test_what_the_file_is_not_about_may_move(client: Client, ada: User, clock: Clock) -> None:
    plan = signed(client, ada, clock)
    scenery.server("mailer", ada, scenery.SEND)

    assert apply_plan(plan.digest, by=ada).applied_at


def test_a_plan_gets_too_old(client: Client, ada: User, clock: Clock) -> None:
    plan = signed(client, ada, clock)
    plan.created_at = timezone.now() - timedelta(days=8)

    assert "older than 7 days" in applying.why_not(plan)


def test_nobody_changes_a_plan_behind_its_digest(ada: User) -> None:
    plan = plan_of()

    with pytest.raises(Exception, match="written once, never changed"):
        PolicyPlan.objects.filter(pk=plan.pk).update(proposal="version: 1\nrules: []\n")


def test_all_or_nothing(
    client: Client, ada: User, clock: Clock, request: pytest.FixtureRequest
) -> None:
    """The last of its changes fails: none is there, and an entry says why."""
    Rule.objects.create(name="old", effect="ask")
    plan = signed(client, ada, clock)

    def fail(**named: Any) -> None:
        raise ValidationError("no limit today")

    pre_save.connect(fail, sender=Limit)
    request.addfinalizer(lambda: pre_save.disconnect(fail, sender=Limit))

    with pytest.raises(PlanNotApplied, match="no limit today"):
        apply_plan(plan.digest, by=ada)

    assert list(Rule.objects.values_list("name", flat=True)) == ["old"]
    assert PolicyPlan.objects.get().applied_at is None
    assert not Entry.objects.filter(action="rule.saved").exists()
    assert "no limit today" in Entry.objects.get(action="policy.apply_failed").reason


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_of_many_who_apply_at_once_one_does(client: Client, ada: User, clock: Clock) -> None:
    first = signed(client, ada, clock)
    other = plan_of(FILE.replace("rest", "everything"))
    PlanConfirmation.objects.create(
        plan=other, person=ada, proof=PlanConfirmation.objects.get().proof
    )

    def attempt(digest: str) -> str:
        try:
            apply_plan(digest, by=None)
        except PlanNotApplied as error:
            return str(error)
        finally:
            connections.close_all()
        return ""

    with ThreadPoolExecutor(6) as pool:
        said = list(pool.map(attempt, [first.digest, other.digest] * 3))

    assert said.count("") == 1
    assert all("applied already" in one or "changed since" in one for one in said if one)
    assert Rule.objects.count() == 2
    assert PolicyPlan.objects.exclude(applied_at=None).count() == 1
    assert Entry.objects.filter(action="policy.applied").count() == 1


# What the file manages.


@pytest.mark.long
def test_what_a_file_manages_is_read_only_elsewhere(
    client: Client, ada: User, clock: Clock, scout: Agent
) -> None:
    mailer = scenery.server("mailer", ada, scenery.SEND)
    Toolset.objects.create(slug="office")
    more = "servers:\n  mailer: {relays: []}\ntoolsets:\n  office: {agents: [scout]}\n"
    plan = signed(client, ada, clock, MANAGED + more)
    apply_plan(plan.digest, by=ada)
    rest = Rule.objects.get(name="rest")
    robot = program("robot", ada, *MAY)

    for change in (
        lambda: services.remove_rule(rest, by=ada.actor),
        lambda: services.save_rule(Rule(name="new", effect="allow"), by=ada.actor),
        lambda: services.place_rule(rest, 2, by=ada.actor),
        lambda: set_relays(mailer, ["roots"], by=ada),
    ):
        with pytest.raises(managed.ManagedElsewhere, match=HERE):
            change()
    given = {"name": "new", "effect": "deny"}
    assert robot.ask("POST", "rules", given).status_code == 409
    gone = client.post(f"/policies/{rest.pk}/remove/", follow=True)
    assert HERE in gone.content.decode()
    assert Rule.objects.filter(pk=rest.pk).exists()
    pages = ["policies/", f"policies/{rest.pk}/", "limits/", "toolsets/office/", "servers/mailer/"]
    for page in pages:
        shown = client.get(f"/{page}").content.decode()
        assert f"a policy file manages this, at {HERE}." in shown, page
        assert "New rule" not in shown
        assert "Save the rule" not in shown
    # To take a server away is always possible.
    set_enabled(mailer, False, by=ada)


def test_an_agent_gets_toolsets_beside_one_that_a_file_manages(
    client: Client, ada: User, clock: Clock, scout: Agent
) -> None:
    Toolset.objects.create(slug="office").agents.add(scout)
    other = Toolset.objects.create(slug="other")
    ids = {one.slug: one.pk for one in Toolset.objects.all()}
    text = f"version: 1\nmanaged_by: {HERE}\ntoolsets:\n  office: {{title: Office}}\n"
    apply_plan(signed(client, ada, clock, text).digest, by=ada)

    client.post("/agents/scout/toolsets/", {"toolset": [ids["office"], ids["other"]]})

    assert list(other.agents.all()) == [scout]
    client.post("/agents/scout/toolsets/", {"toolset": [ids["other"]]})
    assert Toolset.objects.filter(agents=scout).count() == 2


def test_drift_is_shown(client: Client, ada: User, clock: Clock) -> None:
    plan = signed(client, ada, clock, MANAGED)
    apply_plan(plan.digest, by=ada)
    assert "Everything is as in the file." in client.get("/policies/plans/").content.decode()

    Rule.objects.filter(name="mail").update(effect="allow")

    page = client.get("/policies/plans/").content.decode()
    assert "1 object differs from the file." in page
    assert HERE in page


@pytest.mark.long
def test_the_hosts_owner_gets_out(ada: User, client: Client, clock: Clock) -> None:
    apply_plan(signed(client, ada, clock, MANAGED).digest, by=ada)

    applying.apply_as_owner("version: 1\nrules: []\n")

    assert not Rule.objects.exists()
    assert not ManagedPart.objects.exists()
    last = Entry.objects.filter(action="policy.applied").latest("id")
    assert (last.actor, last.details["as_owner"]) == ("command line", True)
    services.save_rule(Rule(name="new", effect="allow"), by=ada.actor)


def test_shown_arguments_take_the_right_to_see_them(
    client: Client, ada: User, clock: Clock
) -> None:
    plan = plan_of("version: 1\nrules:\n  - {name: a, effect: ask, shows_arguments: true}\n")

    answer = press(client, ada, plan, code=new_code(ada, clock))

    assert answer.status_code == 403
    assert "View arguments and results" in answer.content.decode()


def test_labels_are_set_as_the_file_says(client: Client, ada: User, clock: Clock) -> None:
    scenery.server("mailer", ada, scenery.SEND)
    text = "version: 1\ntools:\n  mailer.send_mail: {labels: {sensitive: yes}}\n"

    apply_plan(signed(client, ada, clock, text).digest, by=ada)

    assert Tool.objects.get().label_sensitive == "yes"
    assert Entry.objects.filter(action="tool.labels_set").count() == 1


def test_a_plan_is_read_in_chinese(client: Client, ada: User) -> None:
    plan = plan_of("version: 1\nrules: [{name: 邮件, effect: ask}]\n")
    client.force_login(ada)
    client.cookies["django_language"] = "zh-hans"

    with override("en"):
        page = client.get(f"/policies/plans/{plan.digest}/").text
        wrong = client.post("/policies/plans/propose/", {"proposal": "version: 1\nrules: [1\n"})

    assert '<span class="small muted">规则</span>' in page
    assert "将添加" in page
    assert "第 3 行：这不是 YAML：缺少“,”或“]”。" in wrong.text
