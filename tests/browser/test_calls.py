"""A call as it runs, watched."""

import re

import pytest
from playwright.sync_api import Page, expect

from accounts.roles import Role
from calls.models import Call
from calls.record.states import State
from tests.browser import moments
from tests.browser.conftest import Opened, rung
from tests.browser.hands import choose
from tests.browser.scene import Office
from tests.browser.test_axe import look
from tests.console import scenery


def live(page: Page) -> None:
    expect(page.locator("[data-connection]")).to_have_text("Live")


@pytest.mark.smoke
def test_progress_moves_and_the_result_appears(alice: Page, office: Office) -> None:
    alice.goto(f"/calls/{office.running}/")
    live(alice)
    bar = alice.get_by_role("progressbar")
    expect(bar).to_have_attribute("value", "60")

    Call.objects.filter(pk=office.running).update(progress=27, progress_message="Writing")
    rung(f"call.{office.running}")
    expect(bar).to_have_attribute("value", "90")
    expect(alice.get_by_text("Writing")).to_be_visible()

    result = {"content": [{"type": "text", "text": "All quarters are well."}]}
    scenery.finish(office.running, result)
    rung(f"call.{office.running}")
    expect(alice.get_by_text("All quarters are well.")).to_be_visible()
    expect(bar).to_have_count(0)
    expect(alice.locator("#call-state")).to_contain_text("Succeeded")
    expect(alice.get_by_role("button", name="Cancel this call")).to_be_hidden()


def test_what_the_server_asked_and_logged_is_read(alice: Page, office: Office) -> None:
    alice.goto(f"/calls/{office.running}/")
    live(alice)

    moments.asked_and_logged(office.running)
    rung(f"call.{office.running}")

    questions = alice.get_by_role("region", name="Questions of the server")
    expect(questions).to_contain_text("September has two ledgers. Which of them is the last?")
    expect(questions).to_contain_text('"ledger":"2026-09-30"')
    expect(questions.get_by_text("Not answered yet")).to_have_count(1)
    questions.get_by_text("The question as it was sent").first.press("Enter")
    expect(questions).to_contain_text('"enum":["2026-09-28","2026-09-30"]')
    log = alice.get_by_role("region", name="Log of the server")
    expect(log.get_by_text("error", exact=True)).to_be_visible()


def test_a_late_reply_is_taken_as_what_happened(alice: Page, office: Office) -> None:
    moments.answered_late(office.lost)
    alice.goto(f"/calls/{office.lost}/")

    alice.get_by_text("What it sent").press("Enter")
    expect(alice.get_by_text("Sent to ana@example.org.")).to_be_visible()
    alice.get_by_role("button", name="Use this as the outcome").press("Enter")

    expect(alice.locator("#call-state")).to_contain_text("Resolved")
    assert Call.objects.get(pk=office.lost).executed == "yes"


def test_cancelling_asks_for_it(alice: Page, office: Office) -> None:
    alice.goto(f"/calls/{office.running}/")

    alice.get_by_role("button", name="Cancel this call").click()

    expect(alice.get_by_text("The call is being cancelled.")).to_be_visible()
    assert Call.objects.get(pk=office.running).cancel_asked_by == "alice"


def test_an_image_of_a_result_is_drawn(alice: Page, office: Office) -> None:
    alice.goto(f"/calls/{office.pictured}/")
    image = alice.get_by_role("img", name="An image that the tool returned")

    expect(image).to_be_visible()
    assert image.evaluate("(e) => e.naturalWidth") == 240


def test_states_in_the_list_change_where_they_stand(alice: Page, office: Office) -> None:
    alice.goto("/calls/")
    live(alice)
    row = alice.locator(f"#state-{office.running}")
    expect(row).to_contain_text("Running")

    scenery.finish(office.running, {"content": []})
    rung("calls")

    expect(row).to_contain_text("Succeeded")


