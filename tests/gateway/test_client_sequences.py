"""Sign-in sequences of six clients, replayed by HTTP against running processes.

What each client sends is reconstructed from the sources in its row; the documents about clients
stand on a host of the tests, because a client's id is its address.
"""

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest
from asgiref.sync import sync_to_async
from django.conf import settings as django_settings
from django.test import Client

from accounts.agent_sign_in.grants import challenge_of
from accounts.models import User
from registry import services
from registry.models import Toolset
from tests.accounts.fake_provider import SigningKey
from tests.gateway.client_documents import DocumentHost
from tests.gateway.test_signing_clients import claims_of, shown, signed
from tests.mostly_long import mostly_long
from tests.processes import Stack

pytestmark = pytest.mark.django_db(transaction=True)

VERIFIER = "w" * 64
KEY = SigningKey()
BOTH = {"Accept": "application/json, text/event-stream"}
METADATA = ("oauth-authorization-server", "openid-configuration")


@dataclass(frozen=True)
class Sequence:
    """How one client signs in. `document`: path and content of its document (CIMD); without one it
    registers itself with `registration`."""

    sources: tuple[str, ...]
    redirect: str
    document: tuple[str, dict[str, Any]] | None = None
    registration: dict[str, Any] = field(default_factory=dict)
    revision: str = "2025-11-25"
    # Which metadata it reads, in its order.
    reads: tuple[str, ...] = ("oauth-authorization-server",)
    # Whether it asks for the scope that the challenge named.
    scope: bool = True
    # Besides what all send: to the token endpoint, and with a refresh.
    token: dict[str, str] = field(default_factory=dict)
    refresh_has_resource: bool = True
    # Whether it signs its requests, as its document declares.
    signs: bool = False
    # The origin of the page that asks, where the client is a page.
    origin: str = ""


REPOSITORIES = "https://github.com"
CODE = {"grant_types": ["authorization_code", "refresh_token"], "response_types": ["code"]}
SEQUENCES = {
    "claude.ai": Sequence(
        sources=(
            "https://claude.com/docs/connectors/building/authentication",
            f"{REPOSITORIES}/anthropics/claude-ai-mcp/issues/518",
            f"{REPOSITORIES}/home-assistant/core/issues/179326",
        ),
        redirect="https://claude.ai/api/mcp/auth_callback",
        document=(
            "/oauth/mcp-oauth-client-metadata",
            {"client_name": "Claude", **CODE}
            | {"redirect_uris": ["https://claude.ai/api/mcp/auth_callback"]},
        ),
    ),
    "Claude Code": Sequence(
        sources=(
            f"{REPOSITORIES}/anthropics/claude-code/issues/42301",
            f"{REPOSITORIES}/anthropics/claude-code/issues/44429",
            f"{REPOSITORIES}/render-oss/render-mcp-server/issues/25",
        ),
        # Its document has no port; the program takes a free one.
        redirect="http://localhost:55611/callback",
        document=(
            "/oauth/claude-code-client-metadata",
            {"client_name": "Claude Code", **CODE}
            | {"redirect_uris": ["http://localhost/callback", "http://127.0.0.1/callback"]},
        ),
    ),
    "Cursor": Sequence(
        sources=(
            f"{REPOSITORIES}/erp-mafia/accounted/pull/2225",
            f"{REPOSITORIES}/soflyy/agent-connector-for-wp/issues/111",
            f"{REPOSITORIES}/Altinity/altinity-mcp/issues/169",
        ),
        redirect="cursor://anysphere.cursor-mcp/oauth/callback",
        registration={
            "client_name": "Cursor",
            "redirect_uris": [
                "cursor://anysphere.cursor-mcp/oauth/callback",
                "https://www.cursor.com/agents/mcp/oauth/callback",
                "http://localhost:8787/callback",
            ],
            "token_endpoint_auth_method": "none",
            **CODE,
        },
        scope=False,
    ),
    "VS Code": Sequence(
        sources=(
            f"{REPOSITORIES}/microsoft/vscode/issues/278512",
            f"{REPOSITORIES}/microsoft/vscode/pull/271403",
            f"{REPOSITORIES}/anomalyco/opencode/issues/25961",
        ),
        # The usual port was taken.
        redirect="http://127.0.0.1:59656/",
        document=(
            "/oauth/client-metadata.json",
            {"client_name": "Visual Studio Code", **CODE}
            | {
                "redirect_uris": [
                    "https://insiders.vscode.dev/redirect",
                    "https://vscode.dev/redirect",
                    "http://127.0.0.1/",
                    "http://127.0.0.1:33418/",
                ]
            },
        ),
        refresh_has_resource=False,
    ),
    "ChatGPT": Sequence(
        sources=(
            "https://developers.openai.com/apps-sdk/build/auth",
            f"{REPOSITORIES}/Altinity/altinity-mcp/issues/118",
            f"{REPOSITORIES}/gamedevpl/www.gamedev.pl/pull/641",
            f"{REPOSITORIES}/django-oauth/django-oauth-toolkit/issues/1845",
        ),
        redirect="https://chatgpt.com/connector/oauth/kDmjx77UnKOM",
        document=(
            "/oauth/kDmjx77UnKOM/client.json",
            {"client_name": "ChatGPT", **CODE}
            | {
                "redirect_uris": ["https://chatgpt.com/connector/oauth/kDmjx77UnKOM"],
                "token_endpoint_auth_method": "private_key_jwt",
                "token_endpoint_auth_methods_supported": ["none", "private_key_jwt"],
                "token_endpoint_auth_signing_alg": "RS256",
            },
        ),
        signs=True,
        reads=("openid-configuration", "oauth-authorization-server"),
    ),
    "Inspector": Sequence(
        sources=(
            f"{REPOSITORIES}/modelcontextprotocol/modelcontextprotocol/pull/3143",
            f"{REPOSITORIES}/modelcontextprotocol/inspector/issues/556",
        ),
        redirect="http://localhost:6274/oauth/callback",
        registration={
            "client_name": "MCP Inspector",
            "redirect_uris": ["http://localhost:6274/oauth/callback"],
            "token_endpoint_auth_method": "none",
            **CODE,
        },
        origin="http://localhost:6274",
    ),
}


