"""The record, used as an auditor does: cells, bars, the live list, keys, and no JavaScript."""

import re

import pytest
from playwright.sync_api import expect

from accounts.models import User
from approvals.models import Approval
from approvals.services import vote
from audit.models import Entry, Export
from audit.services import record
from tests.browser.conftest import Opened, rung
from tests.browser.hands import choose
from tests.browser.scene import Office
from tests.browser.test_calls import live
from tests.exports import prepare_exports
from tests.sealing import seal_all


def test_a_cell_a_bar_and_the_way_back(opened: Opened, office: Office) -> None:
    seal_all()
    page = opened(office.alice)
    page.goto("/audit/")

    page.get_by_role("row").get_by_role("link", name="scout", exact=True).first.click()
    expect(page).to_have_url(re.compile(r"\?agent=scout$"))
    expect(page.get_by_label("Agent", exact=True)).to_have_value("scout")
    page.get_by_label("Tool", exact=True).press_sequentially("send")
    expect(page.locator("#tool-names option[value='mailer.send_mail']")).to_be_attached()
    # By key: the only way to a bar for those who do not point.
    bar = page.get_by_role("group", name="Entries over time").get_by_role("link").first
    bar.focus()
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"agent=scout&since=.+&until="))
    expect(page.get_by_role("table", name="Entries, newest first")).to_be_visible()
    page.go_back()
    expect(page).to_have_url(re.compile(r"\?agent=scout$"))
    page.get_by_role("link", name="Remove").click()
    expect(page).to_have_url(re.compile(r"/audit/\?$"))
    page.locator('#entries a[href*="server="]').first.click()
    expect(page).to_have_url(re.compile(r"\?server=\w+$"))


def test_the_order_is_turned_on_a_desk_and_on_a_telephone(opened: Opened, office: Office) -> None:
    page = opened(office.alice)
    page.goto("/audit/?agent=scout")
    page.get_by_role("columnheader", name="Time").get_by_role("link").press("Enter")
    expect(page).to_have_url(re.compile(r"\?agent=scout&order=oldest$"))
    expect(page.get_by_role("table", name="Entries, oldest first")).to_be_visible()
    page.get_by_role("button", name="Filter", exact=True).press("Enter")
    expect(page).to_have_url(re.compile(r"order=oldest"))

    page.set_viewport_size({"width": 360, "height": 740})
    page.get_by_role("link", name="Newest first").press("Enter")
    expect(page).to_have_url(re.compile(r"\?agent=scout$"))
    page.get_by_role("link", name="Oldest first").press("Enter")
    expect(page).to_have_url(re.compile(r"order=oldest"))


@pytest.mark.parametrize("locale", ["en", "zh-CN"])
def test_beside_an_entry_who_did_the_others_is_read_in_lines(
    opened: Opened, office: Office, locale: str
) -> None:
    User.objects.filter(pk=office.alice.pk).update(first_name="Alice 王小明")
    approval = Approval.objects.for_queue().get(pk=office.held)
    vote(approval, by=office.alice, approve=False, seen_digest=approval.call.call_digest)
    page = opened(office.alice, viewport={"width": 1280, "height": 860}, locale=locale)
    page.goto(f"/audit/{Entry.objects.get(action='approval.voted').pk}/")

    named = page.locator(".moment .what").filter(has_text="Alice 王小明 (alice)").first
    box = named.bounding_box()
    assert box
    # The name of the act and the person's: two lines at most.
    assert box["height"] < 50


@pytest.mark.parametrize(
    ("address", "content"),
    [
        ("/audit/", "#entries tr"),
        ("/audit/?agent=scout", "#entries tr"),
        ("/audit/who-ran-what/", "#short"),
        ("/calls/", "tbody tr"),
    ],
)
def test_on_a_phone_filters_leave_the_first_screen_to_what_they_filter(
    opened: Opened, office: Office, address: str, content: str
) -> None:
    page = opened(office.alice, viewport={"width": 360, "height": 780}, java_script_enabled=False)
    page.goto(address)

    box = page.locator(content).first.bounding_box()
    assert box
    assert box["y"] <= 500, box

    page.locator(".folded > summary").first.click()
    page.locator("#tool").fill("mailer.send_mail")
    page.get_by_role("button", name="Filter", exact=True).click()
    expect(page).to_have_url(re.compile("tool=mailer.send_mail"))


