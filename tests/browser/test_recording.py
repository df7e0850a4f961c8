"""What browser tests hear of a page: which controls were used, and what Chromium complains of."""

import io
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.conftest import listen
from tests.browser.controls import Recorder
from tests.browser.hands import choose, type_time
from tests.browser.whole import Left, compared
from tests.processes import Stack

pytestmark = pytest.mark.long

PAGE = """<!doctype html><title>Nowhere</title>
<a href="/calls/">Calls</a> <a href="/calls/?state=held">Held</a>
<form method="get" action="/calls/"><input name="tool"><button>Filter</button></form>
<select name="state" id="state"><option>a<option>b<option>c</select>
<input type="date" name="day">
<details><summary>More</summary></details>
<p hidden><button type="button">Hidden</button></p>
<ul><li><button type="button">Row 1</button><li><button type="button">Row 2</button></ul>"""


class Nowhere:
    """A page of the test's own, and what is written of it."""

    def __init__(self, page: Page, directory: Path) -> None:
        self.page, self.directory = page, directory
        self.file = io.StringIO()
        page.context.on("console", Recorder(self.file).heard)
        page.route("**/*", lambda route: route.fulfill(status=204))
        page.route("**/here/", lambda route: route.fulfill(body=PAGE, content_type="text/html"))
        page.goto("http://localhost/nothing/here/")

    def unused(self) -> list[str]:
        return self._left().unused

    def keyed(self) -> bool:
        return "here" not in self._left().never_keyed

    def _left(self) -> Left:
        # Whatever the page said before this is answered is heard by then.
        self.page.evaluate("1")
        (self.directory / "controls-1").write_text(self.file.getvalue().replace("nowhere", "here"))
        return compared(self.directory)


@pytest.fixture
def nowhere(chromium: Browser, tmp_path: Path) -> Iterator[Nowhere]:
    context = chromium.new_context()
    yield Nowhere(context.new_page(), tmp_path)
    context.close()


def test_what_nobody_used_is_named(nowhere: Nowhere) -> None:
    assert nowhere.unused() == [
        "here | button | Row N",
        "here | date | day",
        "here | fold | More",
        "here | link | calls:list",
        "here | link | calls:list state",
        "here | select | state",
        "many pages | button | calls:list",
        "many pages | form | calls:list get",
        "many pages | text | calls:list tool",
    ]


def test_a_script_uses_nothing(nowhere: Nowhere) -> None:
    before = nowhere.unused()

    nowhere.page.locator("button").first.dispatch_event("click")
    nowhere.page.evaluate("document.querySelector('summary').click()")
    nowhere.page.locator("select").select_option("b")
    nowhere.page.locator("[name=day]").fill("2026-11-21")

    assert nowhere.unused() == before


def test_hands_use_what_they_touch(nowhere: Nowhere) -> None:
    page = nowhere.page
    page.get_by_role("button", name="Row 2").click()
    page.get_by_text("More").click()
    assert not nowhere.keyed()
    choose(page.locator("select"), "c")
    type_time(page.locator("[name=day]"), "2026-11-21")
    assert "here | select | state" not in nowhere.unused()
    page.locator("[name=tool]").press("x")
    with page.expect_request("**/calls/?tool=x"):
        page.locator("[name=tool]").press("Enter")

    assert nowhere.unused() == ["here | link | calls:list", "here | link | calls:list state"]
    assert nowhere.keyed()


INLINE = """() => {
  const script = document.createElement("script");
  script.textContent = "window.ran = true";
  document.body.append(script);
}"""


def test_what_a_browser_complains_of_is_heard(chromium: Browser, stack: Stack) -> None:
    assert stack.web
    complaints: list[str] = []
    context = chromium.new_context(base_url=stack.web_url)
    page = context.new_page()
    listen(page, complaints)
    page.goto("/sign-in/")
    assert complaints == []

    page.evaluate(INLINE)
    assert page.evaluate("window.ran") is None
    assert "Content Security Policy" in complaints[-1]
    with page.expect_console_message(lambda message: "404" in message.text):
        page.evaluate("fetch('/no/such/page/')")
    assert any(said.endswith(": 404") for said in complaints)
    context.close()


BEGIN = """() => {
  window.giving = new AbortController();
  fetch("/slow/", {signal: giving.signal}).catch(() => {});
}"""


def test_a_load_is_given_up_for_another_page_or_not_at_all(chromium: Browser, stack: Stack) -> None:
    assert stack.web
    complaints: list[str] = []
    context = chromium.new_context(base_url=stack.web_url)
    page = context.new_page()
    listen(page, complaints)
    page.goto("/sign-in/")
    page.route("**/slow/", lambda route: None)
    with page.expect_request("**/slow/"):
        page.evaluate(BEGIN)

    with page.expect_event("requestfailed"):
        page.evaluate("giving.abort()")

    assert complaints == [f"GET {stack.web_url}/slow/: net::ERR_ABORTED"]
    page.goto("/sign-in/?ended=1")
    assert complaints == []
    context.close()


@contextmanager
def half_answering() -> Iterator[str]:
    """A server with a page, whose answers to forms never end: at /half/ they begin, else not."""
    enough = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._begin(0)

        def do_POST(self) -> None:
            if self.path == "/half/":
                self._begin(100)
            enough.wait(60)

        def _begin(self, length: int) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(length))
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            enough.set()
            server.shutdown()
            thread.join()


def test_what_was_sent_is_left_once_its_answer_came(chromium: Browser) -> None:
    complaints: list[str] = []
    context = chromium.new_context()
    page = context.new_page()
    listen(page, complaints)
    with half_answering() as url:
        for path in ("/half/", "/never/"):
            page.goto(f"{url}/form/")
            begun = page.expect_response if path == "/half/" else page.expect_request
            with begun(f"**{path}"):
                page.evaluate("path => { fetch(path, {method: 'POST'}).catch(() => {}); }", path)

            with page.expect_event("requestfailed"):
                page.goto(f"{url}/next/")

        assert complaints == [f"POST {url}/never/: net::ERR_ABORTED"]
        context.close()
