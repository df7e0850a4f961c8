"""Clients that users sign in as agents, and the codes and refresh tokens given to them."""

from __future__ import annotations

from typing import Self

from django.db import models
from django.utils import timezone

from core.triggers import Keep


class SignInClient(models.Model):
    """A program that asks users to sign it in (an OAuth client)."""

    class Kind(models.TextChoices):
        # Its id is the address of a document about it (CIMD).
        DOCUMENT = "document"
        # It registered itself (RFC 7591): nobody vouches for its name.
        REGISTERED = "registered"

    client_id = models.CharField(max_length=255, unique=True)
    kind = models.CharField(max_length=10, choices=Kind)
    name = models.CharField(max_length=100, blank=True)
    redirect_uris = models.JSONField(default=list)
    # Whether it may be a device without a browser, whose user types a code (RFC 8628).
    device_flow = models.BooleanField(default=False, db_default=False)
    # Whether it has to sign what it asks for tokens with (private_key_jwt); with which algorithm,
    # empty for any; and its public keys: as JWK, or where it publishes them.
    signs_requests = models.BooleanField(default=False, db_default=False)
    signing_alg = models.CharField(max_length=10, blank=True, default="", db_default="")
    keys = models.JSONField(default=list, db_default=[])
    keys_url = models.CharField(max_length=500, blank=True, default="", db_default="")
    # From which a registered one came: of IPv6, 64 bits.
    network = models.CharField(max_length=50, blank=True, default="", db_default="")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    # When the document was last read; of a registered one, when a user last saw its page.
    read_at = models.DateTimeField(default=timezone.now)
    # When a user last allowed it something.
    used_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()
        triggers = [Keep(name="keep_client", columns=["client_id", "kind"])]

    def __str__(self) -> str:
        return self.name or self.client_id


class AuthorizationCode(models.Model):
    """A user's consent on its way to the client: works once, for a minute. Stored as an HMAC."""

    digest = models.BinaryField(max_length=32, unique=True)
    client = models.ForeignKey(SignInClient, models.CASCADE, related_name="+")
    person = models.ForeignKey("accounts.User", models.CASCADE, related_name="+")
    agent = models.ForeignKey("accounts.Agent", models.CASCADE, related_name="+")
    resource = models.CharField(max_length=700)
    redirect_uri = models.TextField()
    # PKCE, S256.
    challenge = models.CharField(max_length=43)
    # The key that alone redeems it, where the client named one (RFC 9449, 10).
    jkt = models.CharField(max_length=43, blank=True, default="", db_default="")
    # The consent page that it was given for: one page gives one code that can be used.
    page = models.CharField(max_length=43, blank=True, default="", db_default="")
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)
    # The grant that came of it, revoked if the code is shown again.
    token = models.ForeignKey("accounts.AgentToken", models.CASCADE, null=True, related_name="+")

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"code for {self.client}"


class DeviceCode(models.Model):
    """A device's question, until a user answers it on the page where its code is typed. Codes are
    stored as HMACs."""

    digest = models.BinaryField(max_length=32, unique=True)
    user_digest = models.BinaryField(max_length=32, unique=True)
    # As text: a client's document is read for users who are signed in alone.
    client_id = models.CharField(max_length=255)
    resource = models.CharField(max_length=700)
    # From which the device asked; of IPv6, 64 bits.
    network = models.CharField(max_length=50, blank=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField()
    # The device asks no more often than this; each time that it does, more.
    interval_s = models.PositiveSmallIntegerField()
    polled_at = models.DateTimeField(null=True)
    decided_at = models.DateTimeField(null=True)
    # Who allowed it, as which agent; neither where it was denied.
    person = models.ForeignKey("accounts.User", models.CASCADE, null=True, related_name="+")
    agent = models.ForeignKey("accounts.Agent", models.CASCADE, null=True, related_name="+")
    used_at = models.DateTimeField(null=True)
    # The grant that came of it, revoked if the code is shown again.
    token = models.ForeignKey("accounts.AgentToken", models.CASCADE, null=True, related_name="+")

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"device code for {self.client_id}"


class RefreshTokenQuerySet(models.QuerySet["RefreshToken"]):
    def of_grant(self, token_id: int) -> Self:
        return self.filter(token=token_id)


class RefreshToken(models.Model):
    """Gets one more access token and the next refresh token. Stored as an HMAC, also after its
    use: shown twice, it ends the grant."""

    token = models.ForeignKey("accounts.AgentToken", models.CASCADE, related_name="refreshing")
    digest = models.BinaryField(max_length=32, unique=True)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    expires_at = models.DateTimeField()
    used_at = models.DateTimeField(null=True)

    objects = RefreshTokenQuerySet.as_manager()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"refresh token of {self.token}"
