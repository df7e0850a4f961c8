"""Entries: what happened, in order, for good."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self

import pgtrigger
from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import F, Q
from django.db.models.expressions import DatabaseDefault, ExpressionWrapper
from django.db.models.functions import Left, Length
from django.db.models.lookups import Exact
from django.utils.translation import gettext_lazy as _

from core.triggers import StrictTrigger, append_only

# Names that everybody's record begins with, by their numbers (audit/sql/first_names.sql): the two
# actions of an allowed call, and the actors that are nobody. Indexes leave them out.
COMMON_ACTIONS = 2
COMMON_ACTORS = 4
# Blocks of 1,024 ids. Indexes of what every call has know an entry's block alone: PostgreSQL writes
# a name once for all its entries of a block, which takes 8 bytes for each instead of 32. Whoever
# wants them in order asks by block, and then by id (audit/names.py::RowFilter).
BLOCK = ExpressionWrapper(F("id").bitrightshift(10), models.BigIntegerField())


class TransactionId(models.Field):  # type: ignore[type-arg]
    """PostgreSQL's xid8: which transaction wrote the row, so that readers know what is whole."""

    def db_type(self, connection: object) -> str:
        return "xid8"


class CurrentTransaction(models.Func):
    template = "pg_current_xact_id()"
    output_field = TransactionId()


class ClockTime(models.Func):
    """The database's clock at this moment, not at the start of the transaction."""

    template = "clock_timestamp()"
    output_field = models.DateTimeField()


class RandomBytes(models.Func):
    """16 bytes, of which 122 bits are random: enough for a salt, and needs no extension."""

    template = "uuid_send(gen_random_uuid())"
    output_field = models.BinaryField()


class OnlyForgotten(StrictTrigger):
    """Rows are never changed, but for what is to be forgotten; the entry that says so, in the same
    transaction, names the commitment that stays (audit/forgetting.py)."""

    name = "only_forgotten"
    level = pgtrigger.Row
    when = pgtrigger.Before
    operation = pgtrigger.Update

    def __init__(self, *, forgotten: str, commitment: str) -> None:
        """SQL over OLD and NEW: the one change that is legal, and what its entry has to name."""
        super().__init__()
        self.forgotten, self.commitment = forgotten, commitment

    def get_func(self, model: models.Model) -> str:
        return f"""
        IF ({self.forgotten}) IS NOT TRUE THEN
            RAISE EXCEPTION '{model._meta.db_table} rows are never changed, only forgotten';
        END IF;
        IF NOT EXISTS (
            SELECT FROM audit_entryrow e JOIN audit_name a ON a.id = e.action
            WHERE e.at >= transaction_timestamp() AND e.transaction = pg_current_xact_id()
              AND a.kind = 'action' AND a.text = 'record.forgotten'
              AND e.details -> 'commitments' ? {self.commitment})
        THEN
            RAISE EXCEPTION 'nothing is forgotten without an entry';
        END IF;
        RETURN NEW;
        """


# Only what somebody is called, and sentences: actions, tools and rules are no person's.
NAME_FORGOTTEN = """
    OLD.kind IN ('agent', 'person', 'reason') AND NEW.salt IS NULL
    AND (NEW.id, NEW.kind, NEW.commitment, NEW.subject, NEW.text, NEW.server, NEW.definition)
        IS NOT DISTINCT FROM (OLD.id, OLD.kind, OLD.commitment, NULL::bigint, '', '', '')
"""
# Its other commitments go on to be proved, by what was made of the salt for each.
DETAILS_FORGOTTEN = """
    OLD.format = 2 AND OLD.salt IS NOT NULL AND NEW.salt IS NULL
    AND to_jsonb(NEW) - ARRAY['salt', 'details'] = to_jsonb(OLD) - ARRAY['salt', 'details']
    AND NEW.details - 'commitment' = jsonb_build_object(
        'arguments', encode(sha256(OLD.salt || 'arguments'), 'hex'),
        'result', encode(sha256(OLD.salt || 'result'), 'hex'))
"""


