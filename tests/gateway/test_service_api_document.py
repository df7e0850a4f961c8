"""The OpenAPI document, as a program reads it, and the answers to what it does not have."""

from __future__ import annotations

import json
import re
from typing import Any
from uuid import UUID

import pytest
from jsonschema_rs import validator_for

from accounts.roles import Role
from calls.record.states import State
from gateway.rest.v1 import urls
from gateway.rest.v1.calls import EntryAnswer
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


def test_it_has_what_parameters_may_be(robot: Program) -> None:
    made = robot.get("openapi.json")

    entries, calls = (_parameters(made, f"/api/v1/{name}") for name in ("entries", "calls"))
    assert entries["since"]["format"] == "date-time"
    assert "24h" in entries["range"]["enum"]
    assert entries["cursor"]["pattern"] == "^[0-9]{1,18}$"
    assert entries["fields"]["items"]["enum"] == [*EntryAnswer().fields]
    assert (calls["cursor"]["format"], calls["state"]["enum"]) == ("uuid", State.values)


def _parameters(made: dict[str, Any], path: str) -> dict[str, dict[str, Any]]:
    return {one["name"]: one["schema"] for one in made["paths"][path]["get"]["parameters"]}


def test_it_has_what_bodies_may_be(robot: Program) -> None:
    schemas = robot.get("openapi.json")["components"]["schemas"]

    stop = validator_for(schemas["StopBodyRequest"])
    assert stop.is_valid({"agent": "scout", "reason": "It loops."})
    assert not stop.is_valid({"agent": "scout", "server": "mailer", "reason": "It loops."})
    assert not stop.is_valid({"agent": "scout", "reason": "It loops.", "who": "ada"})
    # With `fields`, answers have only some of their members.
    assert "required" not in schemas["EntryAnswer"]


@pytest.mark.long
def test_an_unknown_parameter_is_a_problem_everywhere(robot: Program) -> None:
    made = robot.get("openapi.json")["paths"]

    for path, one in made.items():
        for method in METHODS & set(one):
            given = one[method].get("parameters", ())
            known = [parameter["name"] for parameter in given if parameter["in"] == "query"]
            is_number = '"integer"' in json.dumps([at for at in given if at["in"] == "path"])
            some = "7" if is_number else str(UUID(int=7))
            place = re.sub(r"\{[^}]*\}", some, path).removeprefix("/api/v1/")
            answer = robot.ask(method.upper(), f"{place}?agnet=scout", {}, If_Match='"1"')
            assert answer.status_code == 400, (method, path, answer.content)
            said = answer.json()["detail"]
            assert "There is no parameter “agnet” here" in said, (method, path)
            if known:
                named = said.partition("There are: ")[2].removesuffix(".").split(", ")
                assert sorted(named) == sorted(known), path


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
