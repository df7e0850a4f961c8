"""People and their groups, the links that let them in, and what each sets for themselves."""

import re

import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse

from accounts import services
from accounts.models import Agent, User
from accounts.roles import Role
from accounts.tokens import look_up
from audit.models import Entry
from registry.models import Tool
from tests.console import scenery


@pytest.fixture
def ada(db: None) -> User:
    """An administrator."""
    return scenery.person("ada", Role.ADMINISTRATOR)


@pytest.fixture
def as_ada(client: Client, ada: User) -> Client:
    client.force_login(ada)
    return client


def group(role: Role) -> int:
    return Group.objects.get(name=role).pk


def at(name: str, person: User) -> str:
    app = "approvals" if name == "set_person_active" else "accounts"
    return reverse(f"{app}:{name}", args=[person.pk])


def roles(person: User) -> set[str]:
    return set(person.groups.values_list("name", flat=True))


def entries(action: str) -> list[Entry]:
    return list(Entry.objects.filter(action=action))


@pytest.mark.long
def test_an_invited_person_gets_in_once_by_the_link_that_is_shown_once(as_ada: Client) -> None:
    given = {"username": "carol", "groups": [group(Role.APPROVER)]}

    page = as_ada.post(reverse("accounts:invite"), given)

    found = re.search(r'<code id="link"[^>]*>([^<]+)<', page.text)
    assert found
    carol = User.objects.get(username="carol")
    assert roles(carol) == {"Approver"}
    assert services.redeem_sign_in_link(found.group(1).rstrip("/").rpartition("/")[2]) == carol
    assert found.group(1) not in as_ada.get(at("person", carol)).text
    (entry,) = entries("person.created")
    assert (entry.actor, entry.details["roles"]) == ("ada", ["Approver"])


@pytest.mark.parametrize(("name", "said"), [("ada", "already exists"), ("a b!", "valid")])
def test_a_name_that_cannot_be_is_said_at_its_field(as_ada: Client, name: str, said: str) -> None:
    page = as_ada.post(reverse("accounts:invite"), {"username": name})

    assert said in page.context["form"].errors["username"][0]
    assert User.objects.count() == 1


def test_groups_are_chosen_and_recorded(as_ada: Client, alice: User) -> None:
    wanted = [group(Role.AUDITOR), group(Role.VIEWER)]

    for _again in range(2):
        page = as_ada.post(at("person", alice), {"groups": wanted}, follow=True)

    assert "are as chosen" in page.text
    assert roles(alice) == {"Auditor", "Viewer"}
    (entry,) = entries("person.groups_set")
    assert entry.details["before"] == ["Approver"]
    assert entry.details["after"] == ["Auditor", "Viewer"]


def test_the_last_administrator_stays_one(as_ada: Client, ada: User) -> None:
    page = as_ada.post(at("person", ada), {"groups": [group(Role.VIEWER)]})

    assert "last administrator" in page.context["form"].errors["groups"][0]
    assert roles(ada) == {"Administrator"}


@pytest.mark.long
def test_whoever_is_switched_off_is_signed_out_and_their_agents_too(
    as_ada: Client, bob: User, scout: Agent
) -> None:
    theirs = Client()
    theirs.force_login(bob)
    token = services.issue_token(scout, by=bob)

    page = as_ada.post(at("set_person_active", bob), {"active": "0"}, follow=True)

    assert "is off and signed out everywhere" in page.text
    assert theirs.get(reverse("accounts:settings")).status_code == 302
    assert look_up(token) is None
    as_ada.post(at("set_person_active", bob), {"active": "1"})
    # Let in again is a new sign-in; what was open before stays closed.
    assert theirs.get(reverse("accounts:settings")).status_code == 302
    assert len(entries("person.disabled")) == len(entries("person.enabled")) == 1


def test_nobody_switches_off_themselves(as_ada: Client, ada: User) -> None:
    scenery.person("eve", Role.ADMINISTRATOR)

    page = as_ada.post(at("set_person_active", ada), {"active": "0"}, follow=True)

    assert "You cannot disable your own account" in page.text
    ada.refresh_from_db()
    assert ada.is_active


