"""A token opens the door for its agent, and nothing that resembles it does."""

import string
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts import services, tokens
from accounts.models import Agent, AgentToken, User
from accounts.roles import Role
from audit.models import Entry
from core import seal
from core.text import revealed

Doors = [tokens.look_up, lambda token: tokens.load().bearer(token)]
Door = Callable[[str], tokens.Bearer | None]
door = pytest.mark.parametrize("enter", Doors, ids=["database", "book"])


@door
def test_it_says_who_stands_at_the_door(
    enter: Door, scout: Agent, bob: User, scout_token: str
) -> None:
    bearer = enter(scout_token)

    assert bearer is not None
    assert (bearer.agent_id, bearer.agent_name) == (scout.pk, "scout")
    assert (bearer.person_id, bearer.person_name) == (bob.pk, "bob")
    assert bearer.groups == {Role.VIEWER}


def _other(character: str) -> str:
    return "A" if character != "A" else "B"


def _with(token: str, at: int) -> str:
    return token[:at] + _other(token[at]) + token[at + 1 :]


def _resealed(body: str) -> str:
    """Somebody who knows how checksums are made, and no secret."""
    return next(f"{body}_{crc}" for crc in [tokens._checksum(body)])


WRONG: dict[str, Callable[[str], str]] = {
    "nothing": lambda token: "",
    "garbage": lambda token: "csa_" + "x" * 60,
    "cut short": lambda token: token[:-1],
    "longer": lambda token: token + "A",
    "a space after": lambda token: token + " ",
    "a newline after": lambda token: token + "\n",
    "upper case": str.upper,
    "wrong crc": lambda token: _with(token, -1),
    "wrong secret, wrong crc": lambda token: _with(token, 20),
    "wrong secret, right crc": lambda token: _resealed(_with(token, 20)[:-7]),
    "wrong id, right crc": lambda token: _resealed(_with(token, 5)[:-7]),
    "other alphabet": lambda token: token.replace(token[20], "é"),
    "digits of another script": lambda token: token[:4] + "٠" + token[5:],
    "a NUL": lambda token: token[:20] + "\0" + token[21:],
}


@door
@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_it_refuses_what_only_resembles_a_token(
    enter: Door, change: Callable[[str], str], scout_token: str
) -> None:
    assert enter(scout_token) is not None

    assert enter(change(scout_token)) is None


@door
def test_it_refuses_an_expired_token(enter: Door, scout_token: str) -> None:
    AgentToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))

    assert enter(scout_token) is None


def test_a_book_read_before_it_expired_refuses_it_too(scout_token: str) -> None:
    AgentToken.objects.update(expires_at=timezone.now() + timedelta(seconds=1))
    book = tokens.load()
    known = book.bearer(scout_token)
    assert known is not None

    while book.bearer(scout_token):
        assert timezone.now().timestamp() < known.expires_at + 1

    assert timezone.now().timestamp() >= known.expires_at


@door
def test_it_refuses_a_revoked_token(enter: Door, bob: User, scout_token: str) -> None:
    assert services.revoke_token(AgentToken.objects.get(), by=bob)

    assert enter(scout_token) is None
    assert Entry.objects.filter(action="token.revoked", actor="bob").count() == 1


@door
def test_it_refuses_a_disabled_agent_until_it_is_enabled(
    enter: Door, scout: Agent, bob: User, scout_token: str
) -> None:
    services.set_agent_enabled(scout, False, by=bob)
    assert enter(scout_token) is None

    services.set_agent_enabled(scout, True, by=bob)
    assert enter(scout_token) is not None


@door
def test_it_refuses_the_agents_of_a_person_who_left(
    enter: Door, bob: User, scout_token: str
) -> None:
    bob.is_active = False
    bob.save()

    assert enter(scout_token) is None


def test_the_secret_is_kept_nowhere(scout_token: str) -> None:
    secret = scout_token[13:56]

    with connection.cursor() as cursor:
        cursor.execute("SELECT t::text FROM accounts_agenttoken t")
        row = str(cursor.fetchall())
        cursor.execute("SELECT e::text FROM audit_entry e")
        entries = str(cursor.fetchall())

    assert scout_token[4:12] in row
    assert secret not in row + entries
    assert secret.encode().hex() not in row


