"""What people set for themselves: password, passkeys, an app's codes."""

import time

import pyotp
import pytest
from playwright.sync_api import Page, expect

from accounts.models import CodeApp, Passkey
from tests.browser.conftest import Opened
from tests.browser.every_page import ISSUER
from tests.browser.scene import Office
from tests.browser.test_passkeys import SLOW, Window, window
from tests.console.scenery import PASSWORD

pytestmark = pytest.mark.long

__all__ = ["window"]
NEW = "a quiet harbour at dusk"


def test_a_password_is_changed_and_opens(opened: Opened, alice: Page, office: Office) -> None:
    alice.goto("/profile/")
    form = alice.locator("form", has_text="Set the password")
    form.get_by_label("Old password").fill(PASSWORD)
    form.get_by_label("New password", exact=True).fill(NEW)
    form.get_by_label("New password again").fill(NEW)
    form.get_by_role("button", name="Set the password").click()
    expect(alice.get_by_text("Your password is set.")).to_be_visible(timeout=SLOW)

    page = opened()
    page.goto("/sign-in/")
    page.get_by_label("Name").fill("alice")
    page.get_by_label("Password").fill(NEW)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("banner").get_by_text("alice")).to_be_visible(timeout=SLOW)


def test_pages_are_read_in_chinese_and_in_english_again(alice: Page, office: Office) -> None:
    alice.goto("/profile/")
    alice.get_by_role("button", name="简体中文").press("Enter")
    expect(alice.locator("html")).to_have_attribute("lang", "zh-hans")
    expect(alice.get_by_role("form", name="语言")).to_be_visible()
    alice.goto("/queue/")
    expect(alice.get_by_role("heading", level=1)).to_have_text("审批队列")

    alice.goto("/profile/")
    alice.get_by_role("button", name="English").click()
    expect(alice.locator("html")).to_have_attribute("lang", "en")


def test_an_account_at_a_provider_is_disconnected(alice: Page, office: Office) -> None:
    office.alice.identities.create(issuer=ISSUER, subject="248289", label="alice@example.org")
    alice.goto("/profile/")
    row = alice.locator("#identities li", has_text="alice@example.org")
    row.get_by_text("Disconnect").first.press("Enter")
    row.get_by_label("Your password").fill(PASSWORD)
    row.get_by_role("button", name="Disconnect").press("Enter")

    expect(alice.get_by_text("The account is disconnected.")).to_be_visible(timeout=SLOW)
    assert not office.alice.identities.connected().exists()


def test_a_passkey_is_renamed_and_removed(window: Window) -> None:
    page = window.page
    row = page.locator("#proving li", has_text="Laptop")
    row.get_by_text("Name or remove").press("Enter")
    row.get_by_label("Name").fill("Old laptop")
    row.get_by_role("button", name="Save the name").click()
    row = page.locator("#proving li", has_text="Old laptop")
    expect(row).to_be_visible()

    row.get_by_text("Name or remove").click()
    row.get_by_label("Your password").fill(PASSWORD)
    row.get_by_role("button", name="Remove").click()

    expect(page.locator("#proving")).to_contain_text("You have none yet.", timeout=SLOW)
    assert not Passkey.objects.usable().exists()


def test_an_app_for_codes_is_set_up_and_removed(alice: Page, office: Office) -> None:
    alice.goto("/profile/")
    proving = alice.locator("#proving")
    set_up(proving)
    proving.get_by_role("button", name="Cancel").press("Enter")
    expect(proving.get_by_role("button", name="Set up an app")).to_be_visible()

    set_up(proving)
    proving.get_by_text("The secret as text").click()
    secret = proving.locator("code").inner_text()
    proving.get_by_label("Code").fill(pyotp.TOTP(secret.replace(" ", "")).at(int(time.time())))
    alice.keyboard.press("Enter")
    alice.get_by_role("link", name="I have kept them").press("Enter")
    expect(proving.get_by_text("Set up", exact=False).first).to_be_visible()
    assert CodeApp.objects.exclude(confirmed_at=None).exists()

    codes = proving.locator("form[action*='codes/remove']")
    codes.get_by_label("Your password").fill(PASSWORD)
    codes.get_by_role("button", name="Remove").click()
    expect(proving.get_by_role("button", name="Set up an app")).to_be_visible(timeout=SLOW)
    assert not CodeApp.objects.exists()


def set_up(proving) -> None:
    form = proving.locator("form", has_text="Set up an app")
    form.get_by_label("Your password").fill(PASSWORD)
    form.get_by_role("button", name="Set up an app").click()
    picture = proving.get_by_role("img", name="The secret, as a QR code")
    expect(picture).to_be_visible(timeout=SLOW)
    # Nobody reads what has not come yet; once the app is confirmed, it never comes.
    picture.evaluate("(image) => image.decode()")
