"""Mail and chat messages as people see them, in light and dark, on a telephone and on a screen.

PICTURES is a directory for the pictures.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from uuid import UUID

import pytest
from django.conf import settings as current
from playwright.sync_api import Page

from accounts.roles import Role
from approvals import freezes
from approvals.models import Approval
from approvals.services import vote
from calls.models import Freeze
from calls.record.states import State
from config.mail import mail_server as settings_of
from notifications import services, slack_apps
from notifications.cursor import read_entries
from notifications.models import SlackApp, Webhook
from notifications.sending import send_due
from tests.browser.conftest import Opened
from tests.browser.message_pages import slack_page, teams_page
from tests.browser.scene import Office
from tests.browser.test_axe import AXE, COLOURS, RUN
from tests.console import scenery
from tests.notifications.chats import Chat, chat_server
from tests.notifications.conftest import reader
from tests.notifications.receivers import Mailbox, mail_server, text_of
from tests.notifications.slack_server import CHANNEL, SECRET, TEAM, TOKEN, SlackServer, slack_server

pytestmark = pytest.mark.long


class FarEnds:
    """A mail server, Slack's API for an app and for an incoming webhook, and Teams."""

    def __init__(self, mailbox: Mailbox, slack: SlackServer, incoming: Chat, teams: Chat) -> None:
        self.mailbox, self.slack, self.incoming, self.teams = mailbox, slack, incoming, teams

    def pages(self, said: str = "") -> dict[str, str]:
        """The newest message of each that has these words, as HTML."""
        return {
            "mail": newest([text_of(one, "html") for one in self.mailbox.messages], said),
            "slack-app": newest([*map(slack_page, self.slack.messages.values())], said),
            "slack": newest([*map(slack_page, self.incoming.bodies)], said),
            "teams": newest([*map(teams_page, self.teams.bodies)], said),
        }


def newest(pages: list[str], said: str) -> str:
    return next(one for one in reversed(pages) if said in " ".join(one.split()))


@pytest.fixture
def far_ends(office: Office, settings: Any) -> Iterator[FarEnds]:
    settings.UPSTREAM_NETWORKS = ["127.0.0.0/8"]
    by = scenery.person("ada", Role.ADMINISTRATOR)
    with ExitStack() as running:
        mailbox, port = running.enter_context(mail_server())
        settings.EMAIL_URL = f"smtp://127.0.0.1:{port}"
        server = settings_of(settings.EMAIL_URL)
        settings.EMAIL_BACKEND = server.backend
        settings.EMAIL_HOST, settings.EMAIL_PORT = server.host, server.port
        slack = running.enter_context(slack_server())
        settings.SLACK_API_URL = slack.url
        app = SlackApp(team_id=TEAM, team_name="Acme", channel=CHANNEL, takes_denials=True)
        app.takes_comments = True
        slack_apps.save(Webhook(name="app"), app, by=by, token=TOKEN, signing_secret=SECRET)
        chats = {kind: running.enter_context(chat_server(kind)) for kind in ("slack", "teams")}
        for kind, chat in chats.items():
            webhook = Webhook(name=kind, format=kind, language="en")
            services.add_webhook(webhook, by=by, address=chat.url)
        reader(office.alice)
        read_entries()
        send_due()
        yield FarEnds(mailbox, slack, chats["slack"], chats["teams"])
        assert [*slack.faults, *chats["slack"].faults, *chats["teams"].faults] == []


def held(office: Office) -> UUID:
    made = scenery.call(office.scout, office.send, scenery.MAIL, State.HELD)
    read_entries()
    send_due()
    return made


def decide(call: UUID, office: Office) -> None:
    approval = Approval.objects.for_queue().get(pk=call)
    seen = approval.call.call_digest
    vote(approval, by=office.alice, approve=False, seen_digest=seen, reason="Not to ana.")
    read_entries()
    send_due()


def look(page: Page, name: str, html: str) -> list[str]:
    """Texts that are hard to read, and what is wider than its window."""
    page.set_content(html)
    if name.endswith("mail"):
        # The mail program's own, as the theme has it.
        page.add_style_tag(content="body { background: Canvas; color: CanvasText; }")
    page.evaluate(f"() => {{ {AXE.read_text()} }}")
    wrong: list[str] = []
    for width in (600, 360):
        page.set_viewport_size({"width": width, "height": 500})
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            wrong += page.evaluate(RUN, {"type": "rule", "values": COLOURS})
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                wrong.append(f"{name} is wider than {width} px")
            if directory := os.environ.get("PICTURES"):
                page.screenshot(path=f"{directory}/{name}-{width}-{theme}.png", full_page=True)
    return wrong


def test_messages_are_read_in_light_and_dark_and_lead_to_the_call(
    opened: Opened, office: Office, far_ends: FarEnds
) -> None:
    page = opened()
    call = held(office)
    asking = far_ends.pages()
    decide(call, office)
    answers = far_ends.pages()
    # alice decided, and gets no mail on it.
    assert answers.pop("mail") == asking["mail"]

    for name, html in asking.items():
        assert look(page, f"asked-{name}", html) == []
        link = page.get_by_role("link", name="Open and")
        assert current.PUBLIC_URL in (link.get_attribute("href") or "")
        assert page.get_by_role("link", name="Approve", exact=True).count() == 0
    page.set_content(asking["slack-app"])
    assert [one.inner_text() for one in page.locator(".button").all()] == [
        "Open and approve", "Deny", "Comment"
    ]  # fmt: skip
    for name, html in answers.items():
        assert look(page, f"decided-{name}", html) == []
        assert "Not to ana." in page.locator("main").inner_text()
    page.set_content(answers["slack-app"])
    assert page.locator(".button").all_inner_texts() == ["Open the call"]


def test_an_emergency_stop_is_read_everywhere_and_in_messages_on_calls_that_it_covers(
    opened: Opened, office: Office, far_ends: FarEnds
) -> None:
    page, wrong = opened(), list[str]()
    reader(by := scenery.person("otto", Role.OPERATOR))
    freezes.begin(by=by, reason="Mails went to the wrong people.", agent=office.scout)
    read_entries()
    send_due()
    for name, html in far_ends.pages().items():
        wrong += look(page, f"stop-{name}", html)
        assert "Mails went to the wrong people." in page.inner_text("body"), name

    freezes.end(
        Freeze.objects.get(), by=scenery.person("olaf", Role.OPERATOR), why="It is well again."
    )
    scenery.call(office.scout, office.send, scenery.MAIL, State.HELD)
    freezes.begin(by=by, reason="Again.")
    read_entries()
    send_due()
    for name, html in far_ends.pages("Everything").items():
        wrong += look(page, f"stop-of-all-{name}", html)
    for name, html in far_ends.pages("nothing can be approved until it ends").items():
        wrong += look(page, f"stopped-{name}", html)
    assert wrong == []
