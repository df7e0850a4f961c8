"""Saved filters and exports."""

from __future__ import annotations

from urllib.parse import urlencode

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from audit.models.entries import ClockTime


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
        """Progress of the export, by its place in the record."""
        if self.finished_at:
            return 100
        if self.reached_id is None:
            return 0
        return min(
            99, 100 * (self.last_id - self.reached_id) // max(1, self.last_id - self.first_id)
        )
