"""Facts that conditions read of the record, each only for calls of rules that ask for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from django.db import DatabaseError, connection, transaction

from policies import flow, history, unusual
from policies.decide import RuleBook, Subject
from policies.flow import Flow, FlowQuestion
from policies.history import WITHIN_MS
from policies.unusual import Unusual

Rows = Sequence[Sequence[Any]]


class Query(NamedTuple):
    """`root` is what conditions call it, and the subject's attribute."""

    root: str
    sql: str
    parameters: list[Any]
    of_rows: Callable[[Rows], Any]

    def keep(self, asked: Subject, rows: Rows) -> None:
        setattr(asked, self.root, self.of_rows(rows))


def queries(
    book: RuleBook, asked: Subject, *, but: UUID | None = None, at: datetime | None = None
) -> list[Query]:
    """The queries that rules need. `but` and `at`: as things were when that call was requested."""
    wanted = book.lookbacks(asked)
    return [make(asked, but, at) for root, make in _QUERIES.items() if root in wanted]


def _history(asked: Subject, but: UUID | None, at: datetime | None) -> Query:
    given = history.arguments(asked.agent_id, asked.exposed, but=but, at=at)
    return Query(history.ROOT, history.SQL, given, history.of_rows)


def _flow(asked: Subject, but: UUID | None, at: datetime | None) -> Query:
    given = flow.parameters(FlowQuestion(asked.agent_id, but, at))
    return Query(flow.ROOT, flow.SQL, given, flow.of_rows)


def _unusual(asked: Subject, but: UUID | None, at: datetime | None) -> Query:
    given = unusual.parameters(asked.agent_id, asked.exposed, but=but, at=at)
    return Query(unusual.ROOT, unusual.SQL, given, unusual.of_rows)


_QUERIES = {history.ROOT: _history, flow.ROOT: _flow, unusual.ROOT: _unusual}


def read(
    book: RuleBook, asked: Subject, *, but: UUID | None = None, at: datetime | None = None
) -> None:
    """Stores in the subject what rules need. What cannot be read in time stays None: conditions
    that ask for it then ask a person."""
    for query in queries(book, asked, but=but, at=at):
        rows = fetch(query.sql, query.parameters)
        if rows is not None:
            query.keep(asked, rows)


def read_flow(asked: FlowQuestion) -> Flow | None:
    """For pages. None if it cannot be read in time."""
    rows = fetch(flow.SQL, flow.parameters(asked))
    return None if rows is None else flow.of_rows(rows)


def read_flows(asked: Sequence[FlowQuestion]) -> dict[UUID, Flow]:
    """By the calls that are asked about, for pages: one query, and none without a question. What
    cannot be read in time is said to be so."""
    if not asked:
        return {}
    rows = fetch(flow.SQL, flow.parameters(*asked))
    if rows is None:
        return {one.but: Flow(unread=True) for one in asked if one.but}
    return flow.by_call(rows)


def read_unusual(agent_id: int) -> Unusual | None:
    """Reads the agent's use as a whole, for its page."""
    rows = fetch(unusual.SQL, unusual.parameters(agent_id))
    return None if rows is None else unusual.of_rows(rows)


def fetch(sql: str, parameters: list[Any]) -> Rows | None:
    """None if it cannot be read in time."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET LOCAL statement_timeout = %s", [WITHIN_MS])
            cursor.execute(sql, parameters)
            rows: Rows = cursor.fetchall()
            cursor.execute("SET LOCAL statement_timeout = 0")
            return rows
    except DatabaseError:
        return None
