"""A person's yes or no."""

from __future__ import annotations

from datetime import timedelta
from typing import Self

import pgtrigger
from django.conf import settings
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import Agent, Proof, User
from audit.models import ClockTime
from calls.models import Call
from core.triggers import Refuse, StrictTrigger, append_only, configuration
from policies.thresholds import StepUp
from registry.models import Definition, Tool


class ApprovalQuerySet(models.QuerySet["Approval"]):
    def waiting(self) -> Self:
        return self.filter(state=Approval.State.WAITING)

    def for_queue(self) -> Self:
        return self.select_related(
            "call__agent__owner",
            "call__person",
            "call__server",
            "call__tool",
            "call__definition",
            "call__amendment__person",
            "decided_by",
        ).order_by("asked_at", "pk")


class DecidedByVotes(StrictTrigger):
    """An approval is decided once, by the votes that stand."""

    level = pgtrigger.Row
    when = pgtrigger.Before
    operation = pgtrigger.Update
    func = """
        IF OLD.state <> 'waiting' THEN
            RAISE EXCEPTION 'what was decided stays decided';
        ELSIF (NEW.call_id, NEW.asked_at) IS DISTINCT FROM (OLD.call_id, OLD.asked_at) THEN
            RAISE EXCEPTION 'what was asked is never changed';
        ELSIF NEW.thresholds IS DISTINCT FROM OLD.thresholds AND EXISTS (
            SELECT FROM approvals_vote v
            WHERE v.approval_id = NEW.call_id AND v.fallen_at IS NULL)
        THEN
            RAISE EXCEPTION 'votes stand: who decides is not changed under them';
        ELSIF NEW.state IN ('approved', 'denied') AND (
            approvals_decided(NEW.call_id, NEW.thresholds) <> NEW.state OR NOT EXISTS (
                SELECT FROM approvals_vote v
                WHERE v.approval_id = NEW.call_id AND v.fallen_at IS NULL
                  AND v.person_id = NEW.decided_by_id AND v.approve = (NEW.state = 'approved')))
        THEN
            RAISE EXCEPTION 'the votes do not say so';
        ELSIF NEW.state = 'expired' AND OLD.decide_by > clock_timestamp() THEN
            RAISE EXCEPTION 'there is still time to decide';
        END IF;
        RETURN NEW;
    """


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
    # Whose vote was the last that was needed.
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+"
    )
    # Of the rule that asked, as it was then (policies/thresholds.py): never an empty list.
    thresholds = models.JSONField()
    start_within_s = models.PositiveIntegerField(null=True)

    objects = ApprovalQuerySet.as_manager()

    class Meta:
        ordering = ["asked_at"]
        default_permissions = ("view",)
        permissions = [("decide_approval", "Can approve and refuse held calls")]
        triggers = [DecidedByVotes(name="decided_by_votes")]
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
    def standing(self) -> VoteQuerySet:
        return Vote.objects.standing().filter(approval=self)


class LegalVote(StrictTrigger):
    """A vote is of one who may decide, on what is held now."""

    level = pgtrigger.Row
    when = pgtrigger.Before
    operation = pgtrigger.Insert
    declare = [("asked", "approvals_approval")]
    func = """
        -- Voters take turns here: each sees the votes before.
        SELECT * INTO asked FROM approvals_approval WHERE call_id = NEW.approval_id FOR UPDATE;
        IF asked.state IS DISTINCT FROM 'waiting' OR asked.decide_by <= clock_timestamp() AND
            (SELECT c.clock_stopped_at FROM calls_call c WHERE c.id = NEW.approval_id) IS NULL
        THEN
            RAISE EXCEPTION 'nobody decides this call any more';
        ELSIF NEW.fallen_at IS NOT NULL OR NEW.fallen_why <> '' THEN
            RAISE EXCEPTION 'a vote begins by standing';
        ELSIF NEW.person_id IN (SELECT x.person_id FROM approvals_excluded(NEW.approval_id) x) THEN
            RAISE EXCEPTION 'nobody decides on calls of their own agent, or that they edited';
        ELSIF NOT approvals_may_decide(NEW.person_id) THEN
            RAISE EXCEPTION 'this person may not decide';
        ELSIF NOT (
            SELECT bool_or(approvals_is_from(NEW.person_id, t.t ->> 'from'))
            FROM jsonb_array_elements(asked.thresholds) t (t))
        THEN
            RAISE EXCEPTION 'the rule asks other people';
        ELSIF NEW.seen_digest = '' OR NEW.seen_digest IS DISTINCT FROM
            (SELECT c.call_digest FROM calls_call c WHERE c.id = NEW.approval_id)
        THEN
            RAISE EXCEPTION 'a vote on something else than what is held';
        END IF;
        NEW.at = clock_timestamp();
        RETURN NEW;
    """


