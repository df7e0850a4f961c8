"""Agents of the common frameworks and clients, with the settings that they come with, against a
strict model.

Every story is told in a fixture, all of them at the same time, since most of it is a person's time.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import pytest
from asgiref.sync import sync_to_async

from audit.services import SYSTEM
from calls.models import Call
from policies.models import Effect, Rule
from policies.services import save_rule
from registry.publishing.agent_names import public_name
from tests.clients import environment_of
from tests.database import Cleaner
from tests.flows.chat import Chat, Json
from tests.flows.host import Host
from tests.flows.house import House, decide, open_house, rule
from tests.flows.servers import Server
from tests.flows.test_waiting import find_held
from tests.flows.visitors import visiting
from tests.gateway.conftest import until
from tests.processes import Stack
from tests.upstreams.recorder import DONE, TEXT, TOOLS, Received, Recorder

pytestmark = pytest.mark.long

PROGRAMS = {
    "openai-agents": "openai_agents.py",
    "pydantic-ai": "pydantic_agent.py",
    "langchain": "langchain_agent.py",
}
# Which client of tests/flows/visitors.py is in a host of ours, as it is without any option. The
# newer revision is what two of them speak only when they are told to.
CLIENTS = {
    "typescript-1.22": "typescript-v1.22",
    "typescript-1.32": "typescript-v1",
    "typescript-2": "typescript-default",
    "typescript-2-auto": "typescript",
    "inspector": "inspector-default",
    "inspector-modern": "inspector",
}
AGENTS = (*PROGRAMS, *CLIENTS)
SCRIPTS = Path(__file__).parent / "frameworks"
# Longer than any of their requests may take.
A_PERSONS_TIME_S = 70.0
# Of the test, where a machine is busy.
PATIENCE_S = 600.0
WAITING = "Not executed: pending approval."
# What clients have held against what they are answered.
SAID = {"type": "object", "properties": {"said": {"type": "string"}}, "required": ["said"]}
BRANCH = {"type": "object", "properties": {"below": {"$ref": "#/$defs/branch"}}}
LONG = "a_name_" * 10


@dataclass
class Typed(Recorder):
    """Its tools have what common clients stumble over."""

    def __post_init__(self) -> None:
        super().__post_init__()
        typed = {name: {**TOOLS[name], "outputSchema": SAID} for name in ("say", "form")}
        tree = {"type": "object", "properties": {"root": BRANCH}, "$defs": {"branch": BRANCH}}
        self.tools = {
            **TOOLS,
            **typed,
            "erase": {"inputSchema": TEXT, "outputSchema": SAID},
            "notes.add": {"inputSchema": TEXT},
            LONG: {"inputSchema": TEXT},
            "tree": {"inputSchema": tree},
        }

    async def _call(self, received: Received, receive: Any, send: Any) -> None:
        params = received.message["params"]
        if params["name"] == "erase":
            text = params["arguments"]["text"]
            result = {**json.loads(DONE), "structuredContent": {"said": text}}
            result["content"][0]["text"] = text
            self.results["erase"] = json.dumps(result).encode()
        await super()._call(received, receive, send)


class Talk(Protocol):
    async def say(self, wish: Json) -> str: ...


class Conversation:
    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def say(self, wish: Json) -> str:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(wish).encode() + b"\n")
        said = await self._line()
        assert "said" in said, said
        return str(said["said"])

    async def _line(self) -> Json:
        assert self._process.stdout
        line = await self._process.stdout.readline()
        assert line, "the agent's program ended"
        said: Json = json.loads(line)
        return said


@asynccontextmanager
async def talking(agent: str, house: House, chat: Chat) -> AsyncIterator[Talk]:
    if agent in CLIENTS:
        async with visiting(CLIENTS[agent], house.url(), house.token) as visitor:
            yield Host(visitor, chat.url)
        return
    async with program(agent, house, chat) as conversation:
        yield conversation


# Where all of them start at once, none has started before it gives up waiting.
starting = asyncio.Semaphore(4)


@asynccontextmanager
async def program(framework: str, house: House, chat: Chat) -> AsyncIterator[Conversation]:
    python = environment_of(framework) / "bin" / "python"
    script = SCRIPTS / PROGRAMS[framework]
    pipe = asyncio.subprocess.PIPE
    async with starting:
        process = await asyncio.create_subprocess_exec(
            *map(str, (python, script, house.url(), house.token, chat.url)),
            stdin=pipe,
            stdout=pipe,
            limit=2**24,
        )
        conversation = Conversation(process)
        ready = await conversation._line()
    try:
        assert ready["ready"]
        yield conversation
    finally:
        assert process.stdin
        process.stdin.close()
        async with asyncio.timeout(60):
            await process.wait()


@pytest.fixture(scope="module")
def upstream() -> Iterator[Recorder]:
    with Typed() as recorder:
        yield recorder


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """With the patience that an installation has unless it is set."""
    with Stack(tmp_path_factory.mktemp("frameworks")) as stack:
        del stack.env["COUNTERSIGN_FIRST_HOLD_S"]
        yield stack


@pytest.fixture(scope="module")
def house(lasting_database: None, patient: Stack, upstream: Recorder) -> House:
    stack = patient
    assert stack.web
    assert stack.worker
    house = open_house(stack, [Server("rec", url=upstream.url)])
    rule(Effect.ALLOW, "*", position=900)
    rule(Effect.ASK, "erase", position=100)
    never = Rule(name="never", effect=Effect.DENY, tool="say", position=50)
    never.reason = "Nobody says anything here."
    save_rule(never, by=SYSTEM)
    return house


Story = Callable[[Talk, str], Awaitable[list[str]]]
Decision = Callable[[Call], Awaitable[None]]


async def asks(talk: Talk, text: str) -> list[str]:
    """What needs nobody: a call, one that a rule denies, one that does not fit, odd names."""
    wishes = [
        ("rec_echo", {"text": text}),
        ("rec_say", {"text": text}),
        ("rec_form", {"city": text, "days": 9}),
        ("rec_notes_add", {"text": text}),
        (public_name(f"rec.{LONG}", "_"), {"text": text}),
        ("rec_tree", {"root": {"below": {"below": {}}}}),
    ]
    return [await talk.say({"call": tool, "arguments": given}) for tool, given in wishes]


async def comes_back(talk: Talk, text: str, *, end: Decision) -> list[str]:
    """Its model waits once more by itself, then says how it is; its user asks again later."""
    wish = {"call": "rec_erase", "arguments": {"text": text}, "patience": 1}
    asking = asyncio.create_task(talk.say(wish))
    held = await until(partial(find_held, text), seconds=PATIENCE_S)
    person = asyncio.create_task(after_a_persons_time(end, held))
    said = [await asking]
    await person
    if WAITING in said[-1]:
        said.append(await talk.say({"again": True}))
    return said


async def after_a_persons_time(end: Decision, held: Call) -> None:
    await asyncio.sleep(A_PERSONS_TIME_S)
    await end(held)


async def decides(held: Call, *, house: House, yes: bool) -> None:
    reason = "" if yes else "Not on a Friday."
    await sync_to_async(decide)(held.pk, by=house.alice, approve=yes, reason=reason)


async def expires(held: Call, *, cleaner: Cleaner) -> None:
    """An hour goes by, in which nobody decides."""
    statement = "UPDATE approvals_approval SET decide_by = now() WHERE call_id = %s"
    await asyncio.to_thread(cleaner.connection.execute, statement, [held.pk])


@pytest.fixture(scope="module")
def told(
    request: pytest.FixtureRequest, house: House, cleaner: Cleaner
) -> dict[tuple[str, str], list[str] | BaseException]:
    """What each agent's model said, turn by turn."""
    ends: dict[str, Decision] = {
        "approved": partial(decides, house=house, yes=True),
        "refused": partial(decides, house=house, yes=False),
        "expired": partial(expires, cleaner=cleaner),
    }
    stories: dict[str, Story] = {"asks": asks}
    stories |= {name: partial(comes_back, end=end) for name, end in ends.items()}
    # Of the agents whose tests run: each is programs of its own, all at the same time.
    asked = {
        item.callspec.params.get("agent")
        for item in request.session.items
        if isinstance(item, pytest.Function) and hasattr(item, "callspec")
    }
    agents = [agent for agent in (*PROGRAMS, *CLIENTS) if agent in asked]
    keys = [(agent, story) for agent in agents for story in stories]

    async def tell(agent: str, story: str) -> list[str]:
        async with (
            asyncio.timeout(PATIENCE_S),
            Chat().serving() as chat,
            talking(agent, house, chat) as talk,
        ):
            said = await stories[story](talk, f"{agent} {story}")
            assert chat.rejected == []
            assert {"rec_echo", "rec_erase", "countersign_await_call"} <= chat.offered
            return said

    async def tell_all() -> list[list[str] | BaseException]:
        return await asyncio.gather(*(tell(*key) for key in keys), return_exceptions=True)

    return dict(zip(keys, asyncio.run(tell_all()), strict=True))


