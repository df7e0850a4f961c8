"""A webhook from the first word to its end, and one's own notifications, with the keyboard."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts.models import User
from accounts.roles import Role
from approvals.models import Delegation
from audit.models import Entry
from notifications.events import CHOICES
from notifications.models import Delivery, EscalationPolicy, MailRecipient, OnCallOverride, Webhook
from notifications.services import send_confirmation
from tests.browser.conftest import Opened
from tests.browser.scene import Office
from tests.browser.test_limits import WIDE, press, press_more, tick, type_into
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
    press_more(page, "button", "Rotate the secret")
    expect(page.get_by_text("Requests are signed with the former secret as well")).to_be_visible()

    press_more(page, "link", "Edit")
    press(page, "link", "Cancel")
    press_more(page, "link", "Edit")
    type_into(page, "Name", "books")
    type_into(page, "URL", URL)
    tick(page, "Events", "Approval needed")
    press(page, "button", "Save the webhook")
    expect(page.get_by_text("“books” is saved.")).to_be_visible()
    press_more(page, "link", "Disable")
    press(page, "link", "Cancel")
    press_more(page, "link", "Disable")
    press(page, "button", "Disable the webhook")
    expect(page.get_by_text("“books” is not notified any more.")).to_be_visible()
    press_more(page, "button", "Enable")
    expect(page.get_by_text("“books” is notified.")).to_be_visible()
    press_more(page, "link", "Remove")
    press(page, "link", "Keep it")
    press_more(page, "link", "Remove")
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
    hints = page.locator(".hint[data-format]:visible")
    expect(hints).to_have_count(0)
    expect(page.get_by_label("Language of messages in a chat")).to_be_hidden()
    for label, value in (("Send to", "slack"), ("Language of messages in a chat", "zh-hans")):
        # The second of each.
        page.get_by_label(label, exact=True).press("ArrowDown")
        expect(page.get_by_label(label, exact=True)).to_have_value(value)
    expect(hints).to_contain_text(["at Incoming Webhooks", "its last 4 characters"])
    type_into(page, "URL", "http://hooks.slack.com/services/T0/B0/secretwxyz")
    press(page, "button", "Save the webhook")
    expect(page.get_by_text("The URL must begin with https://").first).to_be_visible()
    expect(page.get_by_label("URL", exact=True)).to_have_value("")
    type_into(page, "URL", "https://hooks.slack.com/services/T0/B0/secretwxyz")
    press(page, "button", "Save the webhook")

    expect(page.get_by_text("https://hooks.slack.com/…wxyz")).to_be_visible()
    expect(page.get_by_text("Slack · 简体中文")).to_be_visible()
    assert not page.evaluate(WIDE)
    expect(page.get_by_text("Rotate the secret")).to_have_count(0)
    press_more(page, "link", "Edit")
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


def test_an_escalation_policy_is_made_changed_and_removed(
    opened: Opened, office: Office, ada: User
) -> None:
    page = opened(ada, viewport={"width": 360, "height": 740})
    page.goto("/notifications/")
    press(page, "link", "New escalation policy")
    expect(page.get_by_role("heading", name="New escalation policy")).to_be_visible()
    assert not page.evaluate(WIDE)
    press(page, "link", "Cancel")
    press(page, "link", "New escalation policy")
    choose(page, "Approvers of the rules", 1)
    more = page.locator(".further > summary:visible")
    for n, (after, down) in enumerate((("0", 2), ("5", 1), ("15", 5), ("20", 5), ("30", 5))):
        expect(page.locator("fieldset.part:visible")).to_have_count(max(n, 1))
        if n:
            more.press("Enter")
        page.get_by_label("Wait (minutes)").nth(n).focus()
        page.keyboard.type(after)
        page.get_by_label("Notify").nth(n).focus()
        for _press in range(down):
            page.keyboard.press("ArrowDown")
    press(page, "button", "Save the escalation policy")
    expect(page.get_by_text("The escalation policy is saved.")).to_be_visible()
    expect(more).to_have_count(0)
    expect(page.get_by_text("at once: 1 person in turn")).to_be_visible()
    assert not page.evaluate(WIDE)

    made = EscalationPolicy.objects.get()
    assert made.group is not None
    press(page, "link", made.group.name)
    press(page, "button", "Save the escalation policy")
    press(page, "link", made.group.name)
    press(page, "link", "Cancel")
    press(page, "link", made.group.name)
    press(page, "link", "Remove the escalation policy")
    press(page, "link", "Keep it")
    press(page, "link", "Remove the escalation policy")
    press(page, "button", "Remove the escalation policy")
    expect(page.get_by_text("everybody is notified at once").first).to_be_visible()
    assert not EscalationPolicy.objects.exists()


def test_the_card_says_who_was_notified(opened: Opened, office: Office) -> None:
    page = opened(office.alice)
    page.goto(f"/queue/{office.held}/")
    press(page, "link", "Who was notified")
    expect(page.get_by_text("Nobody was notified:")).to_be_visible()
    page.goto(f"/queue/{office.held}/notified/")
    press(page, "link", "Open the call")


def test_an_on_call_schedule_is_kept(opened: Opened, office: Office, ada: User) -> None:
    page = opened(ada, viewport={"width": 360, "height": 740})
    page.goto("/notifications/")
    press(page, "link", "On-call schedules")
    press(page, "link", "New schedule")
    expect(page.get_by_role("heading", name="New on-call schedule")).to_be_visible()
    assert not page.evaluate(WIDE)
    press(page, "link", "Cancel")
    press(page, "link", "New schedule")
    type_into(page, "Name", "primary")
    type_into(page, "Time zone", "Europe/Berlin")
    choose(page, "Hand-over day", 1)
    type_times(page, "Hand-over time", "0900AM")
    type_times(page, "Starts on", "01052026")
    type_into(page, "People in order", "alice")
    press(page, "button", "Save the schedule")
    expect(page.get_by_text("“primary” is saved.")).to_be_visible()
    expect(page.get_by_text("Tuesday, 09:00 (Europe/Berlin)")).to_be_visible()
    assert not page.evaluate(WIDE)

    choose(page, "On call", 1)
    later = timezone.now() + timedelta(days=2)
    page.get_by_label("From", exact=True).fill(f"{later:%Y-%m-%dT10:00}")
    page.get_by_label("Until", exact=True).fill(f"{later:%Y-%m-%dT12:00}")
    press(page, "button", "Add the override")
    expect(page.get_by_text("The override is added.")).to_be_visible()
    press(page, "button", f"Remove {OnCallOverride.objects.get().person.username}")
    expect(page.get_by_text("The override is removed.")).to_be_visible()
    press(page, "link", "Edit")
    press(page, "link", "Cancel")
    press(page, "link", "Edit")
    press(page, "button", "Save the schedule")
    expect(page.get_by_text("“primary” is saved.")).to_be_visible()
    page.goto("/on-call/")
    expect(page.get_by_text("On call now: alice")).to_be_visible()
    press(page, "link", "primary")
    press(page, "link", "Remove")
    press(page, "link", "Keep it")
    press(page, "link", "Remove")
    press(page, "button", "Remove the schedule")
    expect(page.get_by_text("“primary” is removed.")).to_be_visible()


def test_a_delegation_is_made_and_ended(opened: Opened, office: Office) -> None:
    carol = scenery.person("carol", Role.APPROVER)
    page = opened(office.alice, viewport={"width": 360, "height": 740})
    page.goto("/profile/")
    press(page, "link", "Let another approver vote in your place for a time")
    expect(page.get_by_role("heading", name="Delegations")).to_be_visible()
    assert not page.evaluate(WIDE)
    page.get_by_label("Delegate", exact=True).focus()
    page.keyboard.type("carol")
    now = timezone.now()
    page.get_by_label("From", exact=True).fill(f"{now:%Y-%m-%dT%H:%M}")
    page.get_by_label("Until", exact=True).fill(f"{now + timedelta(days=2):%Y-%m-%dT%H:%M}")
    page.get_by_label("Only for calls of", exact=True).focus()
    page.keyboard.press("ArrowDown")
    page.get_by_label("Only for rules that ask", exact=True).focus()
    page.keyboard.press("ArrowDown")
    page.get_by_label("Notify me too").focus()
    page.keyboard.press("Space")
    press(page, "button", "Create delegation")
    expect(page.get_by_text("Delegation created.")).to_be_visible()
    expect(page.get_by_text("carol votes for alice")).to_be_visible()
    assert not page.evaluate(WIDE)
    assert Delegation.objects.get().delegate == carol

    press(page, "button", "End carol")
    expect(page.get_by_text("The delegation is ended.")).to_be_visible()


def choose(page: Page, label: str, down: int) -> None:
    page.get_by_label(label, exact=True).focus()
    for _press in range(down):
        page.keyboard.press("ArrowDown")


def type_times(page: Page, label: str, keys: str) -> None:
    """Into a field for times, which takes its parts one after the other."""
    page.get_by_label(label, exact=True).focus()
    page.keyboard.type(keys)


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
    expect(page).to_have_url(re.compile(r"/profile/notifications/$"))
    page.goto(link[1])
    press(page, "button", "Confirm the address")
    expect(page.get_by_text("Your address is confirmed")).to_be_visible()
    assert MailRecipient.objects.reachable().exists()

    type_times(page, "Quiet from", "1000PM")
    type_times(page, "Quiet until", "0700AM")
    press(page, "button", "Save the quiet hours")
    expect(page.get_by_text("Your quiet hours are saved.")).to_be_visible()
    expect(page.get_by_label("Quiet from")).to_have_value("22:00")
    later = timezone.now() + timedelta(days=2)
    page.get_by_label("Mute until", exact=True).fill(f"{later:%Y-%m-%dT%H:%M}")
    press(page, "button", "Mute")
    expect(page.get_by_text("Only break-glass and news of your account are sent.")).to_be_visible()
    press(page, "button", "End the mute")
    expect(page.get_by_text("You are notified again.")).to_be_visible()

    press(page, "button", "Remove your address")
    expect(page.get_by_text("you get no mail")).to_be_visible()
    assert MailRecipient.objects.get().address == ""
