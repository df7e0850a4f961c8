"""What makes the record checkable by outsiders: written by the sealer, after the fact."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models

from audit.models.entries import ClockTime
from core.triggers import append_only


class Leaf(models.Model):
    """An entry's place in the tree. Stays when the entry's body is gone: roots stay true."""

    # From 0 and without gaps: the order of sealing, which is nearly that of happening.
    index = models.BigIntegerField(primary_key=True)
    entry_id = models.BigIntegerField(unique=True)
    # A body with few possible values cannot be guessed from its hash.
    salt = models.BinaryField()
    hash = models.BinaryField()

    class Meta:
        default_permissions = ()
        triggers = append_only()

    def __str__(self) -> str:
        return f"leaf {self.index} of entry {self.entry_id}"


class Node(models.Model):
    """The hash of a whole subtree of 256, 65 536, … leaves: proofs need no more than these."""

    level = models.SmallIntegerField()
    index = models.BigIntegerField()
    hash = models.BinaryField()

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(name="audit_node_place", fields=["level", "index"]),
        ]
        triggers = append_only()

    def __str__(self) -> str:
        return f"node {self.level}/{self.index}"


class Checkpoint(models.Model):
    """The root of the first `size` leaves, signed."""

    size = models.BigIntegerField(db_index=True)
    root = models.BinaryField()
    at = models.DateTimeField(db_default=ClockTime())
    # A signed note (c2sp.org/signed-note), as shown to outsiders.
    note = models.TextField()

    class Meta:
        default_permissions = ()
        ordering = ["-id"]
        triggers = append_only()

    def __str__(self) -> str:
        return f"checkpoint of {self.size}"


class Sealing(models.Model):
    """How far the sealer is: one row, which only saves it from looking at everything again."""

    size = models.BigIntegerField(default=0)
    # Roots of the whole subtrees that `size` leaves make, largest first.
    peaks = ArrayField(models.BinaryField(), default=list)
    # No entry at or below this id is, or can still come to be, without its leaf.
    settled_id = models.BigIntegerField(default=0)
    mark_id = models.BigIntegerField(default=0)
    mark_xid = models.DecimalField(max_digits=20, decimal_places=0, default=0)
    mark_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.size} sealed"
