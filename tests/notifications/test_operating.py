"""Notifications for whoever keeps it running: tokens, limits, checks, backups, and the workload."""

from datetime import UTC, datetime, time, timedelta
from urllib.parse import urlsplit
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.utils import timezone
from django.utils.formats import date_format

from accounts.models import Agent, AgentToken, User
from accounts.roles import Role
from accounts.services import issue_token
from approvals.models import Approval
from approvals.services import vote
from audit.models import Entry
from audit.services import SYSTEM, record
from config import host
from notifications import expiring_tokens, workload_mails
from notifications.cursor import read_entries
from notifications.events import CHOICES, WEBHOOK_CHOICES, Event
from notifications.mails import spoken_to
from notifications.models import Delivery, Webhook
from notifications.sending import send_due
from notifications.slack_forms import SlackAppForm
from notifications.tasks import tell_workload
from tests.console import scenery
from tests.notifications.conftest import reader
from tests.notifications.receivers import Mailbox, links_to, text_of

pytestmark = pytest.mark.django_db


def notify() -> None:
    read_entries()
    send_due()


def expiring(agent: Agent, *, days: float, of_days: int = 90) -> AgentToken:
    issue_token(agent, by=None)
    token = AgentToken.objects.filter(agent=agent).latest("pk")
    ends = timezone.now() + timedelta(days=days)
    AgentToken.objects.filter(pk=token.pk).update(
        created_at=ends - timedelta(days=of_days), expires_at=ends
    )
    token.refresh_from_db()
    return token


def test_an_expiring_token_is_told_once_to_its_owner_and_to_who_may_replace_it(
    scout: Agent, bob: User, olga: User, cursor: None, mailbox: Mailbox
) -> None:
    token = expiring(scout, days=6)
    expiring(scout, days=8)
    expiring(scout, days=1, of_days=2)
    reader(bob)
    reader(olga)
    reader(scenery.person("vera", Role.VIEWER))

    assert expiring_tokens.tell() == 1
    assert expiring_tokens.tell() == 0
    notify()

    assert sorted(mailbox.recipients) == ["bob@example.org", "olga@example.org"]
    said = text_of(mailbox.messages[0], "plain")
    assert str(token) in said
    assert links_to("/agents/scout/", said)
    entry = Entry.objects.get(action="token.expiring")
    assert entry.agent == "scout"
    assert entry.details
    assert entry.details["token"] == str(token)


def test_of_a_token_that_was_replaced_meanwhile_nobody_is_told(
    scout: Agent, bob: User, cursor: None, mailbox: Mailbox
) -> None:
    token = expiring(scout, days=3)
    reader(bob)
    expiring_tokens.tell()
    AgentToken.objects.filter(pk=token.pk).update(revoked_at=timezone.now())

    notify()

    assert mailbox.recipients == []
    assert Delivery.objects.get().state == Delivery.State.DROPPED


def test_whoever_may_change_limits_hears_that_one_was_reached(
    cursor: None, mailbox: Mailbox
) -> None:
    for name, role in (("ada", Role.ADMINISTRATOR), ("vera", Role.VIEWER)):
        reader(scenery.person(name, role), Event.LIMIT_REACHED)
    record(
        "limit.reached", actor=SYSTEM, reason="60 calls a minute.", limit="Mail", counted="scout"
    )

    notify()

    assert mailbox.recipients == ["ada@example.org"]
    assert mailbox.messages[0]["Subject"] == "Limit reached: Mail"
    assert "60 calls a minute." in text_of(mailbox.messages[0], "plain")


def test_of_a_limit_the_agents_owner_hears_too(
    scout: Agent, bob: User, cursor: None, mailbox: Mailbox
) -> None:
    for person in (bob, scenery.person("vera", Role.VIEWER)):
        reader(person, Event.LIMIT_REACHED)
    agent = (scout.pk, "scout")
    record("limit.reached", actor=SYSTEM, agent=agent, reason="3 failures in a row.", limit="Loop")

    notify()

    assert mailbox.recipients == ["bob@example.org"]
    said = text_of(mailbox.messages[0], "plain")
    assert "scout" in said
    assert links_to("/limits/", said)


def test_of_unusual_use_its_owner_hears_and_whoever_may_change_the_agent(
    scout: Agent, bob: User, olga: User, cursor: None, mailbox: Mailbox
) -> None:
    for person in (bob, olga, scenery.person("vera", Role.VIEWER)):
        reader(person)
    reason = "Its last 5 calls were blocked or denied."
    record("agent.unusual", actor=SYSTEM, agent=(scout.pk, "scout"), reason=reason)

    notify()

    assert sorted(mailbox.recipients) == ["bob@example.org", "olga@example.org"]
    assert mailbox.messages[0]["Subject"] == "Unusual use: scout"
    said = text_of(mailbox.messages[0], "plain")
    assert reason in said
    assert links_to("/agents/scout/", said)


