"""A call's state and outcome, in the words and bytes that its agent gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from psycopg import AsyncConnection, sql
from psycopg.rows import namedtuple_row

from calls.content.amendments import AmendmentSummary, modified
from calls.record import refusal
from calls.record.refusal import RefusalDetails
from calls.record.states import LIVE, NOT_SENT, Executed, State
from policies.limits.compiled import LimitReached

# States in which no result came back and the agent gets a sentence instead.
ADVICE = {
    State.REFUSED: "Nothing was sent.",
    State.INVALID: "Nothing was sent.",
    State.DENIED: "A person decided against it; nothing was sent. Do not ask again unchanged.",
    State.EXPIRED: "Nothing was sent. Ask again if it is still needed.",
    State.WITHDRAWN: "Nothing was sent.",
    State.SUPERSEDED: "Nothing was sent.",
    State.UNKNOWN: (
        "The call may have been executed. Do not repeat it; a person is asked to find out."
    ),
}

# In an entry's details: where a user signs in at the server, or allows it more.
CONSENT_PAGE = "consent_page"
# The server had the whole request, and said that its token lacks scopes.
LACKED_SCOPES = "lacked_scopes"

# A large result is kept for a while only.
GONE = "The call was executed and ended; its large result was kept until"
# And any other as long as its retention period says.
ERASED = "The call was executed and ended; its result was erased."
MAYBE = "An earlier attempt may have been executed."


# Not frozen: made for every call, and setting fields past the guard costs three times as much.
@dataclass(slots=True)
class Answer:
    """`result`: raw JSON of a tool's result. `error`: raw JSON of a JSON-RPC error.

    Neither: `text` says all there is.
    """

    call_id: UUID
    state: State
    result: bytes | None
    error: bytes | None
    text: str
    executed: str
    # How it ended, without advice.
    reason: str = ""
    # Where it brought no result.
    refusal: RefusalDetails | None = None
    # Where people changed the arguments.
    modified: AmendmentSummary | None = None
    # It was asked for before, and not sent once more; and what the model is told of that.
    repeated: bool = False
    note: str = ""
    # Where a user signs in at the server, or allows the scopes that it asks for.
    consent_page: str = ""
    # Limits that the request passed, and that only warn.
    warnings: Sequence[LimitReached] = ()


READ = sql.SQL("""
    SELECT c.id, c.state, c.outcome, c.executed, c.result_size,
           c.progress, c.progress_total, c.progress_message,
           r.kind,
           CASE WHEN r.kept_until IS NULL THEN r.body ELSE (
               SELECT string_agg(p.body, ''::bytea ORDER BY p.number) FROM calls_resultpart p
               WHERE p.call_id = c.id) END AS body, r.kept_until,
           CASE WHEN c.amendment_id IS NOT NULL THEN c.arguments END AS asked, m.arguments AS sent,
           CASE WHEN c.amendment_id IS NOT NULL THEN (
               SELECT bool_or(every.private) FROM calls_amendment every
               WHERE every.call_id = c.id) END AS private,
           CASE WHEN c.state = 'running' THEN (
               SELECT max(i.id) FROM calls_input i
               WHERE i.call_id = c.id AND i.response = '') END AS question,
           c.effect, CASE WHEN NOT p.unnamed THEN p.name END AS rule, p.instead,
           p.when <> '' AS conditional,
           CASE WHEN c.state IN ('superseded', 'refused', 'invalid', 'failed')
                  OR c.state = 'queued' AND c.fence > 0 THEN (
               SELECT e.details FROM audit_entry e
               WHERE e.call_id = c.id AND e.seq = c.seq) END AS details
    FROM calls_call c LEFT JOIN calls_result r ON r.call_id = c.id
    LEFT JOIN calls_amendment m ON m.id = c.amendment_id
    LEFT JOIN policies_rule p ON p.id = c.rule_id AND c.executed = 'no'
    -- Their range leaves out the months that have none of them, before they are looked at.
    WHERE c.id BETWEEN %s AND %s AND c.id = ANY(%s)
""")


@dataclass(frozen=True, slots=True)
class CallStatus:
    """A call as it stands: `answer` once it has ended."""

    state: State
    progress: float | None
    total: float | None
    message: str
    answer: Answer | None
    # An attempt may have been executed.
    maybe: bool = False
    # The last of its server's questions that waits for an answer; 0 for none.
    asked: int = 0
    # Where its user has to sign in, or to allow more, before it goes on, and why.
    consent_page: str = ""
    reason: str = ""


async def load_status(connection: AsyncConnection[Any], ids: list[UUID]) -> dict[UUID, CallStatus]:
    if not ids:
        return {}
    async with connection.cursor(row_factory=namedtuple_row) as cursor:
        await cursor.execute(READ, [min(ids), max(ids), ids])
        rows: list[Any] = await cursor.fetchall()
    return {row.id: _looked(row) for row in rows}


def _looked(row: Any) -> CallStatus:
    state = State(row.state)
    answer = None
    if state not in LIVE:
        body = bytes(row.body or b"") or None
        rule = (row.rule or "", row.instead or "", bool(row.conditional))
        why = refusal.of_call(state, row.executed, row.effect, rule, row.details)
        answer = build_answer(row.id, state, row.outcome, row.executed, row.kind, body, why)
        if body is None and row.kept_until is not None:
            answer = replace(answer, text=f"{GONE} {row.kept_until:%Y-%m-%d}.")
        elif row.kind is None and row.result_size and not answer.text:
            answer = replace(answer, text=ERASED)
        if row.asked is not None and state not in NOT_SENT:
            answer = _modified(answer, row)
        if row.details and (page := row.details.get(CONSENT_PAGE)):
            answer = replace(answer, consent_page=page)
    maybe = row.executed == Executed.UNKNOWN
    return CallStatus(
        state,
        row.progress,
        row.progress_total,
        row.progress_message,
        answer,
        maybe,
        row.question or 0,
        (row.details or {}).get(CONSENT_PAGE, "") if state in LIVE else "",
        row.outcome,
    )


def _modified(answer: Answer, row: Any) -> Answer:
    found = modified(bytes(row.asked), bytes(row.sent), private=row.private)
    return replace(answer, modified=found, text=f"{answer.text} {found.sentence}".strip())


def build_answer(
    call_id: UUID,
    state: State,
    outcome: str,
    executed: str,
    kind: str | None,
    body: bytes | None,
    why: RefusalDetails | None = None,
) -> Answer:
    """`why` it brought no result, where more is known than its state."""
    # After an earlier attempt, "nothing was sent" would be wrong.
    advice = ADVICE.get(state, "") if state not in NOT_SENT or executed == Executed.NO else MAYBE
    why = None if body is not None else why or refusal.of_state(state, executed)
    parts = (outcome, advice, why.sentence if why else "")
    return Answer(
        call_id=call_id,
        state=state,
        result=body if kind == "result" else None,
        error=body if kind == "error" else None,
        text=" ".join(filter(None, parts)),
        executed=executed or Executed.UNKNOWN,
        reason=outcome,
        refusal=why,
    )
