"""The page on which a user signs in at a server, or allows it more, wherever a call ends for want
of it: a prompt, a task, and a call that people approved."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from accounts.models import User
from audit.models import Entry
from calls.record.states import Executed, State
from policies.models import Effect
from registry import services
from registry.discovery import discovery
from registry.models import Server, ServerCredential, Toolset
from tests.gateway.agent import LEGACY, TASKS, URLS, Agent, Reply
from tests.gateway.conftest import AddRule, Play, decide, the_call, until
from tests.processes import Stack
from tests.signing_in import connect, set_up
from tests.upstreams.guarded import Guarded
from tests.upstreams.library import Library
from tests.upstreams.recorder import TOOLS

pytestmark = pytest.mark.django_db(transaction=True)

PAGE_NEEDED = -32042


@dataclass
class GuardedLibrary(Guarded, Library):
    """Has prompts besides tools, for those with an access token."""


@pytest.fixture
def acme(toolset: Toolset, bob: User) -> Iterator[GuardedLibrary]:
    """Of bob's toolset, with prompts; he is signed in, and erasing needs a scope that he lacks."""
    with GuardedLibrary() as guarded:
        guarded.reset()
        guarded.tools = TOOLS
        server = services.register(
            "acme", transport="http", url=guarded.url, owner=bob, by=bob, publish=True
        )
        services.add_server(toolset, server, by=bob)
        set_up(server, Server.SignIn.PERSON, by=bob)
        connect(bob, "acme")
        (found,) = asyncio.run(discovery.look_at([server.pk]))
        assert found.succeeded, found.summary
        guarded.needs = {"review": "review", "echo": "echo"}
        yield guarded


def allow_more(reply: Reply) -> str:
    """Bob does as the page says, and the client goes on; the result is its key."""
    ((key, asked),) = reply.result["inputRequests"].items()
    assert "/connections/acme/" in asked["params"]["url"]
    connect(User.objects.get(username="bob"), "acme")
    return str(key)


async def test_a_prompt_is_gone_on_with_after_more_was_allowed(
    play: Play, acme: GuardedLibrary
) -> None:
    agent = play(capabilities=URLS)
    wanted = {"name": "acme.review", "arguments": {"text": "x"}}

    first = await agent.ask("prompts/get", wanted)
    assert (first.result["resultType"], acme.asked) == ("input_required", [])
    key = await sync_to_async(allow_more)(first)
    again = {**wanted, "inputResponses": {key: {"action": "accept"}}}

    assert "messages" in (await agent.ask("prompts/get", again)).result
    assert len(acme.asked) == 1


async def test_a_client_of_2025_11_25_gets_the_page_of_a_prompt_as_error(
    play: Play, acme: GuardedLibrary
) -> None:
    agent = play(LEGACY[0], capabilities=URLS)

    reply = await agent.ask("prompts/get", {"name": "acme.review", "arguments": {"text": "x"}})

    assert reply.error["code"] == PAGE_NEEDED
    assert "/connections/acme/" in reply.error["data"]["elicitations"][0]["url"]


async def test_a_task_for_which_nobody_signed_in_is_answered_with_the_page(
    play: Play, acme: GuardedLibrary
) -> None:
    await ServerCredential.objects.all().adelete()
    wanted: dict[str, Any] = {"name": "acme.echo", "arguments": {"text": "x"}, "task": {}}

    reply = await play(LEGACY[0], capabilities=URLS).ask("tools/call", wanted)
    without = await play(LEGACY[0]).ask("tools/call", wanted)

    assert reply.error["code"] == PAGE_NEEDED
    # One that opens no pages reads where its user has to go.
    assert "/connections/acme/" in without.result["task"]["statusMessage"]


@pytest.mark.long
async def test_a_task_whose_server_asks_for_more_ends_with_the_page(
    play: Play, acme: GuardedLibrary, stack: Stack
) -> None:
    assert stack.worker
    agent = play(LEGACY[0], capabilities=URLS)
    wanted = {"name": "acme.echo", "arguments": {"text": "x"}, "task": {}}

    task = (await agent.ask("tools/call", wanted)).result["task"]["taskId"]
    ended = await agent.ask("tasks/result", {"taskId": task})

    assert ended.error["code"] == PAGE_NEEDED


