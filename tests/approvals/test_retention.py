"""Payloads and results are erased after their retention period, and nothing before."""

# ruff: noqa: F401, F811 fixtures of another file

import asyncio
import html
import json
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import psycopg
import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import Agent, User
from approvals.payload_erasure import erase_again
from approvals.retention import erasing
from approvals.retention.changing import set_period
from approvals.retention.erasing import erase_due
from audit import erasure_ledger, holds
from audit.erasure_ledger import Erasures
from audit.live import check_live
from audit.models import Entry
from audit.services import SYSTEM
from calls.content import answers, retention
from calls.content.retention import RetainedTool, RetentionRules
from calls.models import (
    Call,
    PostponedErasure,
    Result,
    RetainedContent,
    RetentionPeriod,
    RetentionScope,
)
from calls.record.states import State
from calls.record_checks import unrecorded
from registry.models import Tag, Tool
from tests.approvals.test_payload_erasure import (
    SECRET,
    dumped,
    full,
    ledger,
    rita,
    send_mail,
    traces,
)
from tests.audit.test_seal import outsider, run
from tests.console import scenery
from tests.sealing import seal_all

pytestmark = [pytest.mark.alone, pytest.mark.django_db(transaction=True)]

PAYLOAD = RetainedContent.PAYLOAD


PAST = 100


