"""A script makes an API a server, offers operations of it and publishes them."""

from typing import Any

import orjson
import pytest
from django.db import connection

from accounts.models import User
from accounts.roles import Role
from registry.models import Server
from registry.openapi import importing, reading_process
from registry.openapi.document import DocumentRefused, read
from tests.console import scenery
from tests.gateway.api_calls import document
from tests.gateway.service_api import Program, program
from tests.upstreams.http_api import Answer, HttpApi, ReceivedRequest

pytestmark = pytest.mark.django_db(transaction=True)

URL = "http://127.0.0.1:9/v1"


@pytest.fixture
def ada(db: None) -> User:
    return scenery.person("ada", *Role)


@pytest.fixture
def robot(ada: User) -> Program:
    return program("robot", ada)


def json(value: Any) -> str:
    return orjson.dumps(value).decode()


def body(**more: Any) -> dict[str, Any]:
    return {"name": "stable", "document": json(document()), "url": URL, **more}


@pytest.mark.long
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


@pytest.mark.long
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


def test_an_address_that_is_none_is_said_to_be_none(robot: Program) -> None:
    given = {"name": "stable", "document_url": "https://[x"}

    answer = robot.ask("POST", "api-servers", given)

    assert answer.status_code == 400
    assert answer.json()["errors"][0]["pointer"] == "#/document_url"


def titled(title: str) -> str:
    """`title`: as JSON writes it."""
    text = json(document() | {"info": {"title": "TITLE", "version": "1"}})
    return text.replace("TITLE", title)


@pytest.mark.parametrize("title", [r"a\u0000", r"a\\\u0000"])
def test_a_document_has_no_nul(robot: Program, title: str) -> None:
    answer = robot.ask("POST", "api-servers", body(document=titled(title)))

    assert answer.status_code == 400
    assert "cannot contain NUL" in answer.content.decode()
    assert not Server.objects.exists()


@pytest.mark.parametrize("title", [r"a\\u0000", r"a\\\\u0000"])
def test_a_pattern_may_name_nul(robot: Program, title: str) -> None:
    made = robot.post("api-servers", body(document=titled(title)))

    assert made["title"] == title.replace("\\\\", "\\")


@pytest.mark.long
@pytest.mark.parametrize("deep", ["[" * 100_000, "{a: " * 100_000, "\n " + "- " * 200_000])
def test_a_text_that_is_nested_without_end_is_refused_at_once(robot: Program, deep: str) -> None:
    answer = robot.ask("POST", "api-servers", body(document=f"openapi: 3.1.0\npaths: {deep}"))

    assert answer.status_code == 400
    assert "nested too deeply" in answer.content.decode()


def fanning_out(levels: int) -> dict[str, Any]:
    """A document of a few kilobytes, each level of which is read twice as often as the last."""
    there = "#/components/schemas/L"
    schemas: dict[str, Any] = {
        f"L{n}": {"allOf": [{"$ref": f"{there}{n + 1}"}, {"$ref": f"{there}{n + 1}"}]}
        for n in range(levels)
    }
    media = {"multipart/form-data": {"schema": {"$ref": f"{there}0"}}}
    post = {"requestBody": {"content": media}, "responses": {"204": {"description": "Done."}}}
    components = {"schemas": schemas | {f"L{levels}": {"type": "object"}}}
    return document() | {"paths": {"/x": {"post": post}}, "components": components}


@pytest.mark.long
def test_references_that_fan_out_are_refused(robot: Program) -> None:
    text = orjson.dumps(fanning_out(40)).decode()

    answer = robot.ask("POST", "api-servers", body(document=text))

    assert answer.status_code == 400
    assert "has more than 400000 schemas" in answer.content.decode()
    assert not Server.objects.exists()


@pytest.mark.long
def test_reading_has_a_limit_of_a_processors_time(
    robot: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading_process, "CPU_S", 1)
    text = orjson.dumps(fanning_out(40)).decode()

    answer = robot.ask("POST", "api-servers", body(document=text))

    assert answer.status_code == 400
    assert "takes longer than 1 s of a processor" in answer.content.decode()