def test_a_new_link_is_an_entry_and_none_for_somebody_who_is_off(
    as_ada: Client, alice: User
) -> None:
    assert "/sign-in/" in as_ada.post(at("new_link", alice)).text
    (entry,) = entries("sign_in_link.made")
    assert (entry.actor, entry.details["person"]) == ("ada", "alice")

    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert as_ada.post(at("new_link", alice)).status_code == 404


@pytest.mark.long
def test_no_administrator_makes_a_link_to_be_somebody_who_is_here(
    as_ada: Client, ada: User, alice: User
) -> None:
    dora = scenery.person("dora", Role.APPROVER, password=scenery.PASSWORD)
    Client().force_login(alice)
    for here in (dora, alice):
        page = as_ada.post(at("new_link", here), follow=True)

        assert "would let others act in their name" in page.text
        assert "manage.py sign_in_link" in page.text
        assert "/sign-in/" not in page.text.replace("/sign-in/?", "")
    assert not entries("sign_in_link.made")
    # Whoever runs the host may do everything anyway.
    assert services.sign_in_link(dora)


def test_whoever_came_by_anothers_link_is_known_as_such_until_a_password_is_set(
    as_ada: Client, ada: User, alice: User
) -> None:
    carol = services.create_person("carol", roles=[Role.APPROVER], by=ada)
    text = services.sign_in_link(carol, by=ada).rstrip("/").rpartition("/")[2]

    came = services.redeem_sign_in_link(text)

    assert not came.is_vouched_for
    assert came.let_in_by == ada
    shown = as_ada.get(at("person", carol)).text
    assert "decides nothing before a password is set" in shown
    # Lost its link before a password was set: another one may be made.
    assert services.sign_in_link(came, by=ada)
    services.set_password(came, scenery.PASSWORD)
    assert User.objects.get(pk=came.pk).is_vouched_for
    assert entries("person.password_set")[0].details["let_in_by"] == "ada"
    signed_in = entries("person.signed_in")[0]
    assert signed_in.details["link_made_by"] == "ada"


@pytest.mark.long
@pytest.mark.parametrize("who", ["alice", "olga", "vera", "mallory", "ines"])
def test_others_change_no_person(
    client: Client, request: pytest.FixtureRequest, ada: User, bob: User, who: str
) -> None:
    client.force_login(request.getfixturevalue(who))
    reads = 200 if who == "ines" else 403

    assert client.get(reverse("accounts:people")).status_code == reads
    assert client.get(at("person", bob)).status_code == reads
    assert (
        client.post(at("person", bob), {"groups": [group(Role.ADMINISTRATOR)]}).status_code == 403
    )
    assert client.post(at("set_person_active", bob), {"active": "0"}).status_code == 403
    assert client.post(at("new_link", bob)).status_code == 403
    assert client.post(reverse("accounts:invite"), {"username": "x"}).status_code == 403
    assert roles(bob) == {"Approver"}
    assert not entries("sign_in_link.made")


def test_changes_need_a_post_and_the_forms_own_token(ada: User, as_ada: Client, bob: User) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(ada)

    for name in ("set_person_active", "new_link"):
        assert as_ada.get(at(name, bob)).status_code == 405
        assert strict.post(at(name, bob)).status_code == 403
    assert strict.post(at("person", bob)).status_code == 403


