"""People, the agents that they own, and the tokens that agents carry."""

from __future__ import annotations

from typing import Self

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from audit.services import Actor
from core.triggers import configuration


class User(AbstractUser):
    """A person who uses the console."""

    time_zone = models.CharField(max_length=64, default="UTC")

    class Meta(AbstractUser.Meta):
        triggers = configuration("username", "is_active")

    @property
    def actor(self) -> Actor:
        return Actor("person", self.pk, self.username)


class AgentQuerySet(models.QuerySet["Agent"]):
    def owned_by(self, person: User) -> Self:
        return self.filter(owner=person)

    def visible_to(self, person: User) -> Self:
        """All of them to those whose role says so; to others, what they answer for."""
        return self if person.has_perm("accounts.view_agent") else self.owned_by(person)


class Agent(models.Model):
    """A program that calls tools, answered for by the person who owns it."""

    name = models.SlugField(_("name"), max_length=100, unique=True)
    owner = models.ForeignKey(User, models.PROTECT, related_name="agents")
    enabled = models.BooleanField(_("enabled"), default=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = AgentQuerySet.as_manager()

    # What REST framework asks of whoever stands behind a request.
    is_authenticated = True

    class Meta:
        ordering = ["name"]
        triggers = configuration()

    def __str__(self) -> str:
        return self.name

    @property
    def actor(self) -> Actor:
        return Actor("agent", self.pk, self.name)


class AgentTokenQuerySet(models.QuerySet["AgentToken"]):
    def valid(self) -> Self:
        return self.filter(
            revoked_at=None,
            expires_at__gt=timezone.now(),
            agent__enabled=True,
            agent__owner__is_active=True,
        )


class AgentToken(models.Model):
    """What an agent shows at the door: `csa_<id>_<secret>_<crc>`, of which we keep an HMAC."""

    agent = models.ForeignKey(Agent, models.PROTECT, related_name="tokens")
    public_id = models.CharField(max_length=8, unique=True)
    digest = models.BinaryField(max_length=32)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    created_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    # Written at most once a minute, and never a reason for caches to be read again.
    last_used_at = models.DateTimeField(null=True, blank=True)

    objects = AgentTokenQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at"]
        triggers = configuration("revoked_at", "expires_at", "digest", "agent_id")

    def __str__(self) -> str:
        return f"csa_{self.public_id}_…"


class SignInLink(models.Model):
    """A way in that works once, for the first administrator and for people who are locked out."""

    person = models.ForeignKey(User, models.CASCADE, related_name="+")
    digest = models.BinaryField(max_length=32, unique=True)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()
