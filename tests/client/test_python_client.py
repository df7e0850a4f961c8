"""The typed client: written out of the OpenAPI document, and used against the running API."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from accounts.models import User
from accounts.roles import Role
from client import generate
from client.countersign import Countersign, Problem, Unreachable
from gateway.rest.v1 import urls
from registry.models import Tool
from tests.client.far_end import answer, far_end
from tests.console import scenery
from tests.gateway.service_api import program
from tests.upstreams.recorder import Recorder

STALE = "write it again: python -m client.generate --write"


def test_the_file_is_what_the_document_writes() -> None:
    assert generate.CLIENT.read_text() == generate.write(), STALE


def test_it_has_a_method_for_each_operation_that_a_token_may_do() -> None:
    sent = [name for name in vars(Countersign) if not name.startswith("_")]
    done = sum(len(view.scopes) for _route, view, name in urls.ROUTES if name not in DECIDING)
    assert len(sent) == done


DECIDING = ("approve", "deny")


@pytest.fixture
def ada(db: None) -> User:
    return scenery.person("ada", *Role)


@pytest.fixture
def api(ada: User, live_server: Any) -> Countersign:
    return Countersign(live_server.url, program("robot", ada).token)


@pytest.mark.django_db(transaction=True)
def test_a_program_sets_up_a_server_and_an_agent(api: Countersign, upstream: Recorder) -> None:
    api.create_server({"name": "rec", "url": upstream.url})
    assert api.create_discovery("rec")["succeeded"]
    echo = next(one for one in api.get_reviews("rec")["items"] if one["name"] == "rec.echo")
    reviewed: Any = {"name": "rec.echo", "digest": echo["digest"]}
    api.create_publication("rec", {"definitions": [reviewed]})
    api.create_toolset({"name": "desk"})
    api.create_agent({"name": "scout", "owner": "ada"})
    desk = api.get_toolset("desk")
    changed = api.update_toolset(
        "desk", {"tools": ["rec.echo"], "agents": ["scout"]}, etag=desk.etag
    )
    token = api.create_token("scout", {"days": 7})

    assert changed.value["tools"] == ["rec.echo"]
    assert changed.etag != desk.etag
    assert (token["token"] or "").startswith("csa_")
    assert Tool.objects.get(exposed_name="rec.echo").state == Tool.State.PUBLISHED
    assert [one["name"] for one in api.list_tools(server="rec") if one["state"] == "published"] == [
        "rec.echo"
    ]
    assert list(api.list_approvals()) == []
    assert api.get_difference("rec.echo", from_=1, to=1)["changes"] == []
    with pytest.raises(Problem) as caught:
        api.update_toolset("desk", {"title": "Desk"}, etag=desk.etag)
    assert caught.value.status == 412


@pytest.mark.long
@pytest.mark.django_db(transaction=True)
def test_every_page_of_a_list_is_read(api: Countersign, ada: User) -> None:
    for n in range(60):
        api.create_rule({"name": f"rule {n}", "effect": "ask"})

    assert len({rule["name"] for rule in api.list_rules()}) == 60


@pytest.mark.django_db(transaction=True)
def test_a_mistake_names_its_member(api: Countersign) -> None:
    with pytest.raises(Problem) as caught:
        api.create_rule({"name": "", "effect": "ask"})

    assert caught.value.status == 400
    assert caught.value.errors[0]["pointer"] == "#/name"


@pytest.mark.django_db(transaction=True)
def test_a_file_that_changes_nothing_is_no_plan(api: Countersign) -> None:
    policy = api.get_policy_export()["policy"]

    assert api.create_policy_plan({"proposal": policy}) is None


def test_a_change_is_sent_again_under_the_same_key() -> None:
    with far_end(answer({}, 503, Retry_After="0"), answer({"name": "scout"}, 201)) as there:
        api = Countersign(there.url, "css_x")

        assert api.create_agent({"name": "scout", "owner": "ada"})["name"] == "scout"

    keys = [headers["idempotency-key"] for _method, _path, headers in there.requests]
    assert len(keys) == 2
    assert len(set(keys)) == 1


def test_a_change_without_a_key_is_sent_once() -> None:
    with far_end(answer({"detail": "Busy."}, 503, Retry_After="0")) as there:
        api = Countersign(there.url, "css_x")

        with pytest.raises(Problem, match="Busy"):
            api.update_agent("scout", {"enabled": False}, etag='"1"')

    assert len(there.requests) == 1


def test_no_redirect_is_followed_with_the_token() -> None:
    with far_end(answer({})) as other, far_end(answer({}, 302, Location=other.url)) as there:
        found = _problem_of(there.url)

    assert found.status == 302
    assert other.requests == []


def _problem_of(url: str) -> Problem:
    with pytest.raises(Problem) as caught:
        Countersign(url, "css_x").get_me()
    return caught.value


@pytest.mark.parametrize("url", ["http://console.example.com", "console.example.com", "file:///x"])
def test_a_token_is_not_sent_in_clear_and_only_to_an_address(url: str) -> None:
    with pytest.raises(ValueError, match="https"):
        Countersign(url, "css_x")


def test_a_proxys_page_is_a_problem_all_the_same() -> None:
    with far_end((500, {}, b"<h1>Bad")) as there:
        found = _problem_of(there.url)

    assert (found.status, found.title) == (500, "Internal Server Error")


def test_where_nobody_answers_it_says_so() -> None:
    with far_end(answer({})) as there:
        url = there.url

    with pytest.raises(Unreachable):
        Countersign(url, "css_x", attempts=1).get_me()


def test_names_are_encoded_in_addresses() -> None:
    with far_end(answer({})) as there:
        Countersign(there.url, "css_x").get_tool("a/../b?c")

    assert there.requests[0][1] == "/api/v1/tools/a%2F..%2Fb%3Fc"


def test_what_is_longer_than_the_export_is_not_taken_for_it(tmp_path: Path) -> None:
    part = tmp_path / "log.part"
    part.write_bytes(b"three")
    digest = hashlib.sha256(b"two").hexdigest()
    beyond = answer({"title": "Requested Range not satisfiable"}, 416, Content_Range="bytes */3")
    with far_end(beyond) as there, pytest.raises(ValueError, match="is not what was prepared"):
        Countersign(there.url, "token").download("/file", part, digest=digest)


@pytest.mark.parametrize(
    "command", [["exports", "download", "1"], ["entries", "export", "--background"]]
)
def test_a_download_takes_the_place_of_no_device(command: list[str], tmp_path: Path) -> None:
    device = tmp_path / "device"
    os.mkfifo(device)
    with far_end(answer({}, 500)) as there:
        done = subprocess.run(
            [sys.executable, generate.CLIENT, *command, "--output", device],
            env={"COUNTERSIGN_URL": there.url, "COUNTERSIGN_TOKEN": "token"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    assert (done.returncode, there.requests) == (1, [])
    assert "is no regular file." in done.stderr
    assert device.is_fifo()


def test_a_full_disk_leaves_the_file_that_was_there(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("before")
    command = [sys.executable, str(generate.CLIENT), "policy", "export", "--output", str(file)]
    with far_end(answer({"policy": "x" * 5_000})) as there:
        done = subprocess.run(
            # Files of at most 1 kB.
            ["bash", "-c", 'ulimit -f 1; exec "$@"', "bash", *command],
            env={"COUNTERSIGN_URL": there.url, "COUNTERSIGN_TOKEN": "token"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    assert done.returncode == 1
    assert "File too large" in done.stderr
    assert [one.name for one in tmp_path.iterdir()] == ["policy.yaml"]
    assert file.read_text() == "before"


def test_output_goes_through_a_link_and_leaves_an_unfinished_download(tmp_path: Path) -> None:
    kept, unfinished, link = tmp_path / "kept", tmp_path / "policy.part", tmp_path / "policy"
    kept.write_text("before")
    kept.chmod(0o600)
    link.symlink_to(kept)
    unfinished.write_text("half")
    with far_end(answer({"policy": "after"})) as there:
        done = subprocess.run(
            [sys.executable, generate.CLIENT, "policy", "export", "--output", link],
            env={"COUNTERSIGN_URL": there.url, "COUNTERSIGN_TOKEN": "token"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert link.is_symlink()
    assert (kept.read_text(), kept.stat().st_mode & 0o777) == ("after", 0o600)
    assert unfinished.read_text() == "half"
    assert {one.name for one in tmp_path.iterdir()} == {"kept", "policy", "policy.part"}


def test_a_download_goes_through_a_link(tmp_path: Path) -> None:
    kept, link = tmp_path / "kept", tmp_path / "log"
    kept.write_text("before")
    link.symlink_to(kept)
    digest = hashlib.sha256(b"after").hexdigest()
    export = {"id": 1, "state": "ready", "file": "/file", "digest": digest}
    with far_end(answer(export), (200, {}, b"after")) as there:
        done = subprocess.run(
            [sys.executable, generate.CLIENT, "exports", "download", "1", "--output", link],
            env={"COUNTERSIGN_URL": there.url, "COUNTERSIGN_TOKEN": "token"},
            capture_output=True, text=True, check=False,
        )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert (link.is_symlink(), kept.read_text()) == (True, "after")
