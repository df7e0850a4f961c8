"""Standing approvals, and their uses."""

from __future__ import annotations

from datetime import timedelta
from typing import Self

import pgtrigger
from django.db import models
from django.utils import timezone

from accounts.models import Agent, Proof, User
from audit.models import ClockTime
from calls.models import Call
from calls.models.legal import erasing
from core.triggers import Refuse, StrictTrigger, append_only, configuration
from registry.models import Definition, Tool

# So long a yes in advance holds at most.
MOST_DAYS = 30


class LegalGrant(StrictTrigger):
    """A grant grows out of a call that its owner alone approved, and is of that call's kind."""

    level = pgtrigger.Row
    when = pgtrigger.Before
    operation = pgtrigger.Insert
    declare = [("made_from", "calls_call")]
    func = """
        SELECT * INTO made_from FROM calls_call WHERE id = NEW.call_id;
        IF (NEW.agent_id, NEW.tool_id, NEW.definition_id) IS DISTINCT FROM
            (made_from.agent_id, made_from.tool_id, made_from.definition_id)
        THEN
            RAISE EXCEPTION 'a grant is for the agent and the definition that were approved';
        ELSIF (SELECT array_agg(v.person_id) FROM approvals_vote v
            JOIN approvals_approval a ON a.call_id = v.approval_id AND a.state = 'approved'
            WHERE v.approval_id = NEW.call_id AND v.fallen_at IS NULL AND v.approve)
            IS DISTINCT FROM ARRAY[NEW.owner_id]
        THEN
            RAISE EXCEPTION 'a grant is made by the one person who approved the call';
        ELSIF NEW.owner_id IN (SELECT x.person_id FROM approvals_excluded(NEW.call_id) x)
            OR NEW.owner_id IN (SELECT p.person_id FROM approvals_parties(NEW.call_id) p)
            OR NOT approvals_may_decide(NEW.owner_id)
        THEN
            RAISE EXCEPTION 'this person may not decide';
        ELSIF NEW.uses <> 0 OR NEW.summed <> 0 OR NEW.revoked_at IS NOT NULL THEN
            RAISE EXCEPTION 'a grant begins unused';
        END IF;
        NEW.created_at = clock_timestamp();
        RETURN NEW;
    """


class OnlyUsed(StrictTrigger):
    """A grant is used, each time once more, and revoked, once; its arguments go with the payload of
    the call that it is of. Nothing else of it changes."""

    level = pgtrigger.Row
    when = pgtrigger.Before
    operation = pgtrigger.Update
    func = f"""
        IF {erasing("call_id", {"arguments": "'{}'", "bounds": "'[]'", "note": "''"})} THEN
            RETURN NEW;
        ELSIF (to_jsonb(NEW) - '{{uses,summed,last_used_at,revoked_at,revoked_by_id}}'::text[])
            IS DISTINCT FROM
            (to_jsonb(OLD) - '{{uses,summed,last_used_at,revoked_at,revoked_by_id}}'::text[])
        THEN
            RAISE EXCEPTION 'what was granted is never changed';
        ELSIF NEW.uses NOT IN (OLD.uses, OLD.uses + 1) OR NEW.summed < OLD.summed THEN
            RAISE EXCEPTION 'uses are counted one by one, and never taken back';
        ELSIF OLD.revoked_at IS NOT NULL THEN
            RAISE EXCEPTION 'a revoked grant stays revoked, and is not used';
        END IF;
        RETURN NEW;
    """


class MayDecide(models.Func):
    """Asked of the database, as for votes."""

    function = "approvals_may_decide"
    output_field = models.BooleanField()


class GrantQuerySet(models.QuerySet["Grant"]):
    def in_force(self) -> Self:
        """Not those whose tool says something else by now: they wait until it is as it was."""
        return self.trusted().filter(
            revoked_at=None,
            expires_at__gt=ClockTime(),
            uses__lt=models.F("max_uses"),
            definition=models.F("tool__published"),
            tool__state=Tool.State.PUBLISHED,
        )

    def trusted(self) -> Self:
        """Their owners would still be allowed to decide such a call."""
        own = models.Q(agent__owner=models.F("owner")) | models.Q(
            agent__created_by=models.F("owner"), agent__created_by__isnull=False
        )
        return self.filter(MayDecide("owner_id")).exclude(own)

    def not_ended(self) -> Self:
        """Suspended ones too: they hold again when the tool is as it was."""
        left = models.Q(uses__lt=models.F("max_uses"))
        return self.filter(left, revoked_at=None, expires_at__gt=ClockTime())

    def ended(self) -> Self:
        return self.exclude(pk__in=self.not_ended().values("pk"))

    def for_page(self) -> Self:
        return self.select_related("agent", "tool", "definition", "owner", "revoked_by").order_by(
            "-pk"
        )


