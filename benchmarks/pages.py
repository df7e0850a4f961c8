"""The console's pages in a large house: how many queries, by which plans, and how long.

`python -m benchmarks.pages DIRECTORY` reads what `python -m benchmarks.crowd DIRECTORY` filled.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from benchmarks.crowd import opened

QUERIES_MAX = 12
# Never read from end to end while somebody waits for a page. The rows of tools are short, and a
# word that many of them have is ranked over all that have it.
LARGE = {
    "audit_entryrow",
    "calls_call",
    "calls_result",
    "approvals_approval",
    "registry_listing",
    "registry_definition",
}
EMPTY = "SELECT relname FROM pg_class WHERE relispartition AND pg_relation_size(oid) = 0"
# By the page, its filters one by one, each with a value that the crowd has.
FILTERS = {
    "/catalogue/": {
        "q": ["invoice", "send customer", "archiv", "invioce", "xyzzy"],
        "server": ["invoice-25"],
        "risk": ["destroys", "reads"],
        "hint": ["destructive", "open"],
        "state": ["unpublished", "published", "retired"],
        "owner": ["person-3"],
        "tag": ["none"],
        "used": ["yes", "no"],
        "toolset": ["none"],
    },
    "/queue/": {},
    "/calls/": {
        "state": ["live", "unknown", "succeeded", "timed_out", "denied", "running", "resolved"],
        "agent": ["agent-1", "agent-59"],
        "tool": ["{tool}"],
        "since": ["2026-01-01T00:00"],
        "range": ["1h", "30d"],
        "order": ["oldest", "oldest&agent=agent-1", "oldest&state=timed_out"],
    },
    "/audit/": {
        "person": ["person-3"],
        "agent": ["agent-1", "agent-59"],
        "behalf": ["person-3"],
        "tool": ["{tool}"],
        "server": ["invoice-25"],
        "version": ["0123456789abcdef"],
        "action": ["call.denied", "token.revoked"],
        "decision": ["allow", "ask", "deny"],
        "rule": ["Everyday work", "Nothing leaves the house"],
        "state": ["succeeded", "timed_out", "unknown", "withdrawn"],
        "range": ["1h", "24h", "7d", "30d", "yesterday"],
        "text": ["limit"],
        "group": ["call", "call&agent=agent-1", "call&state=timed_out", "call&decision=deny"],
    },
}
SINGLE = [
    "/overview/",
    "/overview/?range=1h",
    "/overview/?range=7d",
    "/overview/?range=30d",
    "/overview/?range=90d",
    "/servers/",
    "/servers/invoice-25/",
    "/servers/invoice-25/trouble/",
    *(f"/servers/invoice-25/usage/?range={name}" for name in ("1h", "90d")),
    *(f"/agents/agent-1/usage/?range={name}" for name in ("1h", "90d")),
    "/people/{voter}/decisions/?range=90d",
    "/policies/covers/?server=*&tool=*",
    "/policies/covers/?server=invoice-25&tool=*",
    "/policies/covers/?server=*&tool=*&agents=1",
    "/policies/covers/?server=*&tool=*&hint=destructive",
    "/policies/picks/tool/?tool=a&server=*",
    "/policies/picks/server/?server=invoice",
    "/policies/picks/exposed/?tool=invoice",
    "/policies/explain/",
    "/new/rule/",
    *(f"/policies/{{rule}}/usage/?range={name}" for name in ("1h", "90d")),
    "/tools/{tool}/",
    "/tools/{tool}/versions/",
    "/tools/{tool}/usage/",
    "/tools/{tool}/calls/",
    "/tools/{tool}/try/",
    "/calls/{call}/",
]


@dataclass(frozen=True)
class Seen:
    path: str
    queries: int
    # Large tables that a plan reads from end to end, with the query that does.
    scans: list[str]
    # The queries, as they begin.
    asked: list[str]


def paths(*, tool: str, call: str, rule: int, voter: int) -> Iterator[str]:
    """Every page alone, and with any single filter."""
    for page, filters in FILTERS.items():
        yield page
        for name, values in filters.items():
            for value in values:
                yield f"{page}?{name}={value.format(tool=tool)}".replace(" ", "+")
    for page in SINGLE:
        yield page.format(tool=tool, call=call, rule=rule, voter=voter)


def look(client: Any, path: str) -> Seen:
    """What one reading of the page asks the database, and how that would be answered."""
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    with CaptureQueriesContext(connection) as captured:
        response = client.get(path)
    assert response.status_code == 200, (path, response.status_code)
    asked = [query["sql"] for query in captured.captured_queries]
    read = [sql for sql in asked if sql.lstrip().startswith(("SELECT", "WITH"))]
    scans = [scan for sql in read for scan in _scans(sql)]
    return Seen(path, len(read), scans, [sql.strip()[:60] for sql in read])


def _scans(sql: str) -> Iterator[str]:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN (FORMAT JSON) " + sql)
        (found,) = cursor.fetchone()
        # Of the months to come nothing can be read.
        cursor.execute(EMPTY)
        empty = {name for (name,) in cursor.fetchall()}
    plan = found if isinstance(found, list) else orjson.loads(found)
    for node in nodes(plan[0]["Plan"]):
        name = node.get("Relation Name", "")
        if node["Node Type"] == "Seq Scan" and _table(name) in LARGE and name not in empty:
            yield f"{name}: {sql[:2000]}"


def _table(name: str) -> str:
    """Of which a partition is one."""
    return re.sub(r"_(first|later|\d{4}_\d\d)$", "", name)


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)


def p95_ms(client: Any, path: str, times: int) -> float:
    took = []
    for _ in range(times):
        began = time.perf_counter()
        client.get(path)
        took.append(1000 * (time.perf_counter() - began))
    return sorted(took)[int(0.95 * (times - 1))]


def visitor() -> Any:
    """Somebody who may see everything, signed in."""
    from django.contrib.auth.models import Group
    from django.test import Client

    from accounts.models import RoleChange, User
    from accounts.roles import ensure_roles

    ensure_roles()
    person, _made = User.objects.get_or_create(username="visitor")
    person.groups.set(Group.objects.all())
    # For a week, cards would ask once more for a role that is new.
    RoleChange.objects.filter(person=person).delete()
    client = Client()
    client.force_login(person)
    return client


def some() -> dict[str, Any]:
    """The tool that is called most, a call, a rule and a voter."""
    from accounts.models import User
    from calls.models import Call
    from policies.models import Rule
    from registry.models import Tool

    # Who voted in the crowd (benchmarks/crowd.py).
    voter, _made = User.objects.get_or_create(username="person-1")
    rule, _made = Rule.objects.get_or_create(name="Everyday work", defaults={"effect": "allow"})
    call = Call.objects.filter(state="succeeded").first()
    assert call
    return {
        "tool": Tool.objects.order_by("pk")[0].exposed_name,
        "call": str(call.pk),
        "rule": rule.pk,
        "voter": voter.pk,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--times", type=int, default=20)
    options = parser.parse_args()
    with opened(options.data):
        client = visitor()
        worst = 0
        print(f"{'page':<44}{'queries':>9}{'p95 ms':>9}")
        for path in paths(**some()):
            seen = look(client, path)
            took = p95_ms(client, path, options.times)
            print(f"{path:<44}{seen.queries:>9}{took:>9.0f}")
            for scan in seen.scans:
                print(f"    reads all of {scan}")
            worst += bool(seen.scans) or seen.queries > QUERIES_MAX
    raise SystemExit(worst)


if __name__ == "__main__":
    main()
