"""What the application's password puts into the database past the product is found."""

from uuid import UUID

import pytest
from django.core.management import call_command
from django.db import connection

from accounts.models import Agent, User
from approvals.models import Approval
from approvals.record_checks import unrecorded
from audit.models import Entry
from calls.models import Call
from calls.record.states import State
from registry.models import Tool
from tests.approvals.matrix import vote_past_the_code
from tests.approvals.test_quorum import TWO, approver, back, hold, say
from tests.console import scenery
from tests.sealing import seal_all

pytestmark = pytest.mark.django_db


@pytest.fixture
def send_mail(olga: User) -> Tool:
    return scenery.server("mailer", olga, scenery.SEND).tools.for_catalogue().get()


@pytest.fixture
def pat(db: None) -> User:
    return approver("pat", "payments")


@pytest.fixture
def carol(db: None) -> User:
    return approver("carol", "payments")


@pytest.fixture
def held(scout: Agent, send_mail: Tool, pat: User, carol: User) -> UUID:
    return hold(scout, send_mail, TWO)


def sql(statement: str, *values: str | int) -> None:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)


def test_what_the_product_writes_is_in_the_record(held: UUID, pat: User, carol: User) -> None:
    say(held, pat)
    back(held, pat)
    say(held, pat)
    say(held, carol)

    assert Call.objects.get(pk=held).state == State.QUEUED
    assert unrecorded() == []


def test_a_vote_without_its_entry_is_found(
    held: UUID, pat: User, capsys: pytest.CaptureFixture[str]
) -> None:
    assert vote_past_the_code(held, pat)

    assert unrecorded() == [f"A vote of person {pat.pk} on call {held} has no entry."]
    seal_all()
    with pytest.raises(SystemExit):
        call_command("audit_verify")
    assert f"A vote of person {pat.pk} on call {held} has no entry." in capsys.readouterr().err


def test_a_second_vote_without_an_entry_is_found_beside_the_first(held: UUID, pat: User) -> None:
    say(held, pat)
    back(held, pat)
    assert vote_past_the_code(held, pat)

    assert unrecorded() == [f"A vote of person {pat.pk} on call {held} has no entry."]


def test_an_entry_of_a_vote_that_nobody_gave_is_found(held: UUID, pat: User, carol: User) -> None:
    say(held, pat)
    sql(
        "INSERT INTO audit_entry (action, actor_kind, actor_id, actor, call_id, details)"
        " SELECT action, actor_kind, %s, 'carol', call_id, details FROM audit_entry"
        " WHERE action = 'approval.voted'",
        carol.pk,
    )

    assert unrecorded() == [
        f"An entry tells of a vote of person {carol.pk} on call {held}, and there is none."
    ]


@pytest.mark.parametrize(
    ("why", "said"),
    [
        ("taken_back", "A vote taken back of person {pat} on call {held} has no entry."),
        ("edited", "A vote of person {pat} on call {held} fell by an edit that has no entry."),
    ],
)
def test_a_vote_that_falls_without_an_entry_is_found(
    held: UUID, pat: User, why: str, said: str
) -> None:
    say(held, pat)
    sql("UPDATE approvals_vote SET fallen_at = now(), fallen_why = %s", why)

    assert unrecorded() == [said.format(pat=pat.pk, held=held)]


def test_a_decision_without_its_entry_is_found(held: UUID, pat: User, carol: User) -> None:
    for person in (pat, carol):
        assert vote_past_the_code(held, person)
    sql(
        "UPDATE approvals_approval SET state = 'approved', decided_at = now(), decided_by_id = %s",
        carol.pk,
    )

    assert Approval.objects.get(pk=held).state == "approved"
    assert f"The approval of call {held} is approved, and no entry says so." in unrecorded()
    assert not Entry.objects.filter(action="call.approved").exists()