@pytest.fixture
async def documents() -> AsyncIterator[DocumentHost]:
    with DocumentHost() as host:
        yield host


@pytest.fixture
def gateway(own_stack: Stack, toolset: Toolset, bob: User, settings: Any) -> Stack:
    services.set_agent_sign_in(toolset, True, by=bob)
    own_stack.env["COUNTERSIGN_CLIENT_REGISTRATION"] = "1"
    own_stack.env["COUNTERSIGN_CLIENT_NETWORKS"] = "127.0.0.0/8"
    settings.PUBLIC_URL, settings.AGENT_URL = own_stack.web_url, own_stack.agents_url
    assert own_stack.agents
    assert own_stack.web
    return own_stack


class Replay:
    """One client, step by step, and the browser of its user."""

    def __init__(self, sequence: Sequence, typed: str, http: aiohttp.ClientSession) -> None:
        self.sequence, self.typed, self.http = sequence, typed, http
        self.headers = {"Origin": sequence.origin} if sequence.origin else {}

    async def get(self, url: str) -> Any:
        async with self.http.get(url, headers=self.headers) as answer:
            assert answer.status == 200, (url, answer.status)
            # Without it a page of another origin may not read the answer.
            assert answer.headers["Access-Control-Allow-Origin"] == "*"
            return await answer.json()

    async def post(self, url: str, **body: Any) -> Any:
        async with self.http.post(url, headers=self.headers, **body) as answer:
            assert answer.status in (200, 201), (url, await answer.text())
            assert answer.headers["Access-Control-Allow-Origin"] == "*"
            return await answer.json()

    async def challenge(self) -> dict[str, str]:
        """A request without a token: 401, never a result with an error in it."""
        async with self.http.post(self.typed, json=self.first(), headers=BOTH) as answer:
            assert answer.status == 401
            wanted = answer.headers["WWW-Authenticate"]
        assert wanted.startswith("Bearer ")
        return dict(re.findall(r'(\w+)="([^"]*)"', wanted))

    def first(self) -> dict[str, Any]:
        params = {
            "protocolVersion": self.sequence.revision,
            "capabilities": {},
            "clientInfo": {"name": "replay", "version": "1"},
        }
        return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}

    async def discover(self, challenge: dict[str, str]) -> dict[str, Any]:
        """The resource's metadata at both places, then the server's."""
        place = urlsplit(self.typed)
        known = f"{place.scheme}://{place.netloc}/.well-known/oauth-protected-resource{place.path}"
        assert challenge["resource_metadata"] == known
        resource = await self.get(known)
        # To the letter what the user typed.
        assert resource["resource"] == self.typed
        (server,) = resource["authorization_servers"]
        found = [await self.get(f"{server}/.well-known/{one}") for one in self.sequence.reads]
        for said in found:
            assert said["issuer"] == server
            assert "S256" in said["code_challenge_methods_supported"]
        return dict(found[0])

    async def identify(self, metadata: dict[str, Any], documents: DocumentHost) -> str:
        """By its document where it finds both marks, else by registration."""
        if self.sequence.document is not None:
            assert metadata["client_id_metadata_document_supported"] is True
            assert "none" in metadata["token_endpoint_auth_methods_supported"]
            path, content = self.sequence.document
            if self.sequence.signs:
                assert "private_key_jwt" in metadata["token_endpoint_auth_methods_supported"]
                documents.answers["/oauth/jwks.json"] = {"keys": [KEY.public]}
                content = content | {"jwks_uri": f"{documents.url}/oauth/jwks.json"}
            return documents.describe(path, **content)
        said = await self.post(metadata["registration_endpoint"], json=self.sequence.registration)
        assert said["redirect_uris"] == self.sequence.registration["redirect_uris"]
        assert "client_secret" not in said
        return str(said["client_id"])

    async def consent(self, metadata: dict[str, Any], client_id: str, scope: str, who: str) -> str:
        """The user allows it in a browser; returns the code."""
        query = {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": self.sequence.redirect,
            "code_challenge": challenge_of(VERIFIER),
            "code_challenge_method": "S256",
            "resource": self.typed,
            "state": "a/b+c=",
            **({"scope": scope} if self.sequence.scope else {}),
        }
        cookie = {"Cookie": who}
        place = metadata["authorization_endpoint"]
        async with self.http.get(place, params=query, headers=cookie) as answer:
            page = await answer.text()
            assert answer.status == 200, page
            csrf = answer.headers["Set-Cookie"].partition(";")[0]
        fields = dict(re.findall(r'name="(csrfmiddlewaretoken|request)" value="([^"]+)"', page))
        form = {**fields, "decision": "allow"}
        both = {"Cookie": f"{who}; {csrf}"}
        async with self.http.post(place, data=form, headers=both, allow_redirects=False) as answer:
            assert answer.status == 302, await answer.text()
            there = answer.headers["Location"]
        assert there.startswith(f"{self.sequence.redirect}?")
        said = parse_qs(urlsplit(there).query)
        assert (said["state"], said["iss"]) == (["a/b+c="], [metadata["issuer"]])
        return said["code"][0]

    async def redeem(self, metadata: dict[str, Any], client_id: str, code: str) -> Any:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "client_id": client_id,
            "redirect_uri": self.sequence.redirect,
            "code_verifier": VERIFIER,
            "resource": self.typed,
            **self.sequence.token,
            **self.proof(metadata, client_id),
        }
        return await self.post(metadata["token_endpoint"], data=form)

    async def refresh(self, metadata: dict[str, Any], client_id: str, token: str) -> Any:
        form = {"grant_type": "refresh_token", "refresh_token": token, "client_id": client_id}
        if self.sequence.refresh_has_resource:
            form["resource"] = self.typed
        form |= self.sequence.token | self.proof(metadata, client_id)
        return await self.post(metadata["token_endpoint"], data=form)

    def proof(self, metadata: dict[str, Any], client_id: str) -> dict[str, str]:
        if not self.sequence.signs:
            return {}
        claims = claims_of(client_id, aud=metadata["token_endpoint"])
        return shown(signed(claims, KEY))

    async def works(self, token: str) -> None:
        headers = BOTH | {"Authorization": f"Bearer {token}"}
        async with self.http.post(self.typed, json=self.first(), headers=headers) as answer:
            assert answer.status == 200, await answer.text()
            assert self.sequence.revision in await answer.text()


