"""Somebody leaves: one PATCH of their identity provider, and what they had is refused everywhere.

Two gateways and two consoles are processes of their own. With --log-cli-level=INFO it tells how
long each kind of access was still taken after the PATCH was answered. The seven kinds: session,
vote, standing approval, agent's token, service account's token, pending and running call. Their
credentials at servers: test_server_sign_in.py.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import aiohttp
import pytest
from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.auth.models import Group
from django.test import Client

from accounts import service_accounts
from accounts import services as accounts
from accounts.models import Identity, User
from accounts.oidc.providers import provider_of
from accounts.roles import Role
from accounts.scim import tokens
from approvals import eligibility
from approvals import services as approvals
from approvals.bounds import Bound
from approvals.models import Approval, Grant
from approvals.standing_approvals import Terms, make
from audit.models import Entry
from calls.models import Call
from calls.record.states import State
from policies.models import Effect
from registry import services
from registry.models import Toolset
from tests.accounts.scim import PATCH
from tests.conftest import person
from tests.gateway.agent import Agent
from tests.gateway.conftest import AddRule, Play, until
from tests.processes import Stack
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)

log = logging.getLogger(__name__)

ISSUER = "https://id.example.org"
# From then on nothing is taken, on any process.
WITHIN_S = 1.0
PROVIDERS = f'[providers.company]\nissuer = "{ISSUER}"\nclient_id = "c"\nscim_external_id = "sub"\n'


class Clock:
    """Asks for a thing again and again until it is refused."""

    def __init__(self) -> None:
        self.began = time.monotonic()

    async def refused(self, what: str, is_taken: Callable[[], Awaitable[bool]]) -> None:
        taken_at = 0.0

        async def is_refused() -> bool:
            nonlocal taken_at
            asked_at = time.monotonic() - self.began
            if not await is_taken():
                return True
            taken_at = asked_at
            return False

        await until(is_refused)
        log.info("%s: taken until %.3f s after the PATCH", what, taken_at)
        assert taken_at < WITHIN_S, what


@sync_to_async
def furnish(bob: User, toolset: Toolset) -> tuple[str, str]:
    """bob is of the provider, and an approver; the tokens of the provider and of carol's agent."""
    bob.groups.add(Group.objects.get(name=Role.APPROVER))
    Identity.objects.create(person=bob, issuer=ISSUER, subject="bob")
    ada, carol = person("ada", Role.ADMINISTRATOR), person("carol", Role.VIEWER)
    other = accounts.create_agent("other", owner=carol, by=carol)
    services.assign(toolset, other, by=carol)
    provider = provider_of(ISSUER)
    return tokens.issue(provider, by=ada, days=1)[1], accounts.issue_token(other, by=carol)


@sync_to_async
def service_token(by: User) -> str:
    """Of a program that reads by what this person may."""
    scopes = ["registry.view_server"]
    robot = service_accounts.create("robot", purpose="Reports", scopes=scopes, by=by)
    return service_accounts.issue_token(robot, by=by)


def session_of(who: User) -> dict[str, str]:
    client = Client()
    client.force_login(who)
    name = settings.SESSION_COOKIE_NAME
    return {"Cookie": f"{name}={client.cookies[name].value}"}


@sync_to_async
def vote(call_id: UUID, by: User) -> None:
    approval = Approval.objects.for_queue().get(pk=call_id)
    approvals.vote(approval, by=by, approve=True, seen_digest=approval.call.call_digest)


@sync_to_async
def grant_like(call_id: UUID, by: User) -> Grant:
    bound = Bound(("text",), "prefix", prefix="hello ")
    return make(Call.objects.for_page().get(pk=call_id), Terms(bounds=(bound,)), by=by)


async def held(agent: Agent, tool: str, text: str) -> UUID:
    call_id = UUID((await agent.call(tool, {"text": text})).call_id)
    told = Approval.objects.filter(pk=call_id, call__start_after=None)
    await until(told.aexists)
    return call_id


async def provisioned(http: aiohttp.ClientSession, scim: str, token: str) -> str:
    said = {"userName": "bob@example.org", "externalId": "bob"}
    headers = {"Authorization": f"Bearer {token}"}
    async with http.post(f"{scim}/Users", json=said, headers=headers) as answer:
        assert answer.status == 201, await answer.text()
        return str((await answer.json(content_type=None))["id"])


async def leave(http: aiohttp.ClientSession, scim: str, token: str, user: str) -> None:
    off = {"op": "replace", "path": "active", "value": False}
    headers = {"Authorization": f"Bearer {token}"}
    body = {"schemas": [PATCH], "Operations": [off]}
    async with http.patch(f"{scim}/Users/{user}", json=body, headers=headers) as answer:
        assert answer.status == 200, await answer.text()


