"""Webhooks: signed by Standard Webhooks, sent through the guarded client, tried again, sent again;
added, changed and removed by those who may."""

import json
import re
from datetime import timedelta
from typing import Any
from uuid import UUID

import orjson
import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from accounts.models import Agent, User
from accounts.roles import Role
from approvals import freezes
from approvals.editing import Edit, edit
from approvals.models import Approval
from approvals.services import vote
from audit.models import Entry
from audit.services import SYSTEM, record
from notifications import deliveries, models, services
from notifications.cursor import read_entries
from notifications.models import Delivery, Webhook
from notifications.sending import send_due
from notifications.signatures import signature
from notifications.views import webhooks
from registry.models import Tool
from tests.console import scenery
from tests.notifications.receivers import Hook

pytestmark = pytest.mark.django_db


def notify() -> None:
    read_entries()
    send_due()


def due_now() -> None:
    Delivery.objects.pending().update(next_at=timezone.now() - timedelta(seconds=1))


def at(name: str, webhook: Webhook) -> str:
    return reverse(f"notifications:{name}", args=[webhook.pk])


def test_the_signature_is_that_of_the_specification() -> None:
    """Its own example, as its reference libraries have it in their tests."""
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    body = b'{"test": 2432232314}'

    made = signature(
        secret, message_id="msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp=1614265330, body=body
    )

    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_what_happens_to_a_pending_call_is_told_without_its_arguments(
    webhook: Webhook, hook: Hook, held: UUID, alice: User, settings: Any
) -> None:
    approval = Approval.objects.for_queue().get(pk=held)
    vote(approval, by=alice, approve=True, seen_digest=approval.call.call_digest)

    notify()

    (needed_id, needed), (_decided_id, decided) = hook.requests
    asked = Entry.objects.get(action="call.held")
    assert needed["type"] == "approval.needed"
    assert needed["data"] == {
        "entry": asked.pk,
        "call": str(held),
        "fingerprint": approval.call.fingerprint,
        "state": "held",
        "agent": "scout",
        "user": "bob",
        "server": "mailer",
        "tool": asked.tool,
        "reason": "No rule covers this call, so a person decides.",
        "actor": {"kind": asked.actor_kind, "name": asked.actor},
        "url": f"{settings.PUBLIC_URL}/queue/{held}/",
    }
    assert decided["type"] == "approval.decided"
    assert decided["data"]["state"] == "approved"
    assert decided["data"]["actor"] == {"kind": "person", "name": "alice"}
    for value in ("ana@example.org", "Minutes", "attached"):
        assert value not in json.dumps(hook.requests)
    assert Delivery.objects.filter(state="sent").count() == 2
    assert str(Delivery.objects.order_by("entry_id")[0].pk) == needed_id


def test_an_emergency_stop_is_told_with_its_id_what_it_stops_and_why(
    webhook: Webhook, hook: Hook, cursor: None, alice: User, olga: User, settings: Any
) -> None:
    scout = Agent.objects.get(name="scout")
    stop = freezes.begin(by=alice, reason="Look at scout first.", agent=scout)
    freezes.end(stop, by=olga, why="Looked at.")
    everything = freezes.begin(by=alice, reason="Something is wrong.")

    notify()

    began, ended, of_all = (body for _id, body in hook.requests)
    entry = Entry.objects.filter(action="freeze.began").earliest("id")
    assert began["type"] == "emergency_stop.began"
    assert began["data"] == {
        "entry": entry.pk,
        "agent": "scout",
        "emergency_stop": stop.pk,
        "reason": "Look at scout first.",
        "actor": {"kind": "person", "name": "alice"},
        "url": f"{settings.PUBLIC_URL}/emergency-stops/",
    }
    assert ended["type"] == "emergency_stop.ended"
    assert ended["data"]["emergency_stop"] == stop.pk
    assert (ended["data"]["reason"], ended["data"]["actor"]["name"]) == ("Looked at.", "olga")
    assert of_all["data"]["emergency_stop"] == everything.pk
    assert not {"agent", "server"} & of_all["data"].keys()


