"""Saved cases of tools, their runs and their schedules (gateway/cases/)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import Agent, ServiceAccount
from calls.models import Call
from registry.models import Definition, Server, Tool

ANSWERS_KEPT = timedelta(hours=24)


class SavedCaseQuerySet(models.QuerySet["SavedCase"]):
    def for_list(self) -> Self:
        """Cases of servers that were not deleted."""
        shown = self.filter(tool__server__deleted_at=None)
        return shown.select_related("tool__server", "last_run__call").defer("arguments")

    def troubled(self) -> Self:
        """Those whose last run was scheduled and did not pass."""
        bad = (CaseRun.State.FAILED, CaseRun.State.NOT_RUN)
        return self.filter(last_run__is_scheduled=True, last_run__state__in=bad)


class SavedCase(models.Model):
    """Arguments of a tool, and what is expected of the result."""

    class Outcome(models.TextChoices):
        SUCCESS = "success", _("A result")
        ERROR = "error", _("A tool error")

    tool = models.ForeignKey(Tool, models.PROTECT, related_name="cases")
    name = models.CharField(_("name"), max_length=100)
    # The very bytes that are sent, without what the toolset fixes.
    arguments = models.BinaryField()
    outcome = models.CharField(max_length=7, choices=Outcome, default=Outcome.SUCCESS)
    fits_schema = models.BooleanField(_("The result fits the output schema"), default=False)
    contains = models.CharField(max_length=500, blank=True, default="")
    # One a line: a JSONPath, "=" and a JSON value (gateway/cases/expectations.py).
    values = models.TextField(max_length=4000, blank=True, default="")
    within_ms = models.PositiveIntegerField(null=True, blank=True)
    # Last of all: what somebody else wrote runs as nobody's agent by itself.
    written_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_run = models.ForeignKey(
        "CaseRun", models.SET_NULL, null=True, editable=False, related_name="+"
    )

    objects = SavedCaseQuerySet.as_manager()

    class Meta:
        ordering = ["name"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                name="gateway_case_once_a_tool",
                fields=["tool", "name"],
                violation_error_message=_("The tool has a case of this name."),
            )
        ]

    def __str__(self) -> str:
        return self.name


class CaseRun(models.Model):
    """One run of a case: an ordinary call, and which expectations its result met."""

    class State(models.TextChoices):
        OPEN = "open", _("Running")
        PASSED = "passed", _("Passed")
        FAILED = "failed", _("Failed")
        # Blocked, denied, expired: nothing is known of the tool.
        NOT_RUN = "not_run", _("Not run")

    case = models.ForeignKey(SavedCase, models.CASCADE, related_name="runs")
    # Chosen before it is recorded; null where it was not sent.
    call = models.ForeignKey(
        Call, models.PROTECT, null=True, related_name="+", db_constraint=False, db_index=False
    )
    definition = models.ForeignKey(Definition, models.PROTECT, null=True, related_name="+")
    agent = models.ForeignKey(Agent, models.PROTECT, null=True, related_name="+")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    is_scheduled = models.BooleanField(default=False)
    state = models.CharField(max_length=7, choices=State, default=State.OPEN)
    # Sentences of ours in English; never bytes of the result.
    reason = models.TextField(blank=True, default="")
    # Of each expectation: its sentence, and why it is not met ("": it is).
    checks = models.JSONField(default=list)
    at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["-id"]
        default_permissions = ()
        indexes = [
            models.Index(name="gateway_run_of_case", fields=["case", "-id"]),
            models.Index(name="gateway_run_open", fields=["id"], condition=Q(state="open")),
        ]

    def __str__(self) -> str:
        return f"{self.case} {self.at:%Y-%m-%d %H:%M}"

    @property
    def is_open(self) -> bool:
        return self.state == self.State.OPEN

    @property
    def badge(self) -> tuple[str, Any]:
        """State and label: a call that did not run says why itself."""
        if self.state in (self.State.OPEN, self.State.NOT_RUN) and self.call is not None:
            return self.call.state, self.call.get_state_display()
        kinds = {"open": "running", "passed": "succeeded", "not_run": "refused"}
        return kinds.get(self.state, self.state), self.get_state_display()


class CaseSchedule(models.Model):
    """When a case, or every case of a server, runs by itself, and as whose agent."""

    class Every(models.TextChoices):
        HOUR = "hour", _("Hourly")
        DAY = "day", _("Daily")
        WEEK = "week", _("Weekly")

    case = models.OneToOneField(
        SavedCase, models.CASCADE, null=True, blank=True, related_name="schedule"
    )
    server = models.OneToOneField(
        Server, models.PROTECT, null=True, blank=True, related_name="case_schedule"
    )
    every = models.CharField(max_length=4, choices=Every)
    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    agent = models.ForeignKey(Agent, models.PROTECT, related_name="+")
    # Tools that are not read-only and may run all the same: the risk that was confirmed, by tool,
    # and the digest of each case as it was then (gateway/cases/schedules.py).
    confirmed = models.JSONField(default=dict)
    next_at = models.DateTimeField(db_index=True)
    # Why it runs no more, in English; "": it runs.
    stopped = models.TextField(blank=True, default="")

    class Meta:
        default_permissions = ()
        constraints = [
            models.CheckConstraint(
                name="gateway_schedule_of_one",
                condition=Q(case__isnull=True, server__isnull=False)
                | Q(case__isnull=False, server__isnull=True),
            )
        ]

    def __str__(self) -> str:
        return f"{self.case or self.server}: {self.every}"

    @property
    def is_due(self) -> bool:
        """Whether its time has come, and the next look at all schedules begins it."""
        return self.next_at <= timezone.now()

    @property
    def of_server(self) -> Server:
        """The server whose tools it runs."""
        server = self.case.tool.server if self.case else self.server
        assert server is not None
        return server


class AnsweredRequestQuerySet(models.QuerySet["AnsweredRequest"]):
    def outdated(self) -> Self:
        """Their keys can be used again."""
        return self.filter(at__lt=timezone.now() - ANSWERS_KEPT)

    def answer_to(self, account: ServiceAccount, key: str) -> AnsweredRequest | None:
        kept = self.filter(account=account, key=key, at__gte=timezone.now() - ANSWERS_KEPT)
        return kept.exclude(status=0).first()


class AnsweredRequest(models.Model):
    """The answer to a change that a service account asked for with an idempotency key
    (gateway/rest/v1/idempotency.py). No secret that was shown once is in it."""

    account = models.ForeignKey(ServiceAccount, models.CASCADE, related_name="+")
    key = models.CharField(max_length=200)
    # SHA-256 of method, path and body.
    request_digest = models.BinaryField(max_length=32)
    status = models.PositiveSmallIntegerField(default=0)
    headers = models.JSONField(default=dict)
    body = models.BinaryField(default=b"")
    at = models.DateTimeField(default=timezone.now)

    objects = AnsweredRequestQuerySet.as_manager()

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(name="gateway_answered_once", fields=["account", "key"])
        ]
        indexes = [models.Index(name="gateway_answered_at", fields=["at"])]

    def __str__(self) -> str:
        return f"answer to {self.key}"