# What a confirmed vote's statement begins with: its passkey signed it, and it is this vote.
VOTE_STATEMENT = (
    "countersign vote 1\nvote: {vote}\nperson: {person}\ncall: {call}\ndigest: {digest}\n"
)


class ProvenVote(StrictTrigger):
    """A vote is called confirmed only with a proof that says the same."""

    level = pgtrigger.Row
    when = pgtrigger.Before
    operation = pgtrigger.Insert
    func = """
        IF (NEW.step_up <> '' OR NEW.proof_id IS NOT NULL) AND NOT EXISTS (
            SELECT FROM accounts_proof p
            WHERE p.id = NEW.proof_id AND p.person_id = NEW.person_id AND p.method = NEW.step_up
              AND starts_with(p.statement, format(
                E'countersign vote 1\\nvote: %s\\nperson: %s\\ncall: %s\\ndigest: %s\\n',
                CASE WHEN NEW.approve THEN 'yes' ELSE 'no' END,
                NEW.person_id, NEW.approval_id, NEW.seen_digest)))
        THEN
            RAISE EXCEPTION 'a confirmed vote without its proof';
        END IF;
        RETURN NEW;
    """


class OnlyFalls(StrictTrigger):
    """A vote may fall, once, while people still decide; nothing else of it ever changes."""

    level = pgtrigger.Row
    when = pgtrigger.Before
    operation = pgtrigger.Update
    func = """
        IF OLD.fallen_at IS NOT NULL OR NEW.fallen_at IS NULL OR NEW.fallen_why = '' OR
            (to_jsonb(NEW) - '{fallen_at,fallen_why}'::text[])
            IS DISTINCT FROM (to_jsonb(OLD) - '{fallen_at,fallen_why}'::text[])
        THEN
            RAISE EXCEPTION 'votes are never changed, only taken back';
        ELSIF (SELECT state FROM approvals_approval WHERE call_id = OLD.approval_id FOR UPDATE)
            IS DISTINCT FROM 'waiting'
        THEN
            RAISE EXCEPTION 'nobody decides this call any more';
        END IF;
        NEW.fallen_at = clock_timestamp();
        RETURN NEW;
    """


class VoteQuerySet(models.QuerySet["Vote"]):
    def standing(self) -> Self:
        return self.filter(fallen_at=None)


class Vote(models.Model):
    """One person's word on one approval, with the digest of what was seen.

    It stands until it falls; whether it counts is asked of the database (approvals/standing.py).
    """

    class Fallen(models.TextChoices):
        TAKEN_BACK = "taken_back", _("Taken back")
        EDITED = "edited", _("The arguments were edited afterwards")

    approval = models.ForeignKey(Approval, models.PROTECT, related_name="votes")
    person = models.ForeignKey(User, models.PROTECT, related_name="votes")
    approve = models.BooleanField()
    reason = models.TextField(blank=True)
    seen_digest = models.CharField(max_length=64)
    # How the person confirmed it, beyond being signed in.
    step_up = models.CharField(max_length=7, choices=StepUp, blank=True, default="", db_default="")
    proof = models.OneToOneField(Proof, models.PROTECT, null=True, related_name="vote")
    at = models.DateTimeField(default=timezone.now, editable=False)
    fallen_at = models.DateTimeField(null=True)
    fallen_why = models.CharField(
        max_length=10, choices=Fallen, blank=True, default="", db_default=""
    )

    objects = VoteQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                name="approvals_one_vote_each",
                fields=["approval", "person"],
                condition=models.Q(fallen_at=None),
            )
        ]
        triggers = [
            LegalVote(name="legal_vote"),
            ProvenVote(name="proven_vote"),
            OnlyFalls(name="only_falls"),
            Refuse(name="no_delete", operation=pgtrigger.Delete),
            Refuse(name="no_truncate", operation=pgtrigger.Truncate),
        ]

    def __str__(self) -> str:
        return f"{'yes' if self.approve else 'no'} by {self.person}"


