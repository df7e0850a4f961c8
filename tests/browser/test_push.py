"""A device is added with the keyboard, a push reaches its service worker, and the notification
opens the card; without a connection there is a page that says so."""

import json
import logging
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from playwright.sync_api import Page, Request, Worker, expect

from approvals.models import Vote
from calls.record.states import State
from notifications import push_keys, subscriptions
from notifications.cursor import read_entries
from notifications.events import CHOICES
from notifications.models import Delivery, PushDevice
from notifications.sending import send_due
from policies.thresholds import StepUp, Threshold
from tests.browser.conftest import Opened, session_cookie
from tests.browser.scene import Office
from tests.browser.test_limits import WIDE, press, tick
from tests.browser.test_passkeys import Window
from tests.console import scenery
from tests.notifications.push_service import PushService, push_service
from tests.processes import Stack

pytestmark = pytest.mark.long
log = logging.getLogger(__name__)

HERE = "/profile/notifications/"
# In place of the browser's maker's push service, which no test reaches. What is subscribed is kept
# for the next page, like a browser does.
SUBSCRIBING = """
  const made = %s;
  const kept = () => sessionStorage.getItem("subscribed")
    && {...made, toJSON: () => made, unsubscribe: async () => sessionStorage.clear()};
  Notification.requestPermission = async () => sessionStorage.getItem("answer") ?? "granted";
  PushManager.prototype.getSubscription = async () => kept();
  PushManager.prototype.subscribe = async ({userVisibleOnly, applicationServerKey}) => {
    sessionStorage.setItem("subscribed", JSON.stringify({userVisibleOnly, applicationServerKey}));
    return kept();
  };
"""
# Chromium's headless shell has no notifications and no badge: its worker keeps them, and is given
# the event.
SHOWN_HERE = """(text) => {
  self.shown ??= [];
  navigator.setAppBadge = async (pending) => { self.badge = pending; };
  registration.getNotifications = async () => self.shown;
  registration.showNotification = async (title, options) => {
    self.shown = self.shown.filter((one) => one.tag !== options.tag);
    const close = () => { self.shown = self.shown.filter((one) => one.tag !== options.tag); };
    self.shown.push({title, ...options, close});
  };
  return new Promise((done) => {
    const event = new PushEvent("push", {data: text});
    event.waitUntil = (work) => done(work);
    self.dispatchEvent(event);
  });
}"""
# A click is the browser's own; where a window would open is written down.
CLICKED = """(tag) => new Promise(async (done) => {
  const notification = (await registration.getNotifications()).find((one) => one.tag === tag);
  clients.openWindow = async (address) => done(address);
  self.dispatchEvent(Object.assign(new Event("notificationclick"), {notification, waitUntil() {}}));
})"""
KEPT = """async () => {
  const opened = await Promise.all((await caches.keys()).map((name) => caches.open(name)));
  const kept = await Promise.all(opened.map((one) => one.keys()));
  return kept.flat().map((one) => new URL(one.url).pathname);
}"""
SHOWN = """async () => (await registration.getNotifications()).map((one) => [one.title, one.tag])"""


@pytest.fixture
def service(settings: Any) -> Iterator[PushService]:
    settings.UPSTREAM_NETWORKS, settings.PUSH_HOSTS = ["127.0.0.0/8"], ["127.0.0.1"]
    with push_service() as service:
        yield service


def subscribing(opened: Opened, office: Office, service: PushService) -> Page:
    """alice's narrow window, whose browser has a push service."""
    page = opened(office.alice, viewport={"width": 360, "height": 740})
    page.context.grant_permissions(["notifications"])
    made = service.subscription(endpoint="https://fcm.googleapis.com/fcm/send/abc")
    page.context.add_init_script(SUBSCRIBING % made)
    return page


def worker_of(page: Page) -> Worker:
    return page.context.service_workers[-1]


def deliver(page: Page, body: bytes) -> None:
    """As the browser gets it from its push service."""
    if page.evaluate("Notification.permission") != "granted":
        worker_of(page).evaluate(SHOWN_HERE, body.decode())
        return
    protocol = page.context.new_cdp_session(page)
    found: list[Any] = []
    protocol.on(
        "ServiceWorker.workerRegistrationUpdated",
        lambda said: found.extend(one["registrationId"] for one in said["registrations"]),
    )
    protocol.send("ServiceWorker.enable")
    while not found:
        page.wait_for_timeout(20)
    protocol.send(
        "ServiceWorker.deliverPushMessage",
        {
            "origin": page.evaluate("location.origin"),
            "registrationId": found[0],
            "data": body.decode(),
        },
    )


