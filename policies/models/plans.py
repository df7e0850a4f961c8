"""Plans of policy files: what a file changes, and what people said of it."""

from __future__ import annotations

from django.db import models
from django.utils import timezone

from accounts.models import Proof, ServiceAccount, User
from core.triggers import Keep, append_only


class PolicyPlan(models.Model):
    """A proposed policy file against what was there then, with what it would have done.

    Its digest is over base, proposal and result: who confirms it confirms exactly these.
    """

    digest = models.CharField(max_length=64, unique=True)
    base_digest = models.CharField(max_length=64)
    proposal = models.TextField()
    # Where the file is, as it says itself, and the pull request or commit that proposes it.
    managed_by = models.CharField(max_length=500, blank=True)
    origin = models.CharField(max_length=500, blank=True)
    changes = models.JSONField()
    result = models.JSONField()
    # Of whoever proposed it; neither: the host's command line.
    account = models.ForeignKey(ServiceAccount, models.PROTECT, null=True, related_name="+")
    person = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)
    applied_at = models.DateTimeField(null=True)
    applied_by = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ["-id"]
        # View, propose; confirm is for people alone.
        default_permissions = ("view", "add")
        permissions = [
            ("confirm_policyplan", "Can confirm plans of policy files"),
            ("apply_policyplan", "Can apply confirmed plans of policy files"),
        ]
        indexes = [models.Index(name="policies_plan_applied", fields=["-applied_at"])]
        triggers = [
            Keep(
                name="fixed",
                columns=[
                    "digest",
                    "base_digest",
                    "proposal",
                    "managed_by",
                    "origin",
                    "changes",
                    "result",
                    "account_id",
                    "person_id",
                    "created_at",
                ],
            )
        ]

    def __str__(self) -> str:
        return self.digest[:12]


class PlanConfirmation(models.Model):
    """A person opened a plan in the console, and confirmed it with a second factor."""

    plan = models.ForeignKey(PolicyPlan, models.PROTECT, related_name="confirmations")
    person = models.ForeignKey(User, models.PROTECT, related_name="+")
    proof = models.ForeignKey(Proof, models.PROTECT, related_name="+")
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["id"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(name="policies_confirmed_once", fields=["plan", "person"])
        ]
        triggers = append_only()

    def __str__(self) -> str:
        return f"{self.plan_id} by {self.person_id}"
