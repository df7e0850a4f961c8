"""The page guides/command-line.md names every command, and its commands and its program run."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from accounts.models import Agent
from accounts.roles import Role
from client import generate
from client.countersign import make_parser
from registry.models import Tool, Toolset
from tests.console import scenery
from tests.docs.test_commands import SHELL
from tests.docs.translations import ENGLISH
from tests.gateway.service_api import program
from tests.upstreams.recorder import Recorder

PAGE = ENGLISH / "guides" / "command-line.md"
PROGRAM = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# The package would come from an index; the file is here.
PRELUDE = f"""
set -euo pipefail
pip() {{ test -f client/countersign.py; }}
countersign() {{ {sys.executable} {generate.CLIENT} "$@"; }}
"""


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_the_pages_commands_and_its_program_run(
    live_server: Any, upstream: Recorder, tmp_path: Path
) -> None:
    token = program("robot", scenery.person("ada", *Role)).token
    environment = {
        **os.environ,
        "COUNTERSIGN_URL": live_server.url,
        "COUNTERSIGN_TOKEN": token,
        "COUNTERSIGN_PROFILES": str(tmp_path / "profiles.json"),
        "UPSTREAM": upstream.url,
        "OWNER": "ada",
        "PYTHONPATH": str(generate.HERE),
    }
    blocks = "\n".join(SHELL.findall(PAGE.read_text()))

    _run(["bash", "-c", PRELUDE + blocks], environment)
    _run([sys.executable, "-c", "\n".join(PROGRAM.findall(PAGE.read_text()))], environment)

    assert Tool.objects.get(exposed_name="demo.echo").state == Tool.State.PUBLISHED
    assert list(Toolset.objects.get(slug="walk").agents.all()) == [Agent.objects.get()]
    assert not Agent.objects.get().enabled


def _run(command: list[str], environment: dict[str, str]) -> None:
    done = subprocess.run(
        command,
        env=environment,
        cwd=generate.HERE.parent,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_names_every_command() -> None:
    table = PAGE.read_text()

    for group, parser in _commands(make_parser()).items():
        assert re.search(rf"`{group}\b", table), group
        for verb in _commands(parser):
            assert f"{verb}`" in table, f"{group} {verb}"


def _commands(parser: Any) -> dict[str, Any]:
    found = (one for one in parser._actions if hasattr(one, "add_parser"))
    return {name: one for action in found for name, one in action.choices.items()}