@pytest.mark.long
def test_addresses_that_are_none_are_left_out(robot: Program) -> None:
    odd = document() | {"info": {"title": ["x"], "version": None}}
    with HttpApi(odd) as api:
        odd["servers"] = [{"url": "http://[bad"}, {"url": "http://a:99999999/"}, {"url": api.url}]
        odd["paths"]["/refers"] = {"get": {"parameters": [{"$ref": "http://[bad#/x"}]}}
        odd["paths"]["/bad"] = {"get": {"servers": [{"url": "http://[bad"}]}}
        given = {"name": "stable", "document_url": f"{api.url}/openapi.json"}
        made = robot.post("api-servers", {**given, "external_references": True})

    assert (made["address"], made["title"]) == (api.url, "")
    read = robot.get("servers/stable/openapi")
    left_out = {one["operation"]: one["left_out"] for one in read["operations"]}
    assert left_out["GET /refers"] == "The reference http://[bad#/x leads nowhere."
    assert "another address" in left_out["GET /bad"]


def test_a_server_that_is_no_api_has_no_document(robot: Program) -> None:
    robot.post("servers", {"name": "rec", "url": "http://127.0.0.1:9/mcp"})

    missing = robot.ask("GET", "servers/rec/openapi")

    assert missing.status_code == 404
    assert missing.json()["detail"].startswith("Nothing is at this address")


@pytest.mark.long
def test_references_that_repeat_a_long_text_are_refused(robot: Program) -> None:
    there = {"get": {"tags": ["x" * 200_000], "responses": {"204": {"description": "Done."}}}}
    paths = {"/x": there} | {f"/x{n}": {"$ref": "#/paths/~1x"} for n in range(400)}

    answer = robot.ask("POST", "api-servers", body(document=json(document() | {"paths": paths})))

    assert answer.status_code == 400
    assert "its operations are larger than 64 MiB" in answer.content.decode()
    assert not Server.objects.exists()


@pytest.mark.long
def test_tools_are_read_once_they_are_offered(ada: User) -> None:
    """A parameter that each of many operations refers to stays what it is."""
    parameter = {"name": "q", "in": "query", "schema": {"type": "string", "default": "x" * 50_000}}
    get = {"parameters": [{"$ref": "#/components/parameters/q"}]}
    paths = {f"/x{n}": {"get": get} for n in range(2_000)}
    written = document() | {"paths": paths, "components": {"parameters": {"q": parameter}}}
    description = read(orjson.dumps(written))
    known: dict[str, Any] = {"slug": "x", "base": URL, "known": {}, "effects": {}}

    every = reading_process.read_operations(description, **known)
    few = reading_process.read_operations(description, **known, only=[every[7].key])

    assert all(one.tool is None for one in every)
    assert few[0].tool is not None
    with pytest.raises(DocumentRefused, match="larger than 64 MiB"):
        reading_process.read_operations(description, **known, only=[one.key for one in every])


def test_anchors_that_repeat_a_long_text_are_refused_where_they_are_read() -> None:
    repeated = ", ".join(["*a"] * 40)
    text = f"openapi: 3.1.0\ninfo: &a {'x' * 1_000_000}\npaths: [{repeated}]\n"

    with pytest.raises(DocumentRefused, match="larger than 24 MiB"):
        reading_process.as_json(text.encode())


def test_other_documents_are_fetched_for_a_time_in_all(
    robot: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "TOGETHER_S", 0)
    with HttpApi(document()) as api:
        reference = {"$ref": f"{api.url}/openapi.json#/paths/~1x"}
        given = body(document=json(document() | {"paths": {"/x": reference}}))

        answer = robot.ask("POST", "api-servers", {**given, "external_references": True})

    assert answer.status_code == 400
    assert "take longer than 0 s" in answer.content.decode()
    assert api.received == []


class WatchingApi(HttpApi):
    """Notes what a session of the database waits with while its document is asked for."""

    def __init__(self, session: int) -> None:
        super().__init__(document())
        self._session = session
        self.state = ""

    def answer(self, request: ReceivedRequest) -> Answer:
        with connection.cursor() as cursor:
            cursor.execute("SELECT state FROM pg_stat_activity WHERE pid = %s", [self._session])
            [self.state] = cursor.fetchone()
        connection.close()
        return super().answer(request)


def this_session() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


def test_a_document_is_fetched_before_a_transaction_begins(robot: Program) -> None:
    """PostgreSQL ends a transaction that waits for ten seconds, and a document may take longer."""
    with WatchingApi(this_session()) as api:
        given = {"name": "stable", "document_url": f"{api.url}/openapi.json", "url": URL}
        made = robot.ask("POST", "api-servers", given, Idempotency_Key="one")
    again = robot.ask("POST", "api-servers", given, Idempotency_Key="one")
    other = robot.ask("POST", "api-servers", given | {"name": "two"}, Idempotency_Key="one")

    assert made.status_code == 201, made.content
    assert api.state == "idle"
    # Nobody answers there by now: what is known is not fetched.
    assert again.json() == made.json()
    assert other.status_code == 422
