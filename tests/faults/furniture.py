"""An agent, its owner's session in the console, an approver's, and the servers' tools.

    python -m tests.faults.furniture URL [MISBEHAVING]

MISBEHAVING is where tests/upstreams/misbehaving.py listens; with it comes the command `pipe` too. A
process of its own, since the suite itself has no Django. Prints JSON.
"""

import asyncio
import json
import sys

import django

from tests.upstreams.cases import WAYS


def main(url: str, misbehaving: str = "") -> dict[str, str]:
    from django.contrib.auth.models import Group
    from django.test import Client

    from accounts import services as accounts
    from accounts.models import User
    from accounts.roles import Role, ensure_roles
    from audit.services import SYSTEM
    from policies.models import Effect, Rule
    from policies.services import save_rule
    from registry import services
    from registry.discovery import discovery
    from registry.models import Tool

    def session(person: User) -> str:
        client = Client()
        client.force_login(person)
        return client.cookies["sessionid"].value

    def add(slug: str, *, url: str = "", command: str = "") -> None:
        kind = "http" if url else "stdio"
        row = services.register(
            slug, transport=kind, url=url, command=command, owner=bob, by=bob, publish=True
        )
        services.add_server(toolset, row, by=bob)
        (found,) = asyncio.run(discovery.look_at([row.pk]))
        assert found.succeeded, found.summary

    ensure_roles()
    bob, alice = User.objects.create_user("bob"), User.objects.create_user("alice")
    bob.groups.add(Group.objects.get(name=Role.VIEWER))
    alice.groups.add(Group.objects.get(name=Role.APPROVER))
    scout = accounts.create_agent("scout", owner=bob, by=bob)
    toolset = services.create_toolset("desk", by=bob)
    services.assign(toolset, scout, by=bob)
    add("up", url=url)
    if misbehaving:
        for way in WAYS:
            add(way, url=f"{misbehaving}/{way}")
        add("pipe", command="pipe")
    Tool.objects.filter(name__in=("now", "do")).update(mode=Tool.Mode.INLINE)
    Tool.objects.exclude(name__in=("now", "do")).update(mode=Tool.Mode.BACKGROUND)
    # Some of their answers never come.
    Tool.objects.exclude(server__slug="up").update(timeout_s=2)
    # For the start of its process too.
    Tool.objects.filter(server__slug="pipe").update(timeout_s=6)
    Tool.objects.filter(name="safe").update(safe_to_repeat=True)
    save_rule(Rule(name="allow all", effect=Effect.ALLOW), by=SYSTEM)
    save_rule(Rule(name="ask", effect=Effect.ASK, tool="held"), by=SYSTEM)
    token = accounts.issue_token(scout, by=bob)
    return {"token": token, "bob": session(bob), "alice": session(alice)}


if __name__ == "__main__":
    django.setup()
    print(json.dumps(main(*sys.argv[1:])))  # noqa: T201