@pytest.fixture(autouse=True)
def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Periods are counted as in 100 days: every call of a test is so old."""
    clock = SimpleNamespace(now=lambda: timezone.now() + timedelta(days=PAST))
    monkeypatch.setattr(retention, "timezone", clock)


def period(client: Client, **given: Any) -> str:
    """The page after the form was sent."""
    address = reverse("approvals:retention")
    form = {"content": "payload", "scope": "all", "target": "", "days": "", **given}
    return client.post(address, form, follow=True).content.decode()


def sure(content: str, scope: str, target: str, days: int | None) -> str:
    return json.dumps([content, scope, target, days])


def set_for_all(client: Client, content: str, days: int) -> str:
    return period(client, content=content, days=days, sure=sure(content, "all", "", days))


def made(scout: Agent, tool: Tool, word: str = SECRET) -> UUID:
    """A call that ended."""
    one = scenery.call(scout, tool, {**scenery.MAIL, "subject": word}, State.QUEUED)
    scenery.run(one)
    scenery.finish(one, {"content": [{"type": "text", "text": word}]})
    return one


def is_erased(call: UUID) -> bool:
    return bytes(Call.objects.get(pk=call).arguments) == b"{}"


def place_hold(**details: Any) -> None:
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"]) as owner:
        owner.execute(
            "INSERT INTO audit_entry (action, actor_kind, actor, reason, details)"
            f" VALUES ('{holds.PLACED}', 'system', 'x', 'A case.', %s)",
            [json.dumps({"subjects": [], **details})],
        )


def lift_hold() -> None:
    (number,) = (hold.number for hold in holds.in_force())
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"]) as owner:
        owner.execute(
            "INSERT INTO audit_entry (action, actor_kind, actor, details)"
            f" VALUES ('{holds.LIFTED}', 'system', 'x', %s)",
            [json.dumps({"hold": number})],
        )


def test_what_is_due_is_nowhere_any_more_and_proofs_hold(
    full: UUID, rita: User, client: Client, tmp_path: Path, ledger: Path
) -> None:
    client.force_login(rita)
    assert "No retention periods yet" in client.get(reverse("approvals:retention")).text
    (tmp_path / "before").mkdir()
    assert outsider(tmp_path / "before").returncode == 0
    assert len(traces(dumped())) >= 2
    set_for_all(client, "payload", 90)
    assert "Payload kept until" in client.get(reverse("calls:detail", args=[full])).text

    assert erase_due() == 1
    seal_all()

    assert traces(dumped()) == []
    assert (check_live([]).wrong, unrecorded()) == ([], [])
    assert outsider(tmp_path).returncode == 0
    before = run(tmp_path / "before" / "verify.py", tmp_path / "before" / "export.jsonl")
    assert before.returncode == 0
    entry = Entry.objects.get(action="payload.erased")
    assert entry.reason == "Retention period of 90 days for all calls."
    assert entry.actor_kind == "system"
    assert erasure_ledger.read(ledger).payloads == {str(full)}
    shown = client.get(reverse("calls:detail", args=[full])).text
    assert "The payload was erased" in shown
    assert entry.reason in shown
    assert "Payload kept until" not in shown
    # Done once.
    assert erase_due() == 0


def test_a_result_is_erased_and_its_arguments_stay(
    scout: Agent, send_mail: Tool, rita: User, client: Client, ledger: Path, tmp_path: Path
) -> None:
    call = made(scout, send_mail)
    seal_all()
    client.force_login(rita)
    set_for_all(client, "result", 30)

    erase_due()
    seal_all()

    assert not Result.objects.exists()
    assert not is_erased(call)
    assert (check_live([]).wrong, unrecorded()) == ([], [])
    assert outsider(tmp_path).returncode == 0
    assert erasure_ledger.read(ledger).results == {str(call)}
    shown = client.get(reverse("calls:detail", args=[call])).text
    assert "It was erased" in shown
    assert "Retention period of 30 days for all calls." in shown

    async def told() -> str:
        async with await psycopg.AsyncConnection.connect(os.environ["DATABASE_URL"]) as link:
            answer = (await answers.load_status(link, [call]))[call].answer
        assert answer is not None
        return answer.text

    assert asyncio.run(told()) == answers.ERASED
    # A database from before loses it again, as a restore does it.
    assert erase_again(Erasures(results={str(call)}), by=SYSTEM, reason="Again.") == 0


def test_no_result_is_erased_without_an_entry_or_under_a_hold(
    scout: Agent, send_mail: Tool
) -> None:
    call = made(scout, send_mail)
    erase = "SELECT approvals_erase_result(%s, true)"
    with psycopg.connect(os.environ["DATABASE_URL"]) as link:
        with pytest.raises(psycopg.errors.RaiseException, match="without its entry"):
            link.execute(erase, [call])
        link.rollback()
        place_hold(kind="call", call=str(call))
        link.execute(
            "INSERT INTO audit_entry (action, actor_kind, actor, call_id)"
            " VALUES ('result.erased', 'system', 'x', %s)",
            [call],
        )
        with pytest.raises(psycopg.errors.RaiseException, match="under legal hold"):
            link.execute(erase, [call])
    assert Result.objects.filter(pk=call).exists()


def test_a_hold_wins_and_keeps_no_other_call(
    scout: Agent, send_mail: Tool, rita: User, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(erasing, "BATCH", 2)
    calls = [made(scout, send_mail) for _ in range(5)]
    for one in calls[:2]:
        place_hold(kind="call", call=str(one))
    client.force_login(rita)
    set_for_all(client, "payload", 90)

    erase_due()

    assert [is_erased(one) for one in calls] == [False, False, True, True, True]
    assert (
        "2 calls are past their period and wait" in client.get(reverse("approvals:retention")).text
    )
    # They are looked at again, and go when they may.
    erase_due()
    assert PostponedErasure.objects.count() == 2
    with psycopg.connect(os.environ["DATABASE_OWNER_URL"]) as owner:
        for hold in holds.in_force():
            owner.execute(
                "INSERT INTO audit_entry (action, actor_kind, actor, details)"
                f" VALUES ('{holds.LIFTED}', 'system', 'x', %s)",
                [json.dumps({"hold": hold.number})],
            )
    erase_due()
    assert all(map(is_erased, calls))
    assert not PostponedErasure.objects.exists()


def test_nothing_is_erased_while_everything_is_held(
    scout: Agent, send_mail: Tool, rita: User, client: Client
) -> None:
    call = made(scout, send_mail)
    place_hold(kind="everything")
    client.force_login(rita)
    set_for_all(client, "payload", 90)

    assert erase_due() == 0
    assert not is_erased(call)
    lift_hold()
    assert erase_due() == 1
    assert is_erased(call)


def test_what_has_not_ended_waits(
    scout: Agent, send_mail: Tool, rita: User, client: Client
) -> None:
    running = scenery.call(scout, send_mail, scenery.MAIL, State.QUEUED)
    lost = scenery.call(scout, send_mail, scenery.MAIL, State.QUEUED)
    for one in (running, lost):
        scenery.run(one)
    scenery.finish(lost, None, State.UNKNOWN, said="Nobody knows.")
    client.force_login(rita)
    set_for_all(client, "payload", 90)

    erase_due()
    assert [is_erased(one) for one in (running, lost)] == [False, False]
    scenery.finish(running, {"content": []})
    erase_due()
    assert [is_erased(one) for one in (running, lost)] == [True, False]


KILLED = """
import os, signal, django
django.setup()
from datetime import timedelta
from types import SimpleNamespace
from django.utils import timezone
from approvals.retention import erasing
from audit import erasure_ledger
from calls.content import retention
clock = SimpleNamespace(now=lambda: timezone.now() + timedelta(days=100))
retention.timezone = clock
erasing.BATCH = 2
add, batches = erasure_ledger.add, []
def die(erased):
    batches.append(erased)
    if {after}:
        add(erased)
    if len(batches) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    if not {after}:
        add(erased)
