"""Every page in both themes and widths, to be looked at by people.

`python -m tests.browser.screenshots [DIRECTORY] [PART …]`: of all, or of those with a part in their
name. Names are addresses; those of an empty house begin with "empty", those for which something was
pressed first with "after". SIZE=360, THEME=light and SCRIPT=off take only these.
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
SIZE, THEME = os.environ.get("SIZE", ""), os.environ.get("THEME", "")
IS_SCRIPTED = os.environ.get("SCRIPT") != "off"
# What the browser asks for; with zh-CN pages are Chinese.
LOCALE = os.environ.get("LOCALE", "en-US")
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
UUIDS = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
SECRETS = re.compile(r"sign-in/[^?/]+")


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


def press(name: str, within: str = "main", then: str = "main") -> Callable[["Page"], None]:
    """The first button of that name, and wait for what comes of it."""

    def pressed(page: "Page") -> None:
        page.locator(within).get_by_role("button", name=name).first.click()
        page.locator(then).first.wait_for()

    return pressed


def submit(page: "Page") -> None:
    """By the first button of its form."""
    with page.expect_navigation():
        page.locator("main form button").first.click()


def allow_device(resource: str) -> Callable[["Page"], None]:
    """A new device each time: a code is answered once."""

    def allowed(page: "Page") -> None:
        from tests.browser.every_page import device_page

        page.goto(device_page(resource))
        submit(page)
        submit(page)

    return allowed


def write_mail(page: "Page") -> None:
    page.get_by_role("button", name="Add an item to to").click()
    page.get_by_role("group", name=re.compile("^to")).get_by_role("textbox").fill("ana@example.org")
    page.get_by_label(re.compile("^subject")).fill("Minutes of Thursday")
    page.get_by_label(re.compile("^body")).fill("Hello Ana,\n\nhere they are.")


def look(page: "Page") -> None:
    write_mail(page)
    press("What would happen?", then="#foreseen")(page)


def try_it(page: "Page") -> None:
    write_mail(page)
    press("Call the tool", then="#outcome")(page)


def paste(page: "Page") -> None:
    page.get_by_role("textbox").first.fill(
        '{"mcpServers": {"gone": {"url": "http://127.0.0.1:9"}}}'
    )
    press("Test the connection", then="#probe .note")(page)


def refuse(page: "Page") -> None:
    card = page.locator("[data-card]").first
    if not card.is_visible():
        page.locator("[data-row]").first.click()
    card.locator(".refusal > summary").click()
    card.get_by_text("Not now").first.click()
    card.get_by_label("Comment to the agent").fill("Ana is away until Thursday.")


def refused(page: "Page") -> None:
    refuse(page)
    card = page.locator("[data-card]").first
    card.get_by_role("button", name="Deny", exact=True).click()
    page.locator("[data-card].decided").first.wait_for()


def failed(template: str) -> Callable[["Page"], None]:
    """A page that is shown when nothing works, at an address of the console."""

    def shown(page: "Page") -> None:
        from django.template.loader import render_to_string
        from django.utils.translation import get_supported_language_variant, override

        with override(get_supported_language_variant(LOCALE.lower())):
            body = render_to_string(template)
        page.route("**/failed/", lambda route: route.fulfill(body=body))
        page.goto("/failed/")

    return shown


class Shot(NamedTuple):
    # Without what differs from run to run.
    name: str
    address: str
    before: Callable[["Page"], None] = nothing


EMPTY = [
    "overview",
    "catalogue",
    "servers",
    "queue",
    "calls",
    "calls/unknown",
    "audit",
    "audit/who-ran-what",
]
EMPTY += ["agents", "toolsets", "policies", "grants", "emergency-stops", "people", "settings"]
FORMS = ["new/agent", "new/server", "new/person", "new/rule", "new/toolset"]
PRESSED = [
    Shot("after find", "/calls/", find),
    Shot("after keys", "/queue/", keys),
    Shot("after unfolding queue", "/queue/", unfold),
    Shot("after unfolding audit", "/audit/", unfold),
    Shot("after unfolding catalogue", "/catalogue/", unfold),
    Shot("after unfolding connections", "/connections/", unfold),
    Shot("after unfolding accounts", "/servers/books/sign-in/", unfold),
    Shot("after unfolding signature", "/servers/tides/signature/", unfold),
    *(Shot(f"after mistakes in {form}", f"/{form}/", mistaken) for form in FORMS),
]
# What is pressed for these is named in English.
NAMED = [
    Shot("after issuing a token", "/agents/scout/", press("Create token", then="#token")),
    Shot("after a new link", "/people/3/", press("New sign-in link")),
    Shot("after testing a server", "/new/server/?by=paste", paste),
    Shot("after opening refuse", "/queue/", refuse),
]
# Who owns an agent tries its tools.
TRIED = [
    Shot("trying, looked", "/tools/mailer.send_mail/try/", look),
    Shot("trying, called", "/tools/mailer.send_mail/try/", try_it),
    Shot("trying, mistaken", "/tools/mailer.send_mail/try/", press("Call the tool", then=".error")),
]
# These change what is on other pages, and so come last.
DECIDED = [Shot("after refusing", "/queue/", refused)]
BROKEN = ("400.html", "403_csrf.html", "500.html")
STRANGERS = [
    *(Shot(address, address) for address in ("/sign-in/", "/sign-in/?ended=1", "/nowhere/")),
    *(Shot(template, "/sign-in/", failed(template)) for template in BROKEN),
]


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
        is_english = LOCALE.startswith("en")
        pressed = [*PRESSED, *(NAMED if is_english else [])] if IS_SCRIPTED else []
        camera.take([*named(addresses), *pressed], cookie)
        viewer = session_cookie(office.bob, stack.web_url)
        trying = Shot("viewer trying", f"/tools/{office.send.exposed_name}/try/")
        seen = [Shot("not allowed", "/audit/"), Shot("viewer", "/catalogue/"), trying]
        is_pressed = is_english and IS_SCRIPTED
        camera.take([*seen, *(TRIED if is_pressed else [])], viewer)
        camera.take(DECIDED if is_pressed else [], cookie)
        camera.take(signing_in(f"{stack.agents_url}/mcp/office"), cookie)


def signing_in(resource: str) -> list[Shot]:
    """What users see who sign in a client or a device as an agent."""
    from tests.browser.every_page import consent_page, device_page

    near, far = "http://127.0.0.1:9/callback", "https://agents.example.com/mcp/callback"
    return [
        Shot("signing in a client", consent_page("Goose", near, resource=resource)),
        Shot("signing in Claude", consent_page("Claude", far, resource=resource)),
        Shot("signing in, rejected", consent_page("Goose", far, resource=f"{resource}/none")),
        Shot("signing in a device, code", device_page(resource)),
        Shot("signing in a device, mistyped", "/oauth/device?user_code=BCDF", submit),
        Shot("signing in a device, consent", device_page(resource), submit),
        Shot("signing in a device, done", "/oauth/device", allow_device(resource)),
    ]


def named(addresses: list[str]) -> list[Shot]:
    """Each by its address, where a call's id is its state, and what is secret is left out."""
    from calls.models import Call

    names: dict[str, str] = {}
    states = {str(pk): state for pk, state in Call.objects.values_list("pk", "state")}
    for address in addresses:
        name = UUIDS.sub(lambda found: states.get(found[0], "ledger"), address)
        name = SECRETS.sub("sign-in/link", name)
        while name in names:
            name += " again"
        names[name] = address
    return [Shot(name, address) for name, address in names.items()]


