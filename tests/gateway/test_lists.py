"""A server says that it lists something else: it is asked at once, and agents hear what they may
see of it; what is new waits for a person as ever."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.test import Client

from accounts.models import User
from registry import services
from registry.discovery import discovery
from registry.models import Discovery, Server, Tool, Toolset
from tests.database import Databases
from tests.flows.house import commands
from tests.flows.servers import Server as Started
from tests.gateway.agent import Agent
from tests.gateway.conftest import until
from tests.gateway.test_listening import CHANGED, following, listening
from tests.processes import Stack
from tests.upstreams.raw import serving
from tests.upstreams.telling import Telling

pytestmark = pytest.mark.django_db(transaction=True)


@sync_to_async
def register(toolset: Toolset, by: User, **reached: Any) -> Server:
    made = services.register("told", owner=by, by=by, publish=True, **reached)
    services.add_server(toolset, made, by=by)
    (found,) = asyncio.run(discovery.look_at([made.pk]))
    assert found.succeeded, found.summary
    return made


@pytest.fixture(params=["modern", "legacy", "sse"])
async def telling(
    request: pytest.FixtureRequest, toolset: Toolset, bob: User
) -> AsyncIterator[Telling]:
    """Registered, and published as it was then."""
    said = Telling(request.param)
    async with serving(said) as there:
        path = "sse" if request.param == "sse" else "mcp"
        await register(toolset, bob, transport="http", url=f"http://127.0.0.1:{there.port}/{path}")
        said.streams.clear()
        yield said


async def listened_to(telling: Telling) -> None:
    async def open_now() -> bool:
        return len(telling.streams) == 1

    await until(open_now)


async def names(agent: Agent) -> set[str]:
    listed = (await agent.ask("tools/list")).result["tools"]
    return {tool["name"] for tool in listed if tool["name"].startswith("told_")}


async def on_its_word() -> list[Discovery]:
    return [look async for look in Discovery.objects.filter(on_its_word=True).order_by("pk")]


@pytest.mark.long
async def test_agents_hear_and_what_is_new_waits(
    agent: Agent, stack: Stack, telling: Telling, olga: User, client: Client
) -> None:
    assert stack.worker
    await listened_to(telling)
    assert await names(agent) == {"told_one", "told_two"}
    async with AsyncExitStack() as on:
        heard = await listening(agent, on, {"toolsListChanged": True})
        await following(heard)
        telling.change("one", "three", times=20)
        assert (await following(heard))["method"] == CHANGED

    assert await names(agent) == {"told_one"}
    (look,) = await on_its_word()
    assert look.summary == "Found 2 tools. New, to be published: 1. Gone: 1."
    assert (await Tool.objects.aget(exposed_name="told.three")).state == Tool.State.NEW
    await sync_to_async(client.force_login)(olga)
    page = await sync_to_async(client.get)("/servers/told/")
    assert "Changed on the server's word at" in page.text.replace("&#x27;", "'")


@pytest.mark.long
@pytest.mark.parametrize("telling", ["modern", "legacy"], indirect=True)
async def test_who_says_that_it_tells_and_refuses_to_is_not_said_to_be_listened_to(
    stack: Stack, telling: Telling, olga: User, client: Client
) -> None:
    telling.refuses = True
    assert stack.worker
    told = Server.objects.filter(slug="told")
    await sync_to_async(client.force_login)(olga)

    async def facts() -> str:
        return " ".join((await sync_to_async(client.get)("/servers/told/")).text.split())

    await until(told.exclude(lists_unheard="").aexists)
    refused = await facts()
    telling.refuses = False
    await until(told.filter(lists_unheard="").aexists)

    assert "It says so, but cannot be listened to:" in refused
    assert "HTTP 405" in refused
    assert "Yes: it is listened to" in await facts()


@pytest.mark.parametrize("telling", ["modern"], indirect=True)
async def test_who_is_off_is_not_listened_to(stack: Stack, telling: Telling, olga: User) -> None:
    assert stack.worker
    await listened_to(telling)

    await sync_to_async(services.set_enabled)(
        await Server.objects.aget(slug="told"), False, by=olga
    )

    async def closed() -> bool:
        return not telling.streams

    await until(closed)


@pytest.mark.long
@pytest.mark.parametrize("telling", ["modern"], indirect=True)
async def test_who_goes_while_it_is_asked_is_let_go(
    stack: Stack, telling: Telling, databases: Databases
) -> None:
    """Nobody deletes servers with what the product offers; whoever empties tables does."""
    assert stack.worker
    await listened_to(telling)
    before = len(stack.worker.text())
    with databases.superuser(os.environ) as link, link.transaction():
        link.execute("SET LOCAL session_replication_role = replica")
        link.execute("DELETE FROM registry_server WHERE slug = 'told'")
        asked = telling.asked
        telling.change("one")

        async def asked_again() -> bool:
            return telling.asked > asked

        await until(asked_again)

    async def let_go() -> bool:
        return "told is gone" in stack.worker.text()[before:] and not telling.streams

    await until(let_go)
    assert "Traceback" not in stack.worker.text()[before:]


@pytest.mark.long
@pytest.mark.parametrize("telling", ["modern", "legacy"], indirect=True)
async def test_what_changed_while_nobody_could_listen_is_found(
    agent: Agent, stack: Stack, telling: Telling
) -> None:
    assert stack.worker
    await listened_to(telling)
    telling.tools = ["one"]
    telling.hang_up()

    async def known() -> bool:
        return await names(agent) == {"told_one"}

    await until(known)
    # Nobody told: it was asked for that alone.
    assert await on_its_word() == []
    await listened_to(telling)
    telling.change()

    async def gone() -> bool:
        return not await names(agent)

    await until(gone)


@pytest.mark.long
@pytest.mark.parametrize("telling", ["modern"], indirect=True)
async def test_of_two_workers_one_listens_and_the_other_takes_over(
    agent: Agent, stack: Stack, own_stack: Stack, telling: Telling
) -> None:
    stack.end_worker()
    assert own_stack.worker
    await listened_to(telling)
    assert stack.worker
    telling.change("one")

    async def heard() -> bool:
        return len(await on_its_word()) == 1

    await until(heard)
    assert len(telling.streams) == 1
    own_stack.worker.kill()

    async def left() -> bool:
        return not telling.streams

    await until(left)
    await listened_to(telling)
    telling.change()

    async def gone() -> bool:
        return not await names(agent)

    await until(gone)


@pytest.fixture
async def on_stdio(toolset: Toolset, bob: User, tmp_path: Path) -> AsyncIterator[Path]:
    """What it lists, line by line."""
    tools = tmp_path / "tools"
    tools.write_text("one\ntwo\nforget\n")
    argv = [sys.executable, "-m", "tests.upstreams.telling", str(tools)]
    with commands([Started("told", argv=argv)]):
        await register(toolset, bob, transport="stdio", command="told")
        yield tools


@pytest.mark.long
async def test_a_process_tells_on_its_pipe(agent: Agent, stack: Stack, on_stdio: Path) -> None:
    assert stack.worker
    assert await names(agent) == {"told_one", "told_two", "told_forget"}
    on_stdio.write_text("one\n")

    async def gone() -> bool:
        # Until somebody listens.
        on_stdio.with_suffix(".told").touch()
        return await names(agent) == {"told_one"}

    await until(gone)


@pytest.mark.long
async def test_what_is_told_in_the_middle_of_a_call_counts_too(
    agent: Agent, stack: Stack, on_stdio: Path
) -> None:
    """By the process that ran the call, and by no other."""
    assert stack.worker

    async def gone() -> bool:
        if "told_forget" in await names(agent):
            await agent.call("told.forget", {})
        return await names(agent) == set()

    await until(gone)
    assert await on_its_word()
