"""A large house: 200 servers, 10,000 tools and 1,000,000 calls with their entries, by bulk SQL.

`python -m benchmarks.crowd DIRECTORY` makes an embedded PostgreSQL there and fills a database of
its own; `python -m benchmarks.pages DIRECTORY` then measures the console's pages on it. With
`--months 13 --calls 10000000` the calls are of so many months, each in partitions of its own.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import django
import orjson
import psycopg
from psycopg import sql

from config.embedded.postgres import SUPERUSER, Postgres
from tests.database import manage
from tests.services import services

DAYS = 30
AGENTS = 60
HELD, RUNNING = 300, 20
VERBS = ["search", "list", "read", "get", "create", "update", "delete", "send", "archive", "merge"]
VERBS += ["export", "import", "approve", "publish", "translate", "count", "compare", "restore"]
THINGS = ["invoice", "customer", "order", "ticket", "document", "report", "message", "calendar"]
THINGS += ["contact", "file", "folder", "branch", "issue", "pipeline", "dataset", "table", "alert"]
THINGS += ["policy", "contract", "shipment", "refund", "account", "budget", "image", "recording"]
SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "description": "Which one."},
        "limit": {"type": "integer", "minimum": 1, "maximum": 200, "default": 20},
        "order": {"enum": ["newest", "oldest"], "default": "newest"},
    },
    "required": ["id"],
}

# Ids sort by time as the product's do; what differs below them is a digest of the number. The dice
# are cast once, whichever way the planner joins.
CALLS = """
INSERT INTO calls_call (
    id, agent_id, person_id, toolset, server_id, tool_id, definition_id, tool_name, arguments,
    arguments_digest, origin, mode, revision, client, request_key, effect, reason, state, seq,
    asked_at, sent_at, finished_at, fence, executed, outcome)
WITH c AS MATERIALIZED (
    SELECT
        n, md5(n::text || 'noise') AS noise,
        now() - %(days)s * interval '1 day' * (1 - n::float / %(calls)s) AS at,
        1 + floor(%(agents)s * random() ^ 2)::int AS agent_place,
        1 + floor(%(tools)s * random() ^ 3)::int AS tool_place,
        CASE
            WHEN n > %(calls)s - %(running)s THEN 'running'
            WHEN n > %(calls)s - %(running)s - %(held)s THEN 'held'
            WHEN r < 0.90 THEN 'succeeded' WHEN r < 0.93 THEN 'tool_error'
            WHEN r < 0.95 THEN 'refused' WHEN r < 0.965 THEN 'denied'
            WHEN r < 0.975 THEN 'failed' WHEN r < 0.985 THEN 'cancelled'
            WHEN r < 0.99 THEN 'timed_out' WHEN r < 0.9995 THEN 'expired' ELSE 'unknown'
        END AS state
    FROM (SELECT n, random() AS r FROM generate_series(1, %(calls)s) AS n) AS drawn
)
SELECT
    (lpad(to_hex((extract(epoch FROM at) * 1000)::bigint), 12, '0') || '7' || substr(noise, 1, 3)
        || '8' || substr(noise, 4, 15))::uuid,
    agent_id, owner_id, 'everything', server_id, tool_id, definition_id, exposed_name,
    convert_to('{"id": "' || noise || '", "limit": 20}', 'UTF8'), md5(noise) || md5(noise), 'mcp',
    'inline', '2026-07-28', 'crowd 1.0', '', 'allow', 'Everyday work.', state,
    CASE WHEN state IN ('refused', 'held', 'running') THEN 1 ELSE 2 END, at,
    CASE WHEN state NOT IN ('refused', 'held') THEN at + interval '3 ms' END,
    CASE WHEN state NOT IN ('held', 'running')
         THEN at + (random() ^ 4 * interval '4 s') + interval '20 ms' END,
    CASE WHEN state IN ('refused', 'held') THEN 0 ELSE 1 END, '', ''
FROM c
JOIN (SELECT row_number() OVER (ORDER BY id) AS place, id AS agent_id, owner_id
      FROM accounts_agent) AS a ON a.place = c.agent_place
JOIN (SELECT row_number() OVER (ORDER BY id) AS place, id AS tool_id, server_id,
             latest_id AS definition_id, exposed_name FROM registry_tool) AS t
    ON t.place = c.tool_place