# What is in an entry's context, where it has one (audit/sql/entries.sql).
SHARED = "ARRAY['effect', 'rule', 'origin', 'revision', 'toolset']"
# SQL over facts as jsonb: whoever reads them in any language gets the same, and gets to their end.
READABLE = """(
    jsonb_typeof({facts}) = 'object'
    AND NOT jsonb_path_exists({facts}, 'strict $.**{{{depth} to last}}')
    AND NOT jsonb_path_exists(
        {facts}, 'strict $.** ? (@.type() == "number" && (@ > 1e300 || @ < -1e300))'))"""
# Deeper than anything that we write, and less than what any reader of JSON takes.
DEEPEST = 30


class LegalName(StrictTrigger):
    """Checks that a name fits its commitment, and that no forgotten name is added."""

    name = "legal_name"
    level = pgtrigger.Row
    when = pgtrigger.Before
    operation = pgtrigger.Insert

    def get_func(self, model: models.Model) -> str:
        # No object within: it has five facts, which people filter by.
        context = READABLE.format(facts="NEW.text::jsonb", depth=2)
        return f"""
        IF NEW.salt IS NULL OR octet_length(NEW.salt) <> 16
            OR NEW.commitment IS DISTINCT FROM audit_commitment(
                NEW.salt, NEW.kind, NEW.subject, NEW.text, NEW.server, NEW.definition)
        THEN
            RAISE EXCEPTION 'a name that is not what it would be sealed by';
        END IF;
        IF NEW.kind IN ('agent', 'person', 'policy', 'system') THEN
            IF NEW.server || NEW.definition <> '' THEN
                RAISE EXCEPTION 'only tools have a server and a definition';
            END IF;
        ELSIF NEW.kind NOT IN ('action', 'tool', 'reason', 'context') OR NEW.subject IS NOT NULL
            OR NEW.kind <> 'tool' AND NEW.server || NEW.definition <> ''
        THEN
            RAISE EXCEPTION 'a name of no kind that entries have';
        ELSIF NEW.kind = 'context' THEN
            IF NEW.text IS NOT JSON OBJECT WITH UNIQUE KEYS THEN
                RAISE EXCEPTION 'a context is an object in JSON';
            ELSIF NEW.text::jsonb - {SHARED} <> '{{}}' OR NOT {context} THEN
                RAISE EXCEPTION 'a context has other facts than these';
            END IF;
        END IF;
        RETURN NEW;
        """


class LegalEntry(StrictTrigger):
    """Refuses entries that could not be verified or exported, since nobody could remove them."""

    name = "legal_entry"
    level = pgtrigger.Statement
    when = pgtrigger.After
    operation = pgtrigger.Insert
    declare = [("wrong", "text")]
    referencing = pgtrigger.Referencing(new="new_rows")  # type: ignore[no-untyped-call]

    def get_func(self, model: models.Model) -> str:
        facts = READABLE.format(facts="n.details", depth=DEEPEST)
        # What the record says of itself decides what verification expects.
        by_owner = """pg_has_role((
            SELECT c.relowner FROM pg_class c WHERE c.oid = 'audit_entryrow'::regclass), 'USAGE')"""
        return f"""
        SELECT looked.why INTO wrong FROM (
            SELECT CASE used.as_what
                WHEN 'action' THEN 'an entry whose action is none, or the record''s own'
                ELSE 'an entry with a name that is not there, or of another kind'
            END AS why FROM (
                -- Entries that are written together have most of their names in common.
                SELECT DISTINCT one.as_what, one.id FROM new_rows n CROSS JOIN LATERAL (VALUES
                    ('action', n.action), ('actor', n.actor), ('agent', n.agent),
                    ('person', n.person), ('tool', n.tool), ('reason', n.reason),
                    ('context', n.context)) one (as_what, id)
                WHERE one.id IS NOT NULL
            ) used
            WHERE (SELECT CASE used.as_what
                WHEN 'action' THEN k.kind = 'action' AND (k.text NOT LIKE 'record.%' OR {by_owner})
                WHEN 'actor' THEN k.kind IN ('agent', 'person', 'policy', 'system')
                ELSE k.kind = used.as_what
            END FROM audit_name k WHERE k.id = used.id) IS NOT TRUE
            UNION ALL
            SELECT 'an entry whose details cannot be read, or say what its context says'
            FROM new_rows n WHERE n.details IS NOT NULL AND (
                {facts} IS NOT TRUE OR n.context IS NOT NULL AND n.details ?| {SHARED})
        ) looked LIMIT 1;
        IF wrong IS NOT NULL THEN
            RAISE EXCEPTION USING MESSAGE = wrong;
        END IF;
        RETURN NULL;
        """


