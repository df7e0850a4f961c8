"""Approvals and the votes that decide them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import pgtrigger
from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import Proof, User
from audit.models import ClockTime
from calls.models import Call
from calls.models.legal import erasing
from core.english import gettext as english_gettext
from core.triggers import Refuse, StrictTrigger
from policies.thresholds import Threshold, stored


class ApprovalQuerySet(models.QuerySet["Approval"]):
    def waiting(self) -> Self:
        return self.filter(state=Approval.State.WAITING)

    def for_queue(self) -> Self:
        return self.select_related(
            "call__agent__owner",
            "call__agent__created_by",
            "call__token__created_by",
            "call__person",
            "call__server",
            "call__tool",
            "call__definition",
            "call__amendment__person",
            "decided_by",
            "break_glass__person",
            "break_glass__second",
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
        ELSIF NEW.widened_min <> OLD.widened_min AND (
            NEW.state <> 'waiting' OR NEW.widened_min < OLD.widened_min
            OR OLD.widens_at IS NULL OR OLD.widens_at > clock_timestamp()
            OR OLD.asked_at + make_interval(mins => NEW.widened_min) > clock_timestamp())
        THEN
            RAISE EXCEPTION 'others may decide only after the time that the rule says';
        ELSIF NEW.state IN ('approved', 'denied') AND (
            approvals_decided(NEW.call_id, NEW.thresholds) <> NEW.state OR NOT EXISTS (
                SELECT FROM approvals_vote v
                WHERE v.approval_id = NEW.call_id AND v.fallen_at IS NULL
                  AND v.person_id = NEW.decided_by_id AND v.approve = (NEW.state = 'approved')))
        THEN
            RAISE EXCEPTION 'the votes do not say so';
        ELSIF NEW.state = 'denied' AND OLD.denies_at > clock_timestamp() THEN
            RAISE EXCEPTION 'its denial can still be taken back';
        ELSIF NEW.state = 'waiting' AND NEW.denies_at IS DISTINCT FROM OLD.denies_at
            AND NEW.denies_at IS NOT NULL AND (
            NEW.denies_at > clock_timestamp() + interval '60 s'
            OR approvals_decided(NEW.call_id, NEW.thresholds) <> 'denied')
        THEN
            RAISE EXCEPTION 'only a denial can be taken back, and for a minute at most';
        ELSIF NEW.state = 'expired' AND OLD.decide_by > clock_timestamp() THEN
            RAISE EXCEPTION 'there is still time to decide';
        END IF;
        RETURN NEW;
    """


