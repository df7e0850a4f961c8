"""A script imports a server by its server.json, or out of another registry."""

from typing import Any

import pytest

from accounts.models import User
from accounts.roles import Role
from registry.models import Server, ServerOrigin
from tests.console import scenery
from tests.console.test_server_imports import CLOSED, server_json
from tests.gateway.service_api import Program, program
from tests.upstreams.foreign_registry import ForeignRegistry

pytestmark = pytest.mark.django_db(transaction=True)
VALUES = {"region": "eu", "X-Api-Key": "hush"}


@pytest.fixture
def robot(db: None) -> Program:
    ada: User = scenery.person("ada", *Role)
    return program("robot", ada)


def test_by_a_document(robot: Program) -> None:
    made = robot.post(
        "imported-servers", {"name": "weather", "server_json": server_json(), "values": VALUES}
    )

    assert (made["name"], made["address"]) == ("weather", f"{CLOSED}/eu/mcp")
    assert "hush" not in str(made)
    assert ServerOrigin.objects.get().registry == ""


def test_out_of_a_registry(robot: Program) -> None:
    with ForeignRegistry([server_json()]) as foreign:
        there = {"registry": foreign.url, "server": "io.github.ana/weather", "version": "1.2.3"}
        robot.post("imported-servers", {"name": "weather", "values": VALUES, **there})

        assert ServerOrigin.objects.get().registry == foreign.url
        assert foreign.asked == ["/v0.1/servers/io.github.ana%2Fweather/versions/1.2.3"]


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"registry": "https://example.com"},
        {"server_json": server_json(), "registry": "https://example.com", "server": "a/b"},
        {"server_json": server_json()},
        {"server_json": server_json(), "values": VALUES, "remote": 1},
        {"server_json": server_json(), "package": 0},
        {"server_json": server_json(), "package": 0, "command": "x"},
        {"server_json": server_json(name="nonsense"), "values": VALUES},
        {"server_json": server_json(), "values": {"region": "..", "X-Api-Key": "hush"}},
        {"registry": "http://169.254.169.254", "server": "a/b"},
    ],
)
def test_what_is_wrong_is_a_problem(robot: Program, given: dict[str, Any]) -> None:
    answer = robot.ask("POST", "imported-servers", {"name": "weather", **given})

    assert answer.status_code == 400, answer.content
    assert not Server.objects.exists()
