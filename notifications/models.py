"""Receivers of notifications, and the deliveries on their way."""

from __future__ import annotations

from typing import Any, Self

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from approvals.models import Delegation
from audit.models import ClockTime
from core.ids import uuid7
from notifications.escalation_models import Escalation, EscalationPolicy, EscalationStep
from notifications.events import ALWAYS, ANSWERS, PERSONAL, USUAL, WEBHOOK_CHOICES, Event
from notifications.schedule_models import (
    OnCallCalendar,
    OnCallMember,
    OnCallOverride,
    OnCallSchedule,
)
from notifications.slack_models import ChatAccount, SlackApp, SlackRequest

__all__ = [
    "CHANNELS",
    "BegunDelegation",
    "ChatAccount",
    "Delivery",
    "DoNotDisturb",
    "EntryCursor",
    "Escalation",
    "EscalationPolicy",
    "EscalationStep",
    "MailRecipient",
    "OnCallCalendar",
    "OnCallMember",
    "OnCallOverride",
    "OnCallSchedule",
    "PushDevice",
    "PushKey",
    "SlackApp",
    "SlackRequest",
    "ToldExpiry",
    "Webhook",
]


def usual_events() -> list[str]:
    return [str(event) for event in USUAL]


def event_list(*, default: object = list) -> ArrayField[list[str], list[str]]:
    return ArrayField(models.CharField(max_length=32), default=default, blank=True)


class MailRecipientQuerySet(models.QuerySet["MailRecipient"]):
    def reachable(self) -> Self:
        return self.filter(confirmed_at__isnull=False, person__is_active=True)


class MailRecipient(models.Model):
    """A person's e-mail address, and the events for which they want mail; kept without an address
    when it was removed."""

    person = models.OneToOneField(
        User, models.CASCADE, primary_key=True, related_name="mail_recipient"
    )
    address = models.EmailField(_("e-mail address"), max_length=254)
    # Empty until its owner has followed the link that was sent there.
    confirmed_at = models.DateTimeField(null=True, editable=False)
    # When a link to confirm was sent last, to whatever address.
    link_sent_at = models.DateTimeField(null=True, editable=False)
    events = event_list(default=usual_events)

    objects = MailRecipientQuerySet.as_manager()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"mail to {self.person_id}"

    def wants(self, event: str) -> bool:
        return event in ALWAYS or event in self.events


