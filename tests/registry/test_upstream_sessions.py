"""A task of 2025-11-25 is asked after in the session that began it, by whichever process."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from registry.upstream import Lost, TaskRef, UpstreamCall, Upstreams
from tests.upstreams.local import local_upstreams
from tests.upstreams.raw import Request, error, legacy, reply, respond, serving

REVISION = "2025-11-25"
TASK = '{"taskId":"t-1","status":"%s","pollInterval":100}'


@dataclass
class Bound:
    """Answers about its task only the session that began it, as the SDKs of that revision do."""

    sessions: int = 0
    forgotten: set[str] = field(default_factory=set)
    owner: str = ""
    asked_by: list[str] = field(default_factory=list)
    looked: asyncio.Event = field(default_factory=asyncio.Event)
    done: asyncio.Event = field(default_factory=asyncio.Event)

    async def handle(self, request: Request, out: asyncio.StreamWriter) -> None:
        if request.method == "initialize":
            self.sessions += 1
        opened = legacy(self.answer, revision=REVISION, session=f"s{self.sessions}")
        await opened(request, out)

    async def answer(self, request: Request, out: asyncio.StreamWriter) -> None:
        session = request.headers.get("mcp-session-id", "")
        if session in self.forgotten:
            respond(out, error(None, -32001, "Session not found"), status=404)
        elif request.method == "tools/call":
            self.owner = session
            respond(out, reply(request, '{"task":%s}' % (TASK % "working")))
        elif session != self.owner:
            respond(out, error(request, -32602, "Task not found"))
        elif request.method == "tasks/result":
            await self.done.wait()
            respond(out, reply(request, '{"content":[]}'))
        else:
            self.asked_by.append(session)
            self.looked.set()
            respond(out, reply(request, TASK % ("completed" if self.done.is_set() else "working")))


@pytest.fixture
async def first() -> AsyncIterator[Upstreams]:
    async with local_upstreams() as made:
        yield made


@pytest.fixture
async def second() -> AsyncIterator[Upstreams]:
    async with local_upstreams() as made:
        yield made


async def begun(upstreams: Upstreams, server: Bound, target: object) -> TaskRef:
    """Its process stops while it follows the task."""
    refs: list[TaskRef] = []

    async def note(ref: TaskRef) -> None:
        refs.append(ref)

    call = UpstreamCall("t", b"{}", as_task=True, on_task=note)
    following = asyncio.create_task(upstreams.call_tool(target, call))  # type: ignore[arg-type]
    looked = asyncio.create_task(server.looked.wait())
    await asyncio.wait({following, looked}, return_when=asyncio.FIRST_COMPLETED)
    assert looked.done(), following.exception()
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    await upstreams.aclose()
    return refs[0]


async def test_another_process_goes_on_in_the_session_that_began_it(
    first: Upstreams, second: Upstreams
) -> None:
    bound = Bound()
    async with serving(bound.handle) as server:
        ref = await begun(first, bound, server.target())
        assert "DELETE" not in [request.verb for request in server.requests]
        bound.done.set()

        answer = await second.follow_task(server.target(), ref, UpstreamCall("t", b"{}"))

    assert answer.result == b'{"content":[]}'
    assert set(bound.asked_by) == {ref.session} == {"s1"}
    assert bound.sessions == 1


async def test_where_that_session_is_gone_the_server_says_so_in_a_new_one(
    first: Upstreams, second: Upstreams
) -> None:
    bound = Bound()
    async with serving(bound.handle) as server:
        ref = await begun(first, bound, server.target())
        bound.forgotten.add(ref.session)

        with pytest.raises(Lost, match="no longer knows its task: Task not found"):
            await second.follow_task(server.target(), ref, UpstreamCall("t", b"{}"))

        bound.done.set()
        ended = [one.headers["mcp-session-id"] for one in server.requests if one.verb == "DELETE"]
    assert ended == ["s2"]