class Name(models.Model):
    """A name in entries: of an agent, a person, a tool, or a sentence. A renamed subject gets
    another row, so that entries keep saying what was true.

    Leaves hold the commitment alone: SHA-256 of the salt and the rest of the row
    (audit/sql/names.sql). To forget a name empties the rest, and every proof still holds.
    """

    id = models.AutoField(primary_key=True)
    # "agent", "person", "policy", "system"; "tool", "action", "reason"; "context": JSON.
    kind = models.CharField(max_length=10)
    # The id of the agent or person.
    subject = models.BigIntegerField(null=True)
    text = models.TextField(blank=True)
    # Of tools alone: where, and which version.
    server = models.CharField(max_length=64, blank=True, db_default="")
    definition = models.CharField(max_length=64, blank=True, db_default="")
    # NULL: forgotten, and nothing is left but its kind.
    salt = models.BinaryField(null=True)
    commitment = models.BinaryField()

    class Meta:
        default_permissions = ()
        indexes = [
            models.Index("kind", Left("text", 500), name="audit_name_text"),
            models.Index("server", name="audit_name_server", condition=~Q(server="")),
            models.Index("kind", "subject", name="audit_name_subject", condition=~Q(subject=None)),
            models.Index(fields=["id"], name="audit_name_forgotten", condition=Q(salt=None)),
        ]
        constraints = [
            # Any other length could stand for more than one field of a leaf.
            models.CheckConstraint(
                name="audit_name_commitment", condition=Exact(Length("commitment"), 32)
            ),
        ]
        triggers = [
            LegalName(),
            *(one for one in append_only() if one.name != "no_update"),
            OnlyForgotten(forgotten=NAME_FORGOTTEN, commitment="encode(OLD.commitment, 'hex')"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.text}"


class EntryRow(models.Model):
    """An entry as it is stored: numbers of names. `Entry` shows and takes it in words."""

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(db_default=ClockTime())
    transaction = TransactionId(db_default=CurrentTransaction(), editable=False)
    call_id = models.UUIDField(null=True)
    action = models.IntegerField()
    # NULL: the agent itself.
    actor = models.IntegerField(null=True)
    agent = models.IntegerField(null=True)
    person = models.IntegerField(null=True)
    tool = models.IntegerField(null=True)
    # Effect, rule, origin, revision and toolset: the same for many calls.
    context = models.IntegerField(null=True)
    reason = models.IntegerField(null=True)
    seq = models.SmallIntegerField(null=True)
    # How its leaf is computed (audit/bodies.py).
    format = models.SmallIntegerField(db_default=2)
    # NULL: the details were forgotten, and say what is left to prove the rest.
    salt = models.BinaryField(null=True, db_default=RandomBytes())
    from_state = models.CharField(max_length=10, blank=True, db_default="")
    to_state = models.CharField(max_length=10, blank=True, db_default="")
    # SHA-256 of the bytes.
    arguments = models.BinaryField(null=True)
    result = models.BinaryField(null=True)
    details = models.JSONField(null=True)

    class Meta:
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                name="audit_one_entry_a_move",
                fields=["call_id", "seq"],
                condition=Q(seq__isnull=False),
            )
        ]
        indexes = [
            BrinIndex(name="audit_entry_at", fields=["at"]),
            # Of a call, and no move of it: votes, questions to stop, looks at its payload.
            models.Index(
                name="audit_entry_beside",
                fields=["call_id"],
                condition=Q(call_id__isnull=False, seq__isnull=True),
            ),
            models.Index(
                name="audit_entry_forgotten", fields=["id"], condition=Q(salt__isnull=True)
            ),
            # Is a sentence another entry's too (audit/forgetting.py)? Not of calls that went on:
            # theirs are their rules'.
            models.Index(
                name="audit_entry_own_reason",
                fields=["reason"],
                condition=Q(reason__isnull=False)
                & (Q(seq__isnull=True) | Q(seq__gt=1) | Q(to_state__in=("refused", "invalid"))),
            ),
            # What the audit page filters by, newest first.
            models.Index(
                name="audit_entry_action_at",
                fields=["action", "id"],
                # For the histogram, which would fetch a page of the table for each entry.
                include=["at"],
                condition=Q(action__gt=2),
            ),
            models.Index(
                name="audit_entry_actor", fields=["actor", "id"], condition=Q(actor__gt=4)
            ),
            *(
                models.Index(
                    F(name),
                    BLOCK,
                    name=f"audit_entry_{name}",
                    condition=Q(**{f"{name}__isnull": False}),
                )
                for name in ("agent", "person", "tool", "context")
            ),
        ]
        triggers = [
            LegalEntry(),
            *(one for one in append_only() if one.name != "no_update"),
            OnlyForgotten(forgotten=DETAILS_FORGOTTEN, commitment="(NEW.details ->> 'commitment')"),
        ]

    def __str__(self) -> str:
        return f"entry {self.pk}"


