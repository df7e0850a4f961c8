"""The moves and changes of a call that the database itself refuses."""

from __future__ import annotations

from collections.abc import Mapping

import pgtrigger
from django.db import models

from calls.record.states import FIRST, MOVES, REPEATABLE, State
from core.triggers import StrictTrigger

# Asked, and by what: never changed after the first row.
FIXED = (
    "id",
    "agent_id",
    "token_id",
    "person_id",
    "toolset",
    "server_id",
    "tool_id",
    "definition_id",
    "tool_name",
    "arguments",
    "arguments_digest",
    "origin",
    "mode",
    "revision",
    "client",
    "request_key",
    "effect",
    "rule_id",
    "reason",
    "asked_at",
)
# How it went: written with a move, whose entry has the digest of what came back.
ENDING = ("executed", "outcome", "sent_at", "finished_at", "result_size", "result_digest")
# Of a held call, what an amendment changes.
AMENDED = ("amendment_id", "statement", "call_digest")

# SQL over the old row `o` and the new row `n`: other arguments, and nothing else, are to be sent.
# The statement must be of the very bytes that the amendment holds.
AMENDABLE = """(
    SELECT o.state = 'held' AND n.state = 'held'
        AND a.seq = n.seq AND a.call_digest = n.call_digest
        AND n.call_digest = encode(sha256(
            convert_to('countersign call 1' || chr(10) || n.statement, 'UTF8')), 'hex')
        AND a.arguments_digest = encode(sha256(a.arguments), 'hex')
        AND n.statement::jsonb
            = jsonb_set(o.statement::jsonb, '{arguments}', to_jsonb(a.arguments_digest))
    FROM calls_amendment a WHERE a.id = n.amendment_id AND a.call_id = n.id
) IS TRUE"""

# SQL over the same: the move stands in the record, with what came back by it.
ENTERED = """(
    SELECT n.result_digest = o.result_digest OR e.result = decode(n.result_digest, 'hex')
    FROM audit_entryrow e
    WHERE e.call_id = n.id AND e.seq = n.seq AND e.from_state = o.state AND e.to_state = n.state
)"""
# SQL over the same: nothing changes but that the payload goes, with its entry.
ERASING = """(
    n.arguments = '{}' AND n.upstream_task = '' AND n.progress_message = ''
    AND to_jsonb(n) - ARRAY['arguments', 'upstream_task', 'progress_message', 'outcome']
        = to_jsonb(o) - ARRAY['arguments', 'upstream_task', 'progress_message', 'outcome']
    AND calls_is_being_erased(n.id)
)"""
# SQL over a new result `n`: a move of its call's brought it. A large one stands in parts, which
# audit_verify compares as long as they are kept.
HAS_MOVE = """(
    SELECT true FROM audit_entryrow e
    WHERE e.call_id = n.call_id AND e.seq IS NOT NULL AND e.result IS NOT NULL
      AND (n.kept_until IS NOT NULL OR e.result = sha256(n.body)) LIMIT 1
)"""
# SQL over a new part `n` of one.
IS_RUNNING = "(SELECT c.state = 'running' FROM calls_call c WHERE c.id = n.call_id)"


def _refusing(why: str, *, rows: str) -> str:
    """One look at all rows: every call pays for it twice.

    `why` asks with scalar subqueries. PostgreSQL may answer EXISTS from a hash of the whole table,
    and remembers that plan while the table grows.
    """
    return f"""
        SELECT looked.why INTO wrong FROM (SELECT {why} AS why FROM {rows}) looked
        WHERE looked.why IS NOT NULL LIMIT 1;
        IF wrong IS NOT NULL THEN
            RAISE EXCEPTION USING MESSAGE = wrong;
        END IF;
        RETURN NULL;
    """


class LegalBirth(StrictTrigger):
    """A call is born in a first state, with its entry."""

    name = "legal_birth"
    level = pgtrigger.Statement
    when = pgtrigger.After
    operation = pgtrigger.Insert
    declare = [("wrong", "text")]
    referencing = pgtrigger.Referencing(new="new_rows")  # type: ignore[no-untyped-call]

    def get_func(self, model: models.Model) -> str:
        first = ", ".join(f"'{state.value}'" for state in FIRST)
        return _refusing(
            f"""
            CASE
            WHEN n.seq <> 1 OR n.state NOT IN ({first}) THEN 'a call cannot begin like this'
            WHEN (
                SELECT true FROM audit_entryrow e
                WHERE e.call_id = n.id AND e.seq = 1 AND e.to_state = n.state) IS NOT TRUE
            THEN 'a call without its entry'
            END""",
            rows="new_rows n",
        )