@pytest.mark.long
async def test_an_approved_call_goes_on_with_its_approval_once_more_was_allowed(
    play: Play, acme: GuardedLibrary, stack: Stack, rule: AddRule, alice: User
) -> None:
    assert stack.worker
    await rule(Effect.ASK, "echo")
    agent = play(capabilities=URLS)
    first = await _approved(agent, alice, {"text": "x"})
    ((_key, asked),) = first.result["inputRequests"].items()
    assert "“acme” asks for “echo”: bob has to allow it at" in asked["params"]["message"]
    call = await the_call()
    assert (call.state, call.executed, acme.callers) == (State.QUEUED, Executed.NO, [])
    digest = call.call_digest

    key = await sync_to_async(allow_more)(first)
    state = {"requestState": first.result["requestState"]}
    more = {"inputResponses": {key: {"action": "accept"}}}
    again = await agent.call("acme.echo", {"text": "x"}, **state, **more)

    assert again.text == "x"
    # One call, one approval, sent once as it was approved.
    assert acme.callers == [("bob", "echo")]
    call = await the_call()
    assert (call.state, call.call_digest, call.fence) == (State.SUCCEEDED, digest, 2)
    assert await Entry.objects.filter(action="approval.voted").acount() == 1
    # What its server turned away and what it took are entries each.
    assert acme.lacking == 1
    states = Entry.objects.filter(call_id=call.pk, to_state__gt="").order_by("id")
    assert [one async for one in states.values_list("to_state", flat=True)][-4:] == [
        State.RUNNING,
        State.QUEUED,
        State.RUNNING,
        State.SUCCEEDED,
    ]


@pytest.mark.long
async def test_an_approved_call_whose_server_asks_for_more_twice_is_not_sent_a_third_time(
    play: Play, acme: GuardedLibrary, stack: Stack, rule: AddRule, alice: User
) -> None:
    """The server had all of it twice: only its word says that it did nothing."""
    assert stack.worker
    await rule(Effect.ASK, "echo")
    agent = play(capabilities=URLS)
    first = await _approved(agent, alice, {"text": "x"})

    acme.needs = {"echo": "another"}
    await sync_to_async(allow_more)(first)

    async def is_over() -> bool:
        return (await the_call()).state == State.FAILED

    await until(is_over)
    call = await the_call()
    assert (call.executed, call.fence, acme.lacking) == (Executed.REPORTED, 2, 2)
    assert "asks for “another”" in call.outcome


@pytest.mark.long
async def test_what_changed_while_a_user_consents_is_not_sent_by_the_approval_of_before(
    play: Play, acme: GuardedLibrary, stack: Stack, rule: AddRule, alice: User
) -> None:
    """The server is moved to another address in the meantime."""
    assert stack.worker
    await rule(Effect.ASK, "echo")
    agent = play(capabilities=URLS)
    first = await _approved(agent, alice, {"text": "x"})
    assert "inputRequests" in first.result

    await Server.objects.filter(slug="acme").aupdate(wanted_revision="2025-11-25")
    await sync_to_async(allow_more)(first)

    async def is_over() -> bool:
        return (await the_call()).state == State.SUPERSEDED

    await until(is_over)
    assert acme.callers == []


@pytest.mark.long
async def test_an_approved_call_waits_for_no_consent_that_another_call_wants(
    play: Play, acme: GuardedLibrary, stack: Stack, rule: AddRule, alice: User
) -> None:
    assert stack.worker
    acme.needs = {"erase": "erase"}
    await play().call("acme.erase")
    row = await ServerCredential.objects.aget()
    assert row.wanted_scopes == ["erase"]
    await rule(Effect.ASK, "echo")

    assert (await _approved(play(capabilities=URLS), alice, {"text": "x"})).text == "x"


@pytest.mark.long
async def test_who_declines_reads_where_to_go_and_the_call_still_waits(
    play: Play, acme: GuardedLibrary, stack: Stack, rule: AddRule, alice: User
) -> None:
    assert stack.worker
    await rule(Effect.ASK, "echo")
    agent = play(capabilities=URLS)
    first = await _approved(agent, alice, {"text": "x"})
    (key,) = first.result["inputRequests"]
    state = {"requestState": first.result["requestState"]}
    more = {"inputResponses": {key: {"action": "decline"}}}

    reply = await agent.call("acme.echo", {"text": "x"}, **state, **more)

    assert "bob has to allow it at" in reply.text
    assert (await the_call()).state == State.QUEUED
    assert acme.callers == []


@pytest.mark.long
async def test_an_approved_call_whose_credential_is_gone_runs_once_its_user_signed_in(
    play: Play, acme: GuardedLibrary, stack: Stack, rule: AddRule, alice: User
) -> None:
    assert stack.worker
    acme.needs = {}
    await rule(Effect.ASK, "echo")
    agent = play(capabilities=URLS)
    waiting = await agent.call("acme.echo", {"text": "x"})
    await ServerCredential.objects.all().adelete()
    await decide(alice)
    call_id = waiting.result["_meta"]["countersign/call"]

    async def is_tried() -> bool:
        call = await the_call(call_id)
        return call.fence > 0 and call.state == State.QUEUED

    await until(is_tried)
    await sync_to_async(connect)(await User.objects.aget(username="bob"), "acme")
    state = {"requestState": waiting.result["requestState"]}
    more = {"inputResponses": {"countersign.sign_in.1": {"action": "accept"}}}

    assert (await agent.call("acme.echo", {"text": "x"}, **state, **more)).text == "x"