ORDER BY n
"""

# As they come to be when calls are recorded.
NAMES = """
WITH named AS (
    SELECT 'action' AS kind, NULL::bigint AS subject, 'call.' || state AS text, '' AS server,
        '' AS definition FROM calls_call
    UNION SELECT 'agent', id, name, '', '' FROM accounts_agent
    UNION SELECT 'person', id, username, '', '' FROM accounts_user
    UNION SELECT 'tool', NULL, c.tool_name, v.slug, d.digest
        FROM (SELECT DISTINCT tool_name, server_id, definition_id FROM calls_call) c
        JOIN registry_definition d ON d.id = c.definition_id
        JOIN registry_server v ON v.id = c.server_id
    UNION SELECT 'reason', NULL, 'Everyday work.', '', ''
    UNION SELECT 'context', NULL, jsonb_build_object('effect', effect, 'rule', rule)::text, '', ''
        FROM (VALUES ('ask', 'Changes are read first'), ('deny', 'Nothing leaves the house'),
            ('allow', 'Everyday work')) AS r (effect, rule)
)
SELECT count(audit_name_number(kind, subject, text, server, definition)) FROM named
"""

ENTRIES = """
INSERT INTO audit_entryrow (
    at, call_id, action, agent, person, tool, context, reason, seq, from_state, to_state, arguments)
SELECT
    c.asked_at + (s.seq - 1) * interval '40 ms', c.id, action.id, agent.id, person.id, tool.id,
    context.id, reason.id, s.seq, s.before, s.state, decode(c.arguments_digest, 'hex')
FROM calls_call c
JOIN registry_definition d ON d.id = c.definition_id
JOIN registry_server v ON v.id = c.server_id
CROSS JOIN LATERAL (
    SELECT 1 AS seq, 'received' AS before,
           CASE WHEN c.state IN ('refused', 'held') THEN c.state ELSE 'running' END AS state
    UNION ALL
    SELECT 2, 'running', c.state WHERE c.seq = 2
) AS s
JOIN audit_name action ON action.kind = 'action' AND action.text = 'call.' || s.state
JOIN audit_name agent ON agent.kind = 'agent' AND agent.subject = c.agent_id
JOIN audit_name person ON person.kind = 'person' AND person.subject = c.person_id
JOIN audit_name tool ON tool.kind = 'tool' AND tool.text = c.tool_name AND tool.server = v.slug
    AND tool.definition = d.digest
JOIN audit_name reason ON reason.kind = 'reason' AND reason.text = 'Everyday work.'
JOIN audit_name context
    ON CASE WHEN context.kind = 'context' THEN context.text::jsonb ->> 'effect' END
    = CASE c.state WHEN 'held' THEN 'ask' WHEN 'refused' THEN 'deny' ELSE 'allow' END
ORDER BY c.id, s.seq
"""

APPROVALS = """
INSERT INTO approvals_approval (
    call_id, state, reason, asked_at, decide_by, decided_at, thresholds)
SELECT id, CASE state WHEN 'held' THEN 'waiting' ELSE state END, 'Changes are read first.',
       asked_at, now() + interval '1 hour', CASE WHEN state <> 'held' THEN asked_at END,
       CASE WHEN state = 'held' AND hashtext(id::text) %% 2 = 0 THEN %(strict)s::jsonb
            ELSE %(thresholds)s::jsonb END
FROM calls_call WHERE state IN ('held', 'denied', 'expired')
"""

# Where two have to decide, one of them did, and people talk.
VOTES = """
INSERT INTO approvals_vote (approval_id, person_id, approve, reason, seen_digest, at)
SELECT a.call_id, u.id, true, 'Looks right.', coalesce(c.call_digest, ''), a.asked_at
FROM approvals_approval a
JOIN calls_call c ON c.id = a.call_id
JOIN accounts_user u ON u.username = 'person-1'
WHERE a.state = 'waiting' AND a.thresholds = %(strict)s::jsonb
"""

COMMENTS = """
INSERT INTO approvals_comment (approval_id, kind, person_id, text, at)
SELECT approval_id, 'comment', person_id, 'Two of us should look.', at FROM approvals_vote
"""

RESULTS = """
INSERT INTO calls_result (call_id, kind, body)
SELECT id, 'result', convert_to('{"content": [{"type": "text", "text": "Done."}]}', 'UTF8')
FROM calls_call WHERE state IN ('succeeded', 'tool_error') ORDER BY id
"""

USED = """
UPDATE registry_tool t SET used_on = u.day
FROM (SELECT tool_id, max(asked_at)::date AS day FROM calls_call GROUP BY tool_id) AS u
WHERE u.tool_id = t.id
"""


FILLED = ("calls_call", "audit_entryrow", "approvals_approval", "registry_listing")
INDEXES = """
SELECT indexname, indexdef FROM pg_indexes
WHERE schemaname = 'public' AND tablename = ANY(%s)
  AND indexname NOT IN (SELECT conname FROM pg_constraint)
