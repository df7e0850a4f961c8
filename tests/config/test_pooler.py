"""PgBouncer in front of the database: where session state fails, the start is blocked."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from config import children
from config.session_check import (
    APART,
    BESIDE,
    OPTIONS,
    REMEDY,
    STATEMENTS,
    TRANSACTIONS,
    check_session,
)
from core.connections import PAGES_SETTINGS
from tests.config.conftest import Manage
from tests.config.up import ROOT
from tests.database import Databases
from tests.pooler import Pooler, needed, newer, older

PLAIN = "ignore_startup_parameters = options"
Start = Callable[..., str]


@pytest.fixture
def pooler(urls: dict[str, str]) -> Iterator[Start]:
    """Starts one in front of the database; its URL."""
    with tempfile.TemporaryDirectory() as name, ExitStack() as started:
        os.chmod(name, 0o755)

        def start(mode: str, more: str = "") -> str:
            made = Pooler(Path(name), urls["DATABASE_URL"], mode, more)
            started.callback(made.kill)
            return made.url

        yield start


@pytest.fixture
def direct(urls: dict[str, str], databases: Databases) -> str:
    """PostgreSQL itself, whose role has what a pooler does not pass on."""
    give_settings(databases, urls)
    return urls["DATABASE_URL"]


def give_settings(databases: Databases, urls: dict[str, str]) -> None:
    parts = conninfo_to_dict(urls["DATABASE_URL"])
    with databases.superuser(urls) as admin:
        for name, value in PAGES_SETTINGS.items():
            admin.execute(
                f"ALTER ROLE {parts['user']} IN DATABASE {parts['dbname']} SET {name} = {value}"
            )


def test_the_database_itself_is_accepted(urls: dict[str, str]) -> None:
    url, nowhere = urls["DATABASE_URL"], "postgresql://nobody@/nothing?host=/nowhere"
    assert check_session(url, url) == ""
    # Others say what is wrong then.
    assert check_session(nowhere, nowhere) == ""
    assert check_session(nowhere, url) == ""


@pytest.mark.long
@needed
@pytest.mark.parametrize(
    ("mode", "more", "said"),
    [
        ("session", "", OPTIONS),
        ("transaction", "", OPTIONS),
        ("session", PLAIN, OPTIONS),
        ("transaction", PLAIN, TRANSACTIONS),
    ],
)
def test_a_pooler_that_loses_session_state_is_named(
    pooler: Start, direct: str, mode: str, more: str, said: str
) -> None:
    url = pooler(mode, more)

    assert check_session(url, url) == said.format("DATABASE_URL", BESIDE)
    # What has to be PostgreSQL itself is another one.
    other = pooler(mode, more)
    assert check_session(direct, other) == said.format("DATABASE_DIRECT_URL", REMEDY)


@pytest.mark.long
@newer
def test_a_newer_pooler_is_taken_beside_postgresql_itself(pooler: Start, direct: str) -> None:
    assert check_session(pooler("transaction"), direct) == ""
    assert check_session(pooler("session"), direct) == ""


@pytest.mark.long
@pytest.mark.parametrize(
    "more",
    [pytest.param("", marks=older), pytest.param("max_prepared_statements = 0", marks=newer)],
)
@pytest.mark.parametrize("turns", ["", "server_round_robin = 1"])
def test_a_pooler_that_keeps_no_prepared_statements_is_named(
    pooler: Start, direct: str, more: str, turns: str
) -> None:
    assert check_session(pooler("transaction", f"{more}\n{turns}"), direct) == STATEMENTS


@pytest.mark.long
@newer
def test_a_role_without_the_settings_is_named_with_what_to_run(
    pooler: Start, urls: dict[str, str]
) -> None:
    said = check_session(pooler("transaction"), urls["DATABASE_URL"])

    role = conninfo_to_dict(urls["DATABASE_URL"])["user"]
    assert f'"ALTER ROLE {role} SET plan_cache_mode = force_custom_plan;"' in said
    assert f'"ALTER ROLE {role} SET random_page_cost = 1.1;"' in said


@pytest.mark.long
@needed
def test_two_addresses_of_two_databases_are_named(pooler: Start, databases: Databases) -> None:
    other = databases.clone()
    try:
        assert check_session(pooler("transaction"), other["DATABASE_URL"]) == APART
    finally:
        databases.drop(other)


@pytest.mark.long
@needed
def test_nothing_is_prepared_behind_such_a_pooler(manage: Manage, pooler: Start) -> None:
    url = pooler("transaction", PLAIN)

    blocked = manage("prepare", "--only-migrate", DATABASE_URL=url)

    assert blocked.returncode == 1
    assert TRANSACTIONS.format("DATABASE_URL", BESIDE) in blocked.stderr


@pytest.mark.long
@needed
@pytest.mark.parametrize(
    "argv",
    [
        children.web("127.0.0.1", 0),
        children.agents("127.0.0.1", 0),
        children.worker(),
        children.beat(),
        children.seal(),
    ],
    ids=["web", "agents", "worker", "beat", "seal"],
)
def test_no_process_starts_behind_such_a_pooler(pooler: Start, argv: list[str]) -> None:
    """Each host may have an address of the database of its own."""
    url = pooler("transaction", PLAIN)

    blocked = subprocess.run(
        argv,
        cwd=ROOT,
        env={**os.environ, "DATABASE_URL": url},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert blocked.returncode != 0
    assert TRANSACTIONS.format("DATABASE_URL", BESIDE) in blocked.stderr
