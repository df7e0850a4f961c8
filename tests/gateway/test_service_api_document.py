"""The OpenAPI document, as a program reads it, and the answers to what it does not have."""

from __future__ import annotations

import re

import pytest

from accounts.roles import Role
from gateway.rest.v1 import urls
from tests.console import scenery
from tests.gateway.service_api import Program, program

pytestmark = pytest.mark.django_db
METHODS = {"get", "post", "put", "patch", "delete"}


@pytest.fixture
def robot(db: None) -> Program:
    return program("robot", scenery.person("ada", *Role))


def test_it_has_every_route_and_method(robot: Program) -> None:
    made = robot.get("openapi.json")

    assert made["openapi"].startswith("3.1")
    paths = {_address(path): METHODS & set(one) for path, one in made["paths"].items()}
    assert paths == {
        _address(f"/api/v1/{route}"): {method.lower() for method in view.scopes}
        for route, view, _name in urls.ROUTES
    }


def _address(path: str) -> str:
    """Without the names of its parameters."""
    return re.sub(r"[<{][^>}]*[>}]", "{}", path)


@pytest.mark.parametrize(
    ("method", "path", "status"), [("DELETE", "servers", 405), ("GET", "nothing", 404)]
)
def test_what_is_not_there_is_a_problem(
    robot: Program, method: str, path: str, status: int
) -> None:
    answer = robot.ask(method, path)

    assert answer.status_code == status
    assert answer["Content-Type"].startswith("application/problem+json")
    assert answer.json()["status"] == status