@pytest.fixture
def another_installation(settings: Any) -> Iterator[None]:
    settings.SECRET_KEY = "the secret of another installation, with a copy of our database"
    seal.key.cache_clear()
    yield
    seal.key.cache_clear()


@door
def test_another_installation_does_not_know_it(
    enter: Door, scout_token: str, another_installation: None
) -> None:
    assert enter(scout_token) is None


def test_it_is_written_as_scanners_expect(scout_token: str) -> None:
    prefix, public_id, secret, checksum = scout_token.split("_")

    assert (prefix, len(public_id), len(secret), len(checksum)) == ("csa", 8, 43, 6)
    assert set(public_id + secret + checksum) <= set(string.ascii_letters + string.digits)
    assert tokens.well_formed(scout_token)
    assert revealed(scout_token) == scout_token


def test_a_scanner_finds_every_token_and_no_chance_resemblance() -> None:
    planted = [tokens.make() for _ in range(200)]
    assert all(tokens.well_formed(token) for token in planted)
    assert len(set(planted)) == 200

    found = [_with(token, at) for token in planted for at in range(4, 63) if token[at] != "_"]
    assert not any(tokens.well_formed(token) for token in found)


@pytest.mark.parametrize("days", [0, -1, 91, 3650])
def test_it_lives_for_ninety_days_at_most(scout: Agent, bob: User, days: int) -> None:
    with pytest.raises(services.AccountRefused, match="valid for 1 to 90 days"):
        services.issue_token(scout, by=bob, days=days)

    assert not AgentToken.objects.exists()


def test_it_lives_for_thirty_days_unless_asked_otherwise(scout: Agent, bob: User) -> None:
    services.issue_token(scout, by=bob)

    token = AgentToken.objects.get()
    assert timedelta(days=29) < token.expires_at - token.created_at < timedelta(days=31)


def test_it_is_revoked_once(bob: User, scout_token: str) -> None:
    token = AgentToken.objects.get()

    assert services.revoke_token(token, by=bob)
    assert not services.revoke_token(token, by=bob)
    assert Entry.objects.filter(action="token.revoked").count() == 1


def test_its_last_use_is_written_once_a_minute(scout_token: str) -> None:
    token = AgentToken.objects.get()

    def used(at: datetime | None = None) -> datetime | None:
        if at:
            AgentToken.objects.update(last_used_at=at)
        services.note_used({token.pk: "192.0.2.1"})
        token.refresh_from_db()
        return token.last_used_at

    now = timezone.now()
    assert used() is not None
    assert used(now - timedelta(seconds=50)) == now - timedelta(seconds=50)
    assert used(now - timedelta(seconds=61)) != now - timedelta(seconds=61)


def _generation() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT n FROM core_generation")
        return int(cursor.fetchone()[0])


def test_a_use_makes_no_process_read_its_book_again(scout_token: str) -> None:
    before = _generation()

    services.note_used({AgentToken.objects.get().pk: ""})

    assert _generation() == before


def test_a_revocation_makes_every_process_read_its_book_again(bob: User, scout_token: str) -> None:
    before = _generation()

    services.revoke_token(AgentToken.objects.get(), by=bob)

    assert _generation() > before


def test_two_agents_cannot_have_one_name(scout: Agent, bob: User) -> None:
    with pytest.raises(services.AccountRefused, match="already exists"):
        services.create_agent("scout", owner=bob, by=bob)


@pytest.mark.parametrize("name", ["", "two words", "ſcout!", "a" * 101])
def test_an_agent_has_a_plain_name(bob: User, name: str) -> None:
    with pytest.raises(services.AccountRefused):
        services.create_agent(name, owner=bob, by=bob)


def test_it_opens_no_page(client: Client, scout_token: str) -> None:
    page = client.get(
        reverse("approvals:queue"), headers={"Authorization": f"Bearer {scout_token}"}
    )

    assert page.status_code == 302
    assert page["Location"].startswith("/sign-in/")
