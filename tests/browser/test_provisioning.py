"""An administrator gives an identity provider its SCIM token, by keyboard, and takes it away."""

import os
from collections.abc import Iterator

import pytest
from django.conf import settings
from playwright.sync_api import Locator, Page, expect

from accounts.models import ScimToken
from accounts.roles import Role
from tests.browser.conftest import Opened
from tests.browser.scene import Office
from tests.browser.test_axe import look
from tests.console import scenery


@pytest.fixture
def company(office: Office) -> Iterator[None]:
    settings.OIDC_FILE.write_text(
        '[providers.company]\nname = "Company"\nissuer = "https://id.example.org"\n'
        'client_id = "countersign"\n'
    )
    yield
    settings.OIDC_FILE.unlink()


def press(page: Page | Locator, button: str) -> None:
    page.get_by_role("button", name=button).first.press("Enter")


@pytest.mark.parametrize("width", [1280, 360])
def test_a_token_is_issued_confirmed_rotated_and_revoked(
    opened: Opened, office: Office, company: None, width: int
) -> None:
    ada, eve = (scenery.person(name, Role.ADMINISTRATOR) for name in ("ada", "eve"))
    page, other = opened(ada), opened(eve)
    page.set_viewport_size({"width": width, "height": 800})
    page.goto("/settings/")
    page.get_by_role("main").get_by_role("link", name="Provisioning").press("Enter")
    page.get_by_label("Valid for days").fill("90")
    page.get_by_label("Valid for days").press("Enter")

    part = page.get_by_role("region", name="The new token, shown this once")
    expect(part).to_be_visible()
    part.get_by_role("button", name="Copy").press("Enter")
    address = page.get_by_role("region", name="Address for the identity provider")
    address.get_by_role("button", name="Copy").press("Enter")
    assert look(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    other.goto("/provisioning/")
    press(other, "Confirm")
    expect(other.get_by_text("is confirmed.")).to_be_visible()
    page.goto("/provisioning/")
    press(page, "Rotate")
    expect(part).to_be_visible()
    for _token in range(2):
        page.goto("/provisioning/")
        page.get_by_role("link", name="Revoke").first.press("Enter")
        press(page, "Revoke the token")
        expect(page.get_by_text("is revoked")).to_be_visible()
    assert not ScimToken.objects.filter(revoked_at=None).exists()


def test_a_token_whose_provider_left_the_file_is_revoked_on_a_telephone(
    opened: Opened, office: Office, company: None
) -> None:
    page = opened(scenery.person("ada", Role.ADMINISTRATOR))
    page.set_viewport_size({"width": 360, "height": 800})
    page.goto("/provisioning/")
    page.get_by_label("Valid for days").press("Enter")
    expect(page.get_by_role("region", name="The new token, shown this once")).to_be_visible()
    text = settings.OIDC_FILE.read_text()
    settings.OIDC_FILE.write_text(text.replace("id.example.org", "new.example.org"))

    page.goto("/provisioning/")
    part = page.get_by_role("region", name="Identity providers that are not in the host's file")
    expect(part).to_contain_text("https://id.example.org")
    assert look(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    if directory := os.environ.get("PICTURES"):
        page.screenshot(path=f"{directory}/shut-out.png", full_page=True)
    part.get_by_role("link", name="Revoke").press("Enter")
    press(page, "Revoke the token")

    expect(page.get_by_text("is revoked")).to_be_visible()
    expect(part).to_have_count(0)
