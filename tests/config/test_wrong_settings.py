"""A setting that is wrong stops the start with one sentence, which names it and shows no secret."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from config import children, environment
from core.bad_setting import BadSetting
from tests.config.up import ROOT, bare_environment
from tests.docs.test_settings_table import in_table
from tests.processes import HOST

SETTINGS = (ROOT / "config" / "settings.py").read_text()


def read_as(kind: str) -> list[str]:
    """The settings that are read in this way."""
    return re.findall(rf'\b{kind}\(\s*"(\w+)"', SETTINGS)


@pytest.mark.parametrize("kind", ["whole", "number", "numbers"])
@pytest.mark.parametrize("text", ["many", "-1", "1h", "nan", "inf", "1_0x"])
def test_what_is_no_number_is_said_by_its_name(
    kind: str, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = read_as(kind)
    assert names
    for name in names:
        monkeypatch.setenv(name, text)
        with pytest.raises(BadSetting, match=f"^{name} is '{text}', and must be a (whole )?number"):
            getattr(environment, kind)(name, "1")


@pytest.mark.parametrize("text", ["true", "no", "on", "2"])
def test_a_switch_is_0_or_1_and_nothing_counts_as_its_default(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = read_as("switch")
    assert {"COUNTERSIGN_LOCAL_SIGN_IN", "COUNTERSIGN_RED_NEEDS_TWO"} < set(names)
    for name in names:
        monkeypatch.setenv(name, text)
        with pytest.raises(BadSetting, match=f"^{name} is '{text}', and must be 0 or 1"):
            environment.switch(name)


def test_an_empty_value_is_the_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X", "")

    assert (environment.whole("X", "7"), environment.number("X", "0.5")) == (7, 0.5)
    assert environment.switch("X", "1") is True
    assert environment.networks("X", " 10.0.0.0/8, ") == ["10.0.0.0/8"]


def test_empty_values_change_nothing(tmp_path: Path) -> None:
    """As a compose file or a unit passes on what was left empty."""
    printed = (
        "from config import settings as s; print({n: v for n, v in vars(s).items() if n.isupper()})"
    )
    env = {**bare_environment(), "COUNTERSIGN_DATA": str(tmp_path)}
    # Empty, they switch something off.
    kept = {"COUNTERSIGN_DATA", "COUNTERSIGN_PUSH_HOSTS"}

    def read(more: dict[str, str]) -> str:
        argv = [sys.executable, "-c", printed]
        return subprocess.run(
            argv, cwd=ROOT, env={**env, **more}, capture_output=True, text=True, check=True
        ).stdout

    assert read(dict.fromkeys(set(in_table()) - kept, "")) == read({})


def test_no_number_and_no_switch_is_read_in_another_way() -> None:
    """Of those in the table, whose defaults are numbers."""
    known = {name for kind in ("whole", "number", "numbers", "switch") for name in read_as(kind)}
    numeric = {name for name, said in in_table().items() if re.match(r"(`1`|`0`|\d)", said)}
    elsewhere = {"COUNTERSIGN_DEBUG"} & numeric
    assert numeric - known - elsewhere == set()


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("COUNTERSIGN_CONNECTIONS", "0", "must be a whole number from 1 on"),
        ("COUNTERSIGN_LEASE_S", "0", "must be a number above 0"),
        (
            "COUNTERSIGN_UPSTREAM_NETWORKS",
            "127.0.0.0/8, 192.168.5.7/16",
            "has '192.168.5.7/16', an address within a network: write 192.168.0.0/16 for the "
            "network, or 192.168.5.7 for it alone.",
        ),
        ("COUNTERSIGN_TRUSTED_PROXIES", "proxy", "has 'proxy', and must be networks"),
        ("COUNTERSIGN_LOG_LEVEL", "LOUD", "may be DEBUG, INFO, WARNING, ERROR, CRITICAL"),
        ("COUNTERSIGN_LOG_FORMAT", "xml", "may be text or json"),
        ("COUNTERSIGN_PROBES", "9100", "has to be an address with a port"),
        ("DATABASE_URL", "postgres//u:hunter2@h/x", "has not the form"),
        ("DATABASE_URL", "postgresql://u:hunter2/@h/x", "has not the form"),
        ("REDIS_URL", "http://:hunter2@h", "has not the form redis://"),
        ("REDIS_URL", "redis://:hunter2/@h", "has not the form redis://"),
        ("REDIS_URL", "redis+sentinel://h?hunter2", "has not the form redis+sentinel://"),
        ("EMAIL_URL", "smtp://u:hunter2/@h", "EMAIL_URL must be"),
    ],
)
def test_a_command_ends_with_the_sentence(name: str, text: str, said: str, tmp_path: Path) -> None:
    env = {**bare_environment(), "COUNTERSIGN_DATA": str(tmp_path), name: text}
    done = subprocess.run(
        [sys.executable, "manage.py", "audit_verify"], cwd=ROOT,
        env={**env, "COUNTERSIGN_NO_BOOTSTRAP": "1"}, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 1
    assert name in done.stderr
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert "hunter2" not in done.stderr


@pytest.mark.long
@pytest.mark.parametrize(
    "argv",
    [
        children.web(HOST, 0),
        children.agents(HOST, 0),
        children.seal(),
        children.worker(),
        children.beat(),
    ],
    ids=["web", "agents", "seal", "worker", "beat"],
)
def test_a_process_without_up_ends_with_the_sentence_alone(argv: list[str], tmp_path: Path) -> None:
    env = {**bare_environment(), "COUNTERSIGN_DATA": str(tmp_path)}
    env |= {"DATABASE_URL": "postgresql://u:hunter2/@h/x"}
    done = subprocess.run(argv, cwd=ROOT, env=env, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert done.stderr.startswith("DATABASE_URL has not the form")
    assert (len(done.stderr.splitlines()), "hunter2" in done.stderr) == (1, False)


@pytest.mark.parametrize("name", sorted(environment.DATABASES))
def test_up_looks_at_each_databases_address_before_it_starts_anything(
    name: str, tmp_path: Path
) -> None:
    env = {**bare_environment(), "COUNTERSIGN_DATA": str(tmp_path / "data")}
    done = start(env | {"COUNTERSIGN_NO_BOOTSTRAP": "1", name: "postgresql://u:hunter2/@h/x"})

    assert done.returncode == 1
    assert done.stderr.startswith(f"{name} has not the form")
    assert (len(done.stderr.splitlines()), "hunter2" in done.stderr) == (1, False)
    assert not (tmp_path / "data" / "postgres").exists()


def test_up_reads_the_files_of_secrets_too(tmp_path: Path) -> None:
    url = tmp_path / "url"
    url.write_text("postgresql://app:hunter2@127.0.0.1:1/none?connect_timeout=1\n")
    env = {**bare_environment(), "COUNTERSIGN_DATA": str(tmp_path / "data")}
    env |= {"COUNTERSIGN_NO_BOOTSTRAP": "1", "DATABASE_URL_FILE": str(url)}

    done = start(env | {"REDIS_URL": "redis://127.0.0.1:1/0"})
    assert (done.returncode, "hunter2" in done.stdout + done.stderr) == (1, False)
    assert "The database of DATABASE_URL does not answer" in done.stderr

    done = start(env | {"DATABASE_SEAL_URL_FILE": str(tmp_path / "none")})
    assert done.returncode == 1
    assert f"DATABASE_SEAL_URL_FILE: {tmp_path / 'none'} cannot be read" in done.stderr


def start(env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "manage.py", "up", "--port", "0", "--agent-port", "0"], cwd=ROOT, env=env,
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
