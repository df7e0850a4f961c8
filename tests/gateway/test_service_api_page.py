"""The commands of the page reference/api.md run."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from accounts.models import Agent, User
from accounts.roles import Role
from approvals.models import Approval
from policies.models import Rule
from registry.models import Tool, Toolset
from tests.console import scenery
from tests.docs.test_commands import SHELL
from tests.docs.translations import ENGLISH
from tests.gateway.service_api import program
from tests.processes import Stack
from tests.upstreams.recorder import Recorder

PAGE = ENGLISH / "reference" / "api.md"


@pytest.mark.django_db(transaction=True)
def test_the_walk_of_the_page_runs(stack: Stack, upstream: Recorder, tmp_path: Path) -> None:
    assert stack.web
    assert stack.worker
    scenery.person("ada", *Role)
    robot = program("robot", User.objects.get(username="ada"))
    script = "set -euo pipefail\n" + "\n".join(SHELL.findall(PAGE.read_text()))
    environment = {
        "COUNTERSIGN": stack.web_url,
        "TOKEN": robot.token,
        "UPSTREAM": upstream.url,
        "OWNER": "ada",
    }

    done = subprocess.run(
        ["bash", "-c", script],
        env={**os.environ, **environment},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert Tool.objects.get(exposed_name="demo.echo").state == Tool.State.PUBLISHED
    walk = Toolset.objects.get(slug="walk")
    assert list(walk.agents.all()) == [Agent.objects.get(name="walker")]
    assert Rule.objects.get(name="echo needs a person").effect == "ask"
    assert not Approval.objects.exists()
    assert '"action":"server.registered"' in done.stdout.replace(" ", "")
