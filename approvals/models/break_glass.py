"""Uses of break-glass: calls that one person let run past the rule that held them."""

from __future__ import annotations

from typing import Self

import pgtrigger
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from approvals.models.votes import Approval
from audit.models import ClockTime
from core.triggers import Refuse, StrictTrigger


class LegalBreakGlass(StrictTrigger):
    """Break-glass is for a pending call of others, by a user with the right, who names another."""

    level = pgtrigger.Row
    when = pgtrigger.Before
    operation = pgtrigger.Insert
    declare = [("asked", "approvals_approval")]
    func = """
        SELECT * INTO asked FROM approvals_approval WHERE call_id = NEW.approval_id FOR UPDATE;
        IF asked.state IS DISTINCT FROM 'waiting' THEN
            RAISE EXCEPTION 'nobody decides this call any more';
        ELSIF NOT approvals_may_break_glass(NEW.person_id) THEN
            RAISE EXCEPTION 'this person may not break the glass';
        ELSIF NEW.person_id IN (SELECT p.person_id FROM approvals_involved(NEW.approval_id) p) THEN
            RAISE EXCEPTION 'nobody breaks the glass for a call that they have a part in';
        ELSIF NOT approvals_is_second(NEW.second_id, NEW.person_id, NEW.approval_id) THEN
            RAISE EXCEPTION 'somebody else who decides has to be told';
        ELSIF NEW.reason = '' OR NEW.reviewed_at IS NOT NULL THEN
            RAISE EXCEPTION 'it has a reason, and is reviewed afterwards';
        ELSIF NEW.seen_digest = '' OR NEW.seen_digest IS DISTINCT FROM
            (SELECT c.call_digest FROM calls_call c WHERE c.id = NEW.approval_id)
        THEN
            RAISE EXCEPTION 'it is of something else than what is held';
        ELSIF EXISTS (SELECT FROM calls_pause WHERE ended_at IS NULL) OR EXISTS (
            SELECT FROM calls_freeze f JOIN calls_call c ON c.id = NEW.approval_id
            WHERE f.ended_at IS NULL AND (f.agent_id = c.agent_id OR f.server_id = c.server_id
                OR f.agent_id IS NULL AND f.server_id IS NULL))
        THEN
            RAISE EXCEPTION 'nobody breaks the glass during an emergency stop or a pause';
        END IF;
        NEW.used_at = clock_timestamp();
        RETURN NEW;
    """


class ReviewedOnce(StrictTrigger):
    """A second person reviews it, once; nothing else of it ever changes."""

    level = pgtrigger.Row
    when = pgtrigger.Before
    operation = pgtrigger.Update
    func = """
        IF OLD.reviewed_at IS NOT NULL OR NEW.reviewed_at IS NULL OR
            (to_jsonb(NEW) - '{reviewed_at,reviewer_id,judgement,note}'::text[])
            IS DISTINCT FROM (to_jsonb(OLD) - '{reviewed_at,reviewer_id,judgement,note}'::text[])
        THEN
            RAISE EXCEPTION 'a use of break-glass is only reviewed, once';
        ELSIF NOT approvals_is_second(NEW.reviewer_id, OLD.person_id, OLD.approval_id) THEN
            RAISE EXCEPTION 'somebody else has to review it';
        END IF;
        NEW.reviewed_at = clock_timestamp();
        RETURN NEW;
    """


class BreakGlassQuerySet(models.QuerySet["BreakGlass"]):
    def unreviewed(self) -> Self:
        return self.filter(reviewed_at=None)

    def for_page(self) -> Self:
        return self.select_related("person", "second", "reviewer", "approval__call__agent")


class BreakGlass(models.Model):
    """One person let one call run, which rules held for others. The vote beside it decides."""

    class Judgement(models.TextChoices):
        JUSTIFIED = "justified", _("Justified")
        NOT_JUSTIFIED = "not_justified", _("Not justified")

    approval = models.OneToOneField(Approval, models.PROTECT, related_name="break_glass")
    person = models.ForeignKey(User, models.PROTECT, related_name="+")
    # Who was notified at once.
    second = models.ForeignKey(User, models.PROTECT, related_name="+")
    reason = models.TextField()
    seen_digest = models.CharField(max_length=64)
    used_at = models.DateTimeField(db_default=ClockTime(), editable=False)
    reviewer = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    reviewed_at = models.DateTimeField(null=True)
    judgement = models.CharField(max_length=13, choices=Judgement, blank=True, default="")
    note = models.TextField(blank=True, default="")

    objects = BreakGlassQuerySet.as_manager()

    class Meta:
        default_permissions = ()
        ordering = ["-used_at"]
        constraints = [
            models.CheckConstraint(
                name="approvals_break_glass_reviewed_whole",
                condition=Q(reviewed_at=None, reviewer=None, judgement="")
                | Q(reviewed_at__isnull=False, reviewer__isnull=False, judgement__gt=""),
            )
        ]
        indexes = [
            # The banner of every page looks at nothing else.
            models.Index(
                name="approvals_break_glass_open", fields=["used_at"], condition=Q(reviewed_at=None)
            )
        ]
        triggers = [
            LegalBreakGlass(name="legal_break_glass"),
            ReviewedOnce(name="reviewed_once"),
            Refuse(name="no_delete", operation=pgtrigger.Delete),
            Refuse(name="no_truncate", operation=pgtrigger.Truncate),
        ]

    def __str__(self) -> str:
        return f"break-glass by {self.person_id} on {self.approval_id}"
