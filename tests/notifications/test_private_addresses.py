"""No channel reaches a private address, however it is written, and each attempt is recorded."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import User
from notifications import calendars, devices, services, subscriptions
from notifications.cursor import read_entries
from notifications.events import CHOICES
from notifications.models import Delivery, OnCallCalendar, Webhook
from notifications.sending import send_due
from registry.models import Tool
from tests.notifications.calendar_files import calendar_host
from tests.notifications.chats import CHATS
from tests.notifications.push_service import PushService
from tests.notifications.slack_server import slack_server
from tests.notifications.test_calendars import schedule_of
from tests.notifications.test_slack_app import FORM

pytestmark = pytest.mark.long

HOSTS = ["127.0.0.1", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "localhost"]
CHANNELS = ["standard", *CHATS, "slack_app", "push", "calendar"]


class Far:
    """A server where nobody may come; or one that leads there."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.requests = 0


@contextmanager
def far_end(leads_to: str = "") -> Iterator[Far]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            far.requests += 1
            self.send_response(302 if leads_to else 200)
            self.send_header("Location", leads_to)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_POST

        def log_message(self, *_args: object) -> None:
            """Nothing to say."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        far = Far(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield far
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def attempt(
    send_mail: Tool, olga: User, alice: User, as_olga: Client, request: Any, settings: Any
) -> Callable[[str, str, list[str]], str]:
    """The recorded error of a message, or of a reading, after an address was accepted and only
    these networks are left."""
    settings.UPSTREAM_NETWORKS = ["127.0.0.0/8"]
    settings.PUSH_HOSTS = ["127.0.0.1", "localhost", "::ffff:127.0.0.1", "::ffff:7f00:1"]

    def attempt(channel: str, origin: str, networks: list[str]) -> str:
        if channel == "calendar":
            with calendar_host() as host:
                host.url = f"{origin}/basic.ics"
                schedule_of(host, olga)
            settings.UPSTREAM_NETWORKS = networks
            calendars.read_now(OnCallCalendar.objects.get())
            return str(OnCallCalendar.objects.get().error)
        _add(channel, origin, olga, alice, as_olga, settings)
        request.getfixturevalue("held")
        settings.UPSTREAM_NETWORKS = networks
        read_entries()
        send_due()
        delivery = Delivery.objects.get()
        assert (delivery.state, delivery.attempts) == ("pending", 1)
        return str(delivery.error)

    return attempt


def _add(
    channel: str, origin: str, olga: User, alice: User, as_olga: Client, settings: Any
) -> None:
    if channel == "push":
        service = PushService()
        given = subscriptions.read(service.subscription(endpoint=f"{origin}/x"))
        devices.add(alice, given, user_agent="Firefox/145.0")
        devices.set_events(alice, [event for event, _label in CHOICES])
    elif channel == "slack_app":
        with slack_server() as slack:
            settings.SLACK_API_URL = slack.url
            as_olga.post(reverse("notifications:add_slack_app"), FORM)
        settings.SLACK_API_URL = f"{origin}/api"
    elif channel == "standard":
        services.add_webhook(Webhook(name="x", url=f"{origin}/hook"), by=olga)
    else:
        address = f"{origin}{CHATS[channel]().path}"
        services.add_webhook(Webhook(name="x", format=channel), by=olga, address=address)


@pytest.mark.parametrize("channel", CHANNELS)
@pytest.mark.parametrize("host", HOSTS)
def test_a_private_address_is_not_reached(
    channel: str, host: str, attempt: Callable[[str, str, list[str]], str]
) -> None:
    """By number, mapped into IPv6, or by a name that resolves to one."""
    with far_end() as far:
        error = attempt(channel, f"https://{host}:{far.port}", [])

    assert "is not public" in error
    assert not far.requests


@pytest.mark.parametrize("channel", CHANNELS)
def test_a_redirect_to_a_private_address_is_not_followed(
    channel: str, attempt: Callable[[str, str, list[str]], str]
) -> None:
    with far_end() as hidden, far_end(f"http://127.0.0.1:{hidden.port}/") as far:
        error = attempt(channel, f"http://127.0.0.1:{far.port}", ["127.0.0.0/8"])

    assert "302" in error
    assert far.requests
    assert not hidden.requests


@pytest.mark.parametrize("channel", ["standard", *CHATS])
@pytest.mark.parametrize("host", ["10.0.0.1", "[::ffff:10.0.0.1]", "[::ffff:a9fe:a9fe]"])
def test_a_form_takes_no_private_address(
    channel: str, host: str, as_olga: Client, settings: Any
) -> None:
    settings.UPSTREAM_NETWORKS = []
    path = "/hook" if channel == "standard" else CHATS[channel]().path
    given = {"name": "x", "format": channel, "language": "en", "url": f"https://{host}{path}"}

    page = as_olga.post(reverse("notifications:add_webhook"), given)

    assert "is not public" in page.text
    assert not Webhook.objects.exists()
