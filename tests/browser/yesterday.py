"""What scout did yesterday, and who allowed it: made by the product's own verbs, a day too late.

Then a superuser moves the database's times, as if the machine's clock had stood there. What is
sealed and shown afterwards is what a real yesterday would have left.
"""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import psycopg
from psycopg import sql

from accounts.models import Agent, User
from approvals.models import Approval
from approvals.services import vote
from calls.record.states import State
from registry.models import Tool
from tests.browser.scene import ALLOWED, DENIED
from tests.console import scenery

ASKED = {"rule": "Changes are read first", "reason": "A person looks at changes."}
# From now to noon of yesterday.
AGO = "clock_timestamp() - (date_trunc('day', clock_timestamp(), 'UTC') - interval '12 hours')"
COLUMNS = """
SELECT table_name, column_name, data_type FROM information_schema.columns
JOIN information_schema.tables USING (table_schema, table_name)
WHERE table_schema = 'public' AND table_type = 'BASE TABLE'
  AND data_type IN ('timestamp with time zone', 'uuid') AND table_name NOT LIKE 'django_%'
"""
MOVED = {
    "timestamp with time zone": "{column} - %(ago)s",
    # Ids begin with their time, in milliseconds.
    "uuid": """(lpad(to_hex(
        ('x0000' || left(replace({column}::text, '-', ''), 12))::bit(64)::bigint
        - (1000 * extract(epoch FROM %(ago)s))::bigint), 12, '0')
        || substr(replace({column}::text, '-', ''), 13))::uuid""",
}


def yesterday(link: psycopg.Connection) -> Callable[[User, Agent], None]:
    """For `office`; `link` is a superuser's."""

    def live(alice: User, scout: Agent) -> None:
        work(alice, scout)
        move(link)

    return live


def work(alice: User, scout: Agent) -> None:
    search, forecast, send, write = (
        Tool.objects.for_catalogue().get(exposed_name=name)
        for name in ("code.search", "weather.forecast", "mailer.send_mail", "files.write_file")
    )
    for pattern in ("def submit", "Effect.DENY"):
        run(scenery.call(scout, search, {"pattern": pattern}, State.QUEUED, **ALLOWED))
    run(scenery.call(scout, forecast, {"place": "Ghent"}, State.QUEUED, **ALLOWED))
    agenda = {**scenery.MAIL, "subject": "Agenda for Tuesday"}
    run(answered(alice, scout, send, agenda, approve=True, reason="Ana waits for it."))
    prices = {"path": "public/prices.md", "content": "# Prices\n\nEverything is free.\n"}
    answered(alice, scout, write, prices, approve=False, reason="Not before the board agreed.")
    outside = {"path": "../etc/hosts", "content": "127.0.0.1 bank"}
    scenery.call(scout, write, outside, State.REFUSED, **DENIED)


def run(call: UUID) -> None:
    scenery.run(call)
    scenery.finish(call, {"content": [{"type": "text", "text": "Done."}]})


def answered(
    alice: User, agent: Agent, tool: Tool, arguments: Any, *, approve: bool, reason: str
) -> UUID:
    held = scenery.call(agent, tool, arguments, State.HELD, **ASKED)
    approval = Approval.objects.get(pk=held)
    seen = approval.call.call_digest
    vote(approval, by=alice, approve=approve, seen_digest=seen, reason=reason)
    return held


def move(link: psycopg.Connection) -> None:
    with link.transaction():
        link.execute("SET LOCAL session_replication_role = replica")
        (ago,) = link.execute("SELECT " + AGO).fetchone() or ()
        for table, column, kind in link.execute(COLUMNS).fetchall():
            names = {"table": sql.Identifier(table), "column": sql.Identifier(column)}
            moved = sql.SQL("UPDATE {table} SET {column} = " + MOVED[kind]).format(**names)
            link.execute(moved, {"ago": ago})
