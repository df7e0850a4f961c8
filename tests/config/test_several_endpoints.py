"""`up --agents 2`: two agents' endpoints on one port, for each of which the other one goes on."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import aiohttp
import psutil
import pytest
from django.core.management.base import CommandError

from benchmarks.rolling import run
from config.embedded.service import CannotStart
from config.installation import Plan, connections_for, require_probes
from config.management.commands.up import AGENTS_MAX, Command
from config.probes import AGENTS_PLACE
from tests.config.crossing import cancellations_arrive, listeners_hear, streams_go_on
from tests.config.test_probes import answer, ports_in_a_row
from tests.faults.clients import BROKEN
from tests.faults.test_restore import Scene, beside, scene, until
from tests.gateway.agent import Agent

TOKEN = "figures"
ROUNDS = 40
STATES = "SELECT convert_from(arguments, 'UTF8')::json->>'nonce', state FROM calls_call"


@pytest.fixture
def folder() -> Iterator[Path]:
    """pytest's directories are for their owner only; PostgreSQL may run as somebody else."""
    with TemporaryDirectory(prefix="countersign-endpoints-") as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


class Site:
    """Two endpoints, of which each has its figures at a port of its own."""

    def __init__(self, here: Scene, first_port: int) -> None:
        self.here, self.ports = here, [first_port + AGENTS_PLACE + n for n in range(2)]
        self.url = f"http://127.0.0.1:{here.up.agent_port}/mcp/desk"
        # Each request has a connection of its own, which either endpoint takes.
        self.http = aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True))

    def process(self, number: int) -> psutil.Process:
        words = ["--number", str(number)]
        return next(
            child
            for child in self.here.up.own()
            if "config.agents" in child.cmdline() and child.cmdline()[-4:-2] == words
        )

    def submitted(self, number: int) -> float:
        """Calls that reached this endpoint."""
        _status, text = answer(self.ports[number - 1], "/metrics", Authorization=f"Bearer {TOKEN}")
        wanted = 'countersign_stage_seconds_count{stage="submit"}'
        found = (line for line in text.splitlines() if line.startswith(wanted))
        return sum(float(line.split()[-1]) for line in found)

    def agent(self, revision: str = "2026-07-28", **capabilities: Any) -> Agent:
        return Agent(self.http, self.url, self.here.token, revision, capabilities)

    async def approve(self, call_id: str) -> None:
        await self.here.approve(call_id)

    async def elsewhere(self, program: str) -> None:
        known = beside(self.here.up.data) | {"DJANGO_SETTINGS_MODULE": "config.settings"}
        code, said = await run("-c", program, env=known)
        assert code == 0, said

    @property
    def received(self) -> Counter[str]:
        return self.here.received

    async def agents(self, number: int, revision: str = "2026-07-28") -> list[Agent]:
        """So many clients, each with connections of its own."""
        https = [aiohttp.ClientSession() for _ in range(number)]
        return [Agent(http, self.url, self.here.token, revision) for http in https]


@pytest.mark.alone
@pytest.mark.long
async def test_two_endpoints_share_a_port_and_each_goes_on_for_the_other(folder: Path) -> None:
    first = ports_in_a_row(5)
    env = {"COUNTERSIGN_METRICS_TOKEN": TOKEN, "COUNTERSIGN_PROBES": f"127.0.0.1:{first}"}
    env["COUNTERSIGN_AGENT_LIMIT"] = "32"
    async with scene(folder, "--agents", "2", **env) as here:
        site = Site(here, first)
        async with site.http:
            await until(lambda: [answer(port, "/readyz")[0] for port in site.ports] == [200, 200])
            await both_take_calls_of_one_session(site)
            # At the common port another process would answer each time.
            at_both = answer(here.up.agent_port, "/metrics", Authorization=f"Bearer {TOKEN}")
            assert at_both[0] == 404
            await listeners_hear(site)
            await cancellations_arrive(site)
            await streams_go_on(site, lambda: site.process(1).kill())
            await until(lambda: answer(site.ports[0], "/readyz")[0] == 200)
            await one_is_killed_and_the_other_goes_on(site)
            await each_makes_way_for_another(site)
        assert max(here.received.values()) == 1


