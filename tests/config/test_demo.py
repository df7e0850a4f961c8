"""A demo's database: marked from its birth, filled at once, and never taken for a real record."""

import json
import os
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jsonschema_rs
import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from audit.verify import DEMO_NOTE
from config.demo.month import DAYS, PENDING, PlannedDecision, draw
from config.demo.work import JOBS
from tests.database import Databases, manage, python

NOW = datetime(2026, 11, 26, 17, 0, tzinfo=UTC)
# A real record, and one of which nobody knows yet that it is a demo's.
REFUSED = "holds a real record"
# As 30, in a quarter of the time.
FEW = int(os.environ.get("DEMO_DAYS", "8"))
IS_DEMO = "import django; django.setup(); from audit.demo import is_demo; print(is_demo())"
PAGES = [
    "/overview/?range=30d",
    "/queue/",
    "/calls/",
    "/audit/",
    "/audit/who-ran-what/?agent=scout",
    "/catalogue/",
    "/settings/",
]


def superuser(databases: Databases, urls: dict[str, str]) -> str:
    with psycopg.connect(urls["DATABASE_URL"]) as link:
        return make_conninfo(**{**databases.admin, "dbname": link.info.dbname})


@pytest.fixture(scope="module")
def demo(
    databases: Databases, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, str]]:
    data = tmp_path_factory.mktemp("demo")
    urls = databases.empty()
    env = urls | {"COUNTERSIGN_DATA": str(data), "COUNTERSIGN_SEAL_KEY_FILE": str(data / "key")}
    try:
        manage(["prepare", "--demo", "--examples"], env=env)
        manage(
            ["fill_demo", "--days", str(FEW)],
            env={**env, "DATABASE_URL": superuser(databases, urls)},
        )
        manage(["audit_seal"], env={**env, "DATABASE_URL": databases.seal_url(urls)})
        yield env
    finally:
        databases.drop(urls)


@pytest.mark.long
def test_the_same_month_is_drawn_every_time() -> None:
    assert draw(NOW) == draw(NOW)


def test_the_month_has_days_and_nights_and_weekends() -> None:
    calls = [one for one in draw(NOW) if one.job.agent == "scout"]

    assert not any(one.at.hour < 7 or one.at.hour > 18 for one in calls)
    by_day = Counter(one.at.weekday() for one in calls)
    assert by_day[5] + by_day[6] < by_day[1] / 4
    assert {one.at.date() for one in draw(NOW)} >= {
        (NOW - timedelta(days=day)).date() for day in range(DAYS)
    }


@pytest.mark.long
def test_something_is_pending_whatever_the_hour() -> None:
    for hour in range(24):
        drawn = draw(datetime(2026, 11, 29, hour, tzinfo=UTC), days=7)
        pending = Counter(one.job.tool for one in drawn if one.verdict == PlannedDecision.PENDING)
        assert pending == PENDING


@pytest.mark.long
def test_a_real_record_is_never_filled_or_marked(
    databases: Databases, fresh_database: dict[str, str]
) -> None:
    with pytest.raises(SystemExit, match=REFUSED):
        manage(["prepare", "--demo"], env=fresh_database)
    root = superuser(databases, fresh_database)
    with pytest.raises(SystemExit, match=REFUSED):
        manage(["fill_demo"], env={**fresh_database, "DATABASE_URL": root})

    with psycopg.connect(fresh_database["DATABASE_URL"]) as link:
        assert link.execute("SELECT count(*) FROM calls_call").fetchone() == (0,)
        assert link.execute("SELECT name FROM audit_origin WHERE name ~ '^demo'").fetchall() == []


@pytest.mark.long
def test_a_demo_that_is_sealed_is_not_filled_any_more(databases: Databases, tmp_path: Path) -> None:
    urls = databases.empty()
    env = urls | {
        "COUNTERSIGN_DATA": str(tmp_path),
        "COUNTERSIGN_SEAL_KEY_FILE": str(tmp_path / "k"),
    }
    try:
        manage(["prepare", "--demo"], env=env)
        manage(["audit_seal"], env={**env, "DATABASE_URL": databases.seal_url(urls)})
        with pytest.raises(SystemExit, match="are sealed"):
            manage(["fill_demo"], env={**env, "DATABASE_URL": superuser(databases, urls)})
    finally:
        databases.drop(urls)


