"""What finds entries again. None of it is written on the agents' path."""

from __future__ import annotations

from typing import Self
from urllib.parse import urlencode

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from audit.models.entries import ClockTime, Entry

# SQL: the columns of a line, and what the entry `e` says of each.
LINE_COLUMNS = "entry_id, at, action, actor, agent, person, server, tool, definition, effect, rule"
LINE_OF_ENTRY = """
    e.id, e.at, e.action, CASE WHEN e.actor_kind = 'person' THEN e.actor ELSE '' END,
    e.agent, e.person, e.server, e.tool, left(e.definition_digest, 16),
    left(COALESCE(e.details ->> 'effect', ''), 5), left(COALESCE(e.details ->> 'rule', ''), 200)
"""


class LineQuerySet(models.QuerySet["Line"]):
    def newest_first(self) -> Self:
        return self.order_by("-entry_id")


class Line(models.Model):
    """What one may look an entry up by. The sealer writes it; verification compares it."""

    entry = models.OneToOneField(
        Entry, models.DO_NOTHING, primary_key=True, db_constraint=False, related_name="+"
    )
    at = models.DateTimeField()
    action = models.CharField(max_length=40)
    # Of people alone: agents, policy and the system have columns or actions of their own.
    actor = models.CharField(max_length=200, blank=True)
    agent = models.CharField(max_length=100, blank=True)
    person = models.CharField(max_length=150, blank=True)
    server = models.CharField(max_length=64, blank=True)
    tool = models.CharField(max_length=200, blank=True)
    # The first 16 digits of the definition's digest.
    definition = models.CharField(max_length=16, blank=True)
    effect = models.CharField(max_length=5, blank=True)
    rule = models.CharField(max_length=200, blank=True)

    objects = LineQuerySet.as_manager()

    class Meta:
        default_permissions = ()
        indexes = [
            models.Index(name="audit_line_at", fields=["at"]),
            models.Index(name="audit_line_action", fields=["action", "entry"]),
            *(
                models.Index(
                    name=f"audit_line_{name}",
                    fields=[name, "entry"],
                    condition=~Q(**{name: ""}),
                )
                for name in (
                    "actor",
                    "agent",
                    "person",
                    "server",
                    "tool",
                    "definition",
                    "effect",
                    "rule",
                )
            ),
        ]

    def __str__(self) -> str:
        return f"{self.action} {self.entry_id}"


class SavedFilter(models.Model):
    """A question somebody asks again; `shared` with everybody who reads the record."""

    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    name = models.CharField(_("name"), max_length=60)
    query = models.JSONField(default=dict)
    shared = models.BooleanField(default=False)

    class Meta:
        default_permissions = ()
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                name="audit_saved_filter_once",
                fields=["owner", "name"],
                violation_error_message=_("You have a filter of this name already."),
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def address(self) -> str:
        return "?" + urlencode(sorted(self.query.items()))


class Export(models.Model):
    """One export: which entries, and how far its newest download has come."""

    class Format(models.TextChoices):
        CSV = "csv", _("CSV")
        JSONL = "jsonl", _("JSONL")
        PROOF = "proof", _("JSONL with proofs")

    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    at = models.DateTimeField(db_default=ClockTime())
    query = models.JSONField(default=dict)
    format = models.CharField(max_length=5, choices=Format)
    # Entries are only ever added: up to this id, the set can no longer change.
    first_id = models.BigIntegerField()
    last_id = models.BigIntegerField()
    # The tree that proofs are made for.
    size = models.BigIntegerField(default=0)
    rows = models.BigIntegerField(default=0)
    reached_id = models.BigIntegerField(null=True)
    finished_at = models.DateTimeField(null=True)
    digest = models.CharField(max_length=64, blank=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"export {self.pk}"

    @property
    def percent(self) -> int:
        """By place in the record, since nobody counted what fits."""
        if self.finished_at:
            return 100
        if self.reached_id is None:
            return 0
        return min(
            99, 100 * (self.last_id - self.reached_id) // max(1, self.last_id - self.first_id)
        )
