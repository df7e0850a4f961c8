"""Entries become deliveries once each, in whatever order they commit."""

import time
from collections.abc import Iterator
from datetime import timedelta

import psycopg
import pytest
from django.conf import settings

from audit.models import Entry
from audit.services import SYSTEM, record
from notifications import cursor
from notifications.models import Delivery, EntryCursor, Webhook
from notifications.restoring import forget_pending

pytestmark = pytest.mark.django_db(transaction=True)

WRITE = (
    "INSERT INTO audit_entry (action, actor_kind, actor, reason, server)"
    " VALUES ('server.lost', 'system', 'countersign', '', %s)"
)


@pytest.fixture
def another() -> Iterator[psycopg.Connection]:
    """A writer that takes its time."""
    with psycopg.connect(settings.DATABASE_URL) as connection:
        yield connection


@pytest.fixture(autouse=True)
def webhook(db: None) -> Webhook:
    EntryCursor.objects.all().delete()
    cursor.read_entries()
    return Webhook.objects.create(name="ledger", url="https://example.org", sealed_secret=b"")


def lost(server: str) -> Entry:
    return record("server.lost", actor=SYSTEM, server=server)


def told() -> list[str]:
    while cursor.read_entries():
        pass
    return [one.server for one in Delivery.objects.order_by("created_at", "entry_id")]


def read_up_to(entry: Entry) -> EntryCursor:
    """Transactions in any database of the cluster hold it up, those of other tests too."""
    until = time.monotonic() + 15
    while (known := EntryCursor.objects.get()).reached < entry.pk:
        assert time.monotonic() < until, known
        told()
        time.sleep(0.02)
    return known


def test_one_that_commits_late_is_not_passed_over(
    another: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cursor, "DAWDLING", timedelta())
    another.execute(WRITE, ["slow"])
    after = lost("quick")
    assert told() == ["quick"]
    # However often it looks, it goes no further than the one that is still being written.
    for _ in range(4):
        assert told() == ["quick"]
    assert EntryCursor.objects.get().reached < after.pk - 1
    another.commit()

    assert told() == ["quick", "slow"]

    assert read_up_to(after).seen == []
    assert told() == ["quick", "slow"]


def test_one_that_is_undone_holds_nothing_up(
    another: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cursor, "DAWDLING", timedelta())
    another.execute(WRITE, ["undone"])
    after = lost("quick")
    told()
    another.rollback()

    read_up_to(after)
    assert told() == ["quick"]


def test_a_writer_that_has_an_id_and_has_not_begun_is_waited_for() -> None:
    lost("quick")
    told()
    before = EntryCursor.objects.get()

    told()

    assert before.reached == EntryCursor.objects.get().reached
    assert timedelta(seconds=10) <= cursor.DAWDLING


def test_two_processes_take_turns(another: psycopg.Connection) -> None:
    another.execute("SELECT FROM notifications_entrycursor FOR UPDATE")
    lost("quick")

    assert told() == []

    another.rollback()
    assert told() == ["quick"]


def test_many_are_read_in_several_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cursor, "BATCH", 3)
    for n in range(7):
        lost(f"s{n}")

    assert [cursor.read_entries() for _ in range(4)] == [3, 3, 1, 0]
    assert told() == [f"s{n}" for n in range(7)]


def test_a_restored_backup_sends_nothing_of_what_was_on_its_way_then() -> None:
    lost("then")
    told()
    EntryCursor.objects.update(ahead_horizon=2**60, reached=0)
    lost("meanwhile")

    assert forget_pending(said="Restored from the backup of yesterday.") == 1

    assert told() == ["then"]
    assert Delivery.objects.get().state == Delivery.State.DROPPED
    lost("now")
    assert told() == ["then", "now"]
