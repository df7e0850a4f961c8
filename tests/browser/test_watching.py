"""A person watches a report whose worker is killed: the page tells the truth all along."""

import signal
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from accounts.models import User
from calls.models import Call
from config.embedded.valkey import Valkey
from tests.browser.conftest import listen, session_cookie
from tests.browser.watching import SETTINGS, furnish, mark_safe, reports, watch, watch_again
from tests.processes import Stack
from tests.services import running
from tests.upstreams.stepping import Stepping


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


BROKEN = '"progress":9e307,"total":1.7e308,"message":"Beyond all counting"'


@pytest.mark.alone
def test_the_page_goes_on_through_absurd_numbers_and_without_a_broker(
    chromium: Browser, transactional_db: None, stack: Stack, own_stack: Stack, tmp_path: Path
) -> None:
    stack.end_worker()
    valkey = Valkey(tmp_path)
    with running(valkey, tmp_path / "valkey.log") as broker, Stepping() as server:
        own_stack.env |= SETTINGS | valkey.urls()
        desk = furnish(server.url, own_stack.web_url)
        assert own_stack.web
        assert own_stack.worker
        context = chromium.new_context(base_url=own_stack.web_url)
        context.add_cookies([session_cookie(User.objects.get(username="alice"), own_stack.web_url)])
        page = context.new_page()
        page.goto(f"/calls/{desk.ask('steps')}/")
        sign, progress = page.locator("[data-connection]"), page.locator("#call-progress")
        expect(sign).to_have_text("Live")

        server.said.append('"progress":1,"total":9,"message":"Step 1"')
        expect(progress).to_contain_text("Step 1")
        server.said.append(BROKEN)
        expect(progress).to_contain_text("Beyond all counting")
        expect(progress).to_contain_text("52%")
        expect(sign).to_have_text("Live")

        broker.send_signal(signal.SIGSTOP)
        expect(sign).not_to_have_text("Live")
        server.said.append('"progress":1.2e308,"total":1.7e308,"message":"Said to nobody"')
        expect(progress).not_to_contain_text("Said to nobody")
        broker.send_signal(signal.SIGCONT)
        expect(sign).to_have_text("Live", timeout=60_000)
        expect(progress).to_contain_text("Said to nobody")

        server.said.append('"progress":1.3e308,"total":1.7e308,"message":"And heard again"')
        expect(progress).to_contain_text("And heard again")
        server.release()
        expect(page.locator("#call-state")).to_contain_text("Succeeded")
        context.close()
    assert "could not be closed" not in own_stack.web.text()
    assert "no picture" not in own_stack.web.text()
