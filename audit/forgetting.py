"""Forgetting what somebody was called and what people wrote, so that every proof still holds.

A leaf holds commitments. What is forgotten loses its text and the salt, without which nobody can
even guess it; the commitment stays. An entry says that, when, by whom and what kind was forgotten,
and names the commitments: audit_verify and verify.py find whatever is emptied without one. A
trigger lets nothing else be changed (audit/models/entries.py), and only the database's owner may.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import connection, transaction
from psycopg.types.json import Jsonb

from audit import erasure_ledger
from audit.bodies import EntryReader, StoredEntry, forgotten_details
from audit.erasure_ledger import Erasures
from audit.models import EntryRow, Name
from audit.services import Actor, record
from audit.verify import FORGOTTEN

# Members of details in which people or servers wrote.
WORDS = ("text", "note", "said", "try_again", "result")
# So much is forgotten in one transaction, with one entry.
BATCH = 500

# A name or a sentence in words, and not as a part of others.
MENTIONED = r"(?<!\w)(?:{})(?!\w)"
NAMED = """
    SELECT id FROM audit_name WHERE kind = %(kind)s AND salt IS NOT NULL AND (
        text = %(text)s OR subject = ANY(%(subjects)s))
"""
REASONS = "SELECT id FROM audit_name WHERE kind = 'reason' AND salt IS NOT NULL AND text ~* %s"
DETAILS = "SELECT id FROM audit_entryrow WHERE salt IS NOT NULL AND details::text ~* %s"
# Of entries of the first format, whose leaves hold words.
OLD = """
    SELECT number FROM audit_entryrow r
    CROSS JOIN LATERAL unnest(ARRAY[r.actor, r.agent, r.person, r.reason]) AS used (number)
    WHERE r.format = 1 AND number = ANY(%s)
"""
# Calls that may have words of their own: nearly none of those that a rule let run.
WORDED = """
    SELECT DISTINCT e.call_id FROM audit_entryrow e
    WHERE e.call_id = ANY(%s) AND (e.details ?| %s
        OR e.reason IS NOT NULL
            AND (e.seq IS NULL OR e.seq > 1 OR e.to_state IN ('refused', 'invalid')))
"""
# What other entries say too is no sentence of this call alone.
SHARED = """
    SELECT reason FROM audit_entryrow
    WHERE reason = ANY(%s) AND call_id IS DISTINCT FROM %s
      AND (seq IS NULL OR seq > 1 OR to_state IN ('refused', 'invalid'))
"""
EMPTY = """
    UPDATE audit_name SET salt = NULL, subject = NULL, text = '', server = '', definition = ''
    WHERE id = ANY(%s)
"""
REDUCE = """
    UPDATE audit_entryrow r SET salt = NULL, details = kept.details
    FROM unnest(%s::bigint[], %s::jsonb[]) AS kept (id, details) WHERE r.id = kept.id
