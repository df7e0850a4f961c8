"""A restored record: what was dropped is said for good, and a restore is no licence to cut."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import transaction

from audit import origins, verify
from audit.exporting import whole_record
from audit.leaves import sealed_size
from audit.live import check_live
from audit.models import Checkpoint, Entry, EntryRow
from audit.models.entries import LegalEntry
from audit.restoring import begin_origin, known_ends
from audit.services import Actor, record
from audit.signing import public_key
from audit.verify import Findings
from config.management.commands.grant_app_role import SEALED
from tests.database import APP, Databases
from tests.sealing import seal, seal_all

# What is settled depends on every transaction of the server, also of other workers' tests.
pytestmark = [pytest.mark.alone, pytest.mark.django_db(transaction=True)]
HOST = Actor("system", None, "root on db1")
# Lets nobody else write what the record says of itself.
OF_OWNER = LegalEntry().get_pgid(EntryRow)  # type: ignore[arg-type]


@pytest.fixture
def superuser(databases: Databases) -> Iterator[psycopg.Connection[Any]]:
    """Who restores, past all triggers; the application may do the owner's part meanwhile."""
    with databases.superuser(os.environ) as connection:
        connection.execute("SET session_replication_role = replica")
        tables = ", ".join(("audit_origin", *SEALED))
        connection.execute(f"GRANT INSERT ON {tables} TO {APP}".encode())
        connection.execute(f"ALTER TABLE audit_entryrow DISABLE TRIGGER {OF_OWNER}".encode())
        yield connection
        connection.execute(f"ALTER TABLE audit_entryrow ENABLE TRIGGER {OF_OWNER}".encode())
        connection.execute(f"REVOKE INSERT ON {tables} FROM {APP}".encode())


def write(n: int) -> None:
    for number in range(n):
        record("note.made", actor=HOST, reason=f"Note {number}.")


def sealed(n: int) -> str:
    """So many more entries, and the checkpoint of all."""
    write(n)
    seal_all()
    return Checkpoint.objects.latest("pk").note


def go_back(superuser: psycopg.Connection[Any], size: int) -> None:
    """The database as it was with so many leaves: what a restored dump holds."""
    for table, beyond in (("audit_batch", "first_index >= "), ("audit_checkpoint", "size > ")):
        superuser.execute(f"DELETE FROM {table} WHERE {beyond} {size}".encode())
    superuser.execute(
        "DELETE FROM audit_entryrow WHERE NOT id <@ ALL (SELECT range_agg(ids) FROM audit_batch)"
    )
    superuser.execute("UPDATE audit_origin SET table_oid = 1")
    superuser.execute("DELETE FROM audit_origin WHERE index >= %s AND number > 1", [size])


def declare(*notes: str) -> None:
    with transaction.atomic():
        begin_origin(
            [*notes, *known_ends()], by=HOST, backup_at=None, reason="Restored from a backup."
        )


def outsider(folder: Path, *anchors: str) -> subprocess.CompletedProcess[str]:
    """verify.py alone, in a directory without the product."""
    script = folder / "verify.py"
    script.write_bytes(Path(verify.__file__).read_bytes())
    (folder / "export.jsonl").write_text("".join(whole_record()))
    (folder / "anchors").write_text("\n".join(anchors))
    argv = [sys.executable, "-I", str(script), "export.jsonl", "--key", str(public_key())]
    argv += ["--anchor", "anchors"]
    return subprocess.run(argv, capture_output=True, text=True, cwd=folder, check=False)


def at() -> str:
    return verify.canonical({"at": Entry.objects.latest("pk").at.isoformat()}).decode()


def test_what_was_dropped_is_said_by_whom_and_when(
    superuser: psycopg.Connection[Any], tmp_path: Path
) -> None:
    anchors = [sealed(6), sealed(2), sealed(3)]
    go_back(superuser, 6)
    # In the backup, and not sealed when it was made.
    write(1)
    declare(*anchors)
    write(2)
    seal()

    found = check_live(anchors)

    assert found.wrong == []
    (said,) = found.restored
    assert said.startswith("Restored: entries 6 to 10 dropped, by root on db1, at 20")
    assert found.entries == 10
    assert Checkpoint.objects.latest("pk").note.startswith(f"{origins.name()}/2\n10\n")
    done = outsider(tmp_path, *anchors)
    assert (done.returncode, done.stderr) == (3, f"{said}\n")
    assert done.stdout == "10 entries hold, by 3 checkpoints and 3 anchors.\n"
    # Also for those who kept nothing.
    assert check_live().restored == found.restored