Told = dict[tuple[str, str], list[str] | BaseException]


def story_of(told: Told, agent: str, story: str) -> list[str]:
    said = told[agent, story]
    if isinstance(said, BaseException):
        raise said
    return said


@pytest.mark.parametrize("agent", AGENTS)
def test_its_model_calls_tools_and_reads_their_answers(agent: str, told: Told) -> None:
    said = story_of(told, agent, "asks")

    assert (said[0], *said[3:]) == (*[f"{agent} asks"] * 3, "done")


@pytest.mark.parametrize("agent", AGENTS)
def test_its_model_reads_why_a_rule_denies(agent: str, told: Told) -> None:
    assert "Nobody says anything here." in story_of(told, agent, "asks")[1]


@pytest.mark.parametrize("agent", AGENTS)
def test_its_model_reads_what_is_wrong_with_its_arguments(agent: str, told: Told) -> None:
    assert "$.days" in story_of(told, agent, "asks")[2]


def sent(upstream: Recorder, text: str) -> int:
    given = [json.loads(received.arguments).get("text") for received in upstream.calls]
    return given.count(text)


@pytest.mark.parametrize("agent", AGENTS)
def test_its_model_gets_the_answer_that_a_person_allows_late(
    agent: str, told: Told, upstream: Recorder
) -> None:
    said = story_of(told, agent, "approved")

    # Some show their model what is structured, and some the text.
    assert said[-1].removeprefix('{"said":').strip(' "}') == f"{agent} approved"
    assert sent(upstream, f"{agent} approved") == 1


@pytest.mark.parametrize("agent", AGENTS)
def test_its_model_reads_why_a_person_denies_late(
    agent: str, told: Told, upstream: Recorder
) -> None:
    said = story_of(told, agent, "refused")

    assert "Denied by alice. Not on a Friday." in said[-1]
    assert sent(upstream, f"{agent} refused") == 0


@pytest.mark.parametrize("agent", AGENTS)
def test_its_model_reads_that_nobody_decided(agent: str, told: Told, upstream: Recorder) -> None:
    said = story_of(told, agent, "expired")

    assert "Nobody decided in time." in said[-1]
    assert sent(upstream, f"{agent} expired") == 0