def test_ones_time_zone_is_the_one_of_ones_pages(client: Client, vera: User) -> None:
    client.force_login(vera)
    given = {"time_zone": "Asia/Tokyo"}

    page = client.post(reverse("accounts:profile"), given, follow=True)

    assert "Your times are shown in Asia/Tokyo." in page.text
    vera.refresh_from_db()
    assert vera.time_zone == "Asia/Tokyo"
    assert '<option value="Europe/Paris">' in page.text
    assert "Use UTC" in page.text
    wrong = client.post(reverse("accounts:profile"), {"time_zone": "Mars/Base"})
    assert wrong.context["form"].errors["time_zone"] == [
        "“Mars/Base” is no time zone that is known here."
    ]
    # As the button beside the typed name is sent.
    client.post(reverse("accounts:profile"), {"time_zone": ["Asia/Tokyo", "UTC"]})
    vera.refresh_from_db()
    assert vera.time_zone == "UTC"
    assert "Use UTC" not in client.get(reverse("accounts:profile")).text


def test_lists_are_as_close_as_one_chose(client: Client, vera: User) -> None:
    client.force_login(vera)
    there, given = reverse("accounts:density"), {"next": "/profile/"}
    assert 'data-density="comfortable"' in client.get("/profile/").text

    page = client.post(there, {**given, "density": "compact"}, follow=True)

    assert 'data-density="compact"' in page.text
    assert client.cookies["density"]["samesite"] == "Lax"
    client.post(there, {**given, "density": '"><script>'})
    assert 'data-density="compact"' in client.get("/profile/").text
    assert client.get(there).status_code == 405
    away = client.post(there, {"next": "https://elsewhere.example.org/", "density": "compact"})
    assert away["Location"] == "/"


LONG = "a quiet harbour at dusk"


@pytest.mark.long
def test_who_came_by_a_link_sets_a_first_password(client: Client, db: None) -> None:
    carol = services.create_person("carol", roles=[Role.VIEWER], by=None)
    other = Client()
    for one in (client, other):
        one.force_login(carol)
    assert "old_password" not in client.get(reverse("accounts:profile")).text

    given = {"new_password1": LONG, "new_password2": LONG}
    page = client.post(reverse("accounts:password"), given, follow=True)

    assert "Your password is set." in page.text
    assert Client().login(username="carol", password=LONG)
    assert client.get(reverse("accounts:profile")).status_code == 200
    assert other.get(reverse("accounts:profile")).status_code == 302
    assert entries("person.password_set")[0].actor == "carol"


@pytest.mark.long
@pytest.mark.parametrize(
    "weak", ["Summer2026", "aaaaaaab", "vera-vera", "Maier2026!", "countersign1", "qwertz123456"]
)
def test_a_password_that_is_easy_to_guess_is_refused(client: Client, db: None, weak: str) -> None:
    vera = scenery.person("vera", Role.VIEWER, password=scenery.PASSWORD)
    vera.first_name, vera.last_name = "Vera", "Maier"
    vera.save()
    client.force_login(vera)

    given = {"old_password": scenery.PASSWORD, "new_password1": weak, "new_password2": weak}
    page = client.post(reverse("accounts:password"), given)

    assert "This password is easy to guess." in page.text
    vera.refresh_from_db()
    assert vera.check_password(scenery.PASSWORD)


def test_a_very_long_password_is_taken(client: Client, db: None) -> None:
    dora = scenery.person("dora", Role.VIEWER, password=scenery.PASSWORD)
    client.force_login(dora)
    new = "a quiet harbour at dusk " * 20

    given = {"old_password": scenery.PASSWORD, "new_password1": new, "new_password2": new}

    assert client.post(reverse("accounts:password"), given).status_code == 302


@pytest.mark.long
@pytest.mark.parametrize(
    ("old", "new", "again", "field"),
    [
        ("wrong", LONG, LONG, "old_password"),
        (scenery.PASSWORD, "short", "short", "new_password2"),
        (scenery.PASSWORD, LONG, LONG + "!", "new_password2"),
    ],
)
def test_a_password_that_cannot_be_is_said_at_its_field(
    client: Client, db: None, old: str, new: str, again: str, field: str
) -> None:
    dora = scenery.person("dora", Role.VIEWER, password=scenery.PASSWORD)
    client.force_login(dora)

    given = {"old_password": old, "new_password1": new, "new_password2": again}
    page = client.post(reverse("accounts:password"), given)

    assert page.context["password_form"].errors[field]
    dora.refresh_from_db()
    assert dora.check_password(scenery.PASSWORD)
    assert not entries("person.password_set")


