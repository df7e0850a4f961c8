"""Entries, what seals them, and what finds them again."""

from audit.models.entries import (
    ClockTime,
    CurrentTransaction,
    Entry,
    EntryQuerySet,
    TransactionId,
)
from audit.models.finding import Export, Line, LineQuerySet, SavedFilter
from audit.models.sealing import Batch, Checkpoint, Origin, Rollback, Secret, Signer, Tile

__all__ = [
    "Batch",
    "Checkpoint",
    "ClockTime",
    "CurrentTransaction",
    "Entry",
    "EntryQuerySet",
    "Export",
    "Line",
    "LineQuerySet",
    "Origin",
    "Rollback",
    "SavedFilter",
    "Secret",
    "Signer",
    "Tile",
    "TransactionId",
]
