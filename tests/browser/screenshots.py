"""Pictures of the pages worth showing: `python -m tests.browser.screenshots [DIRECTORY]`."""

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.plugin import environment
from tests.processes import Stack

if TYPE_CHECKING:
    from tests.browser.scene import Office

SIZES = {"1280": (1280, 860), "360": (360, 780)}
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]


def main(target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    with environment(), tempfile.TemporaryDirectory() as logs, Stack(Path(logs)) as stack:
        os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
        import django

        django.setup()
        from tests.browser.scene import office

        assert stack.web
        picture(target, stack.web_url, pages(office()))


def pages(office: "Office") -> dict[str, str]:
    from audit.models import Entry

    last = Entry.objects.of_call(office.pictured).last()
    assert last
    return {
        "sign-in": "/sign-in/",
        "catalogue": "/catalogue/",
        "tool": f"/tools/{office.search.exposed_name}/",
        "tool-hidden": f"/tools/{office.sly.exposed_name}/",
        "tool-versions": f"/tools/{office.search.exposed_name}/versions/",
        "tool-usage": f"/tools/{office.search.exposed_name}/usage/",
        "tool-try": f"/tools/{office.search.exposed_name}/try/",
        "servers": "/servers/",
        "server": "/servers/words/",
        "queue": "/queue/",
        "call-running": f"/calls/{office.running}/",
        "call-result": f"/calls/{office.pictured}/",
        "call-unknown": f"/calls/{office.lost}/",
        "calls": "/calls/",
        "audit": "/audit/",
        "audit-filtered": "/audit/?agent=scout&range=24h",
        "audit-live": "/audit/?live=1",
        "who-ran-what": "/audit/who-ran-what/?agent=scout&range=today",
        "entry": f"/audit/{last.pk}/",
        "missing": "/nowhere/",
    }


def picture(target: Path, base: str, addresses: dict[str, str]) -> None:
    from playwright.sync_api import sync_playwright

    from tests.console.scenery import PASSWORD

    only = [name for name in sys.argv[2:] if not name.startswith("--")]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        for size, (width, height) in SIZES.items():
            context = browser.new_context(
                base_url=base,
                viewport={"width": width, "height": height},
                device_scale_factor=1 if size == "1280" else 2,
                is_mobile=size == "360",
            )
            page = context.new_page()
            for theme in ("light", "dark"):
                context.clear_cookies()
                context.add_cookies([{"name": "theme", "value": theme, "url": base}])
                for name, address in addresses.items():
                    if name == "catalogue":
                        page.goto("/sign-in/")
                        page.get_by_label("Name").fill("alice")
                        page.get_by_label("Password").fill(PASSWORD)
                        page.get_by_role("button", name="Sign in").click()
                        page.wait_for_url("**/catalogue/")
                    if only and name not in only:
                        continue
                    page.goto(address)
                    page.wait_for_load_state("networkidle")
                    page.evaluate("document.fonts.ready")
                    page.screenshot(
                        path=target / f"{name}-{size}-{theme}.png", full_page="--whole" in sys.argv
                    )
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "/tmp/shots"))
