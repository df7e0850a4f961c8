"""Notifications for whoever keeps it running: tokens, limits, checks, backups, and the workload."""

from datetime import UTC, date, datetime, time, timedelta
from urllib.parse import urlsplit
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import Group
from django.db import DatabaseError, connection, transaction
from django.test import Client
from django.utils import timezone
from django.utils.formats import date_format

from accounts import custom_roles, service_accounts
from accounts.custom_roles import RoleTerms
from accounts.models import Agent, AgentToken, ServiceToken, User
from accounts.roles import Role
from accounts.services import issue_token, rotate_token, set_groups
from approvals import workload
from approvals.models import Approval, CardView
from approvals.services import expire, vote
from audit.models import Entry
from audit.services import SYSTEM, record
from calls.record.states import State
from calls.record.transitions import Move, move_now
from config import host
from notifications import expiring_tokens, weekly_workload, workload_mails
from notifications.cursor import read_entries
from notifications.events import CHOICES, WEBHOOK_CHOICES, Event
from notifications.mails import spoken_to
from notifications.models import Delivery, Webhook
from notifications.sending import send_due
from notifications.slack_forms import SlackAppForm
from notifications.tasks import tell_workload
from policies.models import Effect, Rule
from policies.services import save_rule
from registry.models import Server, Tool
from tests.console import scenery
from tests.notifications.conftest import reader
from tests.notifications.receivers import Hook, Mailbox, links_to, text_of

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


@pytest.mark.parametrize("days", [5, 60])
def test_a_token_that_was_rotated_is_not_told_of(
    scout: Agent, olga: User, cursor: None, mailbox: Mailbox, days: int
) -> None:
    reader(olga)
    token = expiring(scout, days=days)
    is_told = days == 5
    assert expiring_tokens.tell() == is_told
    rotate_token(token, by=olga)

    assert expiring_tokens.tell() == 0
    notify()
    assert len(mailbox.messages) == 0


def test_a_token_of_a_service_account_that_was_rotated_is_not_told_of(olga: User) -> None:
    account = service_accounts.create("ci", purpose="Builds.", scopes=["calls.view_call"], by=olga)
    service_accounts.issue_token(account, by=olga, days=90)
    token = ServiceToken.objects.get()
    begun = timezone.now() - timedelta(days=60)
    ServiceToken.objects.update(created_at=begun, expires_at=begun + timedelta(days=90))
    token.refresh_from_db()

    service_accounts.rotate_token(token, by=olga)

    assert expiring_tokens.tell() == 0


@pytest.mark.parametrize("tag", ["payments", "other"])
def test_a_role_for_some_tags_is_told_of_what_bears_one(
    scout: Agent, send_mail: Tool, olga: User, cursor: None, mailbox: Mailbox, tag: str
) -> None:
    mallory = reader(scenery.person("mallory"))
    terms = RoleTerms(
        frozenset({"registry.operate_server", "calls.cancel_call", "accounts.change_agent"}),
        server_tags=("payments",),
        agent_tags=("payments",),
    )
    role = custom_roles.create("Payments", description="", terms=terms, by=olga)
    mallory.groups.add(role.group)
    server = send_mail.server
    Server.objects.update(tags=[tag])
    Agent.objects.update(tags=[tag])
    record("server.lost", actor=SYSTEM, server=server.slug, reason="As a test.")
    record("definition.found", actor=SYSTEM, server=server.slug)
    record("agent.unusual", actor=SYSTEM, agent=(scout.pk, "scout"), reason="As a test.")
    running = scenery.call(scout, send_mail, scenery.MAIL, State.QUEUED)
    scenery.run(running)
    move_now(Move(running, State.RUNNING, State.UNKNOWN, SYSTEM, reason="Its worker ended."))
    # Of the whole installation, for which a role with tags permits nothing.
    record("backup.failed", actor=SYSTEM, reason="The disk is full.", path="/backup")

    read_entries()
    Delivery.objects.update(next_at=timezone.now())
    Tool.objects.update(state=Tool.State.NEW)
    send_due()

    told = Delivery.objects.filter(person=mallory, state="sent").values_list("event", flat=True)
    covered = {
        "server.unreachable",
        "definition.review_needed",
        "agent.unusual",
        "call.outcome_unknown",
    }
    assert set(told) == (covered if tag == "payments" else set())


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


