"""Emergency stops."""

from __future__ import annotations

from typing import Self

import pgtrigger
from django.conf import settings
from django.db import models
from django.db.models import Q

from accounts.models import Agent, ServiceAccount
from audit.models import ClockTime
from core.triggers import Refuse, StrictTrigger, configuration
from registry.models import Server


class OnlyEnds(StrictTrigger):
    """A freeze is ended, once; nothing else of it ever changes."""

    level = pgtrigger.Row
    when = pgtrigger.Before
    operation = pgtrigger.Update
    func = """
        IF OLD.ended_at IS NOT NULL OR NEW.ended_at IS NULL OR NEW.ended_by_id IS NULL OR
            (to_jsonb(NEW) - '{ended_at,ended_by_id,ended_account_id,ended_why}'::text[])
            IS DISTINCT FROM
            (to_jsonb(OLD) - '{ended_at,ended_by_id,ended_account_id,ended_why}'::text[])
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
        names = ("agent", "server", "by", "account__created_by", "ended_by", "ended_account")
        return self.select_related(*names).order_by("-pk")


class Freeze(models.Model):
    """Nothing of an agent, to a server, or at all (neither named), is taken or started, and no
    clock of it runs, until another person ends it."""

    agent = models.ForeignKey(Agent, models.PROTECT, null=True, related_name="freezes")
    server = models.ForeignKey(Server, models.PROTECT, null=True, related_name="freezes")
    # Agents and everybody in the console read it.
    reason = models.CharField(max_length=300)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    # The service account by which that user's token began it.
    account = models.ForeignKey(ServiceAccount, models.PROTECT, null=True, related_name="+")
    began_at = models.DateTimeField(db_default=ClockTime())
    ended_at = models.DateTimeField(null=True)
    ended_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+"
    )
    ended_account = models.ForeignKey(ServiceAccount, models.PROTECT, null=True, related_name="+")
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
            models.CheckConstraint(
                name="calls_freeze_ended_by_another_account",
                condition=Q(ended_account=None) | ~Q(ended_account=models.F("account")),
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
