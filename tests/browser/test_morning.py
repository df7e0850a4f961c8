"""An approver's morning, by keyboard alone: the story of docs/en/guides/approve.md.

APPROVING_PICTURES=docs/en/guides/approve python -m pytest tests/browser/test_morning.py
"""

import os
from collections import Counter
from pathlib import Path
from typing import Any
from uuid import UUID

import orjson
import pytest
from playwright.sync_api import Locator, Page, expect

from accounts.roles import Role
from approvals.models import Grant
from calls.models import Amendment, Call
from calls.record.states import State
from registry.models import Tool
from tests.browser.conftest import Opened
from tests.browser.scene import Office
from tests.console import scenery

pytestmark = pytest.mark.long

ASKED = {"rule": "Changes are read first", "reason": "A person looks at changes."}
MINUTES = "# Minutes\n\nPresent: Ana, Ben.\nThe budget is agreed."
PRICES = "# Prices\n\nAdults 12.50\nChildren 6.00"


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    folder = Path(os.environ.get("APPROVING_PICTURES", tmp_path))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class Morning:
    """One window in which nothing but the keyboard is used."""

    def __init__(self, page: Page, pictures: Path) -> None:
        self.page, self.pictures = page, pictures

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def to(self, target: Locator) -> None:
        """Tab, until the focus is there."""
        for _ in range(300):
            if target.evaluate("element => element === document.activeElement"):
                return
            self.press("Tab")
        raise AssertionError(f"Tab never came to {target}")

    def enter(self, target: Locator) -> None:
        self.to(target)
        self.press("Enter")

    def follow(self, link: Locator) -> None:
        self.enter(link)
        self.arrive()

    def arrive(self) -> None:
        """Not before the page hears of changes: leaving it earlier is what browsers complain of."""
        expect(self.page.locator("[data-connection]")).to_have_text("Live")

    def card(self, call_id: UUID) -> Locator:
        return self.page.locator(f"#card-{call_id}")

    def show(self, call_id: UUID) -> Locator:
        """Line by line, until its card stands beside the list."""
        for _ in range(20):
            if self.card(call_id).is_visible():
                return self.card(call_id)
            self.press("j")
            line = self.page.locator("[data-row]:focus")
            expect(self.card(UUID(line.get_attribute("data-row") or ""))).to_be_visible()
        raise AssertionError(f"j never came to {call_id}")

    def approve(self, call_id: UUID) -> None:
        card = self.show(call_id)
        self.enter(card.get_by_role("button", name="Approve"))
        expect(card).to_contain_text("Approved by")

    def refuse(self, call_id: UUID, why: str) -> None:
        card = self.show(call_id)
        self.enter(card.locator("summary", has_text="Deny …"))
        self.to(card.get_by_label("Comment to the agent"))
        self.page.keyboard.type(why)
        self.enter(card.get_by_role("button", name="Deny", exact=True))
        expect(card).to_contain_text("Denied by")

    def replace(self, target: Locator, text: str) -> None:
        self.to(target)
        self.press("ControlOrMeta+a")
        self.page.keyboard.insert_text(text)

    def picture(self, name: str, *, waiting: int | None = None) -> None:
        """`waiting`: so many by the navigation, which hears of a decision a moment later."""
        if waiting is not None:
            expect(self.page.locator("#queue-count")).to_contain_text(str(waiting))
        self.page.screenshot(path=self.pictures / f"{name}.png")


def waiting(office: Office) -> list[UUID]:
    """Twelve calls, the two of the office among them; oldest first."""
    write = office.write

    def note(n: int) -> dict[str, Any]:
        return {"path": f"notes/{n}.md", "content": f"# Note {n}\n\nNothing of importance."}

    def mail(subject: str, to: str = "ana@example.org") -> dict[str, Any]:
        return {**scenery.MAIL, "subject": subject, "to": [to]}

    asked: list[tuple[Tool, dict[str, Any]]] = [
        (write, {"path": "minutes/2026-11-18.md", "content": MINUTES}),
        (office.send, mail("Everybody's addresses", "list@example.net")),
        (write, {"path": "public/prices.md", "content": PRICES}),
        (write, note(1)),
        (write, {"path": "archive/2019.md", "content": ""}),
        *((write, note(n)) for n in range(2, 5)),
        (office.send, mail("Agenda for Thursday")),
        (write, note(5)),
    ]
    made = [scenery.call(office.scout, t, given, State.HELD, **ASKED) for t, given in asked]
    first = list(Call.objects.filter(state=State.HELD).exclude(pk__in=made).order_by("asked_at"))
    return [*(call.pk for call in first), *made]


