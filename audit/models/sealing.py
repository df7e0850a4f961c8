"""Leaves, tiles and checkpoints, by which outsiders check the record: written by the sealer, after
the fact."""

from __future__ import annotations

import pgtrigger
from django.contrib.postgres.indexes import GistIndex
from django.db import models

from audit.models.entries import ClockTime
from core.triggers import StrictTrigger, append_only, configuration


class Ids(models.Field):  # type: ignore[type-arg]
    """PostgreSQL's int8multirange: ids, most of which follow each other."""

    def db_type(self, connection: object) -> str:
        return "int8multirange"


class Tile(models.Model):
    """256 hashes that follow each other, of leaves or of whole tiles of the level below, as
    c2sp.org/tlog-tiles has them. Stays when entries' bodies are gone: roots stay true."""

    pk = models.CompositePrimaryKey("level", "index")
    level = models.SmallIntegerField()
    index = models.BigIntegerField()
    hashes = models.BinaryField()
    # Of the subtree that the tile is: what the level above has, also before it is whole there.
    root = models.BinaryField()

    class Meta:
        default_permissions = ()
        triggers = append_only()

    def __str__(self) -> str:
        return f"tile {self.level}/{self.index}"


class Batch(models.Model):
    """Which entries are which leaves: those of `ids`, in their order, from `first_index` on."""

    first_index = models.BigIntegerField(primary_key=True)
    leaves = models.IntegerField()
    ids = Ids()
    # The hashes of its last leaves, those that were in no whole tile when it was sealed: an entry
    # that is changed or removed before is found as well, and by its own leaf.
    edge = models.BinaryField()

    class Meta:
        default_permissions = ()
        ordering = ["first_index"]
        triggers = append_only()
        indexes = [GistIndex(name="audit_batch_ids", fields=["ids"])]

    def __str__(self) -> str:
        return f"leaves {self.first_index} to {self.first_index + self.leaves - 1}"


class Origin(models.Model):
    """A stretch of the record without a restore in it, and the database that it was begun in.

    A copy of the database, such as a restored backup, holds this row too, but in a table with
    another number, or in another cluster: nobody may go on there before it is declared
    (audit/origins.py). Only the database's owner may add one.
    """

    number = models.SmallIntegerField(primary_key=True)
    began_at = models.DateTimeField(db_default=ClockTime())
    # What checkpoints are signed as: the same of every origin of an installation, with the number
    # behind it. The column's default is chosen when the record begins
    # (audit/sql/first_origin.sql).
    name = models.CharField(max_length=60, db_default="countersign")
    # The leaf that declares it, and how many leaves before it were the earlier record's.
    index = models.BigIntegerField(default=0)
    kept = models.BigIntegerField(default=0)
    system_identifier = models.CharField(max_length=20)
    table_oid = models.BigIntegerField()

    class Meta:
        default_permissions = ()
        ordering = ["-number"]
        triggers = append_only()

    def __str__(self) -> str:
        return f"origin {self.number}"


class Rollback(models.Model):
    """A finding that the files of this database are older ones (audit/rollback.py). Holds until a
    new origin is begun."""

    origin = models.SmallIntegerField(primary_key=True)
    noticed_at = models.DateTimeField(db_default=ClockTime())
    reason = models.TextField()

    class Meta:
        default_permissions = ()
        triggers = [*append_only(), *configuration()]

    def __str__(self) -> str:
        return f"rollback in origin {self.origin}"


class Thinned(StrictTrigger):
    """A row goes only if the rule lets it (audit/sql/thinning.sql), whoever asks."""

    level = pgtrigger.Row
    when = pgtrigger.Before
    operation = pgtrigger.Delete
    func = """
        IF NOT audit_may_thin(OLD.size, OLD.at,
            (SELECT at FROM audit_checkpoint WHERE id < OLD.id ORDER BY id DESC LIMIT 1),
            (SELECT at FROM audit_checkpoint WHERE id > OLD.id ORDER BY id LIMIT 1))
        THEN
            RAISE EXCEPTION 'checkpoint % is kept: younger ones do not stand for it', OLD.id;
        END IF;
        RETURN OLD;
    """


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
        triggers = [
            *(one for one in append_only() if one.name != "no_delete"),
            Thinned(name="thinned"),
        ]

    def __str__(self) -> str:
        return f"checkpoint of {self.size}"


class Signer(models.Model):
    """A public key that signs checkpoints, from so many entries on until the next one does."""

    public = models.BinaryField()
    # What it signs as: a record that was sealed before it had a name of its own has two.
    name = models.CharField(max_length=60, db_default="countersign")
    first_size = models.BigIntegerField()
    # Derived from the installation's secret, as all were before the sealer had a key of its own.
    from_secret = models.BooleanField(default=False)
    at = models.DateTimeField(db_default=ClockTime())

    class Meta:
        default_permissions = ()
        triggers = append_only()

    def __str__(self) -> str:
        return f"signs from {self.first_size}"


class Secret(models.Model):
    """The fingerprint of the installation's secret that this database is used with; the newest
    counts. Only the database's owner may add one."""

    fingerprint = models.CharField(max_length=16)
    at = models.DateTimeField(db_default=ClockTime())

    class Meta:
        default_permissions = ()
        triggers = append_only()

    def __str__(self) -> str:
        return self.fingerprint
