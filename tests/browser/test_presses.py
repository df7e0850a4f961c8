"""How often people have to press something until a task is done, in English and in Chinese.

Counted are clicks, taps, keys that send or choose, swipes, and each field that is filled in, of
everybody who takes part. In English people use the keyboard, in Chinese they point.
"""

import csv
import logging
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.db import connections
from django.utils.translation import gettext, override
from playwright.sync_api import Browser, Locator, Page, expect

from accounts.roles import Role
from approvals.models import Approval
from approvals.services import vote
from audit.models import SavedFilter
from calls.models import Call
from config import first_run
from examples.servers import example_servers
from policies.models import Rule
from registry.models import Tool, Toolset
from tests.browser.conftest import Opened, listen
from tests.browser.scene import Office
from tests.browser.ways import Stage
from tests.console import scenery
from tests.database import Cleaner
from tests.processes import Stack
from tests.registry.offering import ADD, Offering, serving

pytestmark = pytest.mark.long

LANGUAGES = {"en": "en-GB", "zh-hans": "zh-CN"}
logger = logging.getLogger(__name__)
PHONE: dict[str, Any] = {"viewport": {"width": 360, "height": 740}, "has_touch": True}


@dataclass
class Person:
    """Somebody at a window, who counts."""

    page: Page
    language: str
    presses: int = 0

    def is_done_within(self, most: int) -> bool:
        logger.info("%s: %d presses, %d at most", self.language, self.presses, most)
        return self.presses <= most

    def words(self, english: str) -> str:
        with override(self.language):
            return gettext(english)

    def press(self, one: Locator) -> None:
        self.presses += 1
        if self.language == "en":
            is_box = one.get_attribute("type") in ("checkbox", "radio")
            one.press("Space" if is_box else "Enter")
        else:
            one.click()

    def fill(self, field: Locator, text: str) -> None:
        self.presses += 1
        field.fill(text)

    def link(self, english: str, within: Locator | None = None) -> None:
        self.press((within or self.page).get_by_role("link", name=self.words(english)).first)

    def button(self, english: str) -> None:
        # A number of selected rows may follow.
        name = re.compile(rf"^{re.escape(self.words(english))}(\s?[(（]\d+[)）])?$")
        self.press(self.page.get_by_role("button", name=name))

    def go(self, english: str) -> None:
        """By the navigation."""
        tabs = self.page.get_by_role("navigation", name=self.words("Main"))
        self.press(tabs.get_by_role("link", name=self.words(english)))


class Visitor(Person):
    """Until its scripts run, a page is a plain form: what is pressed may lead elsewhere."""

    def press(self, one: Locator) -> None:
        self.await_page(one)
        super().press(one)

    def fill(self, field: Locator, text: str) -> None:
        self.await_page(field)
        super().fill(field, text)

    def await_page(self, shown: Locator) -> None:
        expect(shown).to_be_visible()
        self.page.wait_for_load_state("domcontentloaded")
        # No page of strangers has it.
        if (live := self.page.locator("[data-connection]")).count():
            expect(live).to_have_text(self.words("Live"))


@pytest.fixture(params=LANGUAGES)
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def mailer_only(
    monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Path, stack: Stack, own_stack: Stack
) -> Stack:
    """Of the examples the one that the visitor uses, each of which is a process."""
    # The shared worker does not have these commands, and would supersede the call.
    stack.end_worker()
    settings.STDIO_CATALOGUE = tmp_path / "commands.json"
    own_stack.env["COUNTERSIGN_STDIO_CATALOGUE"] = str(settings.STDIO_CATALOGUE)
    mailer = [one for one in example_servers(tmp_path / "outbox") if one.slug == "mailer"]
    monkeypatch.setattr(first_run, "example_servers", lambda outbox: mailer)
    return own_stack


def installed() -> dict[str, str]:
    """What `manage.py up` makes and says of a new installation."""

    def made() -> dict[str, str]:
        try:
            return first_run.first_run(examples=True)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(made).result()


@pytest.fixture
def visitor(
    chromium: Browser, transactional_db: None, mailer_only: Stack, language: str
) -> Iterator[Visitor]:
    """Before the page of the link that `up` printed."""
    shown = installed()
    assert mailer_only.web
    assert mailer_only.worker
    context = chromium.new_context(base_url=mailer_only.web_url, locale=LANGUAGES[language])
    page = context.new_page()
    complaints: list[str] = []
    listen(page, complaints)
    page.goto(urlsplit(shown["sign_in"]).path)
    yield Visitor(page, language)
    context.close()
    assert not complaints


