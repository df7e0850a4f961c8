"""A server is registered by its server.json or out of another registry, and keeps where it came
from."""

from __future__ import annotations

import html
import re
import socket
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import orjson
import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from accounts.models import User
from accounts.roles import Role
from audit.models import Entry
from registry import connections
from registry.models import Server, ServerOrigin
from registry.server_json import document, foreign_registry, importing
from registry.server_json.document import ServerJsonRefused
from registry.server_json.filling import fill_remote
from tests.console import scenery
from tests.upstreams.foreign_registry import ForeignRegistry

pytestmark = pytest.mark.django_db(transaction=True)

Json = dict[str, Any]
HERE = "/new/import/"
CLOSED = "http://127.0.0.1:9"
DIGEST = "a" * 64


def server_json(**more: Any) -> Json:
    """Of the form that the official publisher makes."""
    body: Json = {
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": "io.github.ana/weather",
        "title": "Weather",
        "description": "Forecasts for any place",
        "version": "1.2.3",
        "remotes": [
            {
                "type": "streamable-http",
                "url": f"{CLOSED}/{{region}}/mcp",
                "variables": {
                    "region": {"description": "Where", "default": "eu", "isRequired": True}
                },
                "headers": [
                    {"name": "X-Api-Key", "isRequired": True, "isSecret": True},
                    {
                        "name": "X-Plan",
                        "value": "plan {plan}",
                        "variables": {"plan": {"choices": ["free", "paid"]}},
                    },
                ],
            }
        ],
    }
    return body | more


def package(**more: Any) -> Json:
    return {
        "registryType": "npm",
        "identifier": "@ana/weather",
        "version": "1.2.3",
        "fileSha256": DIGEST,
        "transport": {"type": "stdio"},
        "environmentVariables": [{"name": "KEY", "isSecret": True}],
        "packageArguments": [
            {"type": "named", "name": "--units", "default": "metric"},
            {"type": "positional", "valueHint": "place"},
        ],
    } | more


@pytest.fixture
def foreign() -> Iterator[ForeignRegistry]:
    with ForeignRegistry([server_json()]) as registry:
        yield registry


def paste(client: Client, body: Any) -> str:
    text = body if isinstance(body, str) else orjson.dumps(body).decode()
    return shown(client, step="read", document=text)


def shown(client: Client, **given: Any) -> str:
    answer = client.post(HERE, given)
    assert answer.status_code == 200
    return html.unescape(answer.text)


def sealed_in(page: str) -> str:
    found = re.search(r'name="sealed" value="([^"]+)"', page)
    assert found is not None
    return found[1]


def register(client: Client, page: str, way: str = "remote0", **given: str) -> Any:
    fields = {f"{way}-{name}": value for name, value in {"slug": "weather", **given}.items()}
    posted = {"step": "register", "chosen": way, "sealed": sealed_in(page), **fields}
    return client.post(HERE, posted)


# By a document


def test_a_pasted_document_asks_for_what_it_needs(as_olga: Client) -> None:
    page = paste(as_olga, server_json())

    assert "io.github.ana/weather" in page
    assert 'value="weather"' in page
    for name in ("region", "X-Api-Key", "plan"):
        assert f">{name}</label>" in page
    assert '<input type="password" name="remote0-input1"' in page
    assert not Server.objects.exists()


def test_it_is_registered_with_its_secrets_sealed(as_olga: Client, olga: User) -> None:
    answer = register(as_olga, paste(as_olga, server_json()), input0="us", input1="hush", input2="")

    made = Server.objects.get()
    assert answer.url == reverse("registry:review", args=["weather"])
    assert (made.slug, made.url, made.title) == ("weather", f"{CLOSED}/us/mcp", "Weather")
    reached = connections.connection(made, connections.Commands())
    assert reached.headers == {"X-Api-Key": "hush"}
    assert b"hush" not in bytes(made.sealed_headers or b"")
    origin = ServerOrigin.objects.get()
    assert (origin.name, origin.version, origin.registry) == ("io.github.ana/weather", "1.2.3", "")
    assert "hush" not in str(origin.body)
    entry = Entry.objects.get(action="server.imported")
    assert (entry.actor, entry.details["digest"]) == ("olga", origin.digest)
    assert "hush" not in str(list(Entry.objects.values()))


