"""A second factor that a role requires: set up before anything else, and not got round."""

from typing import Any

import pyotp
import pytest
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from accounts import one_time_codes, passkeys, required_factors, services
from accounts.models import CodeApp, FactorRequirement, User
from accounts.roles import Role
from audit.models import Entry
from core.consumers import _of_session
from tests.accounts.authenticator import Device
from tests.accounts.factors import (
    HERE,
    Clock,
    anna,
    clock,
    device,
    first_step,
    is_in,
    totp,
)
from tests.console import scenery

__all__ = ["anna", "clock", "device", "totp"]

SET_UP = "/sign-in/set-up/"
SAVE = "/people/second-factor/"
OF_CLIENTS = tuple(
    f"oauth/{one}"
    for one in ("keys", "token", "revoke", "introspect", "register", "device_authorization")
)


def group(role: str) -> Group:
    return Group.objects.get(name=role)


@pytest.fixture
def ada(anna: User) -> User:
    made = scenery.person("ada", Role.ADMINISTRATOR, password=scenery.PASSWORD)
    passkeys_of(made)
    return made


def passkeys_of(person: User) -> Device:
    made = Device(HERE)
    options, challenge = passkeys.options(person)
    passkeys.add(person, "Laptop", challenge=challenge, answer=made.create(options))
    return made


@pytest.fixture
def required(ada: User) -> None:
    required_factors.set_groups([group(Role.APPROVER)], by=ada)


@pytest.fixture
def led(client: Client, required: None) -> Client:
    """anna, who has none and needs one."""
    first_step(client, next="/queue/")
    return client


def test_an_administrator_requires_it_of_a_group_with_an_entry(client: Client, ada: User) -> None:
    client.force_login(ada)
    assert "Roles and groups that need a second factor" in client.get("/people/").text

    client.post(SAVE, {"groups": [group(Role.APPROVER).pk, group(Role.AUDITOR).pk]})
    client.post(SAVE, {"groups": [group(Role.APPROVER).pk]})
    # What changes nothing is no entry.
    client.post(SAVE, {"groups": [group(Role.APPROVER).pk]})

    entries = Entry.objects.filter(action="roles.factor_set").order_by("pk")
    assert [(one.details["before"], one.details["after"]) for one in entries] == [
        ([], ["Approver", "Auditor"]),
        (["Approver", "Auditor"], ["Approver"]),
    ]
    assert {one.actor for one in entries} == {"ada"}


@pytest.mark.parametrize("role", [Role.APPROVER, Role.OPERATOR, Role.AUDITOR, Role.VIEWER])
def test_nobody_else_does(client: Client, ada: User, role: Role) -> None:
    client.force_login(scenery.person("mallory", role))

    assert client.post(SAVE, {"groups": []}).status_code == 403
    assert "Save the requirement" not in client.get("/people/").text


def test_an_invented_group_changes_nothing(client: Client, ada: User, required: None) -> None:
    client.force_login(ada)

    client.post(SAVE, {"groups": ["999999"]})

    assert [one.name for one in required_factors.groups()] == ["Approver"]


@pytest.mark.long
def test_who_has_none_is_led_to_it_and_then_to_the_page_asked_for(
    led: Client, anna: User, clock: Clock
) -> None:
    assert is_in(led)
    assert led.get("/queue/")["Location"] == f"{SET_UP}?next=%2Fqueue%2F"
    page = led.get(f"{SET_UP}?next=/queue/").text
    assert "Your role or group requires one" in page
    assert "Approver" in page
    # Wrong answers, and what is begun and left, lead nowhere else.
    wrong = led.post("/profile/codes/", {"password": "no"})
    assert wrong["Location"] == SET_UP
    assert led.post("/profile/codes/", {"password": scenery.PASSWORD})["Location"] == SET_UP
    assert led.post("/profile/codes/confirm/", {"code": "000000"})["Location"] == SET_UP
    assert led.get("/queue/").status_code == 302

    app = pyotp.TOTP(one_time_codes.secret(CodeApp.objects.get(person=anna)))
    page = led.post("/profile/codes/confirm/", {"code": app.at(clock.now)}).text

    assert 'href="/queue/">I have kept them' in page
    assert led.get("/queue/").status_code == 200
    assert led.get(SET_UP)["Location"] == "/profile/"


def test_a_passkey_does_as_well(led: Client) -> None:
    begun = led.post("/profile/passkeys/begin/", {"password": scenery.PASSWORD}).json()
    answer = {"name": "Laptop", "answer": Device(HERE).create(begun["publicKey"])}

    led.post("/profile/passkeys/add/", answer)

    assert led.get("/queue/").status_code == 200


@pytest.mark.long
@pytest.mark.parametrize("there", ["//evil.example/", "https://evil.example/", "/\\evil.example"])
def test_it_leads_to_no_other_site(led: Client, anna: User, clock: Clock, there: str) -> None:
    led.get(SET_UP, {"next": there})
    led.post("/profile/codes/", {"password": scenery.PASSWORD})
    app = pyotp.TOTP(one_time_codes.secret(CodeApp.objects.get(person=anna)))

    page = led.post("/profile/codes/confirm/", {"code": app.at(clock.now)}).text

    assert 'href="/profile/#proving">I have kept them' in page
    assert led.get(SET_UP, {"next": there})["Location"] == "/profile/"


