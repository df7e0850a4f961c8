"""What reaches a server that was changed or disabled is closed once no call runs over it."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from accounts.models import User
from registry import services
from registry.models import Server, Toolset
from tests.gateway.conftest import Play, forget_agreements, server, until
from tests.gateway.test_inputs import FORMS, again, answers_to
from tests.upstreams.asking import Asking
from tests.upstreams.recorder import running

pytestmark = pytest.mark.django_db(transaction=True)


@dataclass
class Counting(Asking):
    """Knows which of its sessions were ended."""

    ended: list[str] = field(default_factory=list)

    def reset(self) -> None:
        super().reset()
        self.ended.clear()

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["method"] == "DELETE":
            self.ended.append(dict(scope["headers"])[b"mcp-session-id"].decode())
        await super().app(scope, receive, send)


running_recorder = running(Counting)


@pytest.fixture
def upstream(running_recorder: Counting) -> Counting:
    running_recorder.reset()
    return running_recorder


@pytest.fixture
def legacy_server(upstream: Counting, toolset: Toolset) -> Counting:
    upstream.legacy = True
    forget_agreements()
    return upstream


@sync_to_async
def disable(by: User) -> None:
    services.set_enabled(Server.objects.get(slug="rec"), False, by=by)


def session_of(upstream: Counting) -> str:
    return upstream.calls[-1].headers["mcp-session-id"]


async def is_well(play: Play, tool: str) -> bool:
    reply = await play().call(tool, {"text": "x"})
    return "result" in reply.last and not reply.result.get("isError")


@pytest.mark.parametrize("change", ["changed", "disabled"])
async def test_its_session_is_ended(
    play: Play, legacy_server: Counting, bob: User, change: str
) -> None:
    assert await is_well(play, "rec_echo")
    session = session_of(legacy_server)

    await (disable(bob) if change == "disabled" else sync_to_async(forget_agreements)())

    await until(sync_to_async(lambda: session in legacy_server.ended))


@pytest.mark.long
async def test_a_call_that_runs_over_it_comes_to_its_end_first(
    play: Play, legacy_server: Counting, toolset: Toolset, bob: User
) -> None:
    await server("two", toolset, legacy_server, by=bob)
    await until(lambda: is_well(play, "two_echo"))
    idle = session_of(legacy_server)
    agent = play(capabilities=FORMS)
    asked = await agent.call("rec.ask")
    session = session_of(legacy_server)
    await sync_to_async(forget_agreements)()
    # What nobody uses is closed at once; and what is used is not used by others.
    await until(sync_to_async(lambda: idle in legacy_server.ended))
    assert session not in legacy_server.ended
    assert await is_well(play, "rec_echo")
    assert session_of(legacy_server) != session

    answers = answers_to(asked.result["inputRequests"])
    reply = await agent.call("rec.ask", **again(asked, inputResponses=answers))

    assert json.loads(reply.text)[0]["who"]["action"] == "accept"
    await until(sync_to_async(lambda: session in legacy_server.ended))
