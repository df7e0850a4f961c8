"""Our registrations at servers, and the credentials of the installation and of people there.

Whatever is secret is sealed to its row (registry/credentials/vault.py), and never shown.
"""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from registry.models.servers import Server


def _scopes() -> ArrayField[list[str], list[str]]:
    return ArrayField(models.CharField(max_length=200), default=list, db_default=[], blank=True)


class ServerClient(models.Model):
    """This installation as an OAuth client of a server, or the header for people's own keys."""

    class Registration(models.TextChoices):
        NONE = "", _("Not registered yet")
        GIVEN = "given", _("Client ID given by the server's operator")
        DOCUMENT = "document", _("Client ID metadata document")
        DYNAMIC = "dynamic", _("Registered by itself")

    server = models.OneToOneField(Server, models.CASCADE, related_name="client")
    # For keys that people enter: the header, and what stands before the key.
    header = models.CharField(max_length=100, blank=True)
    client_id = models.CharField(max_length=2000, blank=True)
    sealed_secret = models.BinaryField(null=True, editable=False)
    registration = models.CharField(max_length=8, choices=Registration, blank=True)
    # What is asked for beside what the server names itself.
    scopes = _scopes()
    # As discovered: the authorization server, its endpoints, and the resource as it has it.
    issuer = models.CharField(max_length=2000, blank=True, editable=False)
    resource = models.CharField(max_length=2000, blank=True, editable=False)
    metadata = models.JSONField(default=dict, editable=False)
    named_scopes = _scopes()

    def __str__(self) -> str:
        return self.server.slug


class ServerCredentialQuerySet(models.QuerySet["ServerCredential"]):
    def usable(self) -> Self:
        """Neither ended nor of a person who left."""
        there = models.Q(person=None) | models.Q(person__is_active=True)
        return self.filter(there, ended="").exclude(sealed=None)

    def left_behind(self) -> Self:
        return self.filter(person__is_active=False)

    def of(self, server_id: int, person_id: int | None) -> Self:
        return self.filter(server_id=server_id, person_id=person_id)


class ServerCredential(models.Model):
    """The installation's (no person) or one person's credential at one server."""

    server = models.ForeignKey(Server, models.CASCADE, related_name="credentials")
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="server_credentials"
    )
    issuer = models.CharField(max_length=2000, blank=True)
    # Grows with every renewal: whoever was refused with an older one takes the newer.
    generation = models.PositiveIntegerField(default=1)
    sealed = models.BinaryField(null=True, editable=False)
    expires_at = models.DateTimeField(null=True)
    # Granted; and what the server asked for beyond them, until the person consents.
    scopes = _scopes()
    wanted_scopes = _scopes()
    # Why it is of no use any more; "": it is.
    ended = models.CharField(max_length=300, blank=True)
    connected_at = models.DateTimeField(default=timezone.now)
    refreshed_at = models.DateTimeField(null=True)

    objects = ServerCredentialQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["server", "person"],
                name="registry_one_credential",
                nulls_distinct=False,
            )
        ]

    def __str__(self) -> str:
        return f"{self.server_id} of {self.person_id or 'all'}"
