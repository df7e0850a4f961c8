"""Nothing that changes is lost on its way to an open page, however late its answers come."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from accounts.services import create_agent
from approvals import comments, freezes
from approvals.models import Approval, Comment
from calls.record.states import State
from policies.thresholds import Threshold
from tests.browser import moments
from tests.browser.conftest import Opened, rung
from tests.browser.scene import Office
from tests.browser.test_queue import another, live
from tests.console import scenery

NEWS = re.compile("/queue/news/")
# What the page hears, and the answers that it has drawn.
COUNTING = """
  window.rang = {};
  window.drawn = 0;
  for (const topic of ["queue", "calls", "frozen"]) {
    rang[topic] = 0;
    document.addEventListener(`live:${topic}`, () => { rang[topic] += 1; }, true);
  }
  document.addEventListener("htmx:afterRequest", () => { drawn += 1; });
"""
# When the page asks for its line, and whether it was ready for what comes.
OPENING = """
  let isReady = false;
  document.addEventListener("DOMContentLoaded", () => { isReady = true; });
  window.WebSocket = class extends WebSocket {
    constructor(...address) { super(...address); window.wasReady = isReady; }
  };
"""


class HeldBack:
    """Answers to these requests are drawn up at once, and come when they are let."""

    def __init__(self, page: Page, pattern: str | re.Pattern[str]) -> None:
        self.page = page
        self.routes: list[Route] = []
        self.answer: Any = None
        self.is_over = False
        page.route(pattern, self._hold)

    def _hold(self, route: Route) -> None:
        if self.is_over:
            route.continue_()
        else:
            self.routes.append(route)

    def is_drawn_up(self) -> None:
        """The first; those after it are not asked for yet, as far as the server knows."""
        while not self.routes:
            self.page.wait_for_timeout(20)
        self.answer = self.routes[0].fetch()

    def comes(self) -> None:
        drawn = self.page.evaluate("window.drawn")
        self.routes[0].fulfill(response=self.answer)
        self.page.wait_for_function("drawn => window.drawn > drawn", arg=drawn)

    def ends(self) -> None:
        self.is_over = True
        for route in self.routes[1:]:
            route.continue_()


@pytest.fixture
def alice(alice: Page) -> Page:
    alice.add_init_script(COUNTING)
    return alice


def rang(page: Page, topic: str) -> int:
    times: int = page.evaluate(f"window.rang.{topic}")
    return times


def rings(page: Page, topic: str, times: int = 1) -> None:
    page.wait_for_function(f"times => window.rang.{topic} >= times", arg=times)


def rings_again(page: Page, topic: str) -> None:
    """Not for what was about to ring anyway."""
    before = rang(page, topic)
    rung(topic)
    rings(page, topic, before + 1)


def say(office: Office, text: str) -> None:
    comments.say(Approval.objects.get(pk=office.held), by=office.alice, text=text)


def test_what_rings_while_the_count_is_read_is_counted(alice: Page, office: Office) -> None:
    alice.goto("/catalogue/")
    rings(alice, "queue")
    counts = HeldBack(alice, "**/queue/count/")
    another(office)
    counts.is_drawn_up()

    scenery.call(office.scout, office.send, {**scenery.MAIL, "subject": "Late"}, State.HELD)
    rings_again(alice, "queue")
    counts.comes()
    counts.ends()

    expect(alice.locator("#queue-count")).to_contain_text("4")
    # Where only the tab's title is seen, too.
    expect(alice).to_have_title(re.compile(r"^\(4\) "))


def test_what_is_frozen_while_freezes_are_read_is_shown(alice: Page, office: Office) -> None:
    alice.goto("/catalogue/")
    rings(alice, "frozen")
    banners = HeldBack(alice, "**/emergency-stops/banner/")
    freezes.begin(by=office.alice, reason="It moves.", server=office.send.server)
    rings_again(alice, "frozen")
    banners.is_drawn_up()

    freezes.begin(by=office.alice, reason="It asks too often.", agent=office.scout)
    rings_again(alice, "frozen")
    banners.comes()
    banners.ends()

    expect(alice.locator("#frozen")).to_contain_text("The agent scout is suspended.")
    expect(alice.locator("#frozen")).to_contain_text("The server mailer is suspended.")


def test_what_is_said_while_the_talk_is_on_its_way_is_shown(alice: Page, office: Office) -> None:
    talks = HeldBack(alice, "**/talk/")
    alice.goto(f"/calls/{office.held}/")
    rings(alice, "queue")
    rings(alice, "calls")
    talks.is_drawn_up()

    say(office, "Does Ana know of it?")
    rings_again(alice, "queue")
    rings_again(alice, "calls")
    talks.comes()
    talks.ends()

    expect(alice.locator("#talk")).to_contain_text("Does Ana know of it?")


def test_a_reading_that_failed_is_made_again(opened: Opened, office: Office) -> None:
    page = opened(office.alice, will_complain_of=("ERR_FAILED", "htmx:sendError"))
    page.add_init_script(COUNTING)
    page.goto("/queue/")
    rings(page, "queue")
    expect(page.locator(".htmx-request")).to_have_count(0)
    page.route(NEWS, lambda route: route.abort(), times=1)

    with page.expect_event("requestfailed"):
        another(office)

    expect(page.get_by_role("link", name="1 new")).to_be_visible()


def test_the_line_is_opened_once_the_page_hears(alice: Page, office: Office) -> None:
    alice.add_init_script(OPENING)

    alice.goto("/queue/")

    live(alice)
    assert alice.evaluate("window.wasReady")


@pytest.mark.parametrize("page", ["/queue/", "/queue/{}/", "/calls/{}/"])
def test_what_one_writes_while_a_comment_is_on_its_way_is_kept(
    alice: Page, office: Office, page: str
) -> None:
    alice.goto(page.format(office.held))
    place = alice.locator(f"#talk-{office.held}")
    place.get_by_text("Comments (0)").click()
    answers = HeldBack(alice, "**/say/")
    place.get_by_label("Comment").fill("I look into it.")
    place.get_by_role("button", name="Comment").click()
    answers.is_drawn_up()
    rung("queue")
    # The news of it are quicker.
    expect(place.get_by_role("listitem")).to_contain_text("I look into it.")

    place.get_by_label("Comment").fill("Who is Ana?")
    place.get_by_role("button", name="Ask the agent").click()
    answers.comes()
    answers.ends()

    expect(place.get_by_role("listitem").last).to_contain_text("Question to the agent")
    expect(place.get_by_label("Comment")).to_have_value("")
    expect(place.locator("summary")).to_contain_text("Comments (2)")
    assert [one.text for one in Comment.objects.all()] == ["I look into it.", "Who is Ana?"]


def test_a_comment_that_is_pressed_twice_is_said_once(alice: Page, office: Office) -> None:
    alice.goto(f"/queue/{office.held}/")
    place = alice.locator(f"#talk-{office.held}")
    place.get_by_text("Comments (0)").click()
    answers = HeldBack(alice, "**/say/")
    place.get_by_label("Comment").fill("I look into it.")

    place.get_by_role("button", name="Comment").dblclick()
    answers.is_drawn_up()
    answers.comes()
    answers.ends()

    expect(place.get_by_label("Comment")).to_have_value("")
    expect(place.get_by_role("alert")).to_have_count(0)
    assert Comment.objects.count() == 1


def test_nothing_is_no_comment(alice: Page, office: Office) -> None:
    alice.goto(f"/queue/{office.held}/")
    place = alice.locator(f"#talk-{office.held}")
    place.get_by_text("Comments (0)").click()

    place.get_by_role("button", name="Comment").press("Enter")

    # The browser says so itself, at the box.
    expect(place.get_by_label("Comment")).to_be_focused()
    assert not Comment.objects.exists()


def test_what_was_said_stays_when_older_news_arrive(alice: Page, office: Office) -> None:
    alice.goto(f"/queue/{office.held}/")
    rings(alice, "queue")
    place = alice.locator(f"#talk-{office.held}")
    place.get_by_text("Comments (0)").click()
    news = HeldBack(alice, NEWS)
    rings_again(alice, "queue")
    news.is_drawn_up()
    place.get_by_label("Comment").fill("I look into it.")
    place.get_by_role("button", name="Comment").click()
    expect(place.get_by_role("listitem")).to_contain_text("I look into it.")

    news.comes()

    expect(place.get_by_role("listitem")).to_contain_text("I look into it.", timeout=1)
    news.ends()


def test_news_leave_alone_what_has_not_changed(alice: Page, office: Office) -> None:
    two = scenery.call(
        office.scout, office.send, scenery.MAIL, State.HELD, thresholds=(Threshold(approve=2),)
    )
    alice.goto(f"/queue/{two}/")
    rings(alice, "queue")
    alice.get_by_role("button", name="Approve", exact=True).click()
    taking_back = alice.get_by_role("button", name="Take your vote back")
    # News of the vote may come before its own answer, which draws the card.
    expect(taking_back).to_be_visible()
    expect(alice.locator(".htmx-request, .htmx-settling")).to_have_count(0)
    taking_back.focus()
    drawn = alice.evaluate("window.drawn")

    rings_again(alice, "queue")
    alice.wait_for_function("drawn => window.drawn > drawn", arg=drawn)

    expect(taking_back).to_be_focused(timeout=1)


def test_a_queue_page_asks_once_at_each_ring(alice: Page, office: Office) -> None:
    asked: list[str] = []
    alice.goto("/queue/")
    rings(alice, "queue")
    expect(alice.locator(".htmx-request")).to_have_count(0)
    before = rang(alice, "queue")
    alice.on("request", lambda request: asked.append(request.url))

    another(office)

    expect(alice.get_by_role("link", name="1 new")).to_be_visible()
    expect(alice.locator("#queue-count")).to_contain_text("3")
    # On a busy machine it rings again, for what might have been lost; also for freezes.
    queue = [url for url in asked if "/queue/" in url]
    assert 0 < len(queue) <= rang(alice, "queue") - before, asked
    assert all(NEWS.search(url) for url in queue), asked


def test_the_first_call_of_all_is_told_to_an_empty_list(alice: Page, office: Office) -> None:
    novice = create_agent("novice", owner=office.alice, by=office.alice)
    alice.goto("/calls/?agent=novice")
    rings(alice, "calls")
    expect(alice.get_by_text("No call fits")).to_be_visible()

    scenery.call(novice, office.send, scenery.MAIL, State.HELD)
    rung("calls")

    alice.get_by_role("link", name="1 new call").click()
    expect(alice.get_by_role("link", name="mailer.send_mail")).to_have_count(1)


def test_what_is_unfolded_stays_so_and_the_keyboard_there(alice: Page, office: Office) -> None:
    moments.asked_and_logged(office.running)
    alice.goto(f"/calls/{office.running}/")
    live(alice)
    questions = alice.get_by_role("region", name="Questions of the server")
    fold = questions.get_by_text("The question as it was sent").last
    fold.press("Enter")

    said = {"role": "assistant", "content": {"type": "text", "text": "All is well."}, "model": "m"}
    moments.answered(office.running, "summary", said)
    rung(f"call.{office.running}")

    expect(questions.get_by_text("Not answered yet")).to_have_count(0)
    expect(questions.get_by_text('"maxTokens":200')).to_be_visible()
    expect(fold).to_be_focused()
    fold.press("Enter")
    expect(questions.get_by_text('"maxTokens":200')).to_be_hidden()
