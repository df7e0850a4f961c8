"""Servers, and how they were at the last look."""

from __future__ import annotations

from typing import Self

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.custom_role_models import tags
from core import abilities
from core.triggers import configuration


def usual_relays() -> list[str]:
    """A model's answers cost whoever runs it, and show what stands in its context: not unasked."""
    return [Server.Relay.ELICITATION, Server.Relay.ROOTS]


class ServerQuerySet(models.QuerySet["Server"]):
    def kept(self) -> Self:
        """Without those that were deleted."""
        return self.filter(deleted_at=None)


class Server(models.Model):
    """An upstream MCP server: where it is, how we speak to it, and how it does."""

    class Relay(models.TextChoices):
        ELICITATION = abilities.ELICITATION, _("Elicitation: questions to the agent's user")
        ROOTS = abilities.ROOTS, _("Roots: the folders that the agent works in")
        SAMPLING = abilities.SAMPLING, _("Sampling: answers of the agent's model")

    class Transport(models.TextChoices):
        HTTP = "http", _("HTTP")
        STDIO = "stdio", _("Command (stdio)")
        API = "api", _("HTTP API (OpenAPI)")

    class SignIn(models.TextChoices):
        NONE = "", _("Shared: the credential of the server’s page")
        SHARED = "oauth", _("Shared: one account, by OAuth")
        PERSON = "oauth-person", _("Personal: each user’s own account, by OAuth")
        KEY = "key-person", _("Personal: each user’s own key in a header")
        TEAM = "oauth-team", _("Team: each team’s own account, by OAuth")
        TEAM_KEY = "key-team", _("Team: each team’s own key in a header")
        AGENT = "oauth-agent", _("Agent: each agent’s own account, by OAuth")
        AGENT_KEY = "key-agent", _("Agent: each agent’s own key in a header")

        @property
        def takes_keys(self) -> bool:
            return self.value.startswith("key-")

    class Revision(models.TextChoices):
        NEWEST = "", _("The newest that both sides know")
        R2026_07_28 = "2026-07-28", "2026-07-28"
        R2025_11_25 = "2025-11-25", "2025-11-25"
        R2025_06_18 = "2025-06-18", "2025-06-18"
        R2025_03_26 = "2025-03-26", "2025-03-26"
        R2024_11_05 = "2024-11-05", "2024-11-05"

    class Health(models.TextChoices):
        UNKNOWN = "unknown", _("Not yet reached")
        OK = "ok", _("Reachable")
        DOWN = "down", _("Unreachable")

    slug = models.SlugField(_("name"), max_length=32, unique=True)
    title = models.CharField(_("title"), max_length=200, blank=True)
    transport = models.CharField(max_length=5, choices=Transport)
    url = models.URLField(_("URL"), max_length=2000, blank=True)
    # For stdio: a name in the host's catalogue of commands, and what stood there when registered.
    command = models.CharField(_("command"), max_length=100, blank=True)
    argv = models.JSONField(default=list, blank=True)
    # Both sealed with the row's identity as associated data, never shown again.
    sealed_headers = models.BinaryField(null=True, editable=False)
    sealed_credential = models.BinaryField(null=True, editable=False)
    # Whose credential calls carry (registry/models/credentials.py).
    sign_in = models.CharField(
        _("sign-in"), max_length=12, choices=SignIn, default=SignIn.NONE, db_default="", blank=True
    )
    # Grows with every change of address, headers or credential: pools are keyed by it.
    connection_version = models.PositiveIntegerField(default=1, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="servers")
    tags = tags()
    enabled = models.BooleanField(_("enabled"), default=True)
    publish_on_discovery = models.BooleanField(_("publish on first discovery"), default=False)
    # What is done to results of its tools that have no choices of their own: members of
    # inspection.results.ResultRules that are not as they are by default.
    result_rules = models.JSONField(default=dict, db_default={}, editable=False)
    # What the server may ask of agents in the middle of a call, if their clients can answer.
    relays = ArrayField(
        models.CharField(max_length=11, choices=Relay),
        verbose_name=_("may ask of agents"),
        default=usual_relays,
        db_default=["elicitation", "roots"],
        blank=True,
    )
    # Those of extensions of MCP that agents may ask it by (registry/extensions.py).
    methods = ArrayField(
        models.CharField(max_length=100),
        verbose_name=_("methods of extensions"),
        default=list,
        db_default=[],
        blank=True,
    )

    # What it spoke last, and what it is to be spoken to in.
    revision = models.CharField(max_length=10, blank=True, editable=False)
    wanted_revision = models.CharField(
        _("revision of the protocol"),
        max_length=10,
        choices=Revision,
        default=Revision.NEWEST,
        db_default="",
        blank=True,
    )
    # Those that it named when it was last asked in the newest.
    named_revisions = ArrayField(
        models.CharField(max_length=10), default=list, db_default=[], editable=False
    )
    # By HTTP with SSE, the transport of 2024-11-05, whatever revision it speaks there.
    by_events = models.BooleanField(default=False, db_default=False, editable=False)
    server_info = models.JSONField(default=dict, editable=False)
    # The one that it declares, once fetched and drawn anew.
    icon = models.ForeignKey("Icon", models.SET_NULL, null=True, editable=False, related_name="+")
    # It says that it tells of changed resources to who subscribes.
    tells_of_updates = models.BooleanField(default=False, db_default=False, editable=False)
    # And that it tells when it lists something else:
    # registry/discovery/list_change_listener.py listens.
    tells_of_lists = models.BooleanField(default=False, db_default=False, editable=False)
    # Why nobody hears it all the same: in its words, or those of what stands between.
    lists_unheard = models.CharField(max_length=500, blank=True, db_default="", editable=False)
    health = models.CharField(max_length=7, choices=Health, default=Health.UNKNOWN, editable=False)
    health_reason = models.TextField(blank=True, editable=False)
    health_since = models.DateTimeField(default=timezone.now, editable=False)
    discovered_at = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    # Registered by mistake: never used again, and kept for the record, which speaks of it.
    deleted_at = models.DateTimeField(null=True, editable=False)

    objects = ServerQuerySet.as_manager()

    class Meta:
        ordering = ["slug"]
        constraints = [
            models.CheckConstraint(
                name="registry_deleted_is_off",
                condition=models.Q(deleted_at__isnull=True) | models.Q(enabled=False),
            )
        ]
        permissions = [("operate_server", "Can register servers and publish definitions")]
        triggers = configuration(
            "slug",
            "transport",
            "url",
            "command",
            "argv",
            "sealed_headers",
            "sealed_credential",
            "connection_version",
            "sign_in",
            "enabled",
            "relays",
            "result_rules",
            "methods",
            "revision",
            "wanted_revision",
            "by_events",
            "tells_of_updates",
        )

    def __str__(self) -> str:
        return self.slug

    @property
    def reached_by(self) -> str:
        events = _("HTTP with SSE, as of 2024-11-05")
        return str(events) if self.by_events else self.get_transport_display()

    @property
    def credential_of(self) -> str:
        """The kind of the owner whose credential a call carries: one of OWNERS in
        registry/models/credentials.py; "": the installation."""
        return self.sign_in.partition("-")[2]

    @property
    def takes_keys(self) -> bool:
        return self.SignIn(self.sign_in).takes_keys

    @property
    def is_at_url(self) -> bool:
        return self.transport != self.Transport.STDIO

    @property
    def address(self) -> str:
        return self.url if self.is_at_url else " ".join(self.argv)


class Discovery(models.Model):
    """One look at a server: what it offered, or why it could not be asked."""

    server = models.ForeignKey(Server, models.CASCADE, related_name="discoveries")
    at = models.DateTimeField(default=timezone.now, editable=False)
    succeeded = models.BooleanField()
    # What was wrong, or what changed, in sentences for people.
    summary = models.TextField(blank=True)
    # The server itself said that it lists something else.
    on_its_word = models.BooleanField(default=False, db_default=False)
    # Anything is new, gone, held or back.
    moved = models.BooleanField(default=False, db_default=False)

    class Meta:
        ordering = ["-at"]
        verbose_name_plural = "discoveries"
