"""Break-glass: one person's passkey lets one call run that a rule holds, past nothing else."""

from datetime import time, timedelta
from typing import Any
from uuid import UUID

import orjson
import pytest
from django.contrib.auth.models import Permission
from django.db import DatabaseError, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import Agent, User
from accounts.roles import PERMISSIONS, Role
from accounts.services import create_agent
from approvals import break_glass, editing, eligibility, freezes, standing_approvals
from approvals.models import Approval, BreakGlass, Vote
from approvals.record_checks import unrecorded
from approvals.standing_approvals import GrantRefused, Terms
from audit.models import Entry
from audit.services import SYSTEM
from calls import pauses
from calls.models import Call
from calls.queue.claiming import claim
from calls.record.states import State
from notifications import services
from notifications.break_glass_forms import BreakGlassForm
from notifications.cursor import read_entries
from notifications.models import Delivery, PushDevice
from notifications.sending import send_due
from policies.models import Rule
from policies.services import save_rule
from policies.thresholds import Threshold
from registry.models import Server, Tool
from tests.accounts.authenticator import Device
from tests.approvals.test_quorum import say
from tests.approvals.test_stepping import passkey
from tests.console import scenery
from tests.notifications.conftest import reader
from tests.notifications.receivers import Mailbox

CFO = (Threshold(source="group:cfo", approve=2),)
REASON = "The office is on fire, and nobody of the CFOs answers."
SILENCE = "No rule covers this call, so a person decides."
NEVER_SEEN = "0" * 64


@pytest.fixture(autouse=True)
def is_on(settings: Any) -> None:
    settings.BREAK_GLASS = True


@pytest.fixture
def carol(db: None) -> User:
    """May break the glass, and is asked by no rule here."""
    made = scenery.person("carol", Role.APPROVER)
    made.user_permissions.add(Permission.objects.get(codename="break_glass"))
    return User.objects.get(pk=made.pk)


@pytest.fixture
def dora(db: None) -> User:
    return reader(scenery.person("dora", Role.APPROVER), "test")


@pytest.fixture
def device(carol: User) -> Device:
    return passkey(carol)


@pytest.fixture
def held(scout: Agent, send_mail: Tool, cursor: None) -> UUID:
    return scenery.call(scout, send_mail, scenery.MAIL, State.HELD, thresholds=CFO, reason=SILENCE)


@pytest.fixture
def as_carol(client: Client, carol: User, device: Device) -> Client:
    client.force_login(carol)
    return client


def given(call_id: UUID, second: User, reason: str = REASON, seen: str = "") -> dict[str, str]:
    call = Call.objects.get(pk=call_id)
    return {"second": str(second.pk), "reason": reason, "seen": seen or call.call_digest}


def sign(client: Client, call_id: UUID, device: Device, said: dict[str, str]) -> dict[str, str]:
    address = reverse("notifications:sign_break_glass", args=[call_id])
    offered = client.post(address, said).json()
    if "error" in offered:
        return {"error": offered["error"]}
    return {"ticket": offered["ticket"], "answer": device.get(offered["publicKey"])}


def press(client: Client, call_id: UUID, device: Device, second: User, **more: str) -> str:
    said = given(call_id, second, **more)
    return post(client, call_id, {**said, **sign(client, call_id, device, said)})


def post(client: Client, call_id: UUID, said: dict[str, str]) -> str:
    address = reverse("notifications:break_glass", args=[call_id])
    return client.post(address, said, follow=True).text


def state(call_id: UUID) -> str:
    return Call.objects.get(pk=call_id).state


@pytest.mark.long
def test_it_is_not_offered_for_a_statement(
    as_carol: Client, held: UUID, settings: Any, send_mail: Tool
) -> None:
    way = reverse("notifications:break_glass", args=[held])
    card = reverse("approvals:detail", args=[held])
    assert way in as_carol.get(card).text

    Server.objects.filter(pk=send_mail.server_id).update(argv=settings.STATEMENTS_ARGV)

    assert way not in as_carol.get(card).text
    assert "It is a statement" in as_carol.get(way, follow=True).text


