"""Calls by REST: the same door for agents that speak no MCP."""

import asyncio
import json
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import aiohttp
import pytest
from asgiref.sync import sync_to_async

from accounts import services as accounts
from accounts.models import User
from calls.models import Call
from calls.record.states import State
from policies.models import Effect
from registry import services
from registry.models import Toolset
from tests.flows.chat import check_anthropic, check_tool
from tests.gateway.agent import Reply
from tests.gateway.conftest import AddRule, decide_soon, server, the_call
from tests.processes import Stack
from tests.upstreams.recorder import TOOLS, Recorder

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass
class Rest:
    http: aiohttp.ClientSession
    url: str
    token: str

    async def get(self, path: str) -> Reply:
        return await self.send("GET", path)

    async def send(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        written = body if isinstance(body, bytes | None) else json.dumps(body).encode()
        data = None if written is None else BytesIO(written)
        shown = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        shown = {name: value for name, value in {**shown, **headers}.items() if value}
        url = f"{self.url}/api/{path}"
        async with self.http.request(method, url, data=data, headers=shown) as response:
            return Reply(response.status, response.headers, await response.read())

    async def call(self, tool: str, arguments: Any = None, *, wait: int = 10) -> Reply:
        body = {"toolset": "desk", "tool": tool, "arguments": arguments or {}}
        return await self.send("POST", f"calls?wait={wait}", body)


@pytest.fixture
def rest(stack: Stack, http: aiohttp.ClientSession, toolset: Toolset, scout_token: str) -> Rest:
    assert stack.web
    return Rest(http, stack.web_url, scout_token)


async def test_a_call_is_answered_with_what_came_of_it(rest: Rest, upstream: Recorder) -> None:
    reply = await rest.call("rec.echo", {"text": "hi"})

    assert reply.status == 201
    assert reply.last["state"] == "succeeded"
    assert reply.last["result"] == {"content": [{"type": "text", "text": "hi"}]}
    assert len(upstream.calls) == 1
    call = await the_call(reply.last["id"])
    assert (call.origin, call.state) == ("rest", State.SUCCEEDED)
    assert reply.headers["Location"] == f"/api/calls/{call.pk}"


async def test_bytes_pass_through_in_both_directions(rest: Rest, upstream: Recorder) -> None:
    written = b'{"content":[], "structuredContent":{"a":1.00e2,"b":"\\u00e9"}}'
    upstream.results["say"] = written
    body = b'{"toolset":"desk","tool":"rec.say","arguments": {"n" : 1.0e1 ,\n"t":"\\/"}}'

    reply = await rest.send("POST", "calls", body)

    assert written in reply.body
    assert upstream.calls[0].arguments == b'{"n" : 1.0e1 , "t":"\\/"}'


async def test_a_call_can_be_read_again(rest: Rest) -> None:
    made = await rest.call("rec.echo", {"text": "hi"})

    assert (await rest.get(f"calls/{made.last['id']}")).last == made.last


@pytest.mark.long
async def test_a_held_call_is_accepted_and_can_be_waited_for(
    rest: Rest, stack: Stack, alice: User, upstream: Recorder, rule: AddRule
) -> None:
    assert stack.worker
    await rule(Effect.ASK, "echo")

    at_once = await rest.call("rec.echo", {"text": "hi"}, wait=0)
    deciding = asyncio.create_task(decide_soon(alice, after=0.5))
    later = await rest.call("rec.echo", {"text": "hi"}, wait=20)
    await deciding

    assert (at_once.status, at_once.last["state"]) == (202, "held")
    assert "pending approval" in at_once.last["outcome"]
    assert later.last["id"] == at_once.last["id"]
    assert (later.status, later.last["state"]) == (201, "succeeded")
    assert len(upstream.calls) == 1


@pytest.mark.long
async def test_a_long_call_goes_on_when_nobody_waits(rest: Rest, upstream: Recorder) -> None:
    reply = await rest.call("rec.hang", wait=0)

    assert (reply.status, reply.last["state"]) == (202, "running")
    upstream.release()


async def test_a_call_can_be_cancelled_once(rest: Rest, upstream: Recorder, rule: AddRule) -> None:
    await rule(Effect.ASK, "echo")
    made = await rest.call("rec.echo", {"text": "hi"}, wait=0)

    first = await rest.send("POST", f"calls/{made.last['id']}/cancel")
    second = await rest.send("POST", f"calls/{made.last['id']}/cancel")

    assert (first.status, first.last["state"]) == (202, "withdrawn")
    assert second.status == 409
    assert upstream.calls == []


async def test_what_policy_denies_is_a_problem_with_its_reason(
    rest: Rest, upstream: Recorder, rule: AddRule
) -> None:
    await rule(Effect.DENY, "echo", reason="Hush.")

    reply = await rest.call("rec.echo", {"text": "hi"})

    assert reply.status == 403
    assert reply.headers["Content-Type"] == "application/problem+json"
    assert reply.last["detail"] == "Hush."
    assert (await the_call(reply.last["call"])).state == State.REFUSED
    assert upstream.calls == []


@pytest.mark.long
async def test_what_is_denied_tells_nothing_of_its_arguments(rest: Rest, rule: AddRule) -> None:
    await rule(Effect.DENY, "form", reason="Hush.")

    reply = await rest.call("rec.form", {"days": 0})

    assert (reply.status, reply.last["detail"]) == (403, "Hush.")
    assert "violations" not in reply.last


@pytest.mark.long
async def test_in_search_mode_lists_have_only_what_the_agent_may_use(
    rest: Rest, toolset: Toolset, bob: User, rule: AddRule
) -> None:
    await rule(Effect.DENY, "echo")
    assert "rec_echo" in (await rest.get("tools")).body.decode()

    await sync_to_async(services.set_search_mode)(toolset, True, by=bob)

    for path in ("tools", "toolsets/desk/tools", "toolsets/desk/tools?format=gemini"):
        told = (await rest.get(path)).body.decode()
        assert "form" in told, path
        assert "echo" not in told, path


async def test_every_violation_is_named(rest: Rest, upstream: Recorder) -> None:
    reply = await rest.call("rec.form", {"days": 0})

    assert reply.status == 422
    assert sorted(v["path"] for v in reply.last["violations"]) == ["$.city", "$.days"]
    assert upstream.calls == []


async def test_an_unknown_tool_is_recorded(rest: Rest) -> None:
    reply = await rest.call("rec.nope")

    assert reply.status == 404
    assert (await the_call(reply.last["call"])).tool_name == "rec.nope"


async def test_tools_are_listed_by_toolset(rest: Rest) -> None:
    everything = await rest.get("tools")
    one = await rest.get("tools?toolset=desk")

    assert everything.last == one.last
    (listed,) = one.last["toolsets"]
    assert listed["name"] == "desk"
    assert [tool["name"] for tool in listed["tools"]] == sorted(f"rec_{name}" for name in TOOLS)


async def test_a_toolset_is_listed_as_a_models_api_takes_it(rest: Rest, bob: User) -> None:
    reply = await rest.get("toolsets/desk/tools?format=openai")

    listed = reply.last
    assert (listed["toolset"], listed["format"]) == ("desk", "openai")
    for tool in listed["tools"]:
        check_tool(tool["function"])
    names = [tool["function"]["name"] for tool in listed["tools"]]
    assert names == sorted(f"rec_{name}" for name in TOOLS)
    called = await rest.call("rec_echo", {"text": "hi"})
    assert called.last["state"] == "succeeded"
    tag = reply.headers["ETag"]
    assert tag == f'"{listed["digest"]}"'
    same = await rest.send("GET", "toolsets/desk/tools?format=openai", **{"If-None-Match": tag})
    assert (same.status, same.body, same.headers["ETag"]) == (304, b"", tag)
    other = await rest.send("GET", "toolsets/desk/tools?format=gemini", **{"If-None-Match": tag})
    assert len(other.last["tools"][0]["functionDeclarations"]) == len(names)
    plain = await rest.get("toolsets/desk/tools")
    assert [tool["name"] for tool in plain.last["tools"]] == names

    refused = await rest.get("toolsets/desk/tools?format=yaml")
    assert (refused.status, "one of mcp, openai, anthropic" in refused.last["detail"]) == (
        400,
        True,
    )
    thief = Rest(rest.http, rest.url, await another_agent(bob))
    for toolset in ("desk", "nowhere"):
        assert (await thief.get(f"toolsets/{toolset}/tools")).status == 404


@pytest.mark.long
async def test_arguments_that_a_list_renamed_reach_the_server_by_their_own_names(
    rest: Rest, toolset: Toolset, upstream: Recorder, rule: AddRule, bob: User
) -> None:
    names = {"参数": {"type": "string"}, "filter[id]": {"type": "number"}, "n": {"type": "string"}}
    schema = {"type": "object", "properties": names, "required": ["参数"]}
    upstream.tools = {"find": {"inputSchema": schema | {"additionalProperties": False}}}
    await server("late", toolset, upstream, by=bob)
    await rule(Effect.ALLOW, "unrelated")
    reply = await rest.get("toolsets/desk/tools?format=anthropic")
    (found,) = [tool for tool in reply.last["tools"] if tool["name"] == "late_find"]
    check_anthropic(found)
    text, number, plain = found["input_schema"]["properties"]

    body = (
        f'{{"toolset":"desk","tool":"late_find","arguments":{{"{number}": 1.0e1,"{text}":"好"}}}}'
    )
    made = await rest.send("POST", "calls", body.encode())
    both = await rest.call("late_find", {text: "a", "参数": "b"})
    wrong = await rest.call("late_find", {plain: "a"})

    assert made.last["state"] == "succeeded", made.last
    assert made.last["arguments"] == {"filter[id]": 10.0, "参数": "好"}
    assert upstream.calls[0].arguments == '{"filter[id]":1.0e1,"参数":"好"}'.encode()
    assert (both.status, wrong.status) == (422, 422)
    assert len(upstream.calls) == 1


@sync_to_async
def another_agent(owner: User) -> str:
    other = accounts.create_agent("other", owner=owner, by=owner)
    services.create_toolset("theirs", by=owner)
    return accounts.issue_token(other, by=owner)


@pytest.mark.long
async def test_another_agents_things_are_like_things_that_do_not_exist(
    rest: Rest, bob: User
) -> None:
    made = await rest.call("rec.echo", {"text": "hi"})
    thief = Rest(rest.http, rest.url, await another_agent(bob))
    unknown = "0192f000-0000-7000-8000-000000000000"

    for path in ("calls/{}", "calls/{}/cancel"):
        method = "POST" if path.endswith("cancel") else "GET"
        stolen = await thief.send(method, path.format(made.last["id"]))
        missing = await thief.send(method, path.format(unknown))
        assert (stolen.status, stolen.body) == (404, missing.body)
    for toolset in ("desk", "no-such"):
        asked = {"toolset": toolset, "tool": "rec.echo", "arguments": {"text": "x"}}
        assert (await thief.send("POST", "calls", asked)).status == 404
        assert (await thief.get(f"tools?toolset={toolset}")).status == 404
    assert (await thief.get("tools")).last == {"toolsets": []}


@pytest.mark.parametrize("shown", ["", "Bearer x", "Basic c2NvdXQ6eA=="])
@pytest.mark.parametrize("path", ["calls", "tools"])
async def test_without_a_token_nothing_is_told(rest: Rest, path: str, shown: str) -> None:
    method = "POST" if path == "calls" else "GET"
    reply = await rest.send(method, path, {}, Authorization=shown)

    assert reply.status == 401
    assert reply.headers["WWW-Authenticate"].startswith("Bearer")
    assert reply.headers["Content-Type"] == "application/problem+json"


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"[]", 400),
        (b"{", 400),
        (b'{"toolset":"desk","tool":"rec.echo","tool":"rec.erase"}', 400),
        (b'{"toolset":"desk"}', 400),
        (b'{"toolset":"desk","tool":7}', 400),
        (b'{"toolset":"desk","tool":"rec.say","arguments":{"n":9007199254740993}}', 400),
        (b'{"toolset":"desk","tool":"rec.say","arguments":[1]}', 422),
        (b" " * (1024 * 1024 + 1), 413),
    ],
    ids=["empty", "list", "broken", "twice", "no tool", "a number", "too large", "array", "huge"],
)
async def test_a_body_that_is_no_question_is_a_problem(
    rest: Rest, body: bytes, status: int
) -> None:
    reply = await rest.send("POST", "calls", body)

    assert reply.status == status, reply.body
    assert reply.headers["Content-Type"] == "application/problem+json"
    assert reply.last["status"] == status


@pytest.mark.parametrize("wait", ["46", "-1", "x", "1.5"])
async def test_one_waits_no_longer_than_proxies_do(rest: Rest, wait: str) -> None:
    body = {"toolset": "desk", "tool": "rec.say", "arguments": {}}

    assert (await rest.send("POST", f"calls?wait={wait}", body)).status == 400
    assert await Call.objects.acount() == 0


@pytest.mark.parametrize("address", ["tools?toolsets=desk", "toolsets/desk/tools?from=mcp"])
async def test_an_unknown_parameter_is_a_problem(rest: Rest, address: str) -> None:
    reply = await rest.get(address)

    assert (reply.status, "There is no parameter" in reply.last["detail"]) == (400, True)


async def test_other_encodings_and_methods_are_refused(rest: Rest) -> None:
    body = {"toolset": "desk", "tool": "rec.say"}
    gzip = await rest.send("POST", "calls", body, **{"Content-Encoding": "gzip"})
    form = await rest.send("POST", "calls", b"a=b", **{"Content-Type": "text/plain"})

    assert (gzip.status, form.status) == (415, 415)
    assert (await rest.send("DELETE", "calls")).status == 405
    assert (await rest.get("calls")).status == 405