def test_a_first_visitor_has_a_first_approved_call(visitor: Visitor) -> None:
    page = visitor.page
    visitor.button("Sign in")
    visitor.link("Make the first call")
    visitor.press(page.get_by_role("link", name="mailer.send_mail"))
    visitor.link("Try", page.get_by_role("navigation", name=visitor.words("About this tool")))
    to = page.get_by_role("group", name=re.compile("^to "))
    visitor.press(to.get_by_role("button"))
    visitor.fill(to.get_by_role("textbox"), "ana@example.org")
    visitor.fill(page.get_by_label(re.compile("^subject")), "Q3")
    visitor.fill(page.get_by_label(re.compile("^body")), "Dear Ana, here are the figures.")
    visitor.button("Call the tool")
    visitor.link("Read and decide")
    visitor.button("Approve")

    expect(page.locator("[data-card]")).to_contain_text(visitor.words("Approved"))
    call = Call.objects.get()
    page.goto(f"/calls/{call.pk}/")
    expect(page.locator("#call-state")).to_contain_text(visitor.words("Succeeded"))
    assert call.agent.name == first_run.AGENT
    assert visitor.is_done_within(12)


def test_an_approver_on_a_phone_comes_by_the_agents_link(
    opened: Opened, office: Office, stack: Stack, cleaner: Cleaner, language: str
) -> None:
    stage = Stage(office, stack, opened, cleaner, office.alice)
    asked = stage.ask(stage.token_of_others())
    alice = Person(opened(office.alice, locale=LANGUAGES[language], **PHONE), language)
    alice.page.goto(f"/queue/{asked}/")
    approve = alice.page.get_by_role("button", name=alice.words("Approve"), exact=True)
    while approve.is_disabled():
        alice.presses += 1
        alice.page.mouse.wheel(0, 700)
        alice.page.wait_for_timeout(100)
    alice.presses += 1
    approve.tap()

    expect(alice.page.locator(f"#card-{asked}")).to_contain_text(alice.words("Approved"))
    assert Approval.objects.get(pk=asked).state == "approved"
    assert alice.is_done_within(3)


def test_an_engineer_covers_a_tool_of_a_url_with_a_rule_in_a_toolset(
    opened: Opened, office: Office, language: str
) -> None:
    eve = scenery.person("eve", Role.OPERATOR, Role.ADMINISTRATOR)
    engineer = Person(opened(eve, locale=LANGUAGES[language]), language)
    offering = Offering()
    offering.tools = [ADD]
    engineer.page.goto("/")
    with serving(offering) as url:
        engineer.go("Catalogue")
        engineer.link("Register a server")
        engineer.fill(engineer.page.locator("[name=slug]"), "adder")
        engineer.fill(engineer.page.locator("[name=url]"), f"{url}/mcp")
        engineer.button("Register")
        # What nothing was found in is selected.
        engineer.button("Publish selected")
        engineer.button("Add to the toolset")
        engineer.link("Cover with a rule")
        engineer.button("Save the rule")

    engineer.page.wait_for_url("**/policies/")
    tool = Tool.objects.get(exposed_name="adder.add")
    assert tool.state == Tool.State.PUBLISHED
    assert Toolset.objects.filter(tools=tool).exists()
    assert Rule.objects.filter(server="adder", tool="add", effect="ask").exists()
    assert engineer.is_done_within(10)


def test_an_auditor_takes_away_who_allowed_a_mail(
    opened: Opened, office: Office, language: str
) -> None:
    ines = scenery.person("ines", Role.AUDITOR, password=scenery.PASSWORD)
    approval = Approval.objects.get(pk=office.held)
    vote(approval, by=office.alice, approve=True, seen_digest=approval.call.call_digest)
    auditor = Person(opened(locale=LANGUAGES[language]), language)
    page = auditor.page
    page.goto("/")
    auditor.fill(page.locator("[name=username]"), ines.username)
    auditor.fill(page.locator("[name=password]"), scenery.PASSWORD)
    auditor.button("Sign in")
    auditor.go("Calls")
    mail = page.get_by_role("row").filter(has_text=office.scout.name)
    auditor.press(mail.get_by_role("link", name="mailer.send_mail"))
    auditor.link("Who decided")
    told = page.get_by_role("region", name=auditor.words("Calls"))
    with override(language):
        expect(told).to_contain_text(gettext("Approved by %(who)s.") % {"who": "alice"})
    auditor.button("Save report")
    with page.expect_download() as download:
        auditor.button("Export")

    rows = list(csv.DictReader(download.value.path().read_text().splitlines()))
    assert {row["call_id"] for row in rows} == {str(office.held)}
    assert "alice" in {row["actor"] for row in rows}
    saved = SavedFilter.objects.get(owner=ines)
    page.get_by_role("link", name=saved.name).click()
    expect(told).to_contain_text("alice")
    assert auditor.is_done_within(8)
