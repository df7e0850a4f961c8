"""Policy files from the command line to the console and back: exported, planned, confirmed,
applied."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Any

import pyotp
import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client

from accounts import one_time_codes
from accounts.models import Agent, User
from accounts.roles import Role
from audit.models import Entry
from calls.record.states import State
from policies.models import PolicyPlan, Rule
from registry.models import Tool
from tests.accounts.factors import Clock, clock
from tests.console import scenery

pytestmark = pytest.mark.django_db
__all__ = ["clock"]


class Outcome:
    def __init__(self, code: int, text: str) -> None:
        self.code, self.text = code, text


def policy(*words: str) -> Outcome:
    out = StringIO()
    try:
        call_command("policy", *words, stdout=out)
    except SystemExit as exit_:
        return Outcome(int(exit_.code or 0), out.getvalue())
    except CommandError as error:
        return Outcome(1, str(error))
    return Outcome(0, out.getvalue())


@pytest.fixture
def ada(db: None) -> User:
    return scenery.person("ada", Role.ADMINISTRATOR, Role.OPERATOR)


@pytest.fixture
def send(olga: User) -> Tool:
    mailer = scenery.server("mailer", olga, scenery.SEND, scenery.ADD)
    return Tool.objects.get(server=mailer, name="send_mail")


def test_one_change_is_said_as_one(tmp_path: Path, db: None) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("version: 1\nrules: [{name: all, effect: allow}]\n")

    applied = policy("apply", "--as-owner", str(file))

    assert applied.code == 0, applied.text
    assert "Applied: 1 change of plan " in applied.text


def test_an_export_changes_nothing(tmp_path: Path, scout: Agent, send: Tool, ada: User) -> None:
    rule(scout, name="mail", effect="ask", server="mailer", when="args.subject != 'x'")
    file = tmp_path / "policy.yaml"

    assert policy("export", "--output", str(file)).code == 0

    assert policy("validate", str(file)).code == 0
    assert policy("diff", str(file)).text == "The file changes nothing.\n"
    assert policy("plan", str(file)).code == 0


def test_a_source_without_parts_changes_nothing(tmp_path: Path, ada: User) -> None:
    file = write(tmp_path, "version: 1\nmanaged_by: https://git.example/policy.yaml\n")

    assert policy("diff", file).text == "The file changes nothing.\n"
    assert policy("plan", file).code == 0


def test_values_in_markdown_are_those_of_the_file(
    tmp_path: Path, scout: Agent, send: Tool, ada: User
) -> None:
    rule(scout, name="mail", effect="ask", reason="It leaves the company.")
    reason = "Long." * 40
    file = write(
        tmp_path, f"version: 1\nrules:\n  - {{name: mail, effect: ask, reason: '{reason}'}}\n"
    )

    planned = policy("plan", file).text

    assert '\\["scout"\\] → \\[\\]' in planned
    assert f"reason: It leaves the company. → {reason[:120]}…" in planned
    assert "None" not in planned


def rule(*agents: Agent, **values: Any) -> Rule:
    made = Rule.objects.create(**values)
    made.agents.set(agents)
    return made


def write(tmp_path: Path, text: str) -> str:
    file = tmp_path / "policy.yaml"
    file.write_text(text)
    return str(file)


FILE = """\
version: 1
managed_by: https://git.example/policy.yaml
rules:
  - name: mail
    effect: deny
    server: mailer
    tool: send_mail
  - name: rest
    effect: allow
"""


def test_the_whole_way(
    tmp_path: Path, scout: Agent, send: Tool, ada: User, client: Client, clock: Clock
) -> None:
    call = scenery.call(scout, send, scenery.MAIL, State.QUEUED)
    file = write(tmp_path, FILE)

    planned = policy("plan", file)

    assert planned.code == 2, planned.text
    plan = PolicyPlan.objects.get()
    assert plan.digest in planned.text
    assert plan.result["by_tool"] == [
        {"tool": "mailer.send_mail", "before": "ask", "after": "deny", "calls": 1}
    ]
    assert plan.result["examples"][0]["call"] == str(call)
    refused = policy("apply", plan.digest)
    assert refused.code == 1
    assert "one more person" in refused.text

    confirm(client, ada, plan, clock)

    assert policy("apply", plan.digest).code == 0
    assert list(Rule.objects.in_order().values_list("name", "effect")) == [
        ("mail", "deny"),
        ("rest", "allow"),
    ]
    assert policy("diff", file).code == 0
    kept = Entry.objects.filter(action__startswith="policy.").order_by("id")
    assert [action.partition(".")[2] for action in kept.values_list("action", flat=True)] == [
        "planned",
        "apply_failed",
        "confirmed",
        "applied",
    ]


def test_no_plan_goes_unjudged(tmp_path: Path, scout: Agent, send: Tool) -> None:
    scenery.call(scout, send, scenery.MAIL, State.QUEUED)

    policy("plan", write(tmp_path, FILE), "--calls", "0")

    assert PolicyPlan.objects.get().result["replayed"] == 1


def confirm(client: Client, person: User, plan: PolicyPlan, clock: Clock) -> None:
    client.force_login(person)
    shown = client.get(f"/policies/plans/{plan.digest}/")
    assert shown.status_code == 200
    given = {"code": new_code(person, clock)}
    answer = client.post(f"/policies/plans/{plan.digest}/confirm/", given)
    assert answer.status_code == 302, answer.content.decode()


def new_code(person: User, clock: Clock) -> str:
    """Of an app that they set up now."""
    app = one_time_codes.begin(person)
    made = pyotp.TOTP(one_time_codes.secret(app))
    one_time_codes.confirm(person, made.at(clock.now))
    clock.now += 60
    return made.at(clock.now)
