"""A person watches a report whose worker is killed: the page tells the truth all along."""

import pytest
from playwright.sync_api import Browser, expect

from accounts.models import User
from calls.models import Call
from tests.browser.conftest import listen, session_cookie
from tests.browser.watching import SETTINGS, furnish, mark_safe, reports, watch, watch_again
from tests.processes import Stack


@pytest.mark.alone
def test_the_page_tells_the_truth_while_its_worker_dies(
    chromium: Browser, transactional_db: None, stack: Stack, own_stack: Stack
) -> None:
    # The shared one would take its calls.
    stack.end_worker()
    own_stack.env |= SETTINGS | {"COUNTERSIGN_LEASE_S": "2"}
    with reports() as url:
        desk = furnish(url, own_stack.web_url)
        assert own_stack.web
        assert own_stack.worker
        context = chromium.new_context(base_url=own_stack.web_url)
        context.add_cookies([session_cookie(User.objects.get(username="alice"), own_stack.web_url)])
        page = context.new_page()
        complaints: list[str] = []
        looked: list[str] = []
        listen(page, complaints)

        watch(page, desk, own_stack, looked.append, seconds=6, kill_at=2)
        mark_safe()
        watch_again(page, desk, own_stack, looked.append, seconds=4, kill_at=1)

        lost, repeated = Call.objects.order_by("id")
        assert (lost.state, lost.executed, lost.fence) == ("unknown", "unknown", 1)
        assert (repeated.state, repeated.executed, repeated.fence) == ("succeeded", "yes", 2)
        assert len(looked) == 6
        expect(page.get_by_text("Passengers in 2026")).not_to_have_count(0)
        context.close()
    assert complaints == []
