"""What no other flow uses: each control once, as a person does, some by keyboard alone."""

import pytest
from playwright.sync_api import Page, expect

from accounts.models import Agent, User
from accounts.roles import Role
from calls.models import Call
from calls.record.states import State
from registry.models import Toolset
from tests.browser.conftest import Opened
from tests.browser.hands import choose
from tests.browser.scene import Office
from tests.console import scenery

pytestmark = pytest.mark.long


@pytest.fixture
def ada(office: Office) -> User:
    """An administrator."""
    return scenery.person("ada", Role.ADMINISTRATOR)


def test_an_administrator_makes_an_agent_replaces_its_token_and_switches_it_off(
    opened: Opened, ada: User
) -> None:
    page = opened(ada)
    page.goto("/agents/")
    page.get_by_role("link", name="New agent").first.click()
    choose(page.get_by_label("Owner"), "bob")
    page.get_by_label("Name", exact=True).fill("night-owl")
    page.keyboard.press("Enter")
    page.wait_for_url("**/agents/night-owl/")

    page.get_by_role("button", name="Create token").click()
    first = page.locator("#token").inner_text()
    page.get_by_role("button", name="Rotate").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_text("works for one more hour")).to_be_visible()
    assert page.locator("#token").inner_text() != first

    page.get_by_role("link", name="Disable").click()
    page.get_by_role("link", name="Cancel").press("Enter")
    page.get_by_role("link", name="Disable").click()
    expect(page.get_by_text("Valid tokens")).to_be_visible()
    page.get_by_label("Reason (optional)").fill("It is not used at night.")
    page.get_by_role("button", name="Disable the agent").click()
    expect(page.get_by_text("none of its tokens opens anything")).to_be_visible()
    assert not Agent.objects.get(name="night-owl").enabled
    page.get_by_role("button", name="Enable").click()
    expect(page.get_by_role("link", name="Disable")).to_be_visible()


def test_an_administrator_gives_groups_and_shuts_somebody_out(
    opened: Opened, office: Office, ada: User
) -> None:
    page = opened(ada, permissions=["clipboard-read", "clipboard-write"])
    page.goto("/people/")
    page.get_by_role("link", name="bob").click()

    page.get_by_label("Auditor").check()
    page.get_by_role("button", name="Save roles and groups").click()
    expect(page.get_by_label("Auditor")).to_be_checked()
    assert office.bob.groups.filter(name=Role.AUDITOR).exists()

    page.get_by_role("button", name="New sign-in link").press("Enter")
    page.get_by_role("button", name="Copy the link").click()
    expect(page.get_by_role("button", name="Copied the link")).to_be_visible()
    page.get_by_role("link", name="scout").press("Enter")
    page.wait_for_url("**/agents/scout/")
    page.goto(f"/people/{office.bob.pk}/")
    page.get_by_role("link", name="Disable").click()
    page.get_by_role("link", name="Cancel").click()
    page.get_by_role("link", name="Disable").focus()
    page.keyboard.press("Enter")
    page.get_by_label("Reason (optional)").fill("On leave.")
    page.get_by_role("button", name="Disable the user").press("Enter")
    page.get_by_role("button", name="Enable").click()
    expect(page.get_by_role("link", name="Disable")).to_be_visible()


def test_ones_time_zone_is_shown_in_exact_times(alice: Page, office: Office) -> None:
    alice.goto("/profile/")
    alice.get_by_label("Display name").fill("Bob")
    alice.get_by_role("button", name="Save the display name").click()
    expect(alice.get_by_text("“Bob” is another user's name.")).to_be_visible()
    alice.get_by_label("Display name").fill("Alice Winter")
    alice.get_by_role("button", name="Save the display name").press("Enter")
    expect(alice.get_by_role("banner")).to_contain_text("Alice Winter")
    alice.get_by_label("Time zone").fill("Asia/Tokyo")
    alice.get_by_role("button", name="Save the time zone").click()
    alice.get_by_role("button", name="Use your browser's: UTC").press("Enter")
    expect(alice.get_by_role("banner")).to_contain_text("UTC")
    alice.get_by_label("Time zone").fill("Asia/Tokyo")
    alice.keyboard.press("Enter")
    alice.get_by_role("button", name="Use UTC").click()
    expect(alice.get_by_role("button", name="Use UTC")).to_have_count(0)
    alice.get_by_role("button", name="Compact").press("Enter")
    expect(alice.get_by_role("button", name="Compact")).to_have_attribute("aria-pressed", "true")
    alice.get_by_role("button", name="Comfortable").click()
    expect(alice.locator("html")).to_have_attribute("data-density", "comfortable")
    alice.get_by_label("Time zone").fill("Europe/Amsterdam")
    alice.get_by_role("button", name="Save the time zone").click()

    expect(alice.get_by_role("banner")).to_contain_text("Europe/Amsterdam")
    alice.goto("/calls/")
    exact = alice.locator("time.when").first.get_attribute("data-exact")
    assert exact
    assert exact.endswith(("CET", "CEST"))