# What one needs to set it up, and what strangers reach too.
BEFORE = {
    "sign-in/",
    "sign-in/set-up/",
    "sign-in/second-step/",
    "sign-in/second-step/passkey/",
    "sign-in/passkey/",
    "sign-in/passkey/options/",
    "sign-in/<str:text>/",
    # Of whoever is not signed in, or signs out: they show and change nothing of a session's person.
    "sign-in/with/<slug:slug>/",
    "sign-in/with/<slug:slug>/callback/",
    "sign-in/with/<slug:slug>/logout/",
    "sign-out/",
    "signed-out/",
    "signed-out/at-provider/",
    "password-reset/",
    "password-reset/<str:text>/",
    "service-worker.js",
    "offline/",
    # There is nothing, for anyone.
    "api",
    # Read by authorization servers.
    "connections/client/<int:server>.json",
    "theme/",
    "density/",
    "language/",
    "profile/password/",
    "profile/passkeys/begin/",
    "profile/passkeys/add/",
    "profile/passkeys/<int:pk>/",
    "profile/codes/",
    "profile/codes/picture.svg",
    "profile/codes/confirm/",
    "profile/codes/remove/",
    "profile/recovery-codes/",
}
PLACES = {
    "int": "1",
    "str": "x",
    "slug": "x",
    "tool": "x.y",
    "uuid": "0" * 8 + "-0000" * 3 + "-" + "0" * 12,
}


def routes(patterns: Any, before: str = "") -> Any:
    for one in patterns:
        route = before + str(one.pattern)
        if isinstance(one, URLResolver):
            yield from routes(one.url_patterns, route)
        elif isinstance(one, URLPattern):
            yield route


def filled(route: str) -> str:
    for kind, example in PLACES.items():
        while f"<{kind}:" in route:
            start, _mark, rest = route.partition(f"<{kind}:")
            route = start + example + rest.partition(">")[2]
    return f"/{route}"


@pytest.mark.long
def test_no_other_page_answers_before_it(led: Client, anna: User) -> None:
    anna.groups.set(Group.objects.all())
    User.objects.filter(pk=anna.pk).update(is_staff=True, is_superuser=True)
    # Programs come there by tokens or signatures: no session opens anything.
    by_token = ("api/", "scim/", "slack/", ".well-known/", *OF_CLIENTS)
    found = [one for one in routes(get_resolver().url_patterns) if not one.startswith(by_token)]
    assert len(found) > 100
    reached = []
    for route in found:
        if route in BEFORE or route.startswith(("admin/", "^static")):
            continue
        for answer in (led.get(filled(route)), led.post(filled(route))):
            is_led = answer.status_code == 302 and answer["Location"].startswith(SET_UP)
            if not is_led and answer.status_code != 405:
                reached.append((route, answer.status_code))

    assert reached == []
    # The admin's door leads nobody in.
    for address in ("/admin/", "/admin/accounts/user/", "/admin/jsi18n/"):
        assert led.get(address, follow=True).status_code == 403


def test_a_page_that_fetches_is_led_as_a_whole(led: Client) -> None:
    here = {"HX-Request": "true", "HX-Current-URL": "http://testserver/calls/"}

    answer = led.get("/queue/count/", headers=here)

    assert answer["HX-Redirect"] == f"{SET_UP}?next=%2Fcalls%2F"


def test_an_open_page_hears_nothing_any_more(client: Client, anna: User, ada: User) -> None:
    client.force_login(anna)
    key = client.session.session_key
    assert _of_session(key, set())

    required_factors.set_groups([group(Role.APPROVER)], by=ada)

    assert _of_session(key, set()) is None


@pytest.mark.long
def test_it_holds_for_who_was_signed_in_and_for_new_members(
    client: Client, anna: User, ada: User
) -> None:
    client.force_login(anna)
    vera = Client()
    vera.force_login(person := scenery.person("vera", Role.VIEWER))
    assert client.get("/queue/").status_code == 200

    required_factors.set_groups([group(Role.APPROVER)], by=ada)
    assert client.get("/queue/").status_code == 302
    assert vera.get("/calls/").status_code == 200
    person.groups.add(group(Role.APPROVER))
    assert vera.get("/calls/")["Location"].startswith(SET_UP)

    required_factors.set_groups([], by=ada)
    assert client.get("/queue/").status_code == 200


def test_removing_the_last_one_leads_back(
    client: Client, anna: User, device: Device, required: None
) -> None:
    client.force_login(anna)
    assert client.get("/queue/").status_code == 200
    own = anna.passkeys.get()

    client.post(f"/profile/passkeys/{own.pk}/", {"remove": "1", "password": scenery.PASSWORD})

    assert client.get("/queue/")["Location"].startswith(SET_UP)


def test_recovery_codes_are_no_factor(led: Client) -> None:
    led.post("/profile/recovery-codes/", {"password": scenery.PASSWORD})

    assert led.get("/queue/").status_code == 302


def test_who_came_by_a_link_sets_a_password_first(
    client: Client, ada: User, required: None
) -> None:
    person = services.create_person("eve", roles=[], by=ada)
    person.groups.add(group(Role.APPROVER))
    link = services.sign_in_link(person, by=ada).partition("8000")[2]
    client.post(link)
    assert "Set the password" in client.get(SET_UP).text
    new = "a quiet harbour at dusk"

    answer = client.post("/profile/password/", {"new_password1": new, "new_password2": new})

    assert answer["Location"] == SET_UP
    assert "Set up an app" in client.get(SET_UP).text


def test_a_group_that_goes_takes_its_requirement(anna: User, ada: User) -> None:
    made = Group.objects.create(name="Night shift")
    required_factors.set_groups([made], by=ada)

    made.delete()

    assert not FactorRequirement.objects.exists()
