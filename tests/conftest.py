"""What every test can ask for. The plugin beside it brings databases and processes."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client, TransactionTestCase
from hypothesis import settings

from accounts import services as accounts
from accounts.models import Agent, User
from accounts.roles import Role
from calls.running.runtime import started
from core import guarded_http, loop
from gateway.process.current import close_runtime
from tests.database import Cleaner

# How long an example takes is the machine's affair, which may be busy.
settings.register_profile("house", deadline=None)
settings.load_profile("house")


@pytest.fixture(scope="session")
def django_db_setup(django_db_blocker: Any, cleaner: Cleaner) -> Iterator[None]:
    """The database is there, migrated, and settings point to it as the application's role.

    That role may not empty tables, so a test that commits is cleaned up after by a superuser.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", lambda self: cleaner.clean())
        with django_db_blocker.unblock():
            yield
            # What listens in this process's background would look for the database for ever.
            loop.run(close_runtime(), timeout=10)
            if call_runtime := started():
                loop.run(call_runtime.aclose(), timeout=10)


def person(name: str, *roles: Role) -> User:
    made = User.objects.create_user(name)
    made.groups.set(Group.objects.filter(name__in=roles))
    return made


@pytest.fixture
def alice(db: None) -> User:
    """May approve."""
    return person("alice", Role.APPROVER)


@pytest.fixture
def bob(db: None) -> User:
    """Owns scout."""
    return person("bob", Role.VIEWER)


@pytest.fixture
def olga(db: None) -> User:
    """An operator."""
    return person("olga", Role.OPERATOR)


@pytest.fixture
def as_olga(client: Client, olga: User) -> Client:
    client.force_login(olga)
    return client


@pytest.fixture
def mallory(db: None) -> User:
    """May do nothing."""
    return person("mallory")


@pytest.fixture
def scout(bob: User) -> Agent:
    return accounts.create_agent("scout", owner=bob, by=bob)


@pytest.fixture
def scout_token(scout: Agent, bob: User) -> str:
    return accounts.issue_token(scout, by=bob)


@pytest.fixture
def kept_connections(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Of each request to another host: whether its thread kept a database connection meanwhile."""
    kept: list[bool] = []
    ask = guarded_http._fetch

    def asked(*arguments: Any) -> Any:
        kept.append(connection.connection is not None)
        return ask(*arguments)

    monkeypatch.setattr(guarded_http, "_fetch", asked)
    return kept