@pytest.mark.long
async def test_one_patch_ends_seven_kinds_of_access(
    play: Play,
    rule: AddRule,
    stack: Stack,
    own_stack: Stack,
    http: aiohttp.ClientSession,
    upstream: Recorder,
    toolset: Toolset,
    bob: User,
    alice: User,
    tmp_path: Path,
    settings: Any,
) -> None:
    settings.OIDC_FILE = tmp_path / "oidc.toml"
    settings.OIDC_FILE.write_text(PROVIDERS)
    own_stack.env["COUNTERSIGN_OIDC_FILE"] = str(settings.OIDC_FILE)
    assert own_stack.web
    assert stack.web
    assert own_stack.agents
    provider_token, other_token = await furnish(bob, toolset)
    await rule(Effect.ASK, "echo")
    await rule(Effect.ASK, "say", thresholds=[{"from": "", "approve": 2, "deny": 1}])
    gateways = (stack, own_stack)
    theirs = [play(at_stack=one) for one in gateways]
    others = [play(at_stack=one, token=other_token) for one in gateways]
    console, scim = own_stack.web_url, f"{own_stack.web_url}/scim/v2"
    bobs, alices = await sync_to_async(session_of)(bob), await sync_to_async(session_of)(alice)

    # What bob has: a vote, a standing approval, and of his agent a pending and a running call.
    robots = await service_token(bob)
    first = await held(others[0], "rec.echo", "hello ana")
    await vote(first, bob)
    grant = await grant_like(first, bob)
    voted = await held(others[0], "rec.say", "voted on")
    await vote(voted, bob)
    pending = await held(theirs[1], "rec.say", "pending")
    running = asyncio.create_task(theirs[0].call("rec.hang"))
    await until(lambda: Call.objects.filter(state=State.RUNNING).aexists())

    def session_opens(at: str) -> Callable[[], Awaitable[bool]]:
        async def opens() -> bool:
            address = f"{at}/profile/"
            async with http.get(address, headers=bobs, allow_redirects=False) as answer:
                return answer.status == 200

        return opens

    def service_token_opens(at: str) -> Callable[[], Awaitable[bool]]:
        async def opens() -> bool:
            headers = {"Authorization": f"Bearer {robots}"}
            async with http.get(f"{at}/api/v1/me", headers=headers) as answer:
                return answer.status == 200

        return opens

    async def vote_counts() -> bool:
        facts = await sync_to_async(eligibility.facts)([voted])
        return bool(facts[voted].tally)

    async def call_is_pending() -> bool:
        return bool((await Call.objects.aget(pk=pending)).state == State.HELD)

    def standing_approval_runs(agent: Agent) -> Callable[[], Awaitable[bool]]:
        async def runs() -> bool:
            reply = await agent.call("rec.echo", {"text": f"hello {time.monotonic()}"})
            return bool(reply.result["resultType"] == "complete")

        return runs

    def token_opens(agent: Agent) -> Callable[[], Awaitable[bool]]:
        async def opens() -> bool:
            return (await agent.ask("tools/list")).status == 200

        return opens

    async def rest_opens() -> bool:
        headers = {"Authorization": f"Bearer {theirs[0].token}"}
        async with http.get(f"{console}/api/tools", headers=headers) as answer:
            return answer.status == 200

    async def call_goes_on() -> bool:
        return not await Call.objects.filter(cancel_asked_at__isnull=False).aexists()

    async def is_gone() -> bool:
        return upstream.gone == 1

    async def call_ends(clock: Clock) -> None:
        await until(is_gone)
        log.info("running call: ended %.3f s after the PATCH", time.monotonic() - clock.began)

    checks: dict[str, Callable[[], Awaitable[bool]]] = {
        "session, first console": session_opens(stack.web_url),
        "session, second console": session_opens(console),
        "service account's token, first console": service_token_opens(stack.web_url),
        "service account's token, second console": service_token_opens(console),
        "vote": vote_counts,
        "pending call": call_is_pending,
        "standing approval, first gateway": standing_approval_runs(others[0]),
        "standing approval, second gateway": standing_approval_runs(others[1]),
        "token, first gateway": token_opens(theirs[0]),
        "token, second gateway": token_opens(theirs[1]),
        "token, console": rest_opens,
        "running call": call_goes_on,
    }
    user = await provisioned(http, scim, provider_token)
    for what, is_taken in checks.items():
        assert await is_taken(), what

    await leave(http, scim, provider_token, user)

    clock = Clock()
    async with asyncio.TaskGroup() as group:
        for what, is_taken in checks.items():
            group.create_task(clock.refused(what, is_taken))
        group.create_task(call_ends(clock))
    await running
    (entry,) = [one async for one in Entry.objects.filter(action="call.cancel_asked")]
    assert entry.actor.startswith("company, SCIM token")
    async with http.get(f"{console}/calls/{entry.call_id}/", headers=alices) as page:
        text = await page.text()
        assert "Cancellation asked" in text
        assert "company, SCIM token" in text
    # Others' words on what is left of his go nowhere, and his own on theirs is missing.
    with pytest.raises(approvals.DecisionRefused):
        await vote(pending, alice)
    await vote(voted, alice)
    assert (await Call.objects.aget(pk=voted)).state == State.HELD
    await grant.arefresh_from_db()
    assert grant.revoked_at is not None