class LegalComment(StrictTrigger):
    """People write while the call is held; answers are its own agent's."""

    level = pgtrigger.Row
    when = pgtrigger.Before
    operation = pgtrigger.Insert
    func = """
        IF (SELECT a.state FROM approvals_approval a WHERE a.call_id = NEW.approval_id)
            IS DISTINCT FROM 'waiting'
        THEN
            RAISE EXCEPTION 'nobody decides this call any more';
        ELSIF NEW.kind = 'answer' AND NEW.agent_id IS DISTINCT FROM
            (SELECT c.agent_id FROM calls_call c WHERE c.id = NEW.approval_id)
        THEN
            RAISE EXCEPTION 'only the agent of a call answers for it';
        ELSIF NEW.kind = 'question' AND NOT approvals_may_decide(NEW.person_id) THEN
            RAISE EXCEPTION 'only those who decide ask';
        ELSIF NEW.kind = 'comment' AND NOT approvals_may_decide(NEW.person_id) AND NOT (
            NEW.person_id IN (SELECT x.person_id FROM approvals_excluded(NEW.approval_id) x)
            AND (SELECT u.is_active FROM accounts_user u WHERE u.id = NEW.person_id))
        THEN
            RAISE EXCEPTION 'this person has no word on this call';
        END IF;
        NEW.at = clock_timestamp();
        RETURN NEW;
    """


class CommentQuerySet(models.QuerySet["Comment"]):
    def for_card(self) -> Self:
        return self.select_related("person", "agent")

    def questions(self) -> Self:
        return self.filter(kind=Comment.Kind.QUESTION)


class Comment(models.Model):
    """What people, and the agent, say of a held call before it is decided."""

    class Kind(models.TextChoices):
        COMMENT = "comment", _("Comment")
        # Put to the agent, which reads it where it waits.
        QUESTION = "question", _("Question to the agent")
        ANSWER = "answer", _("Answer")

    approval = models.ForeignKey(Approval, models.PROTECT, related_name="comments")
    kind = models.CharField(max_length=8, choices=Kind, default=Kind.COMMENT)
    person = models.ForeignKey(User, models.PROTECT, null=True, related_name="+")
    agent = models.ForeignKey(Agent, models.PROTECT, null=True, related_name="+")
    text = models.TextField()
    at = models.DateTimeField(default=timezone.now, editable=False)

    objects = CommentQuerySet.as_manager()

    class Meta:
        ordering = ["id"]
        default_permissions = ()
        constraints = [
            models.CheckConstraint(
                name="approvals_comment_by_one",
                condition=models.Q(kind="answer", person=None, agent__isnull=False)
                | models.Q(kind__in=["comment", "question"], person__isnull=False, agent=None),
            ),
        ]
        triggers = [*append_only(), LegalComment(name="legal_comment")]

    def __str__(self) -> str:
        return f"{self.kind} on {self.approval_id}"

    @property
    def by(self) -> str:
        if self.agent:
            return self.agent.name
        return self.person.username if self.person else ""


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
    """A grant is used, each time once more, and revoked, once: nothing else of it changes."""

    level = pgtrigger.Row
    when = pgtrigger.Before
    operation = pgtrigger.Update
    func = """
        IF (to_jsonb(NEW) - '{uses,summed,last_used_at,revoked_at,revoked_by_id}'::text[])
            IS DISTINCT FROM
            (to_jsonb(OLD) - '{uses,summed,last_used_at,revoked_at,revoked_by_id}'::text[])
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
        return self.filter(MayDecide("owner_id")).exclude(agent__owner=models.F("owner"))

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
    """A yes in advance to calls like one that was approved, within bounds and for a while."""

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
    step_up = models.CharField(max_length=7, choices=StepUp, blank=True, default="")
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
