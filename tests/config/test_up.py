import contextlib
import json
import os
import pwd
import re
import signal
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from config.embedded.postgres import APP, MAINTENANCE, OWNER, SUPERUSER
from config.embedded.service import wait_until
from tests.config.up import ROOT, Up, all_gone, bare_environment, status


@pytest.fixture(scope="module")
def public_directory() -> Iterator[Path]:
    """pytest's directories are for their owner only; PostgreSQL may run as somebody else."""
    with tempfile.TemporaryDirectory(prefix="countersign-up-") as name:
        path = Path(name)
        path.chmod(0o755)
        yield path


@pytest.fixture(scope="module")
def up(public_directory: Path) -> Iterator[Up]:
    with Up(public_directory / "data") as running:
        yield running


def test_it_greets_with_how_to_connect_and_no_secret_in_a_log(up):
    assert up.found(r"(claude mcp add \S+ http countersign \S+)")
    assert "A new sign-in link: python3 manage.py sign_in_link" in up.text()
    assert "A new token: python3 manage.py issue_token demo" in up.text()
    assert not re.search(r"/sign-in/|csa_\w", up.text())
    assert up.is_healthy()


@pytest.mark.long
def test_without_a_terminal_every_line_is_a_json_object(up):
    assert up.says(" ready.")

    lines = [json.loads(line) for line in up.text().splitlines()]
    assert {"up", "postgres", "worker"} <= {line["process"] for line in lines}
    for line in lines:
        assert {"time", "level", "logger", "call_id", "message"} <= line.keys(), line


def test_no_process_is_handed_the_password_of_owner_or_superuser(up):
    passwords = json.loads((up.data / "passwords.json").read_text())

    assert_nobody_has(up, passwords[OWNER], passwords[SUPERUSER], passwords[MAINTENANCE])
    # It sees what there is to see.
    assert holding(up, [passwords[APP]])
    assert passwords[OWNER] not in (up.data / "services.json").read_text()


def assert_nobody_has(up: Up, *secrets: str) -> None:
    # Between fork and exec a process still shows its parent's environment.
    assert wait_until(lambda: not holding(up, secrets), seconds=5), holding(up, secrets)


