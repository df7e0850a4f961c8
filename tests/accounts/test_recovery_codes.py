"""Recovery codes: shown once, good for one sign-in each, and void once new ones are made."""

import re
from typing import Any

import pyotp
import pytest
from django.test import Client

from accounts import one_time_codes, passkeys, recovery_codes, services
from accounts.attempts import OF_PERSON
from accounts.models import Proof, RecoveryCode, User
from audit.models import Entry
from core import seal
from tests.accounts.authenticator import Device
from tests.accounts.factors import (
    HERE,
    SECOND,
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

MAKE = "/profile/recovery-codes/"


@pytest.fixture
def codes(anna: User, totp: pyotp.TOTP) -> list[str]:
    return recovery_codes.make(anna)


def shown(page: str) -> list[str]:
    found = re.search(r'<pre class="codes"[^>]*>(.*?)</pre>', page, re.DOTALL)
    return found[1].split() if found else []


def recover(client: Client, code: str) -> Any:
    return client.post(SECOND, {"recovery_code": code})


def test_they_come_with_the_first_factor_and_are_shown_once(
    client: Client, anna: User, clock: Clock
) -> None:
    client.force_login(anna)
    app = pyotp.TOTP(one_time_codes.secret(one_time_codes.begin(anna)))

    page = client.post("/profile/codes/confirm/", {"code": app.at(clock.now)}).text

    made = shown(page)
    assert len(made) == len(set(made)) == 10
    assert all(re.fullmatch(r"[a-z2-9]{5}-[a-z2-9]{5}", code) for code in made)
    profile = client.get("/profile/").text
    assert "10 of 10 left" in profile
    assert not any(code in profile for code in made)
    entry = Entry.objects.get(action="recovery_codes.made")
    assert (entry.actor, entry.details["codes"], entry.details["voided"]) == ("anna", 10, 0)
    # Neither the rows nor the record have one of them.
    kept = str(list(RecoveryCode.objects.values())) + str(list(Entry.objects.values()))
    assert not any(code in kept or code.replace("-", "") in kept for code in made)


def test_the_second_factor_brings_no_new_ones(client: Client, anna: User, codes: list[str]) -> None:
    client.force_login(anna)
    device = Device(HERE)
    begun = client.post("/profile/passkeys/begin/", {"password": scenery.PASSWORD}).json()

    answer = {"name": "Laptop", "answer": device.create(begun["publicKey"])}

    assert client.post("/profile/passkeys/add/", answer)["Location"] == "/profile/#proving"
    assert recovery_codes.count_left(anna) == 10


@pytest.mark.long
def test_one_signs_in_once(client: Client, anna: User, codes: list[str]) -> None:
    first_step(client, next="/calls/")
    assert "Use a recovery code" in client.get(SECOND).text
    key = client.session.session_key

    # However it was typed.
    response = recover(client, f" {codes[3].upper().replace('-', ' ')} ")

    assert response["Location"] == "/calls/"
    assert is_in(client)
    assert client.session.session_key != key
    assert "You used a recovery code: 9 are left." in client.get("/profile/").text
    assert Entry.objects.get(action="person.signed_in").details["second_factor"] == "recovery_code"
    entry = Entry.objects.get(action="recovery_code.used")
    assert (entry.actor, entry.details["left"]) == ("anna", 9)
    assert entry.details["address"] == "127.0.0.1"
    # It is no proof of a decision.
    assert not Proof.objects.exists()

    other = Client()
    first_step(other)
    again = recover(other, codes[3])
    assert again.status_code == 403
    assert "was used before" in again.text
    assert not is_in(other)
    assert Entry.objects.filter(action="factor.failed").count() == 1


def test_of_two_at_once_one_is_right(
    anna: User, codes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = recovery_codes._find(anna, codes[0])
    # Both have read the row before either wrote.
    monkeypatch.setattr(recovery_codes, "_find", lambda person, code: found)

    used = [recovery_codes.use(anna, codes[0], address="") for _browser in range(2)]

    assert used == [True, False]
    assert Entry.objects.filter(action="recovery_code.used").count() == 1


@pytest.mark.long
def test_new_ones_void_the_old_and_ask_for_the_password(
    client: Client, anna: User, codes: list[str]
) -> None:
    client.force_login(anna)
    assert client.get(MAKE).status_code == 405
    assert "not your password" in client.post(MAKE, {"password": "no"}, follow=True).text
    assert recovery_codes.use(anna, codes[0], address="")

    made = shown(client.post(MAKE, {"password": scenery.PASSWORD}).text)

    assert len(made) == 10
    assert not set(made) & set(codes)
    entry = Entry.objects.filter(action="recovery_codes.made").order_by("-pk").first()
    assert entry
    assert entry.details["voided"] == 9
    stranger = Client()
    first_step(stranger)
    assert recover(stranger, codes[1]).status_code == 403
    recover(stranger, made[0])
    assert is_in(stranger)


def test_anothers_codes_open_nothing(client: Client, anna: User, codes: list[str]) -> None:
    mallory = scenery.person("mallory", password=scenery.PASSWORD)
    theirs = recovery_codes.make(mallory)
    first_step(client)

    assert recover(client, theirs[0]).status_code == 403
    assert recovery_codes.count_left(mallory) == 10


def test_they_are_nothing_without_the_password(client: Client, codes: list[str]) -> None:
    assert recover(client, codes[0])["Location"] == "/sign-in/"
    assert not is_in(client)
    assert client.post(MAKE, {"password": scenery.PASSWORD})["Location"].startswith("/sign-in/")


@pytest.mark.long
def test_guesses_end_for_whoever_knows_the_password(client: Client, codes: list[str]) -> None:
    first_step(client)
    for guess in range(OF_PERSON):
        assert recover(client, f"aaaaa-{guess:05}").status_code == 403
    # Not by beginning again, from elsewhere, and not by a right one.
    other = Client(REMOTE_ADDR="203.0.113.9")
    first_step(other)
    assert recover(other, codes[0]).status_code == 429
    assert not is_in(other)
    assert Entry.objects.filter(action="factor.limited").exists()


def test_guesses_of_one_address_at_many_accounts_end(
    client: Client, codes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("accounts.attempts.OF_ADDRESS", 3)
    person = scenery.person("ben", password=scenery.PASSWORD)
    app = pyotp.TOTP(one_time_codes.secret(one_time_codes.begin(person)))
    one_time_codes.confirm(person, app.now())
    for name in ("anna", "ben", "anna"):
        first_step(client, username=name)
        assert recover(client, "aaaaa-aaaaa").status_code == 403

    first_step(client)

    assert recover(client, codes[0]).status_code == 429


@pytest.mark.parametrize("change", ["disabled", "password"])
def test_the_first_step_does_not_outlive(
    client: Client, anna: User, codes: list[str], change: str
) -> None:
    first_step(client)
    if change == "password":
        services.set_password(anna, scenery.PASSWORD + " and more")
    else:
        for active in (False, True):
            User.objects.filter(pk=anna.pk).update(is_active=active)

    assert recover(client, codes[0])["Location"] == "/sign-in/"
    assert recovery_codes.count_left(anna) == 10


def test_they_outlive_a_rotated_secret(
    client: Client, anna: User, codes: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = seal.key(recovery_codes.PURPOSE)
    monkeypatch.setattr(seal, "key", lambda purpose: b"new" * 8)
    monkeypatch.setattr(seal, "_old_keys", lambda purpose: (before,))

    assert recovery_codes.use(anna, codes[0], address="")


def test_whoever_starts_anew_gets_new_ones(client: Client, anna: User, device: Device) -> None:
    old = recovery_codes.make(anna)
    passkeys.remove(anna.passkeys.get())
    client.force_login(anna)
    begun = client.post("/profile/passkeys/begin/", {"password": scenery.PASSWORD}).json()
    again = Device(HERE)

    answer = {"name": "Phone", "answer": again.create(begun["publicKey"])}
    made = shown(client.post("/profile/passkeys/add/", answer).text)

    assert len(made) == 10
    assert not recovery_codes.use(anna, old[0], address="")
