"""Signing in with a passkey alone: by whoever it was made for, once, and to pages of ours."""

from typing import Any

import pytest
from django.conf import settings as current
from django.test import Client

from accounts import passkeys, required_factors, services
from accounts.models import Passkey, Proof, User
from accounts.roles import Role
from accounts.stepup import problem
from audit.models import Entry
from tests.accounts.authenticator import Device
from tests.accounts.factors import HERE, anna, device, first_step, is_in
from tests.console import scenery

__all__ = ["anna", "device"]

AT = "/sign-in/passkey/"
REFUSED = "This passkey signs nobody in here."
ASKS_AT_ONCE = "data-asks-at-once"


def options(client: Client) -> dict[str, Any]:
    offered: dict[str, Any] = client.post(AT + "options/").json()["publicKey"]
    return offered


def sign_in(client: Client, device: Device, **fields: str) -> Any:
    return client.post(AT, {"answer": device.get(options(client)), **fields})


def test_it_signs_in_and_leads_back(client: Client, anna: User, device: Device) -> None:
    assert "Sign in with a passkey" in client.get("/sign-in/?next=/calls/").text
    offered = options(client)
    # Nobody is named to whoever asks.
    assert not offered.get("allowCredentials")
    assert offered["userVerification"] == "required"
    key = client.session.session_key

    response = client.post(AT, {"answer": device.get(offered), "next": "/calls/"})

    assert response["Location"] == "/calls/"
    assert is_in(client)
    assert client.session.session_key != key
    entry = Entry.objects.get(action="person.signed_in")
    assert (entry.actor, entry.reason) == ("anna", "By passkey.")
    assert entry.details["second_factor"] == "passkey"
    proof = Proof.objects.get()
    assert proof.person == anna
    assert problem(proof) == ""


@pytest.mark.long
def test_only_on_the_way_to_a_page_is_a_passkey_asked_for_at_once(client: Client) -> None:
    """Not after a sign-out, nor where the last try failed: it would be asked for again."""
    on_the_way, home, ended = (
        client.get(f"/sign-in/{query}").text for query in ("?next=/queue/", "", "?next=/&ended=1")
    )
    failed = client.post(AT, {"answer": "none", "next": "/queue/"}).text
    wrong = client.post("/sign-in/?next=/queue/", {"username": "anna", "password": "wrong"}).text

    assert ASKS_AT_ONCE in on_the_way
    for page in (home, ended, failed, wrong):
        assert "Sign in with a passkey" in page
        assert ASKS_AT_ONCE not in page


@pytest.mark.long
@pytest.mark.parametrize(
    "there",
    ["//evil.example/", "https://evil.example/", "/\\evil.example", "javascript:alert(1)", ""],
)
def test_it_leads_to_no_other_site(client: Client, device: Device, there: str) -> None:
    assert sign_in(client, device, next=there)["Location"] == "/"
    assert is_in(client)


def test_an_answer_is_good_once_and_where_it_was_asked_for(
    client: Client, anna: User, device: Device
) -> None:
    answer = device.get(options(client))
    thief = Client()
    options(thief)
    assert thief.post(AT, {"answer": answer}).status_code == 403
    # What was asked for there is used up by the wrong answer.
    assert thief.post(AT, {"answer": answer}).status_code == 403
    assert client.post(AT, {"answer": answer})["Location"] == "/"

    client.post("/sign-out/")
    again = client.post(AT, {"answer": answer})

    assert again.status_code == 403
    assert REFUSED in again.text
    assert not is_in(client)
    assert not is_in(thief)
    assert Proof.objects.count() == 1


def test_without_a_challenge_of_ours_nothing_is_looked_at(client: Client, device: Device) -> None:
    own = {"challenge": "AAAA", "rpId": "localhost"}

    assert client.post(AT, {"answer": device.get(own)}).status_code == 403
    assert client.get(AT).status_code == 405
    assert client.get(AT + "options/").status_code == 405