def test_operators_hear_that_a_backup_failed(olga: User, cursor: None, mailbox: Mailbox) -> None:
    for person in (olga, scenery.person("vera", Role.VIEWER)):
        reader(person)
    record("backup.failed", actor=SYSTEM, reason="The disk is full.", path="/backup/friday")

    notify()

    assert mailbox.recipients == ["olga@example.org"]
    said = text_of(mailbox.messages[0], "plain")
    assert "The disk is full." in said
    assert "/backup/friday" in said


def test_auditors_hear_that_a_verification_failed(cursor: None, mailbox: Mailbox) -> None:
    for name, role in (("ines", Role.AUDITOR), ("vera", Role.VIEWER)):
        reader(scenery.person(name, role))
    reason = "Entry 7 was changed."
    record("audit.verification_failed", actor=SYSTEM, reason=reason, findings=3)

    notify()

    assert mailbox.recipients == ["ines@example.org"]
    assert reason in text_of(mailbox.messages[0], "html")


def test_what_failed_is_in_the_log_also_where_the_database_takes_no_entry(
    cursor: None, caplog: pytest.LogCaptureFixture
) -> None:
    with transaction.atomic():
        with pytest.raises(DatabaseError), connection.cursor() as asking:
            asking.execute("SELECT 1 / 0")
        host.record_failure("audit.verification_failed", "Entry 7 was changed.")
        transaction.set_rollback(True)

    assert not Entry.objects.filter(action="audit.verification_failed").exists()
    levels = {one.levelname for one in caplog.records if "Entry 7 was changed." in one.message}
    assert levels == {"ERROR"}
    assert "could not be recorded" in caplog.text


def test_the_week_is_told_in_the_figures_of_the_page_and_the_words_of_its_reader(
    alice: User, held: UUID
) -> None:
    approval = Approval.objects.for_queue().get(pk=held)
    vote(approval, by=alice, approve=False, seen_digest=approval.call.call_digest)
    next_week = Entry(action="workload.weekly", at=timezone.now() + timedelta(days=7))
    alice.language = "zh-hans"

    with spoken_to(alice):
        said = workload_mails.compose(Delivery(), next_week, alice)

    assert urlsplit(said.link).path.endswith("/workload/")
    assert ("alice", "1 次决定 · 拒绝 100%") in said.facts


def test_where_it_is_still_sunday_the_mail_is_of_the_week_that_ends(
    alice: User, held: UUID
) -> None:
    approval = Approval.objects.for_queue().get(pk=held)
    vote(approval, by=alice, approve=False, seen_digest=approval.call.call_digest)
    User.objects.filter(pk=alice.pk).update(time_zone="Pacific/Honolulu")
    with timezone.override("Pacific/Honolulu"):
        today = timezone.localdate()
        monday = today + timedelta(days=7 - today.weekday())
        told = Entry(action="workload.weekly", at=datetime.combine(monday, time(6), UTC))

        said = workload_mails.compose(Delivery(), told, alice)

        sunday = monday - timedelta(days=1)
    assert said.subject.endswith(f" – {date_format(sunday, 'DATE_FORMAT')}")
    # Its link is of that very week, whenever it is followed.
    client = Client()
    client.force_login(alice)
    shown = client.get("/workload/?" + urlsplit(said.link).query)
    assert shown.context["until"].date() == sunday
    assert shown.context["since"].tzinfo == ZoneInfo("Pacific/Honolulu")


def test_of_a_week_without_decisions_nobody_is_mailed(
    alice: User, cursor: None, mailbox: Mailbox
) -> None:
    reader(alice, Event.WORKLOAD)

    tell_workload()
    notify()

    assert mailbox.recipients == []


def test_a_webhook_gets_no_workload_which_differs_by_reader() -> None:
    assert Event.WORKLOAD in dict(CHOICES)
    assert Event.WORKLOAD not in dict(WEBHOOK_CHOICES)
    offered = str(SlackAppForm()["events"])
    assert f'value="{Event.LIMIT_REACHED}"' in offered
    assert f'value="{Event.WORKLOAD}"' not in offered
    of_all = Webhook(name="all of them", events=[])
    assert of_all.wants(Event.LIMIT_REACHED)
    assert not of_all.wants(Event.WORKLOAD)
