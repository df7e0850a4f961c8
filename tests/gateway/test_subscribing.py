"""Agents hear when a resource changes that they may read, and of no other."""

import os
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from typing import Any

import pytest

from accounts.models import User
from audit.models import Entry
from policies.models import Effect
from registry.discovery import discovery
from registry.models import Server, Toolset
from tests.database import APP, Databases
from tests.gateway.agent import LEGACY, Agent
from tests.gateway.conftest import PING, AddRule, Play, server, until
from tests.gateway.test_listening import SUBSCRIPTION, following, get_stream, listening
from tests.processes import Stack
from tests.upstreams.library import Library, declaring
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)

TODAY, PICTURE, DAY = "notes://today", "notes://picture", "notes://day/1"


async def until_watched(library: Library, *expected: str) -> None:
    async def watched() -> bool:
        return library.subscribed == ([list(expected)] if expected else [])

    await until(watched)


async def subscribe(agent: Agent, uri: str, method: str = "resources/subscribe") -> Any:
    return (await agent.ask(method, {"uri": uri})).last


async def test_a_modern_client_hears_on_its_stream(agent: Agent, library: Library) -> None:
    wanted = {"resourceSubscriptions": [TODAY, DAY, 7]}
    async with AsyncExitStack() as on:
        heard = await listening(agent, on, wanted, request_id="s")
        acknowledged = await following(heard)
        await until_watched(library, DAY, TODAY)
        for uri in (PICTURE, TODAY, f"{DAY}/part"):
            library.update(uri)
        said = [(await following(heard))["params"] for _ in range(2)]

    tag = {SUBSCRIPTION: "s"}
    honoured = {"resourceSubscriptions": [TODAY, DAY]}
    assert acknowledged["params"] == {"notifications": honoured, "_meta": tag}
    assert said == [{"uri": TODAY, "_meta": tag}, {"uri": f"{DAY}/part", "_meta": tag}]
    entries = [entry async for entry in Entry.objects.filter(action="resource.subscribed")]
    assert {(e.agent, e.server, e.details["uri"]) for e in entries} == {
        ("scout", "lib", DAY),
        ("scout", "lib", TODAY),
    }

    async def left() -> bool:
        return library.subscribed == []

    await until(left)


@pytest.mark.long
@pytest.mark.parametrize("revision", LEGACY)
async def test_an_earlier_client_hears_beside_its_session(
    play: Play, library: Library, revision: str
) -> None:
    agent = play(revision)
    begun = await agent.begin()
    assert begun.result["capabilities"]["resources"]["subscribe"] is True
    # Before it has a stream, and while it has one.
    assert (await subscribe(agent, TODAY))["result"] == {}
    async with AsyncExitStack() as on:
        heard = await get_stream(agent, on)
        await until_watched(library, TODAY)
        assert (await subscribe(agent, PICTURE))["result"] == {}
        await until_watched(library, PICTURE, TODAY)
        library.update(PICTURE)
        assert (await following(heard))["params"] == {"uri": PICTURE}
        await subscribe(agent, PICTURE, "resources/unsubscribe")
        await until_watched(library, TODAY)
        library.update(PICTURE)
        library.update(TODAY)
        assert (await following(heard))["params"] == {"uri": TODAY}


@pytest.mark.long
async def test_an_earlier_client_subscribes_at_another_process_than_it_listens(
    play: Play, own_stack: Stack, library: Library
) -> None:
    assert own_stack.agents
    agent = play(LEGACY[0])
    await agent.begin()
    elsewhere = play(LEGACY[0], at_stack=own_stack, session=agent.session)
    async with AsyncExitStack() as on:
        heard = await get_stream(elsewhere, on)
        assert (await subscribe(agent, TODAY))["result"] == {}
        await until_watched(library, TODAY)
        library.update(TODAY)
        assert (await following(heard))["params"] == {"uri": TODAY}
        await subscribe(agent, TODAY, "resources/unsubscribe")
        await until_watched(library)


@pytest.mark.long
@pytest.mark.parametrize("effect", [Effect.ASK, Effect.DENY])
async def test_who_may_not_read_does_not_hear(
    play: Play, library: Library, rule: AddRule, effect: Effect
) -> None:
    await rule(effect, "resources/read", when=f'args.uri == "{TODAY}"')
    legacy = play(LEGACY[0])
    async with AsyncExitStack() as on:
        heard = await listening(play(), on, {"resourceSubscriptions": [TODAY]})
        assert (await following(heard))["params"]["notifications"] == {}
    assert (await subscribe(legacy, TODAY))["error"]["code"] == 403
    assert (await subscribe(legacy, PICTURE))["result"] == {}
    assert library.received == []


async def test_a_rule_that_comes_later_ends_it(
    agent: Agent, library: Library, rule: AddRule
) -> None:
    async with AsyncExitStack() as on:
        heard = await listening(agent, on, {"resourceSubscriptions": [TODAY, PICTURE]})
        await following(heard)
        await until_watched(library, PICTURE, TODAY)
        await rule(Effect.DENY, "resources/read", when=f'args.uri == "{TODAY}"')
        library.update(TODAY)
        library.update(PICTURE)
        assert (await following(heard))["params"]["uri"] == PICTURE


@contextmanager
def unknowable(databases: Databases) -> Iterator[None]:
    """Whether anything changed that decides on what agents may do."""
    with databases.superuser(os.environ) as link:
        link.execute(f"REVOKE SELECT ON core_generation FROM {APP}")
        try:
            yield
        finally:
            link.execute(f"GRANT SELECT ON core_generation TO {APP}")


@pytest.mark.long
async def test_what_cannot_be_checked_now_is_told_once_it_can(
    play: Play, own_stack: Stack, library: Library, databases: Databases
) -> None:
    assert own_stack.agents
    agent = play(at_stack=own_stack)
    async with AsyncExitStack() as on:
        heard = await listening(agent, on, {"resourceSubscriptions": [TODAY]})
        await following(heard)
        await until_watched(library, TODAY)

        async def refused() -> bool:
            return (await agent.post(PING)).status == 503

        async def said() -> bool:
            return library.said == [TODAY] and await refused()

        with unknowable(databases):
            await until(refused)
            library.update(TODAY)
            await until(said)
        assert (await following(heard))["params"]["uri"] == TODAY
        library.update(TODAY)
        assert (await following(heard))["params"]["uri"] == TODAY


@pytest.mark.long
async def test_a_server_that_tells_of_nothing_is_not_asked(
    play: Play, library: Library, toolset: Toolset, upstream: Recorder, bob: User
) -> None:
    library.discovered = declaring({"tools": {}, "resources": {}})
    await discovery.look_at([(await Server.objects.aget(slug="lib")).pk])
    legacy = play(LEGACY[0])

    async def known() -> bool:
        return "error" in await subscribe(legacy, TODAY)

    await until(known)
    await server("two", toolset, library, by=bob)

    async def two() -> bool:
        # Now nobody can say whose it is.
        said = await subscribe(legacy, "else://where")
        return bool(said["error"]["code"] == -32002)

    await until(two)
    assert (await subscribe(play("2025-03-26", at="desk/lib"), TODAY))["error"]["code"] == -32602
    assert not [r for r in library.received if r.message["method"] == "subscriptions/listen"]
