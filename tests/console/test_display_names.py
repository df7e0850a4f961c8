"""Display names of people on every page that says who did something: never without the username."""

import re
from datetime import time, timedelta

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import Agent, User
from accounts.roles import Role
from approvals import delegations, services
from approvals.models import Approval, Delegation
from audit.models import Entry
from calls.record.states import State
from notifications import schedules
from notifications.cursor import read_entries
from notifications.models import EntryCursor, MailRecipient, OnCallOverride, OnCallSchedule
from policies.thresholds import Threshold
from registry.models import Tool
from tests.console import scenery

BOB, ALICE = "Roberto Díaz (bob)", "Alice Mayer (alice)"


@pytest.fixture(autouse=True)
def named(bob: User, alice: User) -> None:
    User.objects.filter(pk=bob.pk).update(first_name="Roberto Díaz")
    User.objects.filter(pk=alice.pk).update(first_name="Alice Mayer")


@pytest.fixture
def carol(db: None) -> User:
    return scenery.person("carol", Role.APPROVER)


@pytest.fixture
def voted(scout: Agent, send_mail: Tool, alice: User, carol: User) -> Approval:
    """Of two votes that it needs, alice gave one."""
    call_id = scenery.call(scout, send_mail, scenery.MAIL, State.HELD, thresholds=(Threshold(2),))
    approval = Approval.objects.for_queue().get(pk=call_id)
    digest = approval.call.call_digest
    services.vote(approval, by=alice, approve=True, seen_digest=digest, reason="Fine.")
    return approval


def read(client: Client, address: str, person: User) -> str:
    """The words of a page."""
    client.force_login(person)
    text = client.get(address).text
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", "", text))


@pytest.mark.long
def test_the_queue_and_the_card_name_people_by_both(
    client: Client, voted: Approval, carol: User
) -> None:
    page = read(client, reverse("approvals:detail", args=[voted.pk]), carol)

    assert f"scout for {BOB}" in page
    assert f"scout, for {BOB}, requests" in page
    assert re.search(rf"Approved\s*{re.escape(ALICE)}", page)
    assert "May still vote: carol" in page


@pytest.mark.long
def test_the_call_and_the_list_of_calls(client: Client, voted: Approval, carol: User) -> None:
    call = read(client, reverse("calls:detail", args=[voted.pk]), carol)

    assert f"Asked by scout, for {BOB}" in call
    assert f"scout asked, for {BOB}" in call
    assert BOB in read(client, reverse("calls:list"), carol)


@pytest.mark.long
def test_who_was_notified_and_who_votes_for_whom(
    client: Client, scout: Agent, send_mail: Tool, alice: User, carol: User
) -> None:
    MailRecipient.objects.create(
        person=alice, address="alice@example.org", confirmed_at=timezone.now()
    )
    begins = timezone.now() - timedelta(hours=1)
    ends = begins + timedelta(days=1)
    given = Delegation(delegator=alice, delegate=carol, begins_at=begins, ends_at=ends)
    given.asks_both = True
    delegations.make(given)
    EntryCursor.objects.all().delete()
    read_entries()
    held = scenery.call(scout, send_mail, scenery.MAIL, State.HELD, thresholds=(Threshold(2),))
    read_entries()
    approval = Approval.objects.for_queue().get(pk=held)
    services.vote(approval, by=carol, approve=True, seen_digest=approval.call.call_digest)

    notified = read(client, reverse("notifications:notified", args=[held]), carol)
    card = read(client, reverse("approvals:detail", args=[held]), carol)

    assert ALICE in notified
    assert f"for {ALICE}" in card
    assert f"carol votes for {ALICE}" in read(client, reverse("approvals:delegations"), carol)


def test_who_is_on_call(client: Client, alice: User, carol: User, olga: User) -> None:
    now = timezone.now()
    schedule = OnCallSchedule(
        name="Week", time_zone="UTC", handover_at=time(), starts_on=now.date() - timedelta(days=8)
    )
    schedules.save(schedule, [alice], by=olga)
    override = OnCallOverride(schedule=schedule, person=alice)
    override.begins_at, override.ends_at = now, now + timedelta(hours=1)
    schedules.add_override(override, by=olga)

    one = read(client, reverse("notifications:schedule", args=[schedule.pk]), olga)

    assert f"On call now: {ALICE}" in read(client, reverse("notifications:schedules"), olga)
    # Her shift, and the override.
    assert one.count(ALICE) == 2


@pytest.mark.long
@pytest.mark.parametrize("query", ["", "?group=call"])
def test_audit_rows(client: Client, voted: Approval, ines: User, query: str) -> None:
    page = read(client, reverse("audit:list") + query, ines)

    assert ALICE in page
    assert f"for {BOB}" in page


@pytest.mark.long
def test_one_entry(client: Client, voted: Approval, ines: User) -> None:
    vote = Entry.objects.get(action="approval.voted")

    page = read(client, reverse("audit:detail", args=[vote.pk]), ines)

    assert f"{ALICE} (Person)" in page
    assert f"by {ALICE}" in page


@pytest.mark.long
def test_the_report_says_who_approved(
    client: Client, voted: Approval, carol: User, ines: User
) -> None:
    voted.refresh_from_db()
    approval = Approval.objects.for_queue().get(pk=voted.pk)
    services.vote(approval, by=carol, approve=True, seen_digest=approval.call.call_digest)

    page = read(client, reverse("audit:report"), ines)

    assert f"Approved by {ALICE}, carol." in page
    assert f"scout, for {BOB}," in page
    assert f"{ALICE}: Fine." in page


@pytest.mark.long
def test_the_record_and_its_filters_keep_the_username(
    client: Client, voted: Approval, ines: User
) -> None:
    client.force_login(ines)

    page = client.get(reverse("audit:list"), {"person": "alice"}).text

    assert Entry.objects.get(action="approval.voted").actor == "alice"
    assert "person=alice" in page
    assert "person=Alice" not in page


def test_agents_do_not_get_the_names_of_people(
    client: Client, scout: Agent, send_mail: Tool, ines: User
) -> None:
    """An agent that is called like a person is still itself."""
    Agent.objects.filter(pk=scout.pk).update(name="alice")
    scenery.call(Agent.objects.get(pk=scout.pk), send_mail, scenery.MAIL, State.HELD)

    page = read(client, reverse("audit:list"), ines)

    assert "alice" in page
    assert ALICE not in page
