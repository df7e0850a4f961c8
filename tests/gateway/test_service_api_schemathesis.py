"""Requests that others' program makes from the whole OpenAPI document, right and wrong ones.

`EXAMPLES=200 python3 manage.py test tests/gateway/test_service_api_schemathesis.py` makes more of
them.
"""

from __future__ import annotations

import json
import os
import subprocess
from datetime import date, time, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest
from django.conf import settings
from django.utils import timezone

from accounts.models import Agent, User
from accounts.roles import Role
from approvals.policy_plans import planning
from audit.exporting import begin
from audit.filters import Filters
from audit.models import Export
from calls.record.states import State
from gateway.rest.v1.entry_filters import UTC
from gateway.rest.v1.views import RATE
from notifications import schedules
from notifications.models import OnCallOverride, OnCallSchedule, Webhook
from policies.models import Limit, Rule
from registry.models import Toolset
from tests.clients import environment_of
from tests.console import scenery
from tests.gateway.service_api import program

pytestmark = [pytest.mark.long, pytest.mark.django_db(transaction=True)]
HOOKS = Path(settings.BASE_DIR) / "tests" / "gateway" / "schemathesis" / "hooks.py"
EXAMPLES = os.environ.get("EXAMPLES", "4")
SECONDS = 60 * int(EXAMPLES)
# What a change means is no part of a schema: names that exist, conditions, amounts of a kind. And
# a body is not read where the version is another one, or the key belongs to another body.
CONFIG = f"""\
hooks = "{HOOKS}"
[[operations]]
include-method = ["POST", "PUT", "PATCH", "DELETE"]
[operations.checks.positive_data_acceptance]
expected-statuses = ["2xx", 400, 401, 403, 404, 409, 412, 422, 428]
[operations.checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 406, 409, 412, 415, 422, 428, 429]
"""


@pytest.fixture
def ada(db: None) -> User:
    return scenery.person("ada", *Role)


@pytest.fixture
def names(ada: User) -> dict[str, dict[str, Any]]:
    """Rows of each kind, by the first part of their addresses."""
    mailer = scenery.server("mailer", ada, scenery.SEND, scenery.ADD)
    scout = Agent.objects.create(name="scout", owner=ada)
    Toolset.objects.create(slug="office").agents.add(scout)
    send = scenery.offered(scout, mailer.tools.get(name="send_mail"))
    call = scenery.call(scout, send, scenery.MAIL, State.HELD)
    rules = [Rule.objects.create(name=f"rule {n}", effect="ask") for n in range(2)]
    limit = Limit.objects.create(name="few", kind="calls", amount=9, period="day", effect="deny")
    plan = planning.make_plan("version: 1\nrules: [{name: all, effect: allow}]\n", by=ada)
    scenery.person("eve", Role.APPROVER)
    hook = Webhook.objects.create(name="pager", url="https://10.1.1.1/x", sealed_secret=b"")
    schedule = OnCallSchedule(name="nights", handover_at=time(9), starts_on=date(2026, 3, 2))
    schedules.save(schedule, [ada], by=ada)
    override = OnCallOverride(schedule=schedule, person=ada)
    override.begins_at, override.ends_at = timezone.now(), timezone.now() + timedelta(hours=1)
    schedules.add_override(override, by=ada)
    export = begin(Filters.read({}, UTC), Export.Format.JSONL, by=ada.actor, person_id=ada.pk)
    return {
        "servers": {"slug": "mailer"},
        "tools": {"tool": "mailer.send_mail"},
        "toolsets": {"slug": "office", "tool": "mailer.send_mail"},
        "agents": {"name": "scout"},
        "rules": {"id": rules[0].pk},
        "limits": {"id": limit.pk},
        "policy": {"digest": plan.digest},
        "calls": {"call_id": str(call)},
        "approvals": {"call_id": str(call)},
        "exports": {"id": export.pk},
        "users": {"user": "eve"},
        "webhooks": {"webhook": str(hook.pk)},
        "on-call-schedules": {"schedule": str(schedule.pk), "override": str(override.pk)},
        "failed-messages": {},
        "emergency-stops": {},
        "standing-approvals": {},
    }


def test_it_finds_nothing_wrong(
    live_server: Any,
    ada: User,
    names: dict[str, dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(RATE, "amount", 10**9)
    robot = program("robot", ada)
    token = robot.token
    (tmp_path / "schemathesis.toml").write_text(CONFIG)
    # Made here: the first request for it takes some seconds.
    (tmp_path / "openapi.json").write_bytes(orjson.dumps(robot.get("openapi.json")))

    ended = subprocess.run(
        [
            str(environment_of("schemathesis") / "bin" / "schemathesis"),
            *("run", "openapi.json", "--url", live_server.url),
            *("--header", f"Authorization:Bearer {token}"),
            *("--max-examples", EXAMPLES, "--seed", "1", "--generation-database", "none"),
            *("--continue-on-failure", "--no-shrink"),
            *("--phases", "fuzzing"),
        ],
        cwd=tmp_path,
        env={
            **os.environ,
            "API": live_server.url,
            "TOKEN": token,
            "NAMES": json.dumps(names),
            "PYTHONPATH": "",
        },
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )

    assert ended.returncode == 0, ended.stdout + ended.stderr