def test_a_newer_call_is_announced_in_the_list(alice: Page, office: Office) -> None:
    alice.goto("/calls/")
    live(alice)
    rows = alice.locator("tbody tr").count()

    scenery.call(office.scout, office.search, {"pattern": "x"}, State.QUEUED)
    rung("calls")

    news = alice.get_by_role("link", name="1 new call")
    expect(news).to_be_visible()
    assert alice.locator("tbody tr").count() == rows
    news.click()
    expect(alice.locator("tbody tr")).to_have_count(rows + 1)


def test_a_long_result_is_searched_and_markdown_read(alice: Page, office: Office) -> None:
    report = "# Errors\n\n" + "\n".join(f"- line {n} of the report" for n in range(120))
    scenery.finish(office.running, {"content": [{"type": "text", "text": report}]})
    alice.goto(f"/calls/{office.running}/")

    expect(alice.locator(".markdown li").first).to_have_text("line 0 of the report")
    raw = alice.locator("#call-result summary", has_text="As it was written")
    raw.press("Enter")
    expect(alice.get_by_text("# Errors")).to_be_visible()
    alice.get_by_label("Find in this text").fill("line 117")
    alice.get_by_role("button", name="Find lines").press("Enter")
    found = alice.get_by_role("region", name="Lines found")
    expect(found.get_by_text("1 line has it.")).to_be_visible()
    expect(found.get_by_role("listitem")).to_have_text("- line 117 of the report")
    assert look(alice) == []


def test_somebody_without_the_right_sees_no_content_live(opened: Opened, office: Office) -> None:
    vera = opened(scenery.person("vera", Role.VIEWER))
    vera.goto(f"/calls/{office.running}/")
    live(vera)

    scenery.finish(office.running, {"content": [{"type": "text", "text": "secret"}]})
    rung(f"call.{office.running}")

    expect(vera.locator("#call-state")).to_contain_text("Succeeded")
    expect(vera.get_by_text("secret")).to_have_count(0)


def test_ids_are_copied_and_durations_listed(opened: Opened, office: Office) -> None:
    page = opened(office.alice, permissions=["clipboard-read", "clipboard-write"])
    call = Call.objects.get(pk=office.pictured)
    page.goto("/calls/")
    row = page.get_by_role("row").filter(has_text="weather.forecast")
    expect(row.locator("[data-label=Duration]")).to_contain_text("ms")
    choose(page.get_by_label("Time"), "24h")
    page.get_by_role("button", name="Filter", exact=True).press("Enter")
    expect(page).to_have_url(re.compile(r"range=24h"))
    newest = page.locator("tbody th a").first.get_attribute("href")
    page.get_by_role("columnheader", name="Asked").get_by_role("link").press("Enter")
    expect(page.get_by_role("table", name="Calls: Oldest first")).to_be_visible()
    assert page.locator("tbody th a").last.get_attribute("href") == newest
    page.get_by_role("columnheader", name="Asked").get_by_role("link").press("Enter")
    expect(page.get_by_role("table", name="Calls: Newest first")).to_be_visible()
    page.goto(f"/calls/{call.pk}/")

    assert call.definition
    for what, copied in (
        ("the fingerprint", call.fingerprint),
        ("the id", str(call.pk)),
        ("the call's digest", call.call_digest),
        ("the arguments' digest", call.arguments_digest),
        ("the definition's digest", call.definition.digest),
        ("the result's digest", call.result_digest),
        ("the name", call.tool_name),
    ):
        page.get_by_role("button", name=f"Copy {what}").press("Enter")
        expect(page.get_by_role("button", name=f"Copied {what}")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == copied

    for address, copied in (
        (f"/tools/{call.tool_name}/", call.tool_name),
        ("/servers/weather/", "weather"),
    ):
        page.goto(address)
        page.get_by_role("button", name="Copy the name").press("Enter")
        expect(page.get_by_role("button", name="Copied the name")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == copied

    page.goto(f"/queue/{office.held}/")
    page.get_by_role("button", name="Copy the fingerprint").press("Enter")
    expect(page.get_by_role("button", name="Copied the fingerprint")).to_be_visible()
    held = Call.objects.get(pk=office.held)
    assert page.evaluate("navigator.clipboard.readText()") == held.fingerprint
