"""Custom roles: what they permit, for which tags, and to whom they give nothing."""

import json
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse

from accounts import custom_roles, role_changes, services
from accounts.custom_roles import RoleTerms
from accounts.models import Agent, CustomRole, RoleChange, User
from accounts.permission_names import PERMISSION_NAMES
from accounts.roles import DESCRIPTIONS, PERMISSIONS, Role
from audit.models import Entry
from calls.record.states import State
from registry.models import Server, Toolset
from registry.role_tags import set_role_tags
from tests.console import scenery

pytestmark = pytest.mark.django_db
OPERATES = frozenset(
    {"registry.view_server", "registry.view_tool", "registry.change_server", "calls.view_call"}
)


def test_each_fixed_role_says_what_it_permits(client: Client) -> None:
    client.force_login(scenery.person("ada", Role.ADMINISTRATOR))

    page = client.get(reverse("accounts:roles")).text

    assert set(DESCRIPTIONS) == set(Role)
    assert all(str(description) in page for description in DESCRIPTIONS.values())


@pytest.fixture
def ada(db: None) -> User:
    return scenery.person("ada", Role.ADMINISTRATOR)


@pytest.fixture
def payments(olga: User) -> Server:
    made = scenery.server("payments", olga, scenery.SEND)
    set_role_tags("server", made, "payments", by=olga)
    return made


@pytest.fixture
def people(olga: User) -> Server:
    return scenery.server("people", olga, scenery.ADD)


def make(by: User, *more: str, name: str = "Payments", **tags: tuple[str, ...]) -> CustomRole:
    terms = RoleTerms(OPERATES | set(more), **tags)
    return custom_roles.create(name, description="Operates payments", terms=terms, by=by)


def give(person: User, role: CustomRole, by: User) -> Client:
    services.set_groups(person, [*person.groups.all(), role.group], by=by)
    return signed_in(person)


