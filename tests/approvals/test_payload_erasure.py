"""A payload that is erased is nowhere in the database any more, and every proof still holds."""

import base64
import json
import os
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.test import Client
from django.urls import reverse

from accounts.models import Agent, User
from accounts.roles import Role
from approvals import comments, editing
from approvals.models import Approval
from approvals.payload_erasure import OUTCOME, erase_again
from audit import erasure_ledger, holds
from audit.erasure_ledger import Erasures
from audit.live import check_live
from audit.models import Checkpoint, Entry
from audit.services import SYSTEM
from calls.models import Call
from calls.record.states import State
from calls.record_checks import unrecorded
from config import pgtools
from config.installation import APP_URL
from registry.models import Tool
from tests.approvals.test_quorum import TWO, approver, hold, say
from tests.audit.test_seal import outsider, run
from tests.console import scenery
from tests.database import Databases, manage
from tests.sealing import seal_all

pytestmark = [pytest.mark.alone, pytest.mark.django_db(transaction=True)]

SECRET = "okapi4711"
WHY = "Asked for by the customer."


@pytest.fixture(autouse=True)
def ledger(settings: Any, tmp_path: Path) -> Path:
    settings.ERASURE_LEDGER = tmp_path / "erasures"
    return tmp_path / "erasures"


@pytest.fixture
def rita() -> User:
    return scenery.person("rita", Role.AUDITOR)


@pytest.fixture
def send_mail(olga: User) -> Tool:
    return scenery.server("mailer", olga, scenery.SEND).tools.get()


@pytest.fixture
def full(scout: Agent, send_mail: Tool, alice: User, databases: Databases) -> UUID:
    """A call that has ended, with the secret wherever a payload can be."""
    held = hold(scout, send_mail, TWO)
    approval = Approval.objects.for_queue().get(pk=held)
    arguments = json.dumps({**scenery.MAIL, "subject": SECRET}).encode()
    given = editing.Edit(approval.call.call_digest, arguments, f"Now about {SECRET}.")
    editing.edit(approval, given, by=alice)
    approval = Approval.objects.for_queue().get(pk=held)
    comments.say(approval, by=alice, text=f"Is it {SECRET}?")
    say(held, approver("carol"), reason=f"{SECRET} is fine.")
    say(held, approver("dora"), reason="Agreed.")
    scenery.run(held)
    beside(held, databases)
    scenery.finish(held, {"content": [{"type": "text", "text": SECRET}]}, said=f"{SECRET} came.")
    seal_all()
    return held


def beside(call: UUID, databases: Databases) -> None:
    """What an attempt leaves."""
    body = SECRET.encode()
    with databases.superuser(os.environ) as link:
        link.execute("SET session_replication_role = replica")
        for sql in (
            "INSERT INTO calls_resultpart (call_id, number, body) VALUES (%s, 0, %s)",
            "INSERT INTO calls_receivedresult (call_id, sealed, kept_until)"
            " VALUES (%s, %s, now() + interval '1 day')",
            "INSERT INTO calls_latereply (call_id, body, fence, state, sentence, executed, kind,"
            " digest, received_at)"
            f" VALUES (%s, %s, 1, 'succeeded', '{SECRET}', 'yes', 'result', '', now())",
        ):
            link.execute(sql, [call, body])
        link.execute(
            "INSERT INTO calls_logline (call_id, fence, number, level, logger, text)"
            " VALUES (%s, 1, 0, 'info', %s, %s)",
            [call, SECRET, SECRET],
        )
        link.execute(
            "INSERT INTO calls_input (call_id, key, request, message) VALUES (%s, %s, %s, %s)",
            [call, SECRET, json.dumps({"ask": SECRET}), SECRET],
        )
        link.execute(
            "UPDATE calls_call SET progress_message = %s WHERE id = %s", [f"at {SECRET}", call]
        )


def dumped() -> str:
    """The whole database, as a backup has it."""
    url = os.environ["DATABASE_OWNER_URL"]
    program = pgtools.find("pg_dump", pgtools.server_major(url))
    return pgtools.run(program, [], url=url).decode()


def traces(dump: str) -> list[str]:
    plain = SECRET.encode()
    spelled = (SECRET, plain.hex(), base64.b64encode(plain).decode().rstrip("="))
    return [one for one in spelled if one.lower() in dump.lower()]


def erase(client: Client, call: UUID, **given: str) -> str:
    address = reverse("approvals:erase_payload", args=[call])
    form = {"reason": WHY, "sure": "1", **given}
    return client.post(address, form, follow=True).content.decode()


def test_nothing_of_it_is_left_and_every_proof_holds(
    full: UUID, rita: User, client: Client, tmp_path: Path, ledger: Path
) -> None:
    assert len(traces(dumped())) >= 2
    (tmp_path / "before").mkdir()
    assert outsider(tmp_path / "before").returncode == 0
    anchor = Checkpoint.objects.latest("pk").note
    client.force_login(rita)

    shown = erase(client, full)
    seal_all()

    assert "The payload was erased." in shown
    assert traces(dumped()) == []
    assert SECRET not in client.get(reverse("calls:detail", args=[full])).text
    # Online with the calls beside the record, by a stranger, and by one who exported it before.
    found = check_live([anchor])
    assert (found.wrong, found.anchors) == ([], 1)
    assert unrecorded() == []
    assert outsider(tmp_path, anchor).returncode == 0
    before = run(tmp_path / "before" / "verify.py", tmp_path / "before" / "export.jsonl")
    assert before.returncode == 0
    # Who, why, and what of it stays.
    entry = Entry.objects.get(action="payload.erased")
    assert (entry.actor, entry.reason, entry.call_id) == ("rita", WHY, full)
    call = Call.objects.get(pk=full)
    assert (bytes(call.arguments), call.outcome) == (b"{}", OUTCOME)
    assert len(call.arguments_digest) == 64
    assert erasure_ledger.read(ledger).payloads == {str(full)}
    # Not twice.
    assert "The payload was erased already." in erase(client, full)


