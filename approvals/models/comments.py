"""Comments on held calls."""

from __future__ import annotations

from typing import Self

import pgtrigger
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import Agent, User
from approvals.models.votes import Approval
from calls.models.legal import OnlyErased
from core.triggers import StrictTrigger, append_only


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
    """A comment of a person or the agent on a held call, before it is decided."""

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
        triggers = [
            *append_only(OnlyErased(call="approval_id", text="''")),
            LegalComment(name="legal_comment"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} on {self.approval_id}"

    @property
    def by(self) -> str:
        if self.agent:
            return self.agent.name
        return self.person.shown_name if self.person else ""
