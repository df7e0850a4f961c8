"""Keys that sign decisions on statements."""

from __future__ import annotations

from typing import Self

import pgtrigger
from django.db import models

from audit.models import ClockTime
from core.ids import uuid7
from core.triggers import Refuse, StrictTrigger


class OnlyWithdrawn(StrictTrigger):
    """A key is withdrawn once, for good. Only its private half is ever sealed anew."""

    level = pgtrigger.Row
    when = pgtrigger.Before
    operation = pgtrigger.Update
    func = """
        IF OLD.withdrawn_at IS NOT NULL AND
            (to_jsonb(NEW) - 'sealed_private') IS DISTINCT FROM (to_jsonb(OLD) - 'sealed_private')
        THEN
            RAISE EXCEPTION 'a withdrawn key stays withdrawn';
        ELSIF (to_jsonb(NEW) - '{sealed_private,withdrawn_at,reason}'::text[])
            IS DISTINCT FROM (to_jsonb(OLD) - '{sealed_private,withdrawn_at,reason}'::text[])
        THEN
            RAISE EXCEPTION 'a key is never changed, only withdrawn';
        END IF;
        RETURN NEW;
    """


class DecisionKeyQuerySet(models.QuerySet["DecisionKey"]):
    def valid(self) -> Self:
        return self.filter(withdrawn_at=None)


class DecisionKey(models.Model):
    """An Ed25519 key pair. The newest signs; earlier ones stay, to verify what they signed, unless
    they were withdrawn."""

    # The `kid` of its signatures.
    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    public = models.BinaryField(editable=False)
    sealed_private = models.BinaryField(editable=False)
    created_at = models.DateTimeField(db_default=ClockTime(), editable=False)
    # Since when nothing that it signed is to be believed.
    withdrawn_at = models.DateTimeField(null=True, editable=False)
    reason = models.CharField(max_length=300, blank=True, default="", editable=False)

    objects = DecisionKeyQuerySet.as_manager()

    class Meta:
        default_permissions = ()
        ordering = ["-created_at"]
        constraints = [
            models.CheckConstraint(
                name="approvals_key_withdrawn_with_reason",
                condition=models.Q(withdrawn_at=None, reason="")
                | models.Q(withdrawn_at__isnull=False, reason__gt=""),
            )
        ]
        triggers = [
            OnlyWithdrawn(name="only_withdrawn"),
            Refuse(name="no_delete", operation=pgtrigger.Delete),
            Refuse(name="no_truncate", operation=pgtrigger.Truncate),
        ]

    def __str__(self) -> str:
        return str(self.pk)
