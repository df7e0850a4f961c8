"""The sign-in of a server, set by programs: service accounts by REST, and the host's command."""

from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from accounts.models import User
from accounts.roles import Role
from audit.models import Entry
from registry.models import Server, ServerClient, ServerCredential
from tests.conftest import person
from tests.gateway.service_api import Program, program
from tests.signing_in import set_up

pytestmark = pytest.mark.django_db

CHANGE = "registry.change_server"
PLACE = "servers/acme/sign-in"
OAUTH = {"mode": "oauth-person", "client_id": "ours", "scopes": ["read", "write"]}


@pytest.fixture
def acme(bob: User) -> Server:
    return Server.objects.create(
        slug="acme", transport="http", url="https://acme.example/mcp", owner=bob
    )


@pytest.fixture
def robot(acme: Server) -> Program:
    return program(
        "robot", person("ada", Role.ADMINISTRATOR, Role.OPERATOR), "registry.view_server", CHANGE
    )


def connected(server: Server, person: User) -> ServerCredential:
    client = ServerClient.objects.get(server=server)
    return ServerCredential.objects.create(
        server=server, person=person, issuer=client.issuer, sealed=b"x"
    )


def test_a_program_sets_whose_credential_calls_carry(robot: Program, acme: Server) -> None:
    assert robot.get(PLACE)["mode"] == ""

    said = robot.change(PLACE, {**OAUTH, "client_secret": "s3cret-canary"}, "PUT")

    assert said == robot.get(PLACE)
    assert said == {
        "mode": "oauth-person",
        "client_id": "ours",
        "registration": "given",
        "has_client_secret": True,
        "issuer": "",
        "scopes": ["read", "write"],
        "header": "",
        "redirect_uri": f"http://127.0.0.1:8000/connections/callback/{acme.pk}/",
    }
    entry = Entry.objects.get(action="server.sign_in_set")
    assert (entry.server, (entry.details or {})["sign_in"]) == ("acme", "oauth-person")
    assert "robot" in entry.actor
    assert "s3cret-canary" not in str(entry.details)


def test_what_is_set_already_ends_no_connection(robot: Program, acme: Server, bob: User) -> None:
    robot.change(PLACE, OAUTH, "PUT")
    kept = connected(acme, bob)

    robot.change(PLACE, OAUTH, "PUT")
    call_command(
        *("set_server_sign_in", "acme", "oauth-person", "--client-id", "ours"),
        *("--scope", "read", "--scope", "write"),
        stdout=StringIO(),
    )
    assert ServerCredential.objects.filter(pk=kept.pk).exists()
    assert Entry.objects.filter(action="server.sign_in_set").count() == 1

    robot.change(PLACE, {**OAUTH, "scopes": ["read"]}, "PUT")
    assert not ServerCredential.objects.exists()


@pytest.mark.parametrize(
    ("wrong", "place"),
    [
        ({}, "mode"),
        ({"mode": "oauth-everybody"}, "mode"),
        ({"mode": True}, "mode"),
        ({"mode": "key-team"}, "header"),
        ({"mode": "oauth", "client_secret": "x"}, "client_id"),
        ({"mode": "oauth", "scopes": "read write"}, "scopes"),
        ({"mode": "oauth", "issuer": "https://evil.example"}, "issuer"),
        ({"mode": "oauth", "client_id": 1}, "client_id"),
    ],
)
def test_a_program_is_told_what_is_wrong(
    robot: Program, acme: Server, wrong: Any, place: str
) -> None:
    tag = robot.ask("GET", PLACE)["ETag"]

    answer = robot.ask("PUT", PLACE, wrong, If_Match=tag)

    assert answer.status_code == 400
    assert [one["pointer"] for one in answer.json()["errors"]] == [f"#/{place}"]
    assert not ServerClient.objects.exists()


def test_a_header_that_no_key_may_go_into_is_refused(robot: Program, acme: Server) -> None:
    tag = robot.ask("GET", PLACE)["ETag"]

    answer = robot.ask("PUT", PLACE, {"mode": "key-agent", "header": "Host"}, If_Match=tag)

    assert 400 <= answer.status_code < 500
    assert not ServerClient.objects.exists()


def test_who_read_an_older_version_changes_nothing(robot: Program, acme: Server, bob: User) -> None:
    tag = robot.ask("GET", PLACE)["ETag"]
    set_up(acme, Server.SignIn.TEAM, by=bob)

    assert robot.ask("PUT", PLACE, OAUTH, If_Match=tag).status_code == 412
    assert robot.ask("PUT", PLACE, OAUTH).status_code == 428
    acme.refresh_from_db()
    assert acme.sign_in == Server.SignIn.TEAM


def test_a_command_has_no_sign_in(robot: Program, bob: User) -> None:
    Server.objects.create(slug="local", transport="stdio", command="x", argv=["x"], owner=bob)
    tag = robot.ask("GET", "servers/local/sign-in")["ETag"]

    answer = robot.ask("PUT", "servers/local/sign-in", {"mode": "oauth"}, If_Match=tag)

    assert 400 <= answer.status_code < 500
    assert "Only servers at a URL" in answer.content.decode()


def test_the_hosts_command_sets_it(
    acme: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", StringIO("s3cret-canary\n"))

    call_command("set_server_sign_in", "acme", "oauth", "--client-id", "ours", "--client-secret")

    client = ServerClient.objects.get(server=acme)
    assert (client.client_id, client.sealed_secret is not None) == ("ours", True)
    assert capsys.readouterr().out == "The sign-in of acme is set: oauth.\n"
    call_command("set_server_sign_in", "acme", "shared")
    acme.refresh_from_db()
    assert acme.sign_in == ""
    assert not ServerClient.objects.exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nothing", "oauth"], "no server named"),
        (["acme", "key-person"], "Enter the header"),
        (["acme", "key-person", "--header", "Host"], "Host"),
    ],
)
def test_the_hosts_command_says_what_is_wrong(acme: Server, words: list[str], said: str) -> None:
    with pytest.raises(CommandError, match=said):
        call_command("set_server_sign_in", *words)
