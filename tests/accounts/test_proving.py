"""Passkeys and codes: added with the password, recorded, good for one statement once."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pyotp
import pytest
from django.db import InternalError, ProgrammingError, connection, transaction
from django.test import Client
from django.urls import reverse

from accounts import one_time_codes, stepup
from accounts.attempts import OF_PERSON
from accounts.models import CodeApp, Passkey, Proof, User
from accounts.roles import Role
from accounts.stepup import NotProven, Ticket
from audit.models import Entry
from tests.accounts.authenticator import Device
from tests.console import scenery

PASSWORD = scenery.PASSWORD
HERE = "http://localhost:8000"


class Clock:
    """The time that codes and tickets are made by."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = 1_790_000_000.0
        patch.setattr("accounts.one_time_codes.time.time", lambda: self.now)


@pytest.fixture
def anna(db: None, settings) -> User:
    # Passwords that cost nothing to check.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    return scenery.person("anna", Role.APPROVER, password=PASSWORD)


@pytest.fixture
def as_anna(client: Client, anna: User) -> Client:
    client.force_login(anna)
    return client


@pytest.fixture
def clock() -> Iterator[Clock]:
    with pytest.MonkeyPatch.context() as patch:
        yield Clock(patch)


def began(client: Client, password: str = PASSWORD):
    return client.post(reverse("accounts:begin_passkey"), {"password": password})


def added(client: Client, device: Device, name: str = "Laptop"):
    options = began(client).json()["publicKey"]
    given = {"name": name, "answer": device.create(options)}
    return client.post(reverse("accounts:add_passkey"), given, follow=True)


def entries(action: str) -> list[Entry]:
    return list(Entry.objects.filter(action=action))


def test_a_password_manager_takes_the_name_of_a_passkey_for_nobodys_user_name(
    as_anna: Client, anna: User
) -> None:
    added(as_anna, Device(HERE))

    page = as_anna.get(reverse("accounts:profile")).text

    forms = re.findall(r"<form.*?</form>", page, re.DOTALL)
    asking = [one for one in forms if "current-password" in one]
    # A new password, a passkey to add and one to remove, an app, and new recovery codes.
    assert len(asking) == 5
    for form in asking:
        before = form.partition('type="password"')[0]
        assert '<input type="text" autocomplete="username" value="anna"' in before
    named = re.findall(r'<input id="[\w-]*passkey-name[^>]*>', page)
    assert len(named) == 2
    assert all('autocomplete="off"' in one for one in named)


@pytest.mark.long
def test_a_passkey_is_added_named_and_removed_each_with_its_entry(
    as_anna: Client, anna: User
) -> None:
    assert "The passkey is added" in added(as_anna, Device(HERE)).text
    key = anna.passkeys.get()
    at = reverse("accounts:passkey", args=[key.pk])

    as_anna.post(at, {"name": "Old laptop"})
    assert "Old laptop" in as_anna.get(reverse("accounts:profile")).text
    page = as_anna.post(at, {"remove": "1", "password": PASSWORD}, follow=True)

    assert "“Old laptop” is removed." in page.text
    assert not anna.passkeys.usable().exists()
    said = [entries(f"passkey.{what}")[0] for what in ("added", "named", "removed")]
    assert [entry.details["passkey"] for entry in said] == ["Laptop", "Old laptop", "Old laptop"]
    assert len(said[0].details["public_key"]) == 64


def test_adding_and_removing_want_the_password_again(as_anna: Client, anna: User) -> None:
    assert "not your password" in began(as_anna, "guess").json()["error"]
    added(as_anna, Device(HERE))
    at = reverse("accounts:passkey", args=[anna.passkeys.get().pk])

    page = as_anna.post(at, {"remove": "1", "password": "guess"}, follow=True)

    assert "not your password" in page.text
    assert anna.passkeys.usable().exists()
    assert len(entries("password.failed")) == 2