def wait_for(page: Page, *shown: list[str]) -> None:
    for _ in range(500):
        if sorted(worker_of(page).evaluate(SHOWN)) == sorted(shown):
            return
        page.wait_for_timeout(20)
    assert sorted(worker_of(page).evaluate(SHOWN)) == sorted(shown)


def pushed(service: PushService, hold: Callable[[], UUID]) -> tuple[UUID, bytes]:
    """A call becomes pending, and what a device is sent on it, opened."""
    device = PushDevice.objects.get()
    given = subscriptions.opened(device)
    if given.url != service.url:
        # The console takes no service of ours.
        device.sealed_subscription = subscriptions.sealed(given._replace(url=service.url), device)
        device.save()
        service.key = push_keys.public_key()
        read_entries()
    call = hold()
    read_entries()
    send_due()
    return call, json.dumps(service.messages[-1]).encode()


def test_a_device_is_added_and_a_push_opens_the_card(
    opened: Opened, office: Office, service: PushService
) -> None:
    page = subscribing(opened, office, service)
    page.goto(HERE)
    press(page, "button", "Notify this device")
    expect(page.get_by_text("This device is notified.")).to_be_visible()
    expect(page.get_by_text("This device", exact=True)).to_be_visible()
    expect(page.get_by_role("button", name="Notify this device")).to_be_hidden()
    assert not page.evaluate(WIDE)
    asked_for = json.loads(page.evaluate("sessionStorage.getItem('subscribed')"))
    assert asked_for == {"userVisibleOnly": True, "applicationServerKey": push_keys.public_key()}

    held, body = pushed(
        service, lambda: scenery.call(office.scout, office.send, scenery.MAIL, State.HELD)
    )
    deliver(page, body)

    wait_for(page, ["Approval needed", held.hex])
    address = worker_of(page).evaluate(CLICKED, held.hex)
    page.goto(address)
    assert urlsplit(page.url).path == f"/queue/{held}/"
    expect(page.get_by_role("button", name="Approve", exact=True)).to_be_visible()
    assert Delivery.objects.get(call_id=held).opened_at
    wait_for(page)


def test_from_a_push_to_a_passkeys_approval_it_is_three_presses_and_four_requests(
    opened: Opened, office: Office, stack: Stack, service: PushService
) -> None:
    """The notification, Approve, and the device's own question. With --log-cli-level=INFO it tells
    how many seconds it took from the push."""
    here = stack.web_url.replace("127.0.0.1", "localhost")
    page = opened()
    page.context.add_cookies([session_cookie(office.alice, here)])
    page.context.grant_permissions(["notifications"])
    Window(page, here).add_passkey()
    asked = (Threshold(approve=1, step_up=StepUp.PASSKEY),)
    made = service.subscription(endpoint="https://fcm.googleapis.com/fcm/send/abc")
    page.context.add_init_script(SUBSCRIBING % made)
    page.goto(f"{here}{HERE}")
    press(page, "button", "Notify this device")
    expect(page.get_by_text("This device is notified.")).to_be_visible()
    call, body = pushed(
        service,
        lambda: scenery.call(office.scout, office.send, scenery.MAIL, State.HELD, thresholds=asked),
    )
    began = time.monotonic()
    deliver(page, body)
    wait_for(page, ["Approval needed", call.hex])
    waited: list[str] = []

    def note(request: Request) -> None:
        # What the page reads by itself meanwhile, nobody waits for.
        if request.is_navigation_request() or request.method == "POST":
            waited.append(f"{request.method} {urlsplit(request.url).path}")

    page.on("request", note)

    page.goto(f"{here}{worker_of(page).evaluate(CLICKED, call.hex)}")
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.locator("[data-card]")).to_contain_text("Approved by alice")
    log.info("from the push to the decision: %.1f s", time.monotonic() - began)

    assert Vote.objects.get(approval=call).proof
    assert waited == [
        f"GET {HERE}open/{Delivery.objects.get(call_id=call).pk}/",
        f"GET /queue/{call}/",
        f"POST /queue/{call}/step-up/",
        f"POST /queue/{call}/approve/",
    ]