@pytest.mark.long
def test_one_call_runs_loudly_and_somebody_else_reviews_it(
    as_carol: Client, carol: User, dora: User, device: Device, held: UUID
) -> None:
    way = reverse("notifications:break_glass", args=[held])
    assert way in as_carol.get(reverse("approvals:detail", args=[held])).text
    shown = as_carol.get(way).text
    assert "Break the glass with your passkey" in shown
    assert "ceo@example.org" in shown or "subject" in shown

    said = press(as_carol, held, device, dora)

    assert "The call is sent. Another approver reviews this." in said
    assert "Break-glass was used." in said
    assert state(held) == State.QUEUED
    used, vote = BreakGlass.objects.get(), Vote.objects.get()
    assert (used.person, used.second, vote.person, vote.step_up) == (carol, dora, carol, "passkey")
    assert vote.proof is not None
    assert f"\nbreak-glass: {dora.pk}\nsecond: dora\n" in vote.proof.statement
    entry = Entry.objects.get(action="break_glass.used")
    assert (entry.actor, entry.reason, entry.call_id) == ("carol", REASON, held)
    named = entry.details
    assert (named["second"], named["owner"], named["seen_digest"]) == (
        "dora",
        "bob",
        used.seen_digest,
    )
    approved = Entry.objects.get(action="call.approved", call_id=held)
    assert (
        approved.reason
        == f"Approved by carol. Break-glass: dora was notified immediately. {REASON}"
    )
    assert unrecorded() == []
    # It is claimed and sent like every approved call.
    assert claim(held, owner="worker-1") is not None
    # dora is told, although she chose no such mail.
    read_entries()
    assert Delivery.objects.filter(event="break_glass.used", person=dora).exists()

    page = reverse("approvals:break_glass")
    assert "Another user must review it." in as_carol.get(page).text
    review(as_carol, used)
    assert BreakGlass.objects.unreviewed().exists()
    as_carol.force_login(dora)
    review(as_carol, used, note=" ")
    assert BreakGlass.objects.unreviewed().exists()
    assert "is reviewed" in review(as_carol, used)
    assert "It is reviewed already." in review(as_carol, used)
    used.refresh_from_db()
    assert (used.reviewer, used.judgement) == (dora, "justified")
    assert Entry.objects.get(action="break_glass.reviewed").details["person"] == "carol"
    assert "Break-glass was used." not in as_carol.get(page).text
    assert unrecorded() == []


@pytest.mark.long
def test_neither_a_mute_nor_quiet_hours_keep_it_from_the_second(
    as_carol: Client, dora: User, device: Device, held: UUID, mailbox: Mailbox
) -> None:
    services.set_quiet_hours(dora, time(0), time(23, 59))
    services.mute(dora, timezone.now() + timedelta(days=1))

    press(as_carol, held, device, dora)
    read_entries()
    send_due()

    assert mailbox.recipients == ["dora@example.org"]
    assert "Break-glass: carol let" in str(mailbox.messages[0]["Subject"])


def create(held: UUID, **row: Any) -> BreakGlass:
    return BreakGlass.objects.create(approval_id=held, **{"reason": REASON, **row})


def review(client: Client, used: BreakGlass, note: str = "I called her.") -> str:
    address = reverse("approvals:review_break_glass", args=[used.pk])
    return client.post(address, {"judgement": "justified", "note": note}, follow=True).text


def test_it_is_off_unless_it_is_switched_on(
    as_carol: Client, dora: User, device: Device, held: UUID, settings: Any
) -> None:
    settings.BREAK_GLASS = False

    assert "Break-glass is off" in press(as_carol, held, device, dora)
    assert "Break the glass" not in as_carol.get(f"/queue/{held}/").text
    assert state(held) == State.HELD


def test_no_role_has_the_right() -> None:
    assert not [role for role, names in PERMISSIONS.items() if break_glass.BREAK_GLASS in names]


def test_whoever_lacks_the_right_is_refused(
    client: Client, alice: User, dora: User, held: UUID
) -> None:
    for person in (alice, scenery.person("ada", Role.ADMINISTRATOR)):
        client.force_login(person)
        for name in ("break_glass", "sign_break_glass"):
            address = reverse(f"notifications:{name}", args=[held])
            assert client.post(address, given(held, dora)).status_code == 403
    # Neither is enough without the right to decide.
    erik = scenery.person("erik", Role.VIEWER)
    erik.user_permissions.add(Permission.objects.get(codename="break_glass"))
    why = break_glass.why_not(Approval.objects.get(pk=held), User.objects.get(pk=erik.pk))
    assert why == "You are not among those who may break the glass."