async def both_take_calls_of_one_session(site: Site) -> None:
    first, *others = await site.agents(ROUNDS, "2025-11-25")
    await first.begin()
    for other in others:
        other.session = first.session
    replies = [
        await agent.call("up.now", {"nonce": f"both {n}", "ms": 0})
        for n, agent in enumerate([first, *others])
    ]
    assert {reply.status for reply in replies} == {200}, replies[-1].body
    counts = [await asyncio.to_thread(site.submitted, number) for number in (1, 2)]
    assert sum(counts) == ROUNDS
    assert min(counts) > 0
    await close([first, *others])


async def close(agents: list[Agent]) -> None:
    for agent in agents:
        await agent.http.close()


async def one_is_killed_and_the_other_goes_on(site: Site) -> None:
    """Each call that was answered is in the record, and whoever asks meanwhile is answered."""
    agents, answered = await site.agents(64), set[str]()

    async def ask(n: int) -> None:
        with suppress(*BROKEN):
            reply = await agents[n].call("up.now", {"nonce": f"killed {n}", "ms": 5})
            if reply.status == 200 and not reply.result.get("isError"):
                answered.add(f"killed {n}")

    asked = [asyncio.create_task(ask(n)) for n in range(64)]
    await until(lambda: bool(answered))
    gone = site.process(2)
    gone.kill()
    await asyncio.gather(*asked)
    # New ones: a client may notice only with its next request that its connection was lost.
    others = await site.agents(64)
    replies = [
        await agent.call("up.now", {"nonce": f"after {n}"}) for n, agent in enumerate(others)
    ]
    assert {reply.status for reply in replies} == {200}
    states = dict(site.here.read(STATES))
    assert {states[nonce] for nonce in answered} == {"succeeded"}
    await until(lambda: "ended by itself (SIGKILL)" in site.here.up.text())
    await until(lambda: answer(site.ports[1], "/readyz")[0] == 200)
    assert site.process(2).pid != gone.pid
    await close([*agents, *others])


async def each_makes_way_for_another(site: Site) -> None:
    before = {site.process(number).pid for number in (1, 2)}

    assert "Every process was restarted." in await site.here.manage("restart")

    after = {site.process(number).pid for number in (1, 2)}
    assert len(after) == 2
    assert not after & before
    reply = await site.here.agent.call("up.now", {"nonce": "restarted"})
    assert reply.status == 200


@pytest.mark.parametrize("given", ["0", "-1", str(AGENTS_MAX + 1)])
def test_a_number_out_of_range_is_named(given: str) -> None:
    parser = Command().create_parser("manage.py", "up")
    with pytest.raises(CommandError, match=f"--agents: from 1 to {AGENTS_MAX}"):
        parser.parse_args([f"--agents={given}"])


def plan(agents: int) -> Plan:
    return Plan("127.0.0.1", 8000, 8001, Path("var"), examples=False, agents=agents)


def test_figures_that_could_not_be_told_apart_stop_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COUNTERSIGN_METRICS_TOKEN", TOKEN)
    monkeypatch.delenv("COUNTERSIGN_PROBES", raising=False)
    require_probes(plan(1))
    with pytest.raises(CannotStart, match="--agents needs COUNTERSIGN_PROBES"):
        require_probes(plan(2))

    monkeypatch.setenv("COUNTERSIGN_PROBES", "127.0.0.1:9100")
    require_probes(plan(2))


def test_the_embedded_database_takes_the_connections_of_each() -> None:
    assert connections_for(1) == {}
    assert connections_for(3) == {"max_connections": "140"}
    assert plan(3).endpoints == ["agents-1", "agents-2", "agents-3"]
    assert plan(1).endpoints == ["agents"]
