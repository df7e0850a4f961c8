"""A backup made in the middle of forty calls, and put back once they are over: what the server
received before, it never receives again, whoever put it back and however."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp
import psycopg
import pytest

from benchmarks.rolling import run
from config import archive, pgtools
from config.embedded.valkey import free_port
from tests.config.up import ROOT, Up, bare_environment
from tests.faults.clients import Member
from tests.gateway.agent import TASKS, Agent

QUEUED, HELD, APPROVED = 28, 12, 6
# Four calls at a time, and whoever stands still for a while keeps what it has.
SLOW = {"COUNTERSIGN_AGENT_LIMIT": "4", "COUNTERSIGN_LEASE_S": "600"}
OPEN = "SELECT id FROM calls_call WHERE state IN ('held', 'approved', 'queued', 'running')"
STATES = "SELECT state, executed FROM calls_call"
UNSEALED = """
    SELECT id FROM audit_entry e
    WHERE NOT EXISTS (SELECT FROM audit_batch b WHERE b.ids @> e.id)
"""


@dataclass
class Scene:
    """An installation whose worker runs four calls at a time, and what its server received."""

    up: Up
    token: str
    alice: str
    http: aiohttp.ClientSession

    async def manage(self, *argv: str, code: int = 0) -> str:
        ended, said = await run("manage.py", *argv, env=beside(self.up.data))
        assert ended == code, (argv, said)
        return said

    @property
    def agent(self) -> Agent:
        url = f"http://127.0.0.1:{self.up.agent_port}/mcp/desk"
        return Agent(self.http, url, self.token, capabilities=TASKS)

    async def ask(self, tool: str, nonce: str, ms: int = 300) -> str:
        reply = await self.agent.call(f"up.{tool}", {"nonce": nonce, "ms": ms})
        assert reply.result["resultType"] == "task", reply.body
        return str(reply.call_id)

    async def approve(self, call_id: str) -> None:
        web = f"http://127.0.0.1:{self.up.port}"
        house: Any = SimpleNamespace(agents_url="", web_url=web, token=self.token, alice=self.alice)
        await Member(house, self.http)._decide(call_id, "approve")

    async def page(self, path: str) -> str:
        url = f"http://127.0.0.1:{self.up.port}{path}"
        async with self.http.get(url, headers={"Cookie": f"sessionid={self.alice}"}) as response:
            return await response.text()

    @property
    def received(self) -> Counter[str]:
        paper = self.up.data.parent / "received.jsonl"
        lines = paper.read_text().splitlines() if paper.exists() else []
        return Counter(json.loads(line)["nonce"] for line in lines)

    def read(self, query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(self.url) as database:
            return database.execute(query.encode()).fetchall()

    @property
    def url(self) -> str:
        return str(json.loads((self.up.data / "owner.json").read_text())["DATABASE_OWNER_URL"])


def beside(data: Path) -> dict[str, str]:
    return bare_environment() | {"COUNTERSIGN_DATA": str(data)}


async def until(true: Callable[[], bool], *, seconds: float = 60) -> None:
    async with asyncio.timeout(seconds):
        while not await asyncio.to_thread(true):
            await asyncio.sleep(0.05)


@asynccontextmanager
async def scene(folder: Path, *options: str, **env: str) -> AsyncIterator[Scene]:
    port = free_port()
    mock = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.faults.mock", str(port), str(folder / "received.jsonl")),
        cwd=ROOT,
    )
    up = Up(folder / "data", *options, env=SLOW | env)
    try:
        await asyncio.to_thread(up.start)
        known = beside(up.data) | {"DJANGO_SETTINGS_MODULE": "config.settings"}
        known["COUNTERSIGN_UPSTREAM_NETWORKS"] = "127.0.0.0/8"
        url = f"http://127.0.0.1:{port}/mcp"
        code, said = await run("-m", "tests.faults.furniture", url, env=known)
        assert code == 0, said
        made = json.loads(said.splitlines()[-1])
        async with aiohttp.ClientSession() as http:
            yield Scene(up, made["token"], made["alice"], http)
    finally:
        await asyncio.to_thread(up.__exit__)
        mock.kill()
        await mock.wait()


async def forty_calls(here: Scene) -> list[str]:
    """The held ones' ids, once the first of the others have been sent."""
    held = [await here.ask("held", f"held-{n}") for n in range(HELD)]
    await asyncio.gather(*(here.ask("later", f"later-{n}") for n in range(QUEUED)))
    await until(lambda: here.received.total() >= 4)
    return held


