"""What somebody with a way into the database tries with the record, and who finds it.

Each manipulation is tried by four parties, with their real database roles. Each goes as far as it
can: the owner takes triggers away, and with the sealer's key seals and signs anew. Then a sealer of
the installation starts, a minute passes, and everybody looks who checks.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psycopg
from django.core.management import call_command
from django.db import connection

from audit import verify
from audit.exporting import whole_record
from audit.leaves import sealed_size
from audit.models import Checkpoint, Tile
from audit.sealing import Inconsistent, signed
from audit.signing import SigningKey, read_key
from audit.tree import Tree, split
from config.seal import Sealer
from tests.database import Databases
from tests.sealing import seal_all, sealer

FILES = ("last-checkpoint", "checkpoints")


@dataclass(frozen=True)
class Scene:
    """What there is to be touched, by its ids: some of it in the middle of the record."""

    databases: Databases
    data: Path
    # Two entries in the middle, the newest two, and an id between that nobody used.
    middle: int
    beside: int
    newest: int
    unused: int
    call: str
    held: str
    approver: int
    anchors: Sequence[str]
    trusted: Sequence[verify.Trusted]
    key_file: Path

    def put_files_back(self) -> None:
        """What the sealer's host remembers (audit/anchors.py)."""
        for name in FILES:
            (self.data / name).write_text(self.anchors[-1])

    def key(self) -> SigningKey:
        return read_key(self.key_file)


@dataclass(frozen=True)
class Party:
    name: str
    # Of the environment's URLs.
    role: str
    has_key: bool = False

    @property
    def is_owner(self) -> bool:
        return self.role == "DATABASE_OWNER_URL"

    def url(self, scene: Scene) -> str:
        if self.role == "seal":
            return scene.databases.seal_url(os.environ)
        return os.environ[self.role]


PARTIES = (
    Party("application", "DATABASE_URL"),
    Party("sealer, with its key", "seal", has_key=True),
    Party("owner", "DATABASE_OWNER_URL"),
    Party("owner, with the sealer's key", "DATABASE_OWNER_URL", has_key=True),
)

Link = psycopg.Connection[Any]
Attempt = Callable[[Scene, Link, Party], None]


@dataclass
class Outcome:
    """`refused`: by what, at first; the owner then takes the triggers away."""

    refused: str = ""
    was_done: bool = False
    found: list[str] = field(default_factory=list)
    found_by_anchor: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        words = f"refused: {self.refused}" if self.refused else ""
        if not self.was_done:
            return words
        by = ", ".join(self.found) or "**not found**"
        if more := [one for one in self.found_by_anchor if one not in self.found]:
            by = (
                f"{by}; with an anchor {', '.join(more)}"
                if self.found
                else (f"**only with an anchor**: {', '.join(more)}")
            )
        return f"{words}; without it {by}" if words else by


# -- What is tried --------------------------------------------------------------------------------


def change_entry(scene: Scene, link: Link, party: Party) -> None:
    """Another name with a commitment of its own, another time, other details."""
    link.execute(
        "UPDATE audit_name SET text = 'Nothing.',"
        " commitment = audit_commitment(salt, kind, subject, 'Nothing.', server, definition)"
        " WHERE text = 'Note 7.'"
    )
    link.execute(
        "UPDATE audit_entryrow SET at = at + interval '1 ms', details = '{\"number\": 8}'"
        " WHERE id = %s",
        [scene.middle],
    )


def remove_entry(scene: Scene, link: Link, party: Party) -> None:
    link.execute("DELETE FROM audit_entryrow WHERE id = %s", [scene.middle])


def cut_off(scene: Scene, link: Link, party: Party) -> None:
    link.execute("DELETE FROM audit_entryrow WHERE id >= %s", [scene.newest])
    link.execute(
        "DELETE FROM audit_checkpoint WHERE size > (SELECT max(first_index) FROM audit_batch)"
    )
    link.execute("DELETE FROM audit_batch WHERE ids @> %s::bigint", [scene.newest])


def date_back(scene: Scene, link: Link, party: Party) -> None:
    """In the middle, with the time of its neighbour."""
    link.execute(
        "INSERT INTO audit_entryrow (id, at, action, actor)"
        " SELECT %s, at, action, actor FROM audit_entryrow WHERE id = %s",
        [scene.unused, scene.middle],
    )


