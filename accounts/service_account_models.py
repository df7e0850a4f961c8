"""Service accounts: programs that use the REST API for nobody in particular."""

from __future__ import annotations

from typing import Self

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from audit.services import Actor
from core.triggers import Keep


class ServiceAccount(models.Model):
    """A program with a name, permissions of its own and whoever made it."""

    name = models.SlugField(_("name"), max_length=60, unique=True)
    purpose = models.CharField(_("purpose"), max_length=200)
    # Permissions as `has_perm` takes them, among accounts/service_accounts.py: SCOPES.
    scopes = ArrayField(models.CharField(max_length=60))
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    created_by = models.ForeignKey(
        "accounts.User", models.PROTECT, editable=False, related_name="+"
    )

    # REST framework reads it of whoever stands behind a request.
    is_authenticated = True

    class Meta:
        ordering = ["name"]
        default_permissions = ("add", "change", "view")
        triggers = [Keep(name="keep_maker", columns=["name", "created_by_id", "created_at"])]

    def __str__(self) -> str:
        return self.name

    @property
    def actor(self) -> Actor:
        return Actor("system", None, f"service account {self.name}")


class ServiceTokenQuerySet(models.QuerySet["ServiceToken"]):
    def valid(self) -> Self:
        """Without those whose makers, who have seen them, are disabled."""
        return self.filter(
            revoked_at=None,
            expires_at__gt=timezone.now(),
            account__enabled=True,
            created_by__is_active=True,
        )


class ServiceToken(models.Model):
    """A service account's bearer token `css_<id>_<secret>_<crc>`, stored as an HMAC."""

    account = models.ForeignKey(ServiceAccount, models.PROTECT, related_name="tokens")
    public_id = models.CharField(max_length=8, unique=True)
    digest = models.BinaryField(max_length=32)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    created_by = models.ForeignKey("accounts.User", models.PROTECT, related_name="+")
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    # Written at most once a minute, and where the address is another one.
    last_used_at = models.DateTimeField(null=True)
    last_address = models.CharField(max_length=64, blank=True, default="")

    objects = ServiceTokenQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at"]
        default_permissions = ()
        triggers = [Keep(name="keep_issuer", columns=["account_id", "created_by_id", "digest"])]

    def __str__(self) -> str:
        return f"css_{self.public_id}_…"

    @property
    def state(self) -> str:
        if self.revoked_at:
            return "revoked"
        return "valid" if self.expires_at > timezone.now() else "expired"
