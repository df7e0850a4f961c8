"""Addresses with a NUL, which no column takes: every route with a text in it says so."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client
from django.urls import URLPattern, get_resolver

from accounts import service_accounts
from accounts.models import Agent, User
from accounts.roles import Role
from tests.console import scenery

pytestmark = pytest.mark.django_db
GIVEN = {"int": "1", "uuid": "00000000-0000-0000-0000-000000000000", "slug": "scout"}


def routes(patterns: list[Any], before: str = "") -> Iterator[str]:
    for one in patterns:
        route = f"{before}{one.pattern}"
        if isinstance(one, URLPattern):
            yield route
        else:
            yield from routes(one.url_patterns, route)


def with_nul(route: str, name: str) -> str:
    def fill(found: re.Match[str]) -> str:
        kind = found[1].rpartition(":")[0]
        return name if kind == "slug" else GIVEN.get(kind, "%00")

    return "/" + re.sub(r"<([^>]+)>", fill, route)


def addresses() -> set[str]:
    plain = [one for one in routes(get_resolver().url_patterns) if "(?P" not in one]
    made = {with_nul(one, name) for one in plain for name in ("scout", "robot")}
    return {one for one in made if "%00" in one}


@pytest.fixture
def root(scout: Agent) -> User:
    """Whoever may everything: every page looks for what its address names."""
    made = scenery.person("root", *Role)
    made.is_superuser = True
    made.save()
    service_accounts.create("robot", purpose="x", scopes=["accounts.view_agent"], by=made)
    return made


@pytest.mark.long
def test_a_nul_in_an_address_is_no_error_of_ours(root: User) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(root)
    found = addresses()

    answers = {
        f"{method} {there}": getattr(client, method)(there).status_code
        for there in sorted(found)
        for method in ("get", "post")
    }

    assert len(found) > 20
    assert {there: code for there, code in answers.items() if code >= 500} == {}
    assert answers["get /tools/%00/"] == 400


@pytest.mark.long
def test_nobody_with_a_narrow_role_gets_further(vera: User) -> None:
    """Where what the address names decides who may, it is looked for first."""
    client = Client(raise_request_exception=False)
    client.force_login(vera)

    assert max(client.post(there).status_code for there in addresses()) < 500
