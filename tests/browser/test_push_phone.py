"""From a push to a decision on a telephone, in a whole Chromium: the push is delivered by the
browser's debugging protocol, its notification pressed with the pointer, and passkeys asked for.

With --log-cli-level=INFO it tells how many seconds that took. PICTURES is a directory for pictures.
"""

import logging
import os
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from playwright.sync_api import Browser, BrowserContext, CDPSession, Page, Request, expect

from approvals.models import Approval, Vote
from approvals.services import cancel
from audit.models import Entry
from calls.record.states import State
from notifications.models import Delivery
from policies.thresholds import StepUp, Threshold
from tests.browser.conftest import listen, session_cookie
from tests.browser.scene import Office
from tests.browser.test_limits import WIDE, press
from tests.browser.test_passkeys import Window
from tests.browser.test_push import (
    HERE,
    SUBSCRIBING,
    deliver,
    pushed,
    service,
    wait_for,
)
from tests.browser.whole_chromium import Screen, whole_chromium
from tests.console import scenery
from tests.notifications.push_service import PushService
from tests.processes import Stack

__all__ = ["service"]

pytestmark = pytest.mark.long
log = logging.getLogger(__name__)

SIZE = {"width": 360, "height": 740}
SIGN_IN = "/sign-in/"
# A page's request for a passkey is held back until `isReady()`.
HELD_BACK = """
    const fetched = window.fetch;
    const ready = new Promise((resolve) => { window.isReady = resolve; });
    window.fetch = async (address, ...more) => {
      if (String(address).endsWith("/passkey/options/")) await ready;
      return fetched(address, ...more);
    };
"""


class Telephone:
    """alice's, narrow, with a device of its own that holds her passkey; it is notified."""

    def __init__(self, context: BrowserContext, screen: Screen, office: Office, url: str) -> None:
        self.context, self.screen, self.office = context, screen, office
        self.here = url.replace("127.0.0.1", "localhost")
        self.complaints: list[str] = []
        context.on("page", lambda page: listen(page, self.complaints))
        self.page = context.pages[0]
        listen(self.page, self.complaints)
        context.add_cookies([session_cookie(office.alice, self.here)])
        context.grant_permissions(["notifications"], origin=self.here)
        self.window = Window(self.page, self.here)
        self.window.add_passkey()

    def subscribe(self, service: PushService) -> None:
        made = service.subscription(endpoint="https://fcm.googleapis.com/fcm/send/abc")
        self.page.add_init_script(SUBSCRIBING % made)
        self.page.goto(f"{self.here}{HERE}")
        press(self.page, "button", "Notify this device")
        expect(self.page.get_by_text("This device is notified.")).to_be_visible()

    def hold(self, step_up: StepUp = StepUp.PASSKEY) -> UUID:
        asked = (Threshold(approve=1, step_up=step_up),)
        scout, send = self.office.scout, self.office.send
        return scenery.call(scout, send, scenery.MAIL, State.HELD, thresholds=asked)

    def sign_in(self) -> None:
        """Signed out, and in again by the passkey's button."""
        self.context.clear_cookies()
        self.page.goto(f"{self.here}{SIGN_IN}")
        press(self.page, "button", "Sign in with a passkey")
        expect(self.page).to_have_url(f"{self.here}/queue/")

    def press_notification(self, steps: "Steps | None" = None) -> Page:
        """The window that opens. The authenticator is the telephone's, whichever window asks: it
        asks for none before this one has it, and before its first page was noted."""
        self.context.add_init_script(HELD_BACK)
        with self.context.expect_page() as opened:
            self.screen.press_notification()
        page = opened.value
        known = self.window.cdp.send(
            "WebAuthn.getCredentials", {"authenticatorId": self.window.device}
        )
        other = Window(page, self.here)
        for one in known["credentials"]:
            named = {"authenticatorId": other.device, "credential": one}
            other.cdp.send("WebAuthn.addCredential", named)
        if steps:
            steps.begin_with(page)
        page.evaluate("isReady()")
        return page


@pytest.fixture
def telephone(
    chromium: Browser, tmp_path: Path, office: Office, stack: Stack, service: PushService
) -> Iterator[Telephone]:
    assert stack.web
    options = {"viewport": SIZE, "is_mobile": True, "has_touch": True}
    with whole_chromium(chromium, tmp_path, **options) as (context, screen):
        made = Telephone(context, screen, office, stack.web_url)
        made.subscribe(service)
        yield made
        assert made.complaints == []


