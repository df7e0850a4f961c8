"""Nothing starts on a database that is older than what lies outside of it says."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection, transaction
from django_celery_beat.models import PeriodicTask

from accounts.models import Agent
from approvals import payload_erasure
from audit import erasure_ledger, origins, position
from audit.erasure_ledger import Erasures
from audit.models import Entry, Rollback
from audit.position import KnownPosition
from audit.rollback import LaggingStandby, PositionKeeper
from audit.services import SYSTEM, record
from calls.models import Call
from calls.record.states import State
from config import children
from config.older_database import find_refusal
from config.probes import PLACES
from registry.models import Tool
from tests.config.test_probes import answer, three_ports
from tests.console import scenery
from tests.database import Databases
from tests.faults.proxy import DatabaseWire
from tests.processes import HOST, ROOT, Running

LOOKS = 1000
pytestmark = pytest.mark.django_db(transaction=True)
RUN = "run `python3 manage.py restore --declare`"
STARTED = {
    "web": children.web(HOST, 0),
    "agents": children.agents(HOST, 0),
    "worker": children.worker(),
    "beat": children.beat(),
    "seal": children.seal(),
    "prepare": [sys.executable, "manage.py", "prepare"],
}
SERVING = {"web": children.web, "agents": children.agents}
CALLS = "UPDATE calls_call SET arguments = '{\"again\": 1}' WHERE id = %s"
ENTRIES = """
    DELETE FROM audit_entryrow WHERE call_id = %s
    AND action IN (SELECT id FROM audit_name WHERE kind = 'action' AND text = 'payload.erased')
"""


@pytest.fixture(autouse=True)
def data(settings: Any, tmp_path: Path) -> Path:
    """A data directory of this test's own: as on a new host, empty."""
    settings.DATA_DIR = tmp_path
    settings.ERASURE_LEDGER = tmp_path / "erasures"
    settings.ANCHOR_FILE = str(tmp_path / "checkpoints")
    return tmp_path


@pytest.fixture
def call(scout: Agent, olga: Any) -> Call:
    tool: Tool = scenery.server("mailer", olga, scenery.SEND).tools.get()
    call_id = scenery.call(scout, tool, scenery.MAIL, State.QUEUED)
    scenery.run(call_id)
    scenery.finish(call_id, {"content": []})
    return Call.objects.get(pk=call_id)


@pytest.fixture
def other() -> Iterator[psycopg.Connection[Any]]:
    with psycopg.connect(os.environ["DATABASE_URL"]) as other:
        yield other


def own_transaction() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_xact_id()::text")
        (number,) = cursor.fetchone()
    return str(number)


def bring_back(call: Call, databases: Databases) -> None:
    """Makes this a database from before its erasure."""
    with databases.superuser(os.environ) as link:
        link.execute("SET session_replication_role = replica")
        link.execute(CALLS, [call.pk])
        link.execute(ENTRIES, [call.pk])


def next_transaction() -> tuple[str, int]:
    with connection.cursor() as cursor:
        cursor.execute(position.NEXT)
        place, following = cursor.fetchone()
    return place, int(following)


def go_back(data: Path) -> None:
    """What this host would have seen, had its database not been replaced by an older one."""
    place, following = next_transaction()
    (data / "position").write_text(f"{place:>30} {following + 1_000_000:>20}\n")


