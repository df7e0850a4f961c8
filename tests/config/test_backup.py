"""`backup` and `restore` on a database that somebody else runs, as an installation with services of
its own has it. tests/faults/test_restore.py has them beside a running `up`."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from config import archive, pgtools
from config.pgtools import NoProgram
from tests.config.conftest import Manage
from tests.config.up import ROOT
from tests.database import Databases


@pytest.mark.long
def test_where_the_owner_is_left_empty_the_application_pauses(manage: Manage) -> None:
    """As in a container: its environment has each name, and for the owner no value."""
    paused = manage("pause", DATABASE_OWNER_URL="")
    resumed = manage("resume", DATABASE_OWNER_URL="")

    assert (paused.stdout, paused.stderr) == ("Paused.\n", "")
    assert resumed.returncode == 1
    assert "Only the database's owner ends a pause" in resumed.stderr
    assert "Traceback" not in resumed.stderr


@pytest.mark.long
def test_a_backup_is_put_back_and_declared(
    manage: Manage, urls: dict[str, str], tmp_path: Path
) -> None:
    backup = tmp_path / "backup.tar"
    # Two entries: one in the backup, one that is dropped.
    assert manage("pause").stdout == "Paused.\n"
    done = manage("backup", str(backup))
    assert done.returncode == 0, done.stderr
    assert backup.stat().st_mode & 0o777 == 0o600
    assert {"secret.key", archive.DATABASE} <= archive.read(backup)["members"].keys()
    assert manage("resume").stdout == "Calls are sent again.\n"

    # The application's role, say, on any host.
    with psycopg.connect(urls["DATABASE_URL"]):
        refused = manage("restore", str(backup))
    assert "is not paused" in refused.stderr
    done = manage("restore", str(backup))

    assert done.returncode == 0, done.stderr
    assert "0 pending and 0 other open calls were closed" in done.stdout
    # Sealed by a key that the backup does not know.
    assert "Restored: entries 0 to 1 dropped, by " in done.stdout
    verified = manage("audit_verify")
    assert (verified.returncode, "Restored: entries 0 to 1" in verified.stderr) == (3, True)
    (kept,) = (tmp_path / "data" / "backups").iterdir()
    assert archive.read(kept)["record"]["leaves"] == 2
    with psycopg.connect(urls["DATABASE_URL"]) as link:
        assert link.execute("SELECT max(number) FROM audit_origin").fetchone() == (2,)
        assert link.execute("SELECT action FROM audit_entry ORDER BY id").fetchall() == [
            ("pause.began",),
            ("record.restored",),
        ]


@pytest.mark.long
def test_one_that_fails_is_an_entry_and_a_check_that_fails_is_none(
    manage: Manage, urls: dict[str, str], tmp_path: Path
) -> None:
    nowhere = tmp_path / "no" / "such" / "folder"

    assert manage("backup", "--check", str(nowhere)).returncode == 1
    failed = manage("backup", str(nowhere))

    assert failed.returncode == 1
    with psycopg.connect(urls["DATABASE_URL"]) as link:
        told = link.execute("SELECT action, reason FROM audit_entry").fetchall()
    ((action, reason),) = told
    assert (action, reason in failed.stderr) == ("backup.failed", True)


@pytest.mark.long
def test_the_newest_backup_is_restored_aside_and_verified(
    manage: Manage, urls: dict[str, str], tmp_path: Path
) -> None:
    folder, scratch = tmp_path / "backups", tmp_path / "scratch"
    folder.mkdir()
    scratch.mkdir()
    for directory in (tmp_path, *tmp_path.parents[:2]):
        # PostgreSQL does not run as root.
        directory.chmod(0o711)
    manage("pause")
    manage("audit_seal", DATABASE_URL=urls["DATABASE_OWNER_URL"])
    assert manage("backup", str(folder / "monday.tar")).returncode == 0
    argv = ("check_restore", str(folder), "--scratch", str(scratch))

    done = manage(*argv)

    assert done.returncode == 0, done.stderr
    assert f"{folder / 'monday.tar'}: restored and verified, 1 sealed entries of" in done.stdout
    assert list(scratch.iterdir()) == []
    with psycopg.connect(urls["DATABASE_URL"]) as link:
        # The installation itself was not restored.
        assert link.execute("SELECT max(number) FROM audit_origin").fetchone() == (1,)
        ((details,),) = link.execute(
            "SELECT details FROM audit_entry WHERE action = 'backup.checked'"
        ).fetchall()
    assert (details["backup"], details["entries"]) == ("monday.tar", 1)
    assert min(details["backup_bytes"], details["database_bytes"], details["restore_s"]) > 0

    # One that is damaged, and one of a record that somebody changed.
    torn = folder / "tuesday.tar"
    torn.write_bytes((folder / "monday.tar").read_bytes()[:-20_000])
    failed = manage(*argv)
    assert (failed.returncode, "tuesday.tar" in failed.stderr) == (1, True)
    torn.unlink()
    with psycopg.connect(urls["DATABASE_OWNER_URL"]) as owner:
        owner.execute("ALTER TABLE audit_entryrow DISABLE TRIGGER USER")
        owner.execute("UPDATE audit_entryrow SET seq = 7")
    assert manage("backup", str(folder / "wednesday.tar")).returncode == 0
    failed = manage(*argv)

    assert failed.returncode == 1
    assert "was changed" in failed.stderr
    assert list(scratch.iterdir()) == []
    with psycopg.connect(urls["DATABASE_URL"]) as link:
        failures = "SELECT count(*) FROM audit_entry WHERE action = 'backup.check_failed'"
        assert link.execute(failures).fetchone() == (2,)


@pytest.mark.long
def test_in_a_folder_the_newest_backups_are_kept_and_nothing_else_is_removed(
    manage: Manage, tmp_path: Path
) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    old = [folder / f"countersign-2026010{day}T030000Z.tar" for day in (1, 2, 3)]
    others = [folder / "countersign-before-the-move.tar", folder / "notes.txt"]
    for path in old + others:
        path.write_text("x")

    done = manage("backup", str(folder), "--keep", "2")

    assert done.returncode == 0, done.stderr
    (new,) = set(folder.iterdir()) - set(old + others)
    assert set(folder.iterdir()) == {new, old[2], *others}
    assert archive.read(new)["record"]["leaves"] >= 0

    # One that fails removes none.
    failed = manage("backup", str(folder), "--keep", "1", PATH="/nowhere", DATABASE_OWNER_URL="x")
    assert failed.returncode != 0
    assert set(folder.iterdir()) == {new, old[2], *others}
    for argv in (("--keep", "0", str(folder)), ("--keep", "2", str(new))):
        wrong = manage("backup", *argv)
        assert (wrong.returncode, "--keep needs a number from 1 on" in wrong.stderr) == (1, True)


BROKEN_OFF = """
from pathlib import Path
from config import archive, restoring
path = Path({path!r})
restoring.note_present(archive.read(path))
restoring.replace_database(path)
"""


@pytest.mark.long
def test_a_restore_that_broke_off_is_ended_by_declaring_it(
    manage: Manage, urls: dict[str, str], tmp_path: Path
) -> None:
    backup = tmp_path / "backup.tar"
    manage("pause")
    manage("audit_seal", DATABASE_URL=urls["DATABASE_OWNER_URL"])
    assert manage("backup", str(backup)).returncode == 0
    broken_off = manage("shell", "-v", "0", "-c", BROKEN_OFF.format(path=str(backup)))
    assert broken_off.returncode == 0, broken_off.stderr

    done = manage("restore", "--declare")

    assert done.returncode == 0, done.stderr
    with psycopg.connect(urls["DATABASE_URL"]) as link:
        # What every process reads when it starts.
        assert link.execute("SELECT count(*) FROM audit_secret").fetchone() == (1,)


@pytest.fixture
def seal(manage: Manage, urls: dict[str, str]) -> Callable[..., str]:
    """What the sealer does, which may add signers; its key is where `manage` says."""

    def run(command: str = "audit_seal") -> str:
        done = manage(command, DATABASE_URL=urls["DATABASE_OWNER_URL"])
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.mark.long
def test_what_a_younger_key_signed_is_said_to_be_dropped(
    manage: Manage, urls: dict[str, str], seal: Callable[..., str], tmp_path: Path
) -> None:
    backup, kept = tmp_path / "backup.tar", tmp_path / "anchors"
    manage("pause")
    seal()
    assert manage("backup", str(backup)).returncode == 0
    for key in range(2):
        manage("resume")
        seal()
        seal("audit_rotate_key")
        manage("pause", "--reason", f"Signed by key {key}.")
        seal()
    with psycopg.connect(urls["DATABASE_OWNER_URL"]) as link:
        notes = link.execute("SELECT note FROM audit_checkpoint ORDER BY id").fetchall()
    kept.write_text("\n".join(note for (note,) in notes))

    assert "Restored: entries 1 to 4 dropped, by " in manage("restore", str(backup)).stdout

    verified = manage("audit_verify", "--anchor", str(kept))
    assert verified.stderr.startswith("Restored: entries 1 to 4 dropped, by ")
    assert f"by 2 checkpoints and {len(notes)} anchors" in verified.stdout
    # A thief of the first key proves nothing of what came since.
    first, second, third = manage("audit_key").stdout.splitlines()
    assert (first.partition(" ")[2], second.partition(" ")[2]) == ("until 1", "until 1")
    assert " " not in third
    # Of the dropped entries nobody knows more than an anchor says.
    (tmp_path / "key").write_text(f"{first}\n{second}\n{third}\n")
    export = str(tmp_path / "export.jsonl")
    manage("audit_export", export)
    outsider = [sys.executable, "audit/verify.py", export, "--key", str(tmp_path / "key")]
    done = subprocess.run(
        [*outsider, "--anchor", str(kept)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (3, verified.stderr)


@pytest.mark.long
def test_an_old_key_that_another_replaced_after_a_restore_goes_on_to_prove_what_was_dropped(
    manage: Manage, seal: Callable[..., str], tmp_path: Path
) -> None:
    backup = tmp_path / "backup.tar"
    manage("pause")
    seal()
    assert manage("backup", str(backup)).returncode == 0
    for _ in range(3):
        manage("resume")
        manage("pause")
    assert manage("restore", str(backup)).returncode == 0

    seal("audit_rotate_key")

    verified = manage("audit_verify")
    assert (verified.returncode, "entries 1 to 6 dropped" in verified.stderr) == (3, True)


@pytest.mark.long
def test_into_the_record_of_another_installation_nothing_is_restored(
    manage: Manage, tmp_path: Path
) -> None:
    backup = tmp_path / "backup.tar"
    manage("pause")
    assert manage("backup", str(backup)).returncode == 0

    again = manage("backup", str(backup))
    assert "choose another name" in again.stderr

    refused = manage("restore", str(backup), COUNTERSIGN_SECRET_KEY="another" * 9)

    assert "the record of another installation" in refused.stderr


def test_what_is_missing_is_named() -> None:
    with pytest.raises(NoProgram, match="PostgreSQL 12, and pg_dump 12 is not to be found"):
        pgtools.find("pg_dump", 12)


def test_programs_use_the_primary_of_a_pair() -> None:
    found = pgtools._environment("postgresql:///it?host=a,b&target_session_attrs=read-write")

    assert (found["PGHOST"], found["PGTARGETSESSIONATTRS"]) == ("a,b", "read-write")


def test_a_program_that_a_signal_ended_is_said_to_be() -> None:
    with pytest.raises(pgtools.ProgramFailed, match=r"^sh: ended by SIGXFSZ$"):
        pgtools.run(Path("/bin/sh"), ["-c", "kill -XFSZ $$"], url="postgresql:///none")


def test_a_password_stays_off_the_list_of_processes() -> None:
    found = pgtools._environment("postgresql://me:s3cret@/it?host=/run/pg&port=5433")

    assert (found["PGPASSWORD"], found["PGUSER"], found["PGDATABASE"]) == ("s3cret", "me", "it")
    assert found["PGHOST"] == "/run/pg"
    assert "DATABASE_URL" not in found or found["DATABASE_URL"] == os.environ.get("DATABASE_URL")


# A name as the application writes one, and its erasure by the host's owner.
NAMED = """
from audit.services import Actor, record
record("note.made", actor=Actor("person", 7, "ada"), reason="Talk to Ada.", said="ada")
"""
WORDS = """
    SELECT concat_ws(' ', (SELECT string_agg(text, ' ') FROM audit_name),
        (SELECT string_agg(details::text, ' ') FROM audit_entryrow))