def holding(up: Up, secrets: Sequence[str]) -> list[list[str]]:
    """The command lines of those that were handed one of these."""
    found = []
    for process in up.family():
        with contextlib.suppress(psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
            about = Path(f"/proc/{process.pid}")
            seen = (about / "environ").read_bytes() + (about / "cmdline").read_bytes()
            if any(secret.encode() in seen for secret in secrets):
                found.append(process.cmdline())
    return found


def test_what_it_shares_only_its_owner_may_read(up):
    for name in ("services.json", "owner.json", "passwords.json", "secret.key"):
        assert stat.S_IMODE((up.data / name).stat().st_mode) == 0o600, name


def test_the_application_role_owns_nothing(up):
    shared = json.loads((up.data / "services.json").read_text())

    with psycopg.connect(shared["DATABASE_URL"]) as connection:
        role = connection.execute(
            "SELECT current_user, rolsuper, rolcreatedb, rolcreaterole FROM pg_roles"
            " WHERE rolname = current_user"
        ).fetchone()
        owned = connection.execute(
            "SELECT count(*) FROM pg_tables WHERE tableowner = current_user"
        ).fetchone()

    assert role == ("countersign_app", False, False, False)
    assert owned == (0,)


def beside(up: Up, *command: str) -> str:
    return subprocess.run(
        [*manage(), *command],
        cwd=ROOT,
        env=bare_environment() | {"COUNTERSIGN_DATA": str(up.data)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout


@pytest.mark.long
def test_other_commands_work_beside_it(up):
    assert beside(up, "sign_in_link").startswith(f"http://localhost:{up.port}/sign-in/")


@pytest.mark.long
def test_what_an_agent_does_is_sealed_by_the_sealer(up):
    # Without the examples every tool is one that there is not: refused, and in the record.
    assert beside(up, "demo_day").count(": Invalid request") == 10

    assert wait_until((up.data / "checkpoints").exists, seconds=30)
    said = beside(up, "audit_verify")
    assert "entries hold, by " in said
    assert said.startswith("0 ") is False


def test_only_the_sealer_is_told_how_to_seal_and_sign(up):
    sealer = up.child("config.seal").environ()
    assert "countersign_seal:" in sealer["DATABASE_URL"]
    key = Path(sealer["COUNTERSIGN_SEAL_KEY_FILE"])
    # Made by the sealer when it begins.
    assert wait_until(key.exists, seconds=30)
    assert key.stat().st_mode & 0o777 == 0o600
    assert sealer["COUNTERSIGN_SECRET_KEY"] == "the sealer has no use for it"
    for name in ("DATABASE_OWNER_URL", "REDIS_URL"):
        assert name not in sealer

    password = str(psycopg.conninfo.conninfo_to_dict(sealer["DATABASE_URL"])["password"])
    for word in ("config.web", "config.agents", "worker", "beat"):
        told = up.child(word).environ()
        assert "COUNTERSIGN_SEAL_KEY_FILE" not in told, word
        assert "DATABASE_SEAL_URL" not in told, word
        assert password not in str(told), word
    assert password not in (up.data / "services.json").read_text()
    assert stat.S_IMODE((up.data / "seal").stat().st_mode) == 0o700


@pytest.mark.long
def test_sealing_by_hand_works_beside_it(up):
    assert beside(up, "audit_seal").endswith(" entries sealed.\n")


def test_a_second_start_is_refused_with_the_address_of_the_first(up):
    second = Up(up.data)
    second.log = up.data.parent / "second.log"

    second.launch()

    assert second.ends() == os.EX_TEMPFAIL
    assert f"already running on {up.data}, at http://localhost:{up.port}" in second.text()
    assert up.is_healthy()


@pytest.mark.long
def test_it_starts_a_killed_child_again(up):
    for word in ("config.web", "worker"):
        killed = up.child(word)

        killed.kill()

        assert up.says("ended by itself (SIGKILL); starts again in 0.5 s")
        assert wait_until(lambda: replaced(up, word, killed.pid), seconds=30)  # noqa: B023 now
    assert wait_until(up.is_healthy, seconds=30)


@pytest.mark.long
def test_it_recovers_a_killed_database_with_what_was_committed(up):
    url = json.loads((up.data / "owner.json").read_text())["DATABASE_OWNER_URL"]
    with psycopg.connect(url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 42 AS answer")

    up.child("pginstall/bin/postgres").kill()

    assert wait_until(lambda: answer(url) == (42,), seconds=30)
    assert wait_until(up.is_healthy, seconds=30)


@pytest.mark.long
def test_after_kill_9_nothing_is_left_and_the_next_start_goes_on(up):
    family = up.family()

    up.process.kill()

    up.ends()
    assert all_gone(family)
    up.start()
    assert "Sign in " not in up.text()
    assert up.is_healthy()


@pytest.mark.long
def test_sigterm_stops_it_and_every_child(up):
    family = up.family()
    assert len(family) >= 6

    up.process.send_signal(signal.SIGTERM)

    assert up.ends() == 0
    assert all_gone(family, seconds=0)
    assert "killed" not in up.text()


def test_a_port_in_use_is_named(tmp_path):
    up = Up(tmp_path / "data")
    with socket.create_server(("127.0.0.1", up.agent_port)):
        up.launch()

        assert up.ends() == 1

    assert f"Port {up.agent_port} on 127.0.0.1 cannot be used" in up.text()
    assert "--agent-port" in up.text()
    assert not (tmp_path / "data" / "postgres").exists()


@pytest.mark.long
def test_it_uses_a_database_and_a_broker_that_are_given(tmp_path, fresh_database):
    given = {**fresh_database, "REDIS_URL": os.environ["REDIS_URL"], "NO_COLOR": "1"}

    with Up(tmp_path / "data", env=given, terminal=True) as up:
        assert up.is_healthy()
        assert not [child for child in up.family() if child.name() in SERVICES]
        owner = conninfo_to_dict(fresh_database["DATABASE_OWNER_URL"])
        assert_nobody_has(up, str(owner["password"]))
        assert up.says(" ready.")
        assert re.search(r"worker   │ [-\dT:.]+Z INFO \S+ \[-\] \S+ ready\.", up.text())
        # A person before a terminal is shown what is shown once.
        token = up.found(r"Token +(csa_\S+)")
        assert f'"Authorization: Bearer {token}"' in up.text()
        link = up.found(r"Sign in +http://localhost:\d+(/sign-in/\S+)")
        assert status(up.port, link) == 200


@pytest.mark.long
def test_a_database_that_does_not_answer_is_named_and_its_password_is_not(tmp_path):
    nowhere = f"postgresql://countersign:hunter2@/x?host={tmp_path}"

    up = Up(tmp_path / "data", env={"DATABASE_URL": nowhere, "REDIS_URL": "redis://127.0.0.1:1/0"})
    up.launch()

    assert up.ends() == 1
    assert "The database of DATABASE_URL does not answer" in up.text()
    assert "hunter2" not in up.text()


SERVICES = ("postgres", "valkey-server")


def other_ways() -> list[str]:
    """With data that nobody else can reach; and root can try as an ordinary user, too."""
    if os.getuid() != 0 or not python_for_everybody():
        return ["hidden data"]
    return ["hidden data", "ordinary user"]


def python_for_everybody() -> str:
    """Root's own Python may be out of others' reach; the system's has the same packages then."""
    packages = Path(psycopg.__file__).parents[1]
    if not is_public(packages) or not is_public(ROOT):
        return ""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    candidates = [Path(sys.executable), Path("/usr/bin") / version]
    return next((str(path) for path in candidates if is_public(path.resolve())), "")


def for_older_python(directory: Path) -> Path:
    """What the system's Python would have been given, being older: redis-py wants it below 3.11.3,
    and its authors fill it with nothing but this."""
    packages = directory / "packages"
    packages.mkdir(exist_ok=True)
    (packages / "async_timeout.py").write_text("from asyncio import Timeout, timeout, timeout_at\n")
    return packages


def is_public(path: Path) -> bool:
    return path.exists() and all(one.stat().st_mode & 0o001 for one in (path, *path.parents))


@pytest.mark.long
@pytest.mark.parametrize("way", other_ways())
def test_it_runs_as_root_and_as_an_ordinary_user(way, tmp_path, public_directory):
    user = pwd.getpwnam("nobody").pw_uid if way == "ordinary user" else None
    home = tmp_path
    if user is not None:
        home = public_directory / "home"
        home.mkdir()
        os.chown(home, user, -1)

    packages = [str(Path(psycopg.__file__).parents[1]), str(for_older_python(public_directory))]
    env = {"HOME": str(home), "PYTHONPATH": os.pathsep.join(packages)}
    up = Up(home / "data", user=user, env=env)
    up.python = python_for_everybody() if user else sys.executable
    with up:
        assert up.is_healthy()
        assert up.child("pginstall/bin/postgres").uids().real == (user or os.getuid())


def replaced(up: Up, word: str, pid: int) -> bool:
    try:
        return up.child(word).pid != pid
    except (StopIteration, psutil.Error):
        return False  # the old one is not yet gone, or the new one not yet there


def answer(url: str) -> tuple[object, ...] | None:
    try:
        with psycopg.connect(url) as connection:
            return connection.execute("SELECT answer FROM kept").fetchone()
    except psycopg.OperationalError:
        return None


def manage() -> list[str]:
    return [sys.executable, "manage.py"]