def test_more_than_a_few_pending_calls_are_one_notification(
    opened: Opened, office: Office, service: PushService
) -> None:
    page = subscribing(opened, office, service)
    page.goto(HERE)
    press(page, "button", "Notify this device")
    expect(page.get_by_text("This device is notified.")).to_be_visible()
    message = {"kind": "approval.needed", "title": "Approval needed", "pending": 6}

    for number in range(5):
        body = {**message, "id": str(number), "about": f"call {number}"}
        deliver(page, json.dumps(body).encode())
    # On the same call again, which takes the place of the first.
    deliver(page, json.dumps({**message, "id": "again", "about": "call 0"}).encode())
    wait_for(page, *(["Approval needed", f"call {number}"] for number in range(5)))
    deliver(page, json.dumps({**message, "id": "6", "about": "call 6"}).encode())

    wait_for(page, ["Approval needed (6)", "approval.needed"])
    assert worker_of(page).evaluate(CLICKED, "approval.needed") == "/queue/"


def test_a_device_is_tried_changed_and_removed(
    opened: Opened, office: Office, service: PushService
) -> None:
    page = subscribing(opened, office, service)
    page.goto(HERE)
    page.evaluate("sessionStorage.setItem('answer', 'denied')")
    press(page, "button", "Notify this device")
    expect(page.get_by_text("does not let Countersign show notifications")).to_be_visible()
    assert not PushDevice.objects.exists()
    page.evaluate("sessionStorage.removeItem('answer')")
    press(page, "button", "Notify this device")
    expect(page.get_by_text("This device is notified.")).to_be_visible()
    name = PushDevice.objects.get().name

    for _value, label in CHOICES:
        tick(page, "Notify devices when", str(label))
    press(page, "button", "Save for all devices")
    expect(page.get_by_text("Your notifications are saved.")).to_be_visible()
    assert "server.reachable" in PushDevice.objects.get().events
    assert "approval.needed" not in PushDevice.objects.get().events
    press(page, "button", f"Send a test message {name}")
    expect(page.get_by_text("A test message is on its way")).to_be_visible()
    assert Delivery.objects.get().event == "test"
    page.goto("/notifications/")
    expect(page.get_by_text("1 device is notified.")).to_be_visible()
    press(page, "link", "Your own devices")
    press(page, "button", f"Remove {name}")

    expect(page.get_by_text("is not notified any more")).to_be_visible()
    expect(page.get_by_role("button", name="Notify this device")).to_be_visible()
    assert page.evaluate("sessionStorage.getItem('subscribed')") is None
    assert not PushDevice.objects.exists()


def test_without_a_connection_it_says_so_and_keeps_nothing(
    opened: Opened, office: Office, service: PushService
) -> None:
    page = subscribing(opened, office, service)
    page.goto(HERE)
    press(page, "button", "Notify this device")
    expect(page.get_by_text("This device is notified.")).to_be_visible()
    page.goto(f"/queue/{office.held}/")
    expect(page.get_by_role("button", name="Approve", exact=True)).to_be_visible()

    page.context.set_offline(True)
    page.goto("/calls/")
    expect(page.get_by_role("heading", name="No connection")).to_be_visible()
    assert (
        page.evaluate("getComputedStyle(document.querySelector('.button.primary')).borderRadius")
        != "0px"
    )
    assert not page.evaluate(WIDE)
    kept = page.evaluate(KEPT)
    assert {one for one in kept if not one.startswith("/static/")} == {"/offline/"}

    page.context.set_offline(False)
    page.get_by_role("link", name="Try again").press("Enter")
    expect(page.get_by_role("heading", name="Queue")).to_be_visible()


def test_a_browser_without_push_says_so(opened: Opened, office: Office) -> None:
    page = opened(office.alice)
    page.context.add_init_script("delete window.PushManager")
    page.goto(HERE)

    expect(page.get_by_text("This browser offers no push here:")).to_be_visible()
    expect(page.get_by_role("button", name="Notify this device")).to_be_hidden()
