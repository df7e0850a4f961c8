"""A Slack app from its manifest to a message, and one's own Slack account, linked and unlinked."""

import re

import pytest
from django.test import Client
from playwright.sync_api import Page, expect

from accounts.models import User
from accounts.roles import Role
from notifications import slack_apps
from notifications.models import ChatAccount, SlackApp, Webhook
from tests.browser.conftest import Opened
from tests.browser.scene import Office
from tests.browser.test_limits import WIDE, press, press_more, tick, type_into
from tests.console import scenery
from tests.notifications.slack_server import (
    CHANNEL,
    SECRET,
    TEAM,
    TOKEN,
    SlackServer,
    signed,
)

pytestmark = pytest.mark.long


@pytest.fixture
def ada(office: Office) -> User:
    """An administrator."""
    return scenery.person("ada", Role.ADMINISTRATOR)


def test_a_slack_app_is_set_up_and_an_account_is_linked_and_unlinked(
    opened: Opened, office: Office, ada: User
) -> None:
    page = opened(ada, viewport={"width": 360, "height": 740})
    page.goto("/notifications/")
    press(page, "link", "New Slack app")
    press(page, "link", "Cancel")
    page.goto("/new/slack-app/")
    page.get_by_text("Manifest", exact=True).click()
    expect(page.locator("#manifest")).to_contain_text("/slack/")
    assert not page.evaluate(WIDE)
    fill(page)
    type_into(page, "Channel", "two words")
    press(page, "button", "Save the Slack app")
    expect(page.get_by_text("Enter a channel’s name or its ID")).to_be_visible()
    expect(page.get_by_label("Bot token")).to_have_value("")
    app = SlackApp(team_id=TEAM, team_name="Acme", channel=CHANNEL, takes_denials=True)
    slack_apps.save(Webhook(name="approvals"), app, by=ada, token=TOKEN, signing_secret=SECRET)
    page.goto(f"/notifications/webhooks/{app.pk}/")
    expect(page.get_by_text("Acme")).to_be_visible()
    assert not page.evaluate(WIDE)
    press_more(page, "link", "Edit")
    tick(page, "Buttons in messages", "People may comment in Slack")
    press(page, "button", "Save the Slack app")
    expect(page.get_by_text("Open and approve · Deny · Comment")).to_be_visible()
    assert SlackApp.objects.get().takes_comments

    link(page)
    page.get_by_role("button", name=re.compile("Unlink")).click()
    expect(page.get_by_text("No account is linked.")).to_be_visible()
    assert not ChatAccount.objects.exists()


def fill(page: Page) -> None:
    type_into(page, "Name", "approvals")
    type_into(page, "Bot token", TOKEN)
    type_into(page, "Signing secret", SECRET)
    type_into(page, "Channel", "#approvals")
    tick(page, "Buttons in messages", "People may deny in Slack")


def link(page: Page) -> None:
    page.goto("/profile/notifications/")
    press(page, "button", "Link a Slack account")
    typed = page.locator("#chat-code").inner_text()
    assert not page.evaluate(WIDE)
    body = SlackServer().command("U0000ADA", typed.removeprefix("/countersign "))
    kind = "application/x-www-form-urlencoded"
    answer = Client().post("/slack/", body, content_type=kind, headers=signed(body)).json()
    page.goto("/profile/" + answer["text"].partition("/profile/")[2].partition("|")[0])
    expect(page.get_by_text("u0000ada")).to_be_visible()
    assert not page.evaluate(WIDE)
    press(page, "button", "Link this account")
    expect(page.get_by_text("u0000ada in Acme is linked.")).to_be_visible()