async def back_up(here: Scene, backup: Path) -> None:
    """While calls run; none gets further meanwhile, however long it takes."""
    worker = here.up.child("worker")
    worker.suspend()
    try:
        await here.manage("backup", str(backup))
    finally:
        worker.resume()
    assert len(archive.read(backup)["open_calls"]) > HELD


async def finish(here: Scene, held: list[str]) -> None:
    """Half of the held ones are approved after the backup, and all that may be sent is."""
    for call_id in held[:APPROVED]:
        await here.approve(call_id)
    await until(lambda: here.received.total() == QUEUED + APPROVED)
    await until(lambda: len(here.read(OPEN)) == HELD - APPROVED)


async def a_new_worker_does_not_start(here: Scene) -> None:
    """It could have taken what waits."""
    here.up.child("worker").kill()
    await until(lambda: "Nothing starts on it until that is declared" in here.up.text())


async def prove_that_it_works(here: Scene, nonce: str = "after the restore") -> None:
    """Calls are sent once more, so what is open would have been."""
    await here.ask("later", nonce)
    await until(lambda: here.received[nonce] == 1)
    await until(lambda: not here.read(OPEN))


@pytest.mark.alone
@pytest.mark.long
async def test_a_backup_put_back_in_the_middle_of_forty_calls_sends_none_twice(folder):
    backup = folder / "backup.tar"
    async with scene(folder) as here:
        held = await forty_calls(here)
        await back_up(here, backup)
        await finish(here, held)

        assert "is not paused" in await here.manage("restore", str(backup), code=1)
        await here.manage("pause", "--reason", "a restore")
        said = await here.manage("restore", str(backup))
        assert "other open calls were closed; none is sent." in said
        assert {state for state, _ in here.read(STATES)} <= {"succeeded", "unknown", "superseded"}
        await here.manage("resume")
        await prove_that_it_works(here)

        assert set(here.received.values()) == {1}
        told = await here.manage("audit_verify", code=3)
        assert "Restored: entries " in told


@pytest.mark.alone
@pytest.mark.long
async def test_a_dump_put_back_by_hand_sends_nothing_until_it_is_declared(folder):
    """Into an installation that runs and is not paused, as nobody should."""
    backup = folder / "backup.tar"
    async with scene(folder) as here:
        held = await forty_calls(here)
        await back_up(here, backup)
        await finish(here, held)

        await asyncio.to_thread(restore_by_hand, here.url, backup, folder)
        waiting = len(here.read(OPEN))
        assert waiting > HELD
        refused = await here.agent.call("up.now", {"nonce": "refused", "ms": 0})
        assert "restored from a backup or copied" in refused.text
        assert "restored from a backup or copied" in await here.manage("resume", code=1)
        page = await here.page("/queue/")
        assert "Nothing is sent." in page
        await a_new_worker_does_not_start(here)
        assert len(here.read(OPEN)) == waiting

        said = await here.manage("restore", "--declare")
        assert f"{HELD} pending and {waiting - HELD} other open calls were closed" in said
        await prove_that_it_works(here)

        assert set(here.received.values()) == {1}
        assert here.received["refused"] == 0
        # Nobody could say what had become of them.
        states = {state for state, _ in here.read(STATES)}
        # What was on its way while tables were away was not sent.
        assert {"succeeded", "unknown"} <= states <= {"succeeded", "unknown", "refused", "failed"}
        assert "Restored: entries " in await here.manage("audit_verify", code=3)


