"""Agents of the common frameworks, with the settings that they come with, against a strict model.

Every story is told in a fixture, all of them at the same time, since most of it is a person's time.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from asgiref.sync import sync_to_async

from audit.services import SYSTEM
from calls.models import Call
from policies.models import Effect, Rule
from policies.services import save_rule
from tests.clients import environment_of
from tests.flows.chat import Chat, Json
from tests.flows.house import House, decide, open_house, rule
from tests.flows.servers import Server
from tests.flows.test_waiting import find_held
from tests.gateway.conftest import until
from tests.processes import Stack
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.long

PROGRAMS = {
    "openai-agents": "openai_agents.py",
    "pydantic-ai": "pydantic_agent.py",
    "langchain": "langchain_agent.py",
}
SCRIPTS = Path(__file__).parent / "frameworks"
# Longer than any of their requests may take.
A_PERSONS_TIME_S = 70.0
WAITING = "Not executed: pending approval."


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
async def talking(framework: str, house: House, chat: Chat) -> AsyncIterator[Conversation]:
    python = environment_of(framework) / "bin" / "python"
    script = SCRIPTS / PROGRAMS[framework]
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *map(str, (python, script, house.url(), house.token, chat.url)),
        stdin=pipe,
        stdout=pipe,
        limit=2**24,
    )
    conversation = Conversation(process)
    try:
        assert (await conversation._line())["ready"]
        yield conversation
    finally:
        assert process.stdin
        process.stdin.close()
        async with asyncio.timeout(60):
            await process.wait()


@pytest.fixture(scope="module")
def upstream() -> Iterator[Recorder]:
    with Recorder() as recorder:
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


Story = Callable[[Conversation, str], Awaitable[list[str]]]


async def allowed(conversation: Conversation, text: str) -> list[str]:
    return [await conversation.say({"call": "rec_echo", "arguments": {"text": text}})]


async def denied(conversation: Conversation, text: str) -> list[str]:
    return [await conversation.say({"call": "rec_say", "arguments": {"text": text}})]


async def misfit(conversation: Conversation, text: str) -> list[str]:
    return [await conversation.say({"call": "rec_form", "arguments": {"city": text, "days": 9}})]


async def comes_back(
    conversation: Conversation, text: str, *, house: House, yes: bool
) -> list[str]:
    """Its model waits once more by itself, then says how it is; its user asks again later."""
    wish = {"call": "rec_erase", "arguments": {"text": text}, "patience": 1}
    asking = asyncio.create_task(conversation.say(wish))
    held = await until(partial(find_held, text), seconds=60)
    person = asyncio.create_task(decides(house, held, yes=yes))
    said = [await asking]
    await person
    if WAITING in said[-1]:
        said.append(await conversation.say({"again": True}))
    return said


async def decides(house: House, held: Call, *, yes: bool) -> None:
    await asyncio.sleep(A_PERSONS_TIME_S)
    reason = "" if yes else "Not on a Friday."
    await sync_to_async(decide)(held.pk, by=house.alice, approve=yes, reason=reason)


@pytest.fixture(scope="module")
def told(house: House) -> dict[tuple[str, str], list[str] | BaseException]:
    """What each framework's model said, turn by turn."""
    stories: dict[str, Story] = {
        "allowed": allowed,
        "denied": denied,
        "misfit": misfit,
        "approved": partial(comes_back, house=house, yes=True),
        "refused": partial(comes_back, house=house, yes=False),
    }
    keys = [(framework, story) for framework in PROGRAMS for story in stories]

    async def tell(framework: str, story: str) -> list[str]:
        async with Chat().serving() as chat, talking(framework, house, chat) as conversation:
            said = await stories[story](conversation, f"{framework} {story}")
            assert chat.rejected == []
            assert {"rec_echo", "rec_erase", "countersign_await_call"} <= chat.offered
            return said

    async def tell_all() -> list[list[str] | BaseException]:
        return await asyncio.gather(*(tell(*key) for key in keys), return_exceptions=True)

    return dict(zip(keys, asyncio.run(tell_all()), strict=True))


Told = dict[tuple[str, str], list[str] | BaseException]


def story_of(told: Told, framework: str, story: str) -> list[str]:
    said = told[framework, story]
    if isinstance(said, BaseException):
        raise said
    return said


@pytest.mark.parametrize("framework", PROGRAMS)
def test_its_model_calls_a_tool_and_reads_the_answer(framework: str, told: Told) -> None:
    assert story_of(told, framework, "allowed") == [f"{framework} allowed"]


@pytest.mark.parametrize("framework", PROGRAMS)
def test_its_model_reads_why_a_rule_denies(framework: str, told: Told) -> None:
    (said,) = story_of(told, framework, "denied")

    assert "Nobody says anything here." in said


@pytest.mark.parametrize("framework", PROGRAMS)
def test_its_model_reads_what_is_wrong_with_its_arguments(framework: str, told: Told) -> None:
    (said,) = story_of(told, framework, "misfit")

    assert "$.days" in said


@pytest.mark.parametrize("framework", PROGRAMS)
def test_its_model_gets_the_answer_that_a_person_allows_late(
    framework: str, told: Told, upstream: Recorder
) -> None:
    said = story_of(told, framework, "approved")

    assert said[-1] == f"{framework} approved"
    sent = [json.loads(received.arguments)["text"] for received in upstream.calls]
    assert sent.count(f"{framework} approved") == 1


@pytest.mark.parametrize("framework", PROGRAMS)
def test_its_model_reads_why_a_person_denies_late(
    framework: str, told: Told, upstream: Recorder
) -> None:
    said = story_of(told, framework, "refused")

    assert "Denied by alice. Not on a Friday." in said[-1]
    sent = [json.loads(received.arguments).get("text") for received in upstream.calls]
    assert f"{framework} refused" not in sent
