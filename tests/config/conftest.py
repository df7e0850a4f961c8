"""An installation with services of its own, and commands of its host's owner on it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.config.up import ROOT, bare_environment
from tests.database import Databases

Manage = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def urls(databases: Databases) -> Iterator[dict[str, str]]:
    made = databases.clone()
    yield made
    databases.drop(made)


@pytest.fixture
def manage(urls: dict[str, str], tmp_path: Path) -> Manage:
    env = bare_environment() | urls | {"COUNTERSIGN_DATA": str(tmp_path / "data")}
    # The host's owner, who restores, can read what the sealer signs with.
    env["COUNTERSIGN_SEAL_KEY_FILE"] = str(tmp_path / "data" / "seal" / "key")
    (tmp_path / "data").mkdir()

    def run(*argv: str, **more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(ROOT / "manage.py"), *argv],
            # From wherever its host's owner stands.
            cwd=tmp_path,
            env={**env, **more},
            capture_output=True,
            text=True,
            check=False,
        )

    return run