class Steps:
    """Presses of the person, and requests that the person waits for."""

    def __init__(self, context: BrowserContext) -> None:
        self.presses: list[str] = []
        self.requests: list[str] = []
        context.on("request", self._note)

    def press(self, name: str) -> None:
        self.presses.append(name)

    def begin_with(self, page: Page) -> None:
        """The window's first page and what led to it, as the browser counts them: they may have
        been asked for before a test could listen. Nothing was pressed on it yet."""
        page.wait_for_load_state()
        timing = "performance.getEntriesByType('navigation')[0]"
        redirects = page.evaluate(f"{timing}.redirectCount")
        led = ["GET the notification's address"] * redirects
        self.requests = [*led, f"GET {urlsplit(page.url).path}"]

    def _note(self, request: Request) -> None:
        # What the page reads by itself meanwhile, nobody waits for.
        if request.is_navigation_request() or request.method == "POST":
            self.requests.append(f"{request.method} {urlsplit(request.url).path}")


@pytest.mark.parametrize(
    ("is_signed_in", "step_up"),
    [(True, StepUp.PASSKEY), (False, StepUp.PASSKEY), (False, StepUp.NONE)],
    ids=["signed in", "signed out", "signed out, without a passkey on the card"],
)
def test_a_push_is_pressed_and_the_call_approved(
    telephone: Telephone, service: PushService, is_signed_in: bool, step_up: StepUp
) -> None:
    """Whoever signed in by a passkey on the telephone before is asked for it at once."""
    page = telephone.page
    if not is_signed_in:
        telephone.sign_in()
        telephone.context.clear_cookies()
        page.goto(f"{telephone.here}{SIGN_IN}")
    call, body = pushed(service, lambda: telephone.hold(step_up))
    steps, began = Steps(telephone.context), time.monotonic()
    deliver(page, body)
    wait_for(page, ["Approval needed", call.hex])
    said = f"signed-{'in' if is_signed_in else 'out'}{'' if step_up else '-without-passkey'}"
    picture(telephone.screen, f"notification-{said}")

    steps.press("the notification")
    page = telephone.press_notification(steps)
    if not is_signed_in:
        steps.press("the device's own question")
    approve = page.get_by_role("button", name="Approve", exact=True)
    expect(approve).to_be_visible()
    assert urlsplit(page.url).path == f"/queue/{call}/"
    assert page.viewport_size == SIZE
    assert not page.evaluate(WIDE)
    screenshot(page, f"card-{said}")
    approve.click()
    steps.press("Approve")
    if step_up:
        steps.press("the device's own question")
    expect(page.locator("[data-card]")).to_contain_text("Approved by alice")
    expect(page.get_by_text("Approved by alice")).to_be_in_viewport()
    seconds = time.monotonic() - began
    screenshot(page, f"approved-{said}")

    counts = (len(steps.presses), len(steps.requests))
    log.info("%s: %d presses, %d requests, %.1f s", said, *counts, seconds)
    vote = Vote.objects.get(approval=call)
    assert bool(vote.proof and vote.proof.passkey) == bool(step_up)
    opened, delivery = "GET the notification's address", Delivery.objects.get(call_id=call)
    assert delivery.opened_at
    signed = [f"POST /queue/{call}/step-up/"] if step_up else []
    decided = [*signed, f"POST /queue/{call}/approve/"]
    if is_signed_in:
        assert len(steps.presses) == 3
        assert steps.requests == [opened, f"GET /queue/{call}/", *decided]
        return
    assert len(steps.presses) == (4 if step_up else 3)
    assert steps.requests == [
        opened,
        f"GET {SIGN_IN}",
        f"POST {SIGN_IN}passkey/options/",
        f"POST {SIGN_IN}passkey/",
        f"GET {HERE}open/{delivery.pk}/",
        f"GET /queue/{call}/",
        *decided,
    ]
    noted = Entry.objects.filter(action__startswith="notification.").order_by("pk")
    assert [one.action for one in noted][-2:] == ["notification.unsigned", "notification.opened"]


def picture(screen: Screen, name: str) -> None:
    """Once the notification has come to rest."""
    if directory := os.environ.get("PICTURES"):
        screen.still_picture().save(f"{directory}/{name}.png")


def screenshot(page: Page, name: str) -> None:
    if directory := os.environ.get("PICTURES"):
        page.screenshot(path=f"{directory}/{name}.png")


def test_the_badge_of_the_installed_application_counts(
    telephone: Telephone, service: PushService
) -> None:
    """As the browser tells it to the operating system."""
    page, app = telephone.page, {"manifestId": f"{telephone.here}/"}
    asked = telephone.context.new_cdp_session(page)
    asked.send("PWA.install", app)
    before = Approval.objects.waiting().count()

    call, body = pushed(service, telephone.hold)
    deliver(page, body)
    wait_for_badge(page, asked, app, before + 1)

    # An open page keeps it current.
    cancel(call, by=telephone.office.scout.actor)
    page.goto(f"{telephone.here}/queue/")
    wait_for_badge(page, asked, app, before)


def wait_for_badge(page: Page, asked: CDPSession, app: dict[str, str], count: int) -> None:
    for _ in range(500):
        if asked.send("PWA.getOsAppState", app)["badgeCount"] == count:
            return
        page.wait_for_timeout(20)
    assert asked.send("PWA.getOsAppState", app)["badgeCount"] == count
