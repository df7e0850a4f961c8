"""HTTP APIs as servers: what is sent for a call is what curl would send, and what comes back."""

import asyncio
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from yarl import URL

from accounts.models import User
from audit.models import Entry
from calls.models import Call
from calls.record.states import State
from policies.models import Effect
from registry import services
from registry.discovery import discovery
from registry.models import ApiDocument, Server, Tool, Toolset, versioned
from registry.openapi import importing
from registry.openapi.importing import DocumentInput
from registry.upstream.transport.api_request import render
from registry.upstream.transport.http_request import head_of
from registry.upstream.values import NotSent
from tests.gateway.agent import Reply
from tests.gateway.api_calls import CASES, ApiCase, content, document, header, name_of, query
from tests.gateway.conftest import AddRule, Play, the_call
from tests.publishing import publish_as_read, publish_what_is_found
from tests.upstreams.http_api import Answer, HttpApi, ReceivedRequest

pytestmark = pytest.mark.django_db(transaction=True)

SOME = [
    *("GET /pets", "GET /pets/{id}", "DELETE /pets/{id}", "POST /pets"),
    *("GET /named", "GET /find/{name}", "GET /json"),
]


@pytest.fixture(scope="module")
def running_api() -> Iterator[HttpApi]:
    with HttpApi(document()) as api:
        yield api


@pytest.fixture
def api(running_api: HttpApi, toolset: Toolset, bob: User) -> HttpApi:
    """A server of the toolset that offers some operations of the document."""
    running_api.answers.clear()
    running_api.document = document()
    server = register(running_api, by=bob)
    offer(server, SOME, by=bob)
    services.add_server(toolset, server, by=bob)
    running_api.received.clear()
    return running_api


def register(api: HttpApi, *, by: User, **more: Any) -> Server:
    description = importing.read_input(DocumentInput(url=f"{api.url}/openapi.json"))
    return importing.register_api("stable", description, owner=by, by=by, **more)


def offer(server: Server, keys: Iterable[str], *, by: User) -> None:
    importing.choose(server, dict.fromkeys(keys, ""), by=by)
    look(server)
    publish_as_read(server, by=by)
    publish_what_is_found(by=by)


def look(server: Server) -> None:
    (found,) = asyncio.run(discovery.look_at([server.pk]))
    assert found.succeeded, found.summary


def sent_by_curl(case: ApiCase, api: HttpApi, photo: Path) -> ReceivedRequest:
    argv = [one.replace("{url}", api.url).replace("{photo}", str(photo)) for one in case.curl]
    subprocess.run(["curl", "-s", "--globoff", *argv], check=True, capture_output=True, timeout=20)
    return api.received.pop()


def compared(request: ReceivedRequest) -> tuple[Any, ...]:
    """All of it but the program's own name and what it accepts; of boundaries their place."""
    headers = {
        name: value
        for name, value in request.headers.items()
        if name not in ("user-agent", "accept", "accept-encoding", "content-length")
    }
    body = request.body
    if found := re.search(r"boundary=(\S+)", headers.get("content-type", "")):
        headers["content-type"] = headers["content-type"].replace(found[1], "…")
        body = body.replace(found[1].encode(), b"...")
    else:
        headers["content-length"] = request.headers.get("content-length", "")
    return request.method, request.target, headers, body


@pytest.mark.long
async def test_each_operation_is_sent_as_curl_sends_it(
    play: Play, api: HttpApi, bob: User, tmp_path: Path
) -> None:
    server = await Server.objects.aget(slug="stable")
    keys = [f"{case.method} {case.path}" for case in CASES]
    await sync_to_async(offer)(server, keys, by=bob)
    photo = tmp_path / "photo"
    photo.write_bytes(b"\x89PNG\r\n\x00\xff")
    agent = play()

    for case in CASES:
        reply = await agent.call(f"stable.{name_of(case)}", case.arguments)
        assert "result" in reply.last, (case.path, reply.body)
        assert not reply.result.get("isError"), (case.path, reply.text)
        (request,) = api.received
        api.received.clear()
        expected = await asyncio.to_thread(sent_by_curl, case, api, photo)
        assert compared(request) == compared(expected), case.path

    assert len(CASES) >= 30