def test_the_owner_erases_by_a_command(full: UUID, tmp_path: Path) -> None:
    owner = os.environ["DATABASE_OWNER_URL"]
    env = {
        "DATABASE_URL": owner,
        "DATABASE_OWNER_URL": owner,
        APP_URL: os.environ["DATABASE_URL"],
        "COUNTERSIGN_ERASURE_LEDGER": str(tmp_path / "erasures"),
    }
    argv = ["erase_payload", str(full), "--reason", WHY]

    assert "Nothing was changed." in manage(argv, env=env)
    assert traces(dumped()) != []
    assert "was erased." in manage([*argv, "--yes"], env=env)

    assert traces(dumped()) == []


@pytest.mark.parametrize(
    "held", [{"kind": "everything"}, {"kind": "call"}, {"kind": "agent"}, {"kind": "person"}]
)
def test_a_legal_hold_keeps_it(
    full: UUID, rita: User, scout: Agent, alice: User, client: Client, held: dict[str, Any]
) -> None:
    call = full if held["kind"] == "call" else None
    who = {"agent": [scout.pk], "person": [alice.pk]}.get(held["kind"], [])
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"]) as owner:
        details = {"kind": held["kind"], "subjects": who} | ({"call": str(call)} if call else {})
        owner.execute(
            "INSERT INTO audit_entry (action, actor_kind, actor, reason, details)"
            f" VALUES ('{holds.PLACED}', 'system', 'x', 'A case.', %s)",
            [json.dumps(details)],
        )
    (number,) = (hold.number for hold in holds.in_force())
    client.force_login(rita)

    assert f"The call is under legal hold {number}." in erase(client, full)
    # Nor past the page.
    with psycopg.connect(os.environ["DATABASE_URL"]) as link:
        link.execute(
            "INSERT INTO audit_entry (action, actor_kind, actor, call_id)"
            " VALUES ('payload.erased', 'system', 'x', %s)",
            [full],
        )
        with pytest.raises(psycopg.errors.RaiseException, match=f"under legal hold {number}"):
            link.execute("SELECT approvals_erase_payload(%s, '{}', '{}', false)", [full])

    assert traces(dumped()) != []


def test_only_who_may_and_only_with_a_reason(
    full: UUID, rita: User, alice: User, client: Client
) -> None:
    address = reverse("approvals:erase_payload", args=[full])
    client.force_login(alice)
    assert client.post(address, {"reason": WHY, "sure": "1"}).status_code == 403
    client.force_login(rita)
    for given in ({"reason": ""}, {"sure": ""}):
        assert "Give a reason, and confirm." in erase(client, full, **given)

    assert traces(dumped()) != []
    assert not Entry.objects.filter(action="payload.erased").exists()


def test_a_call_that_may_still_move_keeps_it(
    scout: Agent, send_mail: Tool, rita: User, client: Client
) -> None:
    held = hold(scout, send_mail, TWO)
    client.force_login(rita)

    assert "The call has not ended." in erase(client, held)
    assert Call.objects.get(pk=held).state == State.HELD


def test_without_a_ledger_nothing_is_erased(
    full: UUID, rita: User, client: Client, ledger: Path
) -> None:
    ledger.write_text("torn")
    client.force_login(rita)

    assert "The ledger of erasures cannot be written." in erase(client, full)
    assert traces(dumped()) != []


REFUSED = (psycopg.errors.InsufficientPrivilege, psycopg.errors.RaiseException)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT approvals_erase_payload(%(call)s, '{}', '{}', true)",
        "UPDATE calls_call SET arguments = '{}', outcome = '' WHERE id = %(call)s",
        "UPDATE calls_amendment SET arguments = '{}', note = '' WHERE call_id = %(call)s",
        "UPDATE calls_logline SET logger = '', text = '' WHERE call_id = %(call)s",
        "UPDATE approvals_comment SET text = '' WHERE approval_id = %(call)s",
        "UPDATE approvals_vote SET reason = '' WHERE approval_id = %(call)s",
    ],
)
@pytest.mark.parametrize("url", ["DATABASE_URL", "DATABASE_OWNER_URL"])
def test_nobody_erases_without_an_entry(full: UUID, sql: str, url: str) -> None:
    with psycopg.connect(os.environ[url]) as link, pytest.raises(REFUSED):
        link.execute(sql, {"call": full})


def test_a_database_from_before_loses_it_again(
    full: UUID, databases: Databases, ledger: Path
) -> None:
    """As a restore does, as the owner, from what the ledger lists."""
    listed = Erasures(payloads={str(full)})
    assert erase_again(listed, by=SYSTEM, reason="Again.") == 1
    assert erase_again(listed, by=SYSTEM, reason="Again.") == 0
    assert traces(dumped()) == []
