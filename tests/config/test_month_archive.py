"""A month of calls goes into a file, out of the database, and back, and is proved all the while."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg
import pytest
import zstandard

from tests.config.conftest import Manage
from tests.config.store import Store
from tests.config.up import ROOT

CALLS = """
from accounts import services as accounts
from accounts.roles import Role
from calls.record.states import State
from tests.console import scenery
bob, olga = scenery.person("bob", Role.VIEWER), scenery.person("olga", Role.OPERATOR)
scout = accounts.create_agent("scout", owner=bob, by=bob)
tool = scenery.server("mailer", olga, scenery.SEND).tools.get()
scenery.offered(scout, tool)
for n in range(5):
    made = scenery.call(scout, tool, {**scenery.MAIL, "subject": f"Nr {n}"}, State.QUEUED)
    scenery.run(made)
    scenery.finish(made, {"content": [{"type": "text", "text": f"sent {n}"}]})
"""
HELD = """
from accounts.models import Agent
from calls.record.states import State
from registry.models import Tool
from tests.console import scenery
scenery.call(Agent.objects.get(), Tool.objects.get(), scenery.MAIL, State.HELD)
"""
ENDED = """
from approvals import services
from calls.models import Call
held = Call.objects.get(state="held")
services.cancel(held.pk, by=held.person.actor)
"""
# The command at the host, when the month is over.
LATER = """
from datetime import timedelta
from django.core.management import call_command
from django.utils import timezone
now = timezone.now
timezone.now = lambda: now() + timedelta(days=40)
call_command("archive_month", {month!r}, "--to", {folder!r}, *{more!r})
"""


@pytest.fixture
def month() -> str:
    return f"{datetime.now(UTC):%Y-%m}"


@pytest.fixture
def full(manage: Manage, urls: dict[str, str]) -> Manage:
    """With five calls that have ended, sealed."""
    done = manage("shell", "-v", "0", "-c", CALLS, COUNTERSIGN_UPSTREAM_NETWORKS="127.0.0.0/8")
    assert done.returncode == 0, done.stderr
    seal(manage, urls)
    return manage


def seal(manage: Manage, urls: dict[str, str]) -> None:
    assert manage("audit_seal", DATABASE_URL=urls["DATABASE_OWNER_URL"]).returncode == 0


@pytest.fixture
def archive(
    full: Manage, urls: dict[str, str], month: str, tmp_path: Path
) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(*, remove: bool, to: str = "", **settings: str) -> subprocess.CompletedProcess[str]:
        more = ["--remove"] if remove else []
        code = LATER.format(month=month, folder=to or str(tmp_path / "archive"), more=more)
        owner = {
            "DATABASE_URL": urls["DATABASE_OWNER_URL"],
            "COUNTERSIGN_HOST_APP_URL": urls["DATABASE_URL"],
        }
        return full("shell", "-v", "0", "-c", code, **owner, **settings)

    return run


def rows(urls: dict[str, str]) -> list[tuple[object, ...]]:
    with psycopg.connect(urls["DATABASE_OWNER_URL"]) as link:
        return link.execute(
            "SELECT to_jsonb(c) || jsonb_build_object('result', to_jsonb(r)) FROM calls_call c"
            " LEFT JOIN calls_result r ON r.call_id = c.id ORDER BY c.id"
        ).fetchall()


def lines(path: Path) -> Iterator[str]:
    with path.open("rb") as file:
        yield from io.TextIOWrapper(zstandard.ZstdDecompressor().stream_reader(file), "utf-8")


def outsider(manage: Manage, folder: Path, content: list[str]) -> subprocess.CompletedProcess[str]:
    """Somebody with the file, the key and verify.py."""
    (folder / "plain.jsonl").write_text("".join(content))
    (folder / "key").write_text(manage("audit_key").stdout)
    argv = [sys.executable, "audit/verify.py", str(folder / "plain.jsonl")]
    return subprocess.run(
        [*argv, "--key", str(folder / "key")], cwd=ROOT, capture_output=True, text=True, check=False
    )


@pytest.mark.long
def test_a_month_is_archived_removed_verified_and_put_back(
    full: Manage,
    archive: Callable[..., subprocess.CompletedProcess[str]],
    urls: dict[str, str],
    month: str,
    tmp_path: Path,
) -> None:
    before = rows(urls)
    file = tmp_path / "archive" / f"countersign-{month}.jsonl.zst"

    done = archive(remove=True)

    assert done.returncode == 0, done.stderr
    assert f"The calls of {month} were removed" in done.stdout
    assert file.stat().st_mode & 0o777 == 0o600
    assert (len(before), rows(urls)) == (5, [])
    seal(full, urls)
    verified = full("audit_verify")
    assert (verified.returncode, verified.stderr) == (0, "")
    # By a stranger, who also finds what was changed in the file, or left out of it.
    content = list(lines(file))
    good = outsider(full, tmp_path, content)
    assert (good.returncode, good.stderr) == (0, "")
    calls = [n for n, line in enumerate(content) if line.startswith('{"call":')]
    changed = content[calls[1]].replace('"arguments": "\\\\x7b22', '"arguments": "\\\\x7b20')
    assert changed != content[calls[1]]
    for broken, said in (
        ([*content[: calls[1]], changed, *content[calls[1] + 1 :]], "The arguments of call"),
        ([line for n, line in enumerate(content) if n != calls[0]], "is not in this archive"),
        ([line for n, line in enumerate(content) if n != calls[0] - 1], "is missing"),
    ):
        found = outsider(full, tmp_path, broken)
        assert (found.returncode, said in found.stderr) == (1, True), found.stderr

    back = full("import_month", str(file))

    assert back.returncode == 0, back.stderr
    assert back.stdout == f"5 calls of {month} are back.\n"
    assert rows(urls) == before
    seal(full, urls)
    verified = full("audit_verify")
    assert (verified.returncode, verified.stderr) == (0, "")
    with psycopg.connect(urls["DATABASE_URL"]) as link:
        told = link.execute(
            "SELECT action, details ->> 'calls' FROM audit_entry WHERE action LIKE 'record.%'"
        ).fetchall()
    assert told == [("record.archived", "5"), ("record.imported", "5")]
    assert "is there already" in full("import_month", str(file)).stderr


@pytest.mark.long
def test_what_may_not_be_archived_is_said_and_nothing_is_removed(
    full: Manage,
    archive: Callable[..., subprocess.CompletedProcess[str]],
    urls: dict[str, str],
    month: str,
    tmp_path: Path,
) -> None:
    next_month = f"{datetime.now(UTC).replace(day=1) + timedelta(days=32):%Y-%m}"
    for given, said in ((month, "is not over"), (next_month, "is not over"), ("soon", "no month")):
        blocked = full("archive_month", given, "--remove")
        assert (blocked.returncode, said in blocked.stderr) == (1, True), blocked.stderr
    # One that waits for people.
    done = full("shell", "-v", "0", "-c", HELD)
    assert done.returncode == 0, done.stderr
    blocked = archive(remove=True)
    assert f"1 calls of {month} are open or unresolved" in blocked.stderr
    # One that a legal hold covers, by the agent.
    assert full("shell", "-v", "0", "-c", ENDED).returncode == 0
    seal(full, urls)
    placed = full("legal_hold", "--agent", "scout", "--reason", "A case.")
    assert placed.returncode == 0, placed.stderr
    blocked = archive(remove=True)
    assert "is under legal hold" in blocked.stderr
    # What is no archive, or another one.
    other = tmp_path / "other.jsonl.zst"
    other.write_bytes(b"no archive")
    assert "cannot be read as an archive" in full("import_month", str(other)).stderr
    foreign = [json.dumps({"archive": {}, "start": 0, "peaks": [], "origin": 1})]
    other.write_bytes(zstandard.compress("\n".join(foreign).encode()))
    assert "Line 1 cannot be read" in full("import_month", str(other)).stderr

    assert len(rows(urls)) == 6


@pytest.fixture
def store() -> Iterator[Store]:
    with Store() as store:
        yield store


@pytest.mark.long
def test_a_month_goes_into_a_store_and_comes_back(
    full: Manage,
    archive: Callable[..., subprocess.CompletedProcess[str]],
    store: Store,
    urls: dict[str, str],
    month: str,
    tmp_path: Path,
) -> None:
    before, place = rows(urls), f"s3://archives/eu/countersign-{month}.jsonl.zst"

    # Until the store has exactly this file, nothing is removed, and no part of it is left there.
    for flaw, said in (
        ("loses a byte", "is not what was sent"),
        ("fails late", "answered 200 InternalError"),
    ):
        store.flaw = flaw
        failed = archive(remove=True, to="s3://archives/eu", **store.env)
        assert (failed.returncode, said in failed.stderr) == (1, True), failed.stderr
        assert (len(rows(urls)), store.uploads) == (5, {})
        store.files.clear()
    store.flaw = ""
    stranger = store.env | {"COUNTERSIGN_ARCHIVE_SECRET_KEY": "another"}
    failed = archive(remove=True, to="s3://archives/eu", **stranger)
    assert "answered 403 SignatureDoesNotMatch" in failed.stderr

    done = archive(remove=True, to="s3://archives/eu", **store.env)

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{place}: 5 calls")
    assert [*store.files] == [f"/archives/eu/countersign-{month}.jsonl.zst"]
    assert (rows(urls), [*(tmp_path / "data" / "archive").iterdir()]) == ([], [])
    checked = full("import_month", "--check", place, **store.env)
    assert checked.stdout == f"{place}: 5 calls of {month}, verified.\n", checked.stderr
    back = full("import_month", place, **store.env)
    assert back.stdout == f"5 calls of {month} are back.\n", back.stderr
    assert rows(urls) == before
    # What is there is never replaced, and what is not there is said.
    again = archive(remove=True, to="s3://archives/eu", **store.env)
    assert f"{place} is there already" in again.stderr
    assert "is not there" in full("import_month", f"{place}.old", **store.env).stderr
    assert "Set COUNTERSIGN_ARCHIVE_URL" in full("import_month", place).stderr
    # Only public addresses, unless its network is named.
    elsewhere = store.env | {"COUNTERSIGN_UPSTREAM_NETWORKS": ""}
    assert "127.0.0.1 is not public" in full("import_month", place, **elsewhere).stderr
    assert "is no place in a store" in full("import_month", "s3://Archives?", **store.env).stderr
