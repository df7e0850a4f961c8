"""Nothing is sent: said on the host, not by a person in the console."""

from __future__ import annotations

from typing import Self

import pgtrigger
from django.db import models
from django.db.models import Q

from audit.models import ClockTime
from core.triggers import Refuse, configuration


class PauseQuerySet(models.QuerySet["Pause"]):
    def holding(self) -> Self:
        return self.filter(ended_at=None)


class Pause(models.Model):
    """No call is taken or started until whoever owns the host ends it (`manage.py resume`).

    The application's role may begin one and cannot end it.
    """

    reason = models.CharField(max_length=300)
    # Who on which host: "root on db1".
    by = models.CharField(max_length=200)
    began_at = models.DateTimeField(db_default=ClockTime())
    ended_at = models.DateTimeField(null=True)
    ended_by = models.CharField(max_length=200, blank=True, default="", db_default="")

    objects = PauseQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                name="calls_pause_once",
                fields=["ended_at"],
                condition=Q(ended_at=None),
                nulls_distinct=False,
            )
        ]
        triggers = [
            *configuration(),
            Refuse(name="no_delete", operation=pgtrigger.Delete),
            Refuse(name="no_truncate", operation=pgtrigger.Truncate),
        ]

    def __str__(self) -> str:
        return f"pause by {self.by}"
