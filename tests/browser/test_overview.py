"""The overview, as somebody uses it who has just signed in."""

import re
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

from accounts.roles import Role
from calls.models import Call
from tests.browser.conftest import Opened
from tests.browser.hands import type_time
from tests.browser.scene import Office
from tests.console import scenery

pytestmark = pytest.mark.long

BAR = ".stacked svg a"
# Of the legend, the surface behind it, and a state that charts do not show. A canvas turns any
# notation of a colour into its bytes.
COLOURS = """(legend) => {
  const context = Object.assign(document.createElement("canvas"), {width: 1, height: 1})
    .getContext("2d", {willReadFrequently: true});
  const bytes = (colour) => {
    context.fillStyle = colour;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data].slice(0, 3).join(" ");
  };
  const unknown = Object.assign(document.createElement("span"), {className: "state"});
  unknown.dataset.state = "unknown";
  legend.append(unknown);
  const found = {unknown: bytes(getComputedStyle(unknown).color)};
  unknown.remove();
  for (let e = legend; !found.surface; e = e.parentElement) {
    const behind = getComputedStyle(e).backgroundColor;
    if (behind !== "rgba(0, 0, 0, 0)") found.surface = bytes(behind);
  }
  for (const key of legend.querySelectorAll(".key")) {
    found[key.dataset.outcome] = bytes(getComputedStyle(key, "::before").backgroundColor);
  }
  return found;
}"""


def luminance(colour: str) -> float:
    parts = [int(part) / 255 for part in colour.split()]
    r, g, b = (v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def test_a_bar_and_its_row_lead_to_their_calls(alice: Page, office: Office) -> None:
    alice.goto("/overview/")
    alice.get_by_role("link", name="7 d").click()
    expect(alice).to_have_url(re.compile(r"range=7d$"))
    alice.get_by_role("link", name="30 d").press("Enter")
    expect(alice.get_by_role("link", name="30 d")).to_have_attribute("aria-current", "true")

    alice.locator(BAR).last.press("Enter")
    alice.wait_for_url("**/calls/?since=**")
    expect(alice.locator(".list tbody tr")).to_have_count(Call.objects.count())
    alice.go_back()
    alice.locator(BAR).last.click()
    alice.wait_for_url("**/calls/?since=**")
    alice.go_back()
    alice.get_by_role("link", name="Skip the chart").press("Enter")
    alice.get_by_text("As a table").press("Enter")
    alice.locator("#step-figures th a").first.click()
    alice.wait_for_url("**/calls/?since=**")


def test_a_bar_says_what_it_stands_for(alice: Page) -> None:
    alice.goto("/overview/")

    expect(alice.locator(BAR).last).to_have_attribute(
        "aria-label", re.compile(r"\d\d:\d\d – \d\d:\d\d: \d+ calls, \d+ errors?")
    )


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize(
    ("page", "legend"), [("/overview/", ".stacked figcaption"), ("/audit/", ".stacked .legend")]
)
def test_each_outcome_in_a_chart_has_a_colour_of_its_own(
    alice: Page, page: str, legend: str, theme: Literal["light", "dark"]
) -> None:
    alice.emulate_media(color_scheme=theme)
    alice.goto(page)

    colours = alice.locator(legend).first.evaluate(COLOURS)

    assert len(colours) == 7
    assert len(set(colours.values())) == len(colours)
    surface = luminance(colours.pop("surface"))
    for name, colour in colours.items():
        low, high = sorted((surface, luminance(colour)))
        assert (high + 0.05) / (low + 0.05) >= 3, name
    # And what is not told apart by its colour is by its stripes.
    assert alice.locator(".stacked #stripes").count() == 1


@pytest.mark.parametrize(
    ("line", "there"),
    [
        ("to approve or deny", "/queue/"),
        ("unresolved outcome", "/calls/unknown/"),
        ("server unreachable", "/servers/"),
        ("to review", "/catalogue/?state=unpublished"),
    ],
)
def test_what_needs_somebody_leads_to_where_it_is_done(alice: Page, line: str, there: str) -> None:
    alice.goto("/overview/")

    alice.get_by_role("region", name="Needs you").get_by_role("link", name=line).press("Enter")

    alice.wait_for_url(f"**{there}")


def test_tops_and_figures_lead_on(alice: Page) -> None:
    for heading, link, there in (
        ("Top tools", "mailer.send_mail", "/tools/mailer.send_mail/usage/"),
        ("Top agents", "scout", "/calls/?agent=scout"),
        ("Top servers", "mailer", "/servers/mailer/"),
    ):
        alice.goto("/overview/")
        alice.get_by_role("region", name=heading).get_by_role("link", name=link).click()
        alice.wait_for_url(f"**{there}")
    for figure in ("/queue/", "/servers/"):
        alice.goto("/overview/")
        alice.locator(f".figures a[href='{figure}']").click()
        alice.wait_for_url(f"**{figure}")


def test_the_checklist_leads_to_what_is_left(opened: Opened, office: Office) -> None:
    ada = scenery.person("ada", Role.ADMINISTRATOR, Role.OPERATOR)
    page = opened(ada)
    page.goto("/overview/")
    page.get_by_text(re.compile("^Setup: ")).press("Enter")
    page.get_by_text(re.compile("^Setup: ")).click()
    page.get_by_text(re.compile("^Setup: ")).click()
    places = [link.get_attribute("href") for link in page.locator(".checklist a").all()]
    assert len(places) == len(set(places)) == 8
    for number, place in enumerate(places):
        page.goto("/overview/")
        page.get_by_text(re.compile("^Setup: ")).click()
        link = page.locator(f".checklist a[href='{place}']")
        link.press("Enter") if number % 2 else link.click()
        page.wait_for_url(f"**{place}")


def test_calls_are_narrowed_to_a_stretch_of_time(alice: Page) -> None:
    alice.goto("/calls/")
    alice.get_by_text("Sort, exact times").click()
    type_time(alice.get_by_label("From"), "2026-01-01T00:00")
    type_time(alice.get_by_label("Until"), "2026-01-02T00:00")

    alice.get_by_role("button", name="Filter", exact=True).click()

    alice.wait_for_url("**since=2026-01-01T00%3A00**")
    expect(alice.get_by_text("No call fits")).to_be_visible()
    alice.get_by_role("link", name="Clear").click()
    expect(alice.locator(".list tbody tr").first).to_be_visible()
