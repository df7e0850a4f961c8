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
from calls.kept import Input, LateReply, ListedTask, LogLevel, LogLine, Result, ResultPart
from calls.states import ATTEMPTS, FIRST, LIVE, MOVES, REPEATABLE, Executed, State
from core import exact_json
from core.triggers import Refuse, StrictTrigger, append_only, configuration
from registry.models import Definition, Server, Tool

__all__ = [
    "Amendment",
    "Call",
    "CallQuerySet",
    "Freeze",
    "FreezeQuerySet",
    "Input",
    "LateReply",
    "ListedTask",
    "LogLevel",
    "LogLine",
    "Once",
    "Rerun",
    "Result",
    "ResultPart",
]

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
    "origin",
    "mode",
    "effect",
    "rule_id",
    "asked_at",
)
# Of a held call, what an amendment changes.
AMENDED = ("amendment_id", "statement", "call_digest")

# SQL over the old row `o` and the new row `n`: other arguments, and nothing else, are to be sent.
# The statement must be of the very bytes that the amendment holds.
AMENDABLE = """(
    SELECT o.state = 'held' AND n.state = 'held'
        AND a.seq = n.seq AND a.call_digest = n.call_digest
        AND n.call_digest = encode(sha256(
            convert_to('countersign call 1' || chr(10) || n.statement, 'UTF8')), 'hex')
        AND a.arguments_digest = encode(sha256(a.arguments), 'hex')
        AND n.statement::jsonb
            = jsonb_set(o.statement::jsonb, '{arguments}', to_jsonb(a.arguments_digest))
    FROM calls_amendment a WHERE a.id = n.amendment_id AND a.call_id = n.id
) IS TRUE"""


