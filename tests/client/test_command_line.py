"""The command `countersign`, as operators and pipelines use it."""

from __future__ import annotations

import io
import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from datetime import date, time, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import User
from accounts.roles import Role
from audit.models import Entry
from client import generate
from client.countersign import CHANGES, USAGE, main, make_parser, shown
from notifications import schedules
from notifications.models import OnCallSchedule
from policies.models import PolicyPlan, Rule
from registry.models import Tool, Toolset
from tests.client.far_end import answer, far_end
from tests.console import scenery
from tests.gateway.service_api import program
from tests.upstreams.recorder import Recorder

Run = Callable[..., str]


@pytest.fixture
def ada(db: None) -> User:
    return scenery.person("ada", *Role)


@pytest.fixture(autouse=True)
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file of profiles that is not the developer's."""
    there = tmp_path / "config" / "profiles.json"
    monkeypatch.setenv("COUNTERSIGN_PROFILES", str(there))
    for name in ("COUNTERSIGN_URL", "COUNTERSIGN_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return there


@pytest.fixture
def run(
    ada: User,
    live_server: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    monkeypatch.setenv("COUNTERSIGN_URL", live_server.url)
    monkeypatch.setenv("COUNTERSIGN_TOKEN", program("robot", ada).token)

    def run(*words: str, ends: int = 0, typed: str = "") -> str:
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        code = main(words)
        said = capsys.readouterr()
        assert code == ends, said.err
        return said.err if ends == 1 else said.out

    return run


def as_json(run: Run, *words: str, **named: Any) -> Any:
    return json.loads(run(*words, "--json", **named))


# The daily work


@pytest.mark.django_db(transaction=True)
def test_an_operator_sets_up_a_server_and_an_agent(run: Run, upstream: Recorder) -> None:
    run("servers", "register", "rec", "--url", upstream.url)
    run("servers", "discover", "rec")
    review = run("servers", "review", "rec")
    echo = next(line for line in review.splitlines() if line.startswith("rec.echo="))
    run("servers", "publish", "rec", echo)
    run("toolsets", "create", "desk", "--title", "The desk")
    run("agents", "create", "scout", "--owner", "ada")
    run("toolsets", "add", "desk", "--tool", "rec.echo", "--agent", "scout")
    issued = as_json(run, "tokens", "issue", "scout", "--days", "7")

    assert issued["token"].startswith("csa_")
    assert Tool.objects.get(exposed_name="rec.echo").state == Tool.State.PUBLISHED
    desk = Toolset.objects.get(slug="desk")
    assert [agent.name for agent in desk.agents.all()] == ["scout"]
    assert "rec.echo" in run("tools", "list", "--server", "rec")
    listed = run("servers", "list")
    assert listed.splitlines()[0].split()[:2] == ["NAME", "HEALTH"]
    assert "rec" in listed.splitlines()[1]
    tools = json.loads(run("toolsets", "export", "desk", "--format", "anthropic"))
    assert tools[0]["name"] == "rec_echo"
    run("toolsets", "remove", "desk", "--agent", "scout")
    assert not desk.agents.exists()
    assert Entry.objects.filter(actor="service account robot", action="token.issued").exists()


@pytest.mark.django_db(transaction=True)
def test_a_policy_file_is_compared_proposed_and_never_confirmed(run: Run, tmp_path: Path) -> None:
    file, markdown = tmp_path / "policy.yaml", tmp_path / "plan.md"
    run("policy", "export", "--output", str(file))
    assert run("policy", "validate", str(file)) == "The file is valid.\n"
    assert "NAME" in run("policy", "diff", str(file))
    assert run("policy", "plan", str(file)) == "The file changes nothing.\n"

    file.write_text("version: 1\nrules: [{name: all, effect: ask}]\n")
    assert "all" in run("policy", "diff", str(file), ends=CHANGES)
    run("policy", "plan", str(file), "--markdown", str(markdown), ends=CHANGES)
    plan = PolicyPlan.objects.get()
    assert "all" in markdown.read_text()
    said = run("policy", "apply", plan.digest, ends=1)
    assert "409: It takes one more person" in said
    assert not Rule.objects.exists()
    file.write_text(
        "version: 1\nrules:\n  - {name: all, effect: maybe}\n  - {name: b, effect: none}\n"
    )
    said = run("policy", "validate", str(file), ends=1)
    assert [line.partition(" must")[0] for line in said.splitlines() if "ine " in line[:10]] == [
        "400: Line 3, rules[0].effect:",
        "Line 4, rules[1].effect:",
    ]


@pytest.mark.django_db(transaction=True)
def test_stops_users_webhooks_and_figures(run: Run, tmp_path: Path) -> None:
    scenery.person("eve", Role.APPROVER)
    run("agents", "create", "scout", "--owner", "ada")
    stop = as_json(run, "stops", "begin", "--agent", "scout", "--reason", "It spins.")
    assert "409" in run("stops", "end", str(stop["id"]), "--why", "Fixed.", ends=1)
    assert as_json(run, "health")["emergency_stops"] == 1
    assert as_json(run, "users", "disable", "eve", "--reason", "Left.")["enabled"] is False
    assert "eve" in run("users", "list")

    made = as_json(run, "webhooks", "add", "pager", "--url", "https://pager.example.com/x")
    assert made["secret"].startswith("whsec_")
    assert as_json(run, "webhooks", "disable", "pager")["enabled"] is False
    assert as_json(run, "webhooks", "test", "pager")["event"] == "test"
    # Events of a moment ago can be among them.
    events = [one["event"] for one in as_json(run, "webhooks", "deliveries", "pager")]
    assert events.count("test") == 1
    assert as_json(run, "webhooks", "send-again", "pager") == {"repeated": 0}
    assert as_json(run, "webhooks", "send-again", "email") == {"repeated": 0}
    run("webhooks", "remove", "pager")
    assert run("webhooks", "test", "pager", ends=1) == "There is no webhook 'pager'.\n"

    assert as_json(run, "usage", "--range", "7d")["calls"] == 0
    assert as_json(run, "usage", "--agent", "scout")["calls"] == 0
    assert run("usage").startswith("range")
    entries = as_json(run, "entries", "list", "--filter", "action=freeze.began")
    assert [one["action"] for one in entries] == ["freeze.began"]
    assert "400" in run("entries", "list", "--filter", "range=nine", ends=1)
    file = tmp_path / "entries.jsonl"
    run("entries", "export", "--output", str(file), "--filter", "agent=scout")
    assert '"freeze.began"' in file.read_text()


@pytest.mark.django_db(transaction=True)
def test_any_other_request_is_one_command(run: Run) -> None:
    made = json.loads(run("api", "post", "rules", "--data", '{"name": "x", "effect": "deny"}'))
    there = f"rules/{made['id']}"

    changed = json.loads(run("api", "patch", there, "--data", "-", typed='{"reason": "So."}'))

    assert changed["reason"] == "So."
    run("api", "delete", there)
    assert not Rule.objects.exists()
    assert "--data is not JSON" in run("api", "post", "rules", "--data", "{", ends=1)


@pytest.mark.parametrize(
    ("asked", "version_at"),
    [("operations", "/openapi"), ("connection", ""), ("openapi", "/openapi")],
)
def test_a_change_is_sent_with_the_version_of_what_it_changes(
    monkeypatch: pytest.MonkeyPatch, asked: str, version_at: str
) -> None:
    with far_end(answer({}, ETag='"7"'), answer({})) as there:
        monkeypatch.setenv("COUNTERSIGN_URL", there.url)
        monkeypatch.setenv("COUNTERSIGN_TOKEN", "css_secret")
        assert main(["api", "put", f"servers/pets/{asked}", "--data", "{}"]) == 0

    read, changed = there.requests
    assert read[:2] == ("GET", f"/api/v1/servers/pets{version_at}")
    assert changed[:2] == ("PUT", f"/api/v1/servers/pets/{asked}")
    assert changed[2]["if-match"] == '"7"'


@pytest.mark.django_db(transaction=True)
def test_a_chats_address_is_read_and_never_an_argument(run: Run) -> None:
    secret = "https://hooks.slack.com/services/T0/B0/verysecretpath"

    made = run("webhooks", "add", "ops", "--format", "slack", typed=f"{secret}\n")

    assert "ops" in made
    assert "verysecret" not in made


@pytest.mark.django_db(transaction=True)
def test_another_user_is_put_on_call(run: Run, ada: User) -> None:
    eve = scenery.person("eve", Role.APPROVER)
    nights = OnCallSchedule(name="nights", handover_at=time(9), starts_on=date(2026, 3, 2))
    schedules.save(nights, [eve], by=ada)
    now = timezone.now()
    times = ("--begins", now.isoformat(), "--ends", (now + timedelta(hours=1)).isoformat())
    assert "eve" in run("on-call", "list")

    made = as_json(run, "on-call", "override", "nights", "ada", *times)

    assert [one["on_call"] for one in as_json(run, "on-call", "list")] == ["ada"]
    assert made["id"] in run("on-call", "overrides", "nights")
    run("on-call", "remove-override", "nights", made["id"])
    assert as_json(run, "on-call", "overrides", "nights") == []
    said = run("on-call", "override", "days", "ada", *times, ends=1)
    assert said == "There is no on-call schedule 'days'.\n"


@pytest.mark.django_db(transaction=True)
def test_what_is_not_permitted_names_the_permission(
    ada: User, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COUNTERSIGN_TOKEN", program("reader", ada, "calls.view_call").token)

    assert "registry.view_server" in run("servers", "list", ends=1)


# What is shown


def test_no_row_speaks_to_the_terminal() -> None:
    assert shown("a\x1b[31mb\u202ec\nd") == r"a\u001b[31mb\u202ec\u000ad"
    assert (shown(None), shown(True), shown(["a", "b"])) == ("–", "yes", "a, b")


def test_columns_are_straight_with_chinese_too(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [
        {"id": 1, "agent": name, "tool": "t", "owner": "o", "state": "s", "uses": 1}
        | {"max_uses": 1, "expires_at": "x"}
        for name in ("智能体", "scout")
    ]
    with far_end(answer({"items": rows, "next": None})) as there:
        monkeypatch.setenv("COUNTERSIGN_URL", there.url)
        monkeypatch.setenv("COUNTERSIGN_TOKEN", "css_x")
        assert main(["standing-approvals", "list"]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[1].index("  t") + 3 == lines[2].index("  t")


def test_wrong_arguments_have_an_exit_code_of_their_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for words in (["nothing"], ["servers"], ["usage", "--range", "2h"]):
        with pytest.raises(SystemExit) as ended:
            main(words)
        assert ended.value.code == USAGE
    assert "usage: countersign" in capsys.readouterr().err


# Profiles


def typed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))


def test_a_token_is_kept_where_only_its_owner_reads_it(
    profiles: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    me = {"name": "robot", "permissions": ["calls.view_call"], "expires_at": "2026-12-24"}
    typed(monkeypatch, "css_secret\n")
    with far_end(answer(me)) as there:
        assert main(["profile", "add", "prod", there.url]) == 0
        assert main(["me", "--json"]) == 0

    said = capsys.readouterr().out
    assert "robot: 1 permissions" in said
    assert "css_secret" not in said
    assert stat.S_IMODE(profiles.stat().st_mode) == 0o600
    assert [headers["authorization"] for _m, _p, headers in there.requests] == [
        "Bearer css_secret"
    ] * 2


def test_one_of_several_profiles_is_used(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = f"{sys.executable} -c \"print('css_of_a_command')\""
    with far_end(answer({})) as one, far_end(answer({})) as two:
        typed(monkeypatch, "css_one\n")
        main(["profile", "add", "one", one.url, "--unchecked"])
        main(["profile", "add", "two", two.url, "--unchecked", "--token-command", command])
        main(["me"])
        main(["--profile", "two", "me"])
        main(["profile", "use", "two"])
        main(["me"])
        capsys.readouterr()
        assert main(["profile", "list"]) == 0
        assert capsys.readouterr().out.splitlines()[2].split() == ["two", two.url, "yes"]
        main(["profile", "remove", "two"])
        assert main(["me"]) == 1
        assert main(["me", "--profile", "three"]) == 1

    assert (len(one.requests), len(two.requests)) == (1, 2)
    assert two.requests[0][2]["authorization"] == "Bearer css_of_a_command"
    assert "There is no profile 'three'" in capsys.readouterr().err


def test_a_broken_file_of_profiles_is_named(
    profiles: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    profiles.parent.mkdir()
    profiles.write_text("{")

    assert main(["me"]) == 1
    assert "is no file of profiles" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "url", "why"),
    [
        ("x", "127.0.0.1:18500", "is no address"),
        ("x", "http://example.com", "in clear"),
        (" ", "https://example.com", "needs a name"),
    ],
)
@pytest.mark.parametrize("unchecked", [[], ["--unchecked"]])
def test_a_wrong_profile_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    profiles: Path,
    name: str,
    url: str,
    why: str,
    unchecked: list[str],
) -> None:
    typed(monkeypatch, "css_secret\n")

    assert main(["profile", "add", name, url, *unchecked]) == 1
    said = capsys.readouterr().err
    assert why in said.splitlines()[-1]
    assert "Traceback" not in said
    assert not profiles.exists()


@pytest.mark.parametrize("name", ["COUNTERSIGN_URL", "COUNTERSIGN_TOKEN"])
def test_half_of_an_installation_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    with far_end(answer({})) as there:
        typed(monkeypatch, "css_one\n")
        main(["profile", "add", "prod", there.url, "--unchecked"])
        monkeypatch.setenv(name, "https://staging.example.com")

        assert main(["me"]) == 1
        assert main(["me", "--profile", "prod"]) == 0

    assert len(there.requests) == 1
    assert "Set both COUNTERSIGN_URL and COUNTERSIGN_TOKEN" in capsys.readouterr().err


# The file by itself


def test_the_file_runs_alone(tmp_path: Path) -> None:
    alone = tmp_path / "countersign"
    alone.write_bytes(generate.CLIENT.read_bytes())
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}

    command = [sys.executable, "-I", str(alone), "me"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 1
    assert "countersign profile add NAME URL" in done.stderr
    assert os.access(generate.CLIENT, os.X_OK)


def test_bash_completes_it(tmp_path: Path) -> None:
    script = f"""
        countersign() {{ {sys.executable} {generate.CLIENT} "$@"; }}
        eval "$(countersign completion bash)"
        COMP_WORDS=(countersign toolsets export desk --format o) COMP_CWORD=5
        _countersign; echo "${{COMPREPLY[*]}}"
        COMP_WORDS=(countersign pol) COMP_CWORD=1
        _countersign; echo "${{COMPREPLY[*]}}"
    """

    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout.splitlines() == ["openai", "policy"]


def test_every_command_has_a_sentence_of_help() -> None:
    def walk(parser: Any) -> None:
        for action in parser._actions:
            if action.choices and hasattr(action, "add_parser"):
                assert {one.dest for one in action._choices_actions} == set(action.choices)
                assert all(one.help for one in action._choices_actions)
                for one in action.choices.values():
                    walk(one)

    walk(make_parser())