def test_a_late_answer_is_refused(
    client: Client, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered = options(client)
    monkeypatch.setattr("accounts.passkey_sign_in.VALID_S", -1)

    assert client.post(AT, {"answer": device.get(offered)}).status_code == 403


@pytest.mark.parametrize(
    "case",
    [
        "strange",
        "removed",
        "disabled",
        "other user",
        "no user",
        "other site",
        "copied",
        "unverified",
        "nonsense",
    ],
)
def test_all_else_is_refused_in_the_same_words(
    client: Client, anna: User, device: Device, case: str
) -> None:
    by = device
    if case == "strange":
        by = Device(HERE)
        by.user = device.user
    elif case == "removed":
        passkeys.remove(Passkey.objects.get())
    elif case == "disabled":
        services.set_active(anna, False, by=scenery.person("ada", Role.ADMINISTRATOR))
    elif case == "other user":
        other = scenery.person("mallory", password=scenery.PASSWORD)
        theirs = Device(HERE)
        theirs.create(passkeys.options(other)[0])
        by.user = theirs.user
    elif case == "no user":
        by.user = b""
    elif case == "other site":
        by.origin = "https://evil.example"
    elif case == "copied":
        Passkey.objects.update(sign_count=50)
    elif case == "unverified":
        by.verifies = False
    answer = "{}" if case == "nonsense" else by.get(options(client))

    refused = client.post(AT, {"answer": answer})

    assert refused.status_code == 403
    assert REFUSED in refused.text
    assert not is_in(client)
    assert not Proof.objects.exists()
    entry = Entry.objects.get(action="passkey.failed")
    # An invented passkey names nobody.
    assert (entry.actor, entry.details["person"]) == ("countersign", "")


def test_after_disabling_and_enabling_it_is_a_new_sign_in(
    client: Client, anna: User, device: Device
) -> None:
    ada = scenery.person("ada", Role.ADMINISTRATOR)
    sign_in(client, device)
    for active in (False, True):
        services.set_active(anna, active, by=ada)

    assert client.get("/profile/").status_code == 302
    sign_in(client, device)
    assert client.get("/profile/").status_code == 200


def test_one_address_is_let_try_so_often(
    client: Client, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accounts.attempts.OF_ADDRESS", 3)
    for _guess in range(3):
        assert client.post(AT, {"answer": "{}"}).status_code == 403

    limited = sign_in(client, device)

    assert limited.status_code == 429
    assert "Wait 15 minutes" in limited.text
    # From elsewhere it works: nobody keeps others out.
    elsewhere = Client(REMOTE_ADDR="192.0.2.7")
    sign_in(elsewhere, device)
    assert is_in(elsewhere)


def test_a_planted_session_is_worth_nothing(client: Client, device: Device) -> None:
    attacker = Client()
    offered = options(attacker)
    client.cookies[current.SESSION_COOKIE_NAME] = attacker.cookies["sessionid"].value

    client.post(AT, {"answer": device.get(offered)})

    assert is_in(client)
    assert attacker.get("/profile/").status_code == 302


def test_it_takes_a_token_of_the_form(anna: User, device: Device) -> None:
    """Nobody is signed in as somebody else by another site."""
    strict = Client(enforce_csrf_checks=True)

    assert strict.post(AT + "options/").status_code == 403
    assert strict.post(AT, {"answer": "{}"}).status_code == 403


def test_it_is_the_second_factor_that_a_role_requires(
    client: Client, anna: User, device: Device
) -> None:
    group = anna.groups.get(name=Role.APPROVER)
    required_factors.set_groups([group], by=anna)

    sign_in(client, device)

    assert client.get("/queue/").status_code == 200


def test_the_password_alone_is_no_way_down(client: Client, device: Device) -> None:
    assert first_step(client)["Location"] == "/sign-in/second-step/"
    assert not is_in(client)
