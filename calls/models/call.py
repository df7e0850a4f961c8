"""One tool call, from asking to result."""

from __future__ import annotations

from typing import Any, Self

import orjson
import pgtrigger
from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from accounts.models import Agent, AgentToken
from audit.models import ClockTime
from calls.models.legal import LegalBirth, LegalMove
from calls.record.states import ATTEMPTS, LIVE, Executed, State
from core import exact_json
from core.triggers import Refuse
from registry.models import Definition, Server, Tool


class CallQuerySet(models.QuerySet["Call"]):
    def live(self) -> Self:
        return self.filter(state__in=LIVE)

    def newest_first(self) -> Self:
        return self.order_by("-id")

    def for_list(self) -> Self:
        """Without what may be long: arguments, statement, the tool's definition."""
        shown = self.select_related("agent", "person", "amendment__person")
        return shown.defer("arguments", "statement", "amendment__arguments")

    def with_duration(self) -> Self:
        """Those that were sent and have ended, with the time that each `took` (calls_duration)."""
        ended = self.filter(sent_at__isnull=False, finished_at__isnull=False)
        return ended.annotate(took=F("finished_at") - F("sent_at"))

    def for_page(self) -> Self:
        return self.select_related(
            "agent__owner", "server", "tool", "definition", "person", "amendment__person"
        )