def test_a_file_is_as_good(as_olga: Client) -> None:
    file = SimpleUploadedFile("server.json", orjson.dumps({"server": server_json()}))

    assert "io.github.ana/weather" in shown(as_olga, step="read", document_file=file)


def test_what_is_missing_or_no_choice_stays_on_the_form(as_olga: Client) -> None:
    page = paste(as_olga, server_json())

    for given in (
        {"input0": "eu", "input1": "", "input2": ""},
        {"input0": "eu", "input1": "hush", "input2": "gold"},
        {"input0": "eu", "input1": "two\nlines", "input2": ""},
        {"input0": "eu", "input1": "hush", "input2": "", "slug": "Not A Name"},
    ):
        assert register(as_olga, page, **given).status_code == 200
    assert not Server.objects.exists()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("[]", "one JSON object"),
        ("{", "not JSON"),
        ('{"name": "a/b", "name": "c/d"}', "not JSON"),
        (server_json(name="weather"), "not of the form"),
        (server_json(name="io.github.ana/weather/2"), "not of the form"),
        (server_json(name="io.github.ana/..\u202e"), "not of the form"),
        (server_json(description="x" * 101), "description: a text of 1 to 100"),
        (server_json(description=None), "description: a text of 1 to 100"),
        (server_json(version="^1.2.3"), "range"),
        (server_json(version="1.x"), "range"),
        (server_json(remotes=[], packages=[]), "neither remotes nor packages"),
        (server_json(remotes=["x"]), "remotes: this is no list of objects"),
        (server_json(remotes=[{}] * 21), "remotes: at most 20"),
        (server_json(remotes=[{"type": "sse", "url": "file:///etc/passwd"}]), "no http or https"),
        (server_json(remotes=[{"type": "sse", "url": 7}]), "remotes[0].url: a text"),
        (server_json(packages=[package(version="latest")]), "packages[0].version"),
        (server_json(packages=[package(fileSha256="x")]), "packages[0].fileSha256"),
        (server_json(packages=[package(transport="stdio")]), "packages[0].transport"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(as_olga: Client, body: Any, said: str) -> None:
    page = paste(as_olga, body)

    assert said in page
    assert 'name="sealed"' not in page


def test_nobody_vouches_with_a_form_of_their_own(as_olga: Client) -> None:
    page = paste(as_olga, server_json())
    forged = sealed_in(page)[:-3] + "AAA"

    answer = as_olga.post(HERE, {"step": "register", "chosen": "remote0", "sealed": forged})

    assert "This page is too old" in answer.text
    assert not Server.objects.exists()


# Where a template leads


def remote(url: str, **variables: Any) -> document.Remote:
    body = server_json(remotes=[{"type": "streamable-http", "url": url, "variables": variables}])
    return document.read(body).remotes[0]


@pytest.mark.parametrize(
    ("url", "value", "wanted"),
    [
        ("https://{v}.example.com/mcp", "eu-1", "https://eu-1.example.com/mcp"),
        ("https://example.com:{v}/mcp", "8443", "https://example.com:8443/mcp"),
        ("https://example.com/{v}/mcp", "a/b?c#d", "https://example.com/a%2Fb%3Fc%23d/mcp"),
        ("https://example.com/mcp?key={v}", "a&b=c", "https://example.com/mcp?key=a%26b%3Dc"),
        ("{v}/mcp", "https://example.com/base/", "https://example.com/base/mcp"),
    ],
)
def test_a_variable_stays_in_its_place(url: str, value: str, wanted: str) -> None:
    assert fill_remote(remote(url), {"v": value}).url == wanted


@pytest.mark.parametrize(
    ("url", "value"),
    [
        ("https://{v}.example.com/mcp", "evil.org/"),
        ("https://{v}.example.com/mcp", "evil.org#"),
        ("https://{v}.example.com/mcp", "evil.org?"),
        ("https://{v}.example.com/mcp", "evil.org\\"),
        ("https://{v}.example.com/mcp", "user@evil"),
        ("https://{v}.example.com/mcp", "a.b"),
        ("https://{v}.example.com/mcp", "evil%2eorg"),
        ("https://{v}.example.com/mcp", "е"),
        ("https://example.com:{v}/mcp", "80@evil.org"),
        ("https://{v}@example.com/mcp", "x"),
        ("https://example.com/{v}/mcp", ".."),
        ("{v}/mcp", "file:///etc"),
        ("{v}/mcp", "https://user:secret@example.com"),
        ("{v}/mcp", "https://example.com?x="),
        ("{v}/mcp", ""),
    ],
)
def test_no_value_leads_elsewhere(url: str, value: str) -> None:
    with pytest.raises(ServerJsonRefused):
        fill_remote(remote(url), {"v": value})


# Packages


def test_a_package_is_run_by_a_command_of_the_host(
    as_olga: Client, settings: Any, tmp_path: Any
) -> None:
    line = importing.command_line(document.read(server_json(packages=[package()])).packages[0])
    assert line == {
        "argv": ["/usr/bin/npx", "-y", "@ana/weather@1.2.3", "--units", "metric", "<place>"],
        "env": {"KEY": "<KEY>"},
    }
    line["argv"][0] = "/bin/false"
    settings.STDIO_CATALOGUE = tmp_path / "stdio.json"
    settings.STDIO_CATALOGUE.write_bytes(orjson.dumps({"weather": line}))
    page = paste(as_olga, server_json(packages=[package()]))
    assert f"sha256:{DIGEST}" in page

    register(as_olga, page, "package0", command="weather")

    made = Server.objects.get()
    assert made.argv == line["argv"]
    card = as_olga.get(reverse("registry:server", args=["weather"])).text
    assert "The command names the package in this version." in card
    assert f"sha256:{DIGEST}" in card
    assert "Countersign does not compare it with what is run." in card


def test_another_command_is_told_from_the_package(
    as_olga: Client, settings: Any, tmp_path: Any
) -> None:
    settings.STDIO_CATALOGUE = tmp_path / "stdio.json"
    settings.STDIO_CATALOGUE.write_bytes(
        orjson.dumps({"x": {"argv": ["/bin/false", "@ana/weather"]}})
    )

    register(as_olga, paste(as_olga, server_json(packages=[package()])), "package0", command="x")

    card = as_olga.get(reverse("registry:server", args=["weather"])).text
    assert "The command does not name the package in this version." in card


def test_lines_are_for_what_hosts_can_run() -> None:
    def line(**more: Any) -> Json:
        return importing.command_line(
            document.read(server_json(packages=[package(**more)])).packages[0]
        )

    assert line(registryType="pypi", identifier="weather")["argv"][:2] == [
        "/usr/bin/uvx",
        "weather==1.2.3",
    ]
    image = f"docker.io/ana/weather@sha256:{DIGEST}"
    assert line(registryType="oci", identifier=image, version="")["argv"][:5] == [
        "/usr/bin/docker",
        "run",
        "--rm",
        "-i",
        image,
    ]
    assert line(registryType="mcpb", identifier="https://example.com/x.mcpb") == {}


# Out of a registry


def test_a_registry_is_searched_and_one_server_chosen(
    as_olga: Client, foreign: ForeignRegistry
) -> None:
    listed = shown(as_olga, step="search", registry=f"{foreign.url}/v0.1/", search="weather")
    assert "Forecasts for any place" in listed
    page = shown(as_olga, step="choose", registry=foreign.url, name="io.github.ana/weather")

    register(as_olga, page, input0="eu", input1="hush", input2="paid")

    assert foreign.asked == [
        "/v0.1/servers?limit=30&version=latest&search=weather",
        "/v0.1/servers/io.github.ana%2Fweather/versions/latest",
    ]
    origin = ServerOrigin.objects.get()
    assert (origin.registry, origin.status) == (foreign.url, "active")
    assert origin.published_at == "2026-03-01T08:00:00Z"
    card = html.unescape(as_olga.get(reverse("registry:server", args=["weather"])).text)
    assert "GitHub account: ana" in re.sub(r"<[^>]+>", "", card)
    assert "Not checked." in card
    assert "The official registry checked" not in card
    assert "Nothing is published yet." in card
    assert 'datetime="2026-03-01T08:00:00+00:00"' in card


@pytest.mark.parametrize(
    ("published_at", "shown_as"),
    [
        ("2026-03-01T08:00:00", 'datetime="2026-03-01T08:00:00+00:00"'),
        ("0001-01-01T00:00:00+14:00", "Published there: 0001-01-01T00:00:00+14:00"),
        ("9999-12-31T23:59:59-14:00", "Published there: 9999-12-31T23:59:59-14:00"),
        ("2026-02-30T08:00:00Z", "Published there: 2026-02-30T08:00:00Z"),
        ("last <b>week</b>", "Published there: last &lt;b&gt;week&lt;/b&gt;"),
    ],
)
def test_a_registry_may_write_any_time(
    as_olga: Client, foreign: ForeignRegistry, published_at: str, shown_as: str
) -> None:
    page = shown(as_olga, step="choose", registry=foreign.url, name="io.github.ana/weather")
    register(as_olga, page, input0="eu", input1="hush", input2="paid")
    ServerOrigin.objects.update(published_at=published_at)

    assert shown_as in as_olga.get(reverse("registry:server", args=["weather"])).text


def test_ten_thousand_servers_are_read_a_page_at_a_time(
    as_olga: Client, foreign: ForeignRegistry
) -> None:
    foreign.servers = [server_json(name=f"io.github.ana/s{n}") for n in range(10_000)]

    page = shown(as_olga, step="search", registry=foreign.url)
    assert page.count('value="choose"') == foreign_registry.PAGE
    (cursor,) = re.findall(r'name="cursor" value="([^"]+)"', page)
    following = shown(as_olga, step="search", registry=foreign.url, cursor=cursor)

    assert "io.github.ana/s30" in following
    assert len(foreign.asked) == 2


def test_a_registry_that_never_ends_is_asked_when_a_person_asks(
    as_olga: Client, foreign: ForeignRegistry
) -> None:
    foreign.is_endless = True
    foreign.servers *= 100

    page = shown(as_olga, step="search", registry=foreign.url, cursor="0")

    assert len(foreign.asked) == 1
    assert 'name="cursor"' not in page


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"<html>", "is not JSON"),
        (b"[]", "no JSON object"),
        (b'{"servers": 1}', "no list of servers"),
        (b'{"servers": [], "metadata": 7}', "no list of servers"),
        (b'{"servers": []}', "lists no server by these words"),
        (b'{"servers": [null, 1, {}, {"server": {"name": 5}}]}', "lists no server by these words"),
        (b"x" * (5 * 1024 * 1024), 'class="error"'),
    ],
)
def test_whatever_a_registry_answers_is_a_sentence(
    as_olga: Client, foreign: ForeignRegistry, raw: bytes, said: str
) -> None:
    foreign.raw = raw

    assert said in shown(as_olga, step="search", registry=foreign.url)


