"""Where somebody cannot be notified of a pending call, others are notified at once."""

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.models import User
from notifications import devices, push_keys, services, subscriptions
from notifications.cursor import read_entries
from notifications.models import Delivery, MailRecipient, PushDevice
from notifications.sending import send_due
from policies.thresholds import Threshold
from tests.approvals.test_quorum import say
from tests.notifications.push_service import PushService
from tests.notifications.receivers import Mailbox
from tests.notifications.test_escalation import Ask, ask, lead, look, policy, team, told
from tests.notifications.test_on_call import ask_on_call, schedule
from tests.notifications.test_push import FIREFOX, service
from tests.notifications.test_quiet_hours import quiet_now

__all__ = ["ask", "lead", "service", "team"]

pytestmark = pytest.mark.django_db

BOUNCED = "550 5.1.1 no such user"


@pytest.fixture
def telephone(team: list[User], service: PushService) -> PushDevice:
    """hugo's, who has no address."""
    service.key = push_keys.public_key()
    MailRecipient.objects.filter(person=team[1]).delete()
    given = subscriptions.read(service.subscription())
    return devices.add(team[1], given, user_agent=FIREFOX)


def test_where_the_device_of_the_person_on_call_is_gone_all_are_notified(
    ask: Ask,
    team: list[User],
    olga: User,
    telephone: PushDevice,
    service: PushService,
    mailbox: Mailbox,
) -> None:
    ask_on_call(olga, schedule(olga, [team[1]]))
    service.status = 410
    call = ask()
    assert told(call) == []

    send_due()

    assert told(call) == ["gina", "ines"]
    assert mailbox.recipients == ["gina@example.org", "ines@example.org"]


def test_where_an_address_bounces_the_next_step_follows_at_once(
    ask: Ask, team: list[User], olga: User, mailbox: Mailbox
) -> None:
    ask_on_call(olga, schedule(olga, [team[1]]), then_all=True)
    mailbox.refusal = BOUNCED
    call = ask()
    send_due()
    assert told(call) == ["hugo"]
    mailbox.refusal = ""

    look()
    send_due()

    assert told(call) == ["gina", "hugo", "ines"]
    assert mailbox.recipients == ["gina@example.org", "ines@example.org"]


def test_where_all_addresses_bounce_each_is_tried_once(
    ask: Ask, team: list[User], olga: User, mailbox: Mailbox
) -> None:
    policy(olga, (0, "turn", 1))
    mailbox.refusal = BOUNCED
    call = ask()

    send_due()
    send_due()

    assert told(call) == ["gina", "hugo", "ines"]
    assert set(Delivery.objects.values_list("state", "attempts")) == {("dead", 1)}


def test_who_has_another_way_and_what_is_decided_calls_nobody(
    ask: Ask,
    team: list[User],
    olga: User,
    telephone: PushDevice,
    service: PushService,
    mailbox: Mailbox,
) -> None:
    MailRecipient.objects.create(
        person=team[1],
        address="hugo@example.org",
        confirmed_at=telephone.created_at,
        events=["approval.needed"],
    )
    ask_on_call(olga, schedule(olga, [team[1]]))
    service.status = 410
    first, second = ask(), ask()
    say(second, team[0])
    Delivery.objects.filter(call_id=second, device=None).delete()

    send_due()
    read_entries()

    assert told(first) == ["hugo"]
    assert told(second) == []


def test_where_whoever_is_on_call_mutes_meanwhile_the_next_step_follows_at_once(
    ask: Ask, team: list[User], olga: User, mailbox: Mailbox
) -> None:
    ask_on_call(olga, schedule(olga, [team[1]]), then_all=True)
    call = ask()
    services.mute(team[1], timezone.now() + timedelta(hours=1))

    send_due()
    look()
    send_due()

    assert told(call) == ["gina", "hugo", "ines"]
    assert mailbox.recipients == ["gina@example.org", "ines@example.org"]


def test_where_quiet_hours_begin_meanwhile_all_are_notified(
    ask: Ask, team: list[User], olga: User, mailbox: Mailbox
) -> None:
    ask_on_call(olga, schedule(olga, [team[1]]))
    call = ask()
    Delivery.objects.update(created_at=timezone.now() - timedelta(hours=2))
    quiet_now(team[1])

    send_due()

    assert told(call) == ["gina", "hugo", "ines"]
    assert mailbox.recipients == ["gina@example.org", "ines@example.org"]


@pytest.mark.parametrize("lost", ["address", "right"])
def test_where_the_person_on_call_cannot_be_asked_any_more_all_are_notified(
    ask: Ask, team: list[User], olga: User, mailbox: Mailbox, lost: str
) -> None:
    ask_on_call(olga, schedule(olga, [team[1]]))
    call = ask()
    if lost == "address":
        MailRecipient.objects.filter(person=team[1]).update(confirmed_at=None)
    else:
        team[1].groups.clear()

    send_due()

    assert told(call) == ["gina", "hugo", "ines"]
    assert mailbox.recipients == ["gina@example.org", "ines@example.org"]


def test_where_others_were_reached_no_step_comes_early(
    ask: Ask, team: list[User], lead: User, olga: User, mailbox: Mailbox
) -> None:
    policy(olga, (0, "turn", 3), (15, "group", "leads"), group=None)
    call = ask("")
    services.mute(team[1], timezone.now() + timedelta(hours=1))
    MailRecipient.objects.filter(person=team[2]).update(events=[])

    send_due()
    look()

    assert told(call) == ["gina", "hugo", "ines"]
    assert mailbox.recipients == ["gina@example.org"]


def test_who_decided_already_is_not_replaced(
    ask: Ask, team: list[User], olga: User, mailbox: Mailbox
) -> None:
    policy(olga, (0, "turn", 2), (15, "everybody", 0))
    call = ask(thresholds=(Threshold(source="group:payments", approve=2),))
    say(call, team[1])

    send_due()
    look()

    assert told(call) == ["gina", "hugo"]
    assert mailbox.recipients == ["gina@example.org"]