class DoNotDisturb(models.Model):
    """Until when a person's mail and pushes wait: quiet hours of each day, and a mute."""

    person = models.OneToOneField(
        User, models.CASCADE, primary_key=True, related_name="do_not_disturb"
    )
    # Both or neither, by the clock of the person's time zone.
    quiet_from = models.TimeField(null=True)
    quiet_until = models.TimeField(null=True)
    muted_until = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()
        constraints = [
            models.CheckConstraint(
                name="notifications_quiet_from_until",
                condition=Q(quiet_from__isnull=True, quiet_until__isnull=True)
                | Q(quiet_from__isnull=False, quiet_until__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"quiet hours of {self.person_id}"


class Webhook(models.Model):
    """An address of another program that is notified by signed requests, or of a chat."""

    class Format(models.TextChoices):
        STANDARD = "standard", _("Standard Webhooks (signed JSON)")
        SLACK = "slack", "Slack"
        SLACK_APP = "slack_app", _("Slack app")
        TEAMS = "teams", "Microsoft Teams"
        MATTERMOST = "mattermost", "Mattermost"
        DISCORD = "discord", "Discord"
        TELEGRAM = "telegram", "Telegram"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(_("name"), max_length=60, unique=True)
    format = models.CharField(_("format"), max_length=10, choices=Format, default=Format.STANDARD)
    # Of a chat, whose whole address is a secret: only its host and its last characters.
    url = models.URLField(_("URL"), max_length=500)
    sealed_url = models.BinaryField(null=True, editable=False)
    # Of messages in a chat.
    language = models.CharField(
        _("language"), max_length=16, choices=settings.LANGUAGES, default=settings.LANGUAGE_CODE
    )
    # Empty: all of them.
    events = event_list()
    enabled = models.BooleanField(_("enabled"), default=True)
    # Whoever saved it last may view arguments: then a chat gets those that rules show.
    takes_arguments = models.BooleanField(default=False, editable=False)
    # Empty for a chat, which checks no signature.
    sealed_secret = models.BinaryField(editable=False)
    # After a rotation both sign, until then.
    sealed_previous = models.BinaryField(null=True, editable=False)
    previous_until = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    created_by = models.ForeignKey(
        User, models.PROTECT, null=True, editable=False, related_name="+"
    )

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def is_chat(self) -> bool:
        return self.format != Webhook.Format.STANDARD

    @property
    def is_slack_app(self) -> bool:
        return self.format == Webhook.Format.SLACK_APP

    def wants(self, event: Event) -> bool:
        return event not in (*PERSONAL, Event.WORKLOAD) and (
            not self.events or event in self.events or self._updates(event)
        )

    def _updates(self, event: Event) -> bool:
        """A message that asks is updated with the answer, whatever was chosen."""
        return self.is_slack_app and event in ANSWERS and Event.APPROVAL_NEEDED in self.events

    def wanted_labels(self) -> list[object]:
        return [label for value, label in WEBHOOK_CHOICES if value in self.events]


class PushKey(models.Model):
    """The one key pair by which push services know this installation (RFC 8292)."""

    id = models.SmallIntegerField(primary_key=True, default=1, editable=False)
    sealed_private = models.BinaryField(editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        default_permissions = ()
        constraints = [
            models.CheckConstraint(name="notifications_one_push_key", condition=Q(id=1)),
        ]

    def __str__(self) -> str:
        return f"push key of {self.created_at}"


class PushDeviceQuerySet(models.QuerySet["PushDevice"]):
    def reachable(self) -> Self:
        return self.filter(person__is_active=True)


class PushDevice(models.Model):
    """A browser of a person's that takes notifications while no page is open, and the events that
    it shows."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    person = models.ForeignKey(User, models.CASCADE, related_name="push_devices")
    # As the browser says it of itself.
    name = models.CharField(max_length=80)
    # Of the push service. The rest of the address is a secret.
    host = models.CharField(max_length=253)
    sealed_subscription = models.BinaryField(editable=False)
    # Of the address: a browser knows by it which of the devices it is.
    fingerprint = models.CharField(max_length=64, unique=True, editable=False)
    events = event_list(default=usual_events)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_sent_at = models.DateTimeField(null=True, editable=False)

    objects = PushDeviceQuerySet.as_manager()

    class Meta:
        default_permissions = ()
        ordering = ["created_at"]

    def __str__(self) -> str:
        return f"{self.name} of {self.person_id}"

    def wants(self, event: str) -> bool:
        # A link for a new password is for the mailbox alone.
        is_always = event in ALWAYS and event != Event.PASSWORD_RESET
        return is_always or event in self.events


# Of many that were given up: all of a million are counted in seconds.
COUNTED = 10_000


class DeliveryQuerySet(models.QuerySet["Delivery"]):
    def pending(self) -> Self:
        return self.filter(state=Delivery.State.PENDING)

    def dead(self) -> Self:
        return self.filter(state=Delivery.State.DEAD)

    def going_to(self, receiver: str) -> Self:
        """`receiver`: a channel of people, or the id of a webhook."""
        if receiver in CHANNELS:
            return self.filter(channel=receiver)
        return self.filter(webhook__pk=receiver)

    def by_receiver(self) -> list[dict[str, Any]]:
        """Each receiver of the newest COUNTED, as `going_to` takes it, with its name and how many
        of them go there."""
        newest = Delivery.objects.filter(pk__in=self.order_by("-id").values("pk")[:COUNTED])
        counted = newest.order_by().values("channel", "webhook", "webhook__name")
        return [
            {
                "receiver": str(one["webhook"] or one["channel"]),
                "name": one["webhook__name"] or Delivery.Channel(one["channel"]).label,
                "n": one["n"],
            }
            for one in counted.annotate(n=models.Count("pk")).order_by("-n")
        ]

    def repeatable(self) -> Self:
        """Given up, or delivered to a program: programs discard an id that they know."""
        program = Q(state=Delivery.State.SENT, webhook__format=Webhook.Format.STANDARD)
        return self.filter(Q(state=Delivery.State.DEAD) | program)

    def with_link(self) -> Self:
        """All whose link notes who followed it: programs are given the page itself."""
        return self.exclude(webhook__format=Webhook.Format.STANDARD)

    def for_page(self) -> Self:
        return self.select_related("person", "webhook", "device__person").order_by("-id")


class Delivery(models.Model):
    """One message on its way to one person, webhook or device. Its id is the same at every attempt,
    for receivers that want each once."""

    class Channel(models.TextChoices):
        EMAIL = "email", _("E-mail")
        WEBHOOK = "webhook", _("Webhook")
        PUSH = "push", _("Push")

    class State(models.TextChoices):
        PENDING = "pending", _("Queued")
        SENT = "sent", _("Delivered")
        DROPPED = "dropped", _("Not needed any more")
        DEAD = "dead", _("Given up")

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    # Of the entry that is the event. Of a reminder, the entry that asked.
    entry_id = models.BigIntegerField()
    event = models.CharField(max_length=32, choices=Event)
    call_id = models.UUIDField(null=True)
    server = models.CharField(max_length=64, blank=True)
    channel = models.CharField(max_length=7, choices=Channel)
    person = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    webhook = models.ForeignKey(Webhook, models.CASCADE, null=True, related_name="deliveries")
    device = models.ForeignKey(PushDevice, models.CASCADE, null=True, related_name="deliveries")
    state = models.CharField(max_length=7, choices=State, default=State.PENDING)
    # Counted before each: a message that ends its sender's process uses them up as well.
    attempts = models.PositiveSmallIntegerField(default=0)
    # When it is due; while it is being sent, when another process may try.
    next_at = models.DateTimeField(db_default=ClockTime())
    created_at = models.DateTimeField(db_default=ClockTime())
    ended_at = models.DateTimeField(null=True)
    # When its reader, signed in, first opened what a push is about.
    opened_at = models.DateTimeField(null=True)
    # When its link was first followed without a sign-in: by a program that scans messages, or by a
    # reader who signed in next.
    unsigned_at = models.DateTimeField(null=True)
    # People, by id, who followed its link though it was sent to somebody else, or to a chat; up to
    # a few.
    strangers = ArrayField(models.BigIntegerField(), default=list, db_default=[])
    # When a person whom its link or button led there first acted (notifications/acts.py).
    acted_at = models.DateTimeField(null=True)
    # The id that the channel gave the message, where it says one and others can answer to it. Of a
    # call in a mail on several: the delivery whose link the mail has.
    receipt = models.CharField(max_length=64, blank=True, default="")
    # Why the last attempt failed, or why it is not needed; English, without anything secret.
    error = models.CharField(max_length=500, blank=True)

    objects = DeliveryQuerySet.as_manager()

    class Meta:
        default_permissions = ()
        ordering = ["-id"]
        constraints = [
            models.CheckConstraint(
                name="notifications_one_receiver",
                condition=Q(
                    channel="email", person__isnull=False, webhook__isnull=True, device__isnull=True
                )
                | Q(
                    channel="webhook",
                    person__isnull=True,
                    webhook__isnull=False,
                    device__isnull=True,
                )
                | Q(
                    channel="push", person__isnull=True, webhook__isnull=True, device__isnull=False
                ),
            ),
            models.UniqueConstraint(
                name="notifications_once_a_person",
                fields=["entry_id", "event", "person"],
                condition=Q(person__isnull=False),
            ),
            models.UniqueConstraint(
                name="notifications_once_a_webhook",
                fields=["entry_id", "event", "webhook"],
                condition=Q(webhook__isnull=False),
            ),
            models.UniqueConstraint(
                name="notifications_once_a_device",
                fields=["entry_id", "event", "device"],
                condition=Q(device__isnull=False),
            ),
        ]
        indexes = [
            models.Index(
                name="notifications_due", fields=["next_at"], condition=Q(state="pending")
            ),
            models.Index(name="notifications_dead", fields=["id"], condition=Q(state="dead")),
            models.Index(
                name="notifications_call", fields=["call_id"], condition=Q(call_id__isnull=False)
            ),
            models.Index(name="notifications_ended", fields=["ended_at"]),
            # When a person was last notified of a pending call, and how often just now.
            models.Index(
                name="notifications_asked",
                fields=["person", "created_at"],
                condition=Q(event="approval.needed", person__isnull=False),
            ),
            models.Index(
                name="notifications_asked_on",
                fields=["device", "created_at"],
                condition=Q(event="approval.needed", device__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.event} {self.pk}"

    @property
    def is_repeatable(self) -> bool:
        """Whether it is among DeliveryQuerySet.repeatable()."""
        is_sent = self.is_for_program and self.state == self.State.SENT
        return self.state == self.State.DEAD or is_sent

    @property
    def is_for_program(self) -> bool:
        return self.webhook is not None and not self.webhook.is_chat

    @property
    def reader(self) -> User | None:
        """The person whom it reaches; nobody: a program or a chat."""
        return self.device.person if self.device else self.person

    @property
    def is_pending(self) -> bool:
        return self.state == Delivery.State.PENDING

    @property
    def is_first_attempt(self) -> bool:
        """Its outcome comes in a moment."""
        return self.state == Delivery.State.PENDING and self.attempts < 2


# Of people; a webhook is a receiver by itself.
CHANNELS = (str(Delivery.Channel.EMAIL), str(Delivery.Channel.PUSH))


class EntryCursor(models.Model):
    """The one row that says which entries were turned into deliveries (notifications/cursor.py)."""

    id = models.SmallIntegerField(primary_key=True, default=1, editable=False)
    # Every entry up to here that will ever be there was read.
    reached = models.BigIntegerField()
    # Entries beyond it that were read already.
    seen = ArrayField(models.BigIntegerField(), default=list)
    # How far `reached` moves next: once whoever may still write an entry up to there has ended.
    ahead = models.BigIntegerField()
    ahead_at = models.DateTimeField(db_default=ClockTime())
    ahead_horizon = models.BigIntegerField(null=True)

    class Meta:
        default_permissions = ()
        constraints = [
            models.CheckConstraint(name="notifications_one_cursor", condition=Q(id=1)),
        ]

    def __str__(self) -> str:
        return f"up to entry {self.reached}"


class BegunDelegation(models.Model):
    """A delegation whose delegate was notified of what was pending as it began."""

    delegation = models.OneToOneField(
        Delegation, models.CASCADE, primary_key=True, related_name="begun"
    )

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.delegation)


class ToldExpiry(models.Model):
    """A token of whose end people were notified: once, unless its end is changed."""

    public_id = models.CharField(max_length=8)
    expires_at = models.DateTimeField()

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                name="notifications_told_once", fields=["public_id", "expires_at"]
            )
        ]

    def __str__(self) -> str:
        return self.public_id
