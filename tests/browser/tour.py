"""The walk of docs/en/tutorials/tour.md.

`python -m tests.browser.tour [DIRECTORY]` takes its pictures.
"""

import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.plugin import environment
from tests.processes import Stack

if TYPE_CHECKING:
    from playwright.sync_api import Page

PICTURES = Path(__file__).parents[2] / "docs" / "en" / "tutorials" / "tour"
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]


def what_can_delete(page: "Page") -> None:
    """From the catalogue: one press on what the tools say of their risk."""
    page.get_by_role("link", name="Catalogue").click()
    narrow = page.get_by_role("navigation", name="Narrow by")
    if not narrow.get_by_role("link", name="Destructive", exact=True).is_visible():
        narrow.get_by_text("Narrow by").click()
    narrow.get_by_role("link", name="Destructive", exact=True).click()
    page.wait_for_url("**risk=destroys**")


def what_waits(page: "Page") -> None:
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Queue").click()
    page.wait_for_url("**/queue/")


def what_scout_did(page: "Page") -> None:
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Audit").click()
    page.get_by_role("link", name="Who ran what").click()
    page.wait_for_url("**/who-ran-what/**")
    page.get_by_label("Time", exact=True).select_option("Yesterday")
    page.get_by_label("Agent", exact=True).fill("scout")
    page.get_by_label("Agent", exact=True).press("Enter")
    page.wait_for_url("**agent=scout**")


STEPS = [("delete", what_can_delete), ("waiting", what_waits), ("scout", what_scout_did)]


def main(target: Path) -> None:
    from playwright.sync_api import sync_playwright

    target.mkdir(parents=True, exist_ok=True)
    with (
        environment() as databases,
        tempfile.TemporaryDirectory() as logs,
        Stack(Path(logs)) as stack,
    ):
        os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
        import django

        django.setup()
        from tests.browser.scene import office
        from tests.browser.yesterday import yesterday
        from tests.console.scenery import PASSWORD

        assert stack.web
        with databases.superuser(os.environ) as link:
            office(yesterday(link))
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            page = browser.new_page(base_url=stack.web_url, viewport={"width": 1180, "height": 860})
            page.goto("/sign-in/")
            page.get_by_label("Name").fill("alice")
            page.get_by_label("Password").fill(PASSWORD)
            page.get_by_role("button", name="Sign in").click()
            page.wait_for_url("**/queue/")
            for name, step in STEPS:
                step(page)
                page.wait_for_load_state("networkidle")
                page.screenshot(path=target / f"{name}.png", full_page=step == what_scout_did)
            browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else PICTURES)
