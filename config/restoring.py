"""Putting a backup back, so that nothing is sent twice and nobody can call it an accident.

The order matters, and each step may be the last one that is reached: what the present record has
come to is written to a file first; the database is replaced in one transaction, from which moment
on nothing is sent (audit/origins.py); then the restore is declared, in one transaction too.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
from django.conf import settings
from django.contrib.sessions.models import Session
from django.db import connection, transaction
from django.db.models import Count

from approvals import payload_erasure
from approvals.restoring import close_pending
from audit import erasure_ledger, forgetting, origins
from audit.anchors import remembered_in
from audit.models import Entry
from audit.restoring import begin_origin, known_ends
from audit.services import Actor
from audit.signing import carry_over, known_signers
from audit.verify import notes
from calls import pauses
from calls.models import Call, Pause
from calls.record.states import State
from calls.restoring import Fate, close_open, fates
from config import archive, backups, host, pgtools
from config.joined_migrations import first_missing, known_migrations
from config.secret import OLD, SECRET
from core.english import gettext as _
from core.private_files import write_private
from core.secrets import fingerprint_of
from notifications.restoring import forget_pending

# What the replaced record had come to, until the restore is declared.
NOTE = "restoring.json"

NO_ANCHOR = (
    "What the record had come to is not known: give the last anchor with --anchor, or, if there is "
    "none, say --without-anchor; whoever has one will find the record cut off."
)

NO_LEDGER = (
    "The ledger of erasures {} is not there: without it this restore would bring back what was "
    "erased since the backup. Give a copy with --ledger, or, if there is none, say "
    "--without-ledger."
)
OTHER_LEDGER = "The ledger of erasures {} belongs to another record than this backup."
ERASED_AGAIN = _("Erased before the restore, and erased again.")

# What was restored before may not be in the way, nor what a later release made beside it.
EMPTY = """
DO $$
DECLARE one record;
BEGIN
    FOR one IN SELECT c.oid::regclass AS name FROM pg_class c
        WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')
          AND NOT c.relispartition
          AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = c.oid AND d.deptype = 'e')
    LOOP
        EXECUTE format('DROP TABLE IF EXISTS %s CASCADE', one.name);
    END LOOP;
    FOR one IN SELECT p.oid::regprocedure AS name FROM pg_proc p
        WHERE p.pronamespace = 'public'::regnamespace
          AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')
    LOOP
        EXECUTE format('DROP FUNCTION IF EXISTS %s CASCADE', one.name);
    END LOOP;