@pytest.mark.long
@pytest.mark.parametrize("name", STARTED)
def test_no_process_starts_on_a_database_that_went_back(data: Path, name: str) -> None:
    go_back(data)

    done = subprocess.run(
        STARTED[name],
        env={**os.environ, "COUNTERSIGN_DATA": str(data)},
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert done.returncode == 1
    assert "The database went back in time: its next transaction is" in done.stderr
    assert RUN in done.stderr
    assert "this host has seen" in Rollback.objects.get().reason
    # Beat writes its schedule before it signals its start.
    assert not PeriodicTask.objects.exists()


@pytest.fixture
def wire() -> Iterator[DatabaseWire]:
    with DatabaseWire(os.environ["DATABASE_URL"]) as wire:
        yield wire


@pytest.fixture
def without_database(name: str, data: Path, wire: DatabaseWire) -> Iterator[Running]:
    """A process that has started while its database did not answer."""
    wire.cut()
    first = three_ports()
    port = first + PLACES.get(name, 0)
    process = Running(
        SERVING[name](HOST, port) if name in SERVING else STARTED[name],
        env={
            **os.environ,
            "COUNTERSIGN_DATA": str(data),
            "DATABASE_URL": wire.url,
            "COUNTERSIGN_PROBES": "" if name in SERVING else f"{HOST}:{first}",
        },
        log=data / "log",
        ready=lambda _: answer(port, "/livez")[0] == 200,
    )
    yield process
    process.kill()


@pytest.mark.long
@pytest.mark.parametrize("name", [*SERVING, "worker", "seal"])
def test_a_process_that_starts_without_its_database_compares_it_later(
    without_database: Running, data: Path, wire: DatabaseWire
) -> None:
    go_back(data)

    wire.let_go()

    assert without_database.process.wait(60) == 1
    assert "The database went back in time: its next transaction is" in without_database.text()
    assert RUN in without_database.text()


def test_of_a_copy_nothing_starts_before_it_is_declared(databases: Databases) -> None:
    with databases.superuser(os.environ) as link:
        link.execute("SET session_replication_role = replica")
        link.execute("UPDATE audit_origin SET table_oid = table_oid + 1")

    assert "restored from a backup or copied" in find_refusal()
    assert RUN in find_refusal()


def test_on_a_new_host_a_database_is_taken_as_it_is(call: Call, data: Path) -> None:
    payload_erasure.erase(call, by=SYSTEM, reason="Asked for.")
    for kept in data.iterdir():
        kept.unlink()

    assert find_refusal() == ""
    # From here on this host knows.
    PositionKeeper().look()
    erasure_ledger.keep_up()
    assert position.read().transaction > 0
    assert find_refusal() == ""


def test_a_ledger_that_says_more_was_erased_stops_every_start(
    call: Call, databases: Databases
) -> None:
    payload_erasure.erase(call, by=SYSTEM, reason="Asked for.")
    assert find_refusal() == ""
    bring_back(call, databases)

    assert "what the ledger of erasures" in find_refusal()
    assert RUN in find_refusal()
    assert not origins.is_at_home()


def test_an_erasure_that_broke_off_stops_nothing(call: Call) -> None:
    with transaction.atomic():
        payload_erasure.erase(call, by=SYSTEM, reason="Asked for.")
        transaction.set_rollback(True)

    assert str(call.pk) in erasure_ledger.read(erasure_ledger.location()).payloads
    assert find_refusal() == ""


def test_an_erasure_that_the_database_lost_in_a_crash_stops_nothing(
    call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    with transaction.atomic():
        payload_erasure.erase(call, by=SYSTEM, reason="Asked for.")
        transaction.set_rollback(True)
    # Its number went to another transaction, or is one to come.
    monkeypatch.setattr(erasure_ledger, "took_place", lambda _number: True)

    assert find_refusal() == ""
    # It does not count either once others were erased.
    erasure_ledger.add(Erasures(names={"0" * 64}))
    assert find_refusal() == ""
    assert [line.is_committed for line in erasure_ledger.newest()] == [False, True]


def test_an_erasure_that_took_place_is_confirmed_by_the_next_start(
    call: Call, databases: Databases, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        # Its process is killed once the database has committed.
        patched.setattr(erasure_ledger, "_confirm", lambda *_: None)
        payload_erasure.erase(call, by=SYSTEM, reason="Asked for.")
    assert [line.is_committed for line in erasure_ledger.newest()] == [False]

    assert find_refusal() == ""

    assert [line.is_committed for line in erasure_ledger.newest()] == [True]
    bring_back(call, databases)
    assert "what the ledger of erasures" in find_refusal()


def write_as_before(number: str) -> None:
    """The ledger's last erasure, as releases wrote it that did not write whether it committed."""
    ledger = erasure_ledger.location()
    lines = [json.loads(line) for line in ledger.read_text().splitlines()]
    place, _attempt = lines[1].pop(erasure_ledger.BEGUN)
    lines[1][erasure_ledger.WRITTEN_IN] = [place, int(number)]
    ledger.write_text("".join(json.dumps(line) + "\n" for line in lines[:2]))


def test_a_ledger_of_an_earlier_release_counts_as_before(call: Call, databases: Databases) -> None:
    with transaction.atomic():
        payload_erasure.erase(call, by=SYSTEM, reason="Asked for.")
        number = own_transaction()
    write_as_before(number)
    assert find_refusal() == ""

    bring_back(call, databases)

    assert "what the ledger of erasures" in find_refusal()


def test_of_an_earlier_release_an_erasure_that_broke_off_stops_nothing(call: Call) -> None:
    with transaction.atomic():
        payload_erasure.erase(call, by=SYSTEM, reason="Asked for.")
        number = own_transaction()
        assert not erasure_ledger.took_place(int(number))
        transaction.set_rollback(True)
    write_as_before(number)

    assert find_refusal() == ""
    # Of a transaction that this database has not reached.
    assert erasure_ledger.took_place(int(number) + 1_000_000)


def test_an_erasure_under_way_has_not_taken_place(call: Call) -> None:
    with transaction.atomic():
        erasure_ledger.add(Erasures(payloads={str(call.pk)}))
        (line,) = erasure_ledger.newest()
        assert line.erased.payloads == {str(call.pk)}
        assert not line.took_place()
    (line,) = erasure_ledger.newest()
    assert line.took_place()


def test_the_ledger_is_read_from_its_end(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(erasure_ledger, "TAIL", 500)
    for n in range(9):
        erasure_ledger.add(Erasures(names={f"{n:064}"}))

    names = [line.erased.names for line in erasure_ledger.newest()]

    assert 0 < len(names) < 9
    assert names[-1] == {f"{8:064}"}


def test_what_was_recorded_is_covered_at_the_next_look() -> None:
    keeper = PositionKeeper()
    keeper.look()
    record("agent.created", actor=SYSTEM)
    written_in = int(Entry.objects.values_list("transaction", flat=True).latest("pk"))
    assert position.read().transaction < written_in

    keeper.look()

    seen = position.read()
    assert seen.transaction > written_in
    # Nothing was recorded since, and nothing is written, once nobody was under way at a look:
    # databases of one server share their numbers.
    assert any(_writes_nothing(keeper) for _ in range(LOOKS))


def _writes_nothing(keeper: PositionKeeper) -> bool:
    seen = position.read()
    keeper.look()
    return position.read() == seen


def test_what_was_under_way_at_a_look_is_covered_by_the_next(
    other: psycopg.Connection[Any],
) -> None:
    keeper = PositionKeeper()
    other.execute("SELECT pg_current_xact_id()")
    keeper.look()
    before = position.read().transaction
    other.commit()

    keeper.look()

    assert position.read().transaction > before


def test_a_look_notices_files_that_are_older(data: Path) -> None:
    PositionKeeper().look()
    go_back(data)
    seen = position.read()

    PositionKeeper().look()

    assert "this host has seen" in Rollback.objects.get().reason
    assert position.read() == seen == KnownPosition(seen.place, seen.transaction)


@pytest.fixture
def standby() -> Iterator[None]:
    """A database that takes no writes."""
    with connection.cursor() as cursor:
        cursor.execute("SET default_transaction_read_only = on")
        yield
        # The pool gives the same connection to others.
        cursor.execute("RESET default_transaction_read_only")


def test_a_standby_that_lags_behind_is_waited_for(data: Path, standby: None) -> None:
    go_back(data)

    with pytest.raises(LaggingStandby, match="It lags behind: its next transaction is"):
        find_refusal()

    assert not Rollback.objects.exists()


def test_an_outage_is_said_once_and_its_end_too(
    data: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def lost(_keeper: object) -> None:
        raise OperationalError("the connection is lost")

    keeper = PositionKeeper()
    with monkeypatch.context() as patched:
        patched.setattr(PositionKeeper, "look", lost)
        for _ in range(3):
            keeper.attempt()
    said = [line.getMessage() for line in caplog.records if line.name == "audit.rollback"]
    assert said == [
        "How far the database has come cannot be noted, and is tried each second: "
        "the connection is lost"
    ]

    caplog.clear()
    for _ in range(3):
        keeper.attempt()
    said = [line.getMessage() for line in caplog.records if line.name == "audit.rollback"]
    assert said == ["How far the database has come is noted again."]
    assert position.read().transaction > 0
