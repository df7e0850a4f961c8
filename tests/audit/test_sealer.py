"""Who may seal and sign: the sealer's role and process, and nobody else."""

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.utils import timezone

from audit import origins, signing, verify
from audit.exporting import whole_record
from audit.leaves import sealed_size
from audit.live import check_live
from audit.models import Checkpoint, Entry, Signer
from audit.sealing import Inconsistent, Sealing
from audit.services import SYSTEM, record
from audit.tree import Tree
from audit.verify import Broken, notes, read_trusted
from config.seal import Sealer
from tests.database import Databases
from tests.sealing import batch, seal, seal_all, sealer

pytestmark = [pytest.mark.alone, pytest.mark.django_db(transaction=True)]

FORGED = [
    "INSERT INTO audit_batch (first_index, leaves, ids, edge) VALUES (0, 1, '{[1,1]}', '')",
    "INSERT INTO audit_tile (level, index, hashes, root) VALUES (0, 0, '', '')",
    "INSERT INTO audit_checkpoint (size, root, note) VALUES (0, '', '')",
    "INSERT INTO audit_signer (public, first_size, from_secret) VALUES ('', 0, false)",
    "UPDATE audit_name SET text = 'mallory'",
    "DELETE FROM audit_name",
    "DELETE FROM audit_signer",
]
NAMED = [
    ("id", "-5"),
    ("at", "now() - interval '1 day'"),
    ("transaction", "'3'::xid8"),
    ("format", "1"),
    ("salt", "'x'"),
]


@pytest.fixture
def forger(databases: Databases) -> Iterator[psycopg.Connection[Any]]:
    with databases.superuser(os.environ) as connection:
        connection.execute("SET session_replication_role = replica")
        yield connection