@pytest.mark.parametrize("tag", ["payments", "other"])
def test_who_may_replace_tokens_of_agents_with_a_tag_is_told(
    scout: Agent, olga: User, cursor: None, mailbox: Mailbox, tag: str
) -> None:
    mallory = reader(scenery.person("mallory"))
    may = frozenset({"accounts.change_agenttoken"})
    terms = RoleTerms(may, agent_tags=("payments",))
    mallory.groups.add(custom_roles.create("P", description="", terms=terms, by=olga).group)
    Agent.objects.update(tags=[tag])
    expiring(scout, days=3)
    expiring_tokens.tell()

    notify()

    assert mailbox.recipients == (["mallory@example.org"] if tag == "payments" else [])


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


def test_a_name_with_a_line_break_is_one_line_of_the_mail(cursor: None, mailbox: Mailbox) -> None:
    reader(scenery.person("ada", Role.ADMINISTRATOR), Event.LIMIT_REACHED)
    name = "Mail\nBcc: eve@example.org\u202e"
    record("limit.reached", actor=SYSTEM, reason="60 a minute.", limit=name, counted="scout")

    notify()

    (message,) = mailbox.messages
    assert mailbox.recipients == ["ada@example.org"]
    subject = str(message["Subject"])
    assert subject == "Limit reached: Mail Bcc: eve@example.org⟦U+202E⟧"
    assert "\nBcc" not in text_of(message)


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


def test_the_week_names_what_expired_and_each_rule_that_was_never_denied(
    alice: User, scout: Agent, send_mail: Tool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workload, "PROPOSE_FROM", 1)
    rule = Rule(name="mail leaves", effect=Effect.ASK, server="mailer", position=10)
    save_rule(rule, by=alice.actor)
    named = {"rule_id": rule.pk, "rule": rule.name}
    asked = scenery.call(scout, send_mail, scenery.MAIL, State.HELD, **named)
    approval = Approval.objects.for_queue().get(pk=asked)
    vote(approval, by=alice, approve=True, seen_digest=approval.call.call_digest)
    opened = scenery.call(scout, send_mail, {**scenery.MAIL, "subject": "Late"}, State.HELD)
    CardView.objects.create(call_id=opened, person=alice)
    Approval.objects.waiting().update(decide_by=timezone.now())
    expire()
    next_week = Entry(action="workload.weekly", at=timezone.now() + timedelta(days=7))

    said = workload_mails.compose(Delivery(), next_week, alice)

    assert ("alice", "1 decision · 0 % denied · 1 expired · 1 of them opened") in said.facts
    assert ("Never denied", "mail leaves · mailer.send_mail · asked 1 time") in said.facts


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


@pytest.mark.parametrize(
    ("zone", "hour"),
    [("Pacific/Honolulu", 16), ("America/New_York", 11), ("UTC", 6), ("Asia/Shanghai", -2)],
)
def test_the_mail_on_a_week_waits_for_the_monday_of_its_reader(
    alice: User, cursor: None, monkeypatch: pytest.MonkeyPatch, zone: str, hour: int
) -> None:
    """By winter time, counted from midnight UTC."""
    entry = record("workload.weekly", actor=SYSTEM)
    monday = datetime(2026, 1, 5, tzinfo=UTC)
    monkeypatch.setattr(workload_mails, "_last_monday", lambda _entry: date(2025, 12, 29))
    alice.time_zone = zone
    waiting = Delivery(entry_id=entry.pk, event=Event.WORKLOAD, person=alice)

    due = monday + timedelta(hours=hour)
    monkeypatch.setattr(workload_mails, "now", lambda: due - timedelta(seconds=1))
    assert workload_mails.resumes_at(waiting) == due
    monkeypatch.setattr(workload_mails, "now", lambda: due)
    assert workload_mails.resumes_at(waiting) is None