def test_guessing_the_password_there_ends(as_anna: Client) -> None:
    for _guess in range(OF_PERSON):
        began(as_anna, "guess")

    assert "Too many wrong tries" in began(as_anna).json()["error"]
    assert len(entries("password.limited")) == 1


def test_whoever_has_no_password_sets_one_first(client: Client, alice: User) -> None:
    client.force_login(alice)

    assert "Set a password first" in client.get(reverse("accounts:profile")).text
    assert "Set a password first" in began(client).json()["error"]


@pytest.mark.parametrize(
    "device", [Device("https://evil.example"), Device(HERE, verifies=False)], ids=["site", "touch"]
)
def test_a_device_of_another_site_or_without_its_person_is_refused(
    as_anna: Client, device: Device
) -> None:
    assert "does not fit" in added(as_anna, device).text
    assert not Passkey.objects.exists()


def test_an_answer_is_good_for_one_passkey(as_anna: Client) -> None:
    options = began(as_anna).json()["publicKey"]
    given = {"name": "Laptop", "answer": Device(HERE).create(options)}
    as_anna.post(reverse("accounts:add_passkey"), given)

    again = as_anna.post(reverse("accounts:add_passkey"), given, follow=True)

    assert "never begun" in again.text
    assert Passkey.objects.count() == 1


@pytest.mark.long
@pytest.mark.parametrize("answer", ["", "{}", "[]", "null", '{"id": 1}', "x" * 70_000])
def test_what_is_no_answer_is_refused(as_anna: Client, answer: str) -> None:
    began(as_anna)

    page = as_anna.post(
        reverse("accounts:add_passkey"), {"name": "L", "answer": answer}, follow=True
    )

    assert page.status_code == 200
    assert not Passkey.objects.exists()


def test_others_passkeys_are_nobodys_business(as_anna: Client, alice: User) -> None:
    added(as_anna, Device(HERE))
    at = reverse("accounts:passkey", args=[Passkey.objects.get().pk])
    as_anna.force_login(alice)

    assert as_anna.post(at, {"name": "mine"}).status_code == 404
    assert as_anna.get(at).status_code == 405
    as_anna.logout()
    assert as_anna.post(at, {"name": "mine"}).status_code == 302
    assert Passkey.objects.get().name == "Laptop"


@pytest.fixture
def device(as_anna: Client) -> Device:
    made = Device(HERE)
    added(as_anna, made)
    return made


def statement(ticket: Ticket, text: str = "yes") -> str:
    return f"countersign test 1\n{text}\n{ticket.lines}"


def offered(anna: User, text: str = "yes") -> tuple[str, dict[str, Any]]:
    ticket = Ticket.new()
    made = statement(ticket, text)
    return made, stepup.offer(anna, ticket, made)


def test_a_passkey_signs_a_statement_and_the_row_proves_it_later(
    anna: User, device: Device
) -> None:
    text, offer = offered(anna)

    proof = stepup.prove(anna, text, ticket=offer["ticket"], answer=device.get(offer["publicKey"]))

    proof = Proof.objects.get(pk=proof.pk)
    assert (proof.person, proof.method, proof.origin) == (anna, "passkey", HERE)
    assert proof.sign_count == anna.passkeys.get().sign_count == 1
    assert stepup.problem(proof) == ""


@pytest.mark.parametrize("counts", [True, False], ids=["counts", "counts nothing"])
def test_a_proof_is_good_once(as_anna: Client, anna: User, counts: bool) -> None:
    device = Device(HERE, counts=counts)
    added(as_anna, device)
    text, offer = offered(anna)
    answer = device.get(offer["publicKey"])
    stepup.prove(anna, text, ticket=offer["ticket"], answer=answer)

    with pytest.raises(NotProven):
        stepup.prove(anna, text, ticket=offer["ticket"], answer=answer)

    assert Proof.objects.count() == 1


