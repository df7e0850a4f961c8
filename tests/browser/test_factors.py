"""Signing in with what proves somebody, in Chromium: by keyboard, on a phone, in both languages."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pyotp
import pytest
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.utils import timezone
from playwright.sync_api import Page, expect

from accounts import one_time_codes, password_reset, recovery_codes
from accounts.models import CodeApp, FactorRequirement, User
from accounts.roles import Role
from audit.models import Entry
from notifications.models import MailRecipient
from tests.browser.conftest import Opened
from tests.browser.scene import Office
from tests.browser.test_passkeys import SLOW, Window, window
from tests.console import scenery
from tests.console.scenery import PASSWORD
from tests.processes import Stack

__all__ = ["window"]

NEW = "a quiet harbour at dusk"
LANGUAGES = pytest.mark.parametrize("chinese", [False, True], ids=["en", "zh-hans"])
Said = Callable[[str, str], str]


def phone(page: Page, here: str, chinese: bool) -> Said:
    """A narrow window in one of the languages; says which of two texts it shows."""
    page.set_viewport_size({"width": 360, "height": 740})
    language = "zh-hans" if chinese else "en"
    page.context.add_cookies([{"name": "django_language", "value": language, "url": here}])
    return lambda english, translated: translated if chinese else english


def picture(page: Page, name: str) -> None:
    """Nothing is wider than the window; PICTURES is a directory for somebody who looks."""
    width = page.evaluate("innerWidth")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if directory := os.environ.get("PICTURES"):
        language = page.locator("html").get_attribute("lang")
        page.screenshot(path=f"{directory}/{name}-{language}-{width}.png", full_page=True)


def press(page: Page, role: str, name: str) -> None:
    target = page.get_by_role(role, name=name).first  # type: ignore[arg-type]
    target.focus()
    page.keyboard.press("Enter")


def follow(page: Page, name: str, there: str) -> None:
    press(page, "link", name)
    page.wait_for_url(there)


def type_in(page: Page, label: str, text: str, within: str = "body") -> None:
    page.locator(within).get_by_label(label, exact=True).focus()
    page.keyboard.insert_text(text)
    page.keyboard.press("Enter")


def sign_in(page: Page, here: str, there: str = "/profile/", name: str = "alice") -> None:
    page.goto(f"{here}/sign-in/?next={there}")
    page.locator("[name=username]").focus()
    page.keyboard.insert_text(name)
    page.keyboard.press("Tab")
    page.keyboard.insert_text(PASSWORD)
    page.keyboard.press("Enter")


@LANGUAGES
def test_recovery_codes_are_kept_and_one_signs_in(
    window: Window, office: Office, chinese: bool, tmp_path: Path
) -> None:
    page = window.page
    said = phone(page, window.here, chinese)
    page.goto(f"{window.here}/profile/")
    form = "form[action*='recovery-codes']"
    expect(page.locator("#proving")).to_contain_text(said("10 of 10 left", "剩余 10 个，共 10 个"))
    type_in(page, said("Your password", "您的密码"), PASSWORD, form)
    shown = page.locator("#recovery-codes")
    expect(shown).to_be_visible(timeout=SLOW)
    codes = shown.inner_text().split()
    picture(page, "recovery-codes")
    page.get_by_role("button", name=said("Copy", "复制")).press("Enter")
    with page.expect_download() as caught:
        press(page, "link", said("Download", "下载"))
    caught.value.save_as(tmp_path / "codes.txt")
    assert (tmp_path / "codes.txt").read_text().split() == codes
    press(page, "link", said("I have kept them", "我已妥善保存"))
    expect(page).to_have_url(f"{window.here}/profile/#proving")
    picture(page, "profile")

    page.context.clear_cookies(name="sessionid")
    window.other_device()
    sign_in(page, window.here)
    another_way = page.locator("summary", has_text=said("Use a recovery code", "使用恢复码"))
    another_way.press("Enter", timeout=SLOW)
    picture(page, "second-step")
    type_in(page, said("Recovery code", "恢复码"), codes[4])

    expect(page.get_by_text(said("9 are left", "还剩 9 个"))).to_be_visible(timeout=SLOW)
    assert recovery_codes.count_left(office.alice) == 9
    page.set_viewport_size({"width": 1280, "height": 800})
    picture(page, "profile")


@LANGUAGES
def test_sessions_are_listed_and_ended(
    opened: Opened, office: Office, stack: Stack, chinese: bool
) -> None:
    here, page = stack.web_url, opened()
    said = phone(page, here, chinese)
    others = [opened() for _browser in range(3)]
    for one in (*others, page):
        sign_in(one, here)
        expect(one).to_have_url(f"{here}/profile/", timeout=SLOW)

    press(page, "link", said("Where you are signed in", "您在何处登录"))
    expect(page.get_by_text(said("This session", "当前会话"))).to_be_visible()
    ends = page.get_by_role("link", name=said("End Chrome, Linux", "结束 Chrome, Linux"))
    expect(ends).to_have_count(3)
    picture(page, "sessions")
    ends.first.press("Enter")
    press(page, "link", said("Cancel", "取消"))
    ends.first.press("Enter")
    picture(page, "session-ending")
    press(page, "button", said("End the session", "结束此会话"))
    expect(ends).to_have_count(2)
    press(page, "link", said("End all other sessions", "结束所有其他会话"))
    press(page, "button", said("End all other sessions", "结束所有其他会话"))
    expect(page.get_by_text(said("2 sessions have ended", "已结束 2 个会话"))).to_be_visible()
    expect(ends).to_have_count(0)
    page.set_viewport_size({"width": 1280, "height": 800})
    picture(page, "sessions")

    for one in others:
        one.goto(f"{here}/profile/")
        expect(one.locator("[name=username]")).to_be_visible()


@LANGUAGES
def test_a_forgotten_password_is_set_anew(
    window: Window, office: Office, chinese: bool, stack: Stack
) -> None:
    page, here = window.page, window.here
    MailRecipient.objects.create(
        person=office.alice, address="alice@example.org", confirmed_at=timezone.now()
    )
    said = phone(page, here, chinese)
    page.goto(f"{here}/profile/notifications/")
    picture(page, "allow-reset")
    form = "form[action*='password-reset']"
    type_in(page, said("Your password", "您的密码"), PASSWORD, form)
    stop = said("Send no links for a new password", "不再发送设置新密码的链接")
    press(page, "button", stop)
    allow = said("Allow links for a new password", "允许发送设置新密码的链接")
    expect(page.get_by_role("button", name=allow)).to_be_visible(timeout=SLOW)
    type_in(page, said("Your password", "您的密码"), PASSWORD, form)
    expect(page.get_by_role("button", name=stop)).to_be_visible(timeout=SLOW)

    page.context.clear_cookies(name="sessionid")
    page.goto(f"{here}/sign-in/")
    follow(page, said("Forgot your password?", "忘记密码？"), "**/password-reset/")
    follow(page, said("Back to sign-in", "返回登录"), "**/sign-in/")
    follow(page, said("Forgot your password?", "忘记密码？"), "**/password-reset/")
    picture(page, "ask-reset")
    type_in(page, said("E-mail address", "电子邮件地址"), "alice@example.org")
    expect(page.get_by_role("status")).to_contain_text(said("on its way", "链接已发出"))
    picture(page, "asked-reset")
    follow(page, said("Back to sign-in", "返回登录"), "**/sign-in/")

    office.alice.refresh_from_db()
    link = f"{here}/password-reset/{password_reset.link_text(office.alice)}/"
    page.goto(link)
    picture(page, "new-password")
    page.get_by_label(said("New password", "新密码"), exact=True).focus()
    page.keyboard.insert_text(NEW)
    type_in(page, said("New password again", "再次输入新密码"), NEW)
    use = said("Use a passkey", "使用通行密钥")
    expect(page.get_by_role("button", name=use)).to_be_visible(timeout=SLOW)
    press(page, "button", use)

    expect(page.get_by_role("banner").get_by_text("alice")).to_be_visible(timeout=SLOW)
    office.alice.refresh_from_db()
    assert office.alice.check_password(NEW)


def test_a_used_link_leads_to_another(opened: Opened, office: Office, stack: Stack) -> None:
    password_reset.set_allowed(office.alice, True)
    link = f"{stack.web_url}/password-reset/{password_reset.link_text(office.alice)}/"
    page = opened(will_complain_of=("403",))
    page.goto(link)
    follow(page, "Back to sign-in", "**/sign-in/")
    page.go_back()
    page.get_by_label("New password", exact=True).focus()
    page.keyboard.insert_text(NEW)
    type_in(page, "New password again", NEW)
    expect(page.get_by_role("status")).to_contain_text("Your password is set", timeout=SLOW)

    page.goto(link)
    press(page, "link", "Have another link sent")

    expect(page.get_by_role("button", name="Send the link")).to_be_visible()


@LANGUAGES
def test_a_group_needs_a_second_factor_and_its_people_set_one_up(
    window: Window, office: Office, opened: Opened, chinese: bool
) -> None:
    page, here = window.page, window.here
    office.alice.groups.add(Group.objects.get(name=Role.ADMINISTRATOR))
    office.bob.groups.set([Group.objects.get(name=Role.VIEWER)])
    office.bob.set_password(PASSWORD)
    office.bob.save()
    said = phone(page, here, chinese)
    page.goto(f"{here}/people/")
    page.get_by_label(said("Viewer", "只读用户")).press("Space")
    picture(page, "require-factor")
    press(page, "button", said("Save the requirement", "保存"))
    expect(page.get_by_text(said("are as chosen", "已按所选保存"))).to_be_visible()
    expect(page.get_by_label(said("Viewer", "只读用户"))).to_be_checked()
    page.set_viewport_size({"width": 1280, "height": 800})
    picture(page, "require-factor")

    theirs = opened()
    other = Window(theirs, here)
    phone(theirs, here, chinese)
    sign_in(theirs, here, "/calls/", "bob")
    theirs.wait_for_url("**/sign-in/set-up/**", timeout=SLOW)
    press(theirs, "button", said("Sign out", "退出登录"))
    theirs.wait_for_url("**/sign-in/")
    sign_in(theirs, here, "/calls/", "bob")
    theirs.wait_for_url("**/sign-in/set-up/**", timeout=SLOW)
    picture(theirs, "set-up-factor")
    add = "form[data-passkey]"
    theirs.locator(add).get_by_label(said("Name", "名称")).focus()
    theirs.keyboard.insert_text("Phone")
    type_in(theirs, said("Your password", "您的密码"), PASSWORD, add)
    expect(theirs.locator("#recovery-codes")).to_be_visible(timeout=SLOW)
    follow(theirs, said("I have kept them", "我已妥善保存"), "**/calls/")
    assert other.device
    assert office.bob.passkeys.usable().count() == 1


@LANGUAGES
def test_a_passkey_signs_in_without_name_or_password(
    window: Window, office: Office, chinese: bool
) -> None:
    page, here = window.page, window.here
    said = phone(page, here, chinese)
    page.context.clear_cookies(name="sessionid")
    page.goto(f"{here}/calls/?state=live")
    use = page.get_by_role("button", name=said("Sign in with a passkey", "使用通行密钥登录"))
    expect(use).to_be_visible()
    picture(page, "sign-in")
    page.set_viewport_size({"width": 1280, "height": 800})
    picture(page, "sign-in")
    use.press("Enter")

    expect(page).to_have_url(f"{here}/calls/?state=live", timeout=SLOW)
    expect(page.get_by_role("banner").get_by_text("alice")).to_be_visible()

    # Another device knows nobody here.
    page.context.clear_cookies(name="sessionid")
    window.other_device()
    page.goto(f"{here}/sign-in/")
    use.press("Enter")
    expect(page.get_by_text(said("The device declined", "设备拒绝"))).to_be_visible(timeout=SLOW)


def code_of(person: User, steps_ago: int = 0) -> str:
    """As their app shows it; of three steps in a row each works once."""
    app = CodeApp.objects.get(person=person)
    return pyotp.TOTP(one_time_codes.secret(app)).at(time.time() - 30 * steps_ago)


def set_up_app(page: Page, person: User, said: Said) -> None:
    page.wait_for_url("**/sign-in/set-up/**", timeout=SLOW)
    form = "form[action$='/profile/codes/']"
    type_in(page, said("Your password", "您的密码"), PASSWORD, form)
    expect(page.locator("form[action$='/codes/confirm/']")).to_be_visible(timeout=SLOW)
    picture(page, "set-up-app")
    page.locator("[name=code]").focus()
    page.keyboard.insert_text(code_of(person, steps_ago=1))
    page.keyboard.press("Enter")
    expect(page.locator("#recovery-codes")).to_be_visible(timeout=SLOW)
    follow(page, said("I have kept them", "我已妥善保存"), "**/calls/")


@LANGUAGES
def test_a_lost_phone_is_replaced_with_the_hosts_help(
    opened: Opened, office: Office, stack: Stack, chinese: bool
) -> None:
    """The app's codes sign in; without it and without recovery codes, the host takes both away, and
    the role that needs a second factor leads to a new one."""
    here, bob, page = stack.web_url, office.bob, opened(will_complain_of=("403",))
    viewer = Group.objects.get(name=Role.VIEWER)
    FactorRequirement.objects.create(group=viewer)
    bob.groups.set([viewer])
    bob.set_password(PASSWORD)
    bob.save()
    said = phone(page, here, chinese)
    sign_in(page, here, "/calls/", "bob")
    set_up_app(page, bob, said)

    page.context.clear_cookies(name="sessionid")
    sign_in(page, here, "/calls/", "bob")
    type_in(page, said("Code of your app", "验证器应用的验证码"), "000000")
    expect(page.get_by_role("alert")).to_be_visible(timeout=SLOW)
    type_in(page, said("Code of your app", "验证器应用的验证码"), code_of(bob))
    page.wait_for_url("**/calls/", timeout=SLOW)

    recovery_codes.remove(bob)
    page.context.clear_cookies(name="sessionid")
    sign_in(page, here, "/calls/", "bob")
    expect(page.get_by_text("manage.py reset_factors bob")).to_be_visible(timeout=SLOW)
    expect(page.get_by_text(said("Use a recovery code", "使用恢复码"))).to_have_count(0)
    picture(page, "lost-phone")
    call_command("reset_factors", "bob")
    follow(page, said("Sign in as another user", "以其他身份登录"), f"{here}/sign-in/")
    sign_in(page, here, "/calls/", "bob")
    set_up_app(page, bob, said)

    entry = Entry.objects.get(action="person.factors_reset")
    assert (entry.actor, entry.details["person"]) == ("command line", "bob")


@LANGUAGES
def test_two_administrators_help_who_lost_a_phone(
    window: Window, office: Office, opened: Opened, chinese: bool
) -> None:
    """Each confirms with a passkey; then the role that needs a second factor leads to a new one."""
    here, bob = window.here, office.bob
    scenery.person("eve", Role.ADMINISTRATOR, password=PASSWORD)
    office.alice.groups.add(Group.objects.get(name=Role.ADMINISTRATOR))
    viewer = Group.objects.get(name=Role.VIEWER)
    FactorRequirement.objects.create(group=viewer)
    bob.groups.set([viewer])
    bob.set_password(PASSWORD)
    bob.save()
    theirs = opened()
    said = phone(theirs, here, chinese)
    sign_in(theirs, here, "/calls/", "bob")
    set_up_app(theirs, bob, said)
    other = Window(opened(), here)
    sign_in(other.page, here, "/profile/", "eve")
    expect(other.page).to_have_url(f"{here}/profile/", timeout=SLOW)
    other.add_passkey()
    for page in (window.page, other.page):
        phone(page, here, chinese)
    lost = said("Lost second factor", "丢失双重验证设备")

    # The first one asks.
    page = window.page
    page.goto(f"{here}/people/")
    follow(page, "bob", f"**/people/{bob.pk}/")
    follow(page, lost, "**/factors/")
    picture(page, "lost-factor")
    box = page.locator("form[data-sign-in] button").bounding_box()
    card = page.locator("form[data-sign-in]").bounding_box()
    assert box
    assert card
    assert box["x"] + box["width"] <= card["x"] + card["width"]
    type_in(page, said("Reason", "原因"), "Telephone lost.", "form[data-sign-in]")
    waits = said("Another administrator has to confirm it", "须由另一位管理员确认")
    expect(page.get_by_text(waits)).to_be_visible(timeout=SLOW)
    follow(page, lost, "**/factors/")
    expect(page.get_by_text(said("Another administrator than", "须由申请人"))).to_be_visible()
    picture(page, "lost-factor-asked")

    # The second one finds it, and a device that does not know her confirms nothing.
    page = other.page
    page.goto(f"{here}/people/")
    picture(page, "lost-factors")
    follow(page, "bob", "**/factors/")
    remove = said(
        "Remove the second factors, with your passkey", "移除双重验证（使用您的通行密钥）"
    )
    verified = {"authenticatorId": other.device, "isUserVerified": False}
    other.cdp.send("WebAuthn.setUserVerified", verified)
    press(page, "button", remove)
    expect(page.get_by_text(said("The device declined", "设备拒绝"))).to_be_visible(timeout=SLOW)
    assert CodeApp.objects.filter(person=bob).exists()
    other.cdp.send("WebAuthn.setUserVerified", verified | {"isUserVerified": True})
    press(page, "button", remove)
    expect(page.get_by_text(said("“bob” are removed", "的双重验证已移除"))).to_be_visible(
        timeout=SLOW
    )
    picture(page, "lost-factor-removed")

    assert not CodeApp.objects.filter(person=bob).exists()
    theirs.goto(f"{here}/calls/")
    expect(theirs.locator("[name=username]")).to_be_visible()
    sign_in(theirs, here, "/calls/", "bob")
    set_up_app(theirs, bob, said)
    entry = Entry.objects.get(action="person.factors_reset")
    assert (entry.actor, entry.reason, entry.details["asked_by"]) == (
        "eve", "Telephone lost.", "alice"
    )  # fmt: skip
