"""The record sealed: what outsiders can check, and what they find when somebody touched it."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection

from audit import origins, tree, verify
from audit.anchors import keep
from audit.bodies import StoredName, body, leaf, read
from audit.exporting import whole_record
from audit.leaves import in_order, sealed_size
from audit.live import NotSigned, check_live
from audit.models import Checkpoint, Entry, EntryRow, Name, Tile
from audit.names import changed
from audit.sealing import Inconsistent, Sealing, read_position
from audit.services import SYSTEM, Actor, record
from audit.signing import public_key
from audit.structure import unsealed
from tests.database import Databases
from tests.sealing import batch, seal, seal_all, sealer

# What is settled depends on every transaction of the server, also of other workers' tests.
pytestmark = [pytest.mark.alone, pytest.mark.django_db(transaction=True)]


def write(n: int) -> None:
    Entry.objects.bulk_create(
        Entry(
            action="note.made",
            actor_kind="system",
            actor="countersign",
            reason=f"Note {k}.",
            details={"number": k},
        )
        for k in range(n)
    )


@pytest.fixture
def sealed() -> list[int]:
    """Ten entries in three batches."""
    for n in (4, 4, 2):
        write(n)
        seal()
    return [pk for _, pk in in_order()]


@pytest.fixture
def forger(databases: Databases) -> Iterator[psycopg.Connection[Any]]:
    """A superuser who has taken the triggers away."""
    with databases.superuser(os.environ) as connection:
        connection.execute("SET session_replication_role = replica")
        yield connection


def outsider(tmp_path: Path, *anchors: str) -> subprocess.CompletedProcess[str]:
    """verify.py alone, in a directory without the product."""
    file, script = tmp_path / "export.jsonl", tmp_path / "verify.py"
    file.write_text("".join(whole_record()))
    return run(script, file, *anchors)


def run(script: Path, file: Path, *anchors: str) -> subprocess.CompletedProcess[str]:
    script.write_bytes(Path(verify.__file__).read_bytes())
    more = []
    if anchors:
        (script.parent / "anchors").write_text("\n".join(anchors))
        more = ["--anchor", str(script.parent / "anchors")]
    argv = [sys.executable, "-I", str(script), str(file), "--key", str(public_key()), *more]
    return subprocess.run(argv, capture_output=True, text=True, cwd=script.parent, check=False)


def run_on(tmp_path: Path, lines: list[dict[str, Any]]) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "export.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return run(tmp_path / "verify.py", file)


def test_every_entry_gets_its_leaf_in_order(sealed: list[int]) -> None:
    assert sealed == list(Entry.objects.order_by("id").values_list("id", flat=True))
    assert [index for index, _ in in_order()] == list(range(10))
    assert seal() == 0
    assert [c.size for c in Checkpoint.objects.order_by("id")] == [4, 8, 10]


def test_an_outsider_finds_it_whole(sealed: list[int], tmp_path: Path) -> None:
    done = outsider(tmp_path)

    assert (done.returncode, done.stdout) == (0, "10 entries hold, by 3 checkpoints.\n")
    assert check_live().wrong == []
    assert unsealed() == 0


def test_writers_who_commit_late_are_sealed_late(databases: Databases) -> None:
    sql = "INSERT INTO audit_entry (action, actor_kind, actor) VALUES ('note.late', 'system', 'x')"
    with psycopg.connect(os.environ["DATABASE_URL"]) as slow:
        slow.execute(sql)
        write(3)
        assert seal_all() == 3
        slow.commit()
    assert seal_all() == 1
    assert list(in_order())[-1][1] == Entry.objects.order_by("id")[0].pk
    assert check_live().wrong == []


def test_a_gap_is_looked_at_until_nobody_can_fill_it(databases: Databases) -> None:
    insert = (
        "INSERT INTO audit_entry (action, actor_kind, actor) VALUES ('note.late', 'system', 'x')"
    )
    sealing = Sealing()
    with psycopg.connect(os.environ["DATABASE_URL"]) as slow:
        slow.execute(insert)
        write(3)
        assert batch(sealing) == 3
        slow.commit()
    with psycopg.connect(os.environ["DATABASE_URL"]) as given_up:
        given_up.execute(insert)
        write(1)
        given_up.rollback()
    # What dawdled came by its gap, in the same sealer and in the next.
    assert batch(sealing) == 2
    assert [(gap.last - gap.first) for gap in read_position().gaps if gap.first > 3] == [0]
    assert check_live().wrong == []


def test_nothing_is_sealed_on_top_of_what_was_changed(
    sealed: list[int], forger: psycopg.Connection[Any]
) -> None:
    running = Sealing()
    batch(running)
    forger.execute("DELETE FROM audit_batch WHERE first_index = 8")
    write(1)

    for sealing in (running, Sealing()):
        with pytest.raises(Inconsistent, match="nothing more is sealed"):
            batch(sealing)
    assert sealed_size() == 8


def test_only_one_seals_at_a_time(databases: Databases) -> None:
    write(3)
    with psycopg.connect(os.environ["DATABASE_URL"]) as other:
        other.execute("SELECT pg_advisory_xact_lock(hashtext('countersign audit'))")
        assert seal() == 0
    assert seal() == 3


def rows_read(sealing: Sealing, most: int) -> dict[str, int]:
    """Of each table, how many rows one batch reads, by the database's own counters."""
    with connection.cursor() as cursor:
        before = rows_counted(cursor)
        assert batch(sealing, most) == most
        return {name: n - before.get(name, 0) for name, n in rows_counted(cursor).items()}