def of_call(call_id: object) -> Q:
    # Two conditions, for the two indexes that know calls.
    of_it = Q(call_id=call_id)
    return (of_it & Q(seq__isnull=False)) | (of_it & Q(seq__isnull=True))


class EntryQuerySet(models.QuerySet["Entry"]):
    def _insert(self, objs: Sequence[Any], fields: Iterable[Any], **kwargs: Any) -> Any:
        """Leaves out what the database fills in by itself: the application's role may not name
        an entry's id, time, transaction, salt or format, not even as DEFAULT."""
        named = [
            field
            for field in fields
            if not all(isinstance(getattr(one, field.attname), DatabaseDefault) for one in objs)
        ]
        return super()._insert(objs, named, **kwargs)  # type: ignore[misc]

    def newest_first(self) -> Self:
        return self.order_by("-id")

    def of_call(self, call_id: object) -> Self:
        return self.filter(of_call(call_id)).order_by("id")


class Entry(models.Model):
    """One line of audit, with the names of its time: a view of EntryRow, which can be added to."""

    class ActorKind(models.TextChoices):
        AGENT = "agent", _("Agent")
        PERSON = "person", _("Person")
        POLICY = "policy", _("Policy")
        SYSTEM = "system", _("System")

    id = models.BigAutoField(primary_key=True)
    at = models.DateTimeField(db_default=ClockTime())
    transaction = TransactionId(db_default=CurrentTransaction(), editable=False)
    # How its leaf is made of it (audit/bodies.py), and what keeps a body with few possible values
    # from being guessed from its leaf.
    format = models.SmallIntegerField(db_default=2, editable=False)
    salt = models.BinaryField(db_default=RandomBytes())
    # "call.held", "approval.voted", "token.revoked": subject and past participle or state.
    action = models.CharField(max_length=40)
    actor_kind = models.CharField(max_length=6, choices=ActorKind)
    actor_id = models.BigIntegerField(null=True)
    actor = models.CharField(max_length=200)

    # Of entries about a call; `seq` counts the call's own moves from 1.
    call_id = models.UUIDField(null=True)
    seq = models.SmallIntegerField(null=True)
    from_state = models.CharField(max_length=10, blank=True, db_default="")
    to_state = models.CharField(max_length=10, blank=True, db_default="")
    agent_id = models.BigIntegerField(null=True)
    agent = models.CharField(max_length=100, blank=True, db_default="")
    person_id = models.BigIntegerField(null=True)
    person = models.CharField(max_length=150, blank=True, db_default="")
    server = models.CharField(max_length=64, blank=True, db_default="")
    tool = models.CharField(max_length=200, blank=True, db_default="")
    definition_digest = models.CharField(max_length=64, blank=True, db_default="")
    arguments_digest = models.CharField(max_length=64, blank=True, db_default="")
    result_digest = models.CharField(max_length=64, blank=True, db_default="")

    # A sentence for people: why, or what came of it.
    reason = models.TextField(blank=True, db_default="")
    # Facts of ours, never a stranger's JSON: rule, versions, sizes.
    details = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()))

    objects = EntryQuerySet.as_manager()

    class Meta:
        managed = False
        ordering = ["-id"]
        base_manager_name = "objects"
        verbose_name_plural = "entries"
        default_permissions = ("view",)
        permissions = [("export_entry", "Can export entries")]

    def __str__(self) -> str:
        return f"{self.action} by {self.actor}"
