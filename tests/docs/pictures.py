"""Takes the pictures of README and documents from the demo: `python -m tests.docs.pictures`.

Overview and card, light and dark, in English and Chinese, as WebP below `docs/images`.
"""

import base64
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from psycopg.conninfo import make_conninfo

from tests.database import ROOT, Databases, manage
from tests.plugin import environment
from tests.processes import Stack

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

IMAGES = ROOT / "docs" / "images"
PAGES = {"overview": "/overview/?range=30d", "card": "/queue/"}
# The infix of a file's name, and what the browser asks for.
LANGUAGES = {"": "en-US", "-zh": "zh-CN"}
THEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
LARGEST = 120_000
VIEWER, PASSWORD = "sofia.rossi", "correct horse battery staple"
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
# Smaller than PNG, and without another program.
AS_WEBP = """async (png) => {
  const image = new Image();
  image.src = `data:image/png;base64,${png}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  canvas.width = image.width;
  canvas.height = image.height;
  canvas.getContext("2d").drawImage(image, 0, 0);
  return canvas.toDataURL("image/webp", 0.9).split(",")[1];
}"""


def files() -> list[str]:
    return [
        f"{page}{language}-{theme}.webp"
        for page, language, theme in product(PAGES, LANGUAGES, THEMES)
    ]


@contextmanager
def demo(databases: Databases) -> Iterator[Stack]:
    """The console on a demo's database; the process's settings are those of this database."""
    urls = databases.empty()
    os.environ |= urls
    manage(["prepare", "--demo", "--examples"], env={})
    name = urls["DATABASE_URL"].rpartition("/")[2].partition("?")[0]
    root = make_conninfo(**{**databases.admin, "dbname": name})
    manage(["fill_demo"], env={"DATABASE_URL": root})
    try:
        with tempfile.TemporaryDirectory() as logs, Stack(Path(logs)) as stack:
            yield stack
    finally:
        databases.drop(urls)


def let_in() -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"
    import django

    django.setup()
    from accounts.models import User
    from accounts.services import set_password

    set_password(User.objects.get(username=VIEWER), PASSWORD)


def sign_in(page: "Page") -> None:
    page.goto("/sign-in/")
    page.locator("input[name=username]").fill(VIEWER)
    page.locator("input[name=password]").fill(PASSWORD)
    page.locator("main form button").first.click()
    page.wait_for_url("**/queue/")


def take(browser: "Browser", address: str, target: Path) -> None:
    for (infix, locale), theme in product(LANGUAGES.items(), THEMES):
        context = browser.new_context(
            base_url=address,
            locale=locale,
            color_scheme=theme,
            viewport={"width": 1200, "height": 820},
        )
        page = context.new_page()
        page.set_default_timeout(120_000)
        sign_in(page)
        for name, path in PAGES.items():
            page.goto(path)
            page.wait_for_load_state("networkidle")
            picture = page.screenshot()
            (target / f"{name}{infix}-{theme}.webp").write_bytes(as_webp(browser, picture))
        context.close()


def as_webp(browser: "Browser", png: bytes) -> bytes:
    page = browser.new_page()
    packed = page.evaluate(AS_WEBP, base64.b64encode(png).decode())
    page.close()
    return base64.b64decode(packed)


def main(target: Path) -> None:
    from playwright.sync_api import sync_playwright

    target.mkdir(parents=True, exist_ok=True)
    with environment() as databases, demo(databases) as stack:
        let_in()
        assert stack.web
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
            take(browser, stack.web_url, target)
            browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES)