def test_a_morning(opened: Opened, office: Office, pictures: Path) -> None:
    carol = scenery.person("carol", Role.APPROVER)
    calls = waiting(office)
    assert len(calls) == 12
    letter, folder, minutes, addresses, prices, note, archive, *others = calls
    alice = Morning(opened(office.alice, viewport={"width": 1280, "height": 860}), pictures)
    page = alice.page

    page.goto("/queue/")
    alice.arrive()
    alice.picture("1-the-queue")
    for call_id in (letter, folder, minutes):
        alice.approve(call_id)
    alice.picture("2-approved", waiting=9)
    # Minutes come every week: granted in advance.
    alice.follow(alice.card(minutes).get_by_role("link", name="Create a standing approval"))
    grant_minutes(alice)
    expect(page.get_by_text("is active")).to_be_visible()
    alice.arrive()
    alice.picture("4-grants")
    alice.follow(page.get_by_role("link", name="Queue").first)
    alice.refuse(addresses, "Not to a list outside the house.")
    alice.picture("5-refused", waiting=8)

    # The children's price is wrong: edited, for carol to approve.
    alice.follow(alice.show(prices).get_by_role("link", name="Suggest changes"))
    expect(page.get_by_text("It can be approved by carol")).to_be_visible()
    alice.replace(page.get_by_role("textbox", name="content"), PRICES.replace("6.00", "6.50"))
    alice.to(page.get_by_role("textbox", name="Why"))
    page.keyboard.type("Children pay 6.50 since October.")
    alice.picture("6-edit")
    alice.enter(page.get_by_role("button", name="Suggest these arguments"))
    expect(page.get_by_text("Your change is proposed.")).to_be_visible()
    alice.arrive()
    alice.picture("7-proposed")

    alice.follow(page.get_by_role("link", name="Queue").first)
    alice.approve(note)
    alice.refuse(archive, "This would empty the archive.")
    for call_id in others:
        alice.approve(call_id)

    other = Morning(opened(carol, viewport={"width": 1280, "height": 860}), pictures)
    other.page.goto("/queue/")
    other.arrive()
    other.to(other.show(prices).get_by_role("button", name="Approve"))
    other.picture("8-for-the-next-voter")
    other.press("Enter")
    expect(other.card(prices)).to_contain_text("Approved by carol")
    came_to(calls, prices)


def grant_minutes(alice: Morning) -> None:
    page = alice.page
    for at, begins in (("path", "minutes/"), ("content", "# Minutes\n")):
        line = page.get_by_role("group", name=at)
        alice.to(line.get_by_role("combobox"))
        page.keyboard.type("begins")
        alice.replace(line.get_by_label("It begins with"), begins.strip())
    alice.replace(page.get_by_label("Maximum uses"), "5")
    alice.enter(page.get_by_role("button", name="What would it have covered?"))
    expect(page.get_by_role("button", name="Create standing approval")).to_be_visible()
    alice.arrive()
    alice.to(page.get_by_role("button", name="Create standing approval"))
    alice.picture("3-grant")
    alice.press("Enter")


def came_to(calls: list[UUID], prices: UUID) -> None:
    found = Call.objects.filter(pk__in=calls)
    assert Counter(call.state for call in found) == {State.QUEUED: 10, State.DENIED: 2}
    edited = Amendment.objects.select_related("person").get()
    assert (edited.call_id, edited.person.username) == (prices, "alice")
    sent = orjson.loads(Call.objects.get(pk=prices).to_send)
    assert sent["content"] == PRICES.replace("6.00", "6.50")
    grant = Grant.objects.get()
    assert (grant.owner.username, grant.max_uses, grant.uses) == ("alice", 5, 0)
    assert [bound["prefix"] for bound in grant.bounds] == ["minutes/", "# Minutes"]