def test_a_proof_is_of_its_statement_alone(anna: User, device: Device) -> None:
    yes, offer = offered(anna, "yes")
    no, other = offered(anna, "no")
    answer = device.get(offer["publicKey"])

    with pytest.raises(NotProven, match="not this decision"):
        stepup.prove(anna, no, ticket=offer["ticket"], answer=answer)
    with pytest.raises(NotProven, match="does not fit"):
        stepup.prove(anna, no, ticket=other["ticket"], answer=answer)

    assert not Proof.objects.exists()
    assert stepup.prove(anna, yes, ticket=offer["ticket"], answer=answer)


def test_a_proof_is_of_its_person_and_their_passkey(
    anna: User, alice: User, device: Device
) -> None:
    text, offer = offered(anna)

    def refused(why: str, by: Device, person: User = anna) -> None:
        answer = by.get(offer["publicKey"])
        with pytest.raises(NotProven, match=why):
            stepup.prove(person, text, ticket=offer["ticket"], answer=answer)

    refused("not one of yours", Device(HERE))
    refused("not this decision", device, alice)
    device.origin = "http://localhost:9999"
    refused("another site", device)
    device.origin, device.verifies = HERE, False
    refused("does not fit", device)


def test_a_removed_passkey_signs_nothing_and_what_it_signed_stays(
    anna: User, device: Device
) -> None:
    text, offer = offered(anna)
    proof = stepup.prove(anna, text, ticket=offer["ticket"], answer=device.get(offer["publicKey"]))
    Passkey.objects.update(removed_at=proof.at)
    later, offer = offered(anna)

    with pytest.raises(NotProven, match="not one of yours"):
        stepup.prove(anna, later, ticket=offer["ticket"], answer=device.get(offer["publicKey"]))
    assert stepup.problem(Proof.objects.get()) == ""