def test_a_registry_may_not_answer_with_another_server(
    as_olga: Client, foreign: ForeignRegistry
) -> None:
    foreign.raw = orjson.dumps({"server": server_json(name="com.evil/weather")})

    page = shown(as_olga, step="choose", registry=foreign.url, name="io.github.ana/weather")

    assert "answered with another server" in page
    foreign.status = 404
    assert "status 404" in shown(as_olga, step="search", registry=foreign.url)


@pytest.mark.parametrize(
    "url",
    [
        "http://169.254.169.254/latest",
        "http://10.0.0.1/",
        "http://[::1]:1/",
        "file:///etc/passwd",
        "https://user@example.com/",
        "https://example.com/?x=1",
        "gopher://example.com/",
        "nonsense",
    ],
)
def test_no_registry_leads_inside(as_olga: Client, settings: Any, url: str) -> None:
    settings.UPSTREAM_NETWORKS = []

    page = shown(as_olga, step="search", registry=url)

    assert 'class="error"' in page
    assert 'value="choose"' not in page


def test_a_public_registry_names_no_internal_address(olga: User) -> None:
    given = importing.ImportedDocument(document.read(server_json()), foreign_registry.OFFICIAL)
    values = {"region": "eu", "X-Api-Key": "hush"}

    with pytest.raises(ServerJsonRefused, match="into one of your own networks"):
        importing.register_remote(
            "weather", given, given.server.remotes[0], values, owner=olga, by=olga
        )

    assert not Server.objects.exists()