@pytest.mark.long
async def test_a_result_is_structured_as_its_schema_says(play: Play, api: HttpApi) -> None:
    body = b'{"id": 7, "name": "Ada", "age": 1.10, "more": null}'
    api.answers["GET /pets/{id}"] = Answer(200, {"Content-Type": "application/json"}, body)

    reply = await play().call("stable.get_pets_one", {"id": 7})

    assert reply.text == body.decode()
    assert reply.result["structuredContent"]["name"] == "Ada"
    assert body in reply.body
    tool = await Tool.objects.select_related("published").aget(exposed_name="stable.get_pets_one")
    assert tool.published is not None
    assert tool.published.content["outputSchema"]["properties"]["age"]["type"] == ["number", "null"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (Answer(404, {"Content-Type": "text/plain"}, b"no such pet"), "HTTP 404: no such pet"),
        (Answer(500), "HTTP 500."),
        (Answer(503, {}, b"later"), "HTTP 503: later"),
        (
            Answer(302, {"Location": "https://elsewhere.example/"}),
            "HTTP 302: it redirects to https://elsewhere.example/, which is not followed.",
        ),
        (
            Answer(200, {"Content-Encoding": "gzip"}, b"x"),
            "The API answered compressed, though it was asked not to.",
        ),
    ],
    ids=["not found", "failed", "unavailable", "redirect", "compressed"],
)
async def test_an_error_is_one_with_its_status(
    play: Play, api: HttpApi, answer: Answer, text: str
) -> None:
    api.answers["GET /pets/{id}"] = answer

    reply = await play().call("stable.get_pets_one", {"id": 7})

    assert (reply.result["isError"], reply.text) == (True, text)
    assert (await the_call(reply.call_id)).state == State.TOOL_ERROR
    assert len(api.received) == 1


@pytest.mark.long
@pytest.mark.parametrize("status", [502, 504])
async def test_whether_a_change_behind_a_gateway_happened_nobody_knows(
    play: Play, api: HttpApi, status: int
) -> None:
    api.answers["DELETE /pets/{id}"] = Answer(status)

    await play().call("stable.delete_pets_one", {"id": 7})

    call = await Call.objects.alatest("asked_at")
    assert call.state == State.UNKNOWN
    assert "it may have acted or not" in call.outcome


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "body", "content"),
    [
        ("image/png", b"\x89PNG", {"type": "image", "mimeType": "image/png", "data": "iVBORw=="}),
        ("text/csv; charset=latin-1", b"\xe4", {"type": "text", "text": "ä"}),
        ("application/xml", b"<a/>", {"type": "text", "text": "<a/>"}),
    ],
)
async def test_other_contents_come_as_what_they_are(
    play: Play, api: HttpApi, kind: str, body: bytes, content: dict[str, str]
) -> None:
    api.answers["GET /pets"] = Answer(200, {"Content-Type": kind}, body)

    reply = await play().call("stable.get_pets", {})

    assert reply.result["content"] == [content]


@pytest.mark.long
async def test_bytes_come_as_a_resource_and_the_next_page_is_named(
    play: Play, api: HttpApi
) -> None:
    headers = {"Content-Type": "application/zip", "Link": '<https://x.example/?page=2>; rel="next"'}
    api.answers["GET /pets"] = Answer(200, headers, b"PK")

    reply = await play().call("stable.get_pets", {"limit": 2})

    file, link = reply.result["content"]
    assert file["resource"] == {
        "uri": f"{api.url}/pets?limit=2",
        "mimeType": "application/zip",
        "blob": "UEs=",
    }
    assert link["text"] == 'Link: <https://x.example/?page=2>; rel="next"'


@pytest.mark.long
@pytest.mark.parametrize(
    "path",
    [
        *(
            "/ok HTTP/1.1\r\nHost: a\r\n\r\nDELETE /everything",
            "/a\nX",
            "/a\tb",
            "/%0d%0aX",
            "/100%",
        ),
        *(
            "/a/../../admin",
            "/%2e%2e/admin",
            "/..;/admin",
            "/a\\..\\b",
            "/a?b=c",
            "/a#b",
            "//other/a",
        ),
    ],
)
def test_an_operation_whose_path_is_none_is_left_out(api: HttpApi, bob: User, path: str) -> None:
    server = Server.objects.get(slug="stable")
    api.document["paths"][path] = {"get": {"responses": {"204": {"description": "Done."}}}}
    changed = importing.read_input(DocumentInput(url=f"{api.url}/openapi.json"))

    importing.set_document(server, changed, by=bob)

    rows = ApiDocument.objects.get(server=server).coverage
    (row,) = [row for row in rows if row["key"] == f"GET {path}"]
    assert "no path may have" in row["problem"]
    with pytest.raises(services.RegistrationRefused):
        importing.choose(server, {row["key"]: ""}, by=bob)