@pytest.mark.long
def test_while_a_stop_covers_a_pending_call_its_message_names_the_stop(
    webhook: Webhook, hook: Hook, held: UUID, alice: User, olga: User, send_mail: Tool
) -> None:
    other = Agent.objects.create(name="other", owner=olga)
    freezes.begin(by=alice, reason="Of another.", agent=other)
    stop = freezes.begin(by=alice, reason="Look.", server=send_mail.server)
    of_all = freezes.begin(by=alice, reason="Something is wrong.")

    notify()
    for one in (stop, of_all):
        freezes.end(one, by=olga, why="Looked at.")
    Delivery.objects.filter(event="approval.needed").update(state="pending", ended_at=None)
    due_now()
    send_due()

    asked = [body["data"] for _id, body in hook.requests if body["type"] == "approval.needed"]
    assert [one.get("emergency_stop") for one in asked] == [stop.pk, None]


def test_only_chosen_events_are_sent_and_nothing_where_it_is_disabled(
    webhook: Webhook, hook: Hook, held: UUID
) -> None:
    Webhook.objects.update(events=["server.unreachable"])
    notify()
    assert Delivery.objects.count() == 0

    Webhook.objects.update(events=[], enabled=True)
    Approval.objects.update(decide_by=timezone.now())
    Delivery.objects.create(
        entry_id=Entry.objects.get(action="call.held").pk,
        event="approval.needed",
        channel="webhook",
        webhook=webhook,
    )
    Webhook.objects.update(enabled=False)
    notify()

    assert hook.requests == []
    assert Delivery.objects.get().state == Delivery.State.DROPPED


def test_a_receiver_that_fails_gets_it_again_under_the_same_id(
    webhook: Webhook, hook: Hook, held: UUID, alice: User
) -> None:
    hook.status = 503
    notify()
    waiting = Delivery.objects.get()
    assert (waiting.state, waiting.attempts) == ("pending", 1)
    assert waiting.error == "The receiver answered with status 503."

    # What is edited meanwhile changes nothing of what was to be told.
    approval = Approval.objects.for_queue().get(pk=held)
    changed = orjson.dumps({**scenery.MAIL, "subject": "Another"})
    edit(approval, Edit(seen_digest=approval.call.call_digest, arguments=changed), by=alice)
    hook.status = 200
    due_now()
    send_due()

    assert Delivery.objects.get().state == "sent"
    assert len(hook.requests) == 2
    assert len(hook.received) == 1
    assert hook.requests[0] == hook.requests[1]


def test_a_receiver_that_takes_it_may_answer_at_length(
    webhook: Webhook, hook: Hook, held: UUID
) -> None:
    hook.status, hook.answer = 200, bytes(2 * 1024 * 1024)

    notify()

    assert Delivery.objects.get().state == "sent"


def test_a_redirect_is_followed_nowhere(webhook: Webhook, hook: Hook, held: UUID) -> None:
    hook.status = 302

    notify()

    assert Delivery.objects.get().error == "The receiver answered with status 302."


@pytest.mark.long
def test_a_receiver_that_wants_no_more_is_given_up_and_can_be_sent_it_again(
    webhook: Webhook, hook: Hook, held: UUID, as_olga: Client
) -> None:
    hook.status = 410
    notify()
    dead = Delivery.objects.get()
    assert dead.state == "dead"
    page = as_olga.get("/notifications/").text
    assert "status 410" in page
    assert "ledger" in page

    hook.status = 200
    again = reverse("notifications:send_again", args=[dead.pk])
    said = as_olga.post(again, follow=True).text
    assert "It is sent again, under the same id." in said
    send_due()

    assert list(hook.received) == [str(dead.pk)]
    assert Delivery.objects.get().state == "sent"
    assert Entry.objects.get(action="notification.sent_again").actor == "olga"


def given_up(webhook: Webhook, n: int) -> None:
    """Messages that a receiver got none of, and one to somebody by mail."""
    alice = User.objects.get(username="alice")
    held = Entry.objects.get(action="call.held")
    known = {"entry_id": held.pk, "call_id": held.call_id, "event": "approval.needed"}
    dead = {"state": "dead", "attempts": 11, "ended_at": timezone.now()}
    for _n in range(n):
        held = record("webhook.tested", actor=SYSTEM, call_id=held.call_id)
        one = {**known, **dead, "entry_id": held.pk}
        Delivery.objects.create(**one, channel="webhook", webhook=webhook)
    Delivery.objects.create(**known, **dead, channel="email", person=alice)


