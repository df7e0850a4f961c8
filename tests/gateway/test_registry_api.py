"""A toolset's servers as an MCP registry, clause by clause.

Each test names what it is of: OpenAPI is modelcontextprotocol/registry,
docs/reference/api/openapi.yaml of 2025-12-01; CHANGELOG is the file beside it; GitHub is GitHub
Docs, "Configure an MCP registry for your organization or enterprise".
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from accounts import service_accounts
from accounts import services as accounts
from accounts.models import Agent, User
from accounts.roles import Role
from accounts.service_accounts import SCOPES
from audit.models import Entry
from registry import services
from registry.models import RegistryReaders, RegistryVersion, Server, Toolset
from registry.publishing import registry_versions
from tests.accounts import service_tokens
from tests.console import scenery
from tests.gateway.conftest import add_server
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)

OFFICIAL = "io.modelcontextprotocol.registry/official"
NAME = "127.0.0.1/desk.rec"
AT = f"servers/{quote(NAME, safe='')}/versions"


@pytest.fixture
def public(toolset: Toolset, bob: User) -> Toolset:
    services.set_registry_readers(toolset, RegistryReaders.ANYONE, by=bob)
    return toolset


@pytest.fixture
def crowded(public: Toolset, upstream: Recorder, bob: User) -> Toolset:
    """With a server named and one titled otherwise."""
    add_server("mail", public, upstream, by=bob)
    Server.objects.filter(slug="mail").update(title="Post 100% office")
    registry_versions.refresh_all()
    return public


def ask(path: str, token: str = "", method: str = "GET", **headers: str) -> Any:
    if token:
        headers["Authorization"] = f"Bearer {token}"
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Client().generic(method, f"/api/registry/desk/{path}", headers=named)


def get(path: str, token: str = "") -> Any:
    answer = ask(f"v0.1/{path}", token)
    assert answer.status_code == 200, answer.content
    assert answer["Content-Type"] == "application/json"
    return answer.json()


def names(body: Any) -> list[str]:
    return [one["server"]["name"] for one in body["servers"]]


def error_of(answer: Any) -> tuple[int, str]:
    assert list(answer.json()) == ["error"]
    return answer.status_code, answer.json()["error"]


def withdraw(slug: str, by: User) -> None:
    services.set_enabled(Server.objects.get(slug=slug), False, by=by)


# OpenAPI, ServerList, ServerResponse, ServerDetail, RegistryExtensions


def test_a_list_has_servers_and_metadata(public: Toolset) -> None:
    (one,) = get("servers")["servers"]

    server = one["server"]
    assert server["$schema"] == registry_versions.SCHEMA
    assert server["name"] == NAME
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", server["name"])
    assert 1 <= len(server["description"]) <= 100
    assert server["version"] == "1.0.1"
    assert get("servers")["metadata"] == {"count": 1}
    about = one["_meta"][OFFICIAL]
    assert (about["status"], about["isLatest"]) == ("active", True)
    times = ("publishedAt", "updatedAt", "statusChangedAt")
    assert all(re.fullmatch(r"20\d\d-\d\d-\d\dT[\d:.]+Z", about[name]) for name in times)
    # Of its members there are no others: additionalProperties is false.
    assert set(about) == {"status", "isLatest", *times}


def test_a_remote_is_our_endpoint_and_never_the_server_itself(
    public: Toolset, upstream: Recorder
) -> None:
    answer = ask("v0.1/servers")

    (remote,) = answer.json()["servers"][0]["server"]["remotes"]
    assert remote["type"] == "streamable-http"
    assert remote["url"] == f"{settings.AGENT_URL}/mcp/desk/rec"
    (header,) = remote["headers"]
    assert (header["name"], header["value"]) == ("Authorization", "Bearer {token}")
    assert header["isSecret"]
    assert header["variables"]["token"]["isSecret"]
    assert upstream.url not in answer.content.decode()


@pytest.mark.long
def test_where_users_sign_in_their_agents_no_token_is_asked_for(public: Toolset, bob: User) -> None:
    services.set_agent_sign_in(public, True, by=bob)
    registry_versions.refresh_all()

    newest = get(f"{AT}/latest")["server"]

    assert newest["version"] == "1.0.2"
    assert "headers" not in newest["remotes"][0]


def test_a_host_is_written_backwards(settings: Any) -> None:
    for host, wanted in {
        "Tools.Example.COM:8443": "com.example.tools",
        "localhost:8001": "localhost",
        "10.1.2.3": "10.1.2.3",
        "[fd00::1]": "fd00--1",
        f"{'a' * 60}.{'b' * 60}.example": f"example.{'b' * 60}",
    }.items():
        settings.AGENT_URL = f"https://{host}"
        name = registry_versions.name_of("t" * 64, "s" * 32)
        assert name.partition("/")[0] == wanted
        assert len(name) <= 200


# OpenAPI, GET /v0.1/servers: cursor and limit


@pytest.mark.long
def test_pages_follow_each_other(crowded: Toolset) -> None:
    first = get("servers?limit=1")
    second = get(f"servers?limit=1&cursor={first['metadata']['nextCursor']}")

    assert names(first) + names(second) == [NAME, "127.0.0.1/desk.mail"]
    assert first["metadata"]["count"] == 1
    # "If null or empty, there are no more results."
    assert "nextCursor" not in second["metadata"]


def test_a_cursor_needs_no_encoding(crowded: Toolset) -> None:
    cursor = get("servers?limit=1&search=desk")["metadata"]["nextCursor"]

    assert re.fullmatch(r"[A-Za-z0-9_:.~-]+", cursor)


@pytest.mark.long
@pytest.mark.parametrize("limit", ["0", "101", "-1", "1e2", "9" * 400, "²", "", "1.0"])
def test_a_limit_is_1_to_100(public: Toolset, limit: str) -> None:
    status, said = error_of(ask(f"v0.1/servers?limit={quote(limit)}"))

    assert (status, said) == (400, "limit must be 1 to 100.")


@pytest.mark.long
def test_a_cursor_of_another_list_is_none_here(crowded: Toolset, bob: User) -> None:
    other = services.create_toolset("other", by=bob)
    services.set_registry_readers(other, RegistryReaders.ANYONE, by=bob)
    cursor = get("servers?limit=1")["metadata"]["nextCursor"]

    answer = Client().get(f"/api/registry/other/v0.1/servers?cursor={cursor}")

    assert error_of(answer)[0] == 400
    for broken in (cursor[:-1], cursor + "A", "1", "%00", "e30:x:y", quote("ключ")):
        assert error_of(ask(f"v0.1/servers?cursor={broken}"))[0] == 400 or broken == "%00"


# OpenAPI, GET /v0.1/servers: search; CHANGELOG, "Search matches the description"


@pytest.mark.long
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("REC", ["rec"]),
        ("desk.", ["rec", "mail"]),
        ("post 100% off", ["mail"]),
        ("100_", []),
        ("127.0.0.1/desk.mail", ["mail"]),
        ("' OR 1=1 --", []),
    ],
)
def test_search_is_a_substring_of_name_or_description(
    crowded: Toolset, text: str, found: list[str]
) -> None:
    assert [one.rpartition(".")[2] for one in names(get(f"servers?search={quote(text)}"))] == found


@pytest.mark.long
def test_a_cursor_carries_the_search(crowded: Toolset, upstream: Recorder, bob: User) -> None:
    """VS Code sends the search with the first page alone (microsoft/vscode, e24a16c3,
    mcpGalleryService.ts, getNextPage)."""
    add_server("mailbox", crowded, upstream, by=bob)
    registry_versions.refresh_all()

    first = get("servers?limit=1&version=latest&search=desk.mail")
    second = get(f"servers?limit=1&version=latest&cursor={first['metadata']['nextCursor']}")

    assert names(first) + names(second) == ["127.0.0.1/desk.mail", "127.0.0.1/desk.mailbox"]


# OpenAPI, GET /v0.1/servers: version


def test_versions_are_listed_or_the_latest_alone(public: Toolset, bob: User) -> None:
    services.set_agent_sign_in(public, True, by=bob)
    registry_versions.refresh_all()

    versions = [one["server"]["version"] for one in get("servers")["servers"]]
    (latest,) = get("servers?version=latest")["servers"]
    (first,) = get("servers?version=1.0.1")["servers"]

    assert versions == ["1.0.1", "1.0.2"]
    assert (latest["server"]["version"], latest["_meta"][OFFICIAL]["isLatest"]) == ("1.0.2", True)
    assert (first["server"]["version"], first["_meta"][OFFICIAL]["isLatest"]) == ("1.0.1", False)
    assert get("servers?version=9.9.9")["servers"] == []


def test_the_same_is_no_new_version(public: Toolset) -> None:
    registry_versions.refresh_all()
    registry_versions.refresh_all()

    assert RegistryVersion.objects.count() == 1


# OpenAPI, GET /v0.1/servers: updated_since, include_deleted; CHANGELOG, "Server Filtering"


@pytest.mark.long
def test_what_changed_since_includes_what_was_deleted(crowded: Toolset, bob: User) -> None:
    before = timezone.now() - timedelta(minutes=1)
    RegistryVersion.objects.update(published_at=before - timedelta(hours=1))
    withdraw("mail", bob)
    registry_versions.refresh_all()

    for since in (before.isoformat(), quote(before.isoformat()), f"{before:%Y-%m-%dT%H:%M:%S}Z"):
        (one,) = get(f"servers?updated_since={since}")["servers"]
        assert one["server"]["name"] == "127.0.0.1/desk.mail"
        assert one["_meta"][OFFICIAL]["status"] == "deleted"
    assert names(get("servers")) == [NAME]
    assert len(get("servers?include_deleted=true")["servers"]) == 2


@pytest.mark.long
@pytest.mark.parametrize(
    "since",
    [
        *("yesterday", "2026-01-31", "2026-01-31T08:00:00", "١", "9" * 50),
        *("9999-12-31T23:59:59-23:00", "0001-01-01T00:00:00+23:00"),
    ],
)
def test_a_time_is_one_of_rfc_3339(public: Toolset, since: str) -> None:
    status, said = error_of(ask(f"v0.1/servers?updated_since={quote(since)}"))

    assert (status, "RFC 3339" in said) == (400, True)


def test_a_flag_is_true_or_false(public: Toolset) -> None:
    answer = ask("v0.1/servers?include_deleted=maybe")

    assert error_of(answer) == (400, "include_deleted must be true or false.")


@pytest.mark.long
def test_what_is_withdrawn_is_listed_no_more_at_once(crowded: Toolset, bob: User) -> None:
    """Not only from the next look of the clock on."""
    withdraw("mail", bob)

    assert names(get("servers")) == [NAME]
    assert names(get("servers?version=latest")) == [NAME]
    gone = quote("127.0.0.1/desk.mail", safe="")
    for path in (f"servers/{gone}/versions", f"servers/{gone}/versions/latest"):
        assert error_of(ask(f"v0.1/{path}")) == (404, "Server not found")
        assert get(f"{path}?include_deleted=true")
    (kept,) = get(f"servers/{gone}/versions?include_deleted=true")["servers"]
    assert kept["_meta"][OFFICIAL]["status"] == "deleted"


def test_what_comes_back_is_a_version_of_its_own(public: Toolset, bob: User) -> None:
    withdraw("rec", bob)
    registry_versions.refresh_all()
    services.set_enabled(Server.objects.get(slug="rec"), True, by=bob)
    registry_versions.refresh_all()

    versions = get(f"{AT}?include_deleted=true")["servers"]

    shown = [(one["server"]["version"], one["_meta"][OFFICIAL]["status"]) for one in versions]
    assert shown == [("1.0.2", "active"), ("1.0.1", "deleted")]
    assert get(f"{AT}/latest")["server"]["version"] == "1.0.2"


def test_an_unpublished_server_is_never_listed(
    public: Toolset, upstream: Recorder, bob: User
) -> None:
    made = services.register(
        "secret", transport="http", url=upstream.url, owner=bob, by=bob, publish=False
    )
    services.add_server(public, made, by=bob)
    registry_versions.refresh_all()

    assert b"secret" not in ask("v0.1/servers?include_deleted=true").content


# OpenAPI, GET /v0.1/servers/{serverName}/versions and …/versions/{version}


def test_versions_come_newest_first(public: Toolset, bob: User) -> None:
    services.set_agent_sign_in(public, True, by=bob)
    registry_versions.refresh_all()

    body = get(AT)

    assert [one["server"]["version"] for one in body["servers"]] == ["1.0.2", "1.0.1"]
    assert body["metadata"]["count"] == 2


@pytest.mark.parametrize("name", [quote(NAME, safe=""), NAME])
def test_a_name_is_encoded_and_a_proxy_may_decode_it(public: Toolset, name: str) -> None:
    for version in ("latest", "1.0.1", "1.0.1/"):
        assert get(f"servers/{name}/versions/{version}")["server"]["name"] == NAME


@pytest.mark.parametrize(
    "path",
    [
        "servers/127.0.0.1%2Fdesk.nope/versions",
        "servers/127.0.0.1%2Fdesk.nope/versions/latest",
        f"{AT}/1.0.9",
        f"{AT}/1.0.1%2B2",
        f"{AT}/%00",
        "servers/127.0.0.1%2Fdesk.rec%2F..%2Fdesk.rec/versions",
        "servers/..%2F..%2Fother/versions",
        "servers/..%252F..%252Fother/versions",
        "servers/desk.rec/versions",
        f"servers/{quote('пример/сервер')}/versions",
        "servers/127.0.0.1%2Fdesk.rec",
        "",
        "../v0.1/servers/x",
    ],
)
def test_what_is_not_there_is_404_with_an_error(public: Toolset, path: str) -> None:
    answer = ask(f"v0.1/{path}")

    assert error_of(answer)[0] == 404
    assert answer["Access-Control-Allow-Origin"] == "*"


# OpenAPI, publish: 501 Not Implemented


@pytest.mark.long
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "v0.1/publish"),
        # mcp-publisher (modelcontextprotocol/registry, cmd/publisher/commands/publish.go).
        ("POST", "v0/publish"),
        ("PUT", f"v0.1/{AT}/1.0.1"),
        ("DELETE", f"v0.1/{AT}/1.0.1"),
        ("PATCH", f"v0.1/{AT}/1.0.1/status"),
        ("PATCH", f"v0.1/servers/{quote(NAME, safe='')}/status"),
    ],
)
def test_nothing_is_changed_here(public: Toolset, scout_token: str, method: str, path: str) -> None:
    before = list(RegistryVersion.objects.values())

    status, said = error_of(ask(path, scout_token, method))

    assert (status, "not supported by this registry" in said) == (501, True)
    assert list(RegistryVersion.objects.values()) == before


# GitHub, "Cross-origin resource sharing requirements"; RFC 9110, 13.1.2


@pytest.mark.long
def test_pages_of_other_origins_may_read_it(public: Toolset) -> None:
    origin = {"Origin": "vscode-file://vscode-app"}
    preflight = ask("v0.1/servers", method="OPTIONS", Access_Control_Request_Method="GET", **origin)
    answer = ask("v0.1/servers", **origin)

    assert (preflight.status_code, preflight.content) == (204, b"")
    for one in (preflight, answer, ask("v0.1/servers?limit=0"), ask("nothing")):
        assert one["Access-Control-Allow-Origin"] == "*"
        assert one["Access-Control-Allow-Methods"] == "GET, OPTIONS"
        assert {"Authorization", "Content-Type"} <= set(
            one["Access-Control-Allow-Headers"].split(", ")
        )
        assert "Access-Control-Allow-Credentials" not in one


@pytest.mark.long
def test_a_preflight_tells_nothing(toolset: Toolset) -> None:
    there = ask("v0.1/servers", method="OPTIONS")
    nowhere = Client().options("/api/registry/nowhere/v0.1/servers")

    assert (there.status_code, there.content) == (nowhere.status_code, nowhere.content)


@pytest.mark.long
def test_what_is_known_is_not_sent_again(public: Toolset, bob: User) -> None:
    for path in ("v0.1/servers", f"v0.1/{AT}", f"v0.1/{AT}/latest"):
        tag = ask(path)["ETag"]
        known = ask(path, If_None_Match=tag)
        assert (known.status_code, known.content, known["ETag"]) == (304, b"", tag)
    services.set_agent_sign_in(public, True, by=bob)
    registry_versions.refresh_all()
    assert ask("v0.1/servers", If_None_Match=tag).status_code == 200


# Who reads


def test_it_is_off_at_first(toolset: Toolset, scout_token: str) -> None:
    assert toolset.registry_readers == RegistryReaders.NONE
    assert error_of(ask("v0.1/servers"))[0] == 401
    assert error_of(ask("v0.1/servers", scout_token))[0] == 404


def test_without_a_token_no_toolset_is_told_from_none(toolset: Toolset, bob: User) -> None:
    services.set_registry_readers(toolset, RegistryReaders.TOKENS, by=bob)
    nowhere = Client().get("/api/registry/nowhere/v0.1/servers")

    answer = ask("v0.1/servers")

    assert (answer.status_code, answer.content) == (nowhere.status_code, nowhere.content)
    assert answer.status_code == 401
    assert answer["WWW-Authenticate"].startswith("Bearer")


@pytest.mark.long
def test_tokens_of_its_agents_and_of_service_accounts_read_it(
    toolset: Toolset, scout_token: str, bob: User
) -> None:
    services.set_registry_readers(toolset, RegistryReaders.TOKENS, by=bob)
    ada = administrator()
    other = accounts.issue_token(accounts.create_agent("other", owner=bob, by=bob), by=bob)

    assert names(get("servers", scout_token)) == [NAME]
    assert names(get("servers", service_token(ada, "registry.view_toolset"))) == [NAME]
    for token in (other, service_token(ada, "registry.view_tool"), "nonsense"):
        assert ask("v0.1/servers", token).status_code in (401, 404)
    Agent.objects.filter(name="scout").update(enabled=False)
    assert ask("v0.1/servers", scout_token).status_code == 401


def test_a_session_of_the_console_reads_nothing(toolset: Toolset, bob: User) -> None:
    services.set_registry_readers(toolset, RegistryReaders.TOKENS, by=bob)
    client = Client()
    client.force_login(administrator())

    assert client.get("/api/registry/desk/v0.1/servers").status_code == 401


def test_a_change_of_readers_is_an_entry(toolset: Toolset, bob: User) -> None:
    services.set_registry_readers(toolset, RegistryReaders.ANYONE, by=bob)
    services.set_registry_readers(toolset, RegistryReaders.ANYONE, by=bob)

    (entry,) = Entry.objects.filter(action="toolset.registry_readers_set")
    assert (entry.actor, entry.details["readers"]) == ("bob", "anyone")
    with pytest.raises(services.RegistrationRefused):
        services.set_registry_readers(toolset, "everyone", by=bob)


def test_switched_off_it_is_closed_at_once(public: Toolset, bob: User, scout_token: str) -> None:
    services.set_registry_readers(public, RegistryReaders.NONE, by=bob)

    assert ask("v0.1/servers").status_code == 401
    assert ask("v0.1/servers", scout_token).status_code == 404


def test_a_toolset_may_be_deleted_with_its_registry(public: Toolset) -> None:
    public.delete()

    assert not RegistryVersion.objects.exists()


def administrator() -> User:
    return scenery.person("ada", *Role)


def service_token(by: User, *scopes: str) -> str:
    assert set(scopes) <= set(SCOPES)
    name = f"robot-{scopes[0].rpartition('_')[2]}"
    account = service_accounts.create(name, purpose="A test", scopes=scopes, by=by)
    return service_tokens.issue(account, by=by)


# Sequences of clients


@pytest.mark.long
def test_vs_code_finds_and_reads_servers(crowded: Toolset) -> None:
    """The probe and the list as seen on the wire (agentregistry-dev/agentregistry, pull request
    550); search, pages and the latest version as in microsoft/vscode, e24a16c3,
    src/vs/platform/mcp/common/mcpGalleryService.ts. It sends no token."""
    assert ask("v0.1/servers?limit=1").status_code == 200
    listed = get("servers?limit=50&version=latest")
    assert get("servers?limit=50&version=latest&search=desk.mail")["metadata"]["count"] == 1

    for one in listed["servers"]:
        server = one["server"]
        # Without any of these it drops the server, and with the first one the whole list.
        assert all(server[name] for name in ("name", "description", "version"))
        assert one["_meta"][OFFICIAL]["status"] == "active"
        latest = get(f"servers/{quote(server['name'], safe='')}/versions/latest")
        assert latest["server"] == server


def test_the_official_publisher_is_told_that_nothing_is_published_here(public: Toolset) -> None:
    """It posts to v0/publish with its own token, and shows the body of any status but 200 and 201
    (modelcontextprotocol/registry, 03ad6884, cmd/publisher/commands/publish.go)."""
    with_token = ask("v0/publish", "a.jwt.of.theirs", "POST")
    without = ask("v0/publish", method="POST")

    assert error_of(with_token)[0] == 401
    assert error_of(without) == (501, "Publishing is not supported by this registry")


@pytest.mark.long
def test_an_aggregator_follows_pages_and_then_changes(crowded: Toolset, bob: User) -> None:
    """As ToolHive does, 201c3a9c, pkg/registry/api/client.go: encoded parameters, pages until there
    is no cursor, and then what was updated since. It asks for v0 there, which is not served."""
    seen, cursor = [], ""
    while True:
        page = get(f"servers?limit=1&version=latest{cursor and f'&cursor={quote(cursor)}'}")
        seen += names(page)
        if not (cursor := page["metadata"].get("nextCursor", "")):
            break
    since = quote(timezone.now().isoformat())
    withdraw("mail", bob)
    registry_versions.refresh_all()

    assert seen == [NAME, "127.0.0.1/desk.mail"]
    (changed,) = get(f"servers?updated_since={since}")["servers"]
    assert changed["_meta"][OFFICIAL]["status"] == "deleted"
    assert error_of(ask("v0/servers?limit=1"))[0] == 404
