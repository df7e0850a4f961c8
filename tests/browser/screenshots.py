"""Every page in both themes and widths, to be looked at by people.

`python -m tests.browser.screenshots [DIRECTORY] [PART …]`: of all, or of those with a part in their
name. Names are addresses; those of an empty house begin with "empty", those for which something was
pressed first with "after".
"""

import os
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from tests.plugin import environment
from tests.processes import Stack

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page

SIZES: dict[str, dict[str, Any]] = {
    "1280": {"viewport": {"width": 1280, "height": 860}},
    "360": {"viewport": {"width": 360, "height": 780}, "is_mobile": True, "has_touch": True},
}
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]


def nothing(page: "Page") -> None:
    """As it comes."""


def find(page: "Page") -> None:
    page.keyboard.press("Control+k")
    page.locator("#palette-text").fill("mail")
    page.locator("#palette-places").get_by_text("mailer.send_mail").wait_for()


def keys(page: "Page") -> None:
    page.keyboard.press("?")
    page.get_by_role("dialog").wait_for()


def unfold(page: "Page") -> None:
    page.evaluate("document.querySelectorAll('details').forEach((e) => { e.open = true; })")


def mistaken(page: "Page") -> None:
    """A form with everything wrong, past the browser's own checks."""
    form = "[...document.querySelectorAll('main form')].find((e) => e.method === 'post')"
    page.evaluate(f"{form}.noValidate = true")
    with page.expect_navigation():
        page.evaluate(f"{form}.requestSubmit()")


class Shot(NamedTuple):
    name: str
    address: str
    before: Callable[["Page"], None] = nothing


EMPTY = ["catalogue", "servers", "queue", "calls", "calls/unknown", "audit", "audit/who-ran-what"]
EMPTY += ["agents", "toolsets", "policies", "grants", "freezes", "people", "settings"]
FORMS = ["new/agent", "new/server", "new/person", "new/rule", "new/toolset"]
PRESSED = [
    Shot("after find", "/calls/", find),
    Shot("after keys", "/queue/", keys),
    Shot("after unfolding queue", "/queue/", unfold),
    Shot("after unfolding audit", "/audit/", unfold),
    Shot("after unfolding catalogue", "/catalogue/", unfold),
    *(Shot(f"after mistakes in {form}", f"/{form}/", mistaken) for form in FORMS),
]
STRANGERS = [Shot(address, address) for address in ("/sign-in/", "/sign-in/?ended=1", "/nowhere/")]


def main(target: Path, parts: list[str]) -> None:
    target.mkdir(parents=True, exist_ok=True)
    with (
        environment() as databases,
        tempfile.TemporaryDirectory() as logs,
        Stack(Path(logs)) as stack,
    ):
        os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
        os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
        import django

        django.setup()
        from django.conf import settings

        from tests.browser import every_page, scene
        from tests.browser.conftest import session_cookie
        from tests.browser.yesterday import yesterday

        settings.ALLOWED_HOSTS.append("testserver")
        assert stack.web
        camera = Camera(target, stack.web_url, parts)
        ada = every_page.everybody("ada")
        cookie = session_cookie(ada, stack.web_url)
        camera.take([Shot(f"empty {path}", f"/{path}/") for path in EMPTY], cookie)
        camera.take(STRANGERS)
        with databases.superuser(os.environ) as link:
            office = scene.office(yesterday(link))
        every_page.furnish(office, ada)
        addresses = every_page.every_page(office, ada) + every_page.further(office)
        camera.take([Shot(address, address) for address in addresses] + PRESSED, cookie)
        viewer = session_cookie(office.bob, stack.web_url)
        trying = Shot("viewer trying", f"/tools/{office.send.exposed_name}/try/")
        camera.take([Shot("not allowed", "/audit/"), Shot("viewer", "/catalogue/"), trying], viewer)


class Camera(NamedTuple):
    target: Path
    base: str
    parts: list[str]

    def take(self, shots: list[Shot], cookie: Any = None) -> None:
        from playwright.sync_api import sync_playwright

        wanted = [s for s in shots if not self.parts or any(part in s.name for part in self.parts)]
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            for size, options in SIZES.items():
                context = browser.new_context(base_url=self.base, **options)
                context.add_cookies([cookie] if cookie else [])
                for shot in wanted:
                    self.picture(context, shot, size)
            browser.close()

    def picture(self, context: "BrowserContext", shot: Shot, size: str) -> None:
        page = context.new_page()
        page.goto(shot.address)
        page.locator(".htmx-request").first.wait_for(state="detached")
        shot.before(page)
        page.evaluate("document.fonts.ready")
        name = re.sub(r"[^a-z0-9.]+", "-", shot.name.lower()).strip("-")[:70]
        is_open = page.locator("dialog[open]").count() > 0
        for theme in THEMES:
            page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            path = self.target / f"{name}.{size}.{theme}.png"
            page.screenshot(path=path, full_page=not is_open)
        page.close()


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "/tmp/shots"), sys.argv[2:])