def test_entries_are_folded_by_call(opened: Opened, office: Office) -> None:
    page = opened(office.alice)
    page.goto("/audit/?agent=scout")
    page.get_by_role("link", name="By call").press("Enter")
    expect(page).to_have_url(re.compile(r"\?agent=scout&group=call$"))

    calls = page.get_by_role("list", name="Calls and other entries, newest first")
    call = calls.get_by_role("listitem").filter(has_text="Pending approval").first
    expect(call.get_by_text("Asked → Pending approval")).to_be_hidden()
    call.locator("summary").press("Enter")
    expect(call.get_by_text("Asked → Pending approval")).to_be_visible()
    # A bar, a filter taken away and the form keep it.
    page.get_by_role("button", name="Filter", exact=True).press("Enter")
    expect(page).to_have_url(re.compile(r"group=call"))
    page.get_by_role("listitem").get_by_text("Pending approval").first.click()
    page.get_by_role("link", name="Only its entries").first.press("Enter")
    expect(page).to_have_url(re.compile(r"/audit/\?call=[-0-9a-f]+$"))
    expect(page.get_by_role("table", name="Entries, newest first")).to_be_visible()

    page.goto("/audit/?agent=scout&group=call")
    page.get_by_role("listitem").get_by_text("Pending approval").first.click()
    page.get_by_role("link", name="Asked → Pending approval").first.press("Enter")
    expect(page).to_have_url(re.compile(r"/audit/\d+/$"))
    page.go_back()
    page.get_by_role("listitem").get_by_text("Pending approval").first.click()
    page.get_by_role("link", name="The call", exact=True).first.press("Enter")
    expect(page).to_have_url(re.compile(r"/calls/[-0-9a-f]+/$"))
    page.go_back()
    page.get_by_role("link", name="Every entry").press("Enter")
    expect(page).to_have_url(re.compile(r"\?agent=scout$"))


def test_new_entries_come_to_the_top_and_wait_when_paused(opened: Opened, office: Office) -> None:
    page = opened(office.alice)
    page.goto("/audit/")
    page.get_by_role("link", name="Follow live").click()
    live(page)
    page.mouse.move(2, 2)
    top = page.locator("#entries tbody tr").first

    record("note.first", actor=office.alice.actor)
    rung("calls")
    expect(top).to_contain_text("Note first")

    pause = page.get_by_role("button", name="Pause")
    pause.click()
    expect(pause).to_have_attribute("aria-pressed", "true")
    record("note.second", actor=office.alice.actor)
    rung("calls")
    expect(page.get_by_text("Paused: new entries wait.")).to_be_visible()
    expect(top).to_contain_text("Note first")
    pause.click()
    page.mouse.move(2, 2)
    rung("calls")
    expect(top).to_contain_text("Note second")


def test_a_filter_is_kept_and_an_export_downloaded(opened: Opened, office: Office) -> None:
    page = opened(office.alice)
    page.goto("/audit/?agent=scout")
    page.get_by_label("Save filter as").fill("What scout did")
    page.get_by_label("for everybody").check()
    page.get_by_role("button", name="Save filter").click()
    expect(page.get_by_text("Saved as “What scout did”.")).to_be_visible()
    page.goto("/audit/")
    page.get_by_role("link", name="What scout did").click()
    expect(page.get_by_label("Agent", exact=True)).to_have_value("scout")

    choose(page.get_by_label("Export results"), "jsonl")
    page.get_by_role("button", name="Export").click()
    expect(page.get_by_role("button", name="Cancel")).to_be_visible()
    prepare_exports()
    # The page follows by itself.
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    assert len(download.value.path().read_text().splitlines()) >= 8
    page.get_by_role("link", name="Exports").click()
    expect(page.get_by_text("Ready")).to_be_visible()
    delete = f"Delete export {Export.objects.get().pk}"
    page.locator("summary", has_text=delete).click()
    page.get_by_role("button", name=delete).click()
    expect(page.get_by_text("Deleted")).to_be_visible()
    page.goto("/audit/?agent=scout")
    page.get_by_role("button", name="Delete the saved filter What scout did").click()
    expect(page.get_by_text("“What scout did” is removed.")).to_be_visible()


