"""A first visit: three questions, answered by pressing what is in sight (docs/tour.md).

`python -m tests.browser.tour` walks the same way and takes the pictures.
"""

from playwright.sync_api import Page, expect

from tests.browser import tour


def test_a_first_visitor_finds_the_three_answers(alice: Page) -> None:
    alice.goto("/")

    tour.what_can_delete(alice)
    for tool in ("mailer.send_mail", "files.write_file"):
        expect(alice.get_by_role("link", name=tool)).to_be_visible()
    expect(alice.get_by_role("link", name="code.search")).to_have_count(0)

    tour.what_waits(alice)
    expect(alice.locator("[data-card]")).to_have_count(2)
    expect(alice.locator("[data-card]").first).to_contain_text("scout, for bob, wants to use")

    tour.what_scout_did(alice)
    expect(alice.get_by_text("asked once for calculator.add")).to_be_visible()
    expect(alice.get_by_text("Allowed by the rule “Everyday work”").first).to_be_visible()
