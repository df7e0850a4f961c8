"""Requests about a call: an edit of its arguments, a retry, an idempotency key."""

from __future__ import annotations

from django.conf import settings
from django.db import models

from audit.models import ClockTime
from calls.models.call import Call
from calls.models.legal import OnlyErased
from core.triggers import append_only


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
        triggers = append_only(OnlyErased(call="call_id", arguments="'{}'", note="''"))

    def __str__(self) -> str:
        return f"{self.call_id} amended by {self.person}"


class Once(models.Model):
    """A key that stands for one call of an agent, however often that is asked for
    (calls/record/idempotency.py)."""

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
    """A retry of a call of unknown outcome, as a call of its own."""

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
