"""Which servers and tools there are, and every version of what they said of themselves."""

from __future__ import annotations

from typing import Self

import pgtrigger
from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVectorField
from django.core.validators import RegexValidator
from django.db import models
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import Agent
from core import abilities
from core.triggers import Refuse, append_only, configuration
from registry import definitions
from registry.items import Item, ItemVersion, Subscription
from registry.versioned import Version

__all__ = [
    "Definition",
    "Discovery",
    "Item",
    "ItemVersion",
    "Listing",
    "OwnTool",
    "Publication",
    "Server",
    "Subscription",
    "Tag",
    "Tool",
    "ToolQuerySet",
    "Toolset",
    "own_tools",
]

NAME = RegexValidator(r"^[A-Za-z0-9_.-]{1,64}\Z", _("Use 1 to 64 of: letters, digits, _ . -"))


def usual_relays() -> list[str]:
    """A model's answers cost whoever runs it, and show what stands in its context: not unasked."""
    return [Server.Relay.ELICITATION, Server.Relay.ROOTS]


class Server(models.Model):
    """An upstream MCP server: where it is, how we speak to it, and how it does."""

    class Relay(models.TextChoices):
        ELICITATION = abilities.ELICITATION, _("Questions to the agent's user")
        ROOTS = abilities.ROOTS, _("The folders that the agent works in")
        SAMPLING = abilities.SAMPLING, _("Answers of the agent's model")

    class Transport(models.TextChoices):
        HTTP = "http", _("HTTP")
        STDIO = "stdio", _("Command (stdio)")

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
    # Grows with every change of address, headers or credential: pools are keyed by it.
    connection_version = models.PositiveIntegerField(default=1, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="servers")
    enabled = models.BooleanField(_("enabled"), default=True)
    publish_on_discovery = models.BooleanField(_("publish on first discovery"), default=False)
    # What the server may ask of agents in the middle of a call, if their clients can answer.
    relays = ArrayField(
        models.CharField(max_length=11, choices=Relay),
        verbose_name=_("may ask of agents"),
        default=usual_relays,
        db_default=["elicitation", "roots"],
        blank=True,
    )

    revision = models.CharField(max_length=10, blank=True, editable=False)
    # By HTTP with SSE, the transport of 2024-11-05, whatever revision it speaks there.
    by_events = models.BooleanField(default=False, db_default=False, editable=False)
    server_info = models.JSONField(default=dict, editable=False)
    # It says that it tells of changed resources to who subscribes.
    tells_of_updates = models.BooleanField(default=False, db_default=False, editable=False)
    # And that it tells when it lists something else: somebody listens (registry/attending.py).
    tells_of_lists = models.BooleanField(default=False, db_default=False, editable=False)
    health = models.CharField(max_length=7, choices=Health, default=Health.UNKNOWN, editable=False)
    health_reason = models.TextField(blank=True, editable=False)
    health_since = models.DateTimeField(default=timezone.now, editable=False)
    discovered_at = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["slug"]
        permissions = [("operate_server", "Can register servers and publish definitions")]
        triggers = configuration(
            "slug",
            "transport",
            "url",
            "argv",
            "sealed_headers",
            "sealed_credential",
            "connection_version",
            "enabled",
            "relays",
            "revision",
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
    def address(self) -> str:
        return self.url if self.transport == self.Transport.HTTP else " ".join(self.argv)


class Tag(models.Model):
    """A word of ours that tools are found by."""

    name = models.SlugField(_("name"), max_length=32, unique=True)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class ToolQuerySet(models.QuerySet["Tool"]):
    def for_catalogue(self) -> Self:
        return self.select_related("server", "published", "latest")

    def for_list(self) -> Self:
        """Definitions are read when the page's tools are known: joined, all of them may be."""
        return self.prefetch_related("latest")

    def for_change(self) -> Self:
        """Nobody publishes them until this transaction ends."""
        bodies = ("published__body", "latest__body")
        return self.for_catalogue().defer(*bodies).select_for_update(of=("self",))


class Tool(models.Model):
    """A tool of a server, known to agents by `exposed_name` once a definition is published."""

    class State(models.TextChoices):
        NEW = "new", _("Waiting to be published")
        PUBLISHED = "published", _("Published")
        CHANGED = "changed", _("Changed: held until published")
        RETIRED = "retired", _("Gone from its server")

    class Mode(models.TextChoices):
        AUTO = "auto", _("Automatic")
        INLINE = "inline", _("Short: answered at once")
        BACKGROUND = "background", _("Long: run by a worker")

    class Repeats(models.TextChoices):
        AUTO = "auto", _("Held back while in doubt")
        GUARD = "guard", _("Held back")
        ALLOW = "allow", _("Sent each time")

    class Risk(models.TextChoices):
        DESTROYS = "destroys", _("May destroy")
        UNSAID = "unsaid", _("Does not say")
        CHANGES = "changes", _("Adds or changes")
        READS = "reads", _("Only reads")

    server = models.ForeignKey(Server, models.PROTECT, related_name="tools")
    # As its server calls it, and as agents see it.
    name = models.CharField(max_length=200)
    exposed_name = models.CharField(max_length=64, unique=True, validators=[NAME])
    state = models.CharField(max_length=9, choices=State, default=State.NEW)
    published = models.ForeignKey(
        "Definition", models.PROTECT, null=True, blank=True, related_name="+"
    )
    latest = models.ForeignKey(
        "Definition", models.PROTECT, null=True, blank=True, related_name="+"
    )
    mode = models.CharField(max_length=10, choices=Mode, default=Mode.AUTO)
    # For the automatic mode, measured now and then from its last calls: how long all but the
    # slowest twentieth of them took, how many they were, and whether that makes it a long one.
    p95_ms = models.PositiveIntegerField(null=True, editable=False)
    measured = models.PositiveIntegerField(default=0, editable=False)
    is_long = models.BooleanField(default=False, editable=False)
    # An operator's word, never the server's: repeating a call does no harm.
    safe_to_repeat = models.BooleanField(_("safe to repeat"), default=False)
    # The same call of the same agent once more, where the tool is not safe to repeat.
    repeats = models.CharField(
        _("the same call again"),
        max_length=5,
        choices=Repeats,
        default=Repeats.AUTO,
        db_default=Repeats.AUTO,
    )
    timeout_s = models.PositiveIntegerField(_("time limit in seconds"), default=120)
    tags = models.ManyToManyField(Tag, blank=True, related_name="tools")
    # What its latest definition claims, and the day of its last answered call, measured now and
    # then: for the catalogue's filters.
    hints = ArrayField(models.CharField(max_length=40), default=list, editable=False)
    risk = models.CharField(max_length=8, choices=Risk, default=Risk.UNSAID, editable=False)
    used_on = models.DateField(null=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = ToolQuerySet.as_manager()

    class Meta:
        ordering = ["exposed_name"]
        constraints = [
            models.UniqueConstraint(name="registry_tool_once_a_server", fields=["server", "name"]),
            models.UniqueConstraint(Lower("exposed_name"), name="registry_exposed_in_any_case"),
            # What is offered is what the server said last, and nothing held is ever offered.
            models.CheckConstraint(
                name="registry_published_is_latest",
                condition=~models.Q(state="published")
                | models.Q(published__isnull=False, published=models.F("latest")),
            ),
        ]
        indexes = [
            models.Index(name="registry_tool_state", fields=["state", "exposed_name"]),
            models.Index(name="registry_tool_used", fields=["used_on"]),
            GinIndex(name="registry_tool_hints", fields=["hints"]),
            models.Index(name="registry_tool_risk", fields=["risk", "exposed_name"]),
            models.Index(name="registry_tool_of_server", fields=["server", "exposed_name"]),
        ]
        triggers = [
            *configuration(
                "exposed_name",
                "state",
                "published_id",
                "mode",
                "is_long",
                "safe_to_repeat",
                "repeats",
                "timeout_s",
            ),
            # Retired, never removed: old calls and entries speak of it.
            Refuse(name="no_delete", operation=pgtrigger.Delete),
        ]

    def __str__(self) -> str:
        return self.exposed_name

    @property
    def p95_s(self) -> float | None:
        return None if self.p95_ms is None else self.p95_ms / 1000


class Listing(models.Model):
    """The words that the catalogue finds a tool by (registry/listing.py), of its latest definition.

    Apart from the tool, which many pages read and few search.
    """

    tool = models.OneToOneField(Tool, models.CASCADE, primary_key=True, related_name="listing")
    # Names, title and arguments, which people mistype; the description is in the lexemes alone.
    words = models.TextField()
    lexemes = SearchVectorField()

    class Meta:
        default_permissions = ()
        indexes = [
            # Written when a definition is first seen, read at each key: no list of what is still to
            # be put in, which every search would walk through.
            GinIndex(name="registry_listing_lexemes", fields=["lexemes"], fastupdate=False),
            GinIndex(
                name="registry_listing_words",
                fields=["words"],
                opclasses=["gin_trgm_ops"],
                fastupdate=False,
            ),
        ]

    def __str__(self) -> str:
        return self.words[:80]


class Definition(Version):
    """One immutable version of what a server says a tool is."""

    tool = models.ForeignKey(Tool, models.PROTECT, related_name="definitions")

    class Meta:
        ordering = ["-version"]
        get_latest_by = "version"
        constraints = [
            models.UniqueConstraint(name="registry_version_once", fields=["tool", "version"]),
        ]
        indexes = [models.Index(name="registry_definition_digest", fields=["tool", "digest"])]
        triggers = append_only()

    def __str__(self) -> str:
        return f"{self.tool} v{self.version}"

    @property
    def title(self) -> str:
        content = self.content
        annotations = content.get("annotations")
        hinted = annotations.get("title") if isinstance(annotations, dict) else None
        return str(content.get("title") or hinted or content.get("name") or "")

    @property
    def hints(self) -> dict[str, bool]:
        """The server's claims about the tool: readOnlyHint, destructiveHint and their like."""
        return definitions.hints(self.content)

    @property
    def problems(self) -> list[str]:
        """Why it cannot be published, in sentences."""
        return definitions.problems(self.content)

    @property
    def notes(self) -> list[str]:
        """What to know before publishing it."""
        return definitions.notes(self.content)


class Publication(models.Model):
    """Who let which definition reach agents, and when."""

    definition = models.ForeignKey(Definition, models.PROTECT, related_name="publications")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, null=True)
    at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["-at"]


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


class OwnTool(models.TextChoices):
    """Offered as `countersign.<name>`."""

    AWAIT = "await_call", _("Wait for a call")
    GET = "get_call", _("Look at a call")
    CANCEL = "cancel_call", _("Cancel a call")
    WAITING = "my_waiting_calls", _("List calls that have not ended")
    JUSTIFY = "justify", _("Explain a call to those who decide, and answer them")
    EXPLAIN = "explain", _("Ask what rules would say of a call")


def own_tools() -> list[str]:
    """What tells nothing but of the agent's own calls."""
    return [name for name in OwnTool.values if name != OwnTool.EXPLAIN]


class Toolset(models.Model):
    """A named selection of tools that agents connect to at /mcp/<slug>."""

    slug = models.SlugField(_("name"), max_length=64, unique=True)
    title = models.CharField(_("title"), max_length=200, blank=True)
    # Every published tool of these servers, now and later.
    servers = models.ManyToManyField(Server, blank=True, related_name="toolsets")
    # And single tools of others.
    tools = models.ManyToManyField(Tool, blank=True, related_name="toolsets")
    # Tools of ours, for what agents want to know and to say of their own calls.
    own_tools = ArrayField(models.CharField(max_length=20, choices=OwnTool), default=own_tools)
    agents = models.ManyToManyField(Agent, blank=True, related_name="toolsets")
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["slug"]
        triggers = configuration()

    def __str__(self) -> str:
        return self.slug


class ShownTool(models.Model):
    """How a toolset shows one of its tools, where that differs from its server's own words."""

    toolset = models.ForeignKey(Toolset, models.CASCADE, related_name="shown_tools")
    tool = models.ForeignKey(Tool, models.PROTECT, related_name="shown_as")
    # Each empty where it is as the server has it.
    name = models.CharField(_("name"), max_length=64, blank=True, validators=[NAME])
    title = models.CharField(_("title"), max_length=200, blank=True)
    description = models.TextField(_("description"), blank=True)
    # Arguments that agents neither see nor set: a JSON object, as it was written.
    pinned = models.TextField(_("fixed arguments"), blank=True)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(name="registry_shown_once", fields=["toolset", "tool"]),
            models.UniqueConstraint(
                "toolset",
                Lower("name"),
                name="registry_shown_name_in_any_case",
                condition=~models.Q(name=""),
            ),
        ]
        triggers = configuration()

    def __str__(self) -> str:
        return self.name or self.tool.exposed_name
