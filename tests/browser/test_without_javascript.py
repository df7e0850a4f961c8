"""Signing in, approving and denying with JavaScript off, on a phone, in both languages."""

import pytest
from playwright.sync_api import expect

from approvals.models import Approval
from calls.models import Call
from calls.record.states import State
from tests.browser.conftest import Opened
from tests.browser.scene import Office
from tests.browser.test_factors import LANGUAGES, phone, picture, sign_in
from tests.browser.test_passkeys import SLOW
from tests.processes import Stack


@LANGUAGES
@pytest.mark.parametrize("address", ["/queue/", "/audit/?live=1"])
def test_a_page_says_that_nothing_changes_by_itself(
    opened: Opened, office: Office, stack: Stack, chinese: bool, address: str
) -> None:
    page = opened(java_script_enabled=False)
    said = phone(page, stack.web_url, chinese)
    sign_in(page, stack.web_url, address)
    again = page.get_by_role("link", name=said("Reload the page", "刷新页面"))
    expect(again).to_be_visible()
    expect(page.locator(".of-scripts:visible")).to_have_count(0)
    again.press("Enter")
    expect(page).to_have_url(f"{stack.web_url}{address}")


@LANGUAGES
def test_one_signs_in_approves_and_denies_with_a_reason(
    opened: Opened, office: Office, stack: Stack, chinese: bool
) -> None:
    page = opened(java_script_enabled=False)
    here = stack.web_url
    said = phone(page, here, chinese)
    sign_in(page, here, f"/queue/{office.held}/")
    card = page.locator(f"#card-{office.held}")
    expect(card).to_be_visible(timeout=SLOW)
    picture(page, "card-without-javascript")
    card.get_by_role("button", name=said("Approve", "批准"), exact=True).press("Enter")
    approved = said(
        "You approved mailer.send_mail for scout.", "您为 scout 批准了 mailer.send_mail。"
    )
    expect(page.get_by_text(approved)).to_be_visible()
    assert Call.objects.get(pk=office.held).state == State.QUEUED

    other = Approval.objects.waiting().get().call
    page.goto(f"{here}/queue/{other.pk}/")
    card = page.locator(f"#card-{other.pk}")
    card.locator(".refusal > summary").press("Enter")
    card.get_by_label(said("not now", "暂不执行")).check(force=True)
    picture(page, "deny-without-javascript")
    card.get_by_role("button", name=said("Deny", "拒绝"), exact=True).press("Enter")
    agent, tool = other.agent.name, other.tool_name
    denied = said(f"You denied {tool} for {agent}.", f"您拒绝了 {agent} 对 {tool} 的调用。")
    expect(page.get_by_text(denied)).to_be_visible()
    assert Call.objects.get(pk=other.pk).state == State.DENIED
