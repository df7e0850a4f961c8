"""A person with a password and what proves them, for tests of signing in."""

from typing import Any

import pyotp
import pytest
from django.contrib.auth import SESSION_KEY
from django.test import Client

from accounts import one_time_codes, passkeys
from accounts.models import User
from accounts.roles import Role
from tests.accounts.authenticator import Device
from tests.console import scenery

HERE = "http://localhost:8000"
SECOND = "/sign-in/second-step/"


class Clock:
    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.now = 1_790_000_000.0
        patch.setattr("accounts.one_time_codes.time.time", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


@pytest.fixture
def anna(db: None, settings: Any) -> User:
    # Passwords that cost nothing to check.
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    return scenery.person("anna", Role.APPROVER, password=scenery.PASSWORD)


@pytest.fixture
def totp(anna: User, clock: Clock) -> pyotp.TOTP:
    app = one_time_codes.begin(anna)
    made = pyotp.TOTP(one_time_codes.secret(app))
    one_time_codes.confirm(anna, made.at(clock.now))
    clock.now += 60
    return made


@pytest.fixture
def device(anna: User) -> Device:
    made = Device(HERE)
    options, challenge = passkeys.options(anna)
    passkeys.add(anna, "Laptop", challenge=challenge, answer=made.create(options))
    return made


def first_step(client: Client, **fields: str) -> Any:
    given = {"username": "anna", "password": scenery.PASSWORD, **fields}
    return client.post("/sign-in/", given)


def is_in(client: Client) -> bool:
    return SESSION_KEY in client.session
