"""Tokens of service accounts that change things: confirmed by passkey or code, on a phone."""

import pyotp
import pytest
from django.contrib.auth.models import Group
from playwright.sync_api import Page, expect

from accounts import one_time_codes, service_accounts
from accounts.models import ServiceToken
from accounts.roles import Role
from audit.models import Entry
from tests.browser.conftest import Opened
from tests.browser.scene import Office
from tests.browser.test_axe import look
from tests.browser.test_factors import LANGUAGES, Said, code_of, phone, picture, press
from tests.browser.test_passkeys import SLOW, Window, window
from tests.processes import Stack

__all__ = ["window"]
ADDRESS = "/service-accounts/deploy/"


@pytest.fixture(autouse=True)
def deploy(office: Office) -> None:
    """An account of alice's that may change servers."""
    office.alice.groups.add(Group.objects.get(name=Role.ADMINISTRATOR))
    scopes = ["registry.change_server", "registry.view_server"]
    service_accounts.create("deploy", purpose="Deploys servers", scopes=scopes, by=office.alice)


def ask(page: Page, here: str, said: Said) -> None:
    page.goto(f"{here}{ADDRESS}")
    press(page, "button", said("Create token", "创建令牌"))
    asked = said("Let deploy make changes?", "允许 deploy 执行更改吗？")
    expect(page.get_by_role("heading", name=asked)).to_be_visible()
    assert look(page) == []
    assert not ServiceToken.objects.exists()


def is_made(page: Page, said: Said) -> None:
    shown = said("The new token, shown this once", "新令牌")
    expect(page.get_by_text(shown).first).to_be_visible(timeout=SLOW)
    assert look(page) == []
    assert ServiceToken.objects.count() == 1
    assert Entry.objects.filter(action="service_token.issued", details__has_key="proof").exists()


@LANGUAGES
def test_a_passkey_confirms_it(window: Window, chinese: bool) -> None:
    said = phone(window.page, window.here, chinese)
    ask(window.page, window.here, said)
    picture(window.page, "service-token-passkey")

    press(window.page, "link", said("Cancel", "取消"))
    ask(window.page, window.here, said)
    press(window.page, "button", said("Confirm with a passkey", "使用通行密钥确认"))

    is_made(window.page, said)


@LANGUAGES
def test_a_code_confirms_it(opened: Opened, office: Office, stack: Stack, chinese: bool) -> None:
    app = one_time_codes.begin(office.alice)
    one_time_codes.confirm(office.alice, code_of(office.alice, steps_ago=1))
    page = opened(office.alice, will_complain_of=("403",))
    said = phone(page, stack.web_url, chinese)
    ask(page, stack.web_url, said)
    picture(page, "service-token-code")
    page.locator("[name=code]").fill("000000")
    press(page, "button", said("Confirm with a code", "使用动态验证码确认"))
    expect(page.get_by_role("alert").first).to_be_visible()
    picture(page, "service-token-wrong-code")

    page.locator("[name=code]").fill(pyotp.TOTP(one_time_codes.secret(app)).now())
    press(page, "button", said("Confirm with a code", "使用动态验证码确认"))

    is_made(page, said)


def test_who_has_neither_is_led_to_the_profile(
    opened: Opened, office: Office, stack: Stack
) -> None:
    page = opened(office.alice)
    said = phone(page, stack.web_url, False)
    ask(page, stack.web_url, said)
    picture(page, "service-token-neither")

    press(page, "link", "Open your profile")

    page.wait_for_url("**/profile/#proving")
