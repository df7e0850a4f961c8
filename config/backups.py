"""Making a backup of an installation, running or not: everything of one moment of the database,
and the files without which it cannot be opened or checked."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection

from calls.record.states import LIVE
from config import archive, pgtools
from config.fingerprint import schema_fingerprint
from config.secret import OLD, SECRET
from core import seal

CATALOGUE, ANCHORS, SPOOL = "stdio.json", "checkpoints", "spool"
SEAL_KEY = "seal/key"
NAMED = re.compile(r"countersign-\d{8}T\d{6}Z\.tar")

MOMENT = """
    SELECT clock_timestamp(), current_setting('server_version'),
        (SELECT max(id) FROM audit_entry),
        (SELECT coalesce(max(first_index + leaves), 0) FROM audit_batch),
        (SELECT note FROM audit_checkpoint ORDER BY id DESC LIMIT 1),
        (SELECT max(number) FROM audit_origin),
        (SELECT name FROM audit_origin ORDER BY number DESC LIMIT 1)
"""
OPEN = "SELECT id FROM calls_call WHERE state = ANY(%s) ORDER BY id"


def make(path: Path, *, by: str) -> dict[str, Any]:
    """The manifest of what was written. Raises FileExistsError, NoProgram or ProgramFailed."""
    with tempfile.TemporaryDirectory(prefix=f".{path.name}.", dir=path.parent) as name:
        folder = Path(name)
        facts = _dump(settings.DATABASE_OWNER_URL, folder / archive.DATABASE)
        members = {archive.DATABASE: folder / archive.DATABASE, **_files(folder)}
        return archive.write(path, {**facts, "by": by, "secret": seal.fingerprint()}, members)


def name_now() -> str:
    """A name for a backup in a folder; names sort by time."""
    return f"countersign-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.tar"


def remove_oldest(folder: Path, *, keep: int) -> Iterator[Path]:
    """All but the newest `keep` of those with such a name; other files stay."""
    made = sorted(path for path in folder.iterdir() if NAMED.fullmatch(path.name))
    for path in made[:-keep]:
        path.unlink()
        yield path


def _dump(url: str, target: Path) -> dict[str, Any]:
    """pg_dump's snapshot is also where the manifest's facts come from."""
    major = pgtools.server_major(url)
    program = pgtools.find("pg_dump", major)
    with psycopg.connect(url) as link:
        link.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        link.read_only = True
        (snapshot,) = _row(link, "SELECT pg_export_snapshot()")
        facts = _facts(link, major)
        target.touch(mode=0o600)
        arguments = ["--format=custom", f"--snapshot={snapshot}", f"--file={target}"]
        pgtools.run(program, arguments, url=url)
    return facts


def _facts(link: psycopg.Connection[Any], major: int) -> dict[str, Any]:
    at, version, entry, leaves, note, origin, name = _row(link, MOMENT)
    migrations = link.execute("SELECT app, name FROM django_migrations ORDER BY id").fetchall()
    opened = link.execute(OPEN, [[state.value for state in LIVE]]).fetchall()
    return {
        "taken_at": at.isoformat(),
        "postgres": {"major": major, "version": version},
        "schema": schema_fingerprint(),
        "migrations": [list(row) for row in migrations],
        "record": {
            "name": name,
            "last_entry": entry,
            "leaves": leaves,
            "origin": origin,
            "checkpoint": note,
        },
        "open_calls": [str(call_id) for (call_id,) in opened],
    }


def _row(link: psycopg.Connection[Any], query: str) -> tuple[Any, ...]:
    row = link.execute(query).fetchone()
    assert row is not None
    return tuple(row)


def _files(folder: Path) -> dict[str, Path]:
    """Beside the database. Copied first: some of them change while they are read."""
    found = {CATALOGUE: settings.STDIO_CATALOGUE, ANCHORS: settings.ANCHOR_FILE}
    found |= {name: settings.DATA_DIR / name for name in (SECRET, OLD)}
    found |= _spooled(settings.DATA_DIR / SPOOL)
    if settings.SEAL_KEY_FILE:
        found[SEAL_KEY] = settings.SEAL_KEY_FILE
    return {name: copy for name, path in found.items() if (copy := _copied(path, folder / name))}


def _spooled(root: Path) -> Mapping[str, Path]:
    replies = root.rglob("*.reply") if root.exists() else ()
    return {f"{SPOOL}/{path.relative_to(root)}": path for path in replies}


def _copied(source: Path, target: Path) -> Path | None:
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    try:
        with source.open("rb") as there, archive.private(target) as here:
            shutil.copyfileobj(there, here)
    except FileNotFoundError:
        target.unlink(missing_ok=True)
        return None
    return target


def has_record() -> bool:
    """Is there a database of ours, with anything in it?"""
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_regclass('audit_entry') IS NOT NULL")
        if cursor.fetchone() != (True,):
            return False
        cursor.execute("SELECT EXISTS (SELECT FROM audit_entry)")
        return bool(cursor.fetchone()[0])