def swap(scene: Scene, link: Link, party: Party) -> None:
    for source, target in ((scene.middle, -1), (scene.beside, scene.middle), (-1, scene.beside)):
        link.execute("UPDATE audit_entryrow SET id = %s WHERE id = %s", [target, source])


def vote(scene: Scene, link: Link, party: Party) -> None:
    link.execute(
        "INSERT INTO approvals_vote (approval_id, person_id, approve, reason, seen_digest, at)"
        " SELECT id, %s, true, '', call_digest, now() FROM calls_call WHERE id = %s",
        [scene.approver, scene.held],
    )


def vote_and_say_so(scene: Scene, link: Link, party: Party) -> None:
    vote(scene, link, party)
    link.execute(
        "INSERT INTO audit_entry (action, actor_kind, actor_id, actor, call_id, details)"
        " SELECT 'approval.voted', 'person', %s, 'pat', id, jsonb_build_object("
        "  'approve', true, 'seen_digest', call_digest, 'step_up', '')"
        " FROM calls_call WHERE id = %s",
        [scene.approver, scene.held],
    )


def move_call(scene: Scene, link: Link, party: Party) -> None:
    link.execute(
        "UPDATE calls_call SET state = 'withdrawn', seq = seq + 1 WHERE id = %s", [scene.held]
    )


def change_payload(scene: Scene, link: Link, party: Party) -> None:
    """And, with the key, whatever else has a digest of it."""
    link.execute("UPDATE calls_result SET body = '{}' WHERE call_id = %s", [scene.call])
    link.execute(
        "UPDATE calls_call SET arguments = '{}', arguments_digest = encode(sha256('{}'), 'hex'),"
        " result_digest = encode(sha256('{}'), 'hex') WHERE id = %s",
        [scene.call],
    )
    if party.has_key:
        for column in ("arguments", "result"):
            link.execute(
                f"UPDATE audit_entryrow SET {column} = sha256('{{}}')"
                f" WHERE call_id = %s AND {column} IS NOT NULL",
                [scene.call],
            )


def change_tile(scene: Scene, link: Link, party: Party) -> None:
    """A leaf in it is that of no entry. Who may not change one adds one."""
    if party.is_owner:
        link.execute("UPDATE audit_tile SET hashes = sha256('x') || substr(hashes, 33)")
    else:
        link.execute("INSERT INTO audit_tile VALUES (1, 0, sha256('x'), sha256('x'))")


def sign_another(scene: Scene, link: Link, party: Party) -> None:
    """A second checkpoint of the same size, which says something else."""
    newest = Checkpoint.objects.latest("pk")
    size, at = newest.size, newest.at
    other = verify.node_hash(b"", b"")
    note = signed(size, other, at, scene.key()) if party.has_key else "signed by nobody"
    link.execute(
        "INSERT INTO audit_checkpoint (size, root, at, note) VALUES (%s, %s, %s, %s)",
        [size, other, at, note],
    )


def keep_from_sealing(scene: Scene, link: Link, party: Party) -> None:
    """By the lock that says who seals, held until the end; an entry comes, and is not sealed."""
    link.execute("SELECT pg_advisory_lock(hashtext('countersign audit'))")
    with connection.cursor() as cursor:
        cursor.execute(ENTRY)


def begin_anew(scene: Scene, link: Link, party: Party) -> None:
    """All entries, as if one of them had never been."""
    link.execute("CREATE TABLE kept AS TABLE audit_entryrow" if party.is_owner else "SELECT 1")
    link.execute("TRUNCATE audit_entryrow, audit_tile, audit_batch, audit_checkpoint")
    link.execute(
        "INSERT INTO audit_entryrow OVERRIDING SYSTEM VALUE SELECT * FROM kept WHERE id <> %s",
        [scene.middle],
    )
    link.execute("DROP TABLE kept")


def forget(scene: Scene, link: Link, party: Party) -> None:
    link.execute("UPDATE audit_name SET text = '', salt = NULL WHERE text = 'Note 7.'")


ENTRY = "INSERT INTO audit_entry (action, actor_kind, actor) VALUES ('note.late', 'system', 'x')"

