"""`python -m benchmarks.add_server SLUG URL`: one more server for the suite's agent, all long."""

import asyncio
import sys

import django


def main(slug: str, url: str) -> None:
    from accounts.models import User
    from registry import services
    from registry.discovery import discovery
    from registry.models import Tool, Toolset, versioned

    bob, toolset = User.objects.get(username="bob"), Toolset.objects.get(slug="desk")
    server = services.register(slug, transport="http", url=url, owner=bob, by=bob, publish=True)
    services.add_server(toolset, server, by=bob)
    (found,) = asyncio.run(discovery.look_at([server.pk]))
    assert found.succeeded, found.summary
    for tool in Tool.objects.filter(server=server, state=Tool.State.NEW):
        # What was found red in its definition, someone answers for.
        services.publish(
            tool, difference=versioned.difference(tool), by=bob, reason="It is measured only."
        )
    Tool.objects.filter(server=server).update(mode=Tool.Mode.BACKGROUND)


if __name__ == "__main__":
    django.setup()
    main(*sys.argv[1:])
