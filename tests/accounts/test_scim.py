"""SCIM: users and groups of an identity provider, and nothing else with its token."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, BrokenBarrierError
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client
from django.utils import timezone

from accounts import custom_roles, services
from accounts.custom_roles import RoleTerms
from accounts.models import (
    Agent,
    Identity,
    RoleChange,
    ScimGroup,
    ScimToken,
    ScimUser,
    SignInLink,
    User,
)
from accounts.oidc.providers import provider
from accounts.roles import Role, ensure_roles
from accounts.scim import provisioning, tokens
from audit.models import Entry
from tests.accounts.factors import anna, is_in
from tests.accounts.fake_provider import FakeProvider, callback
from tests.accounts.scim import PATCH, SEARCH, Directory, scim_token
from tests.accounts.test_identity_providers import (
    Configure,
    configure,
    connect,
    fake,
    refused,
    sign_in,
    way_there,
)
from tests.accounts.test_provider_accounts import invited
from tests.console import scenery

__all__ = ["anna", "configure", "fake"]

pytestmark = pytest.mark.django_db
GROUPS = {"cs-approvers": Role.APPROVER, "cs-admins": Role.ADMINISTRATOR}


@pytest.fixture
def ada(db: None) -> User:
    return scenery.person("ada", Role.ADMINISTRATOR)


@pytest.fixture
def company(fake: FakeProvider, configure: Configure, db: None) -> FakeProvider:
    ensure_roles()
    company = {"issuer": fake.issuer, "name": "Company", "groups": GROUPS}
    other = {"issuer": "https://other.example", "name": "Other", "groups": GROUPS}
    configure(company=company | {"scim_external_id": "sub"}, other=other)
    return fake


@pytest.fixture
def directory(company: FakeProvider, ada: User) -> Directory:
    return Directory(scim_token(ada))


def person_of(user: str) -> User:
    return User.objects.get(scim_users=UUID(user))


def roles(person: User) -> list[str]:
    return sorted(person.groups.values_list("name", flat=True))


# Users.


@pytest.mark.long
def test_a_user_is_made_and_signs_in_at_the_provider(
    directory: Directory, company: FakeProvider, client: Client
) -> None:
    made = directory.made(
        "/Users",
        userName="nora@example.com",
        externalId=company.subject,
        displayName="Nora N.",
        emails=[{"value": "nora@example.com", "type": "work"}],
    )

    person = person_of(made["id"])
    assert (person.username, roles(person)) == ("nora", [Role.VIEWER])
    assert (made["active"], made["meta"]["resourceType"]) == (True, "User")
    entry = Entry.objects.get(action="scim_user.created")
    token = ScimToken.objects.get()
    assert entry.actor == f"Company, SCIM token {token.public_id}"
    assert entry.details["person"] == "nora"
    assert sign_in(client, company).status_code == 302
    assert Identity.objects.get(subject=company.subject).person == person


def test_whoever_has_a_name_or_an_address_here_keeps_their_account(
    directory: Directory, anna: User
) -> None:
    anna.email = "anna@example.com"
    anna.save()

    made = directory.user("anna", emails=[{"value": "anna@example.com"}], externalId="x")

    assert person_of(made) != anna
    assert person_of(made).username == "anna-2"
    assert not anna.scim_users.exists()


def test_a_connected_account_is_the_one_that_is_provisioned(
    directory: Directory, company: FakeProvider, anna: User
) -> None:
    Identity.objects.create(person=anna, issuer=company.issuer, subject=company.subject)

    assert person_of(directory.user("a.nother", externalId=company.subject)) == anna


def test_a_disconnected_account_is_nobodys(
    directory: Directory, company: FakeProvider, anna: User
) -> None:
    Identity.objects.create(
        person=anna,
        issuer=company.issuer,
        subject=company.subject,
        disconnected_at=timezone.now(),
    )

    answer = directory.ask("POST", "/Users", {"userName": "a", "externalId": company.subject})

    assert (answer.status_code, answer.json()["scimType"]) == (409, "uniqueness")
    assert not ScimUser.objects.exists()


@pytest.mark.long
def test_nobody_connects_or_is_invited_by_an_account_that_is_provisioned_as_another(
    directory: Directory, company: FakeProvider, anna: User, ada: User, client: Client
) -> None:
    """The provider would disable the other one when this one leaves."""
    nora = person_of(directory.user("nora", externalId=company.subject))
    _ivo, text = invited(ada)

    refused(sign_in(Client(), company, invitation=text), "is used by another user")
    client.force_login(anna)
    answer = company.authorize(way_there(connect(client)))
    response = client.get(callback("company", answer), follow=True)
    assert "is used by another user" in response.text

    assert not Identity.objects.exists()
    assert sign_in(Client(), company).status_code == 302
    assert Identity.objects.get().person == nora


@pytest.mark.long
def test_one_who_was_disabled_does_not_sign_in_at_the_provider(
    directory: Directory, company: FakeProvider, client: Client
) -> None:
    user = directory.user("nora", externalId=company.subject)
    assert directory.set_active(user, False).json()["active"] is False

    refused(sign_in(client, company), "Your account is disabled.")

    directory.ask("DELETE", f"/Users/{user}")
    refused(sign_in(client, company), "Your account is disabled.")


def test_an_administrators_word_stays(directory: Directory, ada: User) -> None:
    user = directory.user("nora")
    services.set_active(person_of(user), False, by=ada)

    for active in (True, False, True):
        assert directory.set_active(user, active).json()["active"] is False

    assert not person_of(user).is_active


@pytest.mark.long
def test_the_provider_enables_whom_it_disabled(directory: Directory, ada: User) -> None:
    user = directory.user("nora")

    assert directory.set_active(user, False).json()["active"] is False
    assert directory.set_active(user, True).json()["active"] is True
    # What an administrator undid is said again, and done again.
    directory.set_active(user, False)
    services.set_active(person_of(user), True, by=ada)
    assert directory.set_active(user, False).json()["active"] is False
    assert not person_of(user).is_active
    assert Entry.objects.filter(action="person.disabled").count() == 3


def test_a_deleted_user_is_disabled_and_comes_back_as_the_same(
    directory: Directory, company: FakeProvider
) -> None:
    user = directory.user("nora", externalId=company.subject)
    nora = person_of(user)

    assert directory.ask("DELETE", f"/Users/{user}").status_code == 204

    nora.refresh_from_db()
    assert not nora.is_active
    assert directory.ask("GET", f"/Users/{user}").status_code == 404
    assert directory.ask("DELETE", f"/Users/{user}").status_code == 404
    # An id that is never given twice; a name alone makes another person.
    assert person_of(directory.user("nora")) != nora
    assert directory.user("nora.n", externalId=company.subject) == user
    nora.refresh_from_db()
    assert nora.is_active


def test_the_last_administrator_stays(directory: Directory, ada: User) -> None:
    Identity.objects.create(person=ada, issuer=provider("company").issuer, subject="ada")
    user = directory.user("ada", externalId="ada")
    assert person_of(user) == ada

    for answer in (directory.set_active(user, False), directory.ask("DELETE", f"/Users/{user}")):
        assert answer.status_code == 403
        assert "last administrator" in answer.json()["detail"]

    ada.refresh_from_db()
    assert ada.is_active
    assert not ScimUser.objects.get().deleted_at


# Groups.


@pytest.mark.long
def test_only_mapped_groups_give_roles(directory: Directory) -> None:
    user = directory.user("nora")
    directory.group("everybody", user)
    approvers = directory.group("cs-approvers", user)

    assert roles(person_of(user)) == [Role.APPROVER, Role.VIEWER]
    change = RoleChange.objects.get()
    assert change.source.startswith("Company, SCIM token")
    shown = directory.ask("GET", f"/Users/{user}").json()["groups"]
    assert {one["display"] for one in shown} == {"everybody", "cs-approvers"}
    directory.patch(f"/Groups/{approvers}", {"op": "remove", "path": f'members[value eq "{user}"]'})
    assert roles(person_of(user)) == [Role.VIEWER]


@pytest.mark.long
@pytest.mark.parametrize("attribute", ["displayName", "externalId"])
def test_renaming_a_group_gives_no_role(directory: Directory, attribute: str) -> None:
    user = directory.user("mallory")
    group = directory.group("friends", user)
    rename = {"op": "replace", "path": attribute, "value": "cs-admins"}

    assert directory.patch(f"/Groups/{group}", rename).status_code == 200

    assert roles(person_of(user)) == [Role.VIEWER]
    # Whoever comes in afterwards gets none either, nor does it count at the next sign-in.
    late = directory.user("late")
    directory.patch(
        f"/Groups/{group}", {"op": "add", "path": "members", "value": [{"value": late}]}
    )
    assert roles(person_of(late)) == [Role.VIEWER]


def test_a_group_that_was_renamed_gives_its_role_no_more(directory: Directory) -> None:
    user = directory.user("nora")
    group = directory.group("cs-approvers", user)
    for name in ("approvers", "cs-approvers"):
        rename = {"op": "replace", "path": "displayName", "value": name}
        directory.patch(f"/Groups/{group}", rename)
        assert roles(person_of(user)) == [Role.VIEWER]


def test_no_second_group_takes_the_place_of_a_mapped_one(directory: Directory) -> None:
    directory.group("cs-admins")

    answer = directory.ask("POST", "/Groups", {"displayName": "cs-admins", "externalId": "2"})

    assert answer.status_code == 409


def test_claims_say_nothing_of_a_role_that_is_provisioned(
    directory: Directory, company: FakeProvider, client: Client
) -> None:
    user = directory.user("nora", externalId=company.subject)
    directory.group("cs-approvers")
    company.about["groups"] = ["cs-approvers"]

    sign_in(client, company)

    assert is_in(client)
    assert roles(person_of(user)) == [Role.VIEWER]


def test_deleting_a_group_takes_its_role(directory: Directory) -> None:
    user = directory.user("nora")
    group = directory.group("cs-approvers", user)

    assert directory.ask("DELETE", f"/Groups/{group}").status_code == 204

    assert roles(person_of(user)) == [Role.VIEWER]
    assert not ScimGroup.objects.exists()


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_of_two_groups_that_change_at_once_none_leaves_its_role(
    company: FakeProvider, configure: Configure, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    both = {"cs-one": Role.APPROVER, "cs-two": Role.APPROVER}
    configure(company={"issuer": company.issuer, "name": "Company", "groups": both})
    directory = Directory(scim_token(ada))
    nora = directory.user("nora")
    groups = [directory.group(name, nora) for name in both]
    together, sync = Barrier(2), provisioning._sync_roles

    def meet(*given: Any) -> None:
        # Both are there unless one waits for the other.
        with suppress(BrokenBarrierError):
            together.wait(timeout=1)
        sync(*given)

    def leave(group: str) -> int:
        try:
            left = {"op": "remove", "path": f'members[value eq "{nora}"]'}
            return int(Directory(directory.token).patch(f"/Groups/{group}", left).status_code)
        finally:
            connection.close()

    monkeypatch.setattr(provisioning, "_sync_roles", meet)
    with ThreadPoolExecutor(2) as threads:
        assert list(threads.map(leave, groups)) == [200, 200]

    assert roles(person_of(nora)) == [Role.VIEWER]


def test_members_are_users_of_this_provider(directory: Directory, ada: User) -> None:
    theirs = Directory(scim_token(ada, "other")).user("nora")

    for value in (theirs, "1", "", "00000000-0000-0000-0000-000000000000"):
        answer = directory.ask(
            "POST", "/Groups", {"displayName": "g", "members": [{"value": value}]}
        )
        assert (answer.status_code, answer.json()["scimType"]) == (400, "invalidValue")


# Reading.


def found(directory: Directory, query: str, path: str = "/Users") -> list[str]:
    answer = directory.ask("GET", f"{path}?{query}")
    assert answer.status_code == 200, answer.text
    return [one.get("userName") or one["displayName"] for one in answer.json()["Resources"]]


@pytest.mark.long
def test_lists_are_filtered_and_paged(directory: Directory) -> None:
    for name in ("nora", "omar", "pia"):
        directory.user(name, externalId=f"id-{name}", displayName=name.upper())

    assert found(directory, 'filter=userName eq "NORA"') == ["nora"]
    assert found(directory, 'filter=externalId eq "id-pia" and active eq true') == ["pia"]
    assert found(directory, 'filter=displayName sw "O" or userName eq "pia"') == ["omar", "pia"]
    assert found(directory, "startIndex=2%26count=1".replace("%26", "&")) == ["omar"]
    assert found(directory, f"startIndex={10**30}") == []
    page = directory.ask("GET", "/Users?count=0").json()
    assert (page["totalResults"], page.get("Resources", [])) == (3, [])


@pytest.mark.long
@pytest.mark.parametrize(
    "wanted",
    [
        'userName eq "x\' OR 1=1 --"',
        'userName eq "x\\" or userName pr or userName eq \\""',
        'userName eq "%"',
        'externalId eq "\\u0000"',
        'externalId eq "\\ud800"',
        'userName eq "\\udfff"',
        'id eq "1) OR (1=1"',
        'id eq "%"',
    ],
)
def test_a_filter_is_a_value_and_nothing_more(directory: Directory, wanted: str) -> None:
    directory.user("nora")

    assert directory.ask("GET", f"/Users?filter={wanted}").json().get("Resources", []) == []


@pytest.mark.parametrize(
    "wanted",
    [
        "not (" * 100 + 'userName eq "a"' + ")" * 100,
        "userName regex 1",
        'person.password eq "a"',
        "is_superuser eq true",
        'userName eq "' + "a" * 5000 + '"',
    ],
)
def test_other_filters_are_refused(directory: Directory, wanted: str) -> None:
    directory.user("nora")

    answer = directory.ask("GET", f"/Users?filter={wanted}")

    assert answer.status_code in (400, 413), answer.text
    assert answer["Content-Type"] == "application/scim+json"


def test_a_stale_version_changes_nothing(directory: Directory) -> None:
    made = directory.made("/Users", userName="nora")
    before = made["meta"]["version"]
    said = {"schemas": [PATCH], "Operations": [{"op": "replace", "path": "active", "value": False}]}
    directory.patch(f"/Users/{made['id']}", {"op": "replace", "path": "displayName", "value": "N."})

    answer = directory.ask("PATCH", f"/Users/{made['id']}", said, **{"If-Match": before})

    assert answer.status_code == 412
    assert person_of(made["id"]).is_active


# Strangers.


def test_another_providers_users_and_groups_are_not_there(directory: Directory, ada: User) -> None:
    user = directory.user("nora")
    group = directory.group("cs-approvers", user)
    other = Directory(scim_token(ada, "other"))

    for path in (f"/Users/{user}", f"/Groups/{group}"):
        assert other.ask("GET", path).status_code == 404
        assert other.ask("DELETE", path).status_code == 404
        assert (
            other.patch(path, {"op": "replace", "path": "active", "value": False}).status_code
            == 404
        )
    assert found(other, "") == []
    assert found(other, f'filter=id eq "{user}"') == []
    assert person_of(user).is_active


def test_only_a_scim_token_opens_it(
    directory: Directory, ada: User, scout: Agent, client: Client
) -> None:
    agent = services.issue_token(scout, by=scout.owner)
    expired, revoked = scim_token(ada), scim_token(ada)
    ScimToken.objects.filter(public_id=expired[4:12]).update(expires_at=timezone.now())
    tokens.revoke(ScimToken.objects.get(public_id=revoked[4:12]), by=ada)
    client.force_login(ada)
    before = Entry.objects.filter(action="scim.failed").count()

    for wrong in (agent, expired, revoked, "", "csp_", directory.token[:-1], directory.token + "a"):
        answer = Directory(wrong, client).ask("POST", "/Users", {"userName": "mallory"})
        assert answer.status_code == 401
        assert answer["WWW-Authenticate"].startswith("Bearer")
        assert answer.json()["schemas"] == ["urn:ietf:params:scim:api:messages:2.0:Error"]
    assert client.get("/scim/v2/Users").status_code == 401

    assert Entry.objects.filter(action="scim.failed").count() == before + 8
    assert not ScimUser.objects.exists()


def test_its_token_opens_nothing_else(directory: Directory, client: Client) -> None:
    headers = {"Authorization": f"Bearer {directory.token}"}

    assert client.get("/api/tools", headers=headers).status_code == 401
    assert client.get("/people/", headers=headers).status_code == 302


def test_wrong_tokens_are_counted_by_address(
    directory: Directory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accounts.attempts.OF_ADDRESS", 3)

    answers = [Directory("csp_wrong").ask("GET", "/Users").status_code for _ in range(5)]

    assert answers == [401, 401, 401, 429, 429]
    assert Entry.objects.filter(action="scim.failed").count() == 3
    # The provider's own requests go on.
    assert directory.ask("GET", "/Users").status_code == 200


def test_a_provider_that_is_taken_out_of_the_file_is_shut_out(
    directory: Directory, configure: Configure
) -> None:
    configure()

    assert directory.ask("GET", "/Users").status_code == 401


@pytest.mark.parametrize("is_broken", [False, True])
def test_tokens_of_no_known_provider_are_counted_and_recorded(
    directory: Directory,
    configure: Configure,
    settings: Any,
    monkeypatch: pytest.MonkeyPatch,
    is_broken: bool,
) -> None:
    monkeypatch.setattr("accounts.attempts.OF_ADDRESS", 3)
    if is_broken:
        settings.OIDC_FILE.write_text("{")
    else:
        configure(other={"issuer": "https://other.example", "name": "Other"})

    answers = [directory.ask("GET", "/Users").status_code for _ in range(5)]

    assert answers == [401, 401, 401, 429, 429]
    found = Entry.objects.filter(action="scim.failed")
    assert found.count() == 3
    assert f"csp_{directory.token[4:12]}_…" in found[0].reason
    assert directory.token not in found[0].reason


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "add", "path": "roles", "value": [{"value": "Administrator"}]},
        {"op": "add", "path": "entitlements", "value": [{"value": "Administrator"}]},
        {"op": "replace", "path": "is_superuser", "value": True},
        {"op": "replace", "value": {"is_superuser": True, "is_staff": True, "roles": ["x"]}},
        {"op": "add", "path": "groups", "value": [{"value": "cs-admins"}]},
        {"op": "replace", "path": "password", "value": "hunter2hunter2"},
        {"op": "replace", "path": "person", "value": 1},
        {"op": "replace", "path": "id", "value": "1"},
        {"op": "replace", "path": "meta.resourceType", "value": "Group"},
    ],
)
def test_no_path_leads_to_a_right(directory: Directory, operation: dict[str, Any]) -> None:
    user = directory.user("mallory")
    before = User.objects.values().get(scim_users=UUID(user))

    answer = directory.patch(f"/Users/{user}", operation)

    assert answer.status_code in (200, 400), answer.text
    assert User.objects.values().get(scim_users=UUID(user)) == before
    assert roles(person_of(user)) == [Role.VIEWER]
    assert "hunter2" not in str(ScimUser.objects.values().get())


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"[" * 100_000, 400),
        (b'{"userName": "a", "userName": "b"}', 400),
        (b'{"userName": "a\\u0000b"}', 400),
        (b'{"userName": "' + b"a" * 300 + b'"}', 400),
        (b'{"userName": "a", "displayName": "' + b"a" * 30_000 + b'"}', 400),
        (b" " * (2 * 1024 * 1024 + 1), 413),
        (b"not json", 400),
        (b"[]", 400),
        (b"{}", 400),
        (b"", 400),
    ],
)
def test_bodies_have_bounds(directory: Directory, body: bytes, status: int) -> None:
    answer = directory.ask("POST", "/Users", body)

    assert answer.status_code == status, answer.text
    assert answer["Content-Type"] == "application/scim+json"
    assert answer.json()["status"] == str(status)
    assert not ScimUser.objects.exists()


def test_a_search_in_a_body_is_as_short_as_one_in_an_address(directory: Directory) -> None:
    terms = " or ".join(['userName eq "a"'] * 1000)

    answer = directory.ask("POST", "/Users/.search", {"schemas": [SEARCH], "filter": terms})

    assert answer.status_code == 413


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "replace", "path": "userName", "value": ""},
        {"op": "replace", "path": "userName", "value": " "},
        {"op": "add", "path": 'emails[type eq "\\ud800"].value', "value": "a@example.com"},
        {"op": "add", "path": 'emails[type eq "\\u0000"].value', "value": "a@example.com"},
    ],
)
def test_what_cannot_be_kept_is_refused(directory: Directory, operation: dict[str, Any]) -> None:
    answer = directory.patch(f"/Users/{directory.user('nora')}", operation)

    assert answer.status_code == 400


def test_what_is_not_served_says_so(directory: Directory) -> None:
    assert directory.ask("POST", "/Bulk", {}).status_code == 501
    assert directory.ask("GET", "/Me").status_code == 501
    assert directory.ask("GET", "/Nothing").status_code == 404
    assert directory.ask("PUT", "/Users", {}).status_code == 405
    assert directory.ask("GET", "/Users?sortBy=userName").status_code == 501
    assert directory.ask("GET", "/").status_code == 501


# Tokens.


def test_a_token_takes_two_administrators_where_a_role_does(
    company: FakeProvider, ada: User
) -> None:
    eve = scenery.person("eve", Role.ADMINISTRATOR)
    text = scim_token(ada)
    token = ScimToken.objects.get()
    assert Directory(text).ask("GET", "/Users").status_code == 401

    with pytest.raises(services.AccountRefused, match="Another administrator"):
        tokens.confirm(token, by=ada)
    tokens.confirm(token, by=eve)

    assert Directory(text).ask("GET", "/Users").status_code == 200
    with pytest.raises(services.AccountRefused, match="first"):
        tokens.confirm(token, by=eve)
    assert [entry.actor for entry in Entry.objects.filter(action__startswith="scim_token.")] == [
        "eve",
        "ada",
    ]


def test_whoever_may_not_give_the_mapped_roles_issues_no_token(
    company: FakeProvider, ada: User, client: Client
) -> None:
    """With a token they would give themselves every role of the mapping."""
    manages = RoleTerms(frozenset({"accounts.view_user", "accounts.change_user"}))
    role = custom_roles.create("Users", description="", terms=manages, by=ada)
    mia = scenery.person("mia")
    mia.groups.add(role.group)
    ivo = services.create_person("ivo", roles=[Role.ADMINISTRATOR], by=None)
    client.force_login(mia)

    answer = client.post("/provisioning/company/tokens/", {"company-days": 30}, follow=True)

    assert "You may not give the role" in answer.text
    assert not ScimToken.objects.exists()
    # Nor do they get a way in as somebody who has more.
    answer = client.post(f"/people/{ivo.pk}/link/", follow=True)
    assert "You may not give the role" in answer.text
    assert not SignInLink.objects.exists()


def test_a_rotated_token_ends_an_hour_after_the_new_one_holds(
    company: FakeProvider, ada: User
) -> None:
    old = scim_token(ada)
    eve = scenery.person("eve", Role.ADMINISTRATOR)
    token = ScimToken.objects.get()
    before = token.expires_at

    made, text = tokens.rotate(token, provider("company"), by=ada)

    token.refresh_from_db()
    assert token.expires_at == before
    tokens.confirm(made, by=eve)
    token.refresh_from_db()
    assert token.expires_at - timezone.now() <= services.OVERLAP
    for one in (old, text):
        assert Directory(one).ask("GET", "/Users").status_code == 200
    assert text.encode() not in bytes(ScimToken.objects.get(pk=made.pk).digest)


def test_groups_of_the_console_stay(directory: Directory, ada: User) -> None:
    """What an administrator gave beside the mapping is not the provider's to take."""
    user = directory.user("nora")
    person_of(user).groups.add(Group.objects.get(name=Role.OPERATOR))
    group = directory.group("cs-approvers", user)

    directory.ask("DELETE", f"/Groups/{group}")

    assert roles(person_of(user)) == [Role.OPERATOR, Role.VIEWER]
