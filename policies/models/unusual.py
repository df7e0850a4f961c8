"""Agents whose use is unusual now, for pages and notifications."""

from __future__ import annotations

from typing import Self

from django.contrib.postgres.fields import ArrayField
from django.db import models

from accounts.models import Agent, User


class UnusualUseQuerySet(models.QuerySet["UnusualUse"]):
    def visible_to(self, person: User) -> Self:
        shown = Agent.objects.visible_to(person)
        return self.filter(agent__in=shown).select_related("agent").order_by("-since")


class UnusualUse(models.Model):
    """The present differences in an agent's use, with the reasons that were told."""

    agent = models.OneToOneField(
        Agent, models.CASCADE, primary_key=True, related_name="+", db_constraint=False
    )
    # Kinds of policies.unusual, each with the Unix time of the look that saw it last.
    kinds_seen = models.JSONField(default=dict)
    reasons = ArrayField(models.TextField())
    since = models.DateTimeField()
    seen_at = models.DateTimeField()

    objects = UnusualUseQuerySet.as_manager()

    class Meta:
        default_permissions = ()
        indexes = [models.Index(name="policies_unusual_seen", fields=["seen_at"])]

    def __str__(self) -> str:
        return f"unusual use by agent {self.agent_id}"
