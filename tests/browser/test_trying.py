"""The form of Try, to its edges: lists, choices between schemas, files, and tries of before."""

import re

import orjson
import pytest
from playwright.sync_api import FilePayload, Page, expect

from accounts.models import Agent
from calls.models import Call
from registry import services
from registry.models import Tool, Toolset
from tests.browser.conftest import Opened
from tests.browser.hands import choose, pick_file, type_time
from tests.browser.scene import Office
from tests.console import scenery

pytestmark = pytest.mark.long

ODD = {
    "name": "odd",
    "description": "Takes whatever a form can hold.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "words": {"type": "array", "items": {"type": "string"}},
            "where": {
                "oneOf": [
                    {
                        "title": "a place",
                        "type": "object",
                        "properties": {"town": {"type": "string", "maxLength": 80}},
                        "required": ["town"],
                    },
                    {
                        "title": "a distance",
                        "type": "object",
                        "properties": {"metres": {"type": "integer"}},
                        "required": ["metres"],
                    },
                ]
            },
            "loud": {"type": "boolean"},
            "day": {"type": "string", "format": "date"},
            "note": {"type": ["string", "null"], "maxLength": 80},
            "picture": {"type": "string", "contentEncoding": "base64"},
        },
    },
    "annotations": {"readOnlyHint": True},
}


@pytest.fixture
def odd(office: Office) -> Tool:
    """A tool that alice's own agents may call."""
    server = scenery.server("oddities", office.alice, ODD)
    toolset = Toolset.objects.get(slug="office")
    services.add_server(toolset, server, by=office.alice)
    for name in ("desk", "shelf"):
        made = Agent.objects.create(name=name, owner=office.alice)
        services.assign(toolset, made, by=office.alice)
    return server.tools.for_catalogue().get()


def sent() -> dict[str, object]:
    call = Call.objects.filter(origin="console").latest("pk")
    read: dict[str, object] = orjson.loads(bytes(call.arguments))
    return read


def call_it(page: Page) -> None:
    page.get_by_role("button", name="Call the tool").click()
    expect(page.locator("#call-state")).to_contain_text("Pending approval")


def test_items_come_and_go(alice: Page, odd: Tool) -> None:
    alice.goto(f"/tools/{odd.exposed_name}/try/")
    words = alice.get_by_role("group", name=re.compile("^words"))
    for n, word in enumerate(("one", "two", "three"), start=1):
        words.get_by_role("button", name="Add an item to words").press("Enter")
        words.get_by_role("textbox").nth(n - 1).fill(word)

    words.get_by_role("button", name=re.compile("Remove")).nth(1).click()
    expect(words.get_by_role("textbox")).to_have_count(2)
    call_it(alice)

    assert sent() == {"words": ["one", "three"]}


def test_one_of_several_schemas_is_chosen(alice: Page, odd: Tool) -> None:
    alice.goto(f"/tools/{odd.exposed_name}/try/")

    choose(alice.get_by_label("Which of them"), "a distance")
    alice.get_by_label(re.compile("^metres")).fill("12")
    choose(alice.get_by_label(re.compile("^loud")), "true")
    type_time(alice.get_by_label(re.compile("^day")), "2026-11-21")
    call_it(alice)

    assert sent() == {"where": {"metres": 12}, "loud": True, "day": "2026-11-21"}


def test_an_empty_field_is_what_one_says_it_is(alice: Page, odd: Tool) -> None:
    alice.goto(f"/tools/{odd.exposed_name}/try/")
    note = alice.locator(".field", has=alice.get_by_label(re.compile("^note")))

    choose(note.get_by_role("combobox"), "null")
    call_it(alice)

    assert sent() == {"note": None}


def test_a_file_becomes_base64(alice: Page, odd: Tool) -> None:
    alice.goto(f"/tools/{odd.exposed_name}/try/")

    bits: FilePayload = {"name": "a.bin", "mimeType": "text/plain", "buffer": b"\x00\x01\x02"}
    pick_file(alice.get_by_label("Or from a file, as base64"), bits)
    expect(alice.get_by_label(re.compile("^picture"))).to_have_value("AAEC")
    call_it(alice)

    assert sent() == {"picture": "AAEC"}


def test_a_try_of_before_is_opened_and_made_again_as_another_agent(alice: Page, odd: Tool) -> None:
    alice.goto(f"/tools/{odd.exposed_name}/try/")
    type_time(alice.get_by_label(re.compile("^day")), "2026-11-20")
    call_it(alice)
    # The one that is shown already; and then the empty form.
    alice.locator("[aria-labelledby=tried] .rows a").first.click()
    alice.wait_for_url("**agent=desk")
    alice.get_by_role("link", name="Try", exact=True).click()
    alice.wait_for_url("**/try/")
    expect(alice.get_by_label(re.compile("^day"))).to_have_value("")

    alice.locator("[aria-labelledby=tried] .rows a").first.press("Enter")
    expect(alice.get_by_label(re.compile("^day"))).to_have_value("2026-11-20")
    choose(alice.get_by_label("As", exact=True), "shelf")
    alice.get_by_role("button", name="Call the tool").click()

    expect(alice.locator("[aria-labelledby=tried] .rows li")).to_have_count(2)
    calls = Call.objects.filter(origin="console").order_by("pk")
    assert [call.agent.name for call in calls] == ["desk", "shelf"]
    # By the one and the other, and the one that is open already.
    tries = alice.locator("[aria-labelledby=tried] .rows a")
    for n, name in ((1, "desk"), (0, "shelf"), (0, "shelf")):
        tries.nth(n).click()
        alice.wait_for_url(f"**agent={name}")
        expect(tries.nth(n)).to_have_attribute("aria-current", "true")
    alice.get_by_role("link", name="The whole call").click()
    alice.wait_for_url("**/calls/*/")


def test_what_an_agent_would_send_is_copied(opened: Opened, office: Office, odd: Tool) -> None:
    page = opened(office.alice, permissions=["clipboard-read", "clipboard-write"])
    page.goto(f"/tools/{odd.exposed_name}/try/")
    type_time(page.get_by_label(re.compile("^day")), "2026-11-21")
    page.get_by_role("button", name="What would happen?").click()

    page.get_by_text("As an agent would send it").press("Enter")
    for what, begins in (("the curl command", "curl"), ("the JSON-RPC message", "{")):
        page.get_by_role("button", name=f"Copy {what}").click()
        expect(page.get_by_role("button", name=f"Copied {what}")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()").startswith(begins)


def test_without_javascript_a_schema_is_chosen_by_its_button(
    opened: Opened, office: Office, odd: Tool
) -> None:
    page = opened(office.alice, java_script_enabled=False)
    page.goto(f"/tools/{odd.exposed_name}/try/")
    choose(page.get_by_label("Which of them"), "a distance")
    page.get_by_role("button", name="Show its fields").press("Enter")
    page.get_by_label(re.compile("^metres")).fill("12")
    page.get_by_role("button", name="Call the tool").click()

    expect(page.locator("#call-state")).to_contain_text("Pending approval")
    assert sent() == {"where": {"metres": 12}}
