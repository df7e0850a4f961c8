"""Toolsets: a selection of tools that agents connect to, and overrides."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy

from accounts.custom_role_models import tags
from accounts.models import MAX_HOLD_S, Agent
from core.triggers import configuration
from registry.models.servers import Server
from registry.models.tools import NAME, Tool


class Separator(models.TextChoices):
    """The separator of server and tool in agents' names; it also replaces dots of tools' names."""

    UNDERSCORE = "_", _("Underscore: mailer_send_mail")
    HYPHEN = "-", _("Hyphen: mailer-send_mail")
    DOT = ".", _("Dot: mailer.send_mail, which many models' APIs do not accept")


class OwnTool(models.TextChoices):
    """Offered as `countersign_<name>`."""

    AWAIT = "await_call", _("Wait for a call")
    GET = "get_call", _("Look at a call")
    CANCEL = "cancel_call", _("Cancel a call")
    WAITING = "my_waiting_calls", _("List calls that have not ended")
    JUSTIFY = "justify", _("Explain a call to those who decide, and answer them")
    EXPLAIN = "explain", _("Ask what rules would say of a call")


class SearchTool(models.TextChoices):
    """In search mode, offered as `countersign_<name>` in place of the list."""

    SEARCH = "search_tools", _("Search for tools")
    DESCRIBE = "describe_tool", _("Describe a tool")
    CALL_READ = "call_read_tool", _("Call a read-only tool")
    CALL = "call_tool", _("Call a tool")


class RegistryReaders(models.TextChoices):
    """Readers of a toolset's servers as an MCP registry (gateway/rest/registry_api.py)."""

    NONE = "none", pgettext_lazy("a setting", "Off")
    TOKENS = "tokens", _("Agents of this toolset and service accounts, with their tokens")
    ANYONE = "anyone", _("Anyone who reaches this address, without signing in")


def own_tools() -> list[str]:
    """The own tools of a new toolset: those about the agent's own calls."""
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
    separator = models.CharField(
        _("separator in names"),
        max_length=1,
        choices=Separator,
        default=Separator.UNDERSCORE,
        db_default=Separator.UNDERSCORE,
    )
    # A request that waits for people is answered after so long; empty: COUNTERSIGN_HOLD_S.
    hold_s = models.PositiveSmallIntegerField(
        _("first answer within seconds"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_HOLD_S)],
    )
    # Agents get tools for searching in place of the list, which may be too long for a model.
    search_mode = models.BooleanField(_("search mode"), default=False, db_default=False)
    # Users sign in their agents here (accounts/agent_sign_in); off: by tokens alone.
    agent_sign_in = models.BooleanField(_("agent sign-in"), default=False, db_default=False)
    # Clients of MCP registries read it (registry/publishing/registry_versions.py).
    registry_readers = models.CharField(
        _("readers of the registry"),
        max_length=6,
        choices=RegistryReaders,
        default=RegistryReaders.NONE,
        db_default=RegistryReaders.NONE,
    )
    tags = tags()
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
