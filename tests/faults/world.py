"""Sets up an agent, a server and its tools in the database of the environment, and says the token.

Run as a process of its own, because the tests' own Django looks at another database.
"""

import asyncio
import sys

import django


def main(url: str) -> str:
    from accounts import services as accounts
    from accounts.models import User
    from accounts.roles import ensure_roles
    from audit.services import SYSTEM
    from policies.models import Effect, Rule
    from policies.services import save_rule
    from registry import services
    from registry.discovery import discovery
    from registry.models import Tool

    ensure_roles()
    bob = User.objects.create_user("bob")
    scout = accounts.create_agent("scout", owner=bob, by=bob)
    toolset = services.create_toolset("desk", by=bob)
    server = services.register("up", transport="http", url=url, owner=bob, by=bob, publish=True)
    services.add_server(toolset, server, by=bob)
    services.assign(toolset, scout, by=bob)
    (found,) = asyncio.run(discovery.look_at([server.pk]))
    assert found.succeeded, found.summary
    Tool.objects.filter(name="later").update(mode=Tool.Mode.BACKGROUND)
    save_rule(Rule(name="allow all", effect=Effect.ALLOW), by=SYSTEM)
    return accounts.issue_token(scout, by=bob)


if __name__ == "__main__":
    django.setup()
    print(main(sys.argv[1]))  # noqa: T201
