"""Our registrations at servers, and the credentials of the installation, people, teams and agents
there.

Whatever is secret is sealed to its row (registry/credentials/vault.py), and never shown.
"""

from __future__ import annotations

from typing import NamedTuple, Self

from django.conf import settings
from django.contrib.auth.models import Group
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import Agent
from registry.models.servers import Server

OWNERS = ("person", "team", "agent")


class CredentialOwner(NamedTuple):
    """Whose credential one is: the installation's (no kind), or of one of OWNERS."""

    kind: str = ""
    # 0: of this kind, and nobody's.
    pk: int | None = None
    name: str = ""

    @property
    def label(self) -> str:
        """The name in rules, entries and cards: no user's name has a colon. Empty for shared."""
        return self.name if self.kind in ("", "person") else f"{self.kind}:{self.name}"

    @property
    def mark(self) -> str:
        """The part of it that a credential is sealed to."""
        return str(self.pk or "") if self.kind in ("", "person") else f"{self.kind}:{self.pk}"


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
    # For keys that are entered: the header, and what stands before the key.
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
        """Neither ended nor of an owner who is gone."""
        return self.exclude(_owner_is_gone()).filter(ended="").exclude(sealed=None)

    def left_behind(self) -> Self:
        return self.filter(_owner_is_gone())

    def of(self, server_id: int, owner: CredentialOwner) -> Self:
        owned = {f"{kind}_id": owner.pk if kind == owner.kind else None for kind in OWNERS}
        return self.filter(server_id=server_id, **owned)

    def with_owners(self) -> Self:
        return self.select_related("person", "team", "agent")


class ServerCredential(models.Model):
    """One owner's credential at one server; with no owner, the installation's."""

    server = models.ForeignKey(Server, models.CASCADE, related_name="credentials")
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="server_credentials"
    )
    # No key of the database: a group may be deleted by what knows nothing of credentials, and its
    # own is then to be revoked (left_behind).
    team = models.ForeignKey(
        Group, models.DO_NOTHING, null=True, related_name="+", db_constraint=False
    )
    agent = models.ForeignKey(Agent, models.CASCADE, null=True, related_name="server_credentials")
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
                fields=["server", "person", "team", "agent"],
                name="registry_one_credential",
                nulls_distinct=False,
            ),
            models.CheckConstraint(
                name="registry_one_owner",
                condition=models.Q(person=None, team=None)
                | models.Q(person=None, agent=None)
                | models.Q(team=None, agent=None),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.server_id} of {self.nameless_owner.mark or 'all'}"

    @property
    def nameless_owner(self) -> CredentialOwner:
        """Without the name, which stands in a row that may be gone."""
        owned = ((kind, getattr(self, f"{kind}_id")) for kind in OWNERS)
        return next((CredentialOwner(*one) for one in owned if one[1]), CredentialOwner())

    @property
    def owner(self) -> CredentialOwner:
        """Needs a row of with_owners, where a team that was deleted is None."""
        owner = self.nameless_owner
        named = getattr(self, owner.kind) if owner.kind else None
        return owner._replace(name=str(named)) if named else owner


def _owner_is_gone() -> models.Q:
    """Their owner left, was disabled or was deleted, or their team's role was retired."""
    person = models.Q(person__isnull=False, person__is_active=False)
    agents = models.Q(agent__enabled=False) | models.Q(agent__owner__is_active=False)
    retired = models.Q(team__custom_role__retired_at__isnull=False)
    team = models.Q(team_id__isnull=False) & (models.Q(team__name__isnull=True) | retired)
    return person | (models.Q(agent__isnull=False) & agents) | team
