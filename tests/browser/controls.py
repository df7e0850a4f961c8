"""Which controls the pages have, and which of them some test used as a person does.

controls.js says both while the browser tests run; here they get names that do not depend on rows
(routes of the URL conf instead of addresses) and go to a file. `whole.py` compares them.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import parse_qsl, urlsplit

from django.urls import Resolver404, resolve
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Request

from tests.browser.whole import Control, directory

SCRIPT = Path(__file__).with_suffix(".js")
MARK = "@controls "
# A secret is shown once, and what is wrong beside its field, by the answer to a form: on the page
# that has the form. What rolls back stands under the tabs of the page that it is opened from.
DRAWS = {
    "accounts:display_name": "accounts:profile",
    "accounts:issue_token": "accounts:agent",
    "accounts:rotate_token": "accounts:agent",
    "accounts:issue_service_token": "accounts:service_account",
    "accounts:rotate_service_token": "accounts:service_account",
    "accounts:issue_scim_token": "accounts:provisioning",
    "accounts:rotate_scim_token": "accounts:provisioning",
    "accounts:new_link": "accounts:person",
    "notifications:rotate_secret": "notifications:webhook",
    "registry:roll_back": "registry:tool_versions",
}
# Who is invited is shown by the answer to the invitation, at its address; so is a new webhook.
DRAWN_AT = {
    ("accounts:invite", "access"): "accounts:person",
    ("accounts:invite", "accounts:person"): "accounts:person",
    ("accounts:invite", "approvals:disable_person"): "accounts:person",
    ("notifications:add_webhook", "notifications:edit_webhook"): "notifications:webhook",
    ("notifications:add_webhook", "notifications:remove_webhook"): "notifications:webhook",
}
CATALOGUE = "registry:catalogue"
# Django's own pages, which are not ours to test.
NOT_OURS = "admin:"
CHINESE = re.compile("[\u4e00-\u9fff]")


class Recorder:
    """Writes down what contexts of this browser say; each thing once."""

    def __init__(self, file: TextIO) -> None:
        self.file = file
        self.written: set[str] = set()

    def attach(self, browser: Browser) -> None:
        new_context = browser.new_context

        def watched(**options: Any) -> BrowserContext:
            context = new_context(**options)
            if options.get("java_script_enabled", True):
                context.add_init_script(path=SCRIPT)
                context.on("console", self.heard)
            else:
                context.on("request", self.sent)
            return context

        browser.new_context = watched  # type: ignore[method-assign]

    def heard(self, message: ConsoleMessage) -> None:
        if message.text.startswith(MARK):
            what, by, part, kind, to, name = json.loads(message.text.removeprefix(MARK))
            self._write(what, _control(part, kind, to, name), by)

    def sent(self, request: Request) -> None:
        """Without JavaScript no page says what was pressed; what was sent does."""
        for name, value in parse_qsl(request.post_data or "", keep_blank_values=True):
            button = Control("without JavaScript", "button", f"{name} {value.partition(' ')[0]}")
            self._write("used", button, "")

    def _write(self, what: str, control: Control, by: str) -> None:
        # On a page in Chinese stand the same controls, by other names.
        if control.part.startswith(NOT_OURS) or CHINESE.search(control.name):
            return
        for line in ([what, *control], *([["keyed", *control]] if by else [])):
            text = json.dumps(line)
            if text not in self.written:
                self.written.add(text)
                self.file.write(text + "\n")


@contextmanager
def written_down() -> Iterator[Recorder]:
    with (directory() / f"controls-{os.getpid()}").open("a", buffering=1) as file:
        yield Recorder(file)


def _control(part: str, kind: str, to: str, name: str) -> Control:
    here, there = _place(part), _place(to)
    here = DRAWS.get(here, DRAWN_AT.get((here, there), here))
    # A form that is not the page's own is drawn from one template wherever it stands.
    if kind != "link" and there and there != here and part.startswith("/"):
        here = "many pages"
    if kind == "link":
        # One that keeps what is searched for is the one without.
        name = " ".join(word for word in name.split() if word != "q")
        if there == here == CATALOGUE and not name:
            # With no facet any more, as the navigation has it.
            here = "frame"
    return Control(here, kind, _name(f"{there} {name}".strip()))


@cache
def _place(path: str) -> str:
    """The name of the route, for an address."""
    if not path.startswith("/"):
        return path
    try:
        return resolve(urlsplit(path).path).view_name
    except Resolver404:
        return "nowhere"


# What differs from row to row: ids, numbers and what follows from them, names of agents.
ROWS = (
    (r"[0-9a-f]{8}-[0-9a-f-]{27}|\d[\d, ]*\d|\d", "N"),
    (r"(?<=N )(comment|character|byte|call)s?\b.*", r"\1s"),
    (r"Comments \(N\)", "The comments"),
    (r"N pieces? of advice\b.*", "Advice"),
    (r"The calls? of \S+ before this one.*|The N calls", "The calls before this one"),
)


def _name(name: str) -> str:
    for pattern, instead in ROWS:
        name = re.sub(pattern, instead, name)
    return name
