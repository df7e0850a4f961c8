"""One tool call, from asking to result."""

from __future__ import annotations

from typing import Any, Self

import orjson
import pgtrigger
from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts.models import Agent, AgentToken
from audit.models import ClockTime
from calls.states import ATTEMPTS, FIRST, LIVE, MOVES, REPEATABLE, Executed, State
from core.triggers import Refuse, StrictTrigger, append_only
from registry.models import Definition, Server, Tool

# Asked, and by what: never changed after the first row.
FIXED = (
    "id",
    "agent_id",
    "token_id",
    "person_id",
    "toolset",
    "server_id",
    "tool_id",
    "definition_id",
    "tool_name",
    "arguments",
    "arguments_digest",
    "statement",
    "call_digest",
    "origin",
    "mode",
    "effect",
    "rule_id",
    "asked_at",
)


class CallQuerySet(models.QuerySet["Call"]):
    def live(self) -> Self:
        return self.filter(state__in=LIVE)

    def newest_first(self) -> Self:
        return self.order_by("-id")

    def for_page(self) -> Self:
        return self.select_related("agent__owner", "server", "tool", "definition", "person")


def _refusing(why: str, *, rows: str) -> str:
    """One look at all rows: every call pays for it twice.

    `why` asks with scalar subqueries. PostgreSQL may answer EXISTS from a hash of the whole table,
    and remembers that plan while the table grows.
    """
    return f"""
        SELECT looked.why INTO wrong FROM (SELECT {why} AS why FROM {rows}) looked
        WHERE looked.why IS NOT NULL LIMIT 1;
        IF wrong IS NOT NULL THEN
            RAISE EXCEPTION USING MESSAGE = wrong;
        END IF;
        RETURN NULL;
    """


class LegalBirth(StrictTrigger):
    """A call is born in a first state, with its entry."""

    name = "legal_birth"
    level = pgtrigger.Statement
    when = pgtrigger.After
    operation = pgtrigger.Insert
    declare = [("wrong", "text")]
    referencing = pgtrigger.Referencing(new="new_rows")  # type: ignore[no-untyped-call]

    def get_func(self, model: models.Model) -> str:
        first = ", ".join(f"'{state.value}'" for state in FIRST)
        return _refusing(
            f"""
            CASE
            WHEN n.seq <> 1 OR n.state NOT IN ({first}) THEN 'a call cannot begin like this'
            WHEN (
                SELECT true FROM audit_entry e
                WHERE e.call_id = n.id AND e.seq = 1 AND e.to_state = n.state) IS NOT TRUE
            THEN 'a call without its entry'
            END""",
            rows="new_rows n",
        )


class LegalMove(StrictTrigger):
    """A call moves only along MOVES, one step at a time, each with its entry."""

    name = "legal_move"
    level = pgtrigger.Statement
    when = pgtrigger.After
    operation = pgtrigger.Update
    declare = [("wrong", "text")]
    referencing = pgtrigger.Referencing(  # type: ignore[no-untyped-call]
        old="old_rows", new="new_rows"
    )

    def get_func(self, model: models.Model) -> str:
        moves = ", ".join(f"('{a.value}', '{b.value}')" for a, to in MOVES.items() for b in to)
        fixed_old = ", ".join(f"o.{column}" for column in FIXED)
        fixed_new = ", ".join(f"n.{column}" for column in FIXED)
        return _refusing(
            f"""
            CASE
            -- A changed id finds no old row.
            WHEN o.id IS NULL OR ({fixed_old}) IS DISTINCT FROM ({fixed_new})
            THEN 'what was asked is never changed'
            WHEN n.state = o.state AND n.seq = o.seq
            THEN NULL
            WHEN NOT (n.seq = o.seq + 1 AND (o.state, n.state) IN ({moves})
                      AND (o.state <> 'running' OR n.state <> 'queued' OR ({REPEATABLE})))
            THEN 'a call cannot move like this'
            WHEN (
                SELECT true FROM audit_entry e
                WHERE e.call_id = n.id AND e.seq = n.seq
                  AND e.from_state = o.state AND e.to_state = n.state) IS NOT TRUE
            THEN 'a move without its entry'
            END""",
            rows="new_rows n LEFT JOIN old_rows o ON o.id = n.id",
        )


class Call(models.Model):
    """One use of a tool.

    States, and the moves that the database allows, are in calls/states.py. Foreign keys have no
    constraint in the database: what they point to is never removed, and the hot path saves the
    look-ups.
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
    # The very bytes that were asked, shown and sent.
    arguments = models.BinaryField()
    arguments_digest = models.CharField(max_length=64)
    # What a call that waits is bound to, and its digest (calls/statements.py).
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
    # Between two attempts.
    start_after = models.DateTimeField(null=True)
    sent_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    # Who runs it now: a lease from the database's clock, and a number that fences off the dead
    # and counts the attempts.
    fence = models.IntegerField(default=0)
    lease_owner = models.CharField(max_length=64, blank=True, db_default="")
    lease_until = models.DateTimeField(null=True)
    cancel_asked_at = models.DateTimeField(null=True)
    cancel_asked_by = models.CharField(max_length=200, blank=True, db_default="")

    progress = models.FloatField(null=True)
    progress_total = models.FloatField(null=True)
    progress_message = models.TextField(blank=True, db_default="")

    # Did the server do it? Said only when it is certain.
    executed = models.CharField(max_length=7, blank=True, db_default="", choices=Executed)
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
            ("cancel_call", "Can cancel every call"),
        ]
        constraints = [
            # The same agent asking the same of the same tool joins the call that waits.
            models.UniqueConstraint(
                name="calls_one_held_alike",
                fields=["agent", "tool", "arguments_digest"],
                condition=Q(state="held"),
            )
        ]
        indexes = [
            # Queue, sweep and badges look at nothing else.
            models.Index(name="calls_live", fields=["state", "id"], condition=Q(state__in=LIVE)),
            models.Index(name="calls_unknown", fields=["id"], condition=Q(state="unknown")),
            models.Index(name="calls_agent", fields=["agent", "-id"]),
            models.Index(name="calls_tool", fields=["tool", "-id"]),
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
        return (self.call_digest or self.arguments_digest)[:8]

    @property
    def parsed_arguments(self) -> Any:
        return orjson.loads(self.arguments)


class Result(models.Model):
    """What came back, as the server wrote it; apart from the call, so that no content can keep
    an outcome from being written."""

    call = models.OneToOneField(
        Call, models.PROTECT, primary_key=True, related_name="result", db_constraint=False
    )
    # "result": the JSON of a tool's result. "error": the JSON of a JSON-RPC error.
    kind = models.CharField(max_length=6)
    body = models.BinaryField()

    class Meta:
        default_permissions = ()
        triggers = [
            Refuse(name="no_update", operation=pgtrigger.Update),
            Refuse(name="no_truncate", operation=pgtrigger.Truncate),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.call_id}"


class Rerun(models.Model):
    """Somebody asked for a call of unknown outcome once more, as a call of its own."""

    call = models.OneToOneField(
        Call, models.PROTECT, primary_key=True, related_name="rerun", db_constraint=False
    )
    again = models.ForeignKey(Call, models.PROTECT, related_name="reruns_of", db_constraint=False)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    at = models.DateTimeField(db_default=ClockTime())

    class Meta:
        default_permissions = ()
        triggers = append_only()

    def __str__(self) -> str:
        return f"{self.again_id} for {self.call_id}"