def called(client: Client, name: str):
    there = reverse("accounts:display_name")
    return client.post(there, {"display_name": name}, follow=True)


def test_a_display_name_stands_beside_the_name(client: Client, vera: User, ada: User) -> None:
    client.force_login(vera)

    page = called(client, "  Vera   de Vries ").text

    assert "<strong>Vera de Vries</strong>" in page
    assert ">VV</span>" in page
    entry = Entry.objects.get(action="person.display_name_set")
    assert (entry.actor, entry.details["after"]) == ("vera", "Vera de Vries")
    client.force_login(ada)
    people = client.get(reverse("accounts:people")).text
    assert ">vera</a>" in people
    assert "Vera de Vries" in people
    client.force_login(vera)
    assert "<strong>vera</strong>" in called(client, "").text


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("ADA", "another user"),
        ("Vera\u200bV", "cannot be seen"),
        ("\u0430da", "look like those of another alphabet"),
        ("\u0440\u0430\u0441\u043e", "look like those of another alphabet"),
        ("Ines Roth", "another user"),
        ("v" * 61, "60"),
        ("aIice", "another user"),
        ("al1ce", "another user"),
        ("\u1d00\u029f\u026a\u1d04\u1d07", "another user"),
        ("\u24d0lice", "another user"),
        ("alice.", "another user"),
        ("\u00e1lice", "another user"),
        ("\ufb01ona", "another user"),
        ("...", "letters"),
        ("Administrator", "for a role"),
        ("A D M I N", "for a role"),
        ("system", "for a role"),
        ("countersign", "for a role"),
        ("Vera (Administrator)", "for a role"),
        ("Vera\u7ba1\u7406\u5458", "for a role"),
        ("Vera (bob)", "brackets"),
        ("Vera \uff08bob\uff09", "brackets"),
    ],
)
def test_nobody_is_shown_as_somebody_else(
    client: Client, vera: User, ada: User, ines: User, alice: User, name: str, why: str
) -> None:
    scenery.person("fiona")
    User.objects.filter(pk=ines.pk).update(first_name="Ines Roth")
    client.force_login(vera)

    page = called(client, name)

    assert why in page.context["name_form"].errors["display_name"][0]
    vera.refresh_from_db()
    assert vera.first_name == ""
    assert not Entry.objects.filter(action="person.display_name_set").exists()


@pytest.mark.parametrize("how", ["invite", "rename"])
def test_a_display_name_reserves_no_username(
    as_ada: Client, ada: User, ines: User, vera: User, how: str
) -> None:
    User.objects.filter(pk=ines.pk).update(first_name="Roth")

    if how == "invite":
        given = {"username": "roth", "groups": [Group.objects.get(name=Role.VIEWER).pk]}
        as_ada.post(reverse("accounts:invite"), given)
    else:
        as_ada.post(reverse("accounts:rename", args=[vera.pk]), {"name": "roth"})

    assert User.objects.filter(username="roth").exists()
    ines.refresh_from_db()
    assert ines.first_name == ""
    entry = Entry.objects.get(action="person.display_name_set")
    assert (entry.actor, entry.details["person"]) == ("ada", "ines")


def test_people_are_named_as_they_are_shown(as_ada: Client, vera: User) -> None:
    User.objects.filter(pk=vera.pk).update(first_name="Devries")

    as_ada.post(reverse("accounts:rename", args=[vera.pk]), {"name": "devries"})

    vera.refresh_from_db()
    assert (vera.username, vera.first_name) == ("devries", "Devries")


def test_owners_are_shown_with_their_usernames(as_ada: Client, olga: User, send_mail: Tool) -> None:
    User.objects.filter(pk=olga.pk).update(first_name="Anna Maier")

    for address in ("/servers/mailer/", "/tools/mailer.send_mail/"):
        assert "Anna Maier (olga)" in as_ada.get(address).text
