"""Slack apps, and the Slack accounts that people linked to their own."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from core.ids import uuid7
from core.text import revealed


class SlackAppQuerySet(models.QuerySet["SlackApp"]):
    def enabled(self) -> Self:
        return self.filter(webhook__enabled=True).select_related("webhook")


class SlackApp(models.Model):
    """The app behind a webhook that sends to Slack by a bot: its workspace and channel, and what
    people may do from its messages."""

    webhook = models.OneToOneField(
        "notifications.Webhook", models.CASCADE, primary_key=True, related_name="slack_app"
    )
    # Of the workspace that the token is for, as Slack says it.
    team_id = models.CharField(max_length=32, editable=False)
    team_name = models.CharField(max_length=120, editable=False)
    # Its ID; until the first message "#" and its name.
    channel = models.CharField(_("channel"), max_length=81)
    sealed_token = models.BinaryField(editable=False)
    sealed_signing_secret = models.BinaryField(editable=False)
    takes_denials = models.BooleanField(_("Deny in Slack"), default=False)
    takes_comments = models.BooleanField(_("Comment in Slack"), default=False)

    objects = SlackAppQuerySet.as_manager()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"Slack app of {self.webhook_id}"

    @property
    def is_channel_named(self) -> bool:
        return self.channel.startswith("#")

    @property
    def page_url(self) -> str:
        """The channel in Slack; its workspace as long as only the channel's name is known."""
        channel = "" if self.is_channel_named else self.channel
        return f"https://app.slack.com/client/{self.team_id}/{channel}"

    def takes(self, act: str) -> bool:
        return {"deny": self.takes_denials, "comment": self.takes_comments}.get(act, False)


class ChatAccountQuerySet(models.QuerySet["ChatAccount"]):
    def linked(self) -> Self:
        return self.filter(linked_at__isnull=False)

    def begun(self) -> Self:
        return self.filter(linked_at__isnull=True)


class ChatAccount(models.Model):
    """A person's account in a Slack workspace: linked, or on the way there.

    begun (a code for Slack) ─▶ named (the code was typed there) ─▶ linked (confirmed here)
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    person = models.ForeignKey(User, models.CASCADE, related_name="chat_accounts")
    begun_at = models.DateTimeField(default=timezone.now)
    # SHA-256 of the code that the person types in Slack; empty once it was typed.
    code_digest = models.CharField(max_length=64, blank=True)
    # SHA-256 of what the link in Slack's answer says, by which it is confirmed here.
    nonce_digest = models.CharField(max_length=64, blank=True)
    team_id = models.CharField(max_length=32, blank=True)
    team_name = models.CharField(max_length=120, blank=True)
    user_id = models.CharField(max_length=32, blank=True)
    # As Slack gave it then: shown, and never trusted.
    user_name = models.CharField(max_length=120, blank=True)
    # SHA-256 of the signing secret of the app in which it was linked: whoever has another secret
    # speaks for nobody.
    signed_by = models.CharField(max_length=64, blank=True)
    linked_at = models.DateTimeField(null=True)

    objects = ChatAccountQuerySet.as_manager()

    class Meta:
        default_permissions = ()
        ordering = ["linked_at"]
        constraints = [
            models.UniqueConstraint(
                name="notifications_chat_user_once",
                fields=["team_id", "user_id"],
                condition=Q(linked_at__isnull=False),
            ),
            models.UniqueConstraint(
                name="notifications_person_once_a_team",
                fields=["person", "team_id"],
                condition=Q(linked_at__isnull=False),
            ),
            models.UniqueConstraint(
                name="notifications_one_begun_link",
                fields=["person"],
                condition=Q(linked_at__isnull=True),
            ),
        ]

    def __str__(self) -> str:
        return revealed(f"{self.user_name} in {self.team_name}")


class SlackRequest(models.Model):
    """A signed request of Slack's, remembered for as long as its timestamp is accepted."""

    # The signature covers the time and the whole body.
    signature = models.CharField(max_length=80, primary_key=True)
    at = models.DateTimeField(default=timezone.now, db_index=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.signature[:12]
