"""A person watches a report being written while its worker is killed.

`python -m tests.browser.watching [DIRECTORY]` takes the pictures of
docs/en/concepts/long-calls.md: a report of 30 s whose worker dies after 10.
The test does the same in less time.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from config.embedded.service import wait_until
from config.embedded.valkey import free_port
from tests.plugin import environment
from tests.processes import ROOT, Stack

if TYPE_CHECKING:
    from playwright.sync_api import Page

PICTURES = Path(__file__).parents[2] / "docs" / "en" / "concepts" / "long-calls"
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
Look = Callable[[str], None]


@dataclass(frozen=True)
class Desk:
    """Where an agent asks for reports."""

    url: str
    token: str

    def ask(self, tool: str = "write_report", **arguments: int) -> str:
        """The id of a call that is under way."""
        body = {"toolset": "desk", "tool": f"reports.{tool}", "arguments": arguments}
        request = urllib.request.Request(
            f"{self.url}/api/calls?wait=0",
            data=json.dumps(body).encode(),
            headers={
                "Authorization": f"Bearer {self.token}",
                "Content-Type": "application/json",
            },
        )
        with urllib.request.urlopen(request, timeout=30) as response:
            return str(json.load(response)["id"])


@contextmanager
def reports() -> Iterator[str]:
    """The example server on a port of its own."""
    port = free_port()
    argv = [sys.executable, "-m", "examples.reports", "--http", str(port)]
    process = subprocess.Popen(argv, cwd=ROOT, stderr=subprocess.DEVNULL)
    try:
        assert wait_until(lambda: _listens(port), seconds=30)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


def _listens(port: int) -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=1)
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


def furnish(url: str, console: str) -> Desk:
    """bob's agent may ask for reports; whoever watches may see everything."""
    from accounts import services as accounts
    from accounts.models import User
    from accounts.roles import Role
    from audit.services import SYSTEM
    from policies.models import Effect, Rule
    from policies.services import save_rule
    from registry import services
    from registry.discovery import discovery
    from registry.models import Tool
    from tests.console import scenery
    from tests.publishing import publish_what_is_found

    roles = (Role.APPROVER, Role.AUDITOR, Role.OPERATOR)
    scenery.person("alice", *roles, password=scenery.PASSWORD)
    bob = User.objects.create_user("bob")
    scout = accounts.create_agent("scout", owner=bob, by=bob)
    toolset = services.create_toolset("desk", by=bob)
    server = services.register(
        "reports", transport="http", url=url, owner=bob, by=bob, publish=True
    )
    services.add_server(toolset, server, by=bob)
    services.assign(toolset, scout, by=bob)
    with ThreadPoolExecutor(1) as thread:
        # While Playwright runs, this thread's event loop is its own.
        (found,) = thread.submit(asyncio.run, discovery.look_at([server.pk])).result()
    assert found.succeeded, found.summary
    publish_what_is_found(by=bob)
    Tool.objects.filter(server=server).update(mode=Tool.Mode.BACKGROUND)
    save_rule(Rule(name="Everyday work", effect=Effect.ALLOW, tool="*"), by=SYSTEM)
    return Desk(console, accounts.issue_token(scout, by=bob))


def watch(page: Page, desk: Desk, stack: Stack, look: Look, *, seconds: int, kill_at: int) -> None:
    """`look` is told what is to be seen by now."""
    from playwright.sync_api import expect

    page.goto(f"/calls/{desk.ask(seconds=seconds)}/")
    expect(page.locator("[data-connection]")).to_have_text("Live")
    bar = page.get_by_role("progressbar")
    _until_done(page, kill_at / seconds)
    expect(page.locator("#call-state")).to_contain_text("Running")
    look("1-running")

    stack.worker.kill()
    reached = int(bar.get_attribute("value") or 0)
    # Nobody knows better yet, and nobody says more than was said last.
    expect(page.locator("#call-state")).to_contain_text("Running")
    assert int(bar.get_attribute("value") or 0) >= reached
    look("2-killed")

    stack.worker.start()
    expect(page.locator("#call-state")).to_contain_text("Outcome unknown", timeout=60_000)
    expect(page.get_by_text("Whoever ran the call stopped before saying")).not_to_have_count(0)
    expect(bar).to_have_count(0)
    look("3-unknown")

    page.reload()
    expect(page.get_by_role("heading", name="Unresolved")).to_be_visible()
    look("4-to-find-out")


def watch_again(
    page: Page, desk: Desk, stack: Stack, look: Look, *, seconds: int, kill_at: int
) -> None:
    """The same, once an operator has said that writing a report twice does no harm."""
    from playwright.sync_api import expect

    page.goto(f"/calls/{desk.ask(seconds=seconds)}/")
    expect(page.locator("[data-connection]")).to_have_text("Live")
    _until_done(page, kill_at / seconds)
    stack.worker.kill()
    stack.worker.start()
    expect(page.locator("#call-timeline")).to_contain_text("Whoever ran", timeout=60_000)
    _until_done(page, 0.5)
    look("5-second-attempt")
    wait_ms = (seconds + 30) * 1000
    expect(page.locator("#call-state")).to_contain_text("Succeeded", timeout=wait_ms)
    look("6-succeeded")


def _until_done(page: Page, part: float) -> None:
    page.wait_for_function(
        "part => Number(document.querySelector('progress')?.getAttribute('value')) >= part * 100",
        arg=part,
        timeout=60_000,
    )


def mark_safe() -> None:
    from registry.models import Tool

    Tool.objects.filter(name="write_report").update(safe_to_repeat=True)


def main(target: Path) -> None:
    from playwright.sync_api import sync_playwright

    target.mkdir(parents=True, exist_ok=True)
    with (
        environment(),
        tempfile.TemporaryDirectory() as logs,
        Stack(Path(logs)) as stack,
        reports() as url,
    ):
        os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
        import django

        django.setup()
        from tests.console.scenery import PASSWORD

        stack.env |= SETTINGS
        desk = furnish(url, stack.web_url)
        assert stack.web
        assert stack.worker
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            page = browser.new_page(base_url=stack.web_url, viewport={"width": 1180, "height": 860})
            page.goto("/sign-in/")
            page.get_by_label("Name").fill("alice")
            page.get_by_label("Password").fill(PASSWORD)
            page.get_by_role("button", name="Sign in").click()
            page.wait_for_url("**/overview/")

            def look(name: str) -> None:
                page.screenshot(path=target / f"{name}.png")

            watch(page, desk, stack, look, seconds=30, kill_at=10)
            os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
            mark_safe()
            watch_again(page, desk, stack, look, seconds=30, kill_at=10)
            browser.close()


SETTINGS = {"COUNTERSIGN_LEASE_S": "5", "COUNTERSIGN_UPSTREAM_NETWORKS": "127.0.0.0/8"}

if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES)