def restore_by_hand(url: str, backup: Path, folder: Path) -> None:
    dump = folder / "database.dump"
    archive.extract(backup, archive.DATABASE, dump)
    program = pgtools.find("pg_restore", pgtools.server_major(url))
    # Of tables in months pg_restore cannot take away what is there (--clean).
    with psycopg.connect(url, autocommit=True) as owner:
        owner.execute("DROP SCHEMA public CASCADE")
        owner.execute("CREATE SCHEMA public")
    arguments = ["--single-transaction", f"--dbname={url}", str(dump)]
    subprocess.run([program, *arguments], check=True)


@pytest.mark.alone
@pytest.mark.long
async def test_older_files_of_the_cluster_send_nothing_either(folder):
    """A snapshot of the database's files, put back while all is stopped."""
    async with scene(folder) as here:
        up, home = here.up, here.up.data / "postgres"
        held = [await here.ask("held", f"held-{n}") for n in range(3)]
        stop(up)
        shutil.copytree(home, folder / "snapshot", symlinks=True)
        begin(up)
        for call_id in held[:2]:
            await here.approve(call_id)
        await until(lambda: here.received.total() == 2)
        stop(up)

        shutil.rmtree(home)
        shutil.copytree(folder / "snapshot", home, symlinks=True)
        own(home, like=folder / "data" / "run")
        refuse(up)
        # Nor later, however far its transactions have come meanwhile.
        refuse(up)

        said = await here.manage("restore", "--declare")
        assert f"{len(held)} pending and 0 other" in said
        begin(up)
        await prove_that_it_works(here)

        assert set(here.received.values()) == {1}
        assert "Restored: entries " in await here.manage("audit_verify", code=3)


def stop(up: Up) -> None:
    up.process.terminate()
    assert up.ends() == 0, up.text()[-2000:]


def begin(up: Up, *options: str) -> None:
    up.options = ["--no-examples", *options]
    up.start()


def refuse(up: Up) -> None:
    """It ends by itself, with what is wrong and what to run, before anybody is answered."""
    up.launch()
    assert up.ends() == 1, up.text()[-2000:]
    assert "The database went back in time" in up.text()
    assert "`python3 manage.py restore --declare`" in up.text()
    assert not up.has_greeted()


def own(home: Path, *, like: Path) -> None:
    """As root, copies are root's, and PostgreSQL runs as nobody."""
    owner = like.stat()
    for path in [home, *home.rglob("*")]:
        os.chown(path, owner.st_uid, owner.st_gid)


@pytest.mark.alone
@pytest.mark.long
async def test_a_stopped_installation_a_new_host_and_a_start_that_is_paused(folder):
    backup = folder / "backup.tar"
    async with scene(folder) as here:
        up = here.up
        for n in range(3):
            await here.ask("held", f"held-{n}")
        await until(lambda: not here.read(UNSEALED))
        stop(up)
        await here.manage("backup", str(backup))
        begin(up)
        await here.ask("later", "later")
        await until(lambda: here.received["later"] == 1)
        await until(lambda: not here.read(UNSEALED))
        stop(up)

        said = await here.manage("restore", str(backup))
        assert "3 pending and 0 other" in said
        assert "Restored: entries " in said
        begin(up, "--paused")
        assert {state for state, _ in here.read(STATES)} == {"superseded"}
        # Everybody was signed out.
        assert "Sign in" in await here.page("/queue/")
        refused = await here.agent.call("up.now", {"nonce": "refused", "ms": 0})
        assert "Paused since" in refused.text
        await here.manage("resume")
        await prove_that_it_works(here)
        anchor = folder / "anchor"
        shutil.copy(up.data / "last-checkpoint", anchor)
        stop(up)

        old_data, up.data = up.data, folder / "new"
        lacking = await here.manage("restore", str(backup), code=1)
        assert "give the last anchor" in lacking
        anchored = ("restore", str(backup), "--anchor", str(anchor))
        assert "The ledger of erasures" in await here.manage(*anchored, code=1)
        said = await here.manage(*anchored, "--ledger", str(old_data / "erasures"))
        assert "3 pending and 0 other" in said
        begin(up)
        await prove_that_it_works(here, "on a new host")

        assert here.received == {"later": 1, "after the restore": 1, "on a new host": 1}
        told = await here.manage("audit_verify", "--anchor", str(anchor), code=3)
        assert "Restored: entries " in told
