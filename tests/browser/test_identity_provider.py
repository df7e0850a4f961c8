"""Signing in at a provider of others, and out again, in a browser."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from django.conf import settings
from playwright.sync_api import Page, expect

from accounts import services
from accounts.roles import Role
from approvals.models import Vote
from calls.models import Call
from calls.record.states import State
from policies.thresholds import StepUp, Threshold
from tests.accounts import real_provider
from tests.browser.conftest import Opened
from tests.browser.scene import Office
from tests.browser.test_axe import look
from tests.browser.test_factors import LANGUAGES, phone, picture, press
from tests.console import scenery
from tests.console.scenery import PASSWORD
from tests.processes import Stack


@pytest.fixture
def company(stack: Stack, tmp_path: Path) -> Iterator[str]:
    """The provider, in the file that the console reads."""
    secret = tmp_path / "secret"
    secret.write_text(real_provider.SECRET)
    people = {"alice.b": {"email": "alice@example.com"}}
    with real_provider.running(stack.web_url, people) as issuer:
        settings.OIDC_FILE.write_text(
            f'[providers.company]\nname = "Company"\nissuer = "{issuer}"\n'
            f'client_id = "{real_provider.CLIENT}"\nclient_secret_file = "{secret}"\n'
            f'step_up_acr_values = ["{real_provider.STRENGTH}"]\n'
        )
        yield issuer
        settings.OIDC_FILE.unlink()


def window(opened: Opened, office: Office) -> Page:
    """alice's; the provider's own pages want a font from elsewhere."""
    page = opened(office.alice)
    page.route("https://fonts.googleapis.com/**", lambda route: route.fulfill(status=204))
    return page


def at_provider(page: Page, issuer: str, button: str) -> None:
    page.wait_for_url(f"{issuer}/**")
    page.get_by_role("button", name=button).click()


def connect(page: Page, issuer: str) -> None:
    page.goto("/profile/")
    part = page.get_by_role("region", name="Identity providers")
    part.get_by_label("Your password").fill(PASSWORD)
    part.get_by_label("Your password").press("Enter")
    page.get_by_role("link", name="Cancel").press("Enter")
    page.wait_for_url("**/profile/#identities")
    part.get_by_label("Your password").fill(PASSWORD)
    part.get_by_role("button", name="Connect Company").click()
    assert look(page) == []
    page.get_by_role("link", name="Continue to Company").click()
    page.wait_for_url(f"{issuer}/**")
    page.locator("[name=login]").fill("alice.b")
    page.locator("[name=password]").fill("any")
    at_provider(page, issuer, "Sign-in")
    at_provider(page, issuer, "Continue")
    page.wait_for_url("**/profile/#identities")
    expect(page.get_by_text("The account is connected.")).to_be_visible()
    expect(part.get_by_text("alice@example.com")).to_be_visible()


def disconnect(page: Page) -> None:
    page.goto("/profile/")
    part = page.get_by_role("region", name="Identity providers")
    part.get_by_text("Disconnect Company").click()
    assert look(page) == []
    part.get_by_label("Your password").fill(PASSWORD)
    part.get_by_role("button", name="Disconnect", exact=True).click()
    expect(part.get_by_text("None is connected.")).to_be_visible()


def test_alice_connects_the_company_and_signs_in_and_out_by_it(
    opened: Opened, office: Office, company: str
) -> None:
    page = window(opened, office)
    connect(page, company)
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/sign-in/**")

    page.goto("/sign-in/?next=/calls/")
    assert look(page) == []
    page.get_by_role("link", name="Sign in with Company").click()
    # The provider knows her still.
    page.wait_for_url("**/calls/")
    expect(page.get_by_role("banner").get_by_text("alice")).to_be_visible()
    page.get_by_role("button", name="Sign out").click()
    expect(page.get_by_text("You are still signed in at Company")).to_be_visible()
    assert look(page) == []
    page.get_by_role("link", name="Sign in again").press("Enter")
    page.get_by_role("link", name="Sign in with Company").press("Enter")
    page.wait_for_url("**/queue/")

    disconnect(page)


def test_signing_out_there_and_from_there(opened: Opened, office: Office, company: str) -> None:
    page = window(opened, office)
    connect(page, company)
    page.goto("/sign-in/")
    page.context.clear_cookies(name="sessionid")
    page.goto("/sign-in/")
    page.get_by_role("link", name="Sign in with Company").click()
    page.wait_for_url("**/queue/")

    # At the provider, which tells us.
    page.goto(f"{company}/session/end")
    at_provider(page, company, "Yes, sign me out")
    expect(page.get_by_text("Sign-out Success")).to_be_visible()
    page.goto("/calls/")
    page.wait_for_url("**/sign-in/?next=/calls/&ended=1")

    # Here, and then there.
    page.get_by_role("link", name="Sign in with Company").click()
    page.wait_for_url(f"{company}/**")
    page.locator("[name=login]").fill("alice.b")
    page.locator("[name=password]").fill("any")
    at_provider(page, company, "Sign-in")
    at_provider(page, company, "Continue")
    page.wait_for_url("**/calls/")
    page.get_by_role("button", name="Sign out").click()
    page.get_by_role("link", name="Sign out at Company").click()
    at_provider(page, company, "Yes, sign me out")
    page.wait_for_url("**/sign-in/**")


def test_somebody_comes_by_invitation(opened: Opened, office: Office, company: str) -> None:
    ivo = services.create_person("ivo", roles=[Role.VIEWER], by=office.alice)
    link = "/" + services.sign_in_link(ivo, by=office.alice).split("/", 3)[3]
    page = window(opened, office)
    page.goto(link)
    expect(page.get_by_text("You are signed in here as alice.")).to_be_visible()
    assert look(page) == []
    page.get_by_role("button", name="Sign out and go on").press("Enter")
    expect(page.get_by_text("It works once, for you alone.")).to_be_visible()
    assert look(page) == []
    page.get_by_role("button", name="Sign in with Company").press("Enter")
    assert look(page) == []
    page.get_by_role("link", name="Continue to Company").press("Enter")
    page.wait_for_url(f"{company}/**")
    page.locator("[name=login]").fill("alice.b")
    page.locator("[name=password]").fill("any")
    at_provider(page, company, "Sign-in")
    at_provider(page, company, "Continue")
    expect(page.get_by_role("banner").get_by_text("ivo")).to_be_visible()


@LANGUAGES
def test_a_first_password_is_set_after_confirming_at_the_provider(
    opened: Opened, office: Office, company: str, stack: Stack, chinese: bool
) -> None:
    ivo = services.create_person("ivo", roles=[Role.VIEWER], by=office.alice)
    page = window(opened, office)
    page.context.clear_cookies(name="sessionid")
    page.goto("/" + services.sign_in_link(ivo, by=office.alice).split("/", 3)[3])
    page.get_by_role("button", name="Sign in with Company").press("Enter")
    page.get_by_role("link", name="Continue to Company").press("Enter")
    page.wait_for_url(f"{company}/**")
    page.locator("[name=login]").fill("alice.b")
    page.locator("[name=password]").fill("any")
    at_provider(page, company, "Sign-in")
    at_provider(page, company, "Continue")

    said = phone(page, stack.web_url, chinese)
    page.goto("/profile/")
    expect(page.locator("[name=new_password1]")).to_have_count(0)
    press(page, "button", said("Confirm at Company", "在 Company 确认"))
    page.get_by_role(
        "heading", name=said("Confirm at your identity provider", "在身份提供方处确认")
    ).wait_for()
    picture(page, "first-password-to-provider")
    assert look(page) == []
    press(page, "link", said("Continue to the provider", "前往身份提供方"))
    page.wait_for_url(f"{company}/**")
    page.locator("[name=login]").fill("alice.b")
    page.locator("[name=password]").fill("any")
    at_provider(page, company, "Sign-in")
    page.wait_for_url("**/profile/")
    picture(page, "first-password-confirmed")
    assert look(page) == []
    for field in ("new_password1", "new_password2"):
        page.locator(f"[name={field}]").fill("four words nobody expects")
    press(page, "button", said("Set the password", "设置密码"))
    expect(page.get_by_text(said("Your password is set.", "密码已设置"))).to_be_visible()

    ivo.refresh_from_db()
    assert ivo.check_password("four words nobody expects")


@LANGUAGES
def test_a_decision_is_confirmed_at_the_provider(
    opened: Opened, office: Office, company: str, stack: Stack, chinese: bool
) -> None:
    page = window(opened, office)
    connect(page, company)
    page.context.clear_cookies(name="sessionid")
    asked = (Threshold(step_up=StepUp.TOTP),)
    mail = {**scenery.MAIL, "subject": "Confirmed elsewhere"}
    call_id = scenery.call(office.scout, office.send, mail, State.HELD, thresholds=asked)
    card = f"/queue/{call_id}/"
    page.goto(f"/sign-in/?next={card}")
    page.get_by_role("link", name="Sign in with Company").press("Enter")
    page.wait_for_url(f"**{card}")

    said = phone(page, stack.web_url, chinese)
    page.reload()
    confirm = said("Confirm at Company", "在 Company 确认")
    press(page, "button", confirm)
    press(page, "link", said("Cancel", "取消"))
    page.wait_for_url(f"**{card}")
    picture(page, "step-up-offered")
    press(page, "button", confirm)
    go_on = said("Continue to the provider", "前往身份提供方")
    page.get_by_role("link", name=go_on).wait_for()
    assert look(page) == []
    picture(page, "step-up-to-provider")
    press(page, "link", go_on)
    page.wait_for_url(f"{company}/**")
    # She is signed in there, and has to prove it anew.
    page.locator("[name=login]").fill("alice.b")
    page.locator("[name=password]").fill("any")
    at_provider(page, company, "Sign-in")
    page.wait_for_url(f"**{card}")

    expect(
        page.get_by_text(said("You confirmed this at Company", "您已在 Company 确认"))
    ).to_be_visible()
    assert not Vote.objects.filter(approval=call_id).exists()
    picture(page, "step-up-confirmed")
    page.set_viewport_size({"width": 1280, "height": 800})
    picture(page, "step-up-confirmed")
    assert look(page) == []
    # What was looked at stands open; while somebody denies, Approve is out of reach.
    page.reload()
    approve = page.get_by_role("button", name=said("Approve", "批准"), exact=True)
    expect(approve).to_be_enabled()
    approve.press("Enter")

    expect(page.locator("form.decision")).to_have_count(0)
    assert Call.objects.get(pk=call_id).state != State.HELD
    assert Vote.objects.get(approval=call_id).step_up == "oidc"
