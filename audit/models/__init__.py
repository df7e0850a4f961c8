"""Entries, what seals them, and what finds them again."""

from audit.models.entries import (
    ClockTime,
    CurrentTransaction,
    Entry,
    EntryQuerySet,
    TransactionId,
)
from audit.models.finding import Export, Line, LineQuerySet, SavedFilter
from audit.models.sealing import Checkpoint, Leaf, Node, Origin, Rollback, Secret, Signer

__all__ = [
    "Checkpoint",
    "ClockTime",
    "CurrentTransaction",
    "Entry",
    "EntryQuerySet",
    "Export",
    "Leaf",
    "Line",
    "LineQuerySet",
    "Node",
    "Origin",
    "Rollback",
    "SavedFilter",
    "Secret",
    "Signer",
    "TransactionId",
]
