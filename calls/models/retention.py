"""Retention periods, and how far the erasing of what is due has come."""

from __future__ import annotations

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from registry.labels import Label

# A century.
MOST_RETENTION_DAYS = 36_525


class RetainedContent(models.TextChoices):
    # Arguments, results, comments: everything that erasing a payload removes.
    PAYLOAD = "payload", _("Payload")
    RESULT = "result", _("Result only")


class RetentionScope(models.TextChoices):
    """From the most specific to the least."""

    TOOL = "tool", _("Tool")
    TAG = "tag", _("Tag")
    LABEL = "label", _("Label")
    SERVER = "server", _("Server")
    ALL = "all", _("All calls")


class RetentionPeriod(models.Model):
    """So long is content kept after its call was asked for. Which period counts for a call:
    calls/content/retention.py."""

    content = models.CharField(max_length=7, choices=RetainedContent)
    scope = models.CharField(max_length=6, choices=RetentionScope)
    # A tool's exposed name, a tag, a label, a server; empty for all calls.
    target = models.CharField(max_length=200, blank=True)
    # Null: kept, whatever a wider period has.
    days = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(MOST_RETENTION_DAYS)],
    )

    class Meta:
        default_permissions = ()
        ordering = ["content", "scope", "target"]
        constraints = [
            models.UniqueConstraint(name="calls_one_period", fields=["content", "scope", "target"]),
            models.CheckConstraint(
                name="calls_period_days",
                condition=Q(days__isnull=True) | Q(days__gte=1, days__lte=MOST_RETENTION_DAYS),
            ),
            models.CheckConstraint(
                name="calls_period_target",
                condition=Q(scope="all", target="") | (~Q(scope="all") & ~Q(target="")),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.content} of {self.scope} {self.target}: {self.days}"

    @property
    def shown_target(self) -> str:
        """The name of a label in words; names of others as they are."""
        return str(Label(self.target).label) if self.scope == RetentionScope.LABEL else self.target


class RetentionProgress(models.Model):
    """All calls of a tool up to `passed` were erased or are postponed."""

    content = models.CharField(max_length=7, choices=RetainedContent)
    # 0: calls of tools that there are not.
    tool_id = models.BigIntegerField()
    passed = models.UUIDField()

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(name="calls_one_progress", fields=["content", "tool_id"])
        ]

    def __str__(self) -> str:
        return f"{self.content} of tool {self.tool_id} up to {self.passed}"


class PostponedErasure(models.Model):
    """A call that was due and could not be erased: it is under legal hold, say."""

    content = models.CharField(max_length=7, choices=RetainedContent)
    call_id = models.UUIDField()
    tried_at = models.DateTimeField(default=timezone.now)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(name="calls_one_postponed", fields=["content", "call_id"])
        ]
        indexes = [models.Index(name="calls_postponed_tried", fields=["content", "tried_at"])]

    def __str__(self) -> str:
        return f"{self.content} of {self.call_id}"
