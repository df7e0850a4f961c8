"""Group commit: shared transactions, separate fates."""

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
import uvloop
from psycopg import sql

from core.errors import RecordUnavailable
from core.journal import GroupCommit, Statement
from core.pipeline import Pipeline

PUT = Statement(
    "put",
    """
    INSERT INTO notes (id, text) SELECT id, text FROM json_to_recordset(%s::json)
    AS r(id text, text text) ON CONFLICT DO NOTHING RETURNING id, text, pg_current_xact_id()::text
    """,
    order=1,
)
MARK = Statement(
    "mark",
    """
    UPDATE notes SET text = r.text FROM json_to_recordset(%s::json) AS r(id text, text text)
    WHERE notes.id = r.id RETURNING notes.id, notes.text, pg_current_xact_id()::text
    """,
    order=2,
)


ASKED = [("SELECT %s::text, pg_backend_pid()", [b""])]


@pytest.fixture
def url(fresh_database: dict[str, str]) -> str:
    with psycopg.connect(fresh_database["DATABASE_OWNER_URL"], autocommit=True) as owner:
        owner.execute("CREATE TABLE notes (id text PRIMARY KEY, text text CHECK (text <> 'bad'))")
        role = psycopg.conninfo.conninfo_to_dict(fresh_database["DATABASE_URL"])["user"]
        owner.execute(sql.SQL("GRANT ALL ON notes TO {}").format(sql.Identifier(str(role))))
    return fresh_database["DATABASE_URL"]


@pytest.fixture
async def journal(url: str) -> AsyncIterator[GroupCommit]:
    journal = GroupCommit(url)
    yield journal
    await journal.aclose()


def notes(url: str) -> dict[str, str]:
    with psycopg.connect(url) as connection:
        return dict(connection.execute("SELECT id, text FROM notes").fetchall())


def note(number: int, text: str = "good") -> tuple[Statement, dict[str, Any]]:
    return PUT, {"id": str(number), "text": text}


async def test_what_arrives_together_shares_a_commit(journal: GroupCommit, url: str) -> None:
    await journal.write(note(0))

    answers = await asyncio.gather(*(journal.write(note(n)) for n in range(1, 101)))

    transactions = {row[2] for (row,) in answers if row}
    assert len(transactions) < 10
    assert len(notes(url)) == 101


async def test_a_crowd_shares_both_connections(journal: GroupCommit) -> None:
    answers = await asyncio.gather(*(journal.write(note(n)) for n in range(400)))

    transactions = Counter(row[2] for (row,) in answers if row)
    assert transactions.total() == 400
    assert max(transactions.values()) == 200


async def test_lines_of_one_write_stand_or_fall_together(journal: GroupCommit, url: str) -> None:
    with pytest.raises(psycopg.errors.CheckViolation):
        await journal.write(note(1), (MARK, {"id": "1", "text": "bad"}))

    assert notes(url) == {}


async def test_a_bad_line_does_not_take_its_neighbours_with_it(
    journal: GroupCommit, url: str
) -> None:
    writes = [journal.write(note(n, "bad" if n == 5 else "good")) for n in range(10)]

    answers = await asyncio.gather(*writes, return_exceptions=True)

    failures = [n for n, answer in enumerate(answers) if isinstance(answer, Exception)]
    assert failures == [5]
    assert len(notes(url)) == 9


async def test_two_writes_about_one_row_keep_their_order(journal: GroupCommit, url: str) -> None:
    await journal.write(note(1))

    await asyncio.gather(*(journal.write((MARK, {"id": "1", "text": str(n)})) for n in range(20)))

    assert notes(url) == {"1": "19"}


async def test_a_line_that_changes_nothing_is_told_so(journal: GroupCommit) -> None:
    first, second = await journal.write(note(1)), await journal.write(note(1))

    assert first[0] is not None
    assert second == [None]


async def test_it_goes_on_after_its_connection_was_cut(journal: GroupCommit, url: str) -> None:
    await journal.write(note(1))
    with psycopg.connect(url, autocommit=True) as same_role:
        same_role.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = 'countersign journal' AND datname = current_database()"
        )

    await journal.write(note(2), within=30)

    assert set(notes(url)) == {"1", "2"}


def test_a_connection_that_is_reset_is_over_for_uvloop_too(url: str) -> None:
    async def reset() -> None:
        pipeline = Pipeline(await psycopg.AsyncConnection.connect(url, autocommit=True))
        ((_, pid),) = (await pipeline.transact(ASKED))[0]
        # What it is sent now it never reads, and so its end resets the connection.
        os.kill(pid, signal.SIGSTOP)
        waiting = asyncio.create_task(pipeline.transact(ASKED))
        await asyncio.sleep(0)
        os.kill(pid, signal.SIGTERM)
        os.kill(pid, signal.SIGCONT)

        async with asyncio.timeout(20):
            with pytest.raises(psycopg.OperationalError):
                await waiting

        assert pipeline.is_over
        await pipeline.aclose()

    uvloop.run(reset())


async def test_it_says_so_when_the_record_cannot_be_written_in_time() -> None:
    journal = GroupCommit("postgresql://nobody@127.0.0.1:1/nowhere?connect_timeout=1")

    with pytest.raises(RecordUnavailable, match="nothing was sent"):
        await journal.write(note(1), within=0.2)

    await journal.aclose()


async def test_lines_larger_than_a_socket_takes_are_written_too(
    journal: GroupCommit, url: str
) -> None:
    text = "x" * (8 * 1024 * 1024)

    (answer,) = await journal.write(note(1, text), within=30)

    assert answer is not None
    assert answer[1] == text
    assert len(notes(url)["1"]) == len(text)


async def test_a_statement_that_failed_can_be_used_again(journal: GroupCommit, url: str) -> None:
    """Whatever of it the database remembers from the first time."""
    for number in range(3):
        with pytest.raises(psycopg.errors.CheckViolation):
            await journal.write(note(number, "bad"), (MARK, {"id": "1", "text": "good"}))

    await journal.write(note(9), (MARK, {"id": "9", "text": "better"}))

    assert notes(url) == {"9": "better"}