def rows_counted(cursor: Any) -> dict[str, int]:
    # A statement's counters reach this view when it has ended.
    cursor.execute("SELECT pg_stat_force_next_flush()")
    cursor.execute(COUNTED)
    return {name: int(n) for name, n in cursor.fetchall()}


COUNTED = """
    SELECT t.relname, t.seq_tup_read + COALESCE(sum(i.idx_tup_read), 0)
    FROM pg_stat_user_tables t LEFT JOIN pg_stat_user_indexes i ON i.relid = t.relid
    WHERE t.relname LIKE 'audit_%' GROUP BY t.relname, t.seq_tup_read
"""


def backlog(n: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO audit_entry (action, actor_kind, actor)"
            " SELECT 'note.made', 'system', 'countersign' FROM generate_series(1, %s)",
            [n],
        )
        cursor.execute("SELECT count(nextval(pg_get_serial_sequence('audit_entryrow', 'id')))")


@pytest.mark.parametrize(
    ("waiting", "most"), [(12_000, 1000), pytest.param(1_000_000, 2000, marks=pytest.mark.proof)]
)
def test_each_batch_of_a_backlog_reads_as_much_as_the_first(waiting: int, most: int) -> None:
    # Ids that nobody uses are no reason to look again either.
    for _ in range(3):
        backlog(waiting // 3)
    sealing = Sealing()
    assert batch(sealing, 1) == 1

    read = [rows_read(sealing, most) for _ in range(11)]

    for table in ("audit_entryrow", "audit_batch", "audit_tile", "audit_checkpoint"):
        later = [batch[table] for batch in read]
        assert max(later) <= 3 * most + 2000, (table, later)
        assert max(later[1:]) <= later[0] + most // 2, (table, later)


CHANGED = [
    ("UPDATE audit_entryrow SET reason = 1 WHERE id = {5}", "Entry {5} was changed"),
    ("UPDATE audit_entryrow SET at = at - interval '1 s' WHERE id = {2}", "Entry {2} was changed"),
    ("UPDATE audit_entryrow SET salt = 'x' WHERE id = {2}", "Entry {2} was changed"),
    ("UPDATE audit_entryrow SET format = 9 WHERE id = {2}", "Entry {2} was changed"),
    ("DELETE FROM audit_entryrow WHERE id = {3}", "Entry {3} is gone"),
    (
        "UPDATE audit_entryrow SET id = -id WHERE id IN ({1}, {2});"
        "UPDATE audit_entryrow SET id = {2} WHERE id = -{1};"
        "UPDATE audit_entryrow SET id = {1} WHERE id = -{2}",
        "Entry {1} was changed",
    ),
    # Times that no clock shows, and details that are no object: verification goes on.
    ("UPDATE audit_entryrow SET at = 'infinity' WHERE id = {1}", "Entry {1} was changed"),
    ("UPDATE audit_entryrow SET at = '4000-01-01 BC' WHERE id = {2}", "Entry {2} was changed"),
    ("UPDATE audit_entryrow SET details = '[]' WHERE id = {3}", "Entry {3} was changed"),
    (
        "UPDATE audit_batch SET edge = substr(edge, 33, 32) || substr(edge, 1, 32)"
        " || substr(edge, 65) WHERE first_index = 4",
        "Entries 4 to 7 are not what was signed",
    ),
    (
        "DELETE FROM audit_entryrow WHERE id = {9}; DELETE FROM audit_batch WHERE first_index = 8",
        "Cut off: a checkpoint",
    ),
    (
        "DELETE FROM audit_entryrow WHERE id = {4}; DELETE FROM audit_batch WHERE first_index = 4",
        "Leaves 4 to 7 are missing",
    ),
    (
        "UPDATE audit_batch SET edge = sha256('x') || substr(edge, 33) WHERE first_index = 0",
        "Entry {0} was changed",
    ),
    (
        "UPDATE audit_batch SET ids = ids + int8multirange(int8range(9000, 9001))"
        " WHERE first_index = 4",
        "The batch of leaf 4 on says of other leaves too",
    ),
    (
        "UPDATE audit_checkpoint SET note = replace(note, E'\\n8\\n', E'\\n9\\n')",
        "not signed by the given key",
    ),
]


@pytest.mark.parametrize(("forgery", "said"), CHANGED)
def test_a_forger_with_every_right_is_found_out(
    sealed: list[int], forger: psycopg.Connection[Any], forgery: str, said: str
) -> None:
    forger.execute(forgery.format(*sealed))

    wrong = check_live().wrong

    assert any(said.format(*sealed) in sentence for sentence in wrong), wrong


def test_a_row_put_in_among_older_ones_is_found(
    sealed: list[int], forger: psycopg.Connection[Any]
) -> None:
    forger.execute(
        "INSERT INTO audit_entryrow (action, actor, at) VALUES (1, 3, now() - interval '2 days')"
    )
    seal()

    assert any("was put in after" in sentence for sentence in check_live().wrong)


def test_a_changed_body_with_its_leaf_made_anew_is_found_by_the_root(
    sealed: list[int], forger: psycopg.Connection[Any], tmp_path: Path
) -> None:
    forger.execute(f"UPDATE audit_entryrow SET actor = 4 WHERE id = {sealed[6]}")
    made = leaf(read(sealed[6]))
    forger.execute(
        "UPDATE audit_batch SET edge = substr(edge, 1, 64) || %s::bytea || substr(edge, 97)"
        " WHERE first_index = 4",
        [made],
    )

    assert "Entries 4 to 7 are not what was signed" in check_live().wrong[0]
    done = outsider(tmp_path)
    assert (done.returncode, done.stderr[:38]) == (1, "Entries 4 to 7 are not what was signed")


def test_a_tail_cut_with_its_checkpoints_is_found_by_an_anchor(
    sealed: list[int], forger: psycopg.Connection[Any], tmp_path: Path
) -> None:
    newest = Checkpoint.objects.first()
    assert newest
    forger.execute(
        f"DELETE FROM audit_entryrow WHERE id >= {sealed[8]};"
        "DELETE FROM audit_batch WHERE first_index >= 8;"
        "DELETE FROM audit_checkpoint WHERE size > 8"
    )

    assert outsider(tmp_path).returncode == 0
    done = outsider(tmp_path, newest.note)
    assert done.returncode == 1
    assert "Cut off: an anchor" in done.stderr


def test_another_key_signs_nothing(sealed: list[int], tmp_path: Path) -> None:
    other = verify.Key(origins.name(), bytes(32))
    with pytest.raises(verify.Broken):
        verify.read_note(Checkpoint.objects.latest("pk").note, other)


def test_anchors_are_kept_in_a_file_and_said_in_the_log(
    sealed: list[int], settings: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings.ANCHOR_FILE = tmp_path / "else" / "checkpoints"
    caplog.set_level("INFO")

    for checkpoint in Checkpoint.objects.order_by("id"):
        keep(checkpoint)

    read = list(verify.notes(settings.ANCHOR_FILE.read_text()))
    assert [verify.read_note(note, public_key()).size for note in read] == [4, 8, 10]
    assert f"anchor: {origins.name()} 10 " in caplog.text
    assert check_live(read).anchors == 3


def test_paths_lead_to_the_root_at_every_size(sealed: list[int]) -> None:
    write(690)
    seal_all()
    assert Tile.objects.count() == 2
    leaves = [tree.Tree(700).leaf(index) for index in range(700)]

    for size in (1, 2, 7, 256, 257, 511, 512, 513, 700):
        known = verify.Peaks()
        for index in range(size):
            list(known.append(leaves[index]))
        read = tree.Tree(size)
        for index in {0, 1, size // 2, size - 1} - {size}:
            path = read.path(index)
            assert verify.root_by_path(index, size, leaves[index], path) == known.root()
            assert verify.root_by_path(index, size, leaves[index], [*path, bytes(32)]) is None
            wrong = leaves[(index + 1) % 700]
            assert verify.root_by_path(index, size, wrong, path) != known.root()


def test_the_commands_say_it_in_words(
    sealed: list[int], forger: psycopg.Connection[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    record("note.made", actor=SYSTEM)
    call_command("audit_verify")
    assert "10 entries hold" in capsys.readouterr().out
    with sealer():
        call_command("audit_seal")
    assert "1 entries sealed" in capsys.readouterr().out
    call_command("audit_key")
    assert verify.Key.parse(capsys.readouterr().out) == public_key()

    forger.execute(f"DELETE FROM audit_entryrow WHERE id = {sealed[0]}")
    with pytest.raises(SystemExit):
        call_command("audit_verify")
    assert f"Entry {sealed[0]} is gone" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("table", "column"),
    [("audit_tile", "root"), ("audit_batch", "edge"), ("audit_checkpoint", "root")],
)
def test_no_role_of_ours_may_touch_what_is_sealed(
    sealed: list[int], table: str, column: str
) -> None:
    for sql in (f"DELETE FROM {table}", f"UPDATE {table} SET {column} = ''", f"TRUNCATE {table}"):
        for url in ("DATABASE_URL", "DATABASE_OWNER_URL"):
            with psycopg.connect(os.environ[url]) as link, pytest.raises(psycopg.Error):
                link.execute(sql)


TILES = [
    ("UPDATE audit_tile SET hashes = hashes || hashes", "Tile 0/0 is gone, or not what"),
    ("UPDATE audit_tile SET root = sha256('x')", "Tile 0/0 is gone, or not what"),
    ("DELETE FROM audit_tile", "There are 0 tiles of level 0, and 1 would be whole."),
    (
        "INSERT INTO audit_tile VALUES (1, 0, sha256('x'), sha256('x'))",
        "Tile 1/0 is not what the tiles below it say",
    ),
]


@pytest.mark.parametrize(("forgery", "said"), TILES)
def test_a_tile_that_somebody_touched_is_named(
    sealed: list[int], forger: psycopg.Connection[Any], forgery: str, said: str
) -> None:
    write(256)
    seal_all()
    forger.execute(forgery)

    wrong = check_live().wrong

    assert any(said in sentence for sentence in wrong), wrong


def test_broken_exports_are_said_to_be_broken(sealed: list[int], tmp_path: Path) -> None:
    lines = "".join(whole_record()).splitlines()
    shifted = [*lines[:5], *lines[6:]]
    changed = [line.replace("Note 2.", "Note 3.") for line in lines]
    unsigned = [line for line in lines if "checkpoint" not in json.loads(line)]
    for name, content, code, said in [
        ("shifted", shifted, 1, "Leaf 2 is missing"),
        ("changed", changed, 1, "Entries 0 to 3 are not"),
        ("unsigned", unsigned, 2, "Nothing signed"),
        ("garbage", [*lines, "{"], 1, "cannot be read"),
    ]:
        (tmp_path / name).write_text("\n".join(content))
        done = run(tmp_path / "verify.py", tmp_path / name)
        assert (done.returncode, said in done.stderr) == (code, True), (name, done.stderr)


def test_an_export_without_an_entry_says_which_is_gone(
    sealed: list[int], forger: psycopg.Connection[Any], tmp_path: Path
) -> None:
    forger.execute(f"DELETE FROM audit_entryrow WHERE id = {sealed[3]}")

    done = outsider(tmp_path)

    assert (done.returncode, done.stderr) == (
        1,
        f"Entry {sealed[3]} is gone: its leaf 3 is still there.\n",
    )


def test_a_name_that_was_changed_is_named_wherever_it_stands(
    sealed: list[int], forger: psycopg.Connection[Any]
) -> None:
    forger.execute("UPDATE audit_name SET text = 'Nothing.' WHERE text = 'Note 1.'")

    (said,) = check_live().wrong

    assert "was changed: it is not what entries that bear it" in said


def test_a_name_with_a_commitment_made_anew_is_found_by_the_leaves(
    sealed: list[int], forger: psycopg.Connection[Any], tmp_path: Path
) -> None:
    forger.execute(
        "UPDATE audit_name SET text = 'Nothing.',"
        " commitment = audit_commitment(salt, kind, subject, 'Nothing.', server, definition)"
        " WHERE text = 'Note 1.'"
    )

    (*_, said) = check_live().wrong

    assert "was changed: it is not what leaf" in said
    assert outsider(tmp_path).returncode == 1


def test_an_entry_of_a_name_that_nobody_has_is_named(
    sealed: list[int], forger: psycopg.Connection[Any]
) -> None:
    forger.execute("INSERT INTO audit_entryrow (action, actor) VALUES (1, 123456)")
    seal()

    (said,) = check_live().wrong

    assert "bears name 123456, which is not there" in said


def test_a_name_with_a_commitment_to_something_else_is_named(
    sealed: list[int], forger: psycopg.Connection[Any]
) -> None:
    forger.execute(
        "INSERT INTO audit_name (kind, text, salt, commitment)"
        " VALUES ('person', 'alice', 'salt', sha256('something else'))"
    )

    (said,) = check_live().wrong

    assert "was changed: it is not what entries that bear it" in said


@pytest.mark.parametrize("field", ["reason", "actor", "action", "id", "at", "details", "call_id"])
def test_an_outsider_finds_what_an_export_says_otherwise(
    sealed: list[int], tmp_path: Path, field: str
) -> None:
    head, *entries = [json.loads(line) for line in whole_record()]
    other = {"id": 1, "details": {"x": 1}, "call_id": str(UUID(int=7))}
    at = next(n for n, line in enumerate(entries) if "entry" in line)
    moved = entries[at]["entry"]["at"].replace("20", "19", 1)
    entries[at]["entry"][field] = moved if field == "at" else other.get(field, "other")

    done = run_on(tmp_path, [head, *entries])

    assert (done.returncode, "are not what was signed" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    ("said", "forgotten"),
    [
        pytest.param({"person": "alice"}, "", id="a person it has not"),
        pytest.param({"person_id": 7}, "", id="a person's number"),
        pytest.param({"tool": "delete_all"}, "", id="a tool"),
        pytest.param({"server": "bank"}, "", id="a server"),
        pytest.param({"definition_digest": "ab"}, "", id="a definition"),
        pytest.param({"reason": "He asked for it."}, "", id="a reason"),
        pytest.param({"actor_kind": "person", "actor": "alice"}, "", id="another actor"),
        pytest.param({"details": {"effect": "deny", "rule": "all", "n": 1}}, "", id="the effect"),
        pytest.param({"details": {"effect": True, "rule": "all", "n": 1}}, "", id="its type"),
        pytest.param({"details": {"effect": "allow", "n": 1}}, "", id="no rule"),
        pytest.param({"approved_by": "alice"}, "", id="what no entry has"),
        pytest.param({}, "agent", id="an agent as if forgotten, whose name is there"),
        pytest.param({"agent": "rogue"}, "agent", id="another agent as if forgotten"),
        pytest.param({"action": "note.kept"}, "action", id="an action as if forgotten"),
    ],
)
def test_an_export_says_nothing_that_its_leaves_do_not_commit_to(
    tmp_path: Path, said: dict[str, Any], forgotten: str
) -> None:
    scout = Actor("agent", 1, "scout")
    record("note.made", actor=scout, agent=(1, "scout"), effect="allow", rule="all", n=1)
    seal()
    *heads, line = [json.loads(line) for line in whole_record()]
    if forgotten:
        salt = bytes.fromhex(line["names"][forgotten]["salt"])
        name = {"agent": ("agent", 1, "scout"), "action": ("action", None, "note.made")}[forgotten]
        commitment = verify.commitment_of_name(salt, *name).hex()
        line["names"][forgotten] = {"commitment": commitment}
    line["entry"] |= said

    done = run_on(tmp_path, [*heads, line])

    assert done.returncode == 1, done.stdout
    assert "cannot be read" in done.stderr or "are not what was signed" in done.stderr


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ({"actor_kind": "", "actor_id": None, "actor": ""}, 0),
        ({"actor_id": None, "actor": ""}, 1),
        ({"actor": "", "actor_kind": ""}, 1),
        ({"actor_kind": "agent", "actor_id": 1, "actor": "scout"}, 1),
    ],
)
def test_of_an_actor_that_was_forgotten_nothing_can_be_said(
    tmp_path: Path, said: dict[str, Any], code: int
) -> None:
    ada = "person", 7, "ada"
    record("note.made", actor=Actor(*ada), agent=(1, "scout"))
    commitment = bytes(Name.objects.get(kind="person", text="ada").commitment).hex()
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"]) as owner:
        owner.execute(
            "INSERT INTO audit_entry (action, actor_kind, actor, details)"
            " VALUES (%s, 'system', 'x', %s)",
            [verify.FORGOTTEN, json.dumps({"commitments": [commitment]})],
        )
    seal()
    *heads, line, declared = [json.loads(line) for line in whole_record()]
    line["names"]["actor"] = {"commitment": commitment}
    line["entry"] |= said

    assert run_on(tmp_path, [*heads, line, declared]).returncode == code


def test_one_line_with_a_path_takes_nothing_else_in(sealed: list[int], tmp_path: Path) -> None:
    *heads, line, last = [json.loads(line) for line in whole_record()]
    size = sealed_size()
    proof = last | {"size": size, "path": [one.hex() for one in tree.Tree(size).path(size - 1)]}
    assert run_on(tmp_path, [heads[0], heads[1], heads[2], proof]).returncode == 0
    checkpoints = [head for head in heads if "checkpoint" in head]
    forged = line | {"index": 0}
    forged["entry"] = line["entry"] | {"reason": "Somebody else's words."}

    for lines in ([forged, proof], [proof, forged]):
        done = run_on(tmp_path, [*checkpoints, *lines])
        assert (done.returncode, "are two files" in done.stderr) == (1, True), done.stdout


def test_an_entry_of_format_1_is_no_part_of_one_of_format_2() -> None:
    """What is committed to could be another entry as JSON: nothing passes it off as one."""
    record("note.made", actor=SYSTEM)
    seal()
    *_, line = [json.loads(line) for line in whole_record()]
    invented = line["entry"] | {"action": "approval.voted", "person": "alice", "person_id": 7}
    text = verify.canonical(invented)
    line["names"]["reason"] = {"commitment": text.hex()}
    form = verify.Form2()
    form.add("reason", text)
    head = form.written.removesuffix(text)

    with pytest.raises(ValueError, match="32 bytes"):
        verify.leaf_of(line)
    with pytest.raises(ValueError, match="16 bytes"):
        verify.leaf_of({"format": 1, "salt": head.hex(), "entry": invented})
    assert not StoredName("reason", None, "", "", "", None, text).holds


@pytest.mark.parametrize(
    "said",
    [
        {"id": True},
        {"agent_id": "1"},
        {"transaction": "1.9"},
        {"transaction": 7},
        {"at": "2026-11-23T08:00:00.000000+01:00"},
    ],
)
def test_nothing_is_written_in_two_ways(tmp_path: Path, said: dict[str, Any]) -> None:
    record("note.made", actor=Actor("agent", 1, "scout"), agent=(1, "scout"))
    seal()
    *heads, line = [json.loads(line) for line in whole_record()]
    line["entry"] |= said

    done = run_on(tmp_path, [*heads, line])

    assert (done.returncode, "cannot be read" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    "spoilt",
    [
        lambda line: line.replace('"index"', '"entry":{"action":"vote"},"index"', 1),
        lambda line: line.replace('"index"', '"decided_by":"mallory","index"', 1),
        lambda line: line.replace('"reason":"', '"reason":"Forged.","reason":"', 1),
    ],
)
def test_no_member_stands_twice_or_besides(
    sealed: list[int], tmp_path: Path, spoilt: Callable[[str], str]
) -> None:
    *heads, line = whole_record()
    file = tmp_path / "export.jsonl"
    file.write_text("".join([*heads, spoilt(line)]))

    done = run(tmp_path / "verify.py", file)

    assert (done.returncode, "cannot be read" in done.stderr) == (1, True)


def test_words_beside_a_forgotten_name_are_no_words(
    sealed: list[int], forger: psycopg.Connection[Any]
) -> None:
    forger.execute("UPDATE audit_name SET text = 'Nothing.', salt = NULL WHERE text = 'Note 1.'")
    number = Name.objects.get(text="Nothing.").pk
    bearing = list(
        EntryRow.objects.filter(reason=number).order_by("id").values_list("pk", flat=True)
    )

    said, _undeclared = check_live().wrong

    assert "was changed: it is not what entries that bear it" in said
    assert changed(sealed) == bearing
    assert body(read(bearing[0]))["reason"] == ""


def test_parts_are_checked_in_processes_of_their_own(
    sealed: list[int], forger: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("audit.live.PART", 1)
    monkeypatch.setattr("audit.live.FEW", 0)
    monkeypatch.setattr("os.sched_getaffinity", lambda pid: {0, 1})
    write(900)
    seal_all()

    found = check_live()

    assert (found.wrong, found.entries, found.size) == ([], 910, 910)
    last = list(in_order())[-1][1]
    forger.execute("UPDATE audit_entryrow SET reason = 1 WHERE id IN (%s, %s)", [sealed[0], last])
    assert [sentence.partition(":")[0] for sentence in check_live().wrong] == [
        f"Entry {sealed[0]} was changed",
        f"Entry {last} was changed",
    ]


def test_an_hour_late_is_named_across_parts(
    forger: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("audit.live.PART", 1)
    write(600)
    newest = Entry.objects.latest("id").pk
    forger.execute("UPDATE audit_entryrow SET at = at - interval '1 hour' WHERE id = %s", [newest])
    seal_all()

    (said,) = check_live().wrong
    assert said.startswith(f"Entry {newest} says ")
    assert said.endswith("as leaf 599.")


def test_what_was_checked_before_is_trusted(
    sealed: list[int], forger: psycopg.Connection[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    write(800)
    seal_all()
    write(100)
    seal_all()
    forger.execute("UPDATE audit_entryrow SET reason = 1 WHERE id = %s", [sealed[3]])
    assert len(check_live().wrong) == 1

    call_command("audit_verify", since=810)
    said = capsys.readouterr().out
    assert "Leaves before 512 were not read: the checkpoint of 810 entries is trusted." in said
    assert "398 entries hold, by 2 checkpoints" in said
    with pytest.raises(NotSigned, match="No checkpoint of 811 entries"):
        check_live(since=811)
    # And what came later is compared with it.
    forger.execute("UPDATE audit_entryrow SET reason = 1 WHERE id = %s", [max(sealed) + 805])
    assert len(check_live(since=810).wrong) == 1


def test_an_export_that_was_cut_short_goes_on_where_it_stopped(
    sealed: list[int], tmp_path: Path
) -> None:
    whole, cut = tmp_path / "whole.jsonl", tmp_path / "cut.jsonl"
    call_command("audit_export", str(whole))
    content = whole.read_bytes()
    lines = content.splitlines(keepends=True)
    # The record goes on meanwhile: the export stays the one that was begun.
    write(3)
    seal()

    for end in (len(lines[0]) + 5, len(b"".join(lines[:6])), len(content) - 7, len(content)):
        cut.write_bytes(content[:end])
        call_command("audit_export", str(cut), "--resume")
        if end > len(b"".join(lines[:3])):
            assert cut.read_bytes() == content
        assert run(tmp_path / "verify.py", cut).returncode == 0


def test_no_two_installations_sign_alike(sealed: list[int]) -> None:
    assert re.fullmatch("countersign[.]invalid/[0-9a-f]{32}", origins.name())
    assert Checkpoint.objects.latest("pk").note.startswith(f"{origins.name()}\n10\n")


@pytest.mark.parametrize("change", ["DISABLE TRIGGER {}", "DISABLE TRIGGER USER", "DROP"])
def test_a_trigger_that_is_gone_or_off_is_named(
    sealed: list[int], change: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"], autocommit=True) as owner:
        (name,) = owner.execute(
            "SELECT tgname FROM pg_trigger WHERE tgrelid = 'audit_batch'::regclass"
            " AND tgname LIKE 'pgtrigger_no_delete%'"
        ).fetchall()[0]
        (made,) = owner.execute(
            "SELECT pg_get_triggerdef(oid) FROM pg_trigger WHERE tgname = %s", [name]
        ).fetchall()[0]
        changed = f"ALTER TABLE audit_batch {change.format(name)}"
        owner.execute(f"DROP TRIGGER {name} ON audit_batch" if change == "DROP" else changed)
        try:
            with pytest.raises(SystemExit):
                call_command("audit_verify")
        finally:
            owner.execute("ALTER TABLE audit_batch ENABLE TRIGGER USER")
            if change == "DROP":
                owner.execute(made)

    said = capsys.readouterr().err
    assert "The trigger no_delete of audit_batch is gone or off" in said
    call_command("audit_verify")


@pytest.mark.parametrize("entries", [12_000, pytest.param(1_000_000, marks=pytest.mark.proof)])
def test_each_entry_is_read_a_few_times_however_many_there_are(
    entries: int, forger: psycopg.Connection[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    backlog(entries)
    seal_all()
    # As autovacuum does within a minute, unless it came while the tables were still empty.
    forger.execute("ANALYZE")

    read = read_by_verifying(0)

    assert f"{entries} entries hold" in capsys.readouterr().out
    assert read["audit_entryrow"] <= 4 * entries
    assert read["audit_batch"] <= entries // 10 + 1000
    assert read["audit_tile"] <= entries // 20 + 1000


def read_by_verifying(since: int) -> dict[str, int]:
    with connection.cursor() as cursor:
        before = rows_counted(cursor)
        call_command("audit_verify", since=since)
        return {name: n - before.get(name, 0) for name, n in rows_counted(cursor).items()}


def test_what_was_checked_before_is_not_read_again(
    forger: psycopg.Connection[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """However long the record is: every table is read by what is new of it."""
    read = []
    # The planner is told that all is long, as it comes to be.
    for waiting in (3000, 9000, 27_000):
        write(waiting)
        with sealer():
            sealing = Sealing()
            while sealing.batch(100):
                pass
        since = sealed_size()
        write(300)
        seal_all()
        forger.execute("ANALYZE")
        read.append(read_by_verifying(since))

    assert capsys.readouterr().out.count("Leaves before ") == 3
    short, *longer = read
    for table in ("audit_entryrow", "audit_batch", "audit_tile", "audit_checkpoint", "audit_name"):
        for one in longer:
            assert one[table] <= short[table] + 1200, (table, short[table], one[table])
