"""A script imports a server by its server.json, or out of another registry."""

import json
from pathlib import Path
from typing import Any

import pytest

from accounts.models import User
from accounts.roles import Role
from registry.models import Server, ServerOrigin
from tests.console import scenery
from tests.console.test_server_imports import CLOSED, server_json
from tests.gateway.service_api import Program, program
from tests.upstreams.foreign_registry import ForeignRegistry
from tests.upstreams.sigstore import WORKFLOW, TestSigstore

pytestmark = pytest.mark.django_db(transaction=True)
VALUES = {"region": "eu", "X-Api-Key": "hush"}


@pytest.fixture
def robot(db: None) -> Program:
    ada: User = scenery.person("ada", *Role)
    return program("robot", ada)


def test_by_a_document(robot: Program) -> None:
    made = robot.post(
        "imported-servers", {"name": "weather", "server_json": server_json(), "values": VALUES}
    )

    assert (made["name"], made["address"]) == ("weather", f"{CLOSED}/eu/mcp")
    assert "hush" not in str(made)
    assert ServerOrigin.objects.get().registry == ""


def test_out_of_a_registry(robot: Program) -> None:
    with ForeignRegistry([server_json()]) as foreign:
        there = {"registry": foreign.url, "server": "io.github.ana/weather", "version": "1.2.3"}
        robot.post("imported-servers", {"name": "weather", "values": VALUES, **there})

        assert ServerOrigin.objects.get().registry == foreign.url
        assert foreign.asked == ["/v0.1/servers/io.github.ana%2Fweather/versions/1.2.3"]


@pytest.mark.long
def test_a_signature_is_verified_first(robot: Program, settings: Any, tmp_path: Path) -> None:
    sigstore, root = TestSigstore(), tmp_path / "root.json"
    root.write_bytes(sigstore.trusted_root())
    settings.SIGSTORE_TRUSTED_ROOT = str(root)
    text = json.dumps(server_json(), indent=2)
    given = {"name": "weather", "server_json_text": text, "values": VALUES}
    bundle = json.loads(sigstore.sign(text.encode()))

    answer = robot.ask("POST", "imported-servers", given | {"signature": {}})
    assert answer.status_code == 400
    assert not Server.objects.exists()
    robot.post("imported-servers", given | {"signature": bundle})

    signature = ServerOrigin.objects.get().current_signature
    assert signature is not None
    assert signature["identity"] == WORKFLOW


def test_who_vouches_for_a_server(robot: Program) -> None:
    robot.post(
        "imported-servers", {"name": "weather", "server_json": server_json(), "values": VALUES}
    )
    robot.post("servers", {"name": "bare", "url": "https://example.com/mcp"})

    found = robot.get("servers/weather/vouching")
    assert found["origin"]["name"] == "io.github.ana/weather"
    assert found["origin"]["digest"] == ServerOrigin.objects.get().digest
    assert not found["origin"]["is_namespace_checked"]
    assert found["review"] is None
    assert found["signature"] is None
    bare = robot.get("servers/bare/vouching")
    assert (bare["origin"], bare["signature"]) == (None, None)


@pytest.mark.long
def test_a_signature_is_given_later_and_removed(
    robot: Program, settings: Any, tmp_path: Path
) -> None:
    sigstore, root = TestSigstore(), tmp_path / "root.json"
    root.write_bytes(sigstore.trusted_root())
    settings.SIGSTORE_TRUSTED_ROOT = str(root)
    text = json.dumps(server_json(), indent=2)
    robot.post("imported-servers", {"name": "weather", "server_json_text": text, "values": VALUES})
    signed = {"bundle": json.loads(sigstore.sign(text.encode())), "server_json_text": text}
    where, there = "servers/weather/vouching", "servers/weather/signature"
    before = robot.ask("GET", where)["ETag"]

    assert robot.ask("PUT", there, signed).status_code == 428
    assert robot.ask("PUT", there, {"bundle": {}}, If_Match=before).status_code == 400
    unsaid = robot.ask("PUT", there, {"bundle": signed["bundle"]}, If_Match=before)
    assert (
        unsaid.json()["detail"]
        == "It signs a file. Give the server.json as the file that was signed."
    )
    given = robot.ask("PUT", there, signed, If_Match=before)

    assert given.status_code == 200, given.content
    signature = robot.get(where)["signature"]
    assert given.json()["signature"] == signature
    assert (signature["identity"], signature["about"]) == (WORKFLOW, "server.json")
    assert signature["is_publishers"]
    assert robot.ask("DELETE", there, If_Match=before).status_code == 412
    assert robot.ask("DELETE", there, If_Match=given["ETag"]).status_code == 204
    assert robot.get(where)["signature"] is None
    assert robot.ask("DELETE", there, If_Match=robot.ask("GET", where)["ETag"]).status_code == 404


@pytest.mark.long
def test_a_server_that_was_not_imported_takes_no_signature(robot: Program) -> None:
    robot.post("servers", {"name": "bare", "url": "https://example.com/mcp"})
    tag = robot.ask("GET", "servers/bare/vouching")["ETag"]

    assert (
        robot.ask("PUT", "servers/bare/signature", {"bundle": {}}, If_Match=tag).status_code == 404
    )


@pytest.mark.long
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"registry": "https://example.com"},
        {"server_json": server_json(), "registry": "https://example.com", "server": "a/b"},
        {"server_json": server_json(), "server_json_text": json.dumps(server_json())},
        {"server_json": server_json()},
        {"server_json": server_json(), "values": VALUES, "remote": 1},
        {"server_json": server_json(_meta={"a\0": 1}), "values": VALUES},
        {"server_json": server_json(), "package": 0},
        {"server_json": server_json(), "package": 0, "command": "x"},
        {"server_json": server_json(name="nonsense"), "values": VALUES},
        {"server_json": server_json(), "values": {"region": "..", "X-Api-Key": "hush"}},
        {"registry": "http://169.254.169.254", "server": "a/b"},
        {"registry": "http://[bad", "server": "a/b"},
        {"registry": "https://example.com:99999999", "server": "a/b"},
        {"server_json": server_json(remotes=[{"type": "sse", "url": "http://[bad/mcp"}])},
        {"server_json": server_json(remotes=[{"type": "sse", "url": "https://a:99999999/mcp"}])},
        {"server_json": server_json(), "values": {**VALUES, "zz": "1"}},
    ],
)
def test_what_is_wrong_is_a_problem(robot: Program, given: dict[str, Any]) -> None:
    answer = robot.ask("POST", "imported-servers", {"name": "weather", **given})

    assert answer.status_code == 400, answer.content
    assert not Server.objects.exists()
