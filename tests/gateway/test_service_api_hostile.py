"""Hostile requests to the service API: loosening by detours, races, and addresses of no row."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connections

from accounts.models import Agent, User
from accounts.roles import Role
from gateway.rest.v1.views import RATE
from policies.decide import Decision, Subject, load
from policies.models import Rule
from registry import services
from registry.models import Toolset
from tests.console import scenery
from tests.gateway.service_api import Program, program

pytestmark = pytest.mark.django_db
DENY = {"name": "no mail", "effect": "deny", "tool": "send_mail"}


@pytest.fixture
def ada(db: None) -> User:
    return scenery.person("ada", *Role)


@pytest.fixture
def robot(ada: User) -> Program:
    return program("robot", ada)


def problem(answer: Any, status: int) -> Any:
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/problem+json"
    return answer.json()


def at_once(*works: Callable[[], Any]) -> list[int]:
    """The status of each answer."""
    ready, answers = threading.Barrier(len(works)), []

    def do(work: Callable[[], Any]) -> None:
        ready.wait()
        try:
            answers.append(work().status_code)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=do, args=[work]) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == len(works)
    return sorted(answers)


# Loosening


def decision() -> Decision:
    asked = Subject(1, "scout", frozenset(), 1, "mailer", "send_mail", {}, arguments={})
    return load().decide(asked)


@pytest.mark.parametrize(
    "given",
    [
        {"thresholds": [{"approve": 1, "deny": 9, "from": "person:ada"}]},
        {"decide_within": 86_400},
        {"start_within": 86_400},
        {"shows_arguments": True},
    ],
)
def test_a_denial_that_cannot_be_judged_names_no_deciders_and_times(
    ada: User, given: dict[str, Any]
) -> None:
    adding = program("adding", ada, "policies.add_rule")
    unjudged = {**DENY, "when": "args.nothing > 1", **given}

    said = problem(adding.ask("POST", "rules", unjudged), 403)["detail"]

    assert "policies.change_rule" in said
    plain = decision()
    adding.post("rules", {**DENY, "when": "args.nothing > 1"})
    asks = decision()
    assert "could not be judged" in asks.reason
    for name in ("effect", "thresholds", "decide_within_s", "start_within_s", "shows_arguments"):
        assert getattr(asks, name) == getattr(plain, name)


def test_a_rule_is_read_and_set_whole(robot: Program) -> None:
    made = robot.post("rules", {"name": "asks", "effect": "ask"})

    assert made["shows_arguments"] is False
    settable = {name: value for name, value in made.items() if name not in ("id", "position")}
    assert robot.change(f"rules/{made['id']}", settable) == made


def test_no_program_lets_messages_show_what_it_may_not_read(robot: Program) -> None:
    shows = {"name": "asks", "effect": "ask", "shows_arguments": True}

    answer = robot.ask("POST", "rules", shows)

    assert answer.status_code == 400
    assert answer.json()["errors"][0]["pointer"] == "#/shows_arguments"
    assert not Rule.objects.exists()


# What a token does not open


@pytest.mark.long
def test_agents_of_toolsets_are_seen_by_those_who_may_see_agents(ada: User, scout: Agent) -> None:
    services.assign(services.create_toolset("desk", by=ada), scout, by=ada)
    scopes = ("registry.view_toolset", "registry.change_toolset")
    blind, seeing = program("a", ada, *scopes), program("b", ada, *scopes, "accounts.view_agent")

    assert blind.get("toolsets")["items"][0]["agents"] == []
    assert blind.get("toolsets/desk")["agents"] == []
    assert blind.change("toolsets/desk", {"title": "Desk"})["agents"] == []
    assert seeing.get("toolsets/desk")["agents"] == ["scout"]
    assert list(Toolset.objects.get().agents.all()) == [scout]


def test_requests_without_the_permission_count_too(
    ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = program("reading", ada, "policies.view_rule")
    monkeypatch.setattr(RATE, "amount", 2)

    answers = [reading.ask("POST", "rules", DENY) for _n in range(3)]

    assert [answer.status_code for answer in answers] == [403, 403, 429]
    assert answers[0]["RateLimit"].startswith('"token";r=1')


# Versions and races


def test_another_credential_is_another_version(robot: Program) -> None:
    robot.post("servers", {"name": "x", "url": "http://127.0.0.1:9/mcp", "credential": "one"})
    tag = robot.ask("GET", "servers/x")["ETag"]
    two = {"url": "http://127.0.0.1:9/mcp", "credential": "two"}

    done = robot.ask("PUT", "servers/x/connection", two, If_Match=tag)

    assert done["ETag"] == robot.ask("GET", "servers/x")["ETag"] != tag
    problem(robot.ask("PUT", "servers/x/connection", two, If_Match=tag), 412)


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_a_rule_is_deleted_by_one_of_two_at_once(robot: Program) -> None:
    def delete() -> Callable[[], Any]:
        path = f"rules/{robot.post('rules', DENY)['id']}"
        tag = robot.ask("GET", path)["ETag"]
        return lambda: robot.ask("DELETE", path, If_Match=tag)

    for _n in range(4):
        statuses = at_once(*[delete()] * 4)
        assert statuses == [204, 404, 404, 404]


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_two_rules_change_places_at_once(robot: Program) -> None:
    made = [robot.post("rules", {**DENY, "name": name})["id"] for name in "abcd"]

    def place(pk: int) -> Any:
        tag = robot.ask("GET", f"rules/{pk}")["ETag"]
        return lambda: robot.ask("PATCH", f"rules/{pk}", {"place": 1}, If_Match=tag)

    for _n in range(4):
        statuses = at_once(*[place(pk) for pk in made])
        # Whose row was moved by another has another version.
        assert set(statuses) <= {200, 412}, statuses
        assert 200 in statuses


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    ("path", "given"),
    [
        ("rules", DENY),
        ("toolsets", {"name": "desk"}),
        ("agents", {"name": "robin", "owner": "ada"}),
        ("servers", {"name": "x", "url": "http://127.0.0.1:9/mcp"}),
        ("emergency-stops", {"everything": True, "reason": "Smoke."}),
    ],
)
def test_one_of_three_at_once_makes_it(robot: Program, path: str, given: dict[str, Any]) -> None:
    statuses = at_once(*[lambda: robot.ask("POST", path, given)] * 3)

    assert statuses[0] == 201
    assert set(statuses[1:]) <= {400, 409}, statuses


# Addresses and members of nothing


@pytest.mark.long
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "tools/%00.x"),
        ("GET", "tools/a%00.x/definitions"),
        ("POST", "agents/scout/tokens/%00/revoke"),
        ("POST", "agents/scout/tokens/%00/rotate"),
    ],
)
def test_an_address_with_nul_is_none(robot: Program, scout: Agent, method: str, path: str) -> None:
    problem(robot.ask(method, path), 404)


def test_what_is_only_put_has_no_head(robot: Program, ada: User) -> None:
    scenery.server("mailer", ada, scenery.SEND)

    assert robot.ask("HEAD", "servers/mailer/connection").status_code == 405


@pytest.mark.parametrize(
    ("path", "given", "place"),
    [
        ("rules", {**DENY, "thresholds": {"approve": 1}}, "#/thresholds"),
        ("servers/mailer/publications", {"definitions": []}, "#/definitions"),
        ("servers/mailer/publications", {"definitions": [1]}, "#/definitions/0"),
        ("emergency-stops", {"reason": "Smoke."}, "#"),
    ],
)
def test_a_mistake_has_the_place_of_a_member(
    robot: Program, ada: User, path: str, given: dict[str, Any], place: str
) -> None:
    scenery.server("mailer", ada, scenery.SEND)

    (mistake,) = problem(robot.ask("POST", path, given), 400)["errors"]

    assert mistake["pointer"] == place


@pytest.mark.parametrize("given", [{"since": "x"}, {"until": "yesterday"}, {"range": "1y"}])
def test_a_time_that_is_none_does_not_open_all_entries(
    robot: Program, given: dict[str, str]
) -> None:
    (mistake,) = problem(robot.ask("POST", "exports", {"filters": given}), 400)["errors"]
    assert mistake["pointer"] == "#/filters"
    ((name, value),) = given.items()
    said = problem(robot.ask("GET", f"entries?{name}={value}"), 400)["detail"]
    assert said == f"The value of “{name}” fits nothing."

    assert robot.get("entries?since=2020-01-01T00:00")["items"]
    robot.post("exports", {"filters": {"range": "24h"}})
