"""Entries, what seals them, and what finds them again."""

from audit.models.entries import (
    ClockTime,
    CurrentTransaction,
    Entry,
    EntryQuerySet,
    EntryRow,
    Name,
    TransactionId,
)
from audit.models.finding import Export, ExportPart, SavedFilter
from audit.models.sealing import Batch, Checkpoint, Origin, Rollback, Secret, Signer, Tile

__all__ = [
    "Batch",
    "Checkpoint",
    "ClockTime",
    "CurrentTransaction",
    "Entry",
    "EntryQuerySet",
    "EntryRow",
    "Export",
    "ExportPart",
    "Name",
    "Origin",
    "Rollback",
    "SavedFilter",
    "Secret",
    "Signer",
    "Tile",
    "TransactionId",
]