@pytest.mark.long
def test_each_call_is_decided_by_the_rules_of_its_time_as_it_is_recorded(
    demo: dict[str, str],
) -> None:
    found = json.loads(python("-m", "tests.gateway.time_travel", env=demo))

    assert found["differing"] == []
    assert found["total"] == found["exact"] == found["calls"] > 100
    assert found["effects"] == ["allow", "ask", "deny"]


@pytest.mark.long
def test_every_tool_of_the_month_takes_its_arguments(demo: dict[str, str]) -> None:
    with psycopg.connect(demo["DATABASE_URL"]) as link:
        known = {
            name: json.loads(bytes(body) if isinstance(body, memoryview) else body)
            for name, body in link.execute(
                "SELECT t.exposed_name, d.body FROM registry_tool t"
                " JOIN registry_definition d ON d.id = t.published_id"
            )
        }
    for plan in draw(NOW, days=3):
        schema = known[plan.job.tool]["inputSchema"]
        jsonschema_rs.validate(schema, plan.arguments)
    assert {job.tool for job in JOBS} <= known.keys()


@pytest.mark.long
def test_it_is_full_and_filled_once(databases: Databases, demo: dict[str, str]) -> None:
    def counted(link: psycopg.Connection[Any]) -> dict[str, int]:
        return dict(link.execute("SELECT state, count(*) FROM calls_call GROUP BY 1").fetchall())

    with psycopg.connect(demo["DATABASE_URL"], autocommit=True) as link:
        before = counted(link)
        manage(["fill_demo"], env={**demo, "DATABASE_URL": superuser(databases, demo)})
        assert counted(link) == before
        days = link.execute("SELECT count(DISTINCT asked_at::date) FROM calls_call").fetchone()
        used = link.execute("SELECT count(*) FROM registry_tool WHERE used_on IS NOT NULL")
        assert used.fetchone() == (len({job.tool for job in JOBS}),)

    assert before["succeeded"] > 1500
    assert before.keys() >= {"held", "denied", "expired", "refused", "failed", "timed_out"}
    assert days is not None
    assert days[0] >= FEW


@pytest.mark.long
def test_verification_holds_and_says_that_it_proves_nothing(
    demo: dict[str, str], tmp_path: Path
) -> None:
    said = manage(["audit_verify"], env=demo)
    assert said.startswith(DEMO_NOTE)
    assert "entries hold, by" in said

    export = tmp_path / "record.jsonl"
    manage(["audit_export", str(export)], env=demo)
    (key,) = manage(["audit_key"], env=demo).splitlines()
    assert key.startswith("demo.countersign.invalid/")
    said = python("-m", "audit.verify", str(export), "--key", key, env=demo)
    assert said.startswith(DEMO_NOTE)
    with export.open() as file:
        assert json.loads(next(file))["checkpoint"].startswith("demo.countersign.invalid/")


@pytest.mark.long
def test_the_mark_cannot_be_removed(databases: Databases, demo: dict[str, str]) -> None:
    with psycopg.connect(demo["DATABASE_OWNER_URL"], autocommit=True) as owner:
        for change in (
            "UPDATE audit_origin SET name = 'countersign.invalid/real'",
            "DELETE FROM audit_origin",
            "TRUNCATE audit_origin",
        ):
            with pytest.raises(psycopg.errors.RaiseException, match="never changed"):
                owner.execute(change)
    # Who may do everything renames it: its key and all that it signed still bear the mark.
    with databases.superuser(demo) as root:
        root.execute("SET session_replication_role = replica")
        root.execute("UPDATE audit_origin SET name = replace(name, 'demo.', '')")
        try:
            assert manage(["audit_verify"], env=demo).startswith(DEMO_NOTE)
            assert python("-c", IS_DEMO, env=demo) == "True\n"
        finally:
            root.execute("UPDATE audit_origin SET name = 'demo.' || name")


@pytest.mark.long
def test_every_page_export_and_probe_is_marked(demo: dict[str, str]) -> None:
    told = json.loads(python("-m", "tests.config.demo_pages", json.dumps(PAGES), env=demo))

    assert told["pages"] == dict.fromkeys(["/sign-in/", *PAGES], True)
    for disposition, first, second in told["exports"].values():
        assert "countersign-demo-entries-" in disposition
        assert DEMO_NOTE in first
        assert "scout" in second or second.startswith("id,")
    assert told["health"] == {"status": "ok", "demo": True}
