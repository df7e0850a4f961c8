"""A call's content: its result, late replies, and lines its server logged."""

from __future__ import annotations

import pgtrigger
from django.db import models
from django.db.models import Q

from accounts.models import Agent
from audit.models import ClockTime
from calls.models.legal import HAS_MOVE, IS_RUNNING, OnlyErased, ResultGuard
from calls.record.states import Executed, State
from core.triggers import Keep, Refuse, append_only
from registry.models import Server


class Result(models.Model):
    """A call's result as the server wrote it. Kept apart from the call, so that no content can keep
    an outcome from being written."""

    call = models.OneToOneField(
        "calls.Call", models.PROTECT, primary_key=True, related_name="result", db_constraint=False
    )
    # "result": the JSON of a tool's result. "error": the JSON of a JSON-RPC error.
    kind = models.CharField(max_length=6)
    # Empty where it is large: then it is in parts, as long as it is kept.
    body = models.BinaryField()
    kept_until = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()
        indexes = [
            models.Index(
                name="calls_result_kept",
                fields=["kept_until"],
                condition=Q(kept_until__isnull=False),
            )
        ]
        triggers = [
            Refuse(name="no_update", operation=pgtrigger.Update),
            Refuse(name="no_truncate", operation=pgtrigger.Truncate),
            ResultGuard(
                name="result_guard", known=HAS_MOVE, why="a result that no move of its call brought"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.call_id}"


class ResultPart(models.Model):
    """A piece of a large result's bytes (calls/content/large_results.py)."""

    call = models.ForeignKey(
        Result, models.PROTECT, related_name="parts", db_constraint=False, db_index=False
    )
    number = models.IntegerField()
    body = models.BinaryField()

    class Meta:
        ordering = ["number"]
        default_permissions = ()
        constraints = [models.UniqueConstraint(name="calls_one_part", fields=["call", "number"])]
        triggers = [
            Refuse(name="no_update", operation=pgtrigger.Update),
            Refuse(name="no_truncate", operation=pgtrigger.Truncate),
            ResultGuard(
                name="result_guard",
                known=IS_RUNNING,
                why="a part of a result, of a call that does not run",
            ),
        ]

    def __str__(self) -> str:
        return f"part {self.number} of {self.call_id}"


class ReceivedResult(models.Model):
    """A result as its server sent it, sealed, where cleaning changed or blocked it. Removed after
    RECEIVED_RESULTS_DAYS; digests of both stay in the record."""

    call = models.OneToOneField(
        "calls.Call", models.PROTECT, primary_key=True, related_name="+", db_constraint=False
    )
    sealed = models.BinaryField()
    kept_until = models.DateTimeField()

    class Meta:
        default_permissions = ()
        indexes = [models.Index(name="calls_received_kept", fields=["kept_until"])]
        triggers = [
            # Another secret of the installation seals it anew.
            Keep(name="fixed", columns=["call_id", "kept_until"]),
            Refuse(name="no_truncate", operation=pgtrigger.Truncate),
            ResultGuard(
                name="result_guard",
                known=IS_RUNNING,
                why="a received result, of a call that does not run",
            ),
        ]

    def __str__(self) -> str:
        return f"received for {self.call_id}"


class LateReply(models.Model):
    """A server's reply to an attempt that had been given up: evidence, which moves no state."""

    call = models.ForeignKey(
        "calls.Call", models.PROTECT, related_name="late_replies", db_constraint=False
    )
    # Which attempt, and as what it would have ended.
    fence = models.IntegerField()
    state = models.CharField(max_length=10, choices=State)
    sentence = models.TextField(blank=True)
    executed = models.CharField(max_length=8, choices=Executed)
    kind = models.CharField(max_length=6, blank=True)
    body = models.BinaryField()
    digest = models.CharField(max_length=64, blank=True)
    # By the clock of whoever received it.
    received_at = models.DateTimeField()
    at = models.DateTimeField(db_default=ClockTime())

    class Meta:
        ordering = ["id"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(name="calls_one_late_reply", fields=["call", "fence"])
        ]
        triggers = append_only(OnlyErased(call="call_id", sentence="''", body="''"))

    def __str__(self) -> str:
        return f"{self.state} for {self.call_id}"

    @property
    def is_decisive(self) -> bool:
        """It says by itself whether the call was executed."""
        return self.executed in (Executed.YES, Executed.NO)


class LogLine(models.Model):
    """A line that a server logged while it ran a call, capped (calls/running/log_book.py)."""

    call = models.ForeignKey(
        "calls.Call",
        models.PROTECT,
        related_name="log_lines",
        db_constraint=False,
        db_index=False,
    )
    # Of which attempt, and which in its order.
    fence = models.IntegerField()
    number = models.IntegerField()
    # As the server named them.
    level = models.CharField(max_length=20, blank=True)
    logger = models.CharField(max_length=100, blank=True)
    text = models.TextField()
    # The text is JSON, and not words.
    structured = models.BooleanField(db_default=False)
    at = models.DateTimeField(db_default=ClockTime())

    class Meta:
        ordering = ["fence", "number"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(name="calls_one_log_line", fields=["call", "fence", "number"])
        ]
        triggers = append_only(OnlyErased(call="call_id", logger="''", text="''"))

    def __str__(self) -> str:
        return f"line {self.number} of {self.call_id}"


class LogLevel(models.Model):
    """The least log level that a session of an earlier revision wants to hear."""

    # A digest of its id.
    session = models.CharField(max_length=64, primary_key=True)
    level = models.CharField(max_length=9)
    set_at = models.DateTimeField(db_default=ClockTime())

    class Meta:
        default_permissions = ()
        indexes = [models.Index(name="calls_loglevel_old", fields=["set_at"])]

    def __str__(self) -> str:
        return self.level


class Input(models.Model):
    """A server's question in the middle of a call, and its agent's answer."""

    call = models.ForeignKey(
        "calls.Call", models.PROTECT, related_name="inputs", db_constraint=False, db_index=False
    )
    # What was asked together, and each as the server named it: never twice in one round.
    round = models.IntegerField(db_default=0)
    key = models.CharField(max_length=200)
    request = models.TextField()
    message = models.TextField(blank=True)
    response = models.TextField(blank=True, db_default="")
    # The client said that it could not answer: `response` is a JSON-RPC error.
    is_error = models.BooleanField(db_default=False)
    at = models.DateTimeField(db_default=ClockTime())
    answered_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["id"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(name="calls_one_input", fields=["call", "round", "key"])
        ]
        triggers = [
            Refuse(name="no_delete", operation=pgtrigger.Delete),
            Refuse(name="no_truncate", operation=pgtrigger.Truncate),
        ]

    def __str__(self) -> str:
        return f"{self.key} of {self.call_id}"


class ListedTask(models.Model):
    """A call that its agent holds as a task of 2025-11-25 (calls/record/listed_tasks.py)."""

    call = models.OneToOneField(
        "calls.Call", models.PROTECT, primary_key=True, related_name="+", db_constraint=False
    )
    agent_id = models.BigIntegerField()
    listed_at = models.DateTimeField(db_default=ClockTime())
    # Once cancelled, a task stays so, whatever became of its call.
    cancelled_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()
        indexes = [
            models.Index(name="calls_listedtask_agent", fields=["agent_id", "-call"]),
            models.Index(name="calls_listedtask_old", fields=["listed_at"]),
        ]

    def __str__(self) -> str:
        return f"task {self.call_id}"


class Link(models.Model):
    """A result of this agent links to a resource of the server: it may read that there."""

    call = models.ForeignKey(
        "calls.Call", models.PROTECT, db_constraint=False, db_index=False, related_name="links"
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
