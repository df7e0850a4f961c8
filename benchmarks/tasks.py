"""How much longer a server's task takes through Countersign than directly, client by client.

python -m benchmarks.tasks [--rounds 5]     tasks of a second (of Server Everything: of four)

Both runs take turns, so that a busy machine weighs on both.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections.abc import Iterable
from pathlib import Path
from statistics import median

from benchmarks.house import House, house
from tests.flows.servers import Server
from tests.flows.task_programs import CLIENTS, SERVERS, Json, following, running_servers
from tests.processes import HOST

# What does not understand each other directly: FastMCP's client sends no Mcp-Name with tasks/get.
SILENT = {("fastmcp", "typescript-2")}
PAIRS = [
    (client, slug)
    for client, (_argv, revision) in CLIENTS.items()
    for slug, server in SERVERS.items()
    if server.revision == revision and (client, slug) not in SILENT
]


def furnish(servers: Iterable[Server]) -> None:
    from accounts.models import User
    from registry import services as registry
    from registry.discovery import discovery
    from registry.models import Toolset

    bob, toolset = User.objects.get(username="bob"), Toolset.objects.get(slug="desk")
    rows = [
        registry.register(it.slug, transport="http", url=it.url, owner=bob, by=bob, publish=True)
        for it in servers
    ]
    for row in rows:
        registry.add_server(toolset, row, by=bob)
    for found in asyncio.run(discovery.look_at([row.pk for row in rows])):
        assert found.succeeded, found.summary


def asked(slug: str, number: int) -> tuple[str, Json]:
    """Of a second, and no two the same."""
    tool, arguments = SERVERS[slug].asked("steps", number)
    if "seconds" in arguments:
        arguments = {**arguments, "seconds": 1 + number / 1000}
    return tool, arguments


async def seconds(client: str, url: str, token: str, tool: str, arguments: Json) -> float:
    async with following(client, url, token, tool, arguments) as follower:
        end = await follower.until("ended")
    assert end["status"] == "completed", end
    return float(end["seconds"])


async def compare(it: House, directly: dict[str, Server], rounds: int) -> None:
    number = 0
    for client, slug in PAIRS:
        ours = f"http://{HOST}:{it.agents_port}/mcp/desk/{slug}"
        direct, through = [], []
        # The first through us also greets the server.
        for turn in range(rounds + 1):
            number += 1
            tool, arguments = asked(slug, number)
            one = await seconds(client, directly[slug].url, "", tool, arguments)
            other = await seconds(client, ours, it.token, tool, arguments)
            if turn:
                direct.append(one)
                through.append(other)
        before, after = median(direct), median(through)
        say(
            f"{client} at {slug}: {before:.2f} s directly, {after:.2f} s through Countersign, "
            f"{after - before:+.2f} s"
        )


def say(line: str) -> None:
    print(line, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="countersign-tasks-", dir="/tmp") as folder:
        data = Path(folder)
        data.chmod(0o711)
        # Two of each: one of Python's SDK 1.x takes no more tasks once any of its sessions ended.
        ours, theirs = data / "ours", data / "theirs"
        ours.mkdir()
        theirs.mkdir()
        with (
            house(data / "var") as it,
            running_servers(ours) as servers,
            running_servers(theirs) as directly,
        ):
            furnish(servers.values())
            assert it.stack
            assert it.stack.worker
            asyncio.run(compare(it, directly, given.rounds))


if __name__ == "__main__":
    main()
