"""A Countersign with a toolset that scout may use, filled once for a whole module of tests.

Filling takes seconds, since servers are asked what they offer. So these rows outlive a test; tests
that share them leave them as they are and keep apart by the arguments of their calls.
"""

import asyncio
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings

from accounts import services as accounts
from accounts.models import Agent, User
from accounts.roles import Role
from approvals.models import Approval
from approvals.services import vote
from audit.services import SYSTEM
from policies.models import Effect, Rule
from policies.services import save_rule
from registry import services
from registry.discovery import discovery
from tests.conftest import person
from tests.flows.servers import Server
from tests.processes import Stack
from tests.publishing import publish_what_is_found

TOOLSET = "default"


@dataclass(frozen=True)
class House:
    stack: Stack
    alice: User
    scout: Agent
    token: str

    def url(self, server: str = "") -> str:
        """Of all servers at once, with prefixed names, or of one."""
        return "/".join(filter(None, [self.stack.agents_url, "mcp", TOOLSET, server]))


def open_house(stack: Stack, servers: Iterable[Server]) -> House:
    assert stack.agents
    alice, bob = person("alice", Role.APPROVER), person("bob", Role.VIEWER)
    scout = accounts.create_agent("scout", owner=bob, by=bob)
    toolset = services.create_toolset(TOOLSET, by=bob)
    services.assign(toolset, scout, by=bob)
    rows = [
        services.register(
            server.slug,
            transport=server.transport,
            url=server.url,
            command="" if server.url else server.slug,
            owner=bob,
            by=bob,
            publish=True,
        )
        for server in servers
    ]
    for row in rows:
        services.add_server(toolset, row, by=bob)
    for look in asyncio.run(discovery.look_at([row.pk for row in rows])):
        assert look.succeeded, f"{look.server.slug}: {look.summary}"
    publish_what_is_found(by=bob)
    return House(stack, alice, scout, accounts.issue_token(scout, by=bob))


def rule(effect: Effect, tool: str, *, position: int) -> None:
    row = Rule(name=f"{effect} {tool}", effect=effect, tool=tool, position=position)
    save_rule(row, by=SYSTEM)


def decide(call_id: UUID, *, by: User, approve: bool, reason: str = "") -> None:
    """What a person's button does."""
    approval = Approval.objects.for_queue().get(call=call_id)
    digest = approval.call.call_digest
    vote(approval, by=by, approve=approve, seen_digest=digest, reason=reason)


@contextmanager
def commands(servers: Iterable[Server]) -> Iterator[None]:
    """The host's administrator lets these be started."""
    path = settings.STDIO_CATALOGUE
    before = path.read_bytes() if path.exists() else None
    listed = {server.slug: {"argv": server.argv} for server in servers if server.argv}
    path.write_text(json.dumps(listed))
    try:
        yield
    finally:
        if before is None:
            path.unlink()
        else:
            path.write_bytes(before)
