"""An export over the loss of its worker, and its download over the loss of a console."""

from __future__ import annotations

import hashlib
import json
import subprocess
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from config.embedded.service import wait_until
from tests.database import python
from tests.processes import Stack

FURNISHED = """
import django; django.setup()
from django.contrib.auth.models import Group
from django.db import connection
from accounts import service_accounts
from accounts.models import User
from accounts.roles import Role
from tests.accounts import service_tokens
ines = User.objects.create_user("ines")
ines.groups.add(Group.objects.get(name=Role.AUDITOR), Group.objects.get(name=Role.ADMINISTRATOR))
account = service_accounts.create(
    "robot", purpose="A test", scopes=["audit.export_entry"], by=ines
)
with connection.cursor() as cursor:
    cursor.execute(
        "INSERT INTO audit_entry (action, actor_kind, actor, reason, details)"
        " SELECT 'note.made', 'system', 'x', 'Note ' || n % 100, jsonb_build_object('n', n)"
        " FROM generate_series(1, 40000) n"
    )
print(service_tokens.issue(account, by=ines))
"""
NOTES = {"action": "note.made"}
PARTS = 'SELECT number, "offset", size FROM audit_exportpart ORDER BY number'
LEASE_ENDED = "UPDATE audit_export SET leased_until = now() WHERE state = 'preparing'"
WRITTEN = """
    SELECT count(*) FROM audit_entry WHERE action = 'audit.export_written'
"""


@pytest.fixture
def stacks(
    own_stack: Stack, fresh_database: dict[str, str], tmp_path: Path
) -> Iterator[tuple[Stack, Stack]]:
    other = tmp_path / "other"
    other.mkdir()
    with Stack(other) as second:
        own_stack.env |= fresh_database
        second.env = own_stack.env | {
            "COUNTERSIGN_PUBLIC_URL": second.web_url,
            "COUNTERSIGN_AGENT_URL": second.agents_url,
        }
        yield own_stack, second
        own_stack.__exit__()


class Caller:
    def __init__(self, token: str) -> None:
        self.token = token

    def ask(self, url: str, body: Any = None) -> Any:
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        with urllib.request.urlopen(urllib.request.Request(url, data, headers)) as answer:
            return json.loads(answer.read())

    def curl(self, url: str, file: Path, *more: str) -> subprocess.Popen[bytes]:
        argv = ["curl", "-sS", "--fail", "-H", f"Authorization: Bearer {self.token}"]
        return subprocess.Popen([*argv, "--output", str(file), *more, url])


@pytest.mark.long
def test_nothing_is_lost_or_doubled(stacks: tuple[Stack, Stack], tmp_path: Path) -> None:
    first, second = stacks
    env = {**first.env, "DJANGO_SETTINGS_MODULE": "config.settings"}
    caller = Caller(python("-c", FURNISHED, env=env).split()[-1])
    assert first.web
    assert second.web
    assert first.worker
    made = caller.ask(f"{first.web_url}/api/v1/exports", {"background": True, "filters": NOTES})
    place = f"/api/v1/exports/{made['id']}"

    with psycopg.connect(env["DATABASE_URL"], autocommit=True) as database:
        wait_until(lambda: len(database.execute(PARTS).fetchall()) > 1, seconds=60)
        first.worker.kill()
        before = database.execute(PARTS).fetchall()
        state = caller.ask(f"{second.web_url}{place}")
        assert (state["state"], state["size"]) == ("preparing", sum(row[2] for row in before))
        database.execute(LEASE_ENDED)
        assert second.worker
        wait_until(lambda: caller.ask(f"{second.web_url}{place}")["state"] == "ready", seconds=60)
        after = database.execute(PARTS).fetchall()
        assert after[: len(before)] == before
        assert len(after) > len(before)
        assert database.execute(WRITTEN).fetchall() == [(1,)]

    ready = caller.ask(f"{second.web_url}{place}")
    file = tmp_path / "entries.jsonl"
    cut = caller.curl(f"{first.web_url}{place}/file", file, "--limit-rate", "1M")
    wait_until(lambda: file.exists() and file.stat().st_size > 1_200_000, seconds=60)
    first.web.kill()
    assert cut.wait(60) != 0
    assert 1_200_000 < file.stat().st_size < ready["size"]
    assert caller.curl(f"{second.web_url}{place}/file", file, "-C", "-").wait(60) == 0
    content = file.read_bytes()
    assert hashlib.sha256(content).hexdigest() == ready["digest"]
    assert len(content.splitlines()) == ready["rows"] == 40000

    direct = caller.ask(f"{second.web_url}/api/v1/exports", {"filters": NOTES})
    written = tmp_path / "direct.jsonl"
    assert caller.curl(f"{second.web_url}{direct['file']}", written).wait(60) == 0
    assert written.read_bytes() == content


@pytest.mark.long
def test_a_download_is_cut_where_its_entries_changed(
    stacks: tuple[Stack, Stack], tmp_path: Path
) -> None:
    """No byte of another file follows, and whoever comes for the rest is answered why."""
    first, _second = stacks
    env = {**first.env, "DJANGO_SETTINGS_MODULE": "config.settings"}
    caller = Caller(python("-c", FURNISHED, env=env).split()[-1])
    assert first.web
    assert first.worker
    body = {"background": True, "filters": NOTES, "format": "csv"}
    made = caller.ask(f"{first.web_url}/api/v1/exports", body)
    place = f"{first.web_url}/api/v1/exports/{made['id']}"
    wait_until(lambda: caller.ask(place)["state"] == "ready", seconds=60)
    with psycopg.connect(env["DATABASE_URL"], autocommit=True) as database:
        spoil = "UPDATE audit_exportpart SET digest = sha256('other') WHERE number = 1"
        database.execute(spoil)
    file = tmp_path / "entries.csv"

    assert caller.curl(f"{place}/file", file).wait(60) not in (0, 28)

    changed = caller.ask(place)
    assert changed["state"] == "changed"
    assert 0 < file.stat().st_size < changed["size"]
    assert caller.curl(f"{place}/file", file, "-C", "-").wait(60) == 22
    assert "already been started" not in first.web.text()
