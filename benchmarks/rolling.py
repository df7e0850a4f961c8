"""Calls while every process of an installation is restarted, one after the other.

python -m benchmarks.rolling                     five times under 50 calls a second
python -m benchmarks.rolling --times 1 --rate 10

One call in ten runs on a worker for half a second, one in a hundred for 18 s. Each call's agent
hears of its end or is counted as broken; nobody tries again.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import psycopg

from config.embedded.valkey import free_port
from tests.config.up import ROOT, Up, bare_environment
from tests.faults.clients import told
from tests.gateway.agent import Agent

STATES = "SELECT state, count(*) FROM calls_call GROUP BY 1"
LIVE = "SELECT count(*) FROM calls_call WHERE state IN ('queued', 'running')"


@dataclass
class Seen:
    told: Counter[str] = field(default_factory=Counter)
    slowest_s: float = 0.0


@dataclass
class Site:
    """An installation under `up`, with an agent and the suite's mock server."""

    up: Up
    token: str

    def states(self) -> Counter[str]:
        url = json.loads((self.up.data / "owner.json").read_text())["DATABASE_OWNER_URL"]
        with psycopg.connect(url) as database:
            return Counter(dict(database.execute(STATES).fetchall()))

    async def restart(self) -> None:
        code, said = await run("manage.py", "restart", env=self._beside())
        assert code == 0, said

    def _beside(self) -> dict[str, str]:
        return bare_environment() | {"COUNTERSIGN_DATA": str(self.up.data)}

    async def furnish(self, mock: int) -> None:
        env = self._beside() | {"DJANGO_SETTINGS_MODULE": "config.settings"}
        env["COUNTERSIGN_UPSTREAM_NETWORKS"] = "127.0.0.0/8"
        url = f"http://127.0.0.1:{mock}/mcp"
        code, said = await run("-m", "tests.faults.furniture", url, env=env)
        assert code == 0, said
        self.token = json.loads(said.splitlines()[-1])["token"]


async def run(*argv: str, env: dict[str, str]) -> tuple[int | None, str]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        sys.executable, *argv, cwd=ROOT, env=env, stdout=pipe, stderr=pipe
    )
    output, errors = await process.communicate()
    return process.returncode, (output + errors if process.returncode else output).decode()


@asynccontextmanager
async def site(folder: Path) -> AsyncIterator[Site]:
    port = free_port()
    mock = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.faults.mock", str(port), str(folder / "received.jsonl")),
        cwd=ROOT,
    )
    up = Up(folder / "data")
    try:
        await asyncio.to_thread(up.start)
        made = Site(up, "")
        await made.furnish(port)
        yield made
    finally:
        await asyncio.to_thread(up.__exit__)
        mock.kill()
        await mock.wait()


async def load(site: Site, rate: float, enough: asyncio.Event, *, longest_ms: int) -> Seen:
    """So many calls a second until it is enough, on connections that are kept."""
    seen, calls = Seen(), set()
    connector = aiohttp.TCPConnector(limit=0)
    timeout = aiohttp.ClientTimeout(total=60)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as http:
        agent = Agent(http, f"http://127.0.0.1:{site.up.agent_port}/mcp/desk", site.token)
        number = 0
        while not enough.is_set():
            calls.add(asyncio.create_task(_one(agent, number, seen, longest_ms)))
            number += 1
            with suppress(TimeoutError):
                await asyncio.wait_for(enough.wait(), 1 / rate)
        await asyncio.gather(*calls)
    return seen


async def _one(agent: Agent, number: int, seen: Seen, longest_ms: int) -> None:
    tool, ms = "now", 20
    if number % 10 == 5:
        tool, ms = "later", longest_ms if number % 100 == 5 else 500
    began = time.monotonic()
    try:
        outcome = told(await agent.call(f"up.{tool}", {"nonce": str(number), "ms": ms}))
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        outcome = {"told": f"broken: {type(error).__name__}"}
    seen.told[outcome["told"]] += 1
    if ms != longest_ms:
        seen.slowest_s = max(seen.slowest_s, time.monotonic() - began)


async def roll(
    folder: Path, *, times: int, rate: float, pause_s: float, longest_ms: int = 18_000
) -> tuple[Seen, Counter[str]]:
    """What agents were told, and what the record says."""
    async with site(folder) as here:
        enough = asyncio.Event()
        loading = asyncio.create_task(load(here, rate, enough, longest_ms=longest_ms))
        for _ in range(times):
            await asyncio.sleep(pause_s)
            await here.restart()
        enough.set()
        seen = await loading
        return seen, await asyncio.to_thread(here.states)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--rate", type=float, default=50)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="countersign-rolling-", dir="/tmp") as name:
        Path(name).chmod(0o755)
        began = time.monotonic()
        seen, states = asyncio.run(
            roll(Path(name), times=options.times, rate=options.rate, pause_s=2)
        )
    took = time.monotonic() - began
    print(f"{options.times} restarts of everything at {options.rate:g} calls/s, {took:.0f} s")
    print(f"told: {dict(seen.told)}; record: {dict(states)}")
    print(f"slowest of the short calls: {seen.slowest_s:.2f} s")


if __name__ == "__main__":
    main()