def test_a_confirmation_has_five_minutes(
    anna: User, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, offer = offered(anna)
    answer = device.get(offer["publicKey"])
    late = Ticket.new().issued + stepup.VALID_S + 2
    monkeypatch.setattr("accounts.stepup.time.time", lambda: late)

    with pytest.raises(NotProven, match="too late"):
        stepup.prove(anna, text, ticket=offer["ticket"], answer=answer)


@pytest.mark.parametrize("ticket", ["", "1.2", "x.y.z", f"1.{'a' * 32}.x", f"{'9' * 40}.a.b"])
def test_a_ticket_that_is_not_ours_is_refused(anna: User, device: Device, ticket: str) -> None:
    text, offer = offered(anna)

    with pytest.raises(NotProven):
        stepup.prove(anna, text, ticket=ticket, answer=device.get(offer["publicKey"]))


@pytest.mark.parametrize("column", ["statement", "assertion", "statement_digest", "sign_count"])
def test_a_kept_proof_that_was_touched_is_found(anna: User, device: Device, column: str) -> None:
    text, offer = offered(anna)
    proof = stepup.prove(anna, text, ticket=offer["ticket"], answer=device.get(offer["publicKey"]))
    other = {"sign_count": 7}.get(column) or getattr(proof, column).replace("a", "b")
    setattr(proof, column, other)

    assert stepup.problem(proof)


@pytest.mark.parametrize(
    "sql", ["UPDATE accounts_proof SET person_id = 1", "DELETE FROM accounts_proof"]
)
def test_proofs_are_never_changed(anna: User, device: Device, sql: str) -> None:
    text, offer = offered(anna)
    stepup.prove(anna, text, ticket=offer["ticket"], answer=device.get(offer["publicKey"]))

    with (
        pytest.raises((InternalError, ProgrammingError)),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(sql)


def app(client: Client, clock: Clock) -> pyotp.TOTP:
    """A code app, set up as its page asks for it."""
    client.post(reverse("accounts:code_app"), {"password": PASSWORD})
    page = client.get(reverse("accounts:profile")).text
    found = re.search(r"<code>([A-Z2-7]{32})</code>", page)
    assert found
    totp = pyotp.TOTP(found.group(1))
    client.post(reverse("accounts:confirm_code_app"), {"code": totp.at(clock.now)})
    return totp


@pytest.mark.long
def test_a_code_app_is_set_up_and_removed_each_with_its_entry(
    as_anna: Client, anna: User, clock: Clock
) -> None:
    app(as_anna, clock)

    row = CodeApp.objects.get()
    assert row.confirmed_at
    assert one_time_codes.secret(row).encode() not in bytes(row.sealed_secret)
    assert as_anna.get(reverse("accounts:code_picture")).status_code == 404
    assert "secret as text" not in as_anna.get(reverse("accounts:profile")).text
    at = reverse("accounts:remove_code_app")
    as_anna.post(at, {"password": "guess"})
    assert CodeApp.objects.exists()
    as_anna.post(at, {"password": PASSWORD})
    assert not CodeApp.objects.exists()
    assert len(entries("code_app.added")) == len(entries("code_app.removed")) == 1


def test_the_picture_is_there_until_the_app_is_confirmed(as_anna: Client) -> None:
    as_anna.post(reverse("accounts:code_app"), {"password": PASSWORD})

    picture = as_anna.get(reverse("accounts:code_picture"))

    assert picture["Content-Type"] == "image/svg+xml"
    assert picture.content.startswith(b"<?xml")
    wrong = as_anna.post(reverse("accounts:confirm_code_app"), {"code": "12"}, follow=True)
    assert "not the code that the app shows" in wrong.text


@pytest.mark.long
def test_a_code_works_once_and_near_its_time(as_anna: Client, anna: User, clock: Clock) -> None:
    totp = app(as_anna, clock)
    clock.now += 300

    assert one_time_codes.spend(anna, f" {totp.at(clock.now)[:3]} {totp.at(clock.now)[3:]} ")
    assert not one_time_codes.spend(anna, totp.at(clock.now))
    assert not one_time_codes.spend(anna, totp.at(clock.now - 30))
    assert one_time_codes.spend(anna, totp.at(clock.now + 30))
    assert not one_time_codes.spend(anna, totp.at(clock.now + 90))


@pytest.mark.long
def test_codes_are_not_guessed(as_anna: Client, anna: User, clock: Clock) -> None:
    totp = app(as_anna, clock)
    clock.now += 300
    for guess in range(OF_PERSON):
        with pytest.raises(NotProven, match="wrong, or was used"):
            stepup.prove_by_code(anna, "x", code=f"{guess:07}")

    with pytest.raises(Exception, match="Too many wrong tries"):
        stepup.prove_by_code(anna, "x", code=totp.at(clock.now))
    assert not Proof.objects.exists()


def test_a_code_proves_less_and_says_so(as_anna: Client, anna: User, clock: Clock) -> None:
    totp = app(as_anna, clock)
    clock.now += 300

    proof = stepup.prove_by_code(anna, statement(Ticket.new()), code=totp.at(clock.now))

    assert (proof.method, proof.passkey, proof.assertion) == ("totp", None, "")
    assert stepup.problem(proof) == ""


def test_a_secret_opens_for_its_person_alone(as_anna: Client, alice: User, clock: Clock) -> None:
    app(as_anna, clock)
    CodeApp.objects.update(person=alice)

    with pytest.raises(Exception, match="does not open"):
        one_time_codes.secret(CodeApp.objects.get())


@pytest.mark.parametrize(
    ("public", "site", "origin"),
    [
        ("http://127.0.0.1:8000", "localhost", "http://localhost:8000"),
        ("http://[::1]:8000", "localhost", "http://localhost:8000"),
        ("http://localhost", "localhost", "http://localhost"),
        ("https://sign.example.org", "sign.example.org", "https://sign.example.org"),
    ],
)
def test_the_site_is_the_public_address(
    as_anna: Client, settings, public: str, site: str, origin: str
) -> None:
    settings.PUBLIC_URL = public

    options = json.loads(began(as_anna).content)["publicKey"]

    assert options["rp"]["id"] == site
    assert f'data-origin="{origin}"' in as_anna.get(reverse("accounts:profile")).text