@pytest.mark.parametrize("resolves", [["10.9.8.7"], ["93.184.216.34", "10.9.8.7"]])
def test_a_public_registry_names_no_name_of_an_own_network(
    olga: User, settings: Any, monkeypatch: pytest.MonkeyPatch, resolves: list[str]
) -> None:
    settings.UPSTREAM_NETWORKS = ["10.0.0.0/8"]
    name_server({"mcp.example.com": resolves}, monkeypatch)
    body = server_json(remotes=[{"type": "streamable-http", "url": "https://mcp.example.com/"}])
    given = importing.ImportedDocument(document.read(body), foreign_registry.OFFICIAL)

    with pytest.raises(ServerJsonRefused, match=r"mcp\.example\.com leads into"):
        importing.register_remote(
            "weather", given, given.server.remotes[0], {}, owner=olga, by=olga
        )

    assert not Server.objects.exists()
    # Whoever pastes a document read it.
    pasted = replace(given, registry="")
    importing.register_remote("weather", pasted, given.server.remotes[0], {}, owner=olga, by=olga)


def name_server(names: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that have these addresses; all others have none."""

    def getaddrinfo(host: str, *_about: Any, **_named: Any) -> list[Any]:
        if host not in names:
            raise socket.gaierror(socket.EAI_NONAME, "unknown")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (one, 0)) for one in names[host]]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)


# Who vouches


def test_the_official_registry_checked_the_namespace(as_olga: Client, olga: User) -> None:
    remotes = [{"type": "streamable-http", "url": "https://mcp.example.com/"}]
    body = server_json(name="com.example/weather", remotes=remotes)
    given = importing.ImportedDocument(document.read(body), foreign_registry.OFFICIAL)
    importing.register_remote("w", given, given.server.remotes[0], {}, owner=olga, by=olga)

    card = as_olga.get(reverse("registry:server", args=["w"])).text

    assert "The official registry checked that the publisher owns it." in card
    assert "example.com" in card
    assert "Another one than at the import" not in card
    Server.objects.update(url="https://other.example.com/")
    assert (
        "Another one than at the import" in as_olga.get(reverse("registry:server", args=["w"])).text
    )


def test_a_server_without_a_document_has_no_known_publisher(as_olga: Client, olga: User) -> None:
    scenery.server("mailer", olga)

    card = as_olga.get(reverse("registry:server", args=["mailer"])).text

    assert "Not known: it was registered by its address." in card


# Who may


def test_others_import_nothing(client: Client, foreign: ForeignRegistry) -> None:
    client.force_login(scenery.person("vera", Role.VIEWER))

    assert client.get(HERE).status_code == 403
    assert client.post(HERE, {"step": "search", "registry": foreign.url}).status_code == 403
    assert foreign.asked == []


def test_a_link_asks_no_registry(as_olga: Client, foreign: ForeignRegistry) -> None:
    as_olga.get(HERE, {"step": "search", "registry": foreign.url})

    assert foreign.asked == []
