"""JavaScript off: every page can be read and its controls work, in both languages; and signing in,
approving and denying on a phone."""

import pytest
from playwright.sync_api import expect

from approvals.models import Approval
from calls.models import Call
from calls.record.states import State
from tests.browser import reading
from tests.browser.conftest import Opened
from tests.browser.every_page import every_page, everybody, furnish, further
from tests.browser.scene import Office
from tests.browser.test_factors import LANGUAGES, phone, picture, sign_in
from tests.browser.test_passkeys import SLOW
from tests.processes import Stack

# All at once would take longer than a test may.
PARTS = 5
# What can be seen and does nothing when it is pressed: no form sends it, no link leads on. What is
# filled in once the page is open has a link to it instead.
DEAD = """() => {
  const shown = (e) => e.checkVisibility({visibilityProperty: true});
  const says = (e) => `${e.tagName} ${(e.innerText || e.outerHTML).slice(0, 80)}`;
  const buttons = [...document.querySelectorAll("main button:not(:disabled), header button")];
  const dead = buttons.filter((e) => shown(e) && (!e.form || e.type !== "submit"));
  const later = [...document.querySelectorAll("[hx-trigger~=load]")];
  const blank = later.filter((e) => shown(e) && !e.querySelector("a[href]"));
  const scripts = [...document.querySelectorAll(".of-scripts")].filter(shown);
  return [...dead, ...blank, ...scripts].map(says);
}"""


@pytest.mark.long
@pytest.mark.parametrize("locale", ["en-GB", "zh-CN"])
@pytest.mark.parametrize("part", range(PARTS))
def test_every_page_is_read_and_every_control_works(
    opened: Opened, office: Office, part: int, locale: str
) -> None:
    ada = everybody("ada")
    furnish(office, ada)
    pages = [*every_page(office, ada), *further(office)][part::PARTS]
    page = opened(ada, java_script_enabled=False, locale=locale)
    wrong: dict[str, list[str]] = {}
    for address in pages:
        page.goto(address)
        expect(page.locator("h1")).to_be_visible()
        if said := [*page.evaluate(DEAD), *reading.complaints(page)]:
            wrong[address] = said
    assert wrong == {}


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


def test_what_does_nothing_is_found(opened: Opened, office: Office) -> None:
    page = opened(office.alice, java_script_enabled=False)
    page.goto("/calls/")
    assert page.evaluate(DEAD) == []
    for spoiled in (
        "<button type='button'>Copy</button>",
        "<button>Nowhere</button>",
        "<div hx-get='/calls/' hx-trigger='load'>Loading</div>",
    ):
        page.evaluate("html => document.querySelector('main').innerHTML = html", spoiled)
        assert len(page.evaluate(DEAD)) == 1, spoiled