def signed_in(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def disable(client: Client, server: Server) -> int:
    at = reverse("registry:set_server_enabled", args=[server.slug])
    return client.post(at, {"enabled": "0"}).status_code


def test_a_role_holds_everywhere_without_tags(
    ada: User, mallory: User, payments: Server, people: Server
) -> None:
    client = give(mallory, make(ada), ada)

    assert (disable(client, payments), disable(client, people)) == (302, 302)


@pytest.mark.long
def test_a_role_with_tags_changes_what_bears_one_and_nothing_else(
    ada: User, mallory: User, payments: Server, people: Server
) -> None:
    client = give(mallory, make(ada, server_tags=("payments",)), ada)

    assert (disable(client, payments), disable(client, people)) == (302, 403)
    people.refresh_from_db()
    assert people.enabled
    # To look it permits everywhere; what it changes is offered where it holds.
    there = "/servers/{}/edit/".format
    assert there("payments") in client.get("/servers/payments/").text
    assert there("people") not in client.get("/servers/people/").text


def test_a_tag_that_is_taken_away_takes_effect_at_once(
    ada: User, olga: User, mallory: User, payments: Server
) -> None:
    client = give(mallory, make(ada, server_tags=("payments",)), ada)
    set_role_tags("server", payments, "", by=olga)

    assert disable(client, payments) == 403


@pytest.mark.long
def test_no_request_about_many_things_is_covered(
    ada: User, mallory: User, payments: Server
) -> None:
    toolset = Toolset.objects.create(slug="till", tags=["payments"])
    role = make(ada, "registry.change_toolset", "registry.view_toolset", toolset_tags=("payments",))
    client = give(mallory, role, ada)
    tool = payments.tools.get()

    def post(name: str, **given: Any) -> int:
        return client.post(reverse(f"registry:{name}", args=["till"]), given).status_code

    assert post("set_toolset_title", title="Till") == 302
    assert post("add_tools", tool=tool.pk) == 403
    assert post("set_toolset_servers", server=payments.pk) == 403
    assert post("set_toolset_agents") == 403
    assert not toolset.tools.exists()
    assert client.get("/servers/new/").status_code in (403, 404)


def test_every_permission_of_a_role_has_a_name_for_people() -> None:
    given = set().union(*PERMISSIONS.values())

    assert given <= {*PERMISSION_NAMES}


def test_a_permission_for_toolsets_is_none_on_the_page_of_an_agent(
    ada: User, mallory: User, scout: Agent
) -> None:
    """Both kinds limit the role: the agent's tag opens its page, and no toolset by it."""
    Toolset.objects.create(slug="till")
    Agent.objects.update(tags=["payments"])
    more = ("registry.change_toolset", "accounts.change_agent", "accounts.view_agent")
    role = make(ada, *more, toolset_tags=("x",), agent_tags=("payments",))
    client = give(mallory, role, ada)

    assert client.post("/agents/scout/hold/", {"seconds": "5"}).status_code == 302
    assert client.post("/agents/scout/toolsets/", {"toolset": "1"}).status_code == 403


@pytest.mark.long
@pytest.mark.parametrize(
    ("server_tags", "agent_tags", "reads"),
    [
        (("payments",), (), True),
        ((), ("office",), True),
        (("payments",), ("office",), True),
        (("payments",), ("other",), False),
        (("other",), ("office",), False),
    ],
)
def test_a_call_is_covered_by_every_kind_that_limits_the_role(
    ada: User,
    mallory: User,
    payments: Server,
    scout: Agent,
    server_tags: tuple[str, ...],
    agent_tags: tuple[str, ...],
    reads: bool,
) -> None:
    Agent.objects.update(tags=["office"])
    call = scenery.call(scout, payments.tools.get(), scenery.MAIL, State.QUEUED)
    role = make(ada, "calls.view_payload", server_tags=server_tags, agent_tags=agent_tags)

    page = give(mallory, role, ada).get(f"/calls/{call}/").text

    assert ("Minutes of Tuesday" in page) is reads


@pytest.mark.parametrize(
    "permission", ["approvals.decide_approval", "policies.change_rule", "accounts.change_user"]
)
def test_what_decides_is_never_limited_and_takes_two_administrators(
    ada: User, mallory: User, permission: str
) -> None:
    with pytest.raises(services.AccountRefused, match="cannot be limited to tags"):
        make(ada, permission, server_tags=("payments",))
    scenery.person("eve", Role.ADMINISTRATOR)
    role = make(ada, permission)

    waiting = services.set_groups(mallory, [role.group], by=ada)

    assert waiting == ["Payments"]
    assert not mallory.groups.exists()


@pytest.mark.parametrize("permission", role_changes.DECIDING_PERMISSIONS)
@pytest.mark.parametrize("is_given", [True, False])
def test_a_role_never_begins_to_decide(
    ada: User, mallory: User, permission: str, is_given: bool
) -> None:
    """Whoever has it: the mapping of an identity provider may give it without being asked."""
    role = make(ada)
    if is_given:
        give(mallory, role, ada)
    (name,) = (one for one in PERMISSION_NAMES if one.endswith(f".{permission}"))
    wider = RoleTerms(OPERATES | {name})

    with pytest.raises(services.AccountRefused, match="Create another role"):
        custom_roles.change(role, description="x", terms=wider, by=ada)
    assert custom_roles.terms_of(role).permissions == OPERATES
    assert not User.objects.get(pk=mallory.pk).has_perm(name)


def test_a_role_that_decides_is_narrowed_and_not_widened_again(ada: User) -> None:
    role = make(ada, "approvals.decide_approval", "calls.cancel_call")
    fewer = RoleTerms(frozenset({"calls.cancel_call"}))
    custom_roles.change(role, description="x", terms=fewer, by=ada)
    wider = RoleTerms(frozenset({"approvals.decide_approval"}))

    with pytest.raises(services.AccountRefused, match="Create another role"):
        custom_roles.change(role, description="x", terms=wider, by=ada)


def test_a_name_that_a_mapping_gives_already_is_of_no_role_that_decides(
    ada: User, tmp_path: Path, settings: Any
) -> None:
    settings.OIDC_FILE = tmp_path / "oidc.json"
    company = {"issuer": "https://id.example.org", "client_id": "c", "groups": {"x": "Payments"}}
    settings.OIDC_FILE.write_text(json.dumps({"providers": {"company": company}}))

    with pytest.raises(services.AccountRefused, match="gives “Payments” already"):
        make(ada, "approvals.decide_approval")
    make(ada, "approvals.decide_approval", name="Payments approvers")
    assert make(ada).group.name == "Payments"


def test_no_role_decides_while_nobody_knows_what_is_mapped(
    ada: User, tmp_path: Path, settings: Any
) -> None:
    settings.OIDC_FILE = tmp_path / "oidc.json"
    settings.OIDC_FILE.write_text("{")

    with pytest.raises(services.AccountRefused, match="cannot be read"):
        make(ada, "approvals.decide_approval")
    assert make(ada).group.name == "Payments"


NAMES = ["Administrator", "approver", "VIEWER", "", " x", "Аpprover"]
ALIKE = ["Adrninistrator", "Ádministrator", "0perator", "View er", "Viewer\u3164"]
CHINESE = ["管理员", "审批人", "只读用户"]


@pytest.mark.parametrize("name", [*NAMES, *ALIKE, *CHINESE])
def test_no_role_takes_the_name_of_another(ada: User, name: str) -> None:
    with pytest.raises(services.AccountRefused):
        make(ada, name=name)


def test_no_role_passes_for_another_of_ours(ada: User) -> None:
    make(ada)

    with pytest.raises(services.AccountRefused, match="passes for “Payments”"):
        make(ada, name="Payrnents")
    assert make(ada, name="Payments, Berlin").pk


def test_of_two_who_create_one_role_the_second_reads_why_not(
    ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = custom_roles.why_not_terms

    def meanwhile(terms: RoleTerms, by: User) -> str:
        Group.objects.get_or_create(name="Ops")
        return real(terms, by)

    monkeypatch.setattr(custom_roles, "why_not_terms", meanwhile)
    given = {"name": "Ops", "description": "x", "permissions": ["registry.view_server"]}
    answer = signed_in(ada).post("/new/role/", given)

    assert answer.status_code == 200
    assert "“Ops” has just been taken." in answer.text
    assert not CustomRole.objects.exists()


def test_a_role_that_somebody_retires_meanwhile_is_not_changed(ada: User) -> None:
    role = make(ada)
    shown = CustomRole.objects.get(pk=role.pk)
    custom_roles.retire(role, by=ada)

    with pytest.raises(services.AccountRefused, match="retired"):
        custom_roles.change(shown, description="x", terms=RoleTerms(OPERATES), by=ada)
    assert not role.group.permissions.exists()


@pytest.mark.long
def test_a_role_that_was_asked_for_is_retired_after_the_answer(ada: User, mallory: User) -> None:
    eve = scenery.person("eve", Role.ADMINISTRATOR)
    role = make(ada, "approvals.decide_approval")
    client = give(mallory, role, ada)
    there = f"/roles/{role.pk}/retire/"

    page = signed_in(ada).post(there, follow=True).text

    assert "“mallory” waits for a second administrator" in page
    assert CustomRole.objects.get(pk=role.pk).retired_at is None
    assert "role.retired" not in Entry.objects.values_list("action", flat=True)
    role_changes.refuse(RoleChange.objects.get(state="requested"), by=eve)
    signed_in(ada).post(there)
    assert CustomRole.objects.get(pk=role.pk).retired_at
    assert client.get("/queue/").status_code == 403


def test_a_retired_role_gives_nothing_and_its_name_stays_taken(
    ada: User, mallory: User, payments: Server
) -> None:
    role = make(ada, server_tags=("payments",))
    client = give(mallory, role, ada)
    custom_roles.retire(role, by=ada, reason="Merged.")

    assert disable(client, payments) == 403
    # A mapping of an identity provider that still names it gives nothing.
    mallory.groups.add(role.group)
    assert disable(client, payments) == 403
    with pytest.raises(services.AccountRefused, match="or was"):
        make(ada)


def test_whoever_is_no_administrator_gives_and_makes_what_they_have(
    ada: User, mallory: User, bob: User
) -> None:
    more = ("accounts.view_user", "accounts.change_user", "auth.add_group", "auth.view_group")
    helper = make(ada, *more, name="Helper")
    mallory.groups.add(helper.group)
    auditor = Group.objects.get(name=Role.AUDITOR)

    with pytest.raises(services.AccountRefused, match="may not give"):
        role_changes.give(bob, [auditor], by=User.objects.get(pk=mallory.pk))
    page = signed_in(mallory).post(
        reverse("accounts:add_role"),
        {"name": "More", "description": "x", "permissions": ["audit.view_entry"]},
    )
    assert "You do not have the permission" in page.text
    assert not CustomRole.objects.filter(group__name="More").exists()


def test_nobody_sets_a_tag_to_which_a_role_of_theirs_is_limited(
    ada: User, olga: User, people: Server
) -> None:
    give(olga, make(ada, server_tags=("payments",)), ada)
    client = signed_in(olga)

    page = client.post(
        reverse("registry:role_tags"),
        {"kind": "server", "tags:people": "payments"},
        follow=True,
    )

    assert "another administrator must set this tag" in page.text
    people.refresh_from_db()
    assert people.tags == []


def test_tags_of_a_kind_are_saved_together_and_only_changed_ones(
    olga: User, payments: Server, people: Server
) -> None:
    set_role_tags("server", payments, "payments set-meanwhile", by=olga)
    fields = {"tags:payments": "payments", "before:payments": "payments", "tags:people": "Staff"}

    page = signed_in(olga).post(
        reverse("registry:role_tags"), {"kind": "server", **fields}, follow=True
    )

    assert "The tags are saved." in page.text
    payments.refresh_from_db()
    people.refresh_from_db()
    assert (payments.tags, people.tags) == (["payments", "set-meanwhile"], ["staff"])


def test_none_of_the_tags_is_saved_if_one_cannot_be_and_the_typed_ones_stay(
    olga: User, payments: Server, people: Server
) -> None:
    fields = {"tags:payments": "till", "before:payments": "payments", "tags:people": "a\u202eb"}

    page = signed_in(olga).post(reverse("registry:role_tags"), {"kind": "server", **fields})

    assert "is no tag" in page.text
    assert 'name="tags:payments" value="till"' in page.text
    payments.refresh_from_db()
    assert payments.tags == ["payments"]


def test_tags_take_the_permission_everywhere(
    ada: User, mallory: User, payments: Server, people: Server
) -> None:
    client = give(mallory, make(ada, server_tags=("payments",)), ada)
    given = {"kind": "server", "tags:payments": "payments other", "before:payments": "payments"}

    assert client.post(reverse("registry:role_tags"), given).status_code == 403


def test_pages_make_change_and_retire_a_role(ada: User) -> None:
    client = signed_in(ada)
    given = {
        "name": "Payments",
        "description": "Operates payments",
        "permissions": ["registry.view_server", "registry.operate_server"],
        "server_tags": "Payments, till",
    }
    client.post(reverse("accounts:add_role"), given)
    role = CustomRole.objects.get()
    assert role.server_tags == ["payments", "till"]
    assert role.scoped_permissions == ["registry.operate_server"]
    changed = {**given, "name": "Administrator", "server_tags": ""}
    client.post(reverse("accounts:change_role", args=[role.pk]), changed)
    role.refresh_from_db()
    assert (str(role), role.scoped_permissions) == ("Payments", [])
    client.post(reverse("accounts:retire_role", args=[role.pk]), {"reason": "Merged."})

    entries = Entry.objects.filter(action__startswith="role.").exclude(action="role.set")
    assert [one.action for one in entries.order_by("id")] == [
        "role.created",
        "role.changed",
        "role.retired",
    ]


@pytest.mark.parametrize("name", ["olga", "alice", "mallory"])
def test_nobody_else_makes_a_role(request: pytest.FixtureRequest, ada: User, name: str) -> None:
    role = make(ada)
    client = signed_in(request.getfixturevalue(name))

    assert client.get(reverse("accounts:add_role")).status_code == 403
    assert client.post(reverse("accounts:change_role", args=[role.pk])).status_code == 403
    assert client.post(reverse("accounts:retire_role", args=[role.pk])).status_code == 403
