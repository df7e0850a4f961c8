"""Passkeys in Chromium, with its virtual authenticator: made, and asked for by rules."""

import os
import re
from collections.abc import Callable
from uuid import UUID

import pytest
from playwright.sync_api import CDPSession, Page, Request, Route, expect

from approvals import services
from approvals.models import Approval, Vote
from audit.models import Entry
from calls.models import Call
from calls.record.states import State
from policies.thresholds import StepUp, Threshold
from tests.browser.conftest import Opened, session_cookie
from tests.browser.scene import Office
from tests.console import scenery
from tests.processes import Stack

DEVICE = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


# Passwords are made to take long.
SLOW = 30_000


class Window:
    """alice's, at `localhost`, with a device of her own."""

    def __init__(self, page: Page, here: str) -> None:
        self.page, self.here = page, here
        self.cdp: CDPSession = page.context.new_cdp_session(page)
        self.cdp.send("WebAuthn.enable")
        self.device = self._device()

    def _device(self) -> str:
        made = self.cdp.send("WebAuthn.addVirtualAuthenticator", {"options": DEVICE})
        return str(made["authenticatorId"])

    def other_device(self) -> None:
        self.cdp.send("WebAuthn.removeVirtualAuthenticator", {"authenticatorId": self.device})
        self.device = self._device()

    def add_passkey(self) -> None:
        self.page.goto(f"{self.here}/profile/")
        form = self.page.locator("form[data-passkey]")
        form.get_by_label("Name").fill("Laptop")
        form.get_by_label("Your password").fill(scenery.PASSWORD)
        form.get_by_role("button", name="Add a passkey").click()
        expect(self.page.get_by_text("The passkey is added.")).to_be_visible(timeout=SLOW)
        self.page.get_by_role("link", name="I have kept them").press("Enter")

    def approve(self, call_id: UUID) -> None:
        self.page.goto(f"{self.here}/queue/{call_id}/")
        self.page.get_by_role("button", name="Approve", exact=True).click()


@pytest.fixture
def window(request: pytest.FixtureRequest, opened: Opened, office: Office, stack: Stack) -> Window:
    """`request.param`: what the browser will complain of."""
    here = stack.web_url.replace("127.0.0.1", "localhost")
    page = opened(office.alice, will_complain_of=getattr(request, "param", ()))
    page.context.add_cookies([session_cookie(office.alice, here)])
    made = Window(page, here)
    made.add_passkey()
    return made


Held = Callable[..., UUID]


@pytest.fixture
def held(office: Office) -> Held:
    def hold(subject: str, approve: int = 1) -> UUID:
        arguments = {**scenery.MAIL, "subject": subject}
        asked = (Threshold(approve=approve, step_up=StepUp.PASSKEY),)
        return scenery.call(office.scout, office.send, arguments, State.HELD, thresholds=asked)

    return hold


def state(call_id: UUID) -> str:
    return Call.objects.get(pk=call_id).state


def is_approval(request: Request) -> bool:
    return request.method == "POST" and request.url.endswith("/approve/")


@pytest.mark.smoke
def test_the_right_passkey_approves(window: Window, held: Held) -> None:
    call = held("Right")

    window.approve(call)

    expect(window.page.locator("[data-card]")).to_contain_text("Approved by alice")
    assert state(call) == State.QUEUED
    vote = Vote.objects.get(approval=call)
    assert vote.proof
    assert vote.proof.passkey
    assert (vote.step_up, vote.proof.passkey.name) == ("passkey", "Laptop")


def test_a_device_without_the_passkey_approves_nothing(window: Window, held: Held) -> None:
    call = held("Wrong")
    window.other_device()

    window.approve(call)

    expect(window.page.get_by_text("Not confirmed: the device declined")).to_be_visible()
    assert state(call) == State.HELD


def test_another_passkey_approves_nothing(window: Window, held: Held, office: Office) -> None:
    call = held("Somebody else's")
    # One that she had, which somebody else has now.
    office.alice.passkeys.update(person=office.bob)
    window.page.goto(f"{window.here}/queue/{call}/")
    expect(window.page.get_by_text("You have no passkey for this site yet.")).to_be_visible()
    window.page.get_by_role("link", name="Add one to your profile").click()
    expect(window.page).to_have_url(re.compile(r"/profile/#proving$"))
    office.alice.passkeys.model.objects.update(person=office.alice)
    window.page.goto(f"{window.here}/queue/{call}/")

    def meanwhile(route: Route) -> None:
        office.alice.passkeys.update(person=office.bob)
        route.continue_()

    window.page.route("**/approve/", meanwhile)
    window.page.get_by_role("button", name="Approve", exact=True).click()

    expect(window.page.get_by_role("alert")).to_contain_text("not one of yours")
    assert state(call) == State.HELD


def sent(window: Window, call: UUID) -> dict[str, str]:
    """What her browser sends when she approves; the form, to be sent again."""
    window.page.goto(f"{window.here}/queue/{call}/")
    with window.page.expect_request(is_approval) as caught:
        window.page.get_by_role("button", name="Approve", exact=True).click()
    expect(window.page.get_by_role("button", name="Take your vote back")).to_be_visible()
    given = caught.value.post_data_json
    assert isinstance(given, dict)
    return {name: str(value) for name, value in given.items()}