"""


def fill(
    link: psycopg.Connection,
    *,
    servers: int,
    tools: int,
    calls: int,
    days: int = DAYS,
    held: int | None = None,
) -> None:
    """`held`: how many calls are pending, else as many as is usual. `link` is a superuser's:
    triggers stand aside, as they are not what is measured."""
    from policies.thresholds import StepUp, Threshold, plain

    strict = Threshold(approve=2, source="group:Approver", step_up=StepUp.TOTP)
    given = {
        "days": days,
        "agents": AGENTS,
        "tools": tools,
        "calls": calls,
        "held": min(HELD, calls // 50) if held is None else held,
        "running": RUNNING,
        "thresholds": orjson.dumps(plain([])).decode(),
        "strict": orjson.dumps(plain([strict])).decode(),
    }
    with link.transaction():
        link.execute("SET LOCAL session_replication_role = replica")
        # Joins of all with all: of ten million calls a plan with loops takes hours.
        link.execute("SET LOCAL enable_nestloop = off")
        link.execute("SET LOCAL work_mem = '512MB'")
        link.execute("SET LOCAL maintenance_work_mem = '1GB'")
        _people(servers)
        with _without_indexes(link):
            _registry(link, servers, tools)
            # Or the planner goes by what was there before, and compares all with all.
            link.execute("ANALYZE accounts_agent, registry_definition, registry_tool")
            link.execute(CALLS, given)
            link.execute("ANALYZE calls_call")
            link.execute(NAMES)
            link.execute("ANALYZE audit_name")
            for statement in (ENTRIES, APPROVALS, VOTES, COMMENTS, RESULTS, USED):
                link.execute(statement, given)
    link.execute("ANALYZE")


# As if the months had been made in their time. Everything before them stays in the first partition.
PAST_MONTHS = """
DO $$
DECLARE
    parent text;
    low timestamptz;
    bounds text;
BEGIN
    EXECUTE format('SET LOCAL ROLE %%I',
        (SELECT tableowner FROM pg_tables WHERE tablename = 'calls_call'));
    FOREACH parent IN ARRAY ARRAY['calls_call', 'calls_result'] LOOP
        EXECUTE format('ALTER TABLE %%s DETACH PARTITION %%s_first', parent, parent);
        FOR past IN REVERSE %(months)s..0 LOOP
            low := date_trunc('month', now()) - make_interval(months => past);
            PERFORM core_make_partition(parent::regclass,
                format('%%s_%%s', parent, to_char(low, 'YYYY_MM')),
                core_bounds(low, low + interval '1 month'));
        END LOOP;
        low := date_trunc('month', now()) - make_interval(months => %(months)s);
        bounds := format('FOR VALUES FROM (MINVALUE) TO (%%L)', core_first_id(low));
        EXECUTE format('ALTER TABLE %%s ATTACH PARTITION %%s_first %%s', parent, parent, bounds);
    END LOOP;