def test_never_for_ones_own_agent_even_in_single_person_mode(
    as_carol: Client,
    carol: User,
    dora: User,
    device: Device,
    send_mail: Tool,
    cursor: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    own = Agent.objects.create(name="own", owner=carol)
    held = scenery.call(own, send_mail, scenery.MAIL, State.HELD, thresholds=CFO, reason=SILENCE)
    way = reverse("notifications:break_glass", args=[held])

    assert way not in as_carol.get(reverse("approvals:detail", args=[held])).text
    assert "The agent is yours" in press(as_carol, held, device, dora)

    # As in single-person mode, in which nobody is excluded.
    monkeypatch.setattr(eligibility, "excluded_people", lambda call: {})
    assert "The agent is yours" in press(as_carol, held, device, dora)
    with pytest.raises(DatabaseError, match="have a part in"), transaction.atomic():
        BreakGlass.objects.create(
            approval_id=held,
            person=carol,
            second=dora,
            reason=REASON,
            seen_digest=Call.objects.get(pk=held).call_digest,
        )
    assert state(held) == State.HELD


def test_never_past_a_deny_rule(as_carol: Client, dora: User, device: Device, held: UUID) -> None:
    said = given(held, dora)
    signed = sign(as_carol, held, device, said)
    save_rule(Rule(name="no mail", effect="deny", reason="No mail today."), by=SYSTEM)

    text = post(as_carol, held, {**said, **signed})

    assert "superseded" in text
    assert state(held) == State.SUPERSEDED
    assert not BreakGlass.objects.exists()


def test_a_deny_rule_that_comes_afterwards_stops_it_before_it_is_sent(
    as_carol: Client, dora: User, device: Device, held: UUID
) -> None:
    press(as_carol, held, device, dora)
    save_rule(Rule(name="no mail", effect="deny", reason="No mail today."), by=SYSTEM)

    assert claim(held, owner="worker-1") is None
    assert state(held) not in (State.QUEUED, State.RUNNING)


def test_a_rule_that_asks_for_more_afterwards_stops_it_before_it_is_sent(
    as_carol: Client, dora: User, device: Device, held: UUID
) -> None:
    press(as_carol, held, device, dora)
    rule = Rule(name="board", effect="ask", reason="Mail.", thresholds=[{"approve": 3}])
    save_rule(rule, by=SYSTEM)

    assert claim(held, owner="worker-1") is None
    assert state(held) == State.SUPERSEDED


def test_never_past_an_emergency_stop(
    as_carol: Client, alice: User, dora: User, device: Device, held: UUID
) -> None:
    said = given(held, dora)
    signed = sign(as_carol, held, device, said)
    freezes.begin(by=alice, reason="Something is wrong.")

    assert "Something is wrong." in post(as_carol, held, {**said, **signed})
    assert state(held) == State.HELD
    assert not Vote.objects.exists()


def test_never_past_a_limit(
    as_carol: Client, scout: Agent, send_mail: Tool, dora: User, device: Device, cursor: None
) -> None:
    # As the gateway holds a call that is over a limit which asks people.
    reason = "Over the limit “mail”: 10 a day. " + SILENCE
    held = scenery.call(scout, send_mail, scenery.MAIL, State.HELD, reason=reason)

    assert "No rule alone requires its approval" in press(as_carol, held, device, dora)
    assert state(held) == State.HELD


def test_never_past_a_persons_denial(
    as_carol: Client, dora: User, device: Device, scout: Agent, send_mail: Tool, cursor: None
) -> None:
    asks = (Threshold(approve=2, deny=2),)
    held = scenery.call(scout, send_mail, scenery.MAIL, State.HELD, thresholds=asks, reason=SILENCE)
    say(held, dora, approve=False)

    assert "dora denied it" in press(as_carol, held, device, dora)
    assert state(held) == State.HELD


@pytest.mark.parametrize("more", [{"reason": "why not"}, {"seen": NEVER_SEEN}])
def test_without_a_reason_or_of_something_else_nothing_is_signed(
    as_carol: Client, dora: User, device: Device, held: UUID, more: dict[str, str]
) -> None:
    press(as_carol, held, device, dora, **more)

    assert state(held) == State.HELD
    assert not BreakGlass.objects.exists()


@pytest.mark.long
def test_what_was_signed_is_what_is_sent_and_said(
    as_carol: Client, dora: User, device: Device, held: UUID
) -> None:
    said = given(held, dora)
    signed = sign(as_carol, held, device, said)
    erik = reader(scenery.person("erik", Role.APPROVER))
    changed = [
        {"reason": REASON + " Really."},
        {"second": str(erik.pk)},
        {"ticket": ""},
        {"answer": ""},
        {"seen": NEVER_SEEN},
    ]

    for one in changed:
        post(as_carol, held, {**said, **signed, **one})
        assert state(held) == State.HELD
    # Nor does a passkey that signed a plain vote.
    address = reverse("approvals:step_up", args=[held])
    offered = as_carol.post(address, said).json()
    assert "error" in offered
    assert not BreakGlass.objects.exists()


@pytest.mark.long
def test_the_second_is_somebody_else_who_decides_and_can_be_reached(
    as_carol: Client, carol: User, dora: User, bob: User, device: Device, held: UUID
) -> None:
    reader(carol)
    reader(bob)
    vera = reader(scenery.person("vera", Role.VIEWER))
    deaf = scenery.person("deaf", Role.APPROVER)

    for person in (carol, bob, vera, deaf):
        press(as_carol, held, device, person)

    assert state(held) == State.HELD
    assert not BreakGlass.objects.exists()


@pytest.mark.long
def test_it_is_for_one_call_and_once(
    as_carol: Client, dora: User, device: Device, held: UUID, scout: Agent, send_mail: Tool
) -> None:
    said = given(held, dora)
    signed = sign(as_carol, held, device, said)
    other = scenery.call(
        scout,
        send_mail,
        {**scenery.MAIL, "subject": "Other"},
        State.HELD,
        thresholds=CFO,
        reason=SILENCE,
    )

    post(as_carol, other, {**said, **signed, "seen": Call.objects.get(pk=other).call_digest})
    assert state(other) == State.HELD
    post(as_carol, held, {**said, **signed})
    assert "no longer pending" in post(as_carol, held, {**said, **signed})

    assert BreakGlass.objects.count() == 1


@pytest.mark.long
def test_no_standing_approval_is_made_from_it(
    as_carol: Client, carol: User, dora: User, device: Device, held: UUID
) -> None:
    press(as_carol, held, device, dora)

    with pytest.raises(GrantRefused, match="Break-glass is for one call"):
        standing_approvals.make(Call.objects.get(pk=held), Terms(), by=carol)
    assert "Create a standing approval" not in as_carol.get(f"/queue/{held}/").text


def test_the_database_refuses_what_the_service_does(
    as_carol: Client, carol: User, alice: User, dora: User, device: Device, held: UUID
) -> None:
    digest = Call.objects.get(pk=held).call_digest
    rows: list[tuple[dict[str, Any], str]] = [
        ({"person": alice, "second": dora}, "may not break the glass"),
        ({"person": carol, "second": carol}, "somebody else"),
        ({"person": carol, "second": dora, "reason": ""}, "has a reason"),
        ({"person": carol, "second": dora, "seen_digest": NEVER_SEEN}, "something else"),
    ]
    for row, why in rows:
        with pytest.raises(DatabaseError, match=why), transaction.atomic():
            create(held, **{"seen_digest": digest, **row})
    # A row alone, or with a vote that no passkey signed, lets nothing run.
    made = create(held, person=carol, second=dora, seen_digest=digest)
    Vote.objects.create(approval_id=held, person=carol, approve=True, seen_digest=digest)
    with pytest.raises(DatabaseError, match="votes do not say so"), transaction.atomic():
        Approval.objects.filter(pk=held).update(state="approved", decided_by=carol)
    for changed in ({"reason": "Another one."}, {"reviewer": carol, "judgement": "justified"}):
        with pytest.raises(DatabaseError), transaction.atomic():
            BreakGlass.objects.filter(pk=made.pk).update(reviewed_at=made.used_at, **changed)
    with pytest.raises(DatabaseError), transaction.atomic():
        made.delete()


@pytest.mark.parametrize("covers", ["agent", "server", "everything", "pause"])
def test_the_database_refuses_it_during_an_emergency_stop_or_a_pause(
    carol: User, alice: User, dora: User, held: UUID, covers: str
) -> None:
    call = Call.objects.get(pk=held)
    if covers == "pause":
        pauses.begin("Look first.", by=SYSTEM)
    else:
        one = {covers: getattr(call, covers)} if covers != "everything" else {}
        freezes.begin(by=alice, reason="Look first.", **one)

    with pytest.raises(DatabaseError, match="emergency stop or a pause"), transaction.atomic():
        create(held, person=carol, second=dora, seen_digest=call.call_digest)


def test_a_stop_of_another_agent_is_in_nobodys_way(
    carol: User, alice: User, bob: User, dora: User, held: UUID
) -> None:
    freezes.begin(by=alice, reason="Look.", agent=create_agent("other", owner=bob, by=bob))

    digest = Call.objects.get(pk=held).call_digest
    assert create(held, person=carol, second=dora, seen_digest=digest).pk


def second_account_of(person: User) -> User:
    """An approver whom this person let in, and whom nobody else has confirmed."""
    made = reader(scenery.person("second", Role.APPROVER))
    until = timezone.now() + timedelta(days=7)
    User.objects.filter(pk=made.pk).update(invited_by=person, unconfirmed_until=until)
    return User.objects.get(pk=made.pk)


@pytest.mark.long
def test_a_second_account_of_the_agents_owner_is_neither_told_nor_reviews(
    as_carol: Client, bob: User, dora: User, device: Device, held: UUID
) -> None:
    second = second_account_of(bob)

    press(as_carol, held, device, second)
    assert state(held) == State.HELD
    press(as_carol, held, device, dora)
    used = BreakGlass.objects.get()
    as_carol.force_login(second)

    assert "bob invited you" in review(as_carol, used)
    with pytest.raises(DatabaseError, match="somebody else"), transaction.atomic():
        BreakGlass.objects.filter(pk=used.pk).update(
            reviewer=second, judgement="justified", reviewed_at=used.used_at
        )
    assert BreakGlass.objects.unreviewed().exists()


@pytest.mark.long
def test_whoever_edited_the_call_does_not_review_it(
    as_carol: Client, dora: User, device: Device, held: UUID
) -> None:
    erik = reader(scenery.person("erik", Role.APPROVER))
    arguments = orjson.dumps({**scenery.MAIL, "subject": "Edited"})
    seen = Call.objects.get(pk=held).call_digest
    editing.edit(Approval.objects.get(pk=held), editing.Edit(seen, arguments), by=erik)
    press(as_carol, held, device, dora)
    used = BreakGlass.objects.get()
    as_carol.force_login(erik)

    assert "You edited the arguments" in review(as_carol, used)
    assert BreakGlass.objects.unreviewed().exists()


@pytest.mark.long
def test_it_no_longer_counts_once_its_person_may_be_the_agents_owner(
    as_carol: Client, bob: User, carol: User, dora: User, device: Device, held: UUID
) -> None:
    press(as_carol, held, device, dora)
    until = timezone.now() + timedelta(days=7)
    User.objects.filter(pk=carol.pk).update(let_in_by=bob, unconfirmed_until=until)

    assert claim(held, owner="worker-1") is None
    assert state(held) == State.SUPERSEDED


@pytest.mark.parametrize("hosts", [["fcm.googleapis.com"], []])
def test_a_device_of_a_service_that_is_not_allowed_reaches_nobody(
    held: UUID, alice: User, settings: Any, hosts: list[str]
) -> None:
    settings.PUSH_HOSTS = hosts
    second = scenery.person("erna", Role.APPROVER)
    PushDevice.objects.create(
        person=second,
        name="x",
        host="fcm.googleapis.com",
        sealed_subscription=b"x",
        fingerprint="f",
    )

    form = BreakGlassForm(Approval.objects.for_queue().get(pk=held), alice)

    assert (second in form.fields["second"].queryset) == bool(hosts)  # type: ignore[attr-defined]
