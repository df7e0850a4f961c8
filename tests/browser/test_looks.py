"""How lists, lines and buttons look in a narrow window, in a dark theme and in Chinese."""

import pytest
from django.contrib.auth.models import Group
from django.utils.timezone import now
from playwright.sync_api import Locator, expect

from accounts.models import User
from accounts.roles import Role
from tests.browser.conftest import Opened
from tests.browser.scene import Office
from tests.console import scenery

PASSWORD = "a wide staircase"
PHONE = {"width": 360, "height": 780}
# On how many lines a word of the page's text stands, where it is seen.
LINES = """(word) => {
  const walker = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT);
  const lines = [];
  while (walker.nextNode()) {
    const at = walker.currentNode.data.indexOf(word);
    if (at < 0) continue;
    const range = document.createRange();
    range.setStart(walker.currentNode, at);
    range.setEnd(walker.currentNode, at + word.length);
    const tops = Array.from(range.getClientRects(), (one) => Math.round(one.top));
    if (tops.length) lines.push(new Set(tops).size);
  }
  return lines;
}"""
BUTTON = "(one) => getComputedStyle(one, '::file-selector-button').borderTopColor"


@pytest.fixture
def ada(office: Office) -> User:
    """Of every role, in a house with three groups more."""
    ada = scenery.person("ada", *Role, password=PASSWORD)
    for name in ("Payments", "Payments operator", "Support of the northern region"):
        Group.objects.create(name=name)
    return ada


def style(of: Locator, name: str) -> object:
    return of.evaluate("(one, name) => getComputedStyle(one)[name]", name)


@pytest.mark.long
@pytest.mark.parametrize(
    ("address", "word"),
    [
        ("/people/", "只读用户"),
        ("/servers/{server}/sign-in/", "标头中"),
        ("/access/?person=ada", "审计员"),
        ("/access/?person=ada", "待审批调用"),
    ],
)
def test_a_chinese_word_stands_on_one_line_of_a_phone(
    opened: Opened, ada: User, office: Office, address: str, word: str
) -> None:
    page = opened(ada, viewport=PHONE, locale="zh-CN")
    page.goto(address.format(server=office.send.server.slug))

    lines = page.evaluate(LINES, word)
    assert lines
    assert set(lines) == {1}


@pytest.mark.long
@pytest.mark.parametrize(("locale", "way"), [("zh-CN", "keep-all"), ("en-US", "normal")])
def test_what_stands_below_a_figure_breaks_between_parts_in_chinese(
    opened: Opened, ada: User, locale: str, way: str
) -> None:
    page = opened(ada, viewport=PHONE, locale=locale)
    page.goto("/overview/")

    assert style(page.locator(".figures .beside").first, "wordBreak") == way


@pytest.mark.long
def test_a_short_list_of_choices_is_seen_whole_on_a_phone(
    opened: Opened, ada: User, office: Office
) -> None:
    page = opened(ada, viewport=PHONE)
    page.goto(f"/people/{office.bob.pk}/")

    window = page.locator(".choices > div").first
    expect(window.get_by_role("checkbox")).to_have_count(8)
    assert window.evaluate("(one) => one.scrollHeight <= one.clientHeight")


@pytest.mark.long
def test_what_ends_something_looks_like_it_before_it_is_confirmed(
    opened: Opened, ada: User
) -> None:
    ada.identities.create(issuer="https://id.example.org", subject="ada", last_used_at=now())
    page = opened(ada, color_scheme="dark")
    page.goto("/profile/")
    fold = page.locator("#identities summary").first
    button = page.locator("#identities .button.danger").first

    expect(fold).to_be_visible()
    for name in ("borderTopStyle", "borderTopColor", "color", "backgroundColor"):
        assert style(fold, name) == style(button, name)
    fold.press("Enter")
    expect(button).to_be_visible()
    assert style(fold, "borderTopStyle") == "none"


@pytest.mark.long
def test_the_button_of_a_file_has_an_edge_in_a_dark_theme(opened: Opened, ada: User) -> None:
    page = opened(ada, color_scheme="dark")
    page.goto("/policies/plans/")
    field = page.locator("input[type=file]").first

    assert field.evaluate(BUTTON) == style(field, "borderTopColor")


@pytest.mark.long
@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_both_ways_to_a_new_schedule_stand_on_one_line_of_a_phone(
    opened: Opened, ada: User, locale: str
) -> None:
    page = opened(ada, viewport=PHONE, is_mobile=True, has_touch=True, locale=locale)
    page.goto("/on-call/")

    tops = page.locator(".head .button").evaluate_all(
        "(all) => all.map((one) => one.getBoundingClientRect().top)"
    )
    assert len(tops) == 2
    assert len(set(tops)) == 1
