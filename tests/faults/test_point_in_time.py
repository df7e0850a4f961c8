"""The database is recovered to a second in the middle of calls, by the steps of the guide: calls
sent after that second are not sent again, and what was erased after it is shown to nobody."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from config.embedded.postgres import SUPERUSER, Postgres
from config.embedded.service import environment, password
from tests.config.up import Up
from tests.faults.test_restore import (
    OPEN,
    Scene,
    begin,
    own,
    prove_that_it_works,
    refuse,
    scene,
    stop,
    until,
)

BEFORE, WAITING, AFTER = 6, 24, 6
FIRST = "SELECT id FROM calls_call ORDER BY asked_at LIMIT 1"
NOW = "SELECT clock_timestamp()"
NAMED = "SELECT convert_from(arguments, 'UTF8')::json->>'nonce', asked_at, state FROM calls_call"


def base_backup(data: Path, base: Path) -> None:
    argv = [str(Postgres(data).programs / "pg_basebackup"), f"--host={data / 'run'}"]
    argv += [f"--username={SUPERUSER}", f"--pgdata={base}", "--checkpoint=fast"]
    secret = {"PGPASSWORD": password(data, SUPERUSER)}
    subprocess.run(argv, env=environment() | secret, check=True)


def recover(up: Up, base: Path, archive: Path, at: datetime) -> None:
    home = up.data / "postgres"
    home.rename(home.with_name("postgres.before"))
    shutil.copytree(base, home)
    (home / "recovery.signal").touch()
    with (home / "postgresql.auto.conf").open("a") as settings:
        settings.write(f"restore_command = 'cp {archive}/%f %p'\n")
        settings.write(f"recovery_target_time = '{at.isoformat()}'\n")
        settings.write("recovery_target_action = 'promote'\n")
    own(home, like=up.data / "run")


async def calls_until_a_second(here: Scene) -> datetime:
    """The second, in which some calls were over, others wait, and the worker goes on."""
    await asyncio.gather(*(here.ask("later", f"before {n}") for n in range(BEFORE)))
    await until(lambda: here.received.total() == BEFORE)
    await asyncio.gather(*(here.ask("later", f"waiting {n}", ms=1000) for n in range(WAITING)))
    moment: datetime = here.read(NOW)[0][0]
    at = moment.replace(microsecond=0) + timedelta(seconds=1)
    await until(lambda: here.read(NOW)[0][0] > at)
    return at


@pytest.mark.proof
async def test_a_recovery_to_a_second_in_the_middle_of_calls_sends_none_twice(folder: Path) -> None:
    archive = folder / "archive"
    archive.mkdir()
    # Whoever PostgreSQL runs as writes there.
    archive.chmod(0o777)
    async with scene(folder, COUNTERSIGN_WAL_ARCHIVE=str(archive)) as here:
        up = here.up
        await asyncio.to_thread(base_backup, up.data, folder / "base")
        at = await calls_until_a_second(here)
        sent_at_that_second = here.received.total()
        await asyncio.gather(*(here.ask("later", f"after {n}") for n in range(AFTER)))
        await until(lambda: not here.read(OPEN))
        # At once, and taken from no queue.
        await here.agent.call("up.now", {"nonce": "at once", "ms": 0})
        erased = here.read(FIRST)[0][0]
        await here.manage("erase_payload", str(erased), "--reason", "Asked for.", "--yes")
        assert here.received.total() == BEFORE + WAITING + AFTER + 1
        stop(up)
        recover(up, folder / "base", archive, at)

        refuse(up)
        said = await here.manage("restore", "--declare")
        assert "other open calls were closed" in said
        assert "1 payloads that were erased since the backup were erased again." in said
        begin(up)
        found: Any = here.read(NAMED)
        check_that_second(found, at, sent_at_that_second)
        await prove_that_it_works(here, "after the recovery")

        assert set(here.received.values()) == {1}
        assert "Restored: entries " in await here.manage("audit_verify", code=3)


def check_that_second(
    found: list[tuple[str | None, datetime, str]], at: datetime, sent: int
) -> None:
    """It is the state of that second: what came later is missing, what waited was closed, and the
    payload that was erased later is."""
    assert len(found) == BEFORE + WAITING
    assert all(when <= at for _name, when, _state in found)
    assert {(name or "erased").split()[0] for name, _when, _state in found} == {
        "before",
        "waiting",
        "erased",
    }
    states = [state for _name, _when, state in found]
    assert BEFORE <= states.count("succeeded") <= sent
    assert states.count("unknown") > 0
    assert set(states) <= {"succeeded", "unknown"}
