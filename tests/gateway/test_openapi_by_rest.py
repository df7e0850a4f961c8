"""A script makes an API a server, offers operations of it and publishes them."""

from typing import Any

import orjson
import pytest

from accounts.models import User
from accounts.roles import Role
from registry.models import Server
from tests.console import scenery
from tests.gateway.api_calls import document
from tests.gateway.service_api import Program, program

pytestmark = pytest.mark.django_db(transaction=True)

URL = "http://127.0.0.1:9/v1"


@pytest.fixture
def ada(db: None) -> User:
    return scenery.person("ada", *Role)


@pytest.fixture
def robot(ada: User) -> Program:
    return program("robot", ada)


def body(**more: Any) -> dict[str, Any]:
    text = orjson.dumps(document()).decode()
    return {"name": "stable", "document": text, "url": URL, **more}


def test_a_script_does_it_all(robot: Program) -> None:
    made = robot.post("api-servers", body(headers={"X-Key": "one"}, credential="two"))
    assert (made["transport"], made["address"]) == ("api", URL)
    read = robot.get("servers/stable/openapi")
    left_out = {one["operation"] for one in read["operations"] if one["left_out"]}
    assert left_out == {"GET /elsewhere", "GET /nowhere", "GET /unfilled/{id}", "HEAD /look"}

    given = [{"operation": "GET /pets"}, {"operation": "POST /form", "effect": "destroys"}]
    tag = robot.ask("GET", "servers/stable/openapi")["ETag"]
    done = robot.ask("PUT", "servers/stable/operations", {"offered": given}, If_Match=tag)

    assert done.status_code == 200, done.content
    offered = {one["operation"]: one for one in done.json()["operations"] if one["offered"]}
    assert set(offered) == {"GET /pets", "POST /form"}
    assert offered["POST /form"]["effect"] == "destroys"
    robot.post("servers/stable/discoveries")
    reviews = robot.get("servers/stable/reviews")["items"]
    assert {one["name"] for one in reviews} == {"stable.get_pets", "stable.post_form"}
    assert b"two" not in orjson.dumps(read)


def test_another_document_needs_the_version_that_was_read(robot: Program) -> None:
    robot.post("api-servers", body())
    tag = robot.ask("GET", "servers/stable/openapi")["ETag"]
    changed = document()
    del changed["paths"]["/json"]
    sent = {"document": orjson.dumps(changed).decode()}

    assert robot.ask("PUT", "servers/stable/openapi", sent).status_code == 428
    done = robot.ask("PUT", "servers/stable/openapi", sent, If_Match=tag)
    assert done.status_code == 200, done.content
    assert robot.ask("PUT", "servers/stable/openapi", sent, If_Match=tag).status_code == 412


@pytest.mark.parametrize(
    ("given", "pointer"),
    [
        ({"document": "{}"}, "#/document"),
        ({"document_url": "https://x.example/"}, "#"),
        ({"headers": {"Host": "x"}}, "#/headers"),
        ({"operations": []}, "#/operations"),
    ],
    ids=["no document", "both", "header", "unknown"],
)
def test_mistakes_name_their_member(robot: Program, given: Any, pointer: str) -> None:
    answer = robot.ask("POST", "api-servers", body() | given)

    assert answer.status_code == 400
    errors = answer.json().get("errors")
    assert errors is None or pointer in {one["pointer"] for one in errors}
    assert not Server.objects.exists()


def test_a_server_that_is_no_api_has_no_document(robot: Program) -> None:
    robot.post("servers", {"name": "rec", "url": "http://127.0.0.1:9/mcp"})

    assert robot.ask("GET", "servers/rec/openapi").status_code == 404
