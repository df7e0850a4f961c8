"""Entries: what happened, in order, for good."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models.expressions import DatabaseDefault
from django.utils.translation import gettext_lazy as _

from core.triggers import append_only


class TransactionId(models.Field):  # type: ignore[type-arg]
    """PostgreSQL's xid8: which transaction wrote the row, so that readers know what is whole."""

    def db_type(self, connection: object) -> str:
        return "xid8"


class CurrentTransaction(models.Func):
    template = "pg_current_xact_id()"
    output_field = TransactionId()


class ClockTime(models.Func):
    """The database's clock at this moment, not at the start of the transaction."""

    template = "clock_timestamp()"
    output_field = models.DateTimeField()


class RandomBytes(models.Func):
    """Sixteen, of 122 random bits: PostgreSQL makes these without an extension."""

    template = "uuid_send(gen_random_uuid())"
    output_field = models.BinaryField()


class EntryQuerySet(models.QuerySet["Entry"]):
    def _insert(self, objs: Sequence[Any], fields: Iterable[Any], **kwargs: Any) -> Any:
        """Leaves out what the database fills in by itself: the application's role may not name
        an entry's id, time, transaction, salt or format, not even as DEFAULT."""
        named = [
            field
            for field in fields
            if not all(isinstance(getattr(one, field.attname), DatabaseDefault) for one in objs)
        ]
        return super()._insert(objs, named, **kwargs)  # type: ignore[misc]

    def newest_first(self) -> Self:
        return self.order_by("-id")

    def of_call(self, call_id: object) -> Self:
        # Two conditions, for the two indexes that know calls.
        moves, beside = models.Q(seq__isnull=False), models.Q(seq__isnull=True)
        of_it = models.Q(call_id=call_id)
        return self.filter((of_it & moves) | (of_it & beside)).order_by("id")


class Entry(models.Model):
    """One line of audit, with plain copies of names: it stays true when its subjects change."""

    class ActorKind(models.TextChoices):
        AGENT = "agent", _("Agent")
        PERSON = "person", _("Person")
        POLICY = "policy", _("Policy")
        SYSTEM = "system", _("System")

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(db_default=ClockTime())
    transaction = TransactionId(db_default=CurrentTransaction(), editable=False)
    # How its leaf is made of it (audit/bodies.py). A body with few possible values cannot be
    # guessed from its leaf, because of the salt.
    format = models.SmallIntegerField(db_default=1, editable=False)
    salt = models.BinaryField(db_default=RandomBytes())
    # "call.held", "approval.voted", "token.revoked": subject and past participle or state.
    action = models.CharField(max_length=40)
    actor_kind = models.CharField(max_length=6, choices=ActorKind)
    actor_id = models.BigIntegerField(null=True)
    actor = models.CharField(max_length=200)

    # Of entries about a call; `seq` counts the call's own moves from 1.
    call_id = models.UUIDField(null=True)
    seq = models.SmallIntegerField(null=True)
    from_state = models.CharField(max_length=10, blank=True, db_default="")
    to_state = models.CharField(max_length=10, blank=True, db_default="")
    agent_id = models.BigIntegerField(null=True)
    agent = models.CharField(max_length=100, blank=True, db_default="")
    person_id = models.BigIntegerField(null=True)
    person = models.CharField(max_length=150, blank=True, db_default="")
    server = models.CharField(max_length=64, blank=True, db_default="")
    tool = models.CharField(max_length=200, blank=True, db_default="")
    definition_digest = models.CharField(max_length=64, blank=True, db_default="")
    arguments_digest = models.CharField(max_length=64, blank=True, db_default="")
    result_digest = models.CharField(max_length=64, blank=True, db_default="")

    # A sentence for people: why, or what came of it.
    reason = models.TextField(blank=True, db_default="")
    # Facts of ours, never a stranger's JSON: rule, versions, sizes.
    details = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()))

    objects = EntryQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        base_manager_name = "objects"
        verbose_name_plural = "entries"
        default_permissions = ("view",)
        permissions = [("export_entry", "Can export entries")]
        constraints = [
            models.UniqueConstraint(
                name="audit_one_entry_a_move",
                fields=["call_id", "seq"],
                condition=models.Q(seq__isnull=False),
            )
        ]
        indexes = [
            # Everything else that entries are looked up by is in Line, off the agents' path.
            BrinIndex(name="audit_entry_at", fields=["at"]),
            # Of a call, and no move of it: votes, questions to stop, looks at its payload.
            models.Index(
                name="audit_entry_beside",
                fields=["call_id"],
                condition=models.Q(call_id__isnull=False, seq__isnull=True),
            ),
        ]
        triggers = append_only()

    def __str__(self) -> str:
        return f"{self.action} by {self.actor}"