@pytest.mark.parametrize("statement", FORGED)
def test_the_application_seals_nothing(statement: str) -> None:
    with (
        psycopg.connect(os.environ["DATABASE_URL"]) as app,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        app.execute(statement)


@pytest.mark.parametrize(("column", "value"), NAMED)
def test_the_application_gives_no_entry_a_place_time_or_salt_of_its_choice(
    column: str, value: str
) -> None:
    with (
        psycopg.connect(os.environ["DATABASE_URL"]) as app,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        app.execute(
            f"INSERT INTO audit_entry (action, actor_kind, actor, {column})"
            f" VALUES ('note.made', 'system', 'x', {value})"
        )


def test_the_sealer_reads_entries_and_adds_to_what_is_sealed_and_that_is_all(
    databases: Databases,
) -> None:
    with psycopg.connect(databases.seal_url(os.environ)) as seal_role:
        rows = seal_role.execute(
            "SELECT c.relname, p FROM pg_class c CROSS JOIN unnest(ARRAY['SELECT', 'INSERT',"
            " 'UPDATE', 'DELETE', 'TRUNCATE', 'REFERENCES', 'TRIGGER']) p"
            " WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'v', 'm', 'p')"
            " AND (has_table_privilege(c.oid, p) OR p IN ('SELECT', 'INSERT', 'UPDATE')"
            " AND has_any_column_privilege(c.oid, p))"
        ).fetchall()

    sealed = {"audit_tile", "audit_batch", "audit_checkpoint", "audit_signer"}
    reads = {(f"audit_{name}", "SELECT") for name in ("entryrow", "name", "origin", "rollback")} | {
        (table, "SELECT") for table in sealed
    }
    assert set(rows) == reads | {(table, "INSERT") for table in sealed}


def test_without_the_key_file_nothing_is_signed(settings: Any) -> None:
    settings.SEAL_KEY_FILE = None
    record("note.made", actor=SYSTEM)

    with pytest.raises(signing.CannotSign, match="Only the sealer signs"):
        seal()
    assert sealed_size() == 0
    assert not Checkpoint.objects.exists()


def test_what_is_not_sealed_in_time_is_wrong(forger: psycopg.Connection[Any]) -> None:
    record("note.made", actor=SYSTEM)
    assert check_live().wrong == []
    for late in (timezone.now() - timedelta(seconds=61), timezone.now() + timedelta(hours=1)):
        forger.execute("UPDATE audit_entryrow SET at = %s", [late])
        (said,) = check_live().wrong
        assert "is not sealed" in said
    seal_all()


def test_an_entry_below_all_ids_is_never_sealed_and_always_found(
    forger: psycopg.Connection[Any],
) -> None:
    forger.execute(
        "INSERT INTO audit_entryrow (id, at, action, actor)"
        " VALUES (-7, now() - interval '1 day', 1, 3)"
    )
    record("note.made", actor=SYSTEM)

    assert seal_all() == 1
    assert ["Entry -7 of" in sentence for sentence in check_live().wrong] == [True]


def test_leaves_that_no_checkpoint_signed_are_outside_the_tree(
    forger: psycopg.Connection[Any],
) -> None:
    for _ in range(2):
        record("note.made", actor=SYSTEM)
    seal_all()
    forger.execute(
        "INSERT INTO audit_batch SELECT 2, 1, '{[9000,9000]}', substr(edge, 33) FROM audit_batch"
    )

    assert "Leaves 2 to 2 are outside the tree: no checkpoint signed them." in check_live().wrong


def test_what_comes_a_minute_late_is_named(forger: psycopg.Connection[Any]) -> None:
    """And what came within a transaction's time is not."""
    for seconds, wrong in ((59, 0), (61, 1)):
        entry = record("note.made", actor=SYSTEM)
        seal()
        record("note.made", actor=SYSTEM)
        newest = Entry.objects.order_by("-id")[0]
        forger.execute(
            "UPDATE audit_entryrow SET at = %s - %s WHERE id = %s",
            [Entry.objects.get(pk=entry.pk).at, timedelta(seconds=seconds), newest.pk],
        )
        seal()
        named = [said for said in check_live().wrong if f"Entry {newest.pk} says" in said]
        assert len(named) == wrong


def test_a_clock_that_went_back_is_named_and_accuses_nobody(
    forger: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from audit import sealing

    began = timezone.now()
    for hours in (2, 0, 0):
        entry = record("note.made", actor=SYSTEM)
        at = began + timedelta(hours=hours)
        forger.execute("UPDATE audit_entryrow SET at = %s WHERE id = %s", [at, entry.pk])
        horizon = sealing._horizon()
        monkeypatch.setattr(sealing, "_horizon", lambda h=horizon, at=at: replace(h, now=at))
        seal()
        monkeypatch.undo()

    found = check_live()
    assert found.wrong == []
    (note,) = found.notes
    assert "The clock went back from" in note
    assert "at leaf 1" in note


def test_another_key_than_the_record_knows_signs_nothing(settings: Any, tmp_path: Path) -> None:
    record("note.made", actor=SYSTEM)
    seal()
    settings.SEAL_KEY_FILE = tmp_path / "other"
    record("note.made", actor=SYSTEM)

    with pytest.raises(signing.CannotSign, match=r"is not in .*/other: put it back"):
        seal()
    signing.write_key(settings.SEAL_KEY_FILE)
    with pytest.raises(signing.CannotSign, match="put the right file there"):
        seal()
    assert Signer.objects.count() == 1


@pytest.mark.django_db(transaction=True, databases=["default", "owner"])
def test_a_record_that_workers_sealed_goes_on_with_the_sealers_own_key(
    forger: psycopg.Connection[Any],
) -> None:
    record("note.made", actor=SYSTEM)
    seal()
    old = signing.key_from_secret()
    checkpoint = Checkpoint.objects.get()
    from audit.verify import checkpoint_text, moment

    text = checkpoint_text(old.key, checkpoint.size, bytes(checkpoint.root), moment(checkpoint.at))
    forger.execute("DELETE FROM audit_signer")
    forger.execute("UPDATE audit_checkpoint SET note = %s", [f"{text}\n{old.sign(text)}"])

    signing.adopt_old_key()
    record("note.made", actor=SYSTEM)
    seal()

    assert check_live().wrong == []
    first, second = signing.keys()
    assert (first.key, first.until) == (old.key, 1)
    assert second.key == signing.public_key() != old.key


def test_another_key_signs_from_now_on_and_the_old_one_proves_what_it_signed(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, settings: Any
) -> None:
    settings.SEAL_KEY_FILE = tmp_path / "seal" / "key"
    running = Sealing()
    record("note.made", actor=SYSTEM)
    assert batch(running) == 1
    before = signing.public_key()

    with sealer():
        call_command("audit_rotate_key")

    first, second = signing.keys()
    assert (first.key, first.until) == (before, 1)
    assert second.key == signing.read_key(settings.SEAL_KEY_FILE).key != before
    assert capsys.readouterr().out.splitlines()[1:] == [str(first), str(second)]
    # Who trusts the old one learns the new one from what both signed.
    newest = Checkpoint.objects.latest("pk").note
    for one in (first, second):
        assert read_trusted(newest, [one]).size == 1
    anchors = f"{Checkpoint.objects.earliest('pk').note}\n{newest}\n{newest}"
    assert list(notes(anchors))[1:] == [newest, newest]
    record("note.made", actor=SYSTEM)
    # Also by the process that ran all the while.
    assert batch(running) == 1
    assert check_live().wrong == []
    assert read_trusted(Checkpoint.objects.latest("pk").note, [second]).size == 2
    # The old key, stolen, proves nothing that came after.
    with pytest.raises(Broken, match="not signed"):
        read_trusted(Checkpoint.objects.latest("pk").note, [first])


def test_a_rotation_that_broke_off_is_finished(tmp_path: Path, settings: Any) -> None:
    settings.SEAL_KEY_FILE = tmp_path / "key"
    record("note.made", actor=SYSTEM)
    seal()
    with sealer(), transaction.atomic():
        signing.rotate(1)
        # Killed after the commit, before the file was replaced.
        connection.run_on_commit.clear()
    assert (tmp_path / "key.next").exists()

    record("note.made", actor=SYSTEM)
    assert seal() == 1

    assert not (tmp_path / "key.next").exists()
    assert check_live().wrong == []


def test_a_lost_key_is_replaced_by_a_command(tmp_path: Path, settings: Any) -> None:
    settings.SEAL_KEY_FILE = tmp_path / "key"
    record("note.made", actor=SYSTEM)
    seal()
    settings.SEAL_KEY_FILE.unlink()
    record("note.made", actor=SYSTEM)
    with pytest.raises(signing.CannotSign, match="audit_rotate_key"):
        seal()

    with sealer():
        call_command("audit_rotate_key")

    assert seal() == 1
    assert check_live().wrong == []


def kept(settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path
    settings.ANCHOR_FILE = tmp_path / "checkpoints"


def run_sealer() -> None:
    """As a process that starts, and looks for the first time."""
    with sealer():
        Sealer().once()


CUT = "DELETE FROM audit_batch; DELETE FROM audit_tile; DELETE FROM audit_checkpoint"


@pytest.mark.parametrize(
    ("forgery", "writes"),
    [(CUT, 0), (CUT, 3), (f"UPDATE audit_entryrow SET seq = 1; {CUT}", 3)],
)
def test_what_was_signed_is_not_signed_otherwise_by_a_sealer_that_starts(
    forger: psycopg.Connection[Any], settings: Any, tmp_path: Path, forgery: str, writes: int
) -> None:
    """The owner has no key, but could let the sealer sign a record that was made anew."""
    kept(settings, tmp_path)
    for _ in range(3):
        record("note.made", actor=SYSTEM)
    run_sealer()
    run_sealer()
    forger.execute(f"DELETE FROM audit_entryrow WHERE id % 2 = 0; {forgery}")
    for _ in range(writes):
        record("note.made", actor=SYSTEM)

    with pytest.raises(Inconsistent, match="The sealer signed 3 entries at"):
        run_sealer()

    assert sealed_size() == 0


def test_leaves_that_the_sealer_did_not_sign_are_not_signed_later(
    forger: psycopg.Connection[Any], settings: Any, tmp_path: Path
) -> None:
    """They fit their checkpoint, which no key signed."""
    kept(settings, tmp_path)
    record("note.made", actor=SYSTEM)
    run_sealer()
    running = Sealing()
    with sealer():
        running.batch()
    leaf = verify.leaf_hash(b"", b"forged")
    forger.execute("INSERT INTO audit_batch VALUES (1, 1, '{[9000,9000]}', %s)", [leaf])
    root = Tree(2).right_edge().root()
    forger.execute(
        "INSERT INTO audit_checkpoint (size, root, at, note) VALUES (2, %s, now(), 'x')", [root]
    )
    record("note.made", actor=SYSTEM)

    for sealing in (running, Sealing()):
        with pytest.raises(Inconsistent, match="nothing more is sealed"):
            batch(sealing)


def test_a_sealer_that_runs_goes_on_from_its_own_leaves_alone(
    forger: psycopg.Connection[Any],
) -> None:
    record("note.made", actor=SYSTEM)
    running = Sealing()
    assert batch(running) == 1
    forger.execute(f"UPDATE audit_entryrow SET seq = 1; {CUT}")
    record("note.made", actor=SYSTEM)
    # By another process, which has the key.
    assert seal() == 2
    record("note.made", actor=SYSTEM)

    with pytest.raises(Inconsistent, match="are not those that this process sealed"):
        batch(running)


def test_a_restore_ends_what_the_sealer_signed_before(settings: Any, tmp_path: Path) -> None:
    kept(settings, tmp_path)
    record("note.made", actor=SYSTEM)
    run_sealer()
    path = tmp_path / "last-checkpoint"
    path.write_text(path.read_text().replace(f"{origins.name()}\n", f"{origins.name()}/7\n"))
    record("note.made", actor=SYSTEM)

    run_sealer()

    assert sealed_size() == 2


def test_a_record_goes_on_under_another_name_with_the_same_key(
    forger: psycopg.Connection[Any], settings: Any, tmp_path: Path
) -> None:
    kept(settings, tmp_path)
    record("note.made", actor=SYSTEM)
    run_sealer()
    earlier = origins.name()
    forger.execute("UPDATE audit_origin SET name = 'countersign.invalid/later'")
    record("note.made", actor=SYSTEM)
    # A new process, which finds its checkpoint under the earlier name.
    run_sealer()

    first, second = signing.keys()
    assert (first.key.name, first.until) == (earlier, 1)
    assert (second.key.name, second.until) == ("countersign.invalid/later", None)
    assert first.key.public == second.key.public
    assert Checkpoint.objects.latest("pk").note.startswith("countersign.invalid/later\n2\n")
    anchors = [one.note for one in Checkpoint.objects.order_by("id")]
    assert check_live(anchors).wrong == []
    assert verify.check_export(whole_record(), [first, second], anchors).wrong == []
    # As a restore carries keys over: nothing is missing.
    before = signing.known_signers()
    signing.carry_over(before)
    assert signing.known_signers() == before
    # What the sealer signed under the earlier name binds it as well.
    forger.execute(f"UPDATE audit_entryrow SET seq = 1; {CUT}")
    path = tmp_path / "last-checkpoint"
    path.write_text(anchors[0])
    with pytest.raises(Inconsistent, match="The sealer signed 1 entries at"):
        run_sealer()