"""


@dataclass(frozen=True, slots=True)
class Forgettable:
    """Names (by number) and details (by entry) that are to be forgotten."""

    names: tuple[int, ...] = ()
    entries: tuple[int, ...] = ()
    # Names that entries of the first format bear, and such entries: they stay.
    stay: int = 0

    def __bool__(self) -> bool:
        return bool(self.names or self.entries)

    @property
    def kinds(self) -> dict[str, int]:
        kinds = Counter(Name.objects.filter(pk__in=self.names).values_list("kind", flat=True))
        return dict(sorted(kinds.items())) | (
            {"details": len(self.entries)} if self.entries else {}
        )

    def texts(self) -> Iterator[str]:
        """The texts that would be forgotten, for whoever decides on it."""
        for name in Name.objects.filter(pk__in=self.names).order_by("kind", "pk"):
            yield f"{name.kind}: {name.text}"
        for entry in EntryRow.objects.filter(pk__in=self.entries).order_by("pk"):
            yield f"details of entry {entry.pk}: {entry.details}"


def subjects(kind: str, text: str) -> list[int]:
    """Ids of those who were ever called so."""
    known = Name.objects.filter(kind=kind, text=text).values_list("subject", flat=True)
    return [pk for pk in known if pk is not None]


def of_subject(kind: str, text: str) -> Forgettable:
    """A person or agent under every name that they ever had, and whatever mentions one of these."""
    asked = {"kind": kind, "text": text, "subjects": subjects(kind, text)}
    names = _ids(NAMED, asked)
    texts = set(Name.objects.filter(pk__in=names).values_list("text", flat=True)) - {""}
    if not texts:
        return Forgettable()
    said = MENTIONED.format("|".join(map(re.escape, sorted(texts))))
    return _forgettable([*names, *_ids(REASONS, [said])], _ids(DETAILS, [said]))


def of_entry(pk: int, *, reason: bool = True, details: bool = True) -> Forgettable:
    """The words of one entry. A reason is forgotten wherever it stands."""
    row = EntryReader().rows([pk]).get(pk)
    if row is None:
        return Forgettable()
    names = [row.reason] if reason and row.reason is not None else []
    return _forgettable(names, [pk] if details and row.details else [])


def of_call(call_id: UUID) -> Forgettable:
    """Texts that people and agents wrote about one call, and that no other entry holds."""
    rows = list(EntryReader().of_call(call_id).values())
    # Of a call that went on, the first reason is its rule's.
    first = {
        row.reason for row in rows if row.seq == 1 and row.to_state not in ("refused", "invalid")
    }
    reasons = {row.reason for row in rows if row.reason is not None} - first
    shared = set(_ids(SHARED, [list(reasons), call_id]))
    return _forgettable(reasons - shared, [row.id for row in rows if _has_words(row)])


def calls_with_words(calls: Sequence[UUID]) -> set[UUID]:
    """Those of them for which `of_call` may find anything."""
    with connection.cursor() as cursor:
        cursor.execute(WORDED, [list(calls), list(WORDS)])
        return {pk for (pk,) in cursor.fetchall()}


def _has_words(row: StoredEntry) -> bool:
    return any(key in (row.details or {}) for key in WORDS)


def _forgettable(names: Iterable[int], entries: Iterable[int]) -> Forgettable:
    names, entries = set(names), set(entries)
    names = set(Name.objects.filter(pk__in=names, salt__isnull=False).values_list("pk", flat=True))
    old_names = set(_ids(OLD, [list(names)]))
    new = EntryRow.objects.filter(pk__in=entries, format=2, salt__isnull=False)
    # What the record says of itself: checkpoints and commitments, which verification reads.
    own = Name.objects.filter(kind="action", text__startswith="record.")
    new = new.exclude(action__in=own.values("pk"))
    kept = set(new.values_list("pk", flat=True))
    old = EntryRow.objects.filter(pk__in=entries, format=1).count()
    return Forgettable(tuple(sorted(names - old_names)), tuple(sorted(kept)), len(old_names) + old)


def still_there(erased: Erasures) -> Forgettable:
    """Erased names and details that this older database still has."""
    with_salt = Name.objects.filter(salt__isnull=False)
    wanted = [bytes.fromhex(one) for one in erased.names]
    names = with_salt.filter(commitment__in=wanted).values_list("pk", flat=True)
    rows = EntryReader().rows(erased.details.keys())
    entries = [pk for pk, row in rows.items() if _is_the_same(row, erased.details[pk])]
    return Forgettable(tuple(sorted(names)), tuple(sorted(entries)))


def _is_the_same(row: StoredEntry, commitment: str) -> bool:
    has_words = row.format == 2 and row.salt is not None
    return has_words and forgotten_details(row)["commitment"] == commitment


def forget(what: Forgettable, *, by: Actor, reason: str) -> int:
    """How much was forgotten. As the database's owner; some at a time, each with its entry."""
    for names in _parts(what.names):
        _forget_names(names, by, reason)
    for entries in _parts(what.entries):
        _forget_details(entries, by, reason)
    return len(what.names) + len(what.entries)


def _parts(ids: Sequence[int]) -> Iterator[Sequence[int]]:
    return (ids[first : first + BATCH] for first in range(0, len(ids), BATCH))


@transaction.atomic
def _forget_names(numbers: Collection[int], by: Actor, reason: str) -> None:
    rows = list(Name.objects.filter(pk__in=numbers).order_by("pk"))
    kinds = dict(Counter(row.kind for row in rows))
    commitments = [bytes(row.commitment).hex() for row in rows]
    _note(commitments, kinds, by, reason)
    with connection.cursor() as cursor:
        cursor.execute(EMPTY, [list(numbers)])
    erasure_ledger.add(Erasures(names=set(commitments)))


@transaction.atomic
def _forget_details(ids: Collection[int], by: Actor, reason: str) -> None:
    kept = {pk: forgotten_details(row) for pk, row in EntryReader().rows(ids).items()}
    _note([one["commitment"] for one in kept.values()], {"details": len(kept)}, by, reason)
    with connection.cursor() as cursor:
        cursor.execute(REDUCE, [list(kept), [Jsonb(one) for one in kept.values()]])
    erasure_ledger.add(Erasures(details={pk: one["commitment"] for pk, one in kept.items()}))


def _note(commitments: list[str], kinds: dict[str, int], by: Actor, reason: str) -> None:
    record(FORGOTTEN, actor=by, reason=reason, kinds=kinds, commitments=commitments)


def _ids(query: str, values: object) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(query, values)  # type: ignore[arg-type]
        return [pk for (pk,) in cursor.fetchall()]