@pytest.mark.long
def test_all_that_a_receiver_was_not_sent_is_sent_again_by_one_press(
    webhook: Webhook, hook: Hook, held: UUID, alice: User, as_olga: Client
) -> None:
    given_up(webhook, 3)
    page = as_olga.get("/notifications/").text
    assert "3 messages given up" in page
    assert "1 message given up" in page

    there = reverse("notifications:send_all_again")
    said = as_olga.post(there, {"receiver": str(webhook.pk)}, follow=True).text
    assert "3 messages are sent again." in said
    send_due()

    assert len(hook.received) == 3
    assert Delivery.objects.dead().get().channel == "email"
    entry = Entry.objects.get(action="notification.sent_again")
    assert entry.details
    assert (entry.actor, entry.details["webhook"], entry.details["count"]) == ("olga", "ledger", 3)


def test_of_very_many_that_were_given_up_the_newest_are_counted(
    webhook: Webhook, held: UUID, alice: User, as_olga: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    given_up(webhook, 3)
    assert "Of the newest" not in as_olga.get("/notifications/").text

    monkeypatch.setattr(models, "COUNTED", 3)
    monkeypatch.setattr(webhooks, "COUNTED", 3)
    page = as_olga.get("/notifications/").text

    assert "2 messages given up" in page
    assert "Of the newest 3 messages that were given up." in page


def test_what_was_given_up_is_dismissed_one_by_one_or_together(
    webhook: Webhook, hook: Hook, held: UUID, alice: User, as_olga: Client
) -> None:
    given_up(webhook, 3)
    one = Delivery.objects.dead().filter(webhook=webhook).first()
    assert one

    as_olga.post(reverse("notifications:dismiss", args=[one.pk]))
    assert Delivery.objects.dead().count() == 3
    there = reverse("notifications:dismiss_all")
    assert "1 message is dismissed." in as_olga.post(there, {"receiver": "email"}, follow=True).text
    as_olga.post(there, {"receiver": str(webhook.pk)})

    assert not Delivery.objects.dead().exists()
    send_due()
    assert not hook.received
    entries = Entry.objects.filter(action="notification.dismissed").order_by("pk")
    assert [one.details for one in entries] == [
        {"delivery": str(one.pk)},
        {"channel": "email", "count": 1},
        {"webhook": "ledger", "count": 2},
    ]
    for unknown in ("", "webhook", "x"):
        assert as_olga.post(there, {"receiver": unknown}).status_code == 404


def test_a_message_that_is_given_up_is_an_entry(webhook: Webhook, hook: Hook, held: UUID) -> None:
    hook.status = 410
    notify()

    entry = Entry.objects.get(action="notification.given_up")
    assert (entry.call_id, entry.details and entry.details["webhook"]) == (held, "ledger")
    assert "status 410" in entry.reason


def test_what_was_given_up_is_kept_for_three_months(
    webhook: Webhook, held: UUID, alice: User
) -> None:
    given_up(webhook, 1)
    Delivery.objects.update(ended_at=timezone.now() - timedelta(days=89))
    assert deliveries.remove_old() == 0

    Delivery.objects.update(ended_at=timezone.now() - timedelta(days=91))
    assert deliveries.remove_old() == 2


@pytest.mark.long
def test_what_a_program_got_is_sent_to_it_again_with_the_same_id(
    webhook: Webhook, hook: Hook, held: UUID, as_olga: Client
) -> None:
    notify()
    (sent,) = Delivery.objects.all()
    assert sent.state == "sent"
    page = reverse("notifications:webhook", args=[webhook.pk])
    again = reverse("notifications:send_again", args=[sent.pk])
    assert again in as_olga.get(page).text

    as_olga.post(again)
    assert again not in as_olga.get(page).text
    assert "cannot be sent again" in as_olga.post(again, follow=True).text
    send_due()

    assert [name for name, _body in hook.requests] == [str(sent.pk)] * 2
    assert Delivery.objects.get().state == "sent"


def test_while_one_place_fails_others_are_served(
    webhook: Webhook, hook: Hook, held: UUID, olga: User
) -> None:
    """What is due there waits a moment, instead of being tried one by one."""
    other = Webhook(name="other", url=f"{hook.url}?other", events=["approval.needed"])
    hook.secrets.append(services.add_webhook(other, by=olga))
    hook.status = 500
    Webhook.objects.filter(pk=other.pk).update(enabled=False)
    read_entries()
    Delivery.objects.create(
        entry_id=Entry.objects.earliest("id").pk, event="test", channel="webhook", webhook=webhook
    )

    send_due()

    assert len(hook.requests) == 1
    assert Delivery.objects.pending().filter(attempts=0, next_at__gt=timezone.now()).count() == 1


@pytest.mark.long
def test_both_secrets_sign_while_one_takes_the_others_place(
    webhook: Webhook, hook: Hook, held: UUID, as_olga: Client
) -> None:
    (old,) = hook.secrets
    page = as_olga.post(at("rotate_secret", webhook)).text
    new = re.search(r"whsec_[\w+/=]+", page)
    assert new
    assert new[0] != old
    assert new[0] not in as_olga.get(at("webhook", webhook)).text

    notify()
    # Whoever has learnt the new one only, and whoever has the old one only.
    for known in (old, new[0]):
        hook.secrets = [known]
        Delivery.objects.update(state="pending", ended_at=None)
        due_now()
        send_due()
        assert Delivery.objects.get().state == "sent"
    assert [len(one.split()) for one in hook.signatures] == [2, 2, 2]

    Webhook.objects.update(previous_until=timezone.now() - timedelta(seconds=1))
    hook.secrets = [old]
    Delivery.objects.update(state="pending", ended_at=None)
    due_now()
    send_due()
    assert Delivery.objects.get().error == "The receiver answered with status 401."


def test_a_secret_of_another_place_does_not_open(webhook: Webhook, hook: Hook, held: UUID) -> None:
    Webhook.objects.update(sealed_secret=b"0" * 60)

    notify()

    assert Delivery.objects.get().state == "dead"
    assert "rotate it" in Delivery.objects.get().error


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/hook",
        "https://127.0.0.2/hook",
        "https://10.0.0.1/hook",
        "https://169.254.169.254/latest/meta-data",
        "https://[::1]/hook",
        "https://me:secret@example.org/hook",
        "ftp://example.org/hook",
        "file:///etc/passwd",
        "https://",
        "",
    ],
)
def test_private_networks_and_what_is_not_https_are_refused(
    as_olga: Client, settings: Any, url: str
) -> None:
    settings.UPSTREAM_NETWORKS = []

    given = {"name": "x", "format": "standard", "language": "en", "url": url}
    page = as_olga.post(reverse("notifications:add_webhook"), given)

    assert page.status_code == 200
    assert page.text.count('class="error"') == 1
    assert not Webhook.objects.exists()


