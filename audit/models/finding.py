"""Saved filters and exports."""

from __future__ import annotations

from typing import Self
from urllib.parse import urlencode

from django.conf import settings
from django.db import models
from django.utils import timezone
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


class ExportQuerySet(models.QuerySet["Export"]):
    def of(self, person_id: int) -> Self:
        return self.filter(person_id=person_id).order_by("-id")

    def unfinished(self) -> Self:
        return self.filter(state__in=Export.UNFINISHED)

    def counted(self) -> Self:
        """Those that count towards the quotas of their person."""
        return self.filter(state__in=[*Export.UNFINISHED, Export.State.READY])


class Export(models.Model):
    """One export: which entries, and how far the work on it has come.

    direct                       written while it is downloaded, each time anew
    waiting ─▶ preparing ─▶ ready ─▶ expired | deleted | changed
    waiting, preparing ─▶ cancelled | failed | changed
    """

    class Format(models.TextChoices):
        CSV = "csv", _("CSV")
        JSONL = "jsonl", _("JSONL")
        PROOF = "proof", _("JSONL with proofs")

    class State(models.TextChoices):
        DIRECT = "direct", _("Written during the download")
        WAITING = "waiting", _("Waiting for a worker")
        PREPARING = "preparing", _("Being prepared")
        READY = "ready", _("Ready")
        CANCELLED = "cancelled", _("Cancelled")
        DELETED = "deleted", _("Deleted")
        EXPIRED = "expired", _("Expired")
        FAILED = "failed", _("Failed")
        CHANGED = "changed", _("Entries changed")

    class Fault(models.TextChoices):
        NO_SPACE = "no_space", _("The database has no space left.")
        TOO_LARGE = "too_large", _("The file is larger than the exports of one user may be.")
        BROKEN = "broken", _("An error occurred. The log of the worker has it.")

    UNFINISHED = (State.WAITING, State.PREPARING)
    # By the state of a call that has the same sign.
    SIGNS = {
        State.DIRECT: "received",
        State.WAITING: "queued",
        State.PREPARING: "running",
        State.READY: "succeeded",
        State.DELETED: "cancelled",
        State.CHANGED: "superseded",
    }

    person = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    at = models.DateTimeField(db_default=ClockTime())
    query = models.JSONField(default=dict)
    format = models.CharField(max_length=5, choices=Format)
    # Entries are only ever added: between these ids, and among the transactions that had ended,
    # the set can no longer change.
    first_id = models.BigIntegerField()
    last_id = models.BigIntegerField()
    # Those transactions (TransactionSnapshot). Empty in exports of earlier releases.
    snapshot = models.TextField(blank=True, db_default="")
    # The tree that proofs are made for, and the checkpoint that signs it.
    size = models.BigIntegerField(default=0)
    checkpoint = models.TextField(blank=True, db_default="")
    rows = models.BigIntegerField(default=0)
    reached_id = models.BigIntegerField(null=True)
    finished_at = models.DateTimeField(null=True)
    digest = models.CharField(max_length=64, blank=True)

    state = models.CharField(max_length=9, choices=State, db_default=State.DIRECT)
    fault = models.CharField(max_length=9, choices=Fault, blank=True, db_default="")
    # Of the file, as far as it is prepared.
    bytes = models.BigIntegerField(db_default=0)
    # Entries with a name that was changed, so that a filter may have missed others.
    changed = models.BigIntegerField(db_default=0)
    # Counts the workers that took it over: whoever has an older number writes nothing any more.
    claim = models.IntegerField(db_default=0)
    leased_until = models.DateTimeField(null=True)
    expires_at = models.DateTimeField(null=True)

    objects = ExportQuerySet.as_manager()

    class Meta:
        default_permissions = ()
        indexes = [
            # Workers ask for it once a second.
            models.Index(
                name="audit_export_unfinished",
                fields=["id"],
                condition=models.Q(state__in=("waiting", "preparing")),
            ),
        ]

    def __str__(self) -> str:
        return f"export {self.pk}"

    @property
    def shown_state(self) -> Export.State:
        """The state; an export that expired says so before it is cleaned up."""
        state = self.State(self.state)
        return self.State.EXPIRED if state == self.State.READY and not self.is_ready else state

    @property
    def sign(self) -> str:
        return self.SIGNS.get(self.shown_state, self.shown_state)

    @property
    def is_direct(self) -> bool:
        return self.state == self.State.DIRECT

    @property
    def is_unfinished(self) -> bool:
        return self.state in self.UNFINISHED

    @property
    def is_ready(self) -> bool:
        return self.state == self.State.READY and bool(
            self.expires_at and self.expires_at > timezone.now()
        )

    @property
    def percent(self) -> int:
        """Progress of the export, by its place in the record."""
        if self.finished_at:
            return 100
        if self.reached_id is None:
            return 0
        done = self.reached_id - self.first_id
        return max(0, min(99, 100 * done // max(1, self.last_id - self.first_id)))


class ExportPart(models.Model):
    """Some bytes of an export's file: which entries they are made of, and their digest.

    The bytes themselves are nowhere: they are made again for each download (audit/export_file.py).
    """

    export = models.ForeignKey(Export, models.CASCADE, related_name="parts")
    number = models.IntegerField()
    # Of its first byte in the file.
    offset = models.BigIntegerField()
    size = models.IntegerField()
    # Entries with ids above the one, up to the other.
    above = models.BigIntegerField()
    last_id = models.BigIntegerField()
    digest = models.BinaryField()

    class Meta:
        default_permissions = ()
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(name="audit_export_part_once", fields=["export", "number"])
        ]

    def __str__(self) -> str:
        return f"part {self.number} of export {self.export_id}"