"""


def words(urls: dict[str, str]) -> str:
    with psycopg.connect(urls["DATABASE_OWNER_URL"]) as link:
        (found,) = link.execute(WORDS).fetchone() or ("",)
    return str(found).lower()


@pytest.fixture
def older(manage: Manage, urls: dict[str, str], tmp_path: Path) -> Path:
    """A backup that has the name of a person who was erased afterwards."""
    backup = tmp_path / "backup.tar"
    done = manage("shell", "-v", "0", "-c", NAMED)
    assert done.returncode == 0, done.stderr
    manage("audit_seal", DATABASE_URL=urls["DATABASE_OWNER_URL"])
    manage("pause")
    assert manage("backup", str(backup)).returncode == 0
    export = manage("audit_export", str(tmp_path / "before.jsonl"))
    assert export.returncode == 0, export.stderr
    done = manage("audit_forget", "--person", "ada", "--reason", "Requested.", "--yes")
    assert done.returncode == 0, done.stderr
    assert re.search(r"\bada\b", words(urls)) is None
    return backup


@pytest.mark.long
def test_a_person_who_was_erased_stays_so_when_an_older_backup_is_restored(
    manage: Manage, urls: dict[str, str], older: Path, tmp_path: Path
) -> None:
    done = manage("restore", str(older))

    assert done.returncode == 0, done.stderr
    assert "3 names or details that were erased since the backup were erased again." in done.stdout
    assert re.search(r"\bada\b", words(urls)) is None
    assert manage("audit_verify").returncode == 3
    # An export made before says the name, and its proof holds.
    (tmp_path / "key").write_text(manage("audit_key").stdout)
    export = tmp_path / "before.jsonl"
    argv = [sys.executable, "audit/verify.py", str(export), "--key", str(tmp_path / "key")]
    outside = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (outside.returncode, outside.stderr) == (0, "")
    assert "Talk to Ada." in export.read_text()


@pytest.mark.long
def test_on_a_new_host_nothing_is_restored_without_the_ledger(
    manage: Manage, urls: dict[str, str], older: Path, databases: Databases, tmp_path: Path
) -> None:
    other = databases.empty()
    new = {**other, "COUNTERSIGN_DATA": str(tmp_path / "new")}
    ledger = tmp_path / "data" / "erasures"
    foreign, torn = tmp_path / "foreign", tmp_path / "torn"
    foreign.write_text('{"record": "countersign.invalid/0"}\n')
    torn.write_text("no ledger")

    lacking = manage("restore", str(older), "--without-anchor", **new)
    assert "The ledger of erasures" in lacking.stderr
    for given, said in ((foreign, "belongs to another record"), (torn, "cannot be read")):
        blocked = manage("restore", str(older), "--without-anchor", "--ledger", str(given), **new)
        assert (blocked.returncode, said in blocked.stderr) == (1, True), blocked.stderr
    done = manage("restore", str(older), "--without-anchor", "--ledger", str(ledger), **new)

    assert done.returncode == 0, done.stderr
    assert re.search(r"\bada\b", words(other)) is None
    databases.drop(other)


@pytest.mark.long
def test_the_ledger_discloses_nothing_and_is_in_no_backup(
    manage: Manage, older: Path, tmp_path: Path
) -> None:
    ledger = tmp_path / "data" / "erasures"

    # As a word: digests may hold its letters.
    assert not re.search(r"\bada\b", ledger.read_text())
    assert ledger.stat().st_mode & 0o777 == 0o600
    assert not any("erasures" in name for name in archive.read(older)["members"])
