"""The cast in the console: alice approves, bob owns the agent scout, mallory may do nothing."""

from uuid import UUID

import pytest
from django.test import Client

from accounts.models import Agent, User
from accounts.roles import Role
from calls.record.states import State
from registry.models import Server, Tool
from tests.console import scenery


@pytest.fixture
def alice(db: None) -> User:
    return scenery.person("alice", Role.APPROVER)


@pytest.fixture
def bob(db: None) -> User:
    return scenery.person("bob", Role.APPROVER)


@pytest.fixture
def vera(db: None) -> User:
    """A viewer: sees that calls happen and not what is in them."""
    return scenery.person("vera", Role.VIEWER)


@pytest.fixture
def ines(db: None) -> User:
    """An auditor."""
    return scenery.person("ines", Role.AUDITOR)


@pytest.fixture
def mallory(db: None) -> User:
    return scenery.person("mallory")


@pytest.fixture
def scout(bob: User) -> Agent:
    return Agent.objects.create(name="scout", owner=bob)


@pytest.fixture
def mailer(olga: User) -> Server:
    return scenery.server("mailer", olga, scenery.SEND)


@pytest.fixture
def send_mail(mailer: Server) -> Tool:
    return mailer.tools.for_catalogue().get()


@pytest.fixture
def held(scout: Agent, send_mail: Tool) -> UUID:
    """scout wants to send a mail, and nobody has decided."""
    return scenery.call(scout, send_mail, scenery.MAIL, State.HELD)


@pytest.fixture
def as_alice(client: Client, alice: User) -> Client:
    client.force_login(alice)
    return client