class Grant(models.Model):
    """Standing approval of calls like one that was approved, within bounds and for a while."""

    call = models.ForeignKey(Call, models.PROTECT, related_name="grants", db_constraint=False)
    agent = models.ForeignKey(Agent, models.PROTECT, related_name="grants")
    tool = models.ForeignKey(Tool, models.PROTECT, related_name="+")
    definition = models.ForeignKey(Definition, models.PROTECT, related_name="+")
    owner = models.ForeignKey(User, models.PROTECT, related_name="grants")
    # As approved, and what may be otherwise (approvals/bounds.py).
    arguments = models.BinaryField()
    bounds = models.JSONField(default=list)
    # Who was asked, and how strictly: another question is no longer the one that was answered.
    thresholds = models.JSONField()
    step_up = models.CharField(max_length=7, choices=Proof.Method, blank=True, default="")
    max_uses = models.PositiveIntegerField()
    uses = models.PositiveIntegerField(default=0)
    sum_path = models.JSONField(null=True)
    max_sum = models.DecimalField(max_digits=40, decimal_places=18, null=True)
    summed = models.DecimalField(max_digits=40, decimal_places=18, default=0)
    # Minutes of the day and days of the week (0 is Monday; none means all) in this time zone.
    days = models.JSONField(default=list)
    start_minute = models.PositiveSmallIntegerField(default=0)
    end_minute = models.PositiveSmallIntegerField(default=24 * 60)
    time_zone = models.CharField(max_length=64, default="UTC")
    note = models.TextField(blank=True)
    created_at = models.DateTimeField(db_default=ClockTime())
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)
    revoked_by = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")

    objects = GrantQuerySet.as_manager()

    class Meta:
        ordering = ["-id"]
        default_permissions = ("view",)
        permissions = [("revoke_grant", "Can revoke everybody's standing grants")]
        constraints = [
            models.CheckConstraint(
                name="approvals_grant_ends",
                condition=models.Q(expires_at__gt=models.F("created_at"))
                & models.Q(
                    expires_at__lte=models.F("created_at") + models.Value(timedelta(days=MOST_DAYS))
                ),
            ),
            models.CheckConstraint(
                name="approvals_grant_uses", condition=models.Q(uses__lte=models.F("max_uses"))
            ),
            models.CheckConstraint(
                name="approvals_grant_sum",
                condition=models.Q(max_sum=None, sum_path=None)
                | models.Q(
                    max_sum__isnull=False, sum_path__isnull=False, summed__lte=models.F("max_sum")
                ),
            ),
        ]
        indexes = [models.Index(name="approvals_grant_agent", fields=["agent", "definition"])]
        triggers = [
            LegalGrant(name="legal_grant"),
            OnlyUsed(name="only_used"),
            Refuse(name="no_delete", operation=pgtrigger.Delete),
            Refuse(name="no_truncate", operation=pgtrigger.Truncate),
            # Not for each use: what is used up is counted where it is used.
            *configuration("revoked_at"),
        ]

    def __str__(self) -> str:
        return f"grant {self.pk}"

    @property
    def state(self) -> str:
        """In force, or the first reason why not."""
        if self.revoked_at is not None:
            return "revoked"
        if self.expires_at <= timezone.now():
            return "expired"
        if self.uses >= self.max_uses:
            return "used_up"
        published = self.tool.state == Tool.State.PUBLISHED
        if not published or self.tool.published_id != self.definition_id:
            return "suspended"
        return "in_force"


class GrantUse(models.Model):
    """A call that ran because of a grant."""

    call_id = models.UUIDField(primary_key=True)
    grant = models.ForeignKey(Grant, models.PROTECT, related_name="uses_made")
    amount = models.DecimalField(max_digits=40, decimal_places=18)
    at = models.DateTimeField(db_default=ClockTime())

    class Meta:
        default_permissions = ()
        triggers = append_only()

    def __str__(self) -> str:
        return f"{self.grant_id} for {self.call_id}"