class Approval(models.Model):
    """A held call waiting for people's yes or no."""

    class State(models.TextChoices):
        WAITING = "waiting", _("Pending approval")
        APPROVED = "approved", _("Approved")
        DENIED = "denied", _("Denied")
        EXPIRED = "expired", _("Expired")
        WITHDRAWN = "withdrawn", _("Withdrawn")
        SUPERSEDED = "superseded", _("Superseded")

    # No constraint of the database, as nowhere of calls: they stand in months, which are detached.
    call = models.OneToOneField(
        Call, models.PROTECT, primary_key=True, related_name="approval", db_constraint=False
    )
    state = models.CharField(max_length=10, choices=State, default=State.WAITING)
    # Why policy asked. Shown to the approver, so it is written for people.
    reason = models.TextField()
    asked_at = models.DateTimeField(db_default=ClockTime())
    decide_by = models.DateTimeField()
    decided_at = models.DateTimeField(null=True)
    # While it is pending: its votes deny it, and until then they can be taken back
    # (approvals/denials.py).
    denies_at = models.DateTimeField(null=True)
    # Whose vote was the last that was needed.
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, related_name="+"
    )
    # Of the rule that asked, as it was then (policies/thresholds.py): never an empty list.
    thresholds = models.JSONField()
    # Of thresholds that count late: those up to so many minutes count by now, and when the next one
    # will (approvals/widening.py).
    widened_min = models.PositiveSmallIntegerField(default=0, db_default=0)
    widens_at = models.DateTimeField(null=True)
    start_within_s = models.PositiveIntegerField(null=True)
    # Every rule that asked let messages show the arguments (notifications/shown_arguments.py).
    shows_arguments = models.BooleanField(default=False, db_default=False)

    objects = ApprovalQuerySet.as_manager()

    class Meta:
        ordering = ["asked_at"]
        default_permissions = ("view",)
        permissions = [
            ("decide_approval", "Can approve and refuse held calls"),
            ("break_glass", "Can let one held call run alone"),
        ]
        triggers = [DecidedByVotes(name="decided_by_votes")]
        indexes = [
            # The queue page and its badge look at nothing else.
            models.Index(
                name="approvals_waiting",
                fields=["asked_at"],
                condition=models.Q(state="waiting"),
            ),
            # The sweep looks each second.
            models.Index(
                name="approvals_denies",
                fields=["denies_at"],
                condition=models.Q(state="waiting", denies_at__isnull=False),
            ),
            models.Index(
                name="approvals_widens",
                fields=["widens_at"],
                condition=models.Q(state="waiting", widens_at__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"approval of {self.call_id}"

    @property
    def open_thresholds(self) -> list[Threshold]:
        """Those that count by now."""
        return [one for one in stored(self.thresholds) if one.after_min <= self.widened_min]

    @property
    def is_being_denied(self) -> bool:
        """Its votes deny it, which can still be taken back, and which its agent is not told."""
        return self.state == Approval.State.WAITING and self.denies_at is not None

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
            RAISE EXCEPTION 'nobody decides on calls that they have a part in, or that they edited';
        ELSIF NEW.person_id IN (SELECT b.person_id FROM approvals_bound(NEW.approval_id) b) THEN
            RAISE EXCEPTION 'a delegate and who named them are one vote';
        ELSIF NOT approvals_may_decide(NEW.person_id) THEN
            RAISE EXCEPTION 'this person may not decide';
        ELSIF NOT (
            SELECT bool_or(approvals_is_from(NEW.person_id, t.t ->> 'from'))
            FROM jsonb_array_elements(asked.thresholds) t (t)
            WHERE COALESCE((t.t ->> 'after_min')::int, 0) <= asked.widened_min)
            AND NOT EXISTS (
                SELECT FROM approvals_breakglass b
                WHERE b.approval_id = NEW.approval_id AND b.person_id = NEW.person_id
                  AND b.seen_digest = NEW.seen_digest AND NEW.approve)
        THEN
            RAISE EXCEPTION 'the rule asks other people';
        ELSIF NEW.seen_digest = '' OR NEW.seen_digest IS DISTINCT FROM
            (SELECT c.call_digest FROM calls_call c WHERE c.id = NEW.approval_id)
        THEN
            RAISE EXCEPTION 'a vote on something else than what is held';
        END IF;
        -- Not excluded although they have a part in it: there is nobody else.
        NEW.single_person = NEW.person_id IN
            (SELECT p.person_id FROM approvals_parties(NEW.approval_id) p);
        -- In whose place it is given: of those whom no other vote was given for. A denial also in
        -- that of a delegator whose approval fell for it, though their delegation has ended.
        NEW.for_people = ARRAY(
            SELECT DISTINCT d.delegator_id FROM approvals_delegations_ever(NEW.approval_id) d
            WHERE d.delegate_id = NEW.person_id
              AND (d.begins_at <= now() AND d.ends_at > now()
                OR NOT NEW.approve AND EXISTS (
                    SELECT FROM approvals_vote f
                    WHERE f.approval_id = NEW.approval_id AND f.person_id = d.delegator_id
                      AND f.fallen_why = 'delegate' AND f.at >= d.begins_at AND f.at < d.ends_at))
              AND NOT EXISTS (
                SELECT FROM approvals_vote v
                WHERE v.approval_id = NEW.approval_id AND v.fallen_at IS NULL
                  AND (d.delegator_id = ANY(v.for_people) OR d.delegator_id = v.person_id))
            ORDER BY d.delegator_id);
        NEW.at = clock_timestamp();
        RETURN NEW;
    """


# What a confirmed vote's statement begins with: its passkey signed it, and it is this vote.
VOTE_STATEMENT = (
    "countersign vote 1\nvote: {vote}\nperson: {person}\ncall: {call}\ndigest: {digest}\n"
)
# Of several votes that were confirmed together: two lines for each call.
VOTES_STATEMENT = "countersign votes 1\nvote: {vote}\nperson: {person}\n"
VOTES_STATEMENT_CALL = "call: {call}\ndigest: {digest}\n"


class ProvenVote(StrictTrigger):
    """A vote is called confirmed only with a proof that says the same."""

    level = pgtrigger.Row
    when = pgtrigger.Before
    operation = pgtrigger.Insert
    func = """
        IF (NEW.step_up <> '' OR NEW.proof_id IS NOT NULL) AND NOT EXISTS (
            SELECT FROM accounts_proof p
            WHERE p.id = NEW.proof_id AND p.person_id = NEW.person_id AND p.method = NEW.step_up
              AND (starts_with(p.statement, format(
                E'countersign vote 1\\nvote: %s\\nperson: %s\\ncall: %s\\ndigest: %s\\n',
                CASE WHEN NEW.approve THEN 'yes' ELSE 'no' END,
                NEW.person_id, NEW.approval_id, NEW.seen_digest))
              -- Lines of several calls stand before the name, so that no name can be one.
              OR starts_with(p.statement, format(
                E'countersign votes 1\\nvote: %s\\nperson: %s\\ncall: ',
                CASE WHEN NEW.approve THEN 'yes' ELSE 'no' END, NEW.person_id))
              AND strpos(split_part(p.statement, 'name: ', 1), format(
                E'\\ncall: %s\\ndigest: %s\\n', NEW.approval_id, NEW.seen_digest)) > 0))
        THEN
            RAISE EXCEPTION 'a confirmed vote without its proof';
        END IF;
        RETURN NEW;
    """


class OnlyFalls(StrictTrigger):
    """A vote may fall, once, while people still decide; and its reason goes with the call's
    payload. Nothing else of it ever changes."""

    level = pgtrigger.Row
    when = pgtrigger.Before
    operation = pgtrigger.Update
    func = f"""
        IF {erasing("approval_id", {"reason": "''"})} THEN
            RETURN NEW;
        ELSIF OLD.fallen_at IS NOT NULL OR NEW.fallen_at IS NULL OR NEW.fallen_why = '' OR
            (to_jsonb(NEW) - '{{fallen_at,fallen_why}}'::text[])
            IS DISTINCT FROM (to_jsonb(OLD) - '{{fallen_at,fallen_why}}'::text[])
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

    It stands until it falls; whether it counts is asked of the database (approvals/eligibility.py).
    """

    class Fallen(models.TextChoices):
        TAKEN_BACK = "taken_back", _("Taken back")
        EDITED = "edited", _("The arguments were edited afterwards")
        DISABLED = "disabled", _("The account was disabled")
        DELEGATE = "delegate", _("The delegate denied the call")

    approval = models.ForeignKey(Approval, models.PROTECT, related_name="votes")
    person = models.ForeignKey(User, models.PROTECT, related_name="votes")
    approve = models.BooleanField()
    reason = models.TextField(blank=True)
    seen_digest = models.CharField(max_length=64)
    # How the person confirmed it, beyond being signed in.
    step_up = models.CharField(
        max_length=7, choices=Proof.Method, blank=True, default="", db_default=""
    )
    # One proof may be of votes on several calls.
    proof = models.ForeignKey(Proof, models.PROTECT, null=True, related_name="votes")
    # Of one who has a part in the call and is alone (accounts/single_person.py); the database says.
    single_person = models.BooleanField(default=False, db_default=False, editable=False)
    # Those in whose place it is given (approvals/delegations.py); the database says.
    for_people = ArrayField(models.BigIntegerField(), default=list, db_default=[], editable=False)
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
            ),
            # What was confirmed once is good for one vote on each call.
            models.UniqueConstraint(
                name="approvals_one_vote_a_proof", fields=["proof", "approval"]
            ),
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

    @property
    def for_names(self) -> str:
        return ", ".join(one.username for one in self._delegators())

    @property
    def for_shown_names(self) -> str:
        """With display names, for pages: the record has usernames alone."""
        return ", ".join(one.shown_name for one in self._delegators())

    def _delegators(self) -> Sequence[User]:
        if not self.for_people:
            return ()
        return list(User.objects.filter(pk__in=self.for_people).order_by("username"))

    @property
    def names(self) -> str:
        """The voter, and those in whose place the vote is given."""
        named = self.for_names
        if not named:
            return self.person.username
        return english_gettext("%(who)s (for %(delegators)s)") % {
            "who": self.person.username,
            "delegators": named,
        }