def test_a_payload_is_opened_on_an_entry_and_that_is_an_entry(
    opened: Opened, office: Office
) -> None:
    entry = Entry.objects.of_call(office.pictured).last()
    assert entry
    seal_all()
    page = opened(office.alice, permissions=["clipboard-read", "clipboard-write"])
    page.goto(f"/audit/{entry.pk}/")

    for what in ("call's id", "definition's digest", "arguments' digest", "result's digest"):
        page.get_by_role("button", name=f"Copy the {what}").press("Enter")
        expect(page.get_by_role("button", name=f"Copied the {what}")).to_be_visible()
    for what in ("name", "leaf", "key"):
        page.get_by_role("button", name=f"Copy the {what}", exact=True).press("Enter")
    assert page.evaluate("navigator.clipboard.readText()").startswith("countersign")

    page.get_by_text("What was asked, and what came back").click()

    expect(page.locator("#payload").get_by_text("Utrecht", exact=True)).to_be_visible()
    looked = Entry.objects.filter(action="payload.viewed", call_id=office.pictured)
    assert list(looked.values_list("actor", flat=True)) == ["alice"]


def test_who_ran_what_is_narrowed_to_a_state(opened: Opened, office: Office) -> None:
    page = opened(office.alice)
    page.goto("/audit/who-ran-what/")
    choose(page.get_by_label("State"), "succeeded")
    page.get_by_role("button", name="Filter", exact=True).press("Enter")

    expect(page).to_have_url(re.compile("state=succeeded"))
    expect(page.get_by_label("State")).to_have_value("succeeded")
    expect(page.locator("[data-verdict=asked] strong")).to_have_text("2")

    # The day that is meant without being said stays when a name goes.
    page.goto("/audit/who-ran-what/?agent=scout")
    page.get_by_role("link", name="Remove").press("Enter")
    expect(page).to_have_url(re.compile(r"/who-ran-what/\?range=24h"))


def test_the_record_is_read_without_javascript(opened: Opened, office: Office) -> None:
    page = opened(office.alice, java_script_enabled=False)
    page.goto("/audit/")
    page.get_by_label("Agent", exact=True).fill("scout")
    choose(page.get_by_label("Time", exact=True), "today")
    page.get_by_role("button", name="Filter", exact=True).click()
    expect(page.get_by_role("cell", name="scout").first).to_be_visible()
    page.get_by_role("link", name="Who ran what").click()
    expect(page.get_by_role("heading", name="Summary")).to_be_visible()
    expect(page.get_by_text("3 calls of 3 tools")).to_be_visible()


def test_a_report_is_narrowed_and_found_again(opened: Opened, office: Office) -> None:
    page = opened(office.alice)
    page.goto(f"/audit/who-ran-what/?call={office.held}")
    page.get_by_label("Save report as").press("Enter")
    expect(page).to_have_url(re.compile(rf"/who-ran-what/\?call={office.held}"))
    expect(page.get_by_role("region", name="Summary")).to_contain_text("1 call of 1 tool")

    page.get_by_role("link", name="Remove").press("Enter")
    expect(page.get_by_role("link", name="Remove")).to_have_count(0)
    page.locator(".saved a", has_text="mailer.send_mail").press("Enter")
    expect(page).to_have_url(re.compile(rf"\?call={office.held}"))


def test_no_call_has_an_id_that_is_none(opened: Opened, office: Office) -> None:
    page = opened(office.alice)
    for wrong in ("nothing", "00000000-0000-0000-0000-000000000000"):
        page.goto(f"/audit/who-ran-what/?call={wrong}")
        expect(page.get_by_text("No calls")).to_be_visible()
        page.goto(f"/audit/?call={wrong}")
        expect(page.get_by_text("No entry fits")).to_be_visible()
