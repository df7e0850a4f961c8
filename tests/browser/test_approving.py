"""What approvers do besides yes and no: talk, take back, freeze, and grants that they regret."""

import pytest
from playwright.sync_api import Locator, Page, expect

from accounts.models import User
from accounts.roles import Role
from approvals import standing_approvals
from approvals.models import Approval, Comment, Grant, Vote
from approvals.services import vote
from approvals.standing_approvals import Terms
from calls.models import Amendment, Call, Freeze
from calls.record.states import State
from policies.thresholds import Threshold
from tests.browser import moments
from tests.browser.conftest import Opened
from tests.browser.hands import choose
from tests.browser.scene import Office
from tests.console import scenery


@pytest.fixture
def carol(office: Office) -> User:
    return scenery.person("carol", Role.APPROVER)


def card(page: Page, office: Office) -> Locator:
    return page.locator(f"#card-{office.held}")


def test_approvers_and_the_agent_are_talked_to_on_the_card(alice: Page, office: Office) -> None:
    alice.goto("/queue/")
    talk = card(alice, office).locator(".talk")
    talk.locator("summary", has_text="Comments (0)").focus()
    alice.keyboard.press("Enter")

    talk.get_by_label("Comment").fill("Ana asked for it.")
    talk.get_by_role("button", name="Comment").click()
    expect(talk.get_by_role("listitem")).to_contain_text("Ana asked for it.")
    talk.get_by_label("Comment").fill("Who is Ana?")
    talk.get_by_role("button", name="Ask the agent").press("Enter")

    expect(talk.get_by_role("listitem").last).to_contain_text("Question to the agent")
    kinds = Comment.objects.values_list("kind", flat=True)
    assert list(kinds) == [Comment.Kind.COMMENT, Comment.Kind.QUESTION]


def test_a_vote_is_taken_back_while_others_have_to_vote(
    opened: Opened, alice: Page, office: Office, carol: User
) -> None:
    two = scenery.call(
        office.scout, office.send, scenery.MAIL, State.HELD, thresholds=(Threshold(approve=2),)
    )
    alice.goto(f"/queue/{two}/")
    alice.get_by_role("button", name="Approve", exact=True).click()
    expect(alice.get_by_text("1 of 2")).to_be_visible()
    expect(alice.get_by_text("May still vote: carol")).to_be_visible()

    alice.get_by_role("button", name="Take your vote back").press("Enter")

    expect(alice.get_by_text("0 of 2")).to_be_visible()
    assert not Vote.objects.standing().exists()
    assert Call.objects.get(pk=two).state == State.HELD


def test_votes_and_comments_are_on_the_calls_page_too(alice: Page, office: Office) -> None:
    alice.goto(f"/calls/{office.held}/")
    talk = alice.locator("#talk")

    talk.locator("summary", has_text="Comments (0)").press("Enter")
    talk.get_by_label("Comment").fill("I look into it.")
    talk.get_by_role("button", name="Comment").click()

    expect(talk.get_by_role("listitem")).to_contain_text("I look into it.")
    talk.get_by_label("Comment").fill("Who is Ana?")
    talk.get_by_role("button", name="Ask the agent").press("Enter")
    expect(talk.get_by_role("listitem").last).to_contain_text("Question to the agent")

    # What the call's page draws within itself is a page for those without JavaScript.
    alice.goto(f"/queue/{office.held}/talk/")
    talk.locator("summary", has_text="Comments (2)").press("Enter")
    expect(talk.get_by_text("Who is Ana?")).to_be_hidden()
    talk.get_by_text("Comments (2)").click()
    expect(talk.get_by_text("Who is Ana?")).to_be_visible()
    talk.get_by_label("Comment").fill("Ana has left.")
    talk.get_by_role("button", name="Comment").press("Enter")
    expect(talk.get_by_role("listitem").last).to_contain_text("Ana has left.")
    talk.get_by_label("Comment").fill("Since when?")
    talk.get_by_role("button", name="Ask the agent").click()
    expect(talk.get_by_role("listitem").last).to_contain_text("Question to the agent")


def test_what_was_edited_can_be_unfolded_on_the_calls_page(
    alice: Page, office: Office, carol: User
) -> None:
    moments.edited(office, carol)
    alice.goto(f"/calls/{Amendment.objects.get().call_id}/")
    sent = alice.get_by_role("group").filter(has_text="As they were edited")
    expect(sent.get_by_text("board@example.org")).to_be_hidden()

    sent.get_by_text("As they were edited").press("Enter")

    expect(sent.get_by_text("board@example.org")).to_be_visible()


