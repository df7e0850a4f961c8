"""Delegations: an approver lets another one who may decide anyway vote in their place."""

from __future__ import annotations

from typing import Self

import pgtrigger
from django.conf import settings
from django.contrib.auth.models import Group
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from core.triggers import Refuse, StrictTrigger
from registry.models import Server


class NoChains(StrictTrigger):
    """A delegation is not passed on, and one person has one delegate for a call."""

    level = pgtrigger.Row
    when = pgtrigger.Before
    operation = pgtrigger.Insert
    func = """
        -- Two that would be a chain together are made one after the other.
        PERFORM pg_advisory_xact_lock(hashtext('approvals_delegation'));
        IF EXISTS (
            SELECT FROM approvals_delegation d
            WHERE d.begins_at < NEW.ends_at AND NEW.begins_at < d.ends_at
              AND (d.delegate_id = NEW.delegator_id OR d.delegator_id = NEW.delegate_id))
        THEN
            RAISE EXCEPTION 'a delegation is not passed on';
        ELSIF EXISTS (
            SELECT FROM approvals_delegation d
            WHERE d.begins_at < NEW.ends_at AND NEW.begins_at < d.ends_at
              AND d.delegator_id = NEW.delegator_id
              AND (d.group_id IS NULL OR NEW.group_id IS NULL OR d.group_id = NEW.group_id)
              AND (d.server_id IS NULL OR NEW.server_id IS NULL OR d.server_id = NEW.server_id))
        THEN
            RAISE EXCEPTION 'there is a delegate for these calls already';
        ELSIF NOT approvals_may_decide(NEW.delegator_id)
            OR NOT approvals_may_decide(NEW.delegate_id)
        THEN
            RAISE EXCEPTION 'this person may not decide';
        END IF;
        RETURN NEW;
    """


class OnlyShortened(StrictTrigger):
    """A delegation may end earlier; nothing else of it ever changes."""

    level = pgtrigger.Row
    when = pgtrigger.Before
    operation = pgtrigger.Update
    func = """
        IF NEW.ends_at > OLD.ends_at OR
            (to_jsonb(NEW) - 'ends_at') IS DISTINCT FROM (to_jsonb(OLD) - 'ends_at')
        THEN
            RAISE EXCEPTION 'a delegation is never changed, only ended';
        END IF;
        RETURN NEW;
    """


class DelegationQuerySet(models.QuerySet["Delegation"]):
    def current(self) -> Self:
        """Those that hold now, or later."""
        return self.filter(ends_at__gt=timezone.now())

    def for_page(self) -> Self:
        return self.select_related("delegator", "delegate", "group", "server")


class Delegation(models.Model):
    """For a time, `delegate` is asked and votes in the place of `delegator`, on calls that both may
    decide on. It gives no right: whoever votes has to be one whose vote counts."""

    delegator = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    delegate = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    # Of rules that ask this group; of any.
    group = models.ForeignKey(Group, models.CASCADE, null=True, blank=True, related_name="+")
    # Of calls of this server; of any.
    server = models.ForeignKey(Server, models.CASCADE, null=True, blank=True, related_name="+")
    begins_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    # Both are notified.
    asks_both = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects = DelegationQuerySet.as_manager()

    class Meta:
        default_permissions = ()
        ordering = ["begins_at", "id"]
        constraints = [
            models.CheckConstraint(
                name="approvals_delegation_ends_later", condition=Q(ends_at__gte=F("begins_at"))
            ),
            models.CheckConstraint(
                name="approvals_delegation_to_another", condition=~Q(delegate=F("delegator"))
            ),
        ]
        indexes = [models.Index(name="approvals_delegation_ends", fields=["ends_at"])]
        triggers = [
            NoChains(name="no_chains"),
            OnlyShortened(name="only_shortened"),
            Refuse(name="no_truncate", operation=pgtrigger.Truncate),
        ]

    def __str__(self) -> str:
        return f"{self.delegate_id} for {self.delegator_id}"