def send(window: Window, call: UUID, form: dict[str, str]) -> str:
    fields: dict[str, str | float | bool] = {**form, "csrfmiddlewaretoken": token(window)}
    at = f"{window.here}/queue/{call}/approve/"
    answer = window.page.request.post(at, form=fields, headers={"Referer": window.here})
    return answer.text()


def token(window: Window) -> str:
    return str(window.page.locator("[name=csrfmiddlewaretoken]").first.input_value())


def test_a_replayed_assertion_approves_nothing(window: Window, held: Held, office: Office) -> None:
    call = held("Twice", approve=2)
    given = sent(window, call)
    assert given["answer"]
    assert Vote.objects.standing().count() == 1
    services.take_back(Approval.objects.get(pk=call), by=office.alice)

    said = send(window, call, given)

    assert "Press the button again" in said
    assert Vote.objects.standing().count() == 0


def test_another_calls_assertion_approves_nothing(window: Window, held: Held) -> None:
    one, other = held("One", approve=2), held("Other")
    given = sent(window, one)
    seen = Call.objects.get(pk=other).call_digest

    said = send(window, other, given | {"seen": seen})

    assert "not this decision" in said
    assert state(other) == State.HELD


def test_elsewhere_it_says_where(window: Window, held: Held, stack: Stack) -> None:
    call = held("Elsewhere")
    window.page.goto(f"{stack.web_url}/queue/{call}/")

    window.page.get_by_role("button", name="Approve", exact=True).click()

    expect(window.page.get_by_text(f"Your passkeys belong to {window.here}")).to_be_visible()
    window.page.goto(f"{stack.web_url}/profile/")
    expect(window.page.get_by_text(f"Passkeys belong to {window.here}")).to_be_visible()
    assert state(call) == State.HELD


LOST = pytest.mark.parametrize("window", [("ERR_FAILED", "htmx:sendError")], indirect=True)
UNASKED = pytest.mark.parametrize("window", [("ERR_FAILED",)], indirect=True)


def swallow(route: Route) -> None:
    """The server takes it, and its answer never arrives."""
    route.fetch()
    route.abort()


@LOST
def test_a_lost_answer_to_a_signed_approval_is_asked_for(window: Window, held: Held) -> None:
    call = held("Lost")
    window.page.route("**/approve/", swallow)

    window.approve(call)

    shown = window.page.locator("[data-card]")
    expect(shown).to_contain_text("The record has your vote: you approved this call.", timeout=SLOW)
    expect(shown).to_contain_text("Approved by alice")
    expect(shown).not_to_contain_text("Waiting for your passkey")
    assert state(call) == State.QUEUED


@LOST
def test_a_signed_approval_that_never_arrived_can_be_pressed_again(
    window: Window, held: Held
) -> None:
    call = held("Lost")
    window.page.route("**/approve/", lambda route: route.abort(), times=1)
    window.approve(call)
    shown = window.page.locator("[data-card]")
    expect(shown).to_contain_text("The record has no vote of yours on this call.", timeout=SLOW)
    expect(shown).not_to_contain_text("Waiting for your passkey")
    # The card was drawn anew: its arguments are looked at again.
    shown.locator(".arguments").scroll_into_view_if_needed()

    window.page.get_by_role("button", name="Approve", exact=True).click()

    expect(shown).to_contain_text("Approved by alice")


@UNASKED
def test_a_passkey_that_nobody_could_ask_for_says_so(window: Window, held: Held) -> None:
    call = held("Unasked")
    window.page.route("**/step-up/", lambda route: route.abort())

    window.approve(call)

    expect(window.page.get_by_text("No answer came. Nothing was approved")).to_be_visible()
    assert state(call) == State.HELD


@pytest.mark.parametrize("language", ["en", "zh-hans"])
def test_a_passkey_is_the_second_step_of_signing_in(window: Window, language: str) -> None:
    page = window.page
    page.set_viewport_size({"width": 360, "height": 740})
    page.context.clear_cookies()
    page.context.add_cookies([{"name": "django_language", "value": language, "url": window.here}])
    page.goto(f"{window.here}/sign-in/?next=/profile/")
    page.locator("[name=username]").fill("alice")
    page.locator("[name=password]").fill(scenery.PASSWORD)
    page.keyboard.press("Enter")
    use = page.get_by_role(
        "button", name={"en": "Use a passkey", "zh-hans": "使用通行密钥"}[language]
    )
    expect(use).to_be_visible(timeout=SLOW)
    other = {"en": "Sign in as another user", "zh-hans": "以其他身份登录"}[language]
    page.get_by_role("link", name=other).click()
    page.go_back()
    expect(use).to_be_visible(timeout=SLOW)
    assert page.evaluate("document.documentElement.scrollWidth") == 360
    if pictures := os.environ.get("PICTURES"):
        page.screenshot(path=f"{pictures}/second-{language}.png")
    use.focus()
    page.keyboard.press("Enter")

    expect(page).to_have_url(re.compile(r"/profile/$"), timeout=SLOW)
    assert Entry.objects.filter(
        action="person.signed_in", details__second_factor="passkey"
    ).exists()
