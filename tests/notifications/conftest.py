"""The cast of the console, with addresses, and the far ends of what they are sent."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest
from django.utils import timezone

from accounts.models import Agent, User
from accounts.roles import Role
from calls.record.states import State
from config.mail import mail_server as settings_of
from notifications import services
from notifications.events import CHOICES
from notifications.models import EntryCursor, MailRecipient, Webhook
from registry.models import Tool
from tests.console import scenery
from tests.notifications.receivers import Hook, Mailbox, mail_server, webhook_receiver
from tests.processes import Stack


@pytest.fixture(autouse=True)
def alone(stack: Stack) -> None:
    """A worker that another file asked for would read entries and send, too."""
    stack.end_worker()


@pytest.fixture
def bob(db: None) -> User:
    """Owns scout, and may decide on the calls of others."""
    return scenery.person("bob", Role.APPROVER)


@pytest.fixture
def scout(bob: User) -> Agent:
    return Agent.objects.create(name="scout", owner=bob)


@pytest.fixture
def send_mail(olga: User, scout: Agent) -> Tool:
    return scenery.server("mailer", olga, scenery.SEND).tools.get()


@pytest.fixture
def held(scout: Agent, send_mail: Tool, cursor: None) -> UUID:
    """scout wants to send a mail, and nobody has decided."""
    return scenery.call(scout, send_mail, scenery.MAIL, State.HELD)


@pytest.fixture
def cursor(send_mail: Tool) -> None:
    """Whatever was made for a test before is no news."""
    EntryCursor.objects.all().delete()
    from notifications.cursor import read_entries

    read_entries()


@pytest.fixture
def mailbox(settings: Any) -> Iterator[Mailbox]:
    with mail_server() as (mailbox, port):
        settings.EMAIL_URL = f"smtp://127.0.0.1:{port}"
        server = settings_of(settings.EMAIL_URL)
        settings.EMAIL_BACKEND = server.backend
        settings.EMAIL_HOST, settings.EMAIL_PORT = server.host, server.port
        yield mailbox


@pytest.fixture
def hook(settings: Any) -> Iterator[Hook]:
    settings.UPSTREAM_NETWORKS = ["127.0.0.0/8"]
    with webhook_receiver() as hook:
        yield hook


@pytest.fixture
def webhook(hook: Hook, olga: User) -> Webhook:
    made = Webhook(name="ledger", url=hook.url)
    hook.secrets = [services.add_webhook(made, by=olga)]
    return made


def reader(person: User, *events: str) -> User:
    """With a confirmed address; of all events, or of these."""
    MailRecipient.objects.create(
        person=person,
        address=f"{person.username}@example.org",
        confirmed_at=timezone.now(),
        events=list(events) or [event for event, _label in CHOICES],
    )
    return person
