"""Tokens that a disabled user issued for others: named to those who may see such tokens."""

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from accounts import services
from accounts.models import Agent, AgentToken, ScimToken, User
from accounts.roles import Role
from tests.accounts.fake_provider import FakeProvider
from tests.accounts.scim import scim_token
from tests.accounts.test_identity_providers import Configure, company, configure, fake
from tests.console import scenery

__all__ = ["company", "configure", "fake"]

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada(company: FakeProvider, scout: Agent) -> User:
    """An administrator with two tokens that they issued: an agent's and a provider's."""
    made = scenery.person("ada", Role.ADMINISTRATOR)
    services.issue_token(scout, by=made)
    scim_token(made)
    return made


def page(permissions: list[str], address: str) -> str:
    reader = scenery.person("reader")
    reader.user_permissions.set(Permission.objects.filter(codename__in=permissions))
    client = Client()
    client.force_login(reader)
    return client.get(address).text


@pytest.mark.long
@pytest.mark.parametrize(
    ("permissions", "seen"),
    [
        (["view_user"], ()),
        (["view_user", "view_agent"], ()),
        (["view_user", "view_agenttoken"], ("csa_",)),
        (["view_user", "change_user"], ("csp_",)),
        (["view_user", "change_user", "view_agenttoken"], ("csa_", "csp_")),
    ],
)
def test_a_users_page_names_them_to_whoever_may_see_them(
    ada: User, permissions: list[str], seen: tuple[str, ...]
) -> None:
    User.objects.filter(pk=ada.pk).update(is_active=False)
    tokens = {"csa_": str(AgentToken.objects.get()), "csp_": str(ScimToken.objects.get())}

    shown = page(permissions, f"/people/{ada.pk}/")

    assert [kind for kind, token in tokens.items() if token in shown] == list(seen)
    assert ("are still valid" in shown) is bool(seen)


@pytest.mark.parametrize("permission", ["", "view_agenttoken"])
def test_so_does_the_page_before_they_are_disabled(
    ada: User, company: FakeProvider, configure: Configure, permission: str
) -> None:
    shown = page(["view_user", "change_user", permission], f"/people/{ada.pk}/disable/")

    assert str(ScimToken.objects.get()) in shown
    assert (str(AgentToken.objects.get()) in shown) is bool(permission)
