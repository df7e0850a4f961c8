"""Objects that identity providers provision by SCIM: users, groups, and tokens for it."""

from __future__ import annotations

import uuid
from typing import Self

from django.db import models
from django.db.models.functions import Lower
from django.utils import timezone

from core.triggers import Keep


class ScimTokenQuerySet(models.QuerySet["ScimToken"]):
    def valid(self) -> Self:
        now = timezone.now()
        return self.filter(revoked_at=None, is_confirmed=True, expires_at__gt=now)


class ScimToken(models.Model):
    """An identity provider's bearer token `csp_<id>_<secret>_<crc>`, stored as an HMAC. It opens
    nothing but SCIM, for users and groups of its issuer."""

    issuer = models.CharField(max_length=500)
    public_id = models.CharField(max_length=8, unique=True)
    digest = models.BinaryField(max_length=32)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    created_by = models.ForeignKey("accounts.User", models.PROTECT, related_name="+")
    # False: another administrator has to confirm it first.
    is_confirmed = models.BooleanField()
    # Ends within the hour once this one holds.
    replaces = models.ForeignKey("self", models.PROTECT, null=True, related_name="+")
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True)
    # Written at most once a minute.
    last_used_at = models.DateTimeField(null=True)

    objects = ScimTokenQuerySet.as_manager()

    class Meta:
        ordering = ["-created_at"]
        default_permissions = ()
        triggers = [Keep(name="keep_issuer", columns=["issuer", "digest", "created_by_id"])]

    def __str__(self) -> str:
        return f"csp_{self.public_id}_…"

    @property
    def state(self) -> str:
        if self.revoked_at:
            return "revoked"
        if self.expires_at <= timezone.now():
            return "expired"
        return "valid" if self.is_confirmed else "unconfirmed"


class ScimUser(models.Model):
    """A user of a provider, and the person here: known by issuer and this id for ever, never by a
    name or an address. Deleted there, the row stays."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    issuer = models.CharField(max_length=500)
    person = models.ForeignKey("accounts.User", models.PROTECT, related_name="scim_users")
    user_name = models.CharField(max_length=255)
    external_id = models.CharField(max_length=255, blank=True)
    # The other attributes, as the provider wrote them.
    attributes = models.JSONField(default=dict)
    # What the provider said last, and may have taken back. The person may be disabled all the same.
    is_active = models.BooleanField(null=True)
    # The person's `session_epoch` since the provider disabled them: it enables nobody whom an
    # administrator disabled.
    disabled_epoch = models.PositiveIntegerField(null=True)
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    changed_at = models.DateTimeField(default=timezone.now)
    deleted_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["created_at", "id"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(name="accounts_scim_person", fields=["issuer", "person"]),
            models.UniqueConstraint(
                "issuer",
                Lower("user_name"),
                name="accounts_scim_user_name",
                condition=models.Q(deleted_at=None),
            ),
            models.UniqueConstraint(
                name="accounts_scim_external_id",
                fields=["issuer", "external_id"],
                condition=models.Q(deleted_at=None) & ~models.Q(external_id=""),
            ),
        ]
        triggers = [Keep(name="keep_person", columns=["issuer", "person_id"])]

    def __str__(self) -> str:
        return self.user_name


class ScimGroup(models.Model):
    """A group of a provider. It gives roles only by the provider's mapping, and only by a name that
    it has had since it was made."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    issuer = models.CharField(max_length=500)
    display_name = models.CharField(max_length=255)
    external_id = models.CharField(max_length=255, blank=True)
    # Those of its two names that were never changed: whoever may rename groups gives no roles.
    first_names = models.JSONField(default=list)
    members = models.ManyToManyField(ScimUser, related_name="groups")
    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    changed_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["created_at", "id"]
        default_permissions = ()

    def __str__(self) -> str:
        return self.display_name
