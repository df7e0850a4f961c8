"""Secrets are read from the files that the environment names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from config.secret_files import NAMES, read_secret_files
from tests.config.up import ROOT, bare_environment
from tests.docs.test_settings_table import in_table

PRINTED = "from config import settings as s; print(s.METRICS_TOKEN, s.SECRET_KEY[:3], s.EMAIL_URL)"


def settings_with(data: Path, **more: str) -> subprocess.CompletedProcess[str]:
    env = {**bare_environment(), "COUNTERSIGN_DATA": str(data), **more}
    return subprocess.run(
        [sys.executable, "-c", PRINTED], cwd=ROOT, env=env, capture_output=True, text=True,
        check=False,
    )  # fmt: skip


def test_settings_come_from_files(tmp_path: Path) -> None:
    token, secret = tmp_path / "token", tmp_path / "secret"
    token.write_text("t0ken\n")
    secret.write_text("abc" * 20)

    done = settings_with(
        tmp_path, COUNTERSIGN_METRICS_TOKEN_FILE=str(token), COUNTERSIGN_SECRET_KEY_FILE=str(secret)
    )

    assert (done.returncode, done.stdout) == (0, "t0ken abc \n"), done.stderr


def test_a_command_says_which_file_is_missing(tmp_path: Path) -> None:
    env = {**bare_environment(), "COUNTERSIGN_DATA": str(tmp_path)}
    env |= {"COUNTERSIGN_NO_BOOTSTRAP": "1", "EMAIL_URL_FILE": str(tmp_path / "none")}

    done = subprocess.run(
        [sys.executable, "manage.py", "audit_verify"], cwd=ROOT, env=env, capture_output=True,
        text=True, check=False,
    )  # fmt: skip

    assert done.returncode == 1
    sentence = f"EMAIL_URL_FILE: {tmp_path / 'none'} cannot be read: No such file or directory."
    assert done.stderr.strip() == sentence


def test_every_setting_with_a_secret_can_be_a_file(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("value\n")
    environment = {f"{name}_FILE": str(kept) for name in NAMES}

    read_secret_files(environment)

    assert environment == dict.fromkeys(NAMES, "value")
    # Of all settings those that hold a secret.
    secret = {n for n in in_table() if n.endswith(("URL", "TOKEN", "SECRET_KEY", "SECRET_KEYS"))}
    assert secret - set(NAMES) == {
        "COUNTERSIGN_PUBLIC_URL",
        "COUNTERSIGN_AGENT_URL",
        "COUNTERSIGN_SLACK_API_URL",
        "COUNTERSIGN_ARCHIVE_URL",
        "COUNTERSIGN_EMBEDDINGS_URL",
        "COUNTERSIGN_OTLP_URL",
    }


def test_an_empty_value_gives_way_to_the_file(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.write_text("value")
    environment = {"EMAIL_URL": "", "EMAIL_URL_FILE": str(kept)}

    read_secret_files(environment)

    assert environment == {"EMAIL_URL": "value"}


@pytest.mark.parametrize(
    ("content", "given", "said"),
    [
        (None, {}, "cannot be read"),
        (" \n", {}, "is empty"),
        ("value", {"EMAIL_URL": "other"}, "Set EMAIL_URL or EMAIL_URL_FILE, not both"),
    ],
)
def test_a_file_that_says_nothing_stops_the_start(
    tmp_path: Path, content: str | None, given: dict[str, str], said: str
) -> None:
    kept = tmp_path / "kept"
    if content is not None:
        kept.write_text(content)

    with pytest.raises(ImproperlyConfigured, match=said):
        read_secret_files({**given, "EMAIL_URL_FILE": str(kept)})