def console_cookie(person: User) -> str:
    console = Client()
    console.force_login(person)
    name = django_settings.SESSION_COOKIE_NAME
    return f"{name}={console.cookies[name].value}"


@pytest.mark.long
@pytest.mark.parametrize("name", mostly_long(SEQUENCES, "Inspector"))
async def test_a_client_signs_in_as_it_does_elsewhere(
    gateway: Stack, http: aiohttp.ClientSession, documents: DocumentHost, bob: User, name: str
) -> None:
    replay = Replay(SEQUENCES[name], f"{gateway.agents_url}/mcp/desk", http)
    who = await sync_to_async(console_cookie)(bob)

    challenge = await replay.challenge()
    metadata = await replay.discover(challenge)
    client_id = await replay.identify(metadata, documents)
    code = await replay.consent(metadata, client_id, challenge["scope"], who)
    given = await replay.redeem(metadata, client_id, code)

    assert (given["token_type"], given["scope"]) == ("Bearer", challenge["scope"])
    await replay.works(given["access_token"])
    renewed = await replay.refresh(metadata, client_id, given["refresh_token"])
    assert renewed["refresh_token"] != given["refresh_token"]
    await replay.works(renewed["access_token"])


def test_each_sequence_names_its_sources() -> None:
    for sequence in SEQUENCES.values():
        assert sequence.sources
        assert all(one.startswith("https://") for one in sequence.sources)
        assert bool(sequence.registration) != bool(sequence.document)
