"""A real Chromium before real daphne. A test fails on anything that the browser complains of."""

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import Client
from playwright.sync_api import Browser, BrowserContext, Page, Request, expect, sync_playwright

from accounts.models import User
from core.live import notify
from tests.browser.controls import written_down
from tests.browser.scene import Office
from tests.browser.scene import office as furnished
from tests.processes import Stack

CHROMIUM = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
PATIENCE_MS = 20_000
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]


# Of the package, not of the session: while Playwright runs, its event loop is this thread's, and
# no other test could start one.
@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    with pytest.MonkeyPatch.context() as patch, sync_playwright() as playwright:
        # That loop never runs our code, so Django need not fear to block it.
        patch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "1")
        # Other workers' browsers use the same cores.
        expect.set_options(timeout=PATIENCE_MS)
        path = CHROMIUM if CHROMIUM.exists() else None
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        with written_down() as recorder:
            recorder.attach(browser)
            yield browser
        browser.close()


@pytest.fixture
def office(chromium: Browser, transactional_db: None, stack: Stack) -> Office:
    # Nothing is behind the office's servers: a worker that another file asked for would say so of
    # every call that these tests approve.
    stack.end_worker()
    return furnished()


Opened = Callable[..., Page]


@pytest.fixture
def opened(chromium: Browser, stack: Stack, office: Office) -> Iterator[Opened]:
    """`opened(person, **options)`: a window of somebody who is signed in, or of a stranger."""
    assert stack.web
    contexts: list[BrowserContext] = []
    complaints: list[str] = []
    provoked: list[str] = []

    def open_window(
        person: User | None = None, *, will_complain_of: tuple[str, ...] = (), **options: Any
    ) -> Page:
        context = chromium.new_context(base_url=stack.web_url, **options)
        contexts.append(context)
        if person is not None:
            context.add_cookies([session_cookie(person, stack.web_url)])
        page = context.new_page()
        listen(page, complaints)
        provoked.extend(will_complain_of)
        return page

    yield open_window

    def missing() -> list[str]:
        return [part for part in provoked if not any(part in said for said in complaints)]

    # What a test provokes has to come, be it a moment after what the test waited for.
    until = time.monotonic() + PATIENCE_MS / 1000
    if missing():
        waiting = contexts[0].new_page()
        while missing() and time.monotonic() < until:
            waiting.wait_for_timeout(20)
    for context in contexts:
        context.close()
    # And nothing else may.
    assert missing() == []
    assert [said for said in complaints if not any(part in said for part in provoked)] == []


@pytest.fixture
def alice(opened: Opened, office: Office) -> Page:
    """alice's window; she approves, audits and operates."""
    return opened(office.alice)


# Said of what fails and of what is given up; the failure itself is a complaint (Loads).
OF_ANY_END = ("htmx:afterRequest", "htmx:sendAbort")


class Loads:
    """What a page gave up loading is a complaint, unless it was left, or asked the same anew."""

    def __init__(self, page: Page, complaints: list[str]) -> None:
        self.complaints = complaints
        self.asked: dict[Request, int] = {}
        self.newest: dict[str, int] = {}
        self.answered: set[Request] = set()
        self.given_up: list[tuple[Request, str]] = []
        # So many were asked for before it was left last.
        self.left_at = -1
        page.on("request", self.begun)
        page.on("response", lambda response: self.answered.add(response.request))
        page.on("requestfailed", self.failed)
        page.on("framenavigated", self.left)
        page.on("close", self.left)

    def begun(self, request: Request) -> None:
        self.asked[request] = self.newest[_address(request)] = len(self.asked)
        self.forgive()

    def failed(self, request: Request) -> None:
        said = f"{request.method} {request.url}: {request.failure}"
        self.complaints.append(said)
        if "ERR_ABORTED" in (request.failure or ""):
            self.given_up.append((request, said))
            self.forgive()

    def left(self, _by: object) -> None:
        self.left_at = len(self.asked)
        self.forgive()

    def forgive(self) -> None:
        for request, said in list(self.given_up):
            at = self.asked.get(request, -1)
            again = at < self.newest.get(_address(request), -1)
            # What was sent is not left unanswered. An answer may lead to another page before its
            # last byte is read.
            left = at < self.left_at and (request.method == "GET" or request in self.answered)
            # What is downloaded is no page after all.
            if again or left or request.is_navigation_request():
                self.complaints.remove(said)
                self.given_up.remove((request, said))


def _address(request: Request) -> str:
    return f"{request.method} {request.url.partition('?')[0]}"


def listen(page: Page, complaints: list[str]) -> None:
    def console(message: Any) -> None:
        # Content Security Policy complains here too.
        if message.type in ("error", "warning") and not message.text.startswith(OF_ANY_END):
            complaints.append(f"{page.url}: {message.text}")

    def answered(response: Any) -> None:
        if response.status >= 400:
            complaints.append(f"{response.url}: {response.status}")

    Loads(page, complaints)
    page.on("console", console)
    page.on("pageerror", lambda error: complaints.append(f"{page.url}: {error}"))
    page.on("response", answered)


def session_cookie(person: User, url: str) -> Any:
    client = Client()
    client.force_login(person)
    return {"name": "sessionid", "value": client.cookies["sessionid"].value, "url": url}


def rung(*groups: str) -> None:
    """As a gateway or worker rings; in a thread, since this one's loop is Playwright's."""
    with ThreadPoolExecutor(1) as thread:
        for group in groups:
            thread.submit(async_to_sync(notify), group).result()
