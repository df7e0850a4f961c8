"""Questions that a server of an earlier revision asks beside its calls: whose they are."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest

from core.abilities import InputAnswer
from registry.upstream import CallReply, Limits, TimedOut, UpstreamCall, Upstreams
from registry.upstream.session import asking_sessions
from tests.upstreams.local import local_upstreams
from tests.upstreams.raw import (
    LEGACY,
    RawServer,
    Request,
    begin_events,
    error,
    event,
    reply,
    respond,
    serving,
)

QUESTION = {
    "jsonrpc": "2.0",
    "id": "q1",
    "method": "elicitation/create",
    "params": {"message": "Your name?", "requestedSchema": {"type": "object", "properties": {}}},
}
NAMED = {"action": "accept", "content": {"name": "Ann"}}
FORM = ("form",)


@pytest.fixture
async def upstreams() -> AsyncIterator[Upstreams]:
    async with local_upstreams() as made:
        yield made


class Person:
    """Whom an agent's calls ask."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.asked: list[Any] = []

    async def look(self, requests: Mapping[str, Any], round_: int) -> dict[str, InputAnswer]:
        return await self.wait(requests, round_)

    async def wait(
        self, requests: Mapping[str, Any], round_: int, pause: Any = None
    ) -> dict[str, InputAnswer]:
        self.asked += requests.values()
        return {key: InputAnswer(NAMED) for key in requests}

    def call(self, tool: str, **more: Any) -> UpstreamCall:
        return UpstreamCall(tool, b"{}", asking=self, abilities=FORM, asker=self.name, **more)


class Beside:
    """Greets each client with a session of its own, and asks on the streams beside them."""

    def __init__(self) -> None:
        self.streams: dict[str, asyncio.StreamWriter] = {}
        self.sessions: list[str] = []
        self.ended: list[str] = []
        self.calls: asyncio.Queue[tuple[Request, asyncio.StreamWriter]] = asyncio.Queue()
        self.answers: asyncio.Queue[Any] = asyncio.Queue()

    async def __call__(self, request: Request, out: asyncio.StreamWriter) -> None:
        session = request.headers.get("mcp-session-id", "")
        if request.verb == "DELETE":
            self.ended.append(session)
            respond(out, b"")
        elif request.verb == "GET":
            begin_events(out)
            self.streams[session] = out
        elif request.method == "initialize":
            self._greet(request, out)
        elif request.method == "server/discover":
            respond(out, error(None, -32000), status=400)
        elif request.method == "tools/call":
            await self.calls.put((request, out))
        elif not request.method:
            await self.answers.put(request.json)
            respond(out, b"", status=202)
        elif request.method == "ping":
            respond(out, reply(request, "{}"))
        else:
            respond(out, b"", status=202)

    def _greet(self, request: Request, out: asyncio.StreamWriter) -> None:
        self.sessions.append(f"s{len(self.sessions)}")
        info = {"name": "beside", "version": "1"}
        opening = {"protocolVersion": LEGACY, "capabilities": {"tools": {}}, "serverInfo": info}
        session = {"Mcp-Session-Id": self.sessions[-1]}
        respond(out, reply(request, json.dumps(opening)), headers=session)

    async def ask(self, session: str) -> Any:
        """What it is answered."""
        event(self.streams[session], json.dumps(QUESTION).encode())
        async with asyncio.timeout(5):
            return await self.answers.get()


def begin(
    upstreams: Upstreams, raw: RawServer, who: Person, **more: Any
) -> "asyncio.Future[CallReply]":
    target = raw.target(revision=LEGACY)
    return asyncio.ensure_future(upstreams.call_tool(target, who.call("t", **more)))


async def test_a_question_beside_calls_is_put_to_the_agent_whose_call_it_is(
    upstreams: Upstreams,
) -> None:
    server, ann = Beside(), Person("ann")
    async with serving(server) as raw:
        call = begin(upstreams, raw, ann)
        request, out = await server.calls.get()

        answer = await server.ask("s0")

        respond(out, reply(request))
        await call
    assert answer["result"] == NAMED
    assert len(ann.asked) == 1


async def test_a_late_question_of_one_agents_call_is_never_put_to_another_agent(
    upstreams: Upstreams,
) -> None:
    server, ann, mallory = Beside(), Person("ann"), Person("mallory")
    async with serving(server) as raw:
        with pytest.raises(TimedOut):
            await begin(upstreams, raw, ann, limits=Limits(total_s=0.2))
        await server.calls.get()
        other = begin(upstreams, raw, mallory)
        request, out = await server.calls.get()

        # Ann's call is over here; her server does not know that, and asks.
        answer = await server.ask("s0")

        respond(out, reply(request))
        await other
    assert mallory.asked == []
    assert answer["error"]["code"] == -32600
    assert "which call" in answer["error"]["message"]


async def test_with_two_calls_of_one_agent_out_it_is_refused(upstreams: Upstreams) -> None:
    server, ann = Beside(), Person("ann")
    async with serving(server) as raw:
        calls = [begin(upstreams, raw, ann) for _ in "ab"]
        arrived = [await server.calls.get() for _ in calls]

        answer = await server.ask("s0")

        for request, out in arrived:
            respond(out, reply(request))
        await asyncio.gather(*calls)
    assert ann.asked == []
    assert answer["error"]["code"] == -32600


async def test_sessions_of_agents_that_stay_away_are_ended(
    upstreams: Upstreams, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking_sessions, "UNUSED_S", 0.0)
    server = Beside()
    async with serving(server) as raw:
        for name in ("ann", "mallory"):
            call = begin(upstreams, raw, Person(name))
            request, out = await server.calls.get()
            respond(out, reply(request))
            await call

        assert server.sessions == ["s0", "s1"]
        assert server.ended == ["s0"]
