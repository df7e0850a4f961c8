"""Attacks on signing in: by which test each is seen refused, and what the record says of it.

Where a flood would fill the record, what is written is bounded by accounts/attempts.py; of forms
without their CSRF token and addresses of other sites to go to, which nobody can tell from mistakes,
by accounts/refusals.py. Nobody can tell a planted session, or one of before an account was
disabled, from one that expired: it opens nothing, and the record says who was disabled when.
"""

import ast
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.contrib.auth.hashers import MD5PasswordHasher
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse

from accounts import attempts, refusals, services
from accounts.models import Agent, Identity, RoleChange, User
from accounts.roles import Role
from audit.models import Entry
from tests.accounts.factors import anna, is_in
from tests.accounts.fake_provider import FakeProvider, callback
from tests.accounts.scim import GROUP, USER, Directory, scim_token
from tests.accounts.test_identity_providers import (
    Configure,
    begin,
    by_domain,
    company,
    configure,
    connect,
    fake,
    sign_in,
    way_there,
)
from tests.console import scenery

__all__ = ["anna", "company", "configure", "fake"]
ROOT = Path(__file__).resolve().parents[2]

ATTACKS = {
    "session fixation": [
        "accounts/test_sessions.py::test_a_planted_session_is_worth_nothing",
        "accounts/test_second_factor.py::test_a_code_is_asked_for_after_the_password",
        "accounts/test_identity_providers.py::test_a_code_of_another_browser",
        "console/test_sign_in.py::test_a_link_over_somebody_elses_session_asks_to_sign_out_first",
    ],
    "replayed codes": [
        "accounts/test_attacks.py::test_answers_of_no_sign_in_are_written_down",
        "accounts/test_attacks.py::test_a_logout_token_that_is_used_twice_is_written_down",
        "accounts/test_attacks.py::test_links_that_are_none_are_written_down",
        "accounts/test_second_factor.py::test_a_code_is_good_for_one_sign_in",
        "accounts/test_recovery_codes.py::test_one_signs_in_once",
        "accounts/test_real_provider.py::test_an_answer_and_a_code_are_good_once",
        "accounts/test_identity_providers.py::test_an_answer_is_good_once",
        "accounts/test_identity_providers.py::test_a_code_is_good_once",
        "accounts/test_identity_providers.py::test_a_logout_token_is_good_once",
        "approvals/test_provider_step_up.py::test_a_confirmation_is_good_once",
    ],
    "open redirect": [
        "accounts/test_attacks.py::test_another_sites_page_is_refused_and_written_down",
        "accounts/test_attacks.py::test_a_flood_writes_one_entry_for_each_address",
        "console/test_sign_in.py::test_one_is_not_sent_elsewhere",
        "console/test_sign_in.py::test_a_sign_out_goes_on_to_no_other_site",
        "accounts/test_second_factor.py::test_nobody_is_sent_elsewhere_after_it",
        "accounts/test_identity_providers.py::test_it_leads_to_no_other_site",
    ],
    "CSRF on linking": [
        "accounts/test_attacks.py::test_no_site_of_others_connects_its_account",
        "accounts/test_attacks.py::test_forms_of_other_sites_are_written_down",
        "accounts/test_attacks.py::test_an_attackers_answer_connects_nothing",
        "accounts/test_identity_providers.py::test_connecting_asks_for_the_password",
        "accounts/test_identity_providers.py::test_connecting_ends_with_the_session_that_began_it",
        "accounts/test_attacks.py::test_connecting_anothers_account_is_written_down",
        "accounts/test_provider_abuse.py::test_a_link_of_others_begins_no_invitation",
    ],
    "downgrade to password": [
        "accounts/test_identity_providers.py::test_without_local_sign_in_only_the_provider_lets_in",
        "accounts/test_attacks.py::test_passwords_and_passkeys_that_are_off_are_written_down",
        "accounts/test_identity_providers.py::test_a_strong_sign_in_replaces_it",
        "accounts/test_second_factor.py::test_a_link_is_no_way_round_it",
        "approvals/test_provider_step_up.py::"
        "test_a_rule_that_asks_for_a_passkey_takes_nothing_else",
    ],
    "enumeration": [
        "console/test_sign_in.py::test_a_wrong_password_says_the_same_as_a_wrong_name",
        "notifications/test_password_reset.py::test_an_answer_tells_nobody_who_is_here",
        "notifications/test_password_reset.py::test_an_invented_link_is_refused_in_the_same_words",
        "accounts/test_attacks.py::test_each_name_costs_the_same_work",
        "accounts/test_attacks.py::test_trying_names_is_written_down_with_the_address",
    ],
    "brute force per account and address, behind a proxy": [
        "console/test_sign_in.py::test_guessing_ends_and_is_written_down",
        "console/test_sign_in.py::test_one_address_does_not_try_everybody",
        "console/test_sign_in.py::test_one_behind_a_proxy_locks_out_nobody_else",
        "accounts/test_attacks.py::test_trying_names_is_written_down_with_the_address",
        "accounts/test_client_address.py::test_the_right_most_address_that_is_no_proxys",
        "accounts/test_provider_abuse.py::test_answers_that_fail_are_limited_by_address",
        "accounts/test_second_factor.py::test_wrong_codes_end_for_the_stranger_who_knows_the_password",
    ],
    "SCIM with an agent's token": [
        "accounts/test_attacks.py::test_scim_with_an_agents_token_is_written_down",
        "accounts/test_attacks.py::test_a_flood_of_agents_tokens_is_bounded",
        "accounts/test_scim.py::test_only_a_scim_token_opens_it",
        "accounts/test_scim.py::test_its_token_opens_nothing_else",
        "accounts/test_scim.py::test_wrong_tokens_are_counted_by_address",
    ],
    "session after disable and re-enable": [
        "accounts/test_attacks.py::test_a_session_of_before_opens_nothing_and_disabling_is_an_entry",
        "console/test_sign_in.py::test_a_session_of_before_is_disabled_for_good",
        "console/test_sign_in.py::test_no_way_of_disabling_leaves_a_session",
        "accounts/test_sessions.py::test_disabling_ends_them_for_good",
    ],
    "privilege by group rename": [
        "accounts/test_attacks.py::test_a_second_group_in_a_mapped_ones_place_is_written_down",
        "accounts/test_scim.py::test_renaming_a_group_gives_no_role",
        "accounts/test_attacks.py::test_a_group_of_nearly_the_same_name_gives_nothing",
        "accounts/test_attacks.py::test_a_group_that_was_renamed_takes_its_role_along",
        "accounts/test_attacks.py::test_no_group_is_renamed_here",
    ],
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_each_attack_has_its_tests(attack: str) -> None:
    for test in ATTACKS[attack]:
        path, _colons, name = test.partition("::")
        tree = ast.parse((ROOT / "tests" / path).read_text())
        names = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert name in names, test


def test_no_site_of_others_connects_its_account(company: FakeProvider, anna: User) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(anna)
    there = "/profile/identities/company/connect/"

    assert strict.post(there, {"password": scenery.PASSWORD}).status_code == 403
    assert "at_providers" not in strict.session


def rejected() -> list[tuple[str, str, str]]:
    found = Entry.objects.filter(action__startswith="sign_in.", action__endswith="_rejected")
    return [(one.action, one.actor, one.reason) for one in found.order_by("id")]


@pytest.mark.parametrize(
    ("there", "actor"),
    [("/sign-in/", "Countersign"), ("/profile/identities/company/connect/", "anna")],
)
def test_forms_of_other_sites_are_written_down(
    company: FakeProvider, anna: User, there: str, actor: str
) -> None:
    strict = Client(enforce_csrf_checks=True)
    if actor == "anna":
        strict.force_login(anna)

    for _n in range(3):
        assert strict.post(there, {"password": scenery.PASSWORD}).status_code == 403

    assert rejected() == [
        ("sign_in.form_rejected", rejected()[0][1],
         f"Rejected form without a valid CSRF token: {there}")
    ]  # fmt: skip
    assert (rejected()[0][1] == "anna") is (actor == "anna")


@pytest.mark.parametrize("there", ["https://evil.example/a?secret=1", "//evil.example/a"])
@pytest.mark.parametrize("way", ["sign_in", "form", "provider", "set_up", "sign_out"])
def test_another_sites_page_is_refused_and_written_down(
    client: Client, company: FakeProvider, anna: User, there: str, way: str
) -> None:
    if way in ("set_up", "sign_out"):
        client.force_login(anna)
    match way:
        case "sign_in":
            client.get("/sign-in/", {"next": there})
        case "form":
            given = {"username": "anna", "password": scenery.PASSWORD, "next": there}
            assert client.post("/sign-in/", given)["Location"] == "/"
        case "provider":
            client.get("/sign-in/with/company/", {"next": there})
        case "set_up":
            client.get(reverse("accounts:set_up_factor"), {"next": there})
        case _:
            assert "evil" not in client.post("/sign-out/", {"next": there})["Location"]

    ((action, _actor, reason),) = rejected()
    assert action == "sign_in.redirect_rejected"
    assert reason == "Rejected redirect to another site: evil.example"


def test_a_flood_writes_one_entry_for_each_address(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refusals, "MOST", 3)
    there = {"next": "https://evil.example/"}
    for n in range(5):
        for _again in range(3):
            client.get("/sign-in/", there, REMOTE_ADDR=f"192.0.2.{n}")

    assert len(rejected()) == 3


@pytest.mark.long
@pytest.mark.parametrize("state", ["invented", "used"])
def test_answers_of_no_sign_in_are_written_down(
    client: Client, company: FakeProvider, anna: User, state: str
) -> None:
    answer = company.authorize(begin(client))
    if state == "used":
        client.get(callback("company", answer))
        client.post("/sign-out/")
    else:
        answer["state"] = "invented"

    for _n in range(3):
        assert client.get(callback("company", answer)).status_code == 403

    reason = "This sign-in expired, or was used before. Begin again."
    assert rejected() == [("sign_in.answer_rejected", "countersign", reason)]
    assert Entry.objects.get(action="sign_in.answer_rejected").details["provider"] == "Company"


@pytest.mark.long
@pytest.mark.parametrize("name", ["code", "state", "iss"])
def test_an_answer_with_a_parameter_twice_signs_nobody_in(
    client: Client, company: FakeProvider, anna: User, name: str
) -> None:
    there = callback("company", company.authorize(begin(client)))

    answer = client.get(there.replace("?", f"?{name}=https%3A%2F%2Fevil.example&"))

    assert answer.status_code == 403
    reason = "The answer has a parameter twice. Begin again."
    assert rejected() == [("sign_in.answer_rejected", "countersign", reason)]


@pytest.mark.long
def test_a_logout_token_that_is_used_twice_is_written_down(
    client: Client, company: FakeProvider
) -> None:
    token, there = {"logout_token": company.logout_token()}, "/sign-in/with/company/logout/"
    assert client.post(there, token).status_code == 200
    sign_in(client, company)

    for _n in range(3):
        assert client.post(there, token).status_code == 400

    assert is_in(client)
    assert [(action, reason) for action, _actor, reason in rejected()] == [
        ("sign_in.logout_token_rejected", "The token was used before.")
    ]


@pytest.mark.parametrize("there", ["/sign-in/invented/", "/password-reset/1.invented/"])
def test_links_that_are_none_are_written_down(client: Client, db: None, there: str) -> None:
    for _n in range(3):
        assert client.post(there, {}).status_code == 403

    reason = "This link is unknown, was used before, or is too old."
    assert rejected() == [("sign_in.link_rejected", "countersign", reason)]


@pytest.mark.long
def test_scim_with_an_agents_token_is_written_down(
    client: Client, company: FakeProvider, scout: Agent
) -> None:
    directory = Directory(services.issue_token(scout, by=scout.owner), client)

    answer = directory.ask("POST", "/Users", {"schemas": [USER], "userName": "mallory"})

    assert answer.status_code == 401
    entry = Entry.objects.get(action="scim.failed")
    assert (entry.reason, entry.details["address"]) == ("No valid SCIM token.", "127.0.0.1")
    assert directory.token not in str((entry.reason, entry.details))
    assert not User.objects.filter(username="mallory").exists()


def test_a_flood_of_agents_tokens_is_bounded(
    client: Client, company: FakeProvider, scout: Agent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(attempts, "OF_ADDRESS", 3)
    directory = Directory(services.issue_token(scout, by=scout.owner), client)

    answers = [directory.ask("GET", "/Users").status_code for _n in range(5)]

    assert answers == [401, 401, 401, 429, 429]
    assert Entry.objects.filter(action="scim.failed").count() == 3
    assert Entry.objects.filter(action="scim.limited").count() == 1


def test_a_session_of_before_opens_nothing_and_disabling_is_an_entry(
    client: Client, anna: User
) -> None:
    ada = scenery.person("ada", Role.ADMINISTRATOR)
    client.force_login(anna)
    link = urlsplit(services.sign_in_link(anna)).path
    services.set_active(anna, False, by=ada)
    services.set_active(User.objects.get(pk=anna.pk), True, by=ada)

    assert client.get("/profile/").status_code == 302
    assert Client().post(link).status_code == 403

    found = Entry.objects.filter(action__in=("person.disabled", "person.enabled"))
    assert [(one.actor, one.details["person"]) for one in found] == [("ada", "anna")] * 2
    assert [one[0] for one in rejected()] == ["sign_in.link_rejected"]


@pytest.mark.long
def test_a_second_group_in_a_mapped_ones_place_is_written_down(
    client: Client, company: FakeProvider, configure: Configure
) -> None:
    configure(company=by_domain(company, groups={"cs-approvers": Role.APPROVER}))
    directory = Directory(scim_token(scenery.person("ada", Role.ADMINISTRATOR)), client)
    user = directory.user("mallory")
    directory.group("cs-approvers")

    for _n in range(3):
        said = {"schemas": [GROUP], "displayName": "x", "externalId": "cs-approvers"}
        answer = directory.ask("POST", "/Groups", said | {"members": [{"value": user}]})
        assert answer.status_code == 409

    entry = Entry.objects.get(action="scim.refused")
    assert "SCIM token" in entry.actor
    assert entry.reason == "Another group has this name, to which roles are mapped here."
    assert not RoleChange.objects.filter(person__username="mallory").exists()


def test_ones_own_page_is_no_entry(client: Client, anna: User) -> None:
    given = {"username": "anna", "password": scenery.PASSWORD, "next": "/profile/"}

    assert client.post("/sign-in/", given)["Location"] == "/profile/"
    assert rejected() == []


def test_an_attackers_answer_connects_nothing(
    client: Client, company: FakeProvider, anna: User
) -> None:
    """anna began to connect hers; the attacker makes her browser come back with their code."""
    attacker = Client()
    theirs = company.authorize(begin(attacker))
    client.force_login(anna)
    hers = company.authorize(way_there(connect(client)))

    client.get(callback("company", {**theirs, "state": hers["state"]}))

    assert not Identity.objects.exists()
    assert "did not take the code" in Entry.objects.get(action="sign_in.failed").reason


def test_connecting_anothers_account_is_written_down(
    client: Client, company: FakeProvider, anna: User, bob: User
) -> None:
    Identity.objects.create(person=bob, issuer=company.issuer, subject=company.subject)
    client.force_login(anna)

    client.get(callback("company", company.authorize(way_there(connect(client)))))

    entry = Entry.objects.get(action="sign_in.failed")
    assert (entry.actor, entry.reason) == ("anna", "This account is used by another user.")


def test_passwords_and_passkeys_that_are_off_are_written_down(
    client: Client, anna: User, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And not without end."""
    monkeypatch.setattr(attempts, "OF_PAIR", 3)
    monkeypatch.setattr(attempts, "OF_ADDRESS", 3)
    settings.LOCAL_SIGN_IN = False
    given = {"username": "anna", "password": scenery.PASSWORD}

    by_password = [client.post("/sign-in/", given).status_code for _n in range(5)]
    by_passkey = [client.post("/sign-in/passkey/", {"answer": "{}"}).status_code for _n in range(5)]

    assert by_password == by_passkey == [403, 403, 403, 429, 429]
    assert not is_in(client)
    for kind in ("sign_in", "passkey"):
        entries = Entry.objects.filter(action=f"{kind}.failed")
        assert entries.count() == 3
        assert "use the provider" in entries.latest("id").reason


class CountingHasher(MD5PasswordHasher):
    algorithm = "counting"
    count = 0

    def encode(self, password: str, salt: str) -> str:
        type(self).count += 1
        return super().encode(password, salt)


@pytest.mark.parametrize("name", ["anna", "nobody", "unusable", "disabled"])
def test_each_name_costs_the_same_work(client: Client, db: None, settings: Any, name: str) -> None:
    settings.PASSWORD_HASHERS = [f"{__name__}.CountingHasher"]
    scenery.person("anna", password=scenery.PASSWORD)
    scenery.person("disabled", password=scenery.PASSWORD)
    User.objects.filter(username="disabled").update(is_active=False)
    scenery.person("unusable").set_unusable_password()
    User.objects.filter(username="unusable").update(password="!" + "x" * 40)
    CountingHasher.count = 0

    answer = client.post("/sign-in/", {"username": name, "password": "a wrong one"})

    assert not is_in(client)
    assert CountingHasher.count == 1
    assert "No person here has this name and password" in answer.text


def test_trying_names_is_written_down_with_the_address(
    client: Client, db: None, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    """Behind a proxy too, whose own address would tell nothing. Names that are nobody's are not
    written: they may be passwords."""
    monkeypatch.setattr(attempts, "OF_ADDRESS", 4)
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    settings.TRUSTED_PROXIES = [ip_network("127.0.0.1/32")]
    scenery.person("anna", password=scenery.PASSWORD)
    asked = ["ghost1", "anna", "ghost2", "ghost3", "ghost4", "ghost5"]

    answers = [
        client.post(
            "/sign-in/", {"username": name, "password": "x"},
            headers={"X-Forwarded-For": "198.51.100.9, 192.0.2.66"},
        ).status_code
        for name in asked
    ]  # fmt: skip

    assert answers == [200, 200, 200, 200, 429, 429]
    failed = Entry.objects.filter(action="sign_in.failed").order_by("id")
    assert [one.details["person"] for one in failed] == ["", "anna", "", ""]
    assert {one.details["address"] for one in failed} == {"192.0.2.66"}
    assert "ghost" not in str([(one.reason, one.details) for one in failed])
    assert Entry.objects.filter(action="sign_in.limited").count() == 1


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    ["CS-approvers", "cs-approvers ", " cs-approvers", "cs\u2010approvers", "ｃs-approvers",
     "cs-approvers\u200b", "сs-approvers", "cs-approvers,x", "cs-approver"],
)  # fmt: skip
def test_a_group_of_nearly_the_same_name_gives_nothing(
    client: Client, company: FakeProvider, configure: Configure, name: str
) -> None:
    configure(company=by_domain(company, groups={"cs-approvers": Role.APPROVER}))
    company.about["groups"] = [name]

    assert sign_in(client, company).status_code == 302

    assert Identity.objects.get().person.group_names == [Role.VIEWER]
    assert not RoleChange.objects.exists()


def test_a_group_that_was_renamed_takes_its_role_along(
    client: Client, company: FakeProvider, configure: Configure
) -> None:
    """Another group that gets the name gives the role, as the file says; approvers see it."""
    configure(company=by_domain(company, groups={"cs-approvers": Role.APPROVER}))
    company.about["groups"] = ["cs-approvers"]
    sign_in(client, company)
    company.about["groups"] = ["former-approvers"]

    sign_in(Client(), company)

    person = Identity.objects.get().person
    assert person.group_names == [Role.VIEWER]
    entry = Entry.objects.filter(action="person.groups_set").latest("id")
    assert (entry.actor, entry.details["after"]) == ("Company", [Role.VIEWER])
    changes = RoleChange.objects.filter(person=person).order_by("pk")
    assert [(one.role, one.state) for one in changes] == [
        (Role.APPROVER, "given"),
        (Role.APPROVER, "taken"),
    ]


def test_no_group_is_renamed_here(client: Client, db: None) -> None:
    ada = scenery.person("ada", Role.ADMINISTRATOR)
    User.objects.filter(pk=ada.pk).update(is_staff=True)
    group = Group.objects.create(name="friends")
    client.force_login(ada)

    answer = client.post(f"/admin/auth/group/{group.pk}/change/", {"name": "payments"})

    assert answer.status_code == 403
    assert Group.objects.get(pk=group.pk).name == "friends"