class Camera(NamedTuple):
    target: Path
    base: str
    parts: list[str]

    def take(self, shots: list[Shot], cookie: Any = None) -> None:
        from playwright.sync_api import sync_playwright

        wanted = [s for s in shots if not self.parts or any(part in s.name for part in self.parts)]
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            for size in [size for size in SIZES if SIZE in ("", size)]:
                context = browser.new_context(
                    base_url=self.base,
                    locale=LOCALE,
                    java_script_enabled=IS_SCRIPTED,
                    **SIZES[size],
                )
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
        if not is_open:
            whole_page(page)
            page.locator(".htmx-request").first.wait_for(state="detached")
        for theme in [theme for theme in THEMES if THEME in ("", theme)]:
            # What is fetched when it comes into view makes the page longer.
            if not is_open:
                whole_page(page)
            page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            path = self.target / f"{name}.{size}.{theme}.png"
            page.screenshot(path=path, full_page=not is_open)
        page.close()


def whole_page(page: "Page") -> None:
    """As tall as the page, or what stands at the bottom of the screen would cover its middle."""
    tall = page.evaluate("document.documentElement.scrollHeight")
    size = page.viewport_size
    assert size
    page.set_viewport_size({"width": size["width"], "height": max(size["height"], tall)})


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "/tmp/shots"), sys.argv[2:])