class CallQuerySet(models.QuerySet["Call"]):
    def live(self) -> Self:
        return self.filter(state__in=LIVE)

    def newest_first(self) -> Self:
        return self.order_by("-id")

    def for_list(self) -> Self:
        """Without what may be long: arguments, statement, the tool's definition."""
        return self.select_related("agent", "person").defer("arguments", "statement")

    def for_page(self) -> Self:
        return self.select_related(
            "agent__owner", "server", "tool", "definition", "person", "amendment__person"
        )


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
        amended_old = ", ".join(f"o.{column}" for column in AMENDED)
        amended_new = ", ".join(f"n.{column}" for column in AMENDED)
        is_amended = f"({amended_old}) IS DISTINCT FROM ({amended_new})"
        return _refusing(
            f"""
            CASE
            -- A changed id finds no old row.
            WHEN o.id IS NULL OR ({fixed_old}) IS DISTINCT FROM ({fixed_new})
            THEN 'what was asked is never changed'
            WHEN {is_amended} AND NOT (n.seq = o.seq + 1 AND {AMENDABLE})
            THEN 'what is to be sent changes only by an amendment while the call is held'
            WHEN n.state = o.state AND n.seq = o.seq
            THEN NULL
            WHEN NOT (n.seq = o.seq + 1 AND ({is_amended} OR (o.state, n.state) IN ({moves}))
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
    progress_message = models.TextField(blank=True, db_default="")

    # How anybody of us goes on with it: the task that its server made of it, where its result can
    # be asked for; or what its server asked, which keeps nothing until it gets the answers.
    upstream_task = models.TextField(blank=True, db_default="", editable=False)

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
            # Queue, sweep, badges and lists of what went wrong look at nothing else. Most calls
            # succeed, and leave it when they do.
            models.Index(
                name="calls_by_state", fields=["state", "id"], condition=~Q(state="succeeded")
            ),
            models.Index(name="calls_agent", fields=["agent", "-id"]),
            models.Index(name="calls_tool", fields=["tool", "-id"]),
            # Decisions on calls like one that waits: few rows, and none of an allowed call.
            models.Index(name="calls_asked", fields=["tool", "-id"], condition=Q(effect="ask")),
            # What must not be sent again unasked: few rows, and none of a call that is answered.
            models.Index(
                name="calls_unheard",
                fields=["tool", "agent", "arguments_digest"],
                condition=Q(executed="unknown") | Q(unheard_at__isnull=False),
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
        return (self.call_digest or self.arguments_digest)[:8]

    @property
    def to_send(self) -> bytes:
        """The arguments that are sent: the agent's, or what people made of them."""
        return bytes(self.amendment.arguments if self.amendment else self.arguments)

    @property
    def parsed_arguments(self) -> Any:
        return orjson.loads(self.to_send)

    @property
    def exact_arguments(self) -> Any:
        """For people: numbers as they are written. Raises ValueError if nobody could have asked
        for this."""
        return exact_json.loads(self.to_send)


class Amendment(models.Model):
    """A person's change of a held call's arguments. What the agent asked stays on the call."""

    call = models.ForeignKey(
        Call, models.PROTECT, related_name="amendments", db_constraint=False, db_index=False
    )
    # The call's own count after it.
    seq = models.SmallIntegerField()
    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    arguments = models.BinaryField()
    arguments_digest = models.CharField(max_length=64)
    call_digest = models.CharField(max_length=64)
    note = models.TextField(blank=True)
    # The agent is told that arguments were changed, and not which.
    private = models.BooleanField(default=False)
    at = models.DateTimeField(db_default=ClockTime())

    class Meta:
        ordering = ["seq"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(name="calls_one_amendment_a_move", fields=["call", "seq"])
        ]
        triggers = append_only()

    def __str__(self) -> str:
        return f"{self.call_id} amended by {self.person}"


class Once(models.Model):
    """A key that stands for one call of an agent, however often that is asked for
    (calls/repeats.py)."""

    id = models.CharField(max_length=64, primary_key=True)
    # No foreign key: it is written before the call's own row.
    call_id = models.UUIDField()
    # So long after the call ended.
    lasts_s = models.PositiveIntegerField()
    # Not the agent's own key, but one of all calls that are the same.
    guard = models.BooleanField()
    at = models.DateTimeField(db_default=ClockTime())

    class Meta:
        default_permissions = ()
        indexes = [models.Index(name="calls_once_at", fields=["at"])]

    def __str__(self) -> str:
        return f"{self.id[:8]} for {self.call_id}"


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


class OnlyEnds(StrictTrigger):
    """A freeze is ended, once; nothing else of it ever changes."""

    level = pgtrigger.Row
    when = pgtrigger.Before
    operation = pgtrigger.Update
    func = """
        IF OLD.ended_at IS NOT NULL OR NEW.ended_at IS NULL OR NEW.ended_by_id IS NULL OR
            (to_jsonb(NEW) - '{ended_at,ended_by_id,ended_why}'::text[])
            IS DISTINCT FROM (to_jsonb(OLD) - '{ended_at,ended_by_id,ended_why}'::text[])
        THEN
            RAISE EXCEPTION 'a freeze is never changed, only ended';
        END IF;
        NEW.ended_at = clock_timestamp();
        RETURN NEW;
    """


class FreezeQuerySet(models.QuerySet["Freeze"]):
    def holding(self) -> Self:
        return self.filter(ended_at=None)

    def for_page(self) -> Self:
        return self.select_related("agent", "server", "by", "ended_by").order_by("-pk")


class Freeze(models.Model):
    """Nothing of an agent, to a server, or at all (neither named), is taken or started, and no
    clock of it runs, until another person ends it."""

    agent = models.ForeignKey(Agent, models.PROTECT, null=True, related_name="freezes")
    server = models.ForeignKey(Server, models.PROTECT, null=True, related_name="freezes")
    # Agents and everybody in the console read it.
    reason = models.CharField(max_length=300)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    began_at = models.DateTimeField(db_default=ClockTime())
    ended_at = models.DateTimeField(null=True)
    ended_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+"
    )
    ended_why = models.CharField(max_length=300, blank=True, default="", db_default="")

    objects = FreezeQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        default_permissions = ()
        permissions = [
            ("begin_freeze", "Can freeze an agent, a server or everything"),
            ("end_freeze", "Can end what somebody else froze"),
        ]
        constraints = [
            models.CheckConstraint(
                name="calls_freeze_one_thing", condition=Q(agent=None) | Q(server=None)
            ),
            models.CheckConstraint(
                name="calls_freeze_ended_by_another",
                condition=Q(ended_by=None) | ~Q(ended_by=models.F("by")),
            ),
            models.UniqueConstraint(
                name="calls_freeze_once",
                fields=["agent", "server"],
                condition=Q(ended_at=None),
                nulls_distinct=False,
            ),
        ]
        triggers = [
            *configuration(),
            OnlyEnds(name="only_ends"),
            Refuse(name="no_delete", operation=pgtrigger.Delete),
            Refuse(name="no_truncate", operation=pgtrigger.Truncate),
        ]

    def __str__(self) -> str:
        return f"freeze of {self.agent or self.server or 'everything'}"


class Link(models.Model):
    """A result of this agent links to a resource of the server: it may read that there."""

    call = models.ForeignKey(
        Call, models.PROTECT, db_constraint=False, db_index=False, related_name="links"
    )
    agent = models.ForeignKey(
        Agent, models.PROTECT, db_constraint=False, db_index=False, related_name="+"
    )
    server = models.ForeignKey(
        Server, models.PROTECT, db_constraint=False, db_index=False, related_name="+"
    )
    # SHA-256 of the URI: it stands in the result, and results may be removed.
    uri_digest = models.CharField(max_length=64)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                name="calls_one_link", fields=["agent", "uri_digest", "server"]
            ),
        ]
        triggers = append_only()

    def __str__(self) -> str:
        return self.uri_digest