def test_an_undeclared_cut_is_still_one(superuser: psycopg.Connection[Any], tmp_path: Path) -> None:
    anchors = [sealed(6), sealed(5)]
    go_back(superuser, 6)

    found = check_live(anchors)

    assert found.restored == []
    assert "speaks of 11 entries, and there are 6" in found.wrong[0]
    assert outsider(tmp_path, *anchors).returncode == 1


def test_who_declares_less_than_an_anchor_says_has_cut(
    superuser: psycopg.Connection[Any], tmp_path: Path
) -> None:
    anchors = [sealed(6), sealed(2), sealed(3)]
    go_back(superuser, 6)
    declare(*anchors[:2])

    found = check_live(anchors)

    assert found.wrong[0].startswith("Cut off: an anchor of ")
    assert "speaks of 11 entries, and the restore of" in found.wrong[0]
    assert found.wrong[0].endswith("declares 8.")
    assert check_live(anchors[:2]).wrong == []
    assert outsider(tmp_path, *anchors).returncode == 1


def test_what_was_kept_is_compared_as_always(superuser: psycopg.Connection[Any]) -> None:
    anchors = [sealed(4), sealed(2), sealed(3)]
    go_back(superuser, 6)
    superuser.execute("DELETE FROM audit_entryrow WHERE id = (SELECT min(id) FROM audit_entryrow)")
    superuser.execute(
        "UPDATE audit_batch SET edge = sha256('x') || substr(edge, 33) WHERE first_index = 0"
    )
    superuser.execute("DELETE FROM audit_checkpoint")
    declare(*anchors)

    assert "Entries 0 to 3 are not what was signed" in " ".join(check_live(anchors).wrong)


def test_an_entry_that_only_says_so_declares_nothing(superuser: psycopg.Connection[Any]) -> None:
    """What the application's own role could write."""
    ends = [sealed(6)]
    record(verify.RESTORED, actor=HOST, origin=2, kept=3, ends=ends)
    seal()

    assert "is not signed" in " ".join(check_live(ends).wrong)


def test_a_declaration_that_cannot_be_read_is_wrong(superuser: psycopg.Connection[Any]) -> None:
    record(verify.RESTORED, actor=HOST, origin=2, kept=3, ends=["no checkpoint"])
    seal()

    assert "declares no restore that can be read" in check_live().wrong[0]


def test_an_older_backup_over_a_restored_record_declares_both(
    superuser: psycopg.Connection[Any], tmp_path: Path
) -> None:
    anchors = [sealed(4), sealed(4), sealed(4)]
    go_back(superuser, 8)
    declare(*anchors)
    anchors.append(sealed(3))
    assert anchors[-1].startswith(f"{origins.name()}/2\n12\n")
    # As the note that a restore makes before it begins.
    before = known_ends()
    go_back(superuser, 4)
    declare(*before)
    later = sealed(1)

    found = check_live([*anchors, later])

    assert found.wrong == []
    assert [said.partition(",")[0] for said in found.restored] == [
        "Restored: entries 4 to 11 dropped"
    ]
    assert later.startswith(f"{origins.name()}/3\n6\n")
    assert outsider(tmp_path, *anchors, later).returncode == 3

    # And then somebody cuts that off once more.
    go_back(superuser, 4)
    assert f"is of {origins.name()}/3, which the record does not declare" in " ".join(
        check_live([*anchors, later]).wrong
    )


def test_without_any_anchor_the_record_itself_says_so(superuser: psycopg.Connection[Any]) -> None:
    sealed(6)
    go_back(superuser, 6)
    declare()

    found: Findings = check_live()

    assert found.wrong == []
    assert found.restored[0].startswith("Restored: no sealed entry dropped, by root on db1")
    assert sealed_size() == 7