erasure_ledger.add = die
erasing.erase_due()
"""


@pytest.mark.parametrize("after", [False, True], ids=["before the ledger", "after it"])
def test_killed_in_a_batch_the_next_run_goes_on(
    scout: Agent, send_mail: Tool, rita: User, client: Client, ledger: Path, after: bool
) -> None:
    calls = [made(scout, send_mail) for _ in range(6)]
    client.force_login(rita)
    set_for_all(client, "payload", 90)
    env = os.environ | {"COUNTERSIGN_ERASURE_LEDGER": str(ledger)}

    killed = subprocess.run(
        [sys.executable, "-c", KILLED.format(after=after)], env=env, check=False
    )

    assert killed.returncode == -signal.SIGKILL
    assert [is_erased(one) for one in calls] == [True, True, False, False, False, False]
    # On the disk before the database: ahead of it at most.
    assert len(erasure_ledger.read(ledger).payloads) == (4 if after else 2)
    erase_due()
    assert all(map(is_erased, calls))
    assert erasure_ledger.read(ledger).payloads == {str(one) for one in calls}
    assert Entry.objects.filter(action="payload.erased").count() == 6


def test_the_form_counts_what_would_go_and_asks(
    scout: Agent, send_mail: Tool, rita: User, client: Client
) -> None:
    for _ in range(3):
        made(scout, send_mail)
    client.force_login(rita)

    asked = period(client, days=90)
    assert "3 calls are older than that" in asked
    assert not RetentionPeriod.objects.exists()
    # Another period than the one that was confirmed is asked about again.
    assert "3 calls are older" in period(client, days=80, sure=sure("payload", "all", "", 90))
    assert "The retention period is saved." in set_for_all(client, "payload", 90)
    (entry,) = Entry.objects.filter(action="retention.changed")
    assert (entry.actor, entry.details["before"], entry.details["after"]) == ("rita", "", 90)
    # Due already, but not because of this.
    assert "is saved." in period(client, scope="label", target="sensitive", days=20)
    erase_due()
    # What is erased is not counted again.
    assert "is saved." in period(client, days=50)
    # A narrower one keeps; removing it is asked about.
    name = send_mail.exposed_name
    assert "is saved." in period(client, scope="tool", target=name)
    later_call = made(scout, send_mail)
    erase_due()
    assert not is_erased(later_call)
    row = RetentionPeriod.objects.get(scope="tool")
    address = reverse("approvals:remove_period", args=[row.pk])
    assert "1 call is older than that" in client.get(address).text
    assert "Confirm that" in client.post(address).text
    assert "is removed." in client.post(address, {"sure": "1"}, follow=True).text
    details = Entry.objects.filter(action="retention.changed").latest("pk").details
    assert (details["before"], details["after"]) == ("kept", "")
    erase_due()
    assert is_erased(later_call)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"days": "0"}, "greater than or equal to 1"),
        ({"days": "99999999"}, "less than or equal to 36525"),
        ({"days": "soon"}, "Enter a whole number."),
        ({"scope": "tag", "days": "1"}, "Give the name."),
        ({"scope": "tag", "target": "money", "days": "1"}, "No tool has the tag “money”."),
        ({"scope": "tool", "target": "x", "days": "1"}, "There is no tool “x”."),
        ({"scope": "label", "target": "x", "days": "1"}, "There is no label “x”."),
        ({"scope": "server", "target": "x", "days": "1"}, "There is no server “x”."),
        ({"target": "x", "days": "1"}, "Leave the name empty"),
    ],
)
def test_what_makes_no_sense_is_explained(
    rita: User, client: Client, given: dict[str, str], said: str
) -> None:
    client.force_login(rita)
    assert said in html.unescape(period(client, **given))
    assert not RetentionPeriod.objects.exists()


def test_only_who_may_erase_sees_and_changes_periods(alice: User, client: Client) -> None:
    client.force_login(alice)
    assert client.get(reverse("approvals:retention")).status_code == 403
    assert client.post(reverse("approvals:retention"), {"days": "1"}).status_code == 403


def test_the_most_specific_period_counts() -> None:
    tool = RetainedTool(1, "mailer.send", "mailer", ("crm", "money"), ("sensitive", "sink"))
    days: dict[Any, int | None] = {}
    for scope, target, given in [
        (RetentionScope.ALL, "", 5),
        (RetentionScope.SERVER, "mailer", 400),
        (RetentionScope.LABEL, "sink", 300),
        (RetentionScope.TAG, "money", 200),
        (RetentionScope.TOOL, "mailer.send", 100),
    ]:
        days[scope, target] = given
        found = RetentionRules(PAYLOAD, days).period_of(tool)
        assert found is not None
        assert (found.scope, found.target, found.days) == (scope, target, given)


def test_of_two_tags_the_shortest_counts(
    scout: Agent, send_mail: Tool, rita: User, client: Client
) -> None:
    send_mail.tags.add(*(Tag.objects.create(name=name) for name in ("crm", "money")))
    call = made(scout, send_mail)
    set_period(PAYLOAD, (RetentionScope.TAG, "crm"), None, by=rita)
    set_period(PAYLOAD, (RetentionScope.TAG, "money"), 120, by=rita)
    erase_due()
    assert not is_erased(call)
    set_period(PAYLOAD, (RetentionScope.TAG, "crm"), 60, by=rita)
    erase_due()
    assert Entry.objects.get(action="payload.erased").reason == (
        "Retention period of 60 days for tag “crm”."
    )


def test_a_broken_ledger_erases_nothing(
    scout: Agent, send_mail: Tool, rita: User, client: Client, ledger: Path
) -> None:
    call = made(scout, send_mail)
    client.force_login(rita)
    set_for_all(client, "payload", 90)
    ledger.write_text("torn")
    erase_due()
    assert not is_erased(call)
    ledger.unlink()
    erase_due()
    assert is_erased(call)
