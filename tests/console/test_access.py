"""Who may do what: the page says what the pages themselves do, and why."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.conf import settings
from django.contrib.auth.models import Group, Permission
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts import custom_roles, required_factors, service_accounts
from accounts.custom_roles import RoleTerms
from accounts.models import Agent, User
from accounts.permission_names import PERMISSION_NAMES
from accounts.permission_sources import people_with_rights, person_of, read_roles
from accounts.roles import Role
from approvals import eligibility
from approvals.delegations import make
from approvals.models import Approval, Delegation
from approvals.services import DecisionRefused, vote
from calls.record.states import State
from config.access.objects import KINDS, acts_of, find_object, permission_act
from config.access.verdicts import AccessAnswer, AccessVerdict, Act
from policies.models import Rule
from policies.thresholds import StepUp, Threshold, plain
from registry.models import Toolset
from registry.role_tags import set_role_tags
from tests.console import scenery
from tests.database import Cleaner

pytestmark = pytest.mark.django_db

# Kind and name of an object, the act, and a page that it is done on.
PAGES = [
    ("server", "payments", "registry.change_server", "GET", "registry:edit_server"),
    ("server", "payments", "registry.change_server", "POST", "registry:set_server_enabled"),
    ("server", "people", "registry.change_server", "POST", "registry:set_server_enabled"),
    ("server", "payments", "registry.operate_server", "GET", "registry:review"),
    ("server", "people", "registry.operate_server", "GET", "registry:review"),
    ("server", "people", "registry.view_server", "GET", "registry:server"),
    ("tool", "payments.send_mail", "registry.change_tool", "POST", "registry:tag_tool"),
    ("tool", "payments.send_mail", "registry.view_tool", "GET", "registry:tool"),
    ("tool", "people.add", "registry.operate_server", "GET", "registry:publish"),
    ("toolset", "till", "registry.view_toolset", "GET", "registry:toolset"),
    ("toolset", "till", "registry.change_toolset", "POST", "registry:set_toolset_title"),
    ("toolset", "till", "registry.change_toolset+", "POST", "registry:add_tools"),
    ("agent", "scout", "see", "GET", "accounts:agent"),
    ("agent", "scout", "tokens", "POST", "accounts:issue_token"),
    ("agent", "scout", "accounts.change_agent", "POST", "accounts:set_agent_dpop"),
    ("agent", "scout", "accounts.change_agent", "POST", "accounts:set_agent_hold"),
    ("agent", "scout", "accounts.change_agent", "GET", "approvals:disable_agent"),
    ("rule", "Mail", "policies.change_rule", "GET", "policies:rule"),
    ("rule", "Mail", "policies.delete_rule", "GET", "approvals:rule_removal"),
    ("call", "", "cancel", "POST", "approvals:cancel"),
    ("call", "", "received", "GET", "calls:received"),
    ("call", "", "approvals.view_approval", "GET", "approvals:detail"),
    ("", "", "accounts.add_user", "GET", "accounts:invite"),
    ("", "", "auth.add_group", "GET", "accounts:add_role"),
    ("", "", "audit.view_entry", "GET", "audit:list"),
    ("", "", "policies.add_rule", "GET", "policies:add_rule"),
    ("", "", "accounts.view_access_review", "GET", "accounts:access_review"),
]
PEOPLE = ["alice", "bob", "ines", "mallory", "olga", "vera", "ada", "cleo", "gone", "bare", "root"]


@pytest.fixture
def ada(db: None) -> User:
    return scenery.person("ada", Role.ADMINISTRATOR)


@pytest.fixture
def house(ada: User, olga: User, bob: User, scout: Agent, db: None) -> dict[str, Any]:
    payments = scenery.server("payments", olga, scenery.SEND)
    people = scenery.server("people", olga, scenery.ADD)
    set_role_tags("server", payments, "payments", by=olga)
    Toolset.objects.create(slug="till", tags=["payments"])
    asks = Threshold(source="group:Treasury", step_up=StepUp.PASSKEY)
    rule = Rule.objects.create(
        name="Mail", effect="ask", server="payments", thresholds=plain([asks])
    )
    call = scenery.call(scout, people.tools.get(), {"a": 1, "b": 2}, State.HELD)
    return {"payments": payments, "people": people, "rule": rule, "call": call}


@pytest.fixture
def everybody(
    house: dict[str, Any], ada: User, alice: User, ines: User, mallory: User, vera: User
) -> None:
    terms = RoleTerms(
        frozenset({"registry.change_server", "registry.operate_server", "registry.change_toolset",
                   "registry.view_server", "registry.view_tool", "registry.view_toolset",
                   "calls.view_call", "calls.cancel_call"}),
        server_tags=("payments",), toolset_tags=("payments",),
    )  # fmt: skip
    role = custom_roles.create("Payments", description="Operates", terms=terms, by=ada)
    scenery.person("cleo").groups.add(role.group)
    scenery.person("gone", Role.OPERATOR)
    User.objects.filter(username="gone").update(is_active=False)
    bare = scenery.person("bare", Role.OPERATOR)
    strict = Group.objects.create(name="Strict")
    bare.groups.add(strict)
    required_factors.set_groups([strict], by=ada)
    scenery.person("root")
    User.objects.filter(username="root").update(is_superuser=True)
    vera.user_permissions.add(Permission.objects.get(codename="view_entry"))


def subject(name: str) -> User:
    return person_of(people_with_rights().get(username=name))


def act_of(kind: str, name: str, key: str) -> Act:
    book = read_roles()
    if not kind:
        return permission_act(key, book)
    found = find_object(KINDS[kind], name)
    assert found is not None
    return next(act for act in acts_of(found, book) if act.key == key)


def explained(person: str, kind: str, name: str, key: str) -> AccessVerdict:
    return act_of(kind, name, key).explain(subject(person))


def what_happens(person: str, method: str, page: str, argument: list[Any]) -> AccessAnswer:
    """Nothing of it stays."""
    client = Client()
    with transaction.atomic():
        client.force_login(User.objects.get(username=person))
        send: Callable[..., Any] = client.get if method == "GET" else client.post
        answer = send(reverse(page, args=argument))
        transaction.set_rollback(True)
    there = answer.get("Location", "").partition("?")[0]
    if there == reverse(settings.SET_UP_FACTOR_URL):
        return AccessAnswer.NOT_YET
    if there == reverse("accounts:sign_in"):
        return AccessAnswer.NO
    return AccessAnswer.NO if answer.status_code in (403, 404) else AccessAnswer.YES


@pytest.mark.long
@pytest.mark.parametrize("person", PEOPLE)
def test_it_says_what_each_page_does(house: dict[str, Any], everybody: None, person: str) -> None:
    for kind, name, key, method, page in PAGES:
        named = str(house["call"]) if kind == "call" else name
        argument = [house["rule"].pk if kind == "rule" else named] if kind else []
        verdict = explained(person, kind, named, key)
        happened = what_happens(person, method, page, argument)
        if happened == AccessAnswer.NOT_YET:
            # Led to set up a factor, whatever they may then: what an operator like them may.
            may = what_happens("olga", method, page, argument) == AccessAnswer.YES
            happened = AccessAnswer.NOT_YET if may else AccessAnswer.NO

        assert verdict.answer == happened, (kind, name, key)
        assert verdict.reasons


@pytest.mark.long
def test_the_list_has_everybody_who_may_and_nobody_else(
    house: dict[str, Any], everybody: None
) -> None:
    asked = [("server", "payments"), ("server", "people"), ("tool", "people.add"),
             ("toolset", "till"), ("agent", "scout"), ("call", str(house["call"]))]  # fmt: skip
    acts = [permission_act(name, read_roles()) for name in PERMISSION_NAMES]
    for kind, name in asked:
        found = find_object(KINDS[kind], name)
        assert found is not None
        acts += [act for act in acts_of(found, read_roles()) if act.key != "approve"]  # type: ignore[misc]
    for act in acts:
        listed = {row.username for row in people_with_rights().filter(act.candidates())}
        able = {
            one
            for one in PEOPLE
            if act.explain(subject(one)).answer in (AccessAnswer.YES, AccessAnswer.NOT_YET)
        }
        assert listed == able, act.key


@pytest.mark.long
def test_the_reasons_name_role_tag_and_owner(house: dict[str, Any], everybody: None) -> None:
    def reasons(person: str, kind: str, name: str, key: str) -> str:
        return " ".join(explained(person, kind, name, key).reasons)

    change = "registry.change_server"
    assert reasons("olga", "server", "people", change) == "Role or group: Operator."
    assert "Role “Payments”, for" in reasons("cleo", "server", "payments", change)
    assert "server:payments" in reasons("cleo", "server", "payments", change)
    assert "for other tags alone" in reasons("cleo", "server", "people", change)
    assert reasons("bob", "agent", "scout", "tokens") == "The agent is theirs."
    assert "Superuser" in reasons("root", "server", "people", change)
    assert "by no role" in reasons("vera", "", "", "audit.view_entry")
    assert reasons("gone", "server", "people", change) == "The account is disabled."
    assert "Roles that have it: Operator, Payments." in reasons("vera", "server", "people", change)
    assert explained("cleo", "", "", change).answer == AccessAnswer.PARTLY
    needs = explained("bare", "server", "people", change).needs
    assert "requires a second factor" in needs[0]


def may_vote(person: str, approval: Approval) -> bool:
    try:
        with transaction.atomic():
            by = User.objects.get(username=person)
            vote(approval, by=by, approve=True, seen_digest=approval.call.call_digest)
            transaction.set_rollback(True)
    except DecisionRefused:
        return False
    return True


@pytest.mark.long
def test_whoever_votes_on_a_pending_call_is_who_it_says(
    house: dict[str, Any], everybody: None, alice: User, bob: User
) -> None:
    bob.groups.add(Group.objects.get(name=Role.APPROVER))
    carol, dora = scenery.person("carol", Role.APPROVER), scenery.person("dora", Role.APPROVER)
    now = timezone.now()
    make(Delegation(delegator=carol, delegate=dora, begins_at=now - timedelta(hours=1),
                    ends_at=now + timedelta(days=1)))  # fmt: skip
    call = str(house["call"])
    approval = Approval.objects.select_related("call").get(pk=house["call"])

    for person in [*PEOPLE, "carol", "dora"]:
        verdict = explained(person, "call", call, "approve")
        assert (verdict.answer == AccessAnswer.YES) is may_vote(person, approval), person
    assert "votes in the place of carol" in " ".join(
        explained("dora", "call", call, "approve").reasons
    )
    assert "The agent is yours" in explained("bob", "call", call, "approve").reasons[0]
    vote(approval, by=alice, approve=True, seen_digest=approval.call.call_digest)
    assert find_object(KINDS["call"], call) is not None


def test_a_tool_names_the_rule_the_group_and_the_passkey(
    house: dict[str, Any], alice: User, ada: User
) -> None:
    key = f"approve-{house['rule'].pk}"
    treasury = Group.objects.create(name="Treasury")

    other = explained("alice", "tool", "payments.send_mail", key)
    assert (other.answer, other.reasons) == (
        AccessAnswer.NO, ["They read: “The rule asks other people: Treasury.”"]
    )  # fmt: skip
    alice.groups.add(treasury)
    asked = explained("alice", "tool", "payments.send_mail", key)
    assert "Rule “Mail” asks the group “Treasury”." in asked.reasons
    assert (asked.answer, asked.needs) == (
        AccessAnswer.NOT_YET, ["Confirms by: passkey. They have none yet."]
    )  # fmt: skip
    assert explained("alice", "rule", "Mail", key) == asked
    assert explained("alice", "tool", "people.add", "approve").answer == AccessAnswer.YES
    assert "No role of theirs" in explained("ada", "tool", "people.add", "approve").reasons[0]


@pytest.mark.parametrize("unconfirmed", [True, False])
def test_who_is_excluded_from_an_agents_calls_is_as_the_database_says(
    house: dict[str, Any], scout: Agent, bob: User, alice: User, unconfirmed: bool
) -> None:
    """Owner, creator, whoever let them in, and whom they let in."""
    made_by = scenery.person("maker", Role.APPROVER)
    until = timezone.now() + timedelta(days=1) if unconfirmed else None
    guest = scenery.person("guest", Role.APPROVER)
    User.objects.filter(pk=guest.pk).update(invited_by=bob, unconfirmed_until=until)
    User.objects.filter(pk=bob.pk).update(invited_by=alice, unconfirmed_until=until)
    agent = Agent.objects.create(name="second", owner=bob, created_by=made_by)
    call = scenery.call(agent, house["payments"].tools.get(), scenery.MAIL, State.HELD)
    approval = Approval.objects.select_related("call").get(pk=call)

    assert eligibility.excluded_by_agent(agent) == eligibility.excluded_people(approval.call)
    assert len(eligibility.excluded_by_agent(agent)) == (4 if unconfirmed else 2)


def signed_in(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def test_others_ask_about_themselves_alone(house: dict[str, Any], bob: User, alice: User) -> None:
    client = signed_in(bob)

    assert client.get("/access/", {"person": "alice"}).status_code == 403
    own = client.get("/access/").text
    assert "What may bob do?" in own
    assert 'name="person"' not in own
    there = client.get("/access/", {"kind": "agent", "name": "scout"}).text
    assert "The agent is theirs." in there
    assert '?kind=agent&amp;name=scout"' not in there.partition("<main")[2]
    assert client.get("/access/service-accounts/robot/").status_code == 403


@pytest.mark.long
def test_nobody_learns_of_an_object_that_they_may_not_see(
    house: dict[str, Any], alice: User, mallory: User
) -> None:
    hidden = {"kind": "agent", "name": "scout"}
    for person in (alice, mallory):
        page = signed_in(person).get("/access/", hidden).text
        assert "There is no such object, or you may not see it." in page
    unknown = signed_in(alice).get("/access/", {"kind": "agent", "name": "scou"}).text
    assert "scout" not in unknown


@pytest.mark.long
def test_rules_of_a_tool_are_shown_to_whoever_may_see_rules(
    house: dict[str, Any], ada: User, vera: User, alice: User
) -> None:
    Group.objects.create(name="Treasury")
    looks = RoleTerms(frozenset({"accounts.view_access_review", "registry.view_tool"}))
    role = custom_roles.create("Reviewer", description="Looks", terms=looks, by=ada)
    reviewer = scenery.person("reviewer")
    reviewer.groups.add(role.group)
    act = f"approve-{house['rule'].pk}"

    def read(reader: User, name: str = "payments.send_mail", **given: str) -> str:
        asked = {"kind": "tool", "name": name, **given}
        return signed_in(reader).get("/access/", asked).text.partition("<main")[2]

    for page in (read(vera), read(reviewer), read(reviewer, act=act),
                 read(reviewer, person="alice"), read(vera, "people.add")):  # fmt: skip
        assert "Rules decide who approves calls of this tool" in page
        assert "Treasury" not in page
        assert "“Mail”" not in page
        assert "that no rule covers" not in page
    assert "“Mail”" in read(alice)
    assert "Your roles do not show you rules" not in read(alice)


def test_custom_roles_are_named_to_whoever_may_see_roles(
    house: dict[str, Any], everybody: None, vera: User, ines: User
) -> None:
    asked = {"kind": "server", "name": "people", "person": "vera"}
    change = f"{reverse('access')}?{urlencode(asked)}"

    hidden = signed_in(vera).get(change).text.partition("<main")[2]
    assert "Roles that have it: Operator, a custom role." in hidden
    assert "Payments" not in hidden
    assert "Roles that have it: Operator, Payments." in signed_in(ines).get(change).text


@pytest.mark.long
def test_an_auditor_finds_an_act_an_object_and_a_user(
    house: dict[str, Any], everybody: None, ines: User
) -> None:
    client = signed_in(ines)

    def read(**given: str) -> str:
        return client.get("/access/", given).text

    assert "Publish" in read() or "publish" in read()
    assert "olga" in read(act="registry.change_server")
    listed = read(kind="server", name="payments", act="registry.change_server")
    assert "cleo" in listed
    assert "vera" not in listed
    assert "Roles that have it" in read(kind="server", name="payments",
                                   act="registry.change_server", q="vera")  # fmt: skip
    assert "No user has such a name." in read(act="registry.change_server", q="zzz")
    assert ">payments<" in read(kind="server", name="pay")
    assert ">olga<" in read(person="olg")
    assert "There is no user with this name." in read(person="zzz")
    assert "no such object" in read(kind="call", name="not an id")
    assert "What may cleo do?" in read(person="cleo")
    assert "For some tags" in read(person="cleo")


@pytest.mark.long
def test_a_service_account_is_explained_by_its_tokens(ada: User, ines: User, bob: User) -> None:
    scopes = ["registry.view_server", "calls.view_call"]
    account = service_accounts.create("robot", purpose="Reports", scopes=scopes, by=ada)
    client = signed_in(ines)

    def read() -> str:
        return client.get(reverse("account_access", args=["robot"])).text

    assert "It has no valid token." in read()
    service_accounts.issue_token(account, by=ada)
    shown = read()
    # Once, above all that it opens.
    assert shown.count("By a token of “ada”, who has the permission.") == 1
    assert "View servers" in shown
    assert "View calls" in shown
    assert "robot" in client.get("/access/", {"act": scopes[0]}).text
    ada.groups.clear()
    assert "does not have the permission now" in read()
    service_accounts.set_enabled(account, False, by=bob)
    assert "The account is disabled." in read()


@pytest.mark.long
def test_two_thousand_users_take_no_more_queries(
    cleaner: Cleaner, house: dict[str, Any], everybody: None, ines: User
) -> None:
    # As after an import: the planner still believes that there are hardly any users.
    cleaner.connection.execute("ANALYZE")
    made = User.objects.bulk_create(User(username=f"user{n:04}") for n in range(2000))
    operators = Group.objects.get(name=Role.OPERATOR)
    User.groups.through.objects.bulk_create(
        User.groups.through(user_id=one.pk, group_id=operators.pk) for one in made
    )
    client = signed_in(ines)
    call, rule = str(house["call"]), "approve"
    asked = [
        {}, {"person": "user1999"}, {"person": "user"}, {"act": "registry.view_server"},
        {"kind": "server", "name": "payments", "act": "registry.change_server"},
        {"kind": "server", "name": "payments", "q": "user19"},
        {"kind": "tool", "name": "payments.send_mail"},
        {"kind": "tool", "name": "payments.send_mail", "person": "alice"},
        {"kind": "agent", "name": "scout", "act": rule},
        {"kind": "rule", "name": "Mail"},
        {"kind": "call", "name": call, "act": rule},
        {"kind": "call", "name": call, "person": "alice"},
    ]  # fmt: skip
    for given in asked:
        with CaptureQueriesContext(
            connection,
        ) as queries:
            assert client.get("/access/", given).status_code == 200
        assert len(queries) <= 12, given