def with_operation(api: HttpApi, operation: dict[str, Any], *, by: User) -> dict[str, Any]:
    """The document with one more, `POST /odd`; its row of the report."""
    server = Server.objects.get(slug="stable")
    api.document["paths"]["/odd"] = {"post": {"operationId": "odd", "responses": {}, **operation}}
    changed = importing.read_input(DocumentInput(url=f"{api.url}/openapi.json"))
    importing.set_document(server, changed, by=by)
    rows = ApiDocument.objects.get(server=server).coverage
    return next(row for row in rows if row["key"] == "POST /odd")


@pytest.mark.long
@pytest.mark.parametrize(
    "name",
    [
        *("X Y", "名", "X-B ad\r\nEvil: 1", "X-Forwarded-For", "x-http-method-override"),
        *("Proxy-Connection", "X-Original-URL"),
    ],
)
def test_a_header_that_is_none_or_ours_is_left_out(api: HttpApi, bob: User, name: str) -> None:
    optional = with_operation(api, {"parameters": [header(name)]}, by=bob)
    required = with_operation(api, {"parameters": [header(name, required=True)]}, by=bob)

    (note,) = optional["notes"]
    assert f"The header “{name}” is left out" in note
    assert f"It needs the header “{name}”" in required["problem"]


@pytest.mark.long
def test_content_types_that_are_none_are_not_sent(api: HttpApi, bob: User) -> None:
    file = {"type": "object", "properties": {"f": {"type": "string", "format": "binary"}}}
    encoding = {"f": {"contentType": "image/png\r\nEvil: 1"}}
    part = content("multipart/form-data", file, encoding=encoding)
    noted = with_operation(api, {"requestBody": part}, by=bob)
    whole = with_operation(api, {"requestBody": content("text/plain\r\nEvil: 1")}, by=bob)

    assert noted["notes"] == ["The content type of its field “f” is none, and is not sent."]
    assert "cannot be written here" in whole["problem"]


def test_the_guarded_client_sends_no_header_that_is_none() -> None:
    with pytest.raises(NotSent):
        head_of("GET", "/", URL("https://api.example"), {"X Y": "1"})


@pytest.mark.long
def test_an_argument_says_what_the_api_calls_it(api: HttpApi, bob: User) -> None:
    server = Server.objects.get(slug="stable")
    parameters = [query("编号", description="宠物的编号"), query("filter[id]"), query("plain")]
    with_operation(api, {"parameters": parameters}, by=bob)

    offer(server, ["POST /odd"], by=bob)

    tool = Tool.objects.select_related("published").get(exposed_name="stable.odd")
    assert tool.published is not None
    properties = tool.published.content["inputSchema"]["properties"]
    assert properties["query"]["description"] == "编号: 宠物的编号"
    assert properties["filter_id"]["description"] == "filter[id]"
    assert "description" not in properties["plain"]


@pytest.mark.long
async def test_a_path_is_sent_percent_encoded(play: Play, api: HttpApi, bob: User) -> None:
    server = await Server.objects.aget(slug="stable")
    path = "/宠物 {编号}/100%25:{id"
    api.document["paths"][path] = {
        "get": {
            "operationId": "odd",
            "parameters": [{"name": "编号", "in": "path", "required": True, "schema": {}}],
            "responses": {"204": {"description": "Done."}},
        }
    }
    changed = importing.read_input(DocumentInput(url=f"{api.url}/openapi.json"))
    await sync_to_async(importing.set_document)(server, changed, by=bob)
    await sync_to_async(offer)(server, [f"GET {path}"], by=bob)
    api.received.clear()

    await play().call("stable.odd", {"path": "七"})

    (request,) = api.received
    assert request.target == "/%E5%AE%A0%E7%89%A9%20%E4%B8%83/100%25:%7Bid"


@pytest.mark.parametrize("path", ["/a/.{id}", "/a/{id}"])
def test_an_argument_and_what_stands_beside_it_lead_nowhere_else(path: str) -> None:
    step = {"argument": "id", "name": "id", "in": "path"}
    step |= {"style": "label"} if path == "/a/{id}" else {}

    with pytest.raises(NotSent, match="another operation"):
        render({"method": "GET", "path": path, "parameters": [step]}, "", b'{"id": ";x"}')