def test_a_toolset_is_made_and_named(alice: Page) -> None:
    alice.goto("/toolsets/")
    alice.get_by_role("link", name="New toolset").first.click()
    alice.get_by_label("Name", exact=True).fill("night")
    alice.get_by_label("Title").fill("Night")
    alice.get_by_role("button", name="Create toolset").press("Enter")
    alice.wait_for_url("**/toolsets/night/")

    alice.get_by_label("Title").fill("At night")
    alice.get_by_role("button", name="Save the title").click()
    assert Toolset.objects.get(slug="night").title == "At night"


def test_an_unknown_outcome_is_asked_for_again(alice: Page, office: Office) -> None:
    alice.goto("/calls/")
    alice.get_by_role("link", name="Unresolved").click()
    alice.get_by_role("link", name="mailer.send_mail").click()

    alice.get_by_role("button", name="Run again as a new call").click()
    expect(alice.get_by_text("asked for again and is pending")).to_be_visible()
    alice.get_by_role("link", name=str(office.lost)).first.click()

    expect(alice.get_by_text("Resolved").first).to_be_visible()
    expect(alice.get_by_role("button", name="Run again as a new call")).to_be_hidden()
    assert Call.objects.get(pk=office.lost).state == State.RESOLVED


def test_an_unknown_outcome_is_written_down(alice: Page, office: Office) -> None:
    alice.goto(f"/calls/{office.lost}/")
    alice.get_by_label("It happened").check()
    alice.get_by_label("How you know").fill("The mail is in the outbox.")
    alice.get_by_role("button", name="Record outcome").focus()
    alice.keyboard.press("Enter")

    expect(alice.get_by_text("Resolved").first).to_be_visible()
    assert Call.objects.get(pk=office.lost).state == State.RESOLVED


def test_a_calls_folds_open_and_its_command_is_copied(opened: Opened, office: Office) -> None:
    page = opened(office.alice, permissions=["clipboard-read", "clipboard-write"])
    page.goto(f"/calls/{office.pictured}/")

    page.get_by_text("As the agent wrote them").click()
    expect(page.locator("pre", has_text='"Utrecht"').first).to_be_visible()
    page.get_by_text("As JSON", exact=True).press("Enter")
    expect(page.locator("pre", has_text='"high"').first).to_be_visible()
    page.get_by_text("As a command for a shell").focus()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Copy the command").click()
    expect(page.get_by_role("button", name="Copied the command")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()").startswith("curl -sS")
    page.get_by_text("What the call's digest is of").click()
    expect(page.locator("pre", has_text='"exposed"').first).to_be_visible()
    page.get_by_role("link", name="calculator.add").click()
    expect(page.get_by_role("heading", name="calculator.add")).to_be_visible()


def test_calls_are_filtered_and_cleared(alice: Page) -> None:
    alice.goto("/calls/")
    choose(alice.get_by_label("State"), "succeeded")
    choose(alice.get_by_label("Agent", exact=True), "scout")
    alice.get_by_label("Tool", exact=True).fill("calculator.add")
    alice.get_by_label("Tool", exact=True).press("Enter")
    alice.wait_for_url("**tool=calculator.add**")
    expect(alice.locator("tbody tr")).to_have_count(1)

    alice.reload()
    expect(alice.locator("tbody tr")).to_have_count(1)
    alice.get_by_role("link", name="Clear").click()
    expect(alice.locator("tbody tr")).to_have_count(Call.objects.count())
    alice.go_back()
    expect(alice.locator("tbody tr")).to_have_count(1)


def test_a_cards_folds_tell_claims_and_what_was_before(alice: Page, office: Office) -> None:
    alice.goto(f"/queue/{office.held}/")

    alice.get_by_text("Raw payload").press("Enter")
    expect(alice.locator("pre", has_text='"subject"').first).to_be_visible()
    alice.get_by_text("Unverified context").click()
    expect(alice.get_by_text("Sends one mail from the office's address.")).to_be_visible()
    alice.get_by_text("The 2 calls of scout before this one").focus()
    alice.keyboard.press("Enter")
    alice.locator("details[open]").get_by_role("link", name="weather.forecast").click()
    expect(alice.get_by_role("heading", name="weather.forecast")).to_be_visible()
    alice.go_back()
    alice.get_by_role("link", name="The call", exact=False).first.click()
    alice.wait_for_url(f"**/calls/{office.held}/")