def test_a_name_that_leads_to_a_private_address_is_not_connected_to(
    webhook: Webhook, hook: Hook, held: UUID, settings: Any
) -> None:
    """Looked at when it is connected to, whatever it led to when it was added."""
    Webhook.objects.update(url=hook.url.replace("http://127.0.0.1", "https://localhost"))
    settings.UPSTREAM_NETWORKS = []

    notify()

    assert hook.requests == []
    assert "is not public" in Delivery.objects.get().error


@pytest.mark.parametrize(
    "secret", ["https://ana:s3cret@x.example/in", "https://x.example/in?token=s3cret#s3cret"]
)
def test_its_entries_have_the_url_without_a_token_in_it(
    as_olga: Client, olga: User, secret: str
) -> None:
    made = Webhook(name="ledger", url=secret, events=["approval.needed"])
    services.add_webhook(made, by=olga)
    services.change_webhook(made, by=olga)
    services.set_webhook_enabled(made, False, by=olga)
    services.remove_webhook(made, by=olga)

    entries = Entry.objects.filter(action__startswith="webhook.")
    assert len(entries) == 4
    assert {one.details["url"] for one in entries} == {"https://x.example/in"}


@pytest.mark.long
def test_one_is_added_tested_changed_disabled_and_removed(
    as_olga: Client, hook: Hook, cursor: None
) -> None:
    events = {"events": ["approval.needed", "approval.decided"]}
    chosen = {"format": "standard", "language": "en"}
    given = {"name": "ledger", "url": hook.url, **chosen, **events}
    page = as_olga.post(reverse("notifications:add_webhook"), given).text
    secret = re.search(r"whsec_[\w+/=]+", page)
    assert secret
    hook.secrets = [secret[0]]
    made = Webhook.objects.get()
    # Nowhere in the database as it is, and on no page again.
    assert secret[0].encode() not in bytes(made.sealed_secret)
    assert secret[0] not in as_olga.get(at("webhook", made)).text
    assert Entry.objects.get(action="webhook.added").details["url"] == hook.url

    page = as_olga.post(at("test_webhook", made), follow=True).text
    assert "A test message is on its way." in page
    assert "every 2s" in page
    send_due()
    assert [body["type"] for body in hook.received.values()] == ["test"]
    page = as_olga.get(at("webhook", made)).text
    assert "Test message" in page
    assert "every 2s" not in page

    page = as_olga.post(at("edit_webhook", made), {**given, "name": "books"}, follow=True).text
    assert "“books” is saved." in page
    assert (
        "not notified any more"
        in as_olga.post(at("set_enabled", made), {"enabled": "0"}, follow=True).text
    )
    assert (
        "“books” is notified."
        in as_olga.post(at("set_enabled", made), {"enabled": "1"}, follow=True).text
    )
    assert "Remove “books”?" in as_olga.get(at("remove_webhook", made)).text
    assert "Deliveries queued" in as_olga.get(at("remove_webhook", made)).text
    assert Webhook.objects.exists()
    assert "“books” is removed." in as_olga.post(at("remove_webhook", made), follow=True).text
    assert not Webhook.objects.exists()
    actions = Entry.objects.filter(action__startswith="webhook.").order_by("id")
    assert list(actions.values_list("action", flat=True)) == [
        *("webhook.added", "webhook.tested", "webhook.changed"),
        *("webhook.disabled", "webhook.enabled", "webhook.removed"),
    ]


