"""A person's yes or no."""

from __future__ import annotations

from typing import Self

import pgtrigger
from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from audit.models import ClockTime
from calls.models import Call
from core.triggers import StrictTrigger, append_only


class ApprovalQuerySet(models.QuerySet["Approval"]):
    def waiting(self) -> Self:
        return self.filter(state=Approval.State.WAITING)

    def for_queue(self) -> Self:
        return self.select_related(
            "call__agent__owner", "call__person", "call__server", "call__tool", "call__definition"
        ).order_by("asked_at", "pk")


class Approval(models.Model):
    """A held call waiting for people's yes or no."""

    class State(models.TextChoices):
        WAITING = "waiting", _("Waiting")
        APPROVED = "approved", _("Approved")
        DENIED = "denied", _("Denied")
        EXPIRED = "expired", _("Expired")
        WITHDRAWN = "withdrawn", _("Withdrawn")
        SUPERSEDED = "superseded", _("Superseded")

    call = models.OneToOneField(Call, models.PROTECT, primary_key=True, related_name="approval")
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    # Why policy asked. Shown to the approver, so it is written for people.
    reason = models.TextField()
    asked_at = models.DateTimeField(db_default=ClockTime())
    decide_by = models.DateTimeField()
    decided_at = models.DateTimeField(null=True)
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+"
    )

    objects = ApprovalQuerySet.as_manager()

    class Meta:
        ordering = ["asked_at"]
        default_permissions = ("view",)
        permissions = [("decide_approval", "Can approve and refuse held calls")]
        indexes = [
            # The queue page and its badge look at nothing else.
            models.Index(
                name="approvals_waiting",
                fields=["asked_at"],
                condition=models.Q(state="waiting"),
            )
        ]

    def __str__(self) -> str:
        return f"approval of {self.call_id}"

    @property
    def decision(self) -> Vote | None:
        return self.votes.order_by("-at").first()


class NotOnesOwn(StrictTrigger):
    """Whoever owns an agent, or is the one it acts for, has no vote on its calls."""

    level = pgtrigger.Row
    when = pgtrigger.Before
    operation = pgtrigger.Insert
    func = """
        IF EXISTS (
            SELECT FROM calls_call c JOIN accounts_agent a ON a.id = c.agent_id
            WHERE c.id = NEW.approval_id AND NEW.person_id IN (c.person_id, a.owner_id))
        THEN
            RAISE EXCEPTION 'nobody decides on calls of their own agent';
        END IF;
        RETURN NEW;
    """


class Vote(models.Model):
    """One person's word on one approval, with the digest of what was seen."""

    approval = models.ForeignKey(Approval, models.PROTECT, related_name="votes")
    person = models.ForeignKey(User, models.PROTECT, related_name="votes")
    approve = models.BooleanField()
    reason = models.TextField(blank=True)
    seen_digest = models.CharField(max_length=64)
    at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["at"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(name="approvals_one_vote_each", fields=["approval", "person"])
        ]
        triggers = [*append_only(), NotOnesOwn(name="not_ones_own")]

    def __str__(self) -> str:
        return f"{'yes' if self.approve else 'no'} by {self.person}"