@pytest.mark.parametrize("target", ["/a b", "/a\r\nX: 1", "/a\tb", "/ä", ""])
def test_the_guarded_client_sends_no_target_that_ends_early(target: str) -> None:
    with pytest.raises(NotSent) as refused:
        head_of("GET", target, URL("https://api.example"), {})

    assert refused.value.status == 400


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["..", ".", "", "../secret", "a/../b", "..\\b", "..;x/b", "%2e%2e/b", "%2e%2e%2fb"]
)
async def test_an_argument_never_leads_to_another_path(play: Play, api: HttpApi, name: str) -> None:
    reply = await play().call("stable.get_find_one", {"name": name})

    assert reply.result["isError"] is True
    assert "it stands in the path" in reply.text
    assert api.received == []


@pytest.mark.long
async def test_a_list_without_members_stands_in_no_path(
    play: Play, api: HttpApi, bob: User
) -> None:
    server = await Server.objects.aget(slug="stable")
    keys = ["GET /matrix/{id}", "GET /matrices/{id}", "GET /several/{ids}"]
    await sync_to_async(offer)(server, keys, by=bob)
    agent = play()
    api.received.clear()

    for tool, name in (("matrix", "id"), ("matrices", "id"), ("several", "ids")):
        reply = await agent.call(f"stable.get_{tool}_one", {name: []})
        assert reply.result["isError"] is True
        assert "stands in the path" in reply.text

    assert api.received == []


@pytest.mark.long
async def test_a_slash_in_an_argument_stays_in_its_place(play: Play, api: HttpApi) -> None:
    await play().call("stable.get_find_one", {"name": "a/pets?x=1#y"})

    assert [one.target for one in api.received] == ["/find/a%2Fpets%3Fx%3D1%23y"]


@pytest.mark.long
async def test_no_argument_adds_a_header(play: Play, api: HttpApi) -> None:
    reply = await play().call("stable.get_named", {"X-Request": "a\r\nX-Other: b"})

    assert reply.result["isError"] is True
    assert "characters that no header can carry" in reply.text
    assert api.received == []


@pytest.mark.long
async def test_the_credential_of_the_server_is_sent_and_no_agent_replaces_it(
    play: Play, api: HttpApi, bob: User
) -> None:
    server = await Server.objects.aget(slug="stable")
    headers = {"X-Request": "ours"}
    await sync_to_async(services.set_connection)(
        server, url=api.url, headers=headers, credential="s3cret", by=bob
    )

    await play().call("stable.get_named", {"X-Request": "theirs"})

    (request,) = api.received
    assert request.headers["authorization"] == "Bearer s3cret"
    assert request.headers["x-request"] == "ours"


@pytest.mark.long
async def test_rules_judge_it_like_any_other_tool(play: Play, api: HttpApi, rule: AddRule) -> None:
    await rule(Effect.DENY, "delete_pets_one")

    reply = await play().call("stable.delete_pets_one", {"id": 7})

    assert reply.result["isError"] is True
    assert api.received == []
    assert await Entry.objects.filter(tool="stable.delete_pets_one").aexists()


@pytest.mark.long
async def test_wrong_arguments_are_not_sent(play: Play, api: HttpApi) -> None:
    reply: Reply = await play().call("stable.post_pets", {"body": {"age": 3}})

    assert reply.result["isError"] is True
    assert "name" in reply.text
    assert api.received == []


@pytest.mark.long
def test_a_changed_operation_waits_for_its_review(api: HttpApi, bob: User) -> None:
    server = Server.objects.get(slug="stable")
    api.document["paths"]["/pets"]["get"]["parameters"].append(
        {"name": "owner", "in": "query", "schema": {"type": "string"}}
    )
    del api.document["paths"]["/json"]
    api.document["paths"]["/new"] = {"get": {"responses": {"204": {"description": "Done."}}}}
    changed = importing.read_input(DocumentInput(url=f"{api.url}/openapi.json"))

    difference = importing.set_document(server, changed, by=bob)
    look(server)

    assert (difference.added, difference.removed) == (["GET /new"], ["GET /json"])
    states = dict(server.tools.values_list("name", "state"))
    assert states["get_pets"] == Tool.State.CHANGED
    assert states["get_json"] == Tool.State.RETIRED
    assert states["post_pets"] == Tool.State.PUBLISHED
    assert "get_new" not in states
    tool = server.tools.select_related("published", "latest").get(name="get_pets")
    assert tool.published != tool.latest
    services.publish(tool, difference=versioned.difference(tool), by=bob)


@pytest.mark.long
def test_at_another_address_everything_waits_for_its_review(api: HttpApi, bob: User) -> None:
    server = Server.objects.get(slug="stable")

    services.set_connection(server, url=f"{api.url}/v2", by=bob)

    assert set(server.tools.values_list("state", flat=True)) == {Tool.State.CHANGED}
