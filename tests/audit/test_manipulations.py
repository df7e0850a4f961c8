"""The table of docs/en/concepts/audit-manipulations.md is what was seen.

Each manipulation is tried by everybody, in a real database with the real roles.
"""

import os
import re
from pathlib import Path
from typing import Any

import pytest
from django.db import connection

from accounts.models import Agent, User
from audit.models import Checkpoint, Entry
from audit.services import SYSTEM, entry, record, record_all
from audit.signing import keys
from calls.record.states import State
from tests.approvals.test_quorum import approver
from tests.audit.manipulations import KINDS, PARTIES, Scene, try_it
from tests.console import scenery
from tests.database import Cleaner, Databases
from tests.sealing import seal_all

pytestmark = [pytest.mark.alone, pytest.mark.django_db(transaction=True)]

DOCUMENT = Path(__file__).parents[2] / "docs" / "en" / "concepts" / "audit-manipulations.md"
# Says to write the table instead of comparing it.
WRITE = "TESTS_WRITE_TABLES"
TABLE = re.compile(r"^\| somebody .*?\n(?=\n)", re.MULTILINE | re.DOTALL)


def write(number: int) -> Entry:
    return record("note.made", actor=SYSTEM, reason=f"Note {number}.", number=number)


def unused_id() -> int:
    """One that was given out, and of which no entry came."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval(pg_get_serial_sequence('audit_entryrow', 'id'))")
        return int(cursor.fetchone()[0])


@pytest.fixture
def scene(databases: Databases, scout: Agent, olga: User, settings: Any, tmp_path: Path) -> Scene:
    settings.DATA_DIR, settings.ANCHOR_FILE = tmp_path, tmp_path / "checkpoints"
    tool = scenery.offered(scout, scenery.server("mailer", olga, scenery.SEND).tools.get())
    call = scenery.call(scout, tool, scenery.MAIL, State.QUEUED)
    scenery.run(call)
    scenery.finish(call, {"content": []})
    held = scenery.call(scout, tool, scenery.MAIL, State.HELD)
    pat = approver("pat")
    first = [write(n).pk for n in range(10)]
    # An hour ago: what is put in among them comes late.
    with databases.superuser(os.environ) as link:
        link.execute("SET session_replication_role = replica")
        link.execute("UPDATE audit_entryrow SET at = at - interval '1 hour'")
    unused = unused_id()
    record_all(entry("note.made", actor=SYSTEM) for _ in range(260))
    seal_all()
    newest = write(11).pk
    seal_all()
    checkpoint = Checkpoint.objects.first()
    assert checkpoint
    return Scene(
        databases=databases,
        data=tmp_path,
        middle=first[7],
        beside=first[8],
        newest=newest,
        unused=unused,
        call=str(call),
        held=str(held),
        approver=pat.pk,
        anchors=[checkpoint.note],
        trusted=keys(),
        key_file=settings.SEAL_KEY_FILE,
    )


def seen(scene: Scene) -> str:
    with scene.databases.superuser(os.environ) as link:
        # What is there now is what every attempt begins with.
        again = Cleaner(link)
        rows = []
        for words, attempt in KINDS:
            cells = []
            for party in PARTIES:
                cells.append(str(try_it(scene, attempt, party)))
                again.clean()
            rows.append(f"| {words} | {' | '.join(cells)} |")
    heads = [party.name for party in PARTIES]
    return "\n".join([f"| somebody … | {' | '.join(heads)} |", "|---" * 5 + "|", *rows, ""])


def test_every_manipulation_is_found_by_whom_the_document_says(scene: Scene) -> None:
    table = seen(scene)
    document = DOCUMENT.read_text()
    if os.environ.get(WRITE):
        DOCUMENT.write_text(TABLE.sub(lambda _: table, document))
        return
    (written,) = TABLE.findall(document)

    assert written == table, f"{WRITE}=1 writes the table anew"