END $$
"""


def make_past_months(link: psycopg.Connection, months: int) -> None:
    link.execute("SET timezone = 'UTC'")
    link.execute(PAST_MONTHS % {"months": months})


@contextmanager
def _without_indexes(link: psycopg.Connection) -> Iterator[None]:
    """An index is made in a tenth of the time in which it grows row by row."""
    found = link.execute(INDEXES, [list(FILLED)]).fetchall()
    for name, _made in found:
        link.execute(sql.SQL("DROP INDEX {}").format(sql.Identifier(name)))
    yield
    for _name, made in found:
        # Of partitioned tables: with those of their partitions.
        link.execute(made.replace(" ON ONLY ", " ON "))


def _people(servers: int) -> None:
    from accounts.models import Agent, User
    from registry.models import Server

    owners = User.objects.bulk_create(User(username=f"person-{n}") for n in range(1, 21))
    Agent.objects.bulk_create(
        Agent(name=f"agent-{n}", owner=owners[n % len(owners)]) for n in range(1, AGENTS + 1)
    )
    Server.objects.bulk_create(
        Server(
            slug=f"{THINGS[n % len(THINGS)]}-{n}",
            transport="http",
            url=f"https://upstream-{n}.example/mcp",
            owner=owners[n % len(owners)],
            health="down" if n % 40 == 0 else "ok",
        )
        for n in range(1, servers + 1)
    )


def _registry(link: psycopg.Connection, servers: int, tools: int) -> None:
    from inspection.definitions import Scan

    rows = list(_tools(link, servers, tools))
    # Stored when a definition is first seen, and read with it.
    scan = orjson.dumps(Scan(()).kept()).decode()
    columns = "id, server_id, name, exposed_name, state, published_id, latest_id, mode, measured,"
    columns += " is_long, safe_to_repeat, timeout_s, hints, risk, created_at"
    with link.cursor() as cursor:
        with cursor.copy(
            "COPY registry_definition (id, tool_id, version, digest, body, first_seen_at, scan)"
            " FROM STDIN"
        ) as copy:
            for row in rows:
                copy.write_row((row["id"], row["id"], 1, row["digest"], row["body"], "now", scan))
        with cursor.copy(f"COPY registry_tool ({columns}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row["tool"])
        cursor.executemany(
            "INSERT INTO registry_listing (tool_id, words, bigrams, lexemes) VALUES (%s, %s, '{}',"
            " setweight(to_tsvector('english', %s), 'A')"
            " || setweight(to_tsvector('english', %s), 'C'))",
            [(row["id"], row["words"], row["words"], row["text"]) for row in rows],
        )


def _tools(link: psycopg.Connection, servers: int, tools: int) -> Iterator[dict[str, Any]]:
    from registry.versions import search_index

    dice = random.Random(7)
    known = link.execute("SELECT id, slug FROM registry_server ORDER BY id").fetchall()
    for n in range(1, tools + 1):
        server_id, slug = known[n % servers]
        content = definition(n, dice)
        exposed = f"{slug}.{content['name']}"
        claims = search_index.claims(content)
        state = "new" if n % 500 == 0 else "published"
        published = n if state == "published" else None
        body = orjson.dumps(content).decode()
        rest = ("auto", 0, False, False, 120, claims["hints"], claims["risk"], "now")
        yield {
            "id": n,
            "digest": hashlib.sha256(body.encode()).hexdigest(),
            "body": body,
            "words": search_index.words(exposed, content)["words"],
            "text": content["description"],
            "tool": (n, server_id, content["name"], exposed, state, published, n, *rest),
        }


def definition(n: int, dice: random.Random) -> dict[str, Any]:
    verb, thing = dice.choice(VERBS), dice.choice(THINGS)
    about = " ".join(f"term{dice.randrange(3000)}" for _ in range(120))
    destroys = verb in ("delete", "archive", "merge")
    return {
        "name": f"{verb}_{thing}_{n}",
        "title": f"{verb.capitalize()} a {thing}",
        "description": f"{verb.capitalize()}s one {thing} of the office. See {about}.",
        "inputSchema": {**SCHEMA, "description": thing},
        "annotations": {
            "readOnlyHint": verb in ("search", "list", "read", "get", "count"),
            "destructiveHint": destroys,
        },
    }


def superuser(data: Path) -> psycopg.Connection:
    postgres = Postgres(data)
    postgres.sockets = postgres._socket_directory()
    return psycopg.connect(postgres.url(SUPERUSER), autocommit=True)


@contextmanager
def opened(data: Path) -> Iterator[None]:
    """The house in this directory, migrated, with Django set up on it."""
    with services(data) as urls:
        os.environ |= urls | {
            "COUNTERSIGN_DATA": str(data),
            "COUNTERSIGN_HOSTS": "testserver",
            "DJANGO_SETTINGS_MODULE": "config.settings",
        }
        manage(["migrate", "--database", "owner", "-v", "0"], env={})
        manage(["grant_app_role"], env={})
        django.setup()
        yield


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--servers", type=int, default=200)
    parser.add_argument("--tools", type=int, default=10_000)
    parser.add_argument("--calls", type=int, default=1_000_000)
    parser.add_argument("--months", type=int, default=1)
    parser.add_argument("--held", type=int, default=HELD, help="how many calls are pending")
    options = parser.parse_args()
    with opened(options.data):
        began = time.monotonic()
        with superuser(options.data) as link:
            if options.months > 1:
                make_past_months(link, options.months)
            fill(
                link,
                servers=options.servers,
                tools=options.tools,
                calls=options.calls,
                days=DAYS * options.months,
                held=options.held,
            )
        print(f"{options.calls:,} calls in {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
