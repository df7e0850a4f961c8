import os
import re
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import psutil
import psycopg
import pytest

from config.embedded import wal_archive
from config.embedded.postgres import APP, OWNER, SUPERUSER, Postgres
from config.embedded.service import CannotStart, wait_until
from config.embedded.valkey import Valkey
from config.record_figures import GAUGES
from core import die_with_parent
from tests.config.up import ROOT, all_gone
from tests.services import running, services

FAST = {"fsync": "off", "shared_buffers": "16MB"}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.mkdir(mode=0o711)
    return path


@pytest.mark.long
def test_nobody_connects_without_the_password(data):
    with services(data) as urls:
        password = re.search(r":(\w+)@", urls["DATABASE_URL"])
        assert password
        wrong = urls["DATABASE_URL"].replace(password[1], "wrong")

        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(wrong)


def test_no_password_can_be_read_from_the_list_of_processes(data):
    valkey = Valkey(data)
    with running(valkey, data / "log") as process:
        arguments = " ".join(psutil.Process(process.pid).cmdline())

    assert valkey.password not in arguments


@pytest.mark.long
def test_it_listens_on_a_unix_socket_and_on_no_port(data):
    with running(Postgres(data, settings=FAST), data / "log") as process:
        connections = psutil.Process(process.pid).net_connections(kind="inet")

    assert connections == []


@pytest.mark.long
def test_the_owner_is_no_superuser_and_may_end_the_applications_sessions(data):
    postgres = Postgres(data, settings=FAST)
    with running(postgres, data / "log"):
        postgres.make_roles()
        with (
            psycopg.connect(postgres.url(OWNER), autocommit=True) as owner,
            psycopg.connect(postgres.url(APP)) as app,
        ):
            pid = app.info.backend_pid
            ended = owner.execute("SELECT pg_terminate_backend(%s)", [pid]).fetchone()
            superuser = owner.execute(
                "SELECT rolsuper FROM pg_roles WHERE rolname = current_user"
            ).fetchone()

    assert (ended, superuser) == ((True,), (False,))


@pytest.mark.long
def test_committed_rows_outlive_kill_9_of_everything(data):
    postgres = Postgres(data)
    with running(postgres, data / "log") as process:
        postgres.make_roles()
        with psycopg.connect(postgres.url(OWNER)) as connection:
            connection.execute("CREATE TABLE kept AS SELECT 1 AS n")
        open_one = psycopg.connect(postgres.url(OWNER))
        open_one.execute("INSERT INTO kept VALUES (2)")
        family = [psutil.Process(process.pid), *psutil.Process(process.pid).children()]
        for member in family:
            member.kill()
        process.wait()
        open_one.close()

    with running(Postgres(data), data / "log"):
        assert rows(postgres) == [(1,)]


@pytest.mark.long
def test_a_server_left_over_from_an_earlier_run_is_ended(data):
    left = Postgres(data, settings=FAST)
    left.prepare()
    argv, env = left.command()
    process = subprocess.Popen(argv, env=env, stderr=subprocess.DEVNULL)
    assert wait_until(lambda: left.is_ready(process.pid), seconds=10)

    Postgres(data, settings=FAST).prepare()

    assert process.wait(10) == 0


@pytest.mark.long
def test_an_archive_that_cannot_be_written_is_seen_and_ends_once_it_can(data, monkeypatch):
    (gauge,) = (one for one in GAUGES if one.name == "countersign_wal_archive_failing_seconds")
    archive = data.parent / "archive"
    monkeypatch.setenv("COUNTERSIGN_WAL_ARCHIVE", str(archive))
    postgres = Postgres(data, settings=FAST | wal_archive.settings())
    with running(postgres, data / "log"):
        postgres.make_roles()
        with (
            psycopg.connect(postgres.url(SUPERUSER, "postgres"), autocommit=True) as superuser,
            psycopg.connect(postgres.url(APP), autocommit=True) as app,
        ):

            def fails() -> bool:
                # Each finished file is tried.
                superuser.execute("SELECT pg_logical_emit_message(true, '', ''), pg_switch_wal()")
                row = app.execute(gauge.sql).fetchone()
                return bool(row and row[0] > 0)

            assert app.execute(gauge.sql).fetchone() == (0,)
            assert wait_until(fails, seconds=60)

            archive.mkdir()
            archive.chmod(0o777)
            assert wait_until(lambda: not fails(), seconds=120)
            assert any(archive.iterdir())


