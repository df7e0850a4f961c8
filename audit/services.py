"""Writing entries. Moves of calls write theirs in calls/record/transitions.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction

from audit.models import Entry, SavedFilter
from core.outbound import without_credentials


@dataclass(frozen=True, slots=True)
class Actor:
    """An actor in plain values: an agent, a person, policy or the system."""

    kind: str
    id: int | None
    name: str


# The numbers of both are fixed (audit/sql/first_names.sql).
SYSTEM = Actor("system", None, "countersign")
POLICY = Actor("policy", None, "policy")
SYSTEM_NUMBER = 3


def record(action: str, *, actor: Actor, **facts: Any) -> Entry:
    """Write one entry in the current transaction; `facts` as `entry` takes them."""
    made = entry(action, actor=actor, **facts)
    made.save(force_insert=True)
    return made


def record_all(entries: Iterable[Entry]) -> None:
    """The same with many, in their order."""
    Entry.objects.bulk_create(entries)


def entry(
    action: str,
    *,
    actor: Actor,
    reason: str = "",
    call_id: UUID | None = None,
    agent: tuple[int, str] = (0, ""),
    server: str = "",
    tool: str = "",
    definition_digest: str = "",
    **details: Any,
) -> Entry:
    """One that is not written yet. `details` are facts of ours."""
    return Entry(
        action=action,
        actor_kind=actor.kind,
        actor_id=actor.id,
        actor=actor.name,
        reason=reason,
        call_id=call_id,
        agent_id=agent[0] or None,
        agent=agent[1],
        server=server,
        tool=tool,
        definition_digest=definition_digest,
        details=details,
    )


def first_entry(call_id: str) -> str:
    """SQL that joins, as `e`, the row of the entry with which a call began: by its key for each.

    As a plain join, PostgreSQL may walk through the first entries of all calls for each one, and
    plan that while its statistics are from when nearly no entry was of a call.
    """
    return f"""CROSS JOIN LATERAL (
        SELECT * FROM audit_entryrow f WHERE f.call_id = {call_id} AND f.seq = 1 LIMIT 1) e"""


def name_number(
    kind: str, text: str, *, subject: str = "NULL::bigint", server: str = "''", version: str = "''"
) -> str:
    """SQL: the number of a name, all of whose parts are SQL too. Names are nearly always known:
    the function that adds one (audit/sql/names.sql) is called for those that are not."""
    return f"""COALESCE((
        SELECT n.id FROM audit_name n
        WHERE n.kind = {kind} AND left(n.text, 500) = left({text}, 500) AND n.text = {text}
          AND n.salt IS NOT NULL AND n.subject IS NOT DISTINCT FROM {subject}
          AND n.server = {server} AND n.definition = {version} LIMIT 1
    ), audit_name_number({kind}, {subject}, {text}, {server}, {version}))"""


def action_number(state: str) -> str:
    """The number of the action "call moved to this state"."""
    number = name_number("'action'", f"'call.' || {state}")
    return f"CASE {state} WHEN 'running' THEN 1 WHEN 'succeeded' THEN 2 ELSE {number} END"


def reason_number(text: str) -> str:
    """The same of a sentence, which may be empty."""
    number = name_number("'reason'", text)
    return f"CASE WHEN {text} <> '' THEN {number} END"


def of(person: Any) -> Actor:
    """The actor of a signed-in person, whose model is in a higher package."""
    actor: Actor = person.actor
    return actor


def without_received(details: Any) -> Any:
    """An entry's details without the digest of a result as received, from which whoever has the
    cleaned result could guess what was masked."""
    result = details.get("result") if isinstance(details, dict) else None
    if not isinstance(result, dict) or "came" not in result:
        return details
    return details | {"result": {key: said for key, said in result.items() if key != "came"}}


def without_tokens(entry: Entry) -> Any:
    """An entry's details without what may be a token in a webhook's URL: earlier versions wrote the
    whole URL, and an entry is never changed."""
    match entry.details:
        case {"url": str(url)} as details if entry.action.startswith("webhook."):
            return details | {"url": without_credentials(url)}
    return entry.details


@transaction.atomic
def save_filter(name: str, query: Mapping[str, str], *, shared: bool, by: Any) -> SavedFilter:
    """Under the same name it is replaced. What is shared changes what others see: an entry."""
    saved, _made = SavedFilter.objects.update_or_create(
        owner_id=by.pk, name=name, defaults={"query": dict(query), "shared": shared}
    )
    if shared:
        record("filter.shared", actor=of(by), filter=name, filters=dict(query))
    return saved


@transaction.atomic
def remove_filter(saved: SavedFilter, *, by: Any) -> None:
    if saved.shared:
        record("filter.removed", actor=of(by), filter=saved.name)
    saved.delete()
