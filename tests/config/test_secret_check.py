"""A start with another secret on the same database is refused."""

import subprocess
import sys
import tempfile
from pathlib import Path

import psycopg
import pytest

from config.embedded.service import wait_until
from config.secret_check import check_secret
from core.secrets import fingerprint_of
from tests.config.up import ROOT, Up, bare_environment
from tests.database import manage


@pytest.fixture
def noted(fresh_database: dict[str, str]) -> dict[str, str]:
    with psycopg.connect(fresh_database["DATABASE_OWNER_URL"]) as owner:
        owner.execute("INSERT INTO audit_secret (fingerprint) VALUES (%s)", [fingerprint_of("a")])
    return fresh_database


def test_it_says_which_secret_it_wants_and_what_to_do(noted: dict[str, str]) -> None:
    assert check_secret(noted["DATABASE_URL"], "a") == ""
    said = check_secret(noted["DATABASE_URL"], "b", where="/data/secret.key")
    assert fingerprint_of("a") in said
    assert f"/data/secret.key is another ({fingerprint_of('b')})" in said
    assert "Put the right one back" in said
    assert "(missing)" in check_secret(noted["DATABASE_URL"], "")


def test_a_database_that_does_not_say_or_does_not_answer_stops_nobody(
    fresh_database: dict[str, str],
) -> None:
    assert check_secret(fresh_database["DATABASE_URL"], "b") == ""
    assert check_secret("postgresql://nobody@/nothing?host=/nowhere", "b") == ""


@pytest.mark.long
def test_prepare_refuses_and_changes_nothing(noted: dict[str, str]) -> None:
    with pytest.raises(SystemExit, match="belongs to the secret with the fingerprint"):
        manage(["prepare", "--only-migrate"], env={**noted, "COUNTERSIGN_SECRET_KEY": "b"})
    manage(["prepare", "--only-migrate"], env={**noted, "COUNTERSIGN_SECRET_KEY": "a"})


def test_the_application_cannot_note_another(noted: dict[str, str]) -> None:
    with (
        psycopg.connect(noted["DATABASE_URL"]) as app,
        pytest.raises(psycopg.errors.InsufficientPrivilege),
    ):
        app.execute("INSERT INTO audit_secret (fingerprint) VALUES ('x')")


@pytest.mark.long
def test_up_does_not_start_with_another_secret_or_another_key() -> None:
    with tempfile.TemporaryDirectory(prefix="countersign-secret-") as name:
        Path(name).chmod(0o755)
        data = Path(name) / "data"
        key = data / "seal" / "key"
        with Up(data) as first:
            assert wait_until((data / "checkpoints").exists, seconds=60)
            assert first.is_healthy()
        for file, said in (
            (data / "secret.key", "belongs to the secret with the fingerprint"),
            (key, "is not the key that signs the record"),
        ):
            kept = file.read_text()
            for content in ("x" * 44, None):
                file.unlink(missing_ok=True)
                if content:
                    file.write_text(content)
                again = Up(data)
                again.launch()
                assert again.ends() == 1
                assert said in again.text()
            file.unlink(missing_ok=True)
            file.write_text(kept)
        key.unlink()
        rotated = subprocess.run(
            Up(data).argv("audit_rotate_key"),
            cwd=ROOT,
            env=bare_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
        assert rotated.returncode == 0, rotated.stderr
        with Up(data) as last:
            assert last.is_healthy()


@pytest.mark.long
@pytest.mark.parametrize("command", ["sign_in_link", "backup", "pause", "audit_verify"])
def test_without_an_installation_a_command_says_so_in_a_sentence(
    tmp_path: Path, command: str
) -> None:
    env = bare_environment() | {"COUNTERSIGN_DATA": str(tmp_path / "none"), "PGHOST": "/nowhere"}
    argv = [sys.executable, "manage.py", command, *(["x"] if command == "backup" else [])]

    ended = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, check=False)

    assert ended.returncode != 0
    assert "Traceback" not in ended.stderr
    assert "python3 manage.py up" in ended.stderr
    assert not (tmp_path / "none" / "postgres").exists()