@pytest.mark.long
@pytest.mark.parametrize(
    ("role", "sees", "changes"),
    [
        (Role.ADMINISTRATOR, True, True),
        (Role.OPERATOR, True, True),
        (Role.AUDITOR, True, False),
        (Role.APPROVER, False, False),
        (Role.VIEWER, False, False),
    ],
)
def test_only_administrators_and_operators_change_them(
    webhook: Webhook, client: Client, role: Role, sees: bool, changes: bool
) -> None:
    client.force_login(scenery.person("carol", role))

    for path in ("/notifications/", at("webhook", webhook)):
        page = client.get(path)
        assert page.status_code == (200 if sees else 403)
        assert ("Rotate the secret" in page.text or "New webhook" in page.text) == changes
    if changes:
        return
    dead = Delivery.objects.create(
        entry_id=1, event="test", channel="webhook", webhook=webhook, state="dead"
    )
    refused = [
        reverse("notifications:add_webhook"),
        *(reverse(f"notifications:{name}", args=[dead.pk]) for name in ("send_again", "dismiss")),
        *(reverse(f"notifications:{name}") for name in ("send_all_again", "dismiss_all")),
        *(at(name, webhook) for name in ("edit_webhook", "set_enabled", "test_webhook")),
        *(at(name, webhook) for name in ("rotate_secret", "remove_webhook")),
    ]
    for path in refused:
        assert client.post(path, {"enabled": "0", "receiver": "email"}).status_code == 403, path
    assert Webhook.objects.get().enabled
    assert Delivery.objects.get().state == "dead"


def test_nothing_is_done_by_following_a_link(webhook: Webhook, as_olga: Client) -> None:
    for name in ("set_enabled", "test_webhook", "rotate_secret"):
        assert as_olga.get(at(name, webhook)).status_code == 405