@pytest.mark.long
def test_somebody_elses_process_with_the_old_number_is_let_alone(data):
    postgres = Postgres(data, settings=FAST)
    with running(postgres, data / "log") as process:
        process.kill()
        process.wait()
    innocent = subprocess.Popen(["sleep", "60"])
    try:
        note = data / "postgres" / "postmaster.pid"
        lines = note.read_text().splitlines()
        note.write_text("\n".join([str(innocent.pid), *lines[1:]]) + "\n")

        with running(Postgres(data, settings=FAST), data / "log"):
            assert innocent.poll() is None
    finally:
        innocent.kill()
        innocent.wait()


@pytest.mark.long
def test_a_path_too_long_for_a_socket_does_not_matter(tmp_path):
    data = tmp_path / ("long" * 25)
    data.mkdir(mode=0o711)
    postgres = Postgres(data, settings=FAST)
    with running(postgres, data / "log"):
        postgres.make_roles()

        with psycopg.connect(postgres.url(APP)) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
    assert postgres.sockets
    assert len(str(postgres.sockets)) < 40
    assert postgres.sockets.stat().st_mode & 0o777 == 0o700


@pytest.mark.long
def test_data_of_another_version_is_refused_and_left_as_it_is(data):
    with running(Postgres(data, settings=FAST), data / "log"):
        pass
    version = data / "postgres" / "PG_VERSION"
    version.write_text("17\n")

    with pytest.raises(CannotStart, match=r"made by PostgreSQL 17 and this release brings \d+"):
        Postgres(data, settings=FAST).prepare()

    assert version.read_text() == "17\n"


SUPERVISOR = textwrap.dedent(
    """
    import os, signal, subprocess, sys
    from core import die_with_parent
    # As a shell does with what it starts in the background.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.argv[1] == "pipe":
        pipe = os.pipe()
        die_with_parent.lifelines = lambda: pipe[:1]
    argv = die_with_parent.command(["/bin/sleep", "60"], signal=signal.SIGINT)
    child = subprocess.Popen(argv, pass_fds=die_with_parent.lifelines())
    print(child.pid, flush=True)
    child.wait()
    """
)


@pytest.mark.parametrize("way", ["death signal", "pipe"])
def test_a_child_ends_with_a_supervisor_that_was_killed(way):
    supervisor = subprocess.Popen(
        [sys.executable, "-c", SUPERVISOR, way],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert supervisor.stdout
    child = psutil.Process(int(supervisor.stdout.readline()))
    # Until it is what it shall become, it is Python on its way there.
    assert wait_until(lambda: child.name() == "sleep", seconds=10)

    supervisor.kill()

    supervisor.wait()
    supervisor.stdout.close()
    assert all_gone([child, *child.children()] if child.is_running() else [])


def test_nothing_starts_for_a_parent_that_is_gone():
    argv = die_with_parent.command(["/bin/sleep", "60"], signal=signal.SIGINT)
    argv[argv.index(str(os.getpid()))] = "1"

    result = subprocess.run(argv, capture_output=True, text=True, check=False)

    assert "the parent ended before its child began" in result.stderr


def rows(postgres: Postgres) -> list[tuple[object, ...]]:
    with psycopg.connect(postgres.url(OWNER)) as connection:
        return connection.execute("SELECT n FROM kept").fetchall()