async def _approved(agent: Agent, by: User, arguments: dict[str, str], **more: Any) -> Reply:
    waiting = await agent.call("acme.echo", arguments, **more)
    await decide(by)
    return await agent.call("acme.echo", arguments, requestState=waiting.result["requestState"])


@pytest.mark.long
async def test_who_awaits_an_approved_call_is_asked_to_open_the_page(
    play: Play, acme: GuardedLibrary, stack: Stack, rule: AddRule, alice: User
) -> None:
    assert stack.worker
    await rule(Effect.ASK, "echo")
    agent = play(capabilities=URLS)
    waiting = await agent.call("acme.echo", {"text": "x"})
    await decide(alice)
    named = {"call_id": waiting.call_id}

    first = await agent.call("countersign_await_call", named)
    without = await play().call("countersign_await_call", named)
    key = await sync_to_async(allow_more)(first)
    more = {"inputResponses": {key: {"action": "accept"}}}
    again = await agent.call("countersign_await_call", named, **more)

    assert first.result["resultType"] == "input_required"
    assert first.call_id == waiting.call_id
    # One that opens no pages reads where its user has to go.
    assert "bob has to allow it at" in without.text
    assert again.text == "x"
    assert acme.callers == [("bob", "echo")]


@pytest.mark.long
async def test_who_declines_while_awaiting_reads_where_to_go(
    play: Play, acme: GuardedLibrary, stack: Stack, rule: AddRule, alice: User
) -> None:
    assert stack.worker
    await rule(Effect.ASK, "echo")
    agent = play(capabilities=URLS)
    waiting = await agent.call("acme.echo", {"text": "x"})
    await decide(alice)
    named = {"call_id": waiting.call_id}
    (key,) = (await agent.call("countersign_await_call", named)).result["inputRequests"]

    more = {"inputResponses": {key: {"action": "decline"}}}
    reply = await agent.call("countersign_await_call", named, **more)

    assert "bob has to allow it at" in reply.text
    assert ((await the_call()).state, acme.callers) == (State.QUEUED, [])


@pytest.mark.long
async def test_a_client_of_2025_11_25_that_awaits_gets_the_page_as_error(
    play: Play, acme: GuardedLibrary, stack: Stack, rule: AddRule, alice: User
) -> None:
    assert stack.worker
    await rule(Effect.ASK, "echo")
    agent = play(LEGACY[0], capabilities=URLS)
    asked = asyncio.create_task(agent.call("acme.echo", {"text": "x"}))
    await decide(alice)
    call_id = str((await the_call()).pk)
    asked.cancel()

    reply = await agent.call("countersign_await_call", {"call_id": call_id})

    assert reply.error["code"] == PAGE_NEEDED
    assert "/connections/acme/" in reply.error["data"]["elicitations"][0]["url"]


@pytest.mark.long
async def test_a_task_of_an_approved_call_asks_for_the_page_and_goes_on(
    play: Play, acme: GuardedLibrary, stack: Stack, rule: AddRule, alice: User
) -> None:
    assert stack.worker
    await rule(Effect.ASK, "echo")
    agent = play(capabilities={**TASKS, **URLS})
    made = (await agent.call("acme.echo", {"text": "x"})).result
    task = {"taskId": made["taskId"]}
    await decide(alice)

    async def status(name: str, by: Agent = agent) -> bool:
        return bool((await by.ask("tasks/get", task)).result["status"] == name)

    await until(partial(status, "input_required"))
    asking = await agent.ask("tasks/get", task)
    # Whose client opens no pages is told in words.
    plain = (await play(capabilities=TASKS).ask("tasks/get", task)).result
    assert plain["status"] == "working"
    assert "bob has to allow it at" in plain["statusMessage"]

    key = await sync_to_async(allow_more)(asking)
    responses = {key: {"action": "accept"}}
    acknowledged = await agent.ask("tasks/update", {**task, "inputResponses": responses})
    await until(partial(status, "completed"))
    ended = (await agent.ask("tasks/get", task)).result

    assert acknowledged.status == 200
    assert ended["result"]["content"][0]["text"] == "x"
    assert acme.callers == [("bob", "echo")]