def test_the_mail_on_a_week_is_sent_once_the_week_is_over(
    alice: User, held: UUID, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader(alice, Event.WORKLOAD)
    read_entries()
    today = timezone.now()
    approval = Approval.objects.for_queue().get(pk=held)
    vote(approval, by=alice, approve=False, seen_digest=approval.call.call_digest)
    # What was decided just now is of the week that ends.
    monkeypatch.setattr(workload_mails, "_monday", lambda _entry: today - timedelta(days=1))
    monkeypatch.setattr(workload_mails, "_last_monday", lambda _entry: today.date())
    record("workload.weekly", actor=SYSTEM)

    notify()

    waiting = Delivery.objects.get(event=Event.WORKLOAD)
    assert (waiting.state, waiting.attempts) == ("pending", 0)
    assert waiting.next_at > timezone.now() + timedelta(days=4)
    assert mailbox.recipients == []

    before = today.date() - timedelta(days=8)
    monkeypatch.setattr(workload_mails, "_last_monday", lambda _entry: before)
    Delivery.objects.update(next_at=today)
    send_due()

    assert mailbox.recipients == ["alice@example.org"]


def test_of_a_week_without_decisions_nobody_is_mailed(
    alice: User, cursor: None, mailbox: Mailbox
) -> None:
    reader(alice, Event.WORKLOAD)

    tell_workload()
    notify()

    assert mailbox.recipients == []


def test_a_week_is_told_once_and_later_if_its_monday_was_missed(db: None) -> None:
    today = timezone.now().astimezone(UTC).date()
    monday = datetime.combine(today - timedelta(days=today.weekday(), weeks=1), time(6), UTC)
    minute, week = timedelta(minutes=1), timedelta(days=7)

    assert not weekly_workload.tell(monday - minute)
    assert weekly_workload.tell(monday + timedelta(days=6))
    # A repeated run; and one before the time of the next week, which has no entry.
    assert not weekly_workload.tell(monday + timedelta(days=6, hours=17))
    assert not weekly_workload.tell(monday + 2 * week - minute)
    assert weekly_workload.tell(monday + 2 * week)


def test_two_runs_tell_a_week_once(db: None) -> None:
    tell_workload()
    tell_workload()

    # None in the hours before it is due.
    assert Entry.objects.filter(action="workload.weekly").count() <= 1


def test_a_webhook_gets_no_workload_which_differs_by_reader() -> None:
    assert Event.WORKLOAD in dict(CHOICES)
    assert Event.WORKLOAD not in dict(WEBHOOK_CHOICES)
    offered = str(SlackAppForm()["events"])
    assert f'value="{Event.LIMIT_REACHED}"' in offered
    assert f'value="{Event.WORKLOAD}"' not in offered
    of_all = Webhook(name="all of them", events=[])
    assert of_all.wants(Event.LIMIT_REACHED)
    assert not of_all.wants(Event.WORKLOAD)


@pytest.mark.long
@pytest.mark.parametrize("role", ["cfo", Role.OPERATOR, Role.APPROVER])
def test_every_role_and_group_that_is_given_is_told_of_once(
    olga: User, cursor: None, mailbox: Mailbox, role: str
) -> None:
    """A rule may name any group as its approvers."""
    ada = reader(scenery.person("ada", Role.ADMINISTRATOR))
    vera = scenery.person("vera", Role.VIEWER)
    group, _made = Group.objects.get_or_create(name=role)
    read_entries()

    set_groups(vera, [*vera.groups.all(), group], by=ada)
    notify()

    (message,) = mailbox.messages
    said: dict[str, str] = {
        Role.APPROVER: "ada gave vera the role Approver",
        Role.OPERATOR: "ada set the groups of vera: Operator, Viewer",
    }
    assert message["Subject"] == said.get(role, "ada set the groups of vera: Viewer, cfo")


def test_a_role_whose_permissions_change_is_told_of(
    webhook: Webhook, hook: Hook, cursor: None, mailbox: Mailbox
) -> None:
    ada = reader(scenery.person("ada", Role.ADMINISTRATOR))
    facts = {"before": {"permissions": []}, "after": {"permissions": ["calls.view_call"]}}
    record("role.changed", actor=ada.actor, role="Watcher", description="", **facts)
    record("person.groups_set", actor=ada.actor, person="vera", before=[], after=["cfo"])

    notify()

    assert [one["Subject"] for one in mailbox.messages] == [
        "ada changed what the role Watcher may do",
        "ada set the groups of vera: cfo",
    ]
    of_role, of_groups = (body["data"] for _id, body in hook.requests)
    assert (of_role["role"], "groups" in of_role) == ("Watcher", False)
    assert (of_groups["person"], of_groups["groups"]) == ("vera", ["cfo"])
