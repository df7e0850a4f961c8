"""Signing in with a second factor: asked for after password and link, and nothing goes round it."""

import json
from io import StringIO

import pyotp
import pytest
from django.conf import settings
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts import services
from accounts.attempts import OF_PERSON
from accounts.models import Passkey, Proof, User
from audit.models import Entry
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


def signed(client: Client, device: Device) -> dict[str, str]:
    offered = client.post(SECOND + "passkey/").json()
    return {"ticket": offered["ticket"], "answer": device.get(offered["publicKey"])}


def test_a_code_is_asked_for_after_the_password(
    client: Client, totp: pyotp.TOTP, clock: Clock
) -> None:
    assert first_step(client, next="/calls/")["Location"] == SECOND
    key = client.session.session_key
    assert not is_in(client)
    assert client.get("/profile/")["Location"] == "/sign-in/?next=/profile/&ended=1"
    assert "Code of your app" in client.get(SECOND).text
    assert not Entry.objects.filter(action="person.signed_in").exists()

    response = client.post(SECOND, {"code": totp.at(clock.now)})

    assert response["Location"] == "/calls/"
    assert is_in(client)
    # Who planted or saw the first key has nothing of the session.
    assert client.session.session_key != key
    entry = Entry.objects.get(action="person.signed_in")
    assert (entry.reason, entry.details["second_factor"]) == ("By password.", "totp")
    assert Proof.objects.get().statement.startswith("Countersign: sign in\nperson: anna\n")


def test_a_code_is_good_for_one_sign_in(client: Client, totp: pyotp.TOTP, clock: Clock) -> None:
    first_step(client)
    client.post(SECOND, {"code": totp.at(clock.now)})
    other = Client()
    first_step(other)

    again = other.post(SECOND, {"code": totp.at(clock.now)})

    assert again.status_code == 403
    assert "was used before" in again.text
    assert not is_in(other)
    assert Entry.objects.filter(action="factor.failed").count() == 1


def test_a_passkey_signs_this_sign_in_and_no_other(client: Client, device: Device) -> None:
    first_step(client)
    other = Client()
    first_step(other)
    answer = signed(client, device)

    assert other.post(SECOND, answer).status_code == 403
    assert not is_in(other)
    assert client.post(SECOND, answer)["Location"] == reverse("home")
    assert is_in(client)
    assert Entry.objects.get(action="person.signed_in").details["second_factor"] == "passkey"
    # Nothing is left to answer.
    assert client.post(SECOND, answer)["Location"] == "/sign-in/"


def test_another_persons_and_a_removed_passkey_are_refused(client: Client, device: Device) -> None:
    first_step(client)
    options = client.post(SECOND + "passkey/").json()
    strange = {"ticket": options["ticket"], "answer": Device(HERE).get(options["publicKey"])}
    assert "not one of yours" in client.post(SECOND, strange).text

    answer = signed(client, device)
    Passkey.objects.update(removed_at=timezone.now())

    assert client.post(SECOND, answer).status_code == 403
    assert not is_in(client)


def test_a_link_is_no_way_round_it(client: Client, anna: User, totp: pyotp.TOTP) -> None:
    link = services.sign_in_link(anna).removeprefix(settings.PUBLIC_URL)

    assert client.post(link)["Location"] == SECOND
    assert not is_in(client)
    assert Entry.objects.filter(action="sign_in_link.used").count() == 1
    assert client.post(link).status_code == 403


@pytest.mark.long
def test_wrong_codes_end_for_the_stranger_who_knows_the_password(
    client: Client, totp: pyotp.TOTP, clock: Clock
) -> None:
    # anna was here before with this browser.
    first_step(client)
    client.post(SECOND, {"code": totp.at(clock.now)})
    client.post("/sign-out/")
    clock.now += 60
    stranger = Client()
    first_step(stranger)
    for guess in range(OF_PERSON):
        assert stranger.post(SECOND, {"code": f"{guess:07}"}).status_code == 403
    # Not by beginning again, and not by the right one.
    first_step(stranger)
    assert stranger.post(SECOND, {"code": totp.at(clock.now)}).status_code == 429
    assert not is_in(stranger)
    assert Entry.objects.filter(action="factor.limited").exists()

    first_step(client)
    client.post(SECOND, {"code": totp.at(clock.now)})
    assert is_in(client)


@pytest.mark.parametrize("change", ["disabled", "password", "late"])
def test_the_first_step_does_not_outlive(
    client: Client, anna: User, totp: pyotp.TOTP, clock: Clock, change: str
) -> None:
    first_step(client)
    if change == "late":
        clock.now += 301
    elif change == "password":
        services.set_password(anna, scenery.PASSWORD + " and more")
    else:
        for active in (False, True):
            User.objects.filter(pk=anna.pk).update(is_active=active)

    assert client.post(SECOND, {"code": totp.at(clock.now)})["Location"] == "/sign-in/"
    assert not is_in(client)
    assert client.post(SECOND + "passkey/").status_code == 403


def test_nobody_is_sent_elsewhere_after_it(client: Client, totp: pyotp.TOTP, clock: Clock) -> None:
    first_step(client, next="//evil.example/")

    assert client.post(SECOND, {"code": totp.at(clock.now)})["Location"] == reverse("home")


def test_without_a_first_step_there_is_no_second(client: Client, totp: pyotp.TOTP) -> None:
    assert client.get(SECOND)["Location"] == "/sign-in/"
    assert "expired" in json.loads(client.post(SECOND + "passkey/").text)["error"]


def test_the_host_resets_the_factors_of_somebody_locked_out(
    client: Client, device: Device, totp: pyotp.TOTP
) -> None:
    out = StringIO()
    call_command("reset_factors", "anna", stdout=out)

    assert "Removed of anna: 2." in out.getvalue()
    first_step(client)
    assert is_in(client)
    assert Entry.objects.get(action="person.factors_reset").details["removed"] == 2