# In the words of the document. What the key is for: where nothing else is said, to seal anew all
# that is there then.
KINDS: tuple[tuple[str, Attempt], ...] = (
    ("Changes an entry: a name, its time, its details", change_entry),
    ("Removes an entry in the middle", remove_entry),
    ("Cuts off the newest entries, with their leaves and checkpoints", cut_off),
    ("Puts in an entry of an earlier date", date_back),
    ("Swaps two entries", swap),
    ("Moves a call without an entry", move_call),
    ("Votes in somebody's name, without an entry", vote),
    ("Votes in somebody's name, and writes the entry too", vote_and_say_so),
    ("Changes the arguments and the result of a call", change_payload),
    ("Changes a tile, or adds one", change_tile),
    ("Adds a checkpoint that says something else", sign_another),
    ("Keeps an entry from being sealed", keep_from_sealing),
    ("Empties everything, and writes it again without one entry", begin_anew),
    ("Empties a name, without the entry that says so", forget),
)
# Those after which there is nothing to seal anew.
AS_IT_IS = (keep_from_sealing, sign_another)


def try_it(scene: Scene, attempt: Attempt, party: Party) -> Outcome:
    scene.put_files_back()
    outcome = Outcome()
    with psycopg.connect(party.url(scene), autocommit=True) as link:
        outcome.refused = refused(scene, attempt, party, link)
        outcome.was_done = not outcome.refused
        if outcome.refused and party.is_owner:
            with without_triggers(link):
                attempt(scene, link, party)
            outcome.was_done = True
        if not outcome.was_done:
            return outcome
        if party.has_key and party.is_owner and attempt not in AS_IT_IS:
            seal_anew(scene, link, attempt)
        stopped = sealer_starts()
        outcome.found = [*stopped, *checked(scene, anchored=False)]
        outcome.found_by_anchor = [*stopped, *checked(scene, anchored=True)]
    return outcome


def refused(scene: Scene, attempt: Attempt, party: Party, link: Link) -> str:
    try:
        with link.transaction():
            attempt(scene, link, party)
    except psycopg.errors.InsufficientPrivilege:
        return "grant"
    except psycopg.errors.RaiseException:
        return "trigger"
    return ""


@contextmanager
def without_triggers(link: Link) -> Iterator[None]:
    """As a table's owner may; afterwards they are there as before."""
    tables = link.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
    for (table,) in tables:
        link.execute(f"ALTER TABLE {table} DISABLE TRIGGER USER")
    yield
    for (table,) in tables:
        link.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")


def seal_anew(scene: Scene, link: Link, attempt: Attempt) -> None:
    """What is there now, as if it had always been; with the files of the sealer's own host."""
    for name in FILES:
        (scene.data / name).unlink()
    with without_triggers(link):
        if attempt is change_tile:
            # Else there would be nothing of it left.
            sign_tiles(scene, link)
            return
        link.execute("TRUNCATE audit_tile, audit_batch, audit_checkpoint")
    seal_all()


def sign_tiles(scene: Scene, link: Link) -> None:
    """And no entries."""
    (hashes,) = Tile.objects.values_list("hashes", flat=True)
    link.execute("UPDATE audit_tile SET root = %s", [verify.peaks(split(bytes(hashes)))[0]])
    link.execute("DELETE FROM audit_checkpoint")
    tree = Tree(sealed_size()).right_edge()
    now = datetime.now(UTC)
    link.execute(
        "INSERT INTO audit_checkpoint (size, root, at, note) VALUES (%s, %s, %s, %s)",
        [tree.size, tree.root(), now, signed(tree.size, tree.root(), now, scene.key())],
    )


def sealer_starts() -> list[str]:
    try:
        with sealer():
            Sealer().once()
    except Inconsistent:
        return ["the sealer"]
    return []


def checked(scene: Scene, *, anchored: bool) -> list[str]:
    """By whom it is found. A minute has passed, after which nothing is unsealed for a reason."""
    anchors = scene.anchors if anchored else []
    file = scene.data / "anchors"
    file.write_text("\n".join(anchors))
    found = []
    with patch("audit.structure.LATE", timedelta(0)), redirect_stderr(StringIO()):
        try:
            with redirect_stdout(StringIO()):
                call_command("audit_verify", anchor=[file])
        except SystemExit:
            found.append("`audit_verify`")
    export = verify.check_export(whole_record(), scene.trusted, anchors)
    if export.wrong or not export.checkpoints + export.anchors:
        found.append("`verify.py`")
    return found