class LegalMove(StrictTrigger):
    """A call moves only along MOVES, one step at a time, each with its entry."""

    name = "legal_move"
    level = pgtrigger.Statement
    when = pgtrigger.After
    operation = pgtrigger.Update
    declare = [("wrong", "text")]
    referencing = pgtrigger.Referencing(  # type: ignore[no-untyped-call]
        old="old_rows", new="new_rows"
    )

    def get_func(self, model: models.Model) -> str:
        # A changed id finds no old row.
        rows = "new_rows n LEFT JOIN old_rows o ON o.id = n.id"
        amended = _differ(AMENDED)
        # In the rules' own words, as far as they are cheap: what is plainly legal is nearly all.
        return f"""
        PERFORM FROM {rows} WHERE (
            n.seq = o.seq + 1 AND {_along(but=(State.RUNNING, State.QUEUED))}
            AND NOT {_differ(FIXED + AMENDED)} AND {ENTERED}
        ) IS NOT TRUE LIMIT 1;
        IF NOT FOUND THEN
            RETURN NULL;
        END IF;
        """ + _refusing(
            f"""
            CASE
            WHEN n.seq = o.seq AND {_differ(("arguments", "outcome"))} AND {ERASING}
            THEN NULL
            WHEN o.id IS NULL OR {_differ(FIXED)}
            THEN 'what was asked is never changed'
            WHEN {amended} AND NOT (n.seq = o.seq + 1 AND {AMENDABLE})
            THEN 'what is to be sent changes only by an amendment while the call is held'
            WHEN n.state = o.state AND {_differ(ENDING)}
            THEN 'how a call went is written once, by the move that says it'
            WHEN n.state = o.state AND n.seq = o.seq
            THEN NULL
            WHEN NOT (n.seq = o.seq + 1 AND ({amended} OR {_along()})
                      AND (o.state <> 'running' OR n.state <> 'queued' OR ({REPEATABLE})))
            THEN 'a call cannot move like this'
            WHEN {ENTERED} IS NOT TRUE
            THEN 'a move without its entry'
            END""",
            rows=rows,
        )


class OnlyErased(StrictTrigger):
    """Rows are never changed, but for a payload that is erased, with its entry."""

    name = "only_erased"
    level = pgtrigger.Row
    when = pgtrigger.Before
    operation = pgtrigger.Update

    def __init__(self, *, call: str, **left: str) -> None:
        """`call`: the column with the call's id. `left`: what columns then are, as SQL."""
        super().__init__()
        self.call, self.left = call, left

    def get_func(self, model: models.Model) -> str:
        return f"""
        IF ({erasing(self.call, self.left)}) IS NOT TRUE THEN
            RAISE EXCEPTION '{model._meta.db_table} rows are never changed or removed';
        END IF;
        RETURN NEW;
        """


def erasing(call: str, left: Mapping[str, str]) -> str:
    """SQL over NEW and OLD: nothing changes but these columns, of a payload that is erased."""
    columns = "ARRAY[" + ", ".join(f"'{name}'" for name in left) + "]"
    emptied = " AND ".join(f"NEW.{name} = {value}" for name, value in left.items())
    return (
        f"to_jsonb(NEW) - {columns} = to_jsonb(OLD) - {columns} AND {emptied}"
        f" AND calls_is_being_erased(OLD.{call})"
    )


class ResultGuard(StrictTrigger):
    """Refuses content of a call outside `known`: at a time when no attempt can have brought it."""

    level = pgtrigger.Statement
    when = pgtrigger.After
    operation = pgtrigger.Insert
    declare = [("wrong", "text")]
    referencing = pgtrigger.Referencing(new="new_rows")  # type: ignore[no-untyped-call]

    def __init__(self, *, name: str, known: str, why: str) -> None:
        """`known`: SQL over the new row `n`."""
        super().__init__(name=name)
        self.known, self.why = known, why

    def get_func(self, model: models.Model) -> str:
        why = f"CASE WHEN {self.known} IS NOT TRUE THEN '{self.why}' END"
        return _refusing(why, rows="new_rows n")


def _differ(columns: tuple[str, ...]) -> str:
    old, new = (", ".join(f"{row}.{column}" for column in columns) for row in ("o", "n"))
    return f"(({old}) IS DISTINCT FROM ({new}))"


def _along(but: tuple[State, State] | None = None) -> str:
    """SQL: from the old state there is a move to the new one. As one text each: quick to begin."""
    moves = [(source, target) for source, to in MOVES.items() for target in to]
    known = ", ".join(f"'{a.value} {b.value}'" for a, b in moves if (a, b) != but)
    return f"o.state || ' ' || n.state IN ({known})"
