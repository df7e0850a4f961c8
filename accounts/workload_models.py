"""Programs without a user that prove at the token endpoint which agent they are."""

from __future__ import annotations

from django.db import models

from core.triggers import Keep


class WorkloadIdentity(models.Model):
    """An agent's way to get access tokens by a signed assertion: with a key of its own, or with
    tokens of an issuer that knows the program. Its AgentToken says whose it is, and ends it."""

    class Kind(models.TextChoices):
        # The program signs assertions itself (RFC 7523).
        KEY = "key"
        # An issuer signs them: Kubernetes, GitHub Actions, SPIFFE.
        ISSUER = "issuer"

    token = models.OneToOneField(
        "accounts.AgentToken", models.PROTECT, primary_key=True, related_name="workload"
    )
    kind = models.CharField(max_length=6, choices=Kind)
    # Public ones, as JWK. Of an issuer: in place of those that it publishes.
    keys = models.JSONField(default=list)
    # Of an issuer that has no discovery document.
    keys_url = models.CharField(max_length=500, blank=True)
    # Of an issuer's tokens: what they have to say. Our own address is the audience of the others.
    audience = models.CharField(max_length=500, blank=True)
    subject = models.CharField(max_length=500, blank=True)
    claims = models.JSONField(default=dict)

    class Meta:
        default_permissions = ()
        triggers = [
            Keep(
                name="keep_workload",
                columns=["kind", "keys", "keys_url", "audience", "subject", "claims"],
            )
        ]

    def __str__(self) -> str:
        return f"workload of {self.token}"


class UsedProof(models.Model):
    """A proof of a client's key (accounts/dpop.py), kept until it is too old: it counts once, in
    whichever process."""

    # SHA-256 of the key and the proof's id.
    digest = models.CharField(max_length=64, primary_key=True)
    # One request: its line may be written twice when the fate of the first commit was unknown.
    request = models.UUIDField()
    expires_at = models.DateTimeField()

    class Meta:
        default_permissions = ()
        indexes = [models.Index(name="accounts_proof_ends", fields=["expires_at"])]

    def __str__(self) -> str:
        return self.digest


class UsedAssertion(models.Model):
    """An assertion that a program signed itself, kept until it expires: it counts once."""

    digest = models.CharField(max_length=64, unique=True)
    expires_at = models.DateTimeField()

    class Meta:
        default_permissions = ()
        indexes = [models.Index(name="accounts_assertion_ends", fields=["expires_at"])]

    def __str__(self) -> str:
        return self.digest
