"""The program that CI runs with a policy file: exit codes, the summary, and no confirmation."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.conf import settings

from accounts.models import User
from accounts.roles import Role
from policies.models import PolicyPlan
from tests.approvals.test_policy_applying import FILE, MAY
from tests.console import scenery
from tests.gateway.service_api import program

HERE = Path(settings.BASE_DIR) / "examples" / "policy"


@pytest.fixture
def ada(db: None) -> User:
    return scenery.person("ada", Role.ADMINISTRATOR, Role.OPERATOR)


def run(live_server: Any, token: str, where: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(HERE / "propose.py"), *words],
        cwd=where,
        env={"COUNTERSIGN_URL": live_server.url, "COUNTERSIGN_TOKEN": token, "PLAN_ORIGIN": "mr 7"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_ci_proposes(live_server: Any, ada: User, tmp_path: Path) -> None:
    token = program("robot", ada, *MAY).token
    (tmp_path / "policy.yaml").write_text(FILE)
    (tmp_path / "same.yaml").write_text("version: 1\n")
    (tmp_path / "wrong.yaml").write_text("version: 1\nrules: 3\n")

    planned = run(live_server, token, tmp_path, "policy.yaml")
    same = run(live_server, token, tmp_path, "same.yaml")
    wrong = run(live_server, token, tmp_path, "wrong.yaml")

    plan = PolicyPlan.objects.get()
    assert (planned.returncode, same.returncode, wrong.returncode) == (2, 0, 1), planned.stderr
    assert "Line 2, rules" in wrong.stderr
    assert (tmp_path / "plan.digest").read_text().strip() == plan.digest
    summary = (tmp_path / "plan.md").read_text()
    assert "| rules | mail | added |" in summary
    assert f"/policies/plans/{plan.digest}/" in summary
    assert plan.origin == "mr 7"
    applied = run(live_server, token, tmp_path, "--apply", plan.digest)
    assert applied.returncode == 1
    assert "one more person" in applied.stderr
    assert run(live_server, token, tmp_path, "nowhere.yaml").returncode == 1
    assert run(live_server, "css_x", tmp_path, "policy.yaml").returncode == 1


@pytest.mark.parametrize("name", ["github-actions.yml", "gitlab-ci.yml"])
def test_the_examples_are_yaml_that_runs_the_program(name: str) -> None:
    text = (HERE / name).read_text()

    assert yaml.safe_load(text)
    assert "propose.py policy.yaml || [ $? -eq 2 ]" in text
    assert 'propose.py --apply "$DIGEST"' in text