END
$$;
"""
COUNTED = "UPDATE core_generation SET n = greatest(n, %s) + 1"


TOO_OLD = (
    "This backup is of a release from before migrations were joined, and lacks some of them ({}). "
    "Restore it with the last release that has them, start that once, and upgrade then: see "
    "“Upgrading” in docs/en/guides/upgrade.md."
)


class RestoreRefused(Exception):
    """Nothing was changed; says why."""


def check_release(manifest: Mapping[str, Any]) -> None:
    """Raises RestoreRefused when a later release made it, or one from which this cannot upgrade."""
    applied, known = [(app, name) for app, name in manifest["migrations"]], known_migrations()
    if later := [f"{app}.{name}" for app, name in applied if (app, name) not in known]:
        raise RestoreRefused(
            f"This backup was made by a later release (it has {later[0]}): take that release."
        )
    if lacking := first_missing(applied):
        raise RestoreRefused(TOO_OLD.format(lacking))


def check_standing() -> None:
    """Raises RestoreRefused unless nothing runs here, or all that runs is paused."""
    if not host.other_sessions() or not backups.has_record():
        return
    if not pauses.why_paused():
        raise RestoreRefused(
            "Countersign runs on this database and is not paused. Stop it, or pause it with "
            "`python3 manage.py pause`, and restore then."
        )
    running = Call.objects.filter(state=State.RUNNING).count()
    if running:
        raise RestoreRefused(
            f"{running} calls still run: wait until they have ended, or cancel them."
        )


def is_other_record(manifest: Mapping[str, Any]) -> bool:
    """Whose credentials and tokens another secret opens."""
    mine = (settings.SECRET_KEY, *settings.OLD_SECRET_KEYS)
    return str(manifest["secret"]) not in map(fingerprint_of, mine)


def check_anchors(files: Iterable[Path], *, without_anchor: bool) -> None:
    """Raises RestoreRefused where nothing would say what the record had come to."""
    if not (backups.has_record() or anchors_of(files) or without_anchor):
        raise RestoreRefused(NO_ANCHOR)


def check_ledger(manifest: Mapping[str, Any], given: Path | None, *, without_ledger: bool) -> None:
    """Raises RestoreRefused or LedgerUnusable unless the erasures since the backup are known."""
    path = given or erasure_ledger.location()
    if not path.exists() and not backups.has_record() and not without_ledger:
        raise RestoreRefused(NO_LEDGER.format(path))
    name = manifest["record"].get("name")
    if path.exists() and name and erasure_ledger.record_of(path) != name:
        raise RestoreRefused(OTHER_LEDGER.format(path))
    if given is not None:
        erasure_ledger.adopt(given)


@contextmanager
def sealing_stopped() -> Iterator[None]:
    """Stops sealing while entered, so that the noted checkpoint stays the last."""
    with psycopg.connect(settings.DATABASE_OWNER_URL, autocommit=True) as link:
        link.execute("SELECT pg_advisory_lock(hashtext('countersign audit'))")
        yield


def note_present(manifest: Mapping[str, Any]) -> None:
    """Saves the end of the present record before it is replaced: on the disk when this returns."""
    # A restore that broke off has replaced what its note speaks of.
    before = read_note() or {}
    note: dict[str, Any] = {**before, "backup_at": manifest["taken_at"]}
    if backups.has_record():
        erasure_ledger.keep_up()
        note["ends"] = [*before.get("ends", []), *known_ends()]
        note["signers"] = _signers(before.get("signers", []))
        note["generation"] = max(_generation(), before.get("generation") or 0)
        if origins.is_at_home():
            note["paused"] = Pause.objects.holding().values_list("reason", flat=True).first()
            note["dropped"] = _dropped(manifest["record"]["last_entry"] or 0)
            note["calls"] = _fates(manifest)
    write_private(settings.DATA_DIR / NOTE, json.dumps(note))


def _signers(before: list[list[Any]]) -> list[list[Any]]:
    """Keys that the backup does not know, and that signed what is dropped."""
    return before + [one for one in known_signers() if one[:2] not in [b[:2] for b in before]]


def _dropped(last: int) -> dict[str, int]:
    """How many entries of which action came after the backup."""
    rows = Entry.objects.filter(pk__gt=last).order_by().values_list("action").annotate(Count("pk"))
    return dict(rows)


def _fates(manifest: Mapping[str, Any]) -> dict[str, list[Any]]:
    known = fates(UUID(one) for one in manifest["open_calls"])
    return {str(call_id): [fate.state, fate.is_unsent] for call_id, fate in known.items()}


def _generation() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT n FROM core_generation")
        return int(cursor.fetchone()[0])


def replace_database(path: Path) -> None:
    """In one transaction; raises NoProgram or ProgramFailed with nothing changed."""
    url = settings.DATABASE_OWNER_URL
    major = pgtools.server_major(url)
    restore, psql = pgtools.find("pg_restore", major), pgtools.find("psql", major)
    connection.close()
    with tempfile.TemporaryDirectory(prefix=".restore.", dir=settings.DATA_DIR) as name:
        dump, script, empty = (Path(name) / part for part in ("dump", "script", "empty"))
        archive.extract(path, archive.DATABASE, dump)
        # All of it first: half a script would be taken for a whole one.
        script.touch(mode=0o600)
        pgtools.run(restore, ["--no-owner", "--no-acl", f"--file={script}", str(dump)], url=url)
        empty.write_text(EMPTY)
        arguments = ["--no-psqlrc", "--quiet", "--single-transaction", "--set=ON_ERROR_STOP=1"]
        pgtools.run(psql, [*arguments, f"--file={empty}", f"--file={script}"], url=url)


def migrate() -> None:
    subprocess.run(
        [sys.executable, "-m", "django", "prepare", "--only-migrate", "--restored"],
        cwd=settings.BASE_DIR,
        env=host.app_environment(),
        check=True,
    )


def put_files_back(path: Path, manifest: Mapping[str, Any]) -> list[str]:
    """Restores missing files; returns sentences on files that differ."""
    said = []
    for name in manifest["members"]:
        if name in (archive.DATABASE, backups.ANCHORS):
            continue
        target = _place(name)
        if not target.exists():
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            archive.extract(path, name, target)
        elif target.read_bytes() != archive.content(path, name):
            beside = target.with_name(f"{target.name}.of-backup")
            beside.unlink(missing_ok=True)
            archive.extract(path, name, beside)
            said.append(f"{target} is not as in the backup, whose file is {beside}.")
    _add_anchors(path, manifest)
    return said


def _place(name: str) -> Path:
    if name == backups.CATALOGUE:
        return Path(settings.STDIO_CATALOGUE)
    if name == backups.SEAL_KEY and settings.SEAL_KEY_FILE:
        return settings.SEAL_KEY_FILE
    target: Path = (settings.DATA_DIR / name).resolve()
    if name.split("/")[0] not in (SECRET, OLD, backups.SPOOL) or ".." in Path(name).parts:
        raise archive.BadBackup(f"{name} has no place in an installation.")
    return target


def _add_anchors(path: Path, manifest: Mapping[str, Any]) -> None:
    """Appends to the anchor file, which is never replaced."""
    if backups.ANCHORS not in manifest["members"]:
        return
    kept = Path(settings.ANCHOR_FILE)
    have = set(notes(kept.read_text())) if kept.exists() else set()
    missing = [n for n in notes(archive.content(path, backups.ANCHORS).decode()) if n not in have]
    if missing:
        with kept.open("a") as file:
            file.writelines(note + "\n" for note in missing)


def read_note() -> dict[str, Any] | None:
    try:
        note: dict[str, Any] = json.loads((settings.DATA_DIR / NOTE).read_text())
    except FileNotFoundError:
        return None
    return note


def anchors_of(files: Iterable[Path]) -> list[str]:
    own = [path for path in (Path(settings.ANCHOR_FILE), remembered_in()) if path.exists()]
    return [note for path in [*own, *files] for note in notes(path.read_text())]


def declare(
    anchors: Iterable[str],
    *,
    by: Actor,
    without_anchor: bool = False,
    without_ledger: bool = False,
) -> str:
    """In one transaction; a sentence on what came of it. Raises RestoreRefused."""
    if origins.is_at_home():
        raise RestoreRefused(
            "There is nothing to declare: this is the database that the record is of."
        )
    anchors, note = list(anchors), read_note()
    if not anchors and note is None and not without_anchor:
        raise RestoreRefused(NO_ANCHOR)
    ledger = erasure_ledger.location()
    if not ledger.exists() and not without_ledger:
        raise RestoreRefused(NO_LEDGER.format(ledger))
    note = note or {}
    with transaction.atomic():
        carry_over(note.get("signers", []))
        ends = [*anchors, *note.get("ends", []), *known_ends()]
        said = _declare(ends, note, by=by, has_ledger=ledger.exists())
        if ledger.exists():
            said += _erase_again(ledger, by=by)
    (settings.DATA_DIR / NOTE).unlink(missing_ok=True)
    return said


def _erase_again(ledger: Path, *, by: Actor) -> str:
    """In the transaction that declares the restore; a sentence, or "" where nothing was left."""
    listed = erasure_ledger.read(ledger)
    counts = {
        "payloads": payload_erasure.erase_again(listed, by=by, reason=ERASED_AGAIN),
        "names or details": forgetting.forget(
            forgetting.still_there(listed), by=by, reason=ERASED_AGAIN
        ),
    }
    return "".join(
        f" {count} {what} that were erased since the backup were erased again."
        for what, count in counts.items()
        if count
    )


def _declare(notes: list[str], note: Mapping[str, Any], *, by: Actor, has_ledger: bool) -> str:
    newest = Entry.objects.order_by("-pk").values_list("at", flat=True).first()
    taken = datetime.fromisoformat(note["backup_at"]) if "backup_at" in note else newest
    when = f"{taken:%Y-%m-%d %H:%M:%S} UTC" if taken else "?"
    said = _("Restored from the backup of %(when)s.") % {"when": when}
    # Whoever reads the entry knows what may have come back.
    lacks: dict[str, Any] = {} if has_ledger else {"without_ledger": True}
    begin_origin(notes, by=by, backup_at=taken, reason=said, dropped=note.get("dropped"), **lacks)
    known = {
        UUID(one): Fate(State(state), unsent)
        for one, (state, unsent) in note.get("calls", {}).items()
    }
    pending = close_pending(known, said=said, by=by)
    opened = close_open(known, said=said, by=by)
    forget_pending(said=said)
    # Who signed out since is signed in again there.
    Session.objects.all().delete()
    with connection.cursor() as cursor:
        cursor.execute(COUNTED, [note.get("generation") or 0])
    if reason := note.get("paused"):
        Pause.objects.get_or_create(ended_at=None, defaults={"reason": reason, "by": by.name})
    return f"{said} {pending} pending and {opened} other open calls were closed; none is sent."
