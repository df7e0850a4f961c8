"""A webhook from the first word to its end, and one's own notifications, with the keyboard."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from accounts.models import User
from accounts.roles import Role
from audit.models import Entry
from notifications.events import CHOICES
from notifications.models import Delivery, MailRecipient, Webhook
from notifications.services import send_confirmation
from tests.browser.conftest import Opened
from tests.browser.scene import Office
from tests.browser.test_limits import WIDE, press, tick, type_into
from tests.console import scenery
from tests.notifications.receivers import mail_server, text_of

pytestmark = pytest.mark.long

URL = "https://ledger.example.org/hook"


@pytest.fixture
def ada(office: Office) -> User:
    """An administrator."""
    return scenery.person("ada", Role.ADMINISTRATOR)


def test_a_webhook_is_added_tested_changed_and_removed(
    opened: Opened, office: Office, ada: User
) -> None:
    page = opened(ada, viewport={"width": 360, "height": 740})
    page.goto("/settings/")
    press(page, "link", "Notifications")
    expect(page.get_by_role("heading", name="Notifications")).to_be_visible()
    assert not page.evaluate(WIDE)
    press(page, "link", "Your own notifications")
    expect(page.get_by_role("heading", name="Your notifications")).to_be_visible()
    assert not page.evaluate(WIDE)
    page.go_back()
    press(page, "link", "New webhook")
    press(page, "link", "Cancel")
    page.locator(".empty").get_by_role("link", name="New webhook").click()
    type_into(page, "Name", "ledger")
    type_into(page, "URL", "http://10.0.0.1/hook")
    press(page, "button", "Save the webhook")
    expect(page.get_by_text("is not public").first).to_be_visible()
    assert not page.evaluate(WIDE)
    type_into(page, "URL", URL)
    tick(page, "Events", "Approval needed")
    press(page, "button", "Save the webhook")

    expect(page.locator("#secret")).to_have_text(re.compile("^whsec_"))
    assert not page.evaluate(WIDE)
    page.locator("[data-copy=secret]").press("Enter")
    made = Webhook.objects.get()
    press(page, "button", "Send a test message")
    expect(page.get_by_text("A test message is on its way.")).to_be_visible()
    expect(page.locator("#moving")).to_contain_text("Queued")
    # Nobody sends in these tests: it is seen where it stands.
    Delivery.objects.update(state="dead", error="The receiver answered with status 410.")
    expect(page.locator("#moving")).to_contain_text("Given up")
    press(page, "button", f"Send again {Delivery.objects.get().pk}")
    expect(page.get_by_text("It is sent again, under the same id.")).to_be_visible()
    press(page, "button", "Rotate the secret")
    expect(page.get_by_text("Requests are signed with the former secret as well")).to_be_visible()

    press(page, "link", "Change")
    press(page, "link", "Cancel")
    press(page, "link", "Change")
    type_into(page, "Name", "books")
    type_into(page, "URL", URL)
    tick(page, "Events", "Approval needed")
    press(page, "button", "Save the webhook")
    expect(page.get_by_text("“books” is saved.")).to_be_visible()
    press(page, "button", "Disable")
    expect(page.get_by_text("“books” is not notified any more.")).to_be_visible()
    press(page, "button", "Enable")
    expect(page.get_by_text("“books” is notified.")).to_be_visible()
    press(page, "link", "Remove")
    press(page, "link", "Keep it")
    press(page, "link", "Remove")
    press(page, "button", "Remove the webhook")
    expect(page.get_by_text("“books” is removed.")).to_be_visible()
    assert not Webhook.objects.exists()
    assert Entry.objects.filter(action="webhook.removed", details__webhook_id=str(made.pk)).exists()


def test_a_chat_is_added_and_its_address_is_shown_no_more(
    opened: Opened, office: Office, ada: User
) -> None:
    page = opened(ada, viewport={"width": 360, "height": 740})
    page.goto("/new/webhook/")
    assert not page.evaluate(WIDE)
    type_into(page, "Name", "team")
    for label, value in (("Send to", "slack"), ("Language of messages in a chat", "zh-hans")):
        # The second of each.
        page.get_by_label(label, exact=True).press("ArrowDown")
        expect(page.get_by_label(label, exact=True)).to_have_value(value)
    type_into(page, "URL", "http://hooks.slack.com/services/T0/B0/secretwxyz")
    press(page, "button", "Save the webhook")
    expect(page.get_by_text("The URL must begin with https://").first).to_be_visible()
    expect(page.get_by_label("URL", exact=True)).to_have_value("")
    type_into(page, "URL", "https://hooks.slack.com/services/T0/B0/secretwxyz")
    press(page, "button", "Save the webhook")

    expect(page.get_by_text("https://hooks.slack.com/…wxyz")).to_be_visible()
    expect(page.get_by_text("Slack · 简体中文")).to_be_visible()
    assert not page.evaluate(WIDE)
    expect(page.get_by_role("button", name="Rotate the secret")).to_have_count(0)
    press(page, "link", "Change")
    expect(page.get_by_text("Left empty, it stays https://hooks.slack.com/…wxyz.")).to_be_visible()
    page.get_by_label("Language of messages in a chat").press("ArrowUp")
    press(page, "button", "Save the webhook")
    expect(page.get_by_text("Slack · English")).to_be_visible()
    assert "secret" not in page.content()


def test_what_was_given_up_leads_to_its_webhook_and_is_sent_again(
    opened: Opened, office: Office, ada: User
) -> None:
    webhook = Webhook.objects.create(name="ledger", url=URL, sealed_secret=b"", enabled=False)
    entry = Entry.objects.earliest("id").pk
    dead = Delivery.objects.create(
        entry_id=entry, event="test", channel="webhook", webhook=webhook, state="dead"
    )
    page = opened(ada)
    page.goto("/settings/")
    page.locator("header.rail").get_by_role("link", name="Notifications").press("Enter")
    press(page, "link", "ledger")
    expect(page.get_by_role("heading", name="ledger")).to_be_visible()
    page.go_back()
    page.locator(f"#delivery-{dead.pk}").get_by_role("link", name="ledger").click()
    page.go_back()

    press(page, "button", f"Send again {dead.pk}")

    expect(page.get_by_text("It is sent again, under the same id.")).to_be_visible()
    assert Delivery.objects.get().state == "pending"


def test_an_address_is_given_confirmed_and_removed(
    opened: Opened, office: Office, settings: Any
) -> None:
    page = opened(office.alice)
    page.goto("/profile/")
    press(page, "link", "Choose when you are notified, and where")
    expect(page.get_by_text("No mail server is set")).to_be_visible()
    type_into(page, "E-mail address", "alice@example.org")
    for _value, label in CHOICES:
        tick(page, "Send mail when", str(label))
    press(page, "button", "Save the notifications")
    expect(page.get_by_text("A link was sent to alice@example.org.")).to_be_visible()

    with mail_server() as (mailbox, port):
        settings.EMAIL_URL = "smtp://"
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", port
        # What the console sent went into a file, a minute ago.
        MailRecipient.objects.update(link_sent_at=None)
        send_confirmation(MailRecipient.objects.get())
    link = re.search(r"http://[^/]+(/profile/\S+)", text_of(mailbox.messages[0]))
    assert link
    page.goto(link[1])
    press(page, "link", "Cancel")
    page.goto(link[1])
    press(page, "button", "Confirm the address")
    expect(page.get_by_text("Your address is confirmed")).to_be_visible()
    assert MailRecipient.objects.reachable().exists()

    press(page, "button", "Remove your address")
    expect(page.get_by_text("you get no mail")).to_be_visible()
    assert MailRecipient.objects.get().address == ""