class Call(models.Model):
    """One use of a tool.

    States, and the moves that the database allows, are in calls/record/states.py. Rows stand in
    partitions, one a month by the time in their id (core/sql/months.sql). Foreign keys
    have no constraint in the database: what they point to is never removed, and the hot path saves
    the look-ups.
    """

    class Origin(models.TextChoices):
        MCP = "mcp", _("MCP")
        REST = "rest", _("REST")
        CONSOLE = "console", _("Console")
        COMMAND = "command", _("Command line")

    class Mode(models.TextChoices):
        INLINE = "inline", _("Short: in the gateway")
        BACKGROUND = "background", _("Long: on a worker")

    id = models.UUIDField(primary_key=True)
    agent = models.ForeignKey(
        Agent, models.PROTECT, related_name="calls", db_constraint=False, db_index=False
    )
    token = models.ForeignKey(
        AgentToken, models.PROTECT, null=True, related_name="+", db_constraint=False, db_index=False
    )
    # On whose behalf: the agent's owner when it asked.
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.PROTECT,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    toolset = models.CharField(max_length=64, blank=True)
    server = models.ForeignKey(
        Server, models.PROTECT, null=True, related_name="+", db_constraint=False, db_index=False
    )
    tool = models.ForeignKey(
        Tool, models.PROTECT, null=True, related_name="calls", db_constraint=False, db_index=False
    )
    definition = models.ForeignKey(
        Definition, models.PROTECT, null=True, related_name="+", db_constraint=False, db_index=False
    )
    # As the agent said it, also when there is no such tool.
    tool_name = models.CharField(max_length=200)
    # The very bytes that were asked; shown and sent, unless people changed them meanwhile.
    arguments = models.BinaryField()
    arguments_digest = models.CharField(max_length=64)
    amendment = models.ForeignKey(
        "Amendment",
        models.PROTECT,
        null=True,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    # What a call that waits is bound to, and its digest (calls/record/statements.py).
    statement = models.TextField(blank=True, db_default="")
    call_digest = models.CharField(max_length=64, blank=True, db_default="")
    origin = models.CharField(max_length=7, choices=Origin)
    mode = models.CharField(max_length=10, choices=Mode)
    revision = models.CharField(max_length=10, blank=True)
    client = models.CharField(max_length=200, blank=True)
    # Where the client may find the call again to cancel it, from any process.
    request_key = models.CharField(max_length=64, blank=True)

    # What policy said, and why, for people.
    effect = models.CharField(max_length=5, blank=True)
    rule_id = models.BigIntegerField(null=True)
    reason = models.TextField(blank=True)

    state = models.CharField(max_length=10, choices=State)
    seq = models.SmallIntegerField(default=1)
    asked_at = models.DateTimeField(db_default=ClockTime())
    decide_by = models.DateTimeField(null=True)
    start_by = models.DateTimeField(null=True)
    # Between two attempts; or, far away, of a call that nobody confirmed to its agent.
    start_after = models.DateTimeField(null=True)
    sent_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    # Its clocks stand still from then on (approvals/freezes.py).
    clock_stopped_at = models.DateTimeField(null=True)

    # Who runs it now: a lease from the database's clock, and a number that fences off the dead
    # and counts the attempts.
    fence = models.IntegerField(default=0)
    lease_owner = models.CharField(max_length=64, blank=True, db_default="")
    lease_until = models.DateTimeField(null=True)
    cancel_asked_at = models.DateTimeField(null=True)
    cancel_asked_by = models.CharField(max_length=200, blank=True, db_default="")
    # Its client went away before it was answered, and nobody asked for the outcome since.
    unheard_at = models.DateTimeField(null=True)

    progress = models.FloatField(null=True)
    progress_total = models.FloatField(null=True)
    # A second, over the last steps; null where there are too few to say.
    progress_rate = models.FloatField(null=True)
    progress_message = models.TextField(blank=True, db_default="")

    # How anybody of us goes on with it: the task that its server made of it, where its result can
    # be asked for; or what its server asked, which keeps nothing until it gets the answers.
    upstream_task = models.TextField(blank=True, db_default="", editable=False)

    # Did the server do it? Said only when it is certain.
    executed = models.CharField(max_length=8, blank=True, db_default="", choices=Executed)
    # One sentence on how it ended, never a stranger's bytes.
    outcome = models.TextField(blank=True, db_default="")
    result_size = models.BigIntegerField(null=True)
    result_digest = models.CharField(max_length=64, blank=True, db_default="")

    objects = CallQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        default_permissions = ("view",)
        permissions = [
            ("view_payload", "Can see the arguments and results of every call"),
            ("view_received", "Can see results as received, before they were cleaned"),
            ("cancel_call", "Can cancel every call"),
            ("erase_payload", "Can erase the arguments and results of every call"),
        ]
        indexes = [
            # The same agent asking the same of the same tool joins the call that waits
            # (calls/sql/alike.sql).
            models.Index(
                name="calls_held",
                fields=["agent", "tool", "arguments_digest"],
                condition=Q(state="held"),
            ),
            # Queue, sweep, badges and lists of what went wrong look at nothing else. Most calls
            # succeed, and leave it when they do.
            models.Index(
                name="calls_by_state", fields=["state", "id"], condition=~Q(state="succeeded")
            ),
            # Read from their ends: ids grow, and an index that grows at its right end stays full.
            models.Index(name="calls_agent", fields=["agent", "id"]),
            models.Index(name="calls_tool", fields=["tool", "id"]),
            # Decisions on calls like one that waits: few rows, and none of an allowed call.
            models.Index(name="calls_asked", fields=["tool", "-id"], condition=Q(effect="ask")),
            # What must not be sent again unasked: few rows, and none of a call that is answered.
            models.Index(
                name="calls_unheard",
                fields=["tool", "agent", "arguments_digest"],
                condition=Q(executed="unknown") | Q(unheard_at__isnull=False),
            ),
            # Of calls that people were to decide: found by their fingerprint.
            models.Index(
                name="calls_fingerprint",
                fields=["call_digest"],
                opclasses=["varchar_pattern_ops"],
                condition=~Q(call_digest=""),
            ),
            # The slowest calls: the list of calls sorts by it.
            models.Index(
                F("finished_at") - F("sent_at"),
                F("id"),
                name="calls_duration",
                condition=Q(sent_at__isnull=False, finished_at__isnull=False),
            ),
            models.Index(
                name="calls_request", fields=["request_key"], condition=~Q(request_key="")
            ),
        ]
        triggers = [
            LegalBirth(),
            LegalMove(),
            Refuse(name="no_delete", operation=pgtrigger.Delete),
            Refuse(name="no_truncate", operation=pgtrigger.Truncate),
        ]

    def __str__(self) -> str:
        return f"{self.tool_name} {self.id}"

    @property
    def attempts(self) -> str:
        return f"{self.fence} / {ATTEMPTS}"

    @property
    def fingerprint(self) -> str:
        """A short form of the digest that people decided on; "" where nobody had to."""
        return self.call_digest[:8]

    @property
    def short_id(self) -> str:
        """The first 13 characters of the id: nearly always unique, and search finds it."""
        return str(self.pk)[:13]

    @property
    def duration_s(self) -> float | None:
        """Seconds from sending to the end; None before the end, or if it was never sent."""
        if self.sent_at is None or self.finished_at is None:
            return None
        return (self.finished_at - self.sent_at).total_seconds()

    @property
    def to_send(self) -> bytes:
        """The arguments that are sent: the agent's, or what people made of them."""
        return bytes(self.amendment.arguments if self.amendment else self.arguments)

    @property
    def parsed_arguments(self) -> Any:
        return orjson.loads(self.to_send)

    @property
    def exact_arguments(self) -> Any:
        """The arguments for people, with numbers as they are written. Raises ValueError if no call
        could have had them."""
        return exact_json.loads(self.to_send)
