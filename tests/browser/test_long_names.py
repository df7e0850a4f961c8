"""Names of people, roles and providers without a space, on a narrow telephone."""

from collections.abc import Iterator

import pytest
from django.conf import settings
from django.contrib.auth.models import Group
from django.utils import timezone
from playwright.sync_api import expect

from accounts import custom_roles
from accounts.custom_roles import RoleTerms
from accounts.models import FactorReset, RoleChange, User
from accounts.oidc.providers import provider_of
from accounts.roles import Role
from accounts.scim import tokens
from notifications.models import MailRecipient
from tests.browser.conftest import Opened
from tests.browser.scene import Office
from tests.console import scenery

pytestmark = pytest.mark.long

LONG = "abcdefghij" * 12
ISSUER = f"https://{LONG[:60]}.example.org/{LONG}"
PROVIDER = f'[providers.company]\nname = "{LONG}"\nissuer = "{ISSUER}"\nclient_id = "x"\n'
# Widest first: what makes a page wider than its window.
WIDE = """Array.from(document.querySelectorAll("main *"))
  .filter((one) => one.getBoundingClientRect().right > innerWidth)
  .map((one) => one.outerHTML.slice(0, 90))"""
PAGES = [
    "/access/doubles/",
    "/provisioning/",
    "/roles/",
    "/roles/{role}/",
    "/people/",
    "/access/?person={name}",
]


@pytest.fixture
def long_names(office: Office) -> Iterator[dict[str, object]]:
    """Two accounts with one address, a role, and a provider that left the host's file."""
    ada = scenery.person("ada", Role.ADMINISTRATOR)
    ada.groups.add(Group.objects.get(name=Role.AUDITOR))
    ada = User.objects.get(pk=ada.pk)
    terms = RoleTerms(frozenset({"registry.operate_server"}), server_tags=(LONG[:40],))
    role = custom_roles.create(LONG, description=LONG, terms=terms, by=ada)
    people = [scenery.person(name, Role.APPROVER) for name in (LONG, LONG[1:])]
    address = f"{LONG[:60]}@{LONG[:60]}.example.org"
    for one in people:
        one.groups.add(role.group)
        MailRecipient.objects.create(person=one, address=address, confirmed_at=timezone.now())
        RoleChange.objects.create(person=one, role=LONG, asked_by=ada)
        FactorReset.objects.create(person=one, asked_by=ada, reason=LONG)
    settings.OIDC_FILE.write_text(PROVIDER)
    tokens.issue(provider_of(ISSUER), by=ada, days=9)
    settings.OIDC_FILE.write_text(PROVIDER.replace(ISSUER, "https://new.example.org"))
    yield {"ada": ada, "role": role.pk, "name": LONG}
    settings.OIDC_FILE.unlink()


# Selects that are narrower than the longest of their choices.
NARROW = """Array.from(document.querySelectorAll("main select")).filter((one) => {
  const shown = one.offsetWidth;
  one.style.width = "max-content";
  const whole = one.offsetWidth;
  one.style.width = "";
  return shown && whole > shown;
}).map((one) => one.name)"""


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
@pytest.mark.parametrize("address", ["/queue/?sort=newest", "/calls/", "/audit/"])
def test_choices_of_filters_are_read_whole(
    opened: Opened, office: Office, address: str, locale: str
) -> None:
    page = opened(office.alice, viewport={"width": 360, "height": 740}, locale=locale)

    page.goto(address)
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")

    assert page.evaluate(NARROW) == []


@pytest.mark.parametrize("locale", ["en-US", "zh-CN"])
def test_choices_of_a_rules_deciders_are_read_whole(
    opened: Opened, office: Office, locale: str
) -> None:
    ada = scenery.person("ada", Role.ADMINISTRATOR)
    page = opened(ada, viewport={"width": 360, "height": 740}, locale=locale)

    page.goto("/new/rule/")
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")

    assert page.evaluate(NARROW) == []


@pytest.mark.parametrize("address", PAGES)
def test_a_long_name_makes_no_page_wider_than_the_window(
    opened: Opened, long_names: dict[str, object], address: str
) -> None:
    ada = long_names["ada"]
    assert isinstance(ada, User)
    page = opened(ada, viewport={"width": 360, "height": 740})

    page.goto(address.format(**long_names))

    expect(page.get_by_text(LONG[:60]).first).to_be_visible()
    assert page.evaluate(WIDE) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
