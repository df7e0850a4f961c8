"""A script sets up a server and all that its agents need by the API alone, as the issue asks."""

import pytest

from accounts.models import User
from accounts.roles import Role
from audit.models import Entry
from tests.console import scenery
from tests.gateway.service_api import Program, program
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ada(db: None) -> User:
    return scenery.person("ada", *Role)


@pytest.fixture
def first(ada: User) -> Program:
    return program("first", ada)


@pytest.fixture
def second(db: None) -> Program:
    return program("second", scenery.person("eve", *Role))


@pytest.mark.long
def test_a_script_does_it_all(first: Program, second: Program, upstream: Recorder) -> None:
    publish(first, upstream)
    token = connect(first)
    govern(first)
    stop(first, second)
    read(first, token)

    changes = Entry.objects.filter(actor="service account first")
    assert {
        "server.registered",
        "definition.published",
        "toolset.created",
        "toolset.added",
        "agent.created",
        "token.issued",
        "token.rotated",
        "token.revoked",
        "rule.saved",
        "rule.removed",
        "limit.saved",
        "limit.removed",
        "freeze.began",
        "audit.exported",
    } <= set(changes.values_list("action", flat=True))
    ended = Entry.objects.get(action="freeze.ended")
    assert ended.actor == "service account second"


def publish(first: Program, upstream: Recorder) -> None:
    first.post("servers", {"name": "rec", "url": upstream.url})
    found = first.post("servers/rec/discoveries")
    assert found["succeeded"], found["summary"]

    reviews = first.get("servers/rec/reviews")
    echo = next(one for one in reviews["items"] if one["name"] == "rec.echo")
    reviewed = {"name": "rec.echo", "digest": echo["digest"]}
    first.post("servers/rec/publications", {"definitions": [reviewed]})

    assert first.get("tools/rec.echo")["state"] == "published"
    (known,) = first.get("tools/rec.echo/definitions")["items"]
    assert known["definition"]["name"] == "echo"
    assert first.get("tools/rec.echo/difference?from=1&to=1")["changes"] == []


def connect(first: Program) -> str:
    """The agent's token."""
    first.post("toolsets", {"name": "desk"})
    first.post("agents", {"name": "scout", "owner": "ada"})
    desk = first.change("toolsets/desk", {"tools": ["rec.echo"], "agents": ["scout"]})
    assert (desk["tools"], desk["agents"]) == (["rec.echo"], ["scout"])

    issued = first.post("agents/scout/tokens", {"days": 7})
    rotated = first.post(f"agents/scout/tokens/{issued['id']}/rotate")
    first.post(f"agents/scout/tokens/{issued['id']}/revoke", {"reason": "Rotated."})
    assert issued["token"] != rotated["token"]
    return str(rotated["token"])


def govern(first: Program) -> None:
    rule = first.post("rules", {"name": "echo asks", "effect": "ask", "tool": "echo"})
    changed = first.change(f"rules/{rule['id']}", {"reason": "It speaks.", "place": 1})
    assert changed["reason"] == "It speaks."
    other = first.post("rules", {"name": "no nonsense", "effect": "deny", "tool": "nonsense"})
    first.change(f"rules/{other['id']}", method="DELETE")

    limit = {"name": "slowly", "kind": "calls", "effect": "deny", "amount": "5", "period": "minute"}
    made = first.post("limits", limit)
    assert first.change(f"limits/{made['id']}", {"amount": "7"})["amount"] == "7"
    first.change(f"limits/{made['id']}", method="DELETE")


def stop(first: Program, second: Program) -> None:
    stop = first.post("emergency-stops", {"agent": "scout", "reason": "It spins."})
    own = first.ask("POST", f"emergency-stops/{stop['id']}/end", {"why": "It stood still."})
    assert own.status_code == 409
    ended = second.post(f"emergency-stops/{stop['id']}/end", {"why": "I looked."})
    assert (ended["began_by_account"], ended["ended_by_account"]) == ("first", "second")


def read(first: Program, token: str) -> None:
    call = {"toolset": "desk", "tool": "rec_echo", "arguments": {"text": "hi"}}
    as_agent = Program(token, "/api/").ask("POST", "calls?wait=0", call)
    assert as_agent.status_code == 202, as_agent.content
    (pending,) = first.get("approvals")["items"]
    assert pending["call"]["tool"] == "rec.echo"
    assert first.get("calls?state=held")["items"] == [pending["call"]]
    assert first.get("standing-approvals")["items"] == []

    made = first.post("exports", {"format": "jsonl", "filters": {"agent": "scout"}})
    file = first.ask("GET", f"exports/{made['id']}/file")
    lines = b"".join(file.streaming_content).decode().splitlines()
    assert any("agent.created" in line for line in lines)
