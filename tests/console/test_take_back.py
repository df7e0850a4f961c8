"""A denial that can be taken back: everybody in the console sees it, and no agent is told yet."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import orjson
import pytest
from django.db import DatabaseError, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import Agent, User
from accounts.roles import Role
from approvals import editing, eligibility, freezes, services
from approvals.models import Approval, Vote
from approvals.pending import find_decidable
from audit.models import Entry
from calls.models import Call
from calls.record.states import State
from registry.models import Tool
from tests.console import scenery

pytestmark = pytest.mark.django_db
SPAN_S = 20


@pytest.fixture(autouse=True)
def span(settings: Any) -> None:
    settings.TAKE_BACK_S = SPAN_S


@pytest.fixture
def carol(db: None) -> User:
    return scenery.person("carol", Role.APPROVER)


def signed_in(person: User) -> Client:
    client = Client()
    client.force_login(person)
    return client


def press(person: User, call_id: UUID, view: str = "refuse", **given: str):
    seen = Call.objects.get(pk=call_id).call_digest
    there = reverse(f"approvals:{view}", args=[call_id])
    return signed_in(person).post(there, {"seen": seen, **given}, follow=True)


def card(person: User, call_id: UUID) -> str:
    return signed_in(person).get(reverse("approvals:detail", args=[call_id])).text


def states(call_id: UUID) -> tuple[str, str]:
    return Approval.objects.get(pk=call_id).state, Call.objects.get(pk=call_id).state


def let_it_pass() -> None:
    """The time to take it back."""
    Approval.objects.exclude(denies_at=None).update(denies_at=timezone.now())


def actions(call_id: UUID) -> list[str]:
    said = Entry.objects.filter(call_id=call_id).order_by("id").values_list("action", flat=True)
    return [one for one in said if one not in ("call.held", "payload.viewed")]


PENDING = ("waiting", "held")


@pytest.mark.long
def test_a_denial_waits_where_all_see_it_and_no_agent_does(
    alice: User, carol: User, held: UUID
) -> None:
    page = press(alice, held, because="target").text

    assert "Its agent has not been notified yet" in page
    assert states(held) == PENDING
    assert Call.objects.get(pk=held).outcome == ""
    assert actions(held) == ["approval.voted"]
    at = Approval.objects.get(pk=held).denies_at
    assert at
    assert timedelta(0) < at - timezone.now() <= timedelta(seconds=SPAN_S)
    for person in (alice, carol):
        shown = card(person, held)
        assert "Denied by alice." in shown
        assert '<time class="countdown"' in shown
        assert "Denied, its agent is notified" in shown
        assert ("Take your denial back" in shown) == (person == alice)


def test_when_its_time_is_over_the_call_is_denied_by_whoever_denied_it(
    alice: User, held: UUID
) -> None:
    press(alice, held, reason="Not to Ana.")
    services.send_denials()
    assert states(held) == PENDING

    let_it_pass()
    services.send_denials()

    assert states(held) == ("denied", "denied")
    moved = Entry.objects.get(action="call.denied")
    assert moved.actor == "alice"
    assert moved.reason == Call.objects.get(pk=held).outcome == "Denied by alice. Not to Ana."
    assert Approval.objects.get(pk=held).decided_by == alice


@pytest.mark.long
def test_its_voter_takes_it_back_and_both_are_entries(alice: User, carol: User, held: UUID) -> None:
    press(alice, held)

    press(alice, held, "take_back")

    assert Approval.objects.get(pk=held).denies_at is None
    assert actions(held) == ["approval.voted", "approval.taken_back"]
    assert "Denied by alice." not in card(carol, held)
    services.send_denials()
    assert states(held) == PENDING
    press(alice, held, "approve")
    assert states(held) == ("approved", "queued")


@pytest.mark.long
def test_nobody_else_takes_it_back(
    client: Client, alice: User, carol: User, olga: User, held: UUID
) -> None:
    press(alice, held)

    assert "You have no vote here to take back." in press(carol, held, "take_back").text
    assert press(olga, held, "take_back").status_code == 403
    there = reverse("approvals:take_back", args=[held])
    assert client.post(there).status_code == 302
    assert signed_in(alice).get(there).status_code == 405
    assert Vote.objects.standing().get().person == alice
    assert Approval.objects.get(pk=held).denies_at


@pytest.mark.long
def test_it_is_not_taken_back_too_late(alice: User, held: UUID) -> None:
    press(alice, held)
    let_it_pass()

    assert "can no longer be taken back" in press(alice, held, "take_back").text

    services.send_denials()
    assert states(held) == ("denied", "denied")
    press(alice, held, "take_back")
    assert Vote.objects.standing().get().person == alice


def test_whoever_sends_it_may_die_meanwhile(alice: User, held: UUID) -> None:
    """The row says when, and any other process goes on with it."""
    press(alice, held)
    let_it_pass()

    with transaction.atomic():
        services.send_denials()
        transaction.set_rollback(True)
    assert states(held) == PENDING
    services.send_denials()
    services.send_denials()

    assert states(held) == ("denied", "denied")
    assert actions(held) == ["approval.voted", "call.denied"]


def test_a_setting_that_is_off_meanwhile_changes_nothing(
    alice: User, held: UUID, settings: Any
) -> None:
    press(alice, held)
    settings.TAKE_BACK_S = 0

    services.reconsider(Approval.objects.get(pk=held))
    assert states(held) == PENDING
    let_it_pass()
    services.send_denials()

    assert states(held) == ("denied", "denied")


def test_its_time_ends_with_the_time_to_decide_and_it_does_not_expire(
    alice: User, held: UUID
) -> None:
    soon = timezone.now() + timedelta(seconds=5)
    Approval.objects.filter(pk=held).update(decide_by=soon)
    press(alice, held)
    approval = Approval.objects.get(pk=held)
    assert approval.denies_at == approval.decide_by

    now = timezone.now()
    Approval.objects.filter(pk=held).update(decide_by=now, denies_at=now)
    services.expire()
    assert states(held) == PENDING
    services.send_denials()

    assert states(held) == ("denied", "denied")


def test_another_denial_stands_when_the_first_is_taken_back(
    alice: User, carol: User, held: UUID
) -> None:
    press(alice, held)
    first = Approval.objects.get(pk=held).denies_at
    press(carol, held)
    assert Approval.objects.get(pk=held).denies_at == first

    press(alice, held, "take_back")

    # She has all of her own time.
    after = Approval.objects.get(pk=held).denies_at
    assert first
    assert after
    assert after > first
    let_it_pass()
    services.send_denials()
    assert Entry.objects.get(action="call.denied").reason == "Denied by carol."


@pytest.mark.long
def test_an_approval_of_somebody_else_waits_for_what_becomes_of_the_denial(
    alice: User, carol: User, held: UUID
) -> None:
    press(alice, held)

    press(carol, held, "approve")
    assert states(held) == PENDING
    press(alice, held, "take_back")

    assert states(held) == ("approved", "queued")


def test_a_voter_who_is_disabled_meanwhile_denied_nothing(
    alice: User, carol: User, held: UUID
) -> None:
    press(alice, held)
    User.objects.filter(pk=alice.pk).update(is_active=False)

    let_it_pass_unseen(held)
    services.send_denials()

    assert states(held) == PENDING
    assert Approval.objects.get(pk=held).denies_at is None


def let_it_pass_unseen(held: UUID) -> None:
    """Also where its votes deny it no longer."""
    services.reconsider(Approval.objects.get(pk=held))


def test_its_agent_withdraws_it_meanwhile(alice: User, scout: Agent, held: UUID) -> None:
    press(alice, held)

    assert services.cancel(held, by=scout.actor)

    services.send_denials()
    assert states(held) == ("withdrawn", "withdrawn")


def test_an_emergency_stop_does_not_shorten_it(alice: User, olga: User, held: UUID) -> None:
    soon = timezone.now() + timedelta(seconds=1)
    Approval.objects.filter(pk=held).update(decide_by=soon)
    freezes.begin(by=olga, reason="Odd mails.")
    press(alice, held)

    at = Approval.objects.get(pk=held).denies_at

    assert at
    assert at > soon


@pytest.mark.long
def test_after_an_emergency_stop_it_is_taken_back_as_the_page_says(
    alice: User, carol: User, held: UUID
) -> None:
    press(alice, held)
    Approval.objects.filter(pk=held).update(decide_by=timezone.now())

    assert "The time to decide is over." in press(carol, held, "approve").text
    press(alice, held, "take_back")

    assert Vote.objects.standing().count() == 0
    services.expire()
    assert states(held) == ("expired", "expired")


def test_nobody_elses_approval_sends_it_when_its_time_to_decide_is_over(
    alice: User, carol: User, held: UUID
) -> None:
    press(alice, held)
    press(carol, held, "approve")
    Approval.objects.filter(pk=held).update(decide_by=timezone.now())

    press(alice, held, "take_back")

    services.expire()
    assert states(held) == ("expired", "expired")


@pytest.mark.long
@pytest.mark.parametrize("is_over", [False, True])
def test_an_edit_does_not_undo_it(alice: User, carol: User, held: UUID, is_over: bool) -> None:
    press(alice, held)
    there = reverse("approvals:edit", args=[held])
    assert there not in card(carol, held)
    if is_over:
        let_it_pass()
    seen = Call.objects.get(pk=held).call_digest

    with pytest.raises(services.DecisionRefused, match="can be edited once that is taken back"):
        editing.edit(
            Approval.objects.for_queue().get(pk=held),
            editing.Edit(seen, orjson.dumps(scenery.MAIL | {"subject": "Other"})),
            by=carol,
        )

    assert "can be edited once that is taken back" in signed_in(carol).get(there).text
    assert Approval.objects.get(pk=held).denies_at
    assert not Vote.objects.exclude(fallen_at=None).exists()


@pytest.mark.long
def test_one_that_cannot_be_denied_holds_up_no_other(
    alice: User,
    scout: Agent,
    send_mail: Tool,
    held: UUID,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    second = scenery.call(scout, send_mail, {**scenery.MAIL, "subject": "2"}, State.HELD)
    press(alice, held)
    press(alice, second)
    let_it_pass()
    decided = eligibility.decided

    def broken(call_id: UUID, thresholds: Any) -> Any:
        if call_id == held:
            raise ValueError("many")
        return decided(call_id, thresholds)

    monkeypatch.setattr(eligibility, "decided", broken)

    services.send_denials()

    assert states(second) == ("denied", "denied")
    assert states(held) == PENDING
    (said,) = [record for record in caplog.records if record.name == "approvals.services"]
    assert said.getMessage() == f"Approval {held} could not be denied; the others are."


@pytest.mark.long
def test_who_may_no_longer_decide_denied_nothing_and_it_expires(alice: User, held: UUID) -> None:
    press(alice, held)
    now = timezone.now()
    Approval.objects.filter(pk=held).update(decide_by=now, denies_at=now)
    alice.groups.clear()

    services.send_denials()
    services.expire()

    assert states(held) == ("expired", "expired")


@pytest.mark.long
def test_an_approval_is_sent_at_once(alice: User, held: UUID) -> None:
    page = press(alice, held, "approve").text

    assert "It is sent now." in page
    assert states(held) == ("approved", "queued")
    assert "queued, starts by" in card(alice, held)


def test_without_the_setting_a_denial_is_told_at_once(
    alice: User, held: UUID, settings: Any
) -> None:
    settings.TAKE_BACK_S = 0

    press(alice, held)

    assert states(held) == ("denied", "denied")


@pytest.mark.long
def test_what_is_being_denied_needs_nobody(alice: User, carol: User, held: UUID) -> None:
    assert find_decidable(carol).count == 1

    press(alice, held)

    assert find_decidable(carol).count == 0


def test_all_of_an_agent_are_being_denied(
    alice: User, scout: Agent, send_mail: Tool, held: UUID
) -> None:
    second = scenery.call(scout, send_mail, {**scenery.MAIL, "subject": "2"}, State.HELD)
    seen = [f"{pk}:{Call.objects.get(pk=pk).call_digest}" for pk in (held, second)]

    page = signed_in(alice).post(
        reverse("approvals:deny_all"), {"agent": "scout", "call": seen}, follow=True
    )

    assert "You denied 2 calls." in page.text
    assert Approval.objects.exclude(denies_at=None).count() == 2


@pytest.mark.long
def test_a_list_that_is_open_learns_of_it_and_of_its_end(
    alice: User, carol: User, held: UUID
) -> None:
    news, given = reverse("approvals:news"), {"shown": str(held), "open": str(held)}
    client = signed_in(carol)
    assert "countdown" not in client.get(news, given).text

    press(alice, held)
    told = client.get(news, given).text
    assert f'id="denial-{held}" hx-swap-oob' in told
    assert f'id="row-{held}" hx-swap-oob' in told
    assert told.count("countdown") == 2
    press(alice, held, "take_back")

    told = client.get(news, given).text
    assert f'id="row-{held}" hx-swap-oob' in told
    assert "countdown" not in told


@pytest.mark.long
def test_the_database_takes_no_shorter_way(alice: User, held: UUID) -> None:
    with pytest.raises(DatabaseError, match="only a denial"), transaction.atomic():
        Approval.objects.filter(pk=held).update(denies_at=timezone.now())
    press(alice, held)
    late = timezone.now() + timedelta(seconds=70)
    with pytest.raises(DatabaseError, match="for a minute at most"), transaction.atomic():
        Approval.objects.filter(pk=held).update(denies_at=late)
    with pytest.raises(DatabaseError, match="can still be taken back"), transaction.atomic():
        Approval.objects.filter(pk=held).update(state="denied", decided_by=alice)