def test_one_freezes_and_somebody_else_lets_it_go_on(
    opened: Opened, alice: Page, office: Office
) -> None:
    alice.goto("/settings/")
    alice.get_by_role("main").get_by_role("link", name="Emergency stops").click()
    choose(alice.get_by_label("What", exact=True), "agent:scout")
    alice.get_by_role("button", name="Review impact").click()
    expect(alice.get_by_text("Other users who can end it")).to_be_visible()
    alice.get_by_label("Reason").fill("It asks too often.")
    alice.keyboard.press("Enter")
    expect(alice.locator("#frozen")).to_contain_text("The agent scout is suspended.")
    expect(alice.get_by_text("another user must check and end it")).to_be_visible()

    other = opened(scenery.person("olga", Role.OPERATOR))
    other.goto("/catalogue/")
    other.locator("#frozen").get_by_role("link", name="By alice").click()
    other.get_by_label("Why it can resume").fill("It was told not to.")
    other.get_by_role("button", name="Resume").focus()
    other.keyboard.press("Enter")

    expect(other.locator("#frozen")).not_to_contain_text("scout")
    expect(other.get_by_text("olga: It was told not to.")).to_be_visible()
    assert Freeze.objects.get().ended_by


def test_a_freeze_begins_by_its_button(alice: Page, office: Office) -> None:
    alice.goto("/emergency-stops/")
    expect(alice.get_by_label("What", exact=True)).to_have_value("")
    choose(alice.get_by_label("What", exact=True), "mailer")
    alice.get_by_role("button", name="Review impact").press("Enter")
    expect(alice.get_by_role("heading", name="Suspend server mailer?")).to_be_visible()
    alice.get_by_role("link", name="Cancel").press("Enter")
    alice.wait_for_url("**/emergency-stops/")
    alice.goto("/emergency-stops/new/?what=server:mailer")

    alice.get_by_label("Reason").fill("It is being moved.")
    alice.get_by_role("button", name="Begin emergency stop").press("Enter")

    expect(alice.locator("#frozen")).to_contain_text("The server mailer is suspended.")


def granted(office: Office, subject: str) -> None:
    """In alice's name."""
    arguments = {**scenery.MAIL, "subject": subject}
    call_id = scenery.call(office.scout, office.send, arguments, State.HELD)
    approval = Approval.objects.get(pk=call_id)
    vote(approval, by=office.alice, approve=True, seen_digest=approval.call.call_digest)
    standing_approvals.make(Call.objects.get(pk=call_id), Terms(), by=office.alice)


def test_grants_are_revoked_one_by_one_and_all_together(alice: Page, office: Office) -> None:
    for subject in ("One", "Two", "Three"):
        granted(office, subject)
    alice.goto("/settings/")
    alice.get_by_role("main").get_by_role("link", name="Standing approvals").click()
    first = Grant.objects.order_by("pk").first()
    assert first

    alice.get_by_role("link", name=f"Revoke standing approval {first.pk}").focus()
    alice.keyboard.press("Enter")
    alice.get_by_role("link", name="Cancel").press("Enter")
    alice.get_by_role("link", name=f"Revoke standing approval {first.pk}").press("Enter")
    alice.get_by_role("button", name="Revoke the standing approval").press("Enter")
    expect(alice.locator(".grants > li")).to_have_count(2)
    alice.get_by_role("link", name="Revoke all of mine (2)").click()
    alice.get_by_role("link", name="Cancel").click()
    alice.get_by_role("link", name="Revoke all of mine (2)").click()
    alice.get_by_role("button", name="Revoke the standing approvals").click()
    expect(alice.get_by_text("No standing approvals")).to_be_visible()

    alice.get_by_role("link", name="Ended").click()
    expect(alice.locator(".grants > li")).to_have_count(3)
    alice.get_by_role("link", name="created from this call").first.click()
    expect(alice.get_by_role("heading", name="mailer.send_mail")).to_be_visible()
    alice.go_back()
    alice.get_by_role("link", name="Standing", exact=True).click()
    expect(alice.get_by_text("No standing approvals")).to_be_visible()


def test_an_administrator_revokes_everybodys(opened: Opened, office: Office) -> None:
    granted(office, "One")
    page = opened(scenery.person("ada", Role.ADMINISTRATOR))
    page.goto("/grants/")

    page.get_by_role("link", name="Revoke everybody's (1)").click()
    page.get_by_role("button", name="Revoke the standing approvals").click()

    expect(page.get_by_text("No standing approvals")).to_be_visible()
    assert not Grant.objects.not_ended().exists()
