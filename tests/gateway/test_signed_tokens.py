"""Access tokens of an identity provider: which make a client an agent, and which do not."""

import asyncio
import base64
import json
import os
import secrets
import threading
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp
import httpx2
import jwt
import pytest
from asgiref.sync import sync_to_async
from django.db import transaction
from django.test import Client
from django.utils import timezone
from mcp import Client as McpClient
from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)

from accounts import services as accounts
from accounts import tokens
from accounts.models import Agent as AgentRow
from accounts.models import AgentToken, Identity, User
from accounts.oidc import metadata
from accounts.oidc.access_tokens import ScopeMissing, authenticate
from accounts.oidc.identities import disconnect
from accounts.oidc.metadata import ProviderFailed
from accounts.oidc.providers import BadConfiguration, providers
from accounts.roles import Role
from approvals import eligibility
from audit.models import Entry
from calls.basis import subject
from calls.configuration import CURRENT
from calls.models import Call
from calls.record.states import State
from calls.replay import recorded_calls
from calls.replay.recorded_calls import SubjectReader
from policies.models import Effect
from registry.models import Toolset
from tests.accounts import fake_provider
from tests.accounts.fake_provider import FakeProvider, SigningKey
from tests.conftest import person
from tests.database import Databases
from tests.gateway.agent import TASKS, Agent, Reply
from tests.gateway.conftest import add_rule, decide, until
from tests.processes import Stack
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
HERE = "http://127.0.0.1:8001/mcp/desk"
WELL_KNOWN = "/.well-known/oauth-protected-resource"


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    metadata.forget()
    with fake_provider.running() as running:
        yield running
    metadata.forget()


@pytest.fixture
def company(provider: FakeProvider, settings: Any, tmp_path: Path) -> FakeProvider:
    """Its access tokens are taken of agents."""
    settings.OIDC_FILE = tmp_path / "oidc.json"
    configure(settings.OIDC_FILE, provider)
    return provider


def configure(path: Path, provider: FakeProvider, **more: Any) -> None:
    known = {"issuer": provider.issuer, "client_id": "countersign", "agent_tokens": True, **more}
    path.write_text(json.dumps({"providers": {"company": known}}))


@pytest.fixture
def desk_app(company: FakeProvider, scout: AgentRow, bob: User) -> AgentToken:
    """Scout's client there."""
    return accounts.name_client(scout, issuer=company.issuer, client_id="desk-app", by=bob)


@pytest.fixture
def gateway(own_stack: Stack, desk_app: AgentToken, toolset: Toolset, settings: Any) -> Stack:
    own_stack.env["COUNTERSIGN_OIDC_FILE"] = str(settings.OIDC_FILE)
    assert own_stack.agents
    return own_stack


def token_of(provider: FakeProvider, resource: Any, **wrong: Any) -> str:
    """As RFC 9068 has it; None leaves a claim out."""
    now = int(time.time())
    claims = {
        "iss": provider.issuer,
        # The client itself: nobody signed in.
        "sub": "desk-app",
        "aud": resource,
        "exp": now + 300,
        "iat": now,
        "client_id": "desk-app",
        "jti": secrets.token_hex(4),
        **wrong,
    }
    return provider.signed({name: value for name, value in claims.items() if value is not None})


def with_header(provider: FakeProvider, **header: Any) -> str:
    """A token that is right but for its header."""
    now = int(time.time())
    claims = {
        "iss": provider.issuer,
        "sub": "desk-app",
        "aud": HERE,
        "exp": now + 300,
        "azp": "desk-app",
    }
    head = {"kid": provider.key.name, **header}
    return jwt.encode(claims, provider.key.private, "RS256", head)


def tampered(token: str, **claims: Any) -> str:
    head, body, signature = token.split(".")
    said = json.loads(base64.urlsafe_b64decode(body + "=="))
    other = base64.urlsafe_b64encode(json.dumps({**said, **claims}).encode()).rstrip(b"=")
    return f"{head}.{other.decode()}.{signature}"


def signed_by(provider: FakeProvider, key: SigningKey, name: str | None = None) -> str:
    now = int(time.time())
    claims = {
        "iss": provider.issuer,
        "sub": "desk-app",
        "aud": HERE,
        "exp": now + 300,
        "azp": "desk-app",
    }
    return jwt.encode(claims, key.private, "RS256", {"kid": name or key.name})


def with_algorithm(provider: FakeProvider, algorithm: str) -> str:
    provider.algorithm = algorithm
    return token_of(provider, HERE)


def own_key(provider: FakeProvider) -> str:
    """RFC 7515's `jwk` names the key of whoever signed: it is not looked at."""
    evil = SigningKey()
    now = int(time.time())
    claims = {
        "iss": provider.issuer,
        "sub": "desk-app",
        "aud": HERE,
        "exp": now + 300,
        "azp": "desk-app",
    }
    head = {"kid": provider.key.name, "jwk": evil.public, "jku": "http://evil.example/jwks"}
    return jwt.encode(claims, evil.private, "RS256", head)


REFUSED = {
    "another toolset": (lambda p: token_of(p, f"{HERE}2"), "another address"),
    "one server of it": (lambda p: token_of(p, f"{HERE}/rec"), "another address"),
    "the host": (lambda p: token_of(p, "http://127.0.0.1:8001"), "another address"),
    "two slashes more": (lambda p: token_of(p, f"{HERE}//"), "another address"),
    "our client there": (lambda p: token_of(p, "countersign"), "another address"),
    "two audiences": (lambda p: token_of(p, [HERE, "http://other.example"]), "another address"),
    "no audience": (lambda p: token_of(p, None), "lacks “aud”"),
    "audience of another type": (lambda p: token_of(p, {"x": HERE}), "another address"),
    "expired": (lambda p: token_of(p, HERE, exp=int(time.time()) - 5), "has expired"),
    "no end": (lambda p: token_of(p, HERE, exp=None), "lacks “exp”"),
    "endless": (lambda p: token_of(p, HERE, exp=int(time.time()) + 10**6), "longer than a day"),
    "infinite": (lambda p: token_of(p, HERE, exp=float("inf")), "cannot be read"),
    "400 digits": (lambda p: token_of(p, HERE, exp=10**400), "cannot be read"),
    "no number": (lambda p: token_of(p, HERE, exp=float("nan")), "cannot be read"),
    "end in words": (lambda p: token_of(p, HERE, exp=str(int(time.time()) + 300)), "cannot be"),
    "true": (lambda p: token_of(p, HERE, nbf=True), "cannot be read"),
    "begins in 400 digits": (lambda p: token_of(p, HERE, nbf=10**400), "."),
    "issued in words": (lambda p: token_of(p, HERE, iat="1"), "cannot be read"),
    "issued below all": (lambda p: token_of(p, HERE, iat=-(10**400)), "cannot be read"),
    "not yet": (lambda p: token_of(p, HERE, nbf=int(time.time()) + 300), "from the future"),
    "other issuer": (lambda p: token_of(p, HERE, iss="https://evil.example"), "not taken here"),
    "issuer with a slash": (lambda p: token_of(p, HERE, iss=f"{p.issuer}/"), "not taken here"),
    "no issuer": (lambda p: token_of(p, HERE, iss=None), "not taken here"),
    "issuer is a list": (
        lambda p: tampered(token_of(p, HERE), iss=[p.issuer]),
        "not taken here|cannot be read",
    ),
    "other client": (lambda p: token_of(p, HERE, client_id="other"), "No agent here"),
    "no client": (lambda p: token_of(p, HERE, client_id=None), "names no client"),
    "two clients": (lambda p: token_of(p, HERE, azp="other"), "names no client"),
    "nobody": (lambda p: token_of(p, HERE, sub=None), "lacks “sub”"),
    "a stranger": (lambda p: token_of(p, HERE, sub="zoe-there"), "no account that an agent's"),
    "client in capitals": (lambda p: token_of(p, HERE, sub="Desk-app"), "no account that"),
    "a name with NUL": (lambda p: token_of(p, HERE, sub="a\0b"), "no text may have"),
    "bound to no key": (lambda p: token_of(p, HERE, cnf={"jkt": "x"}), "not checked here"),
    "bound to a certificate": (
        lambda p: token_of(p, HERE, cnf={"x5t#S256": "x" * 43}),
        "not checked here",
    ),
    "bound to both": (
        lambda p: token_of(p, HERE, cnf={"jkt": "x" * 43, "x5t#S256": "x" * 43}),
        "not checked here",
    ),
    "unsigned": (lambda p: with_algorithm(p, "none"), "not taken here"),
    "public key as secret": (lambda p: with_algorithm(p, "HS256"), "not taken here"),
    "changed": (lambda p: tampered(token_of(p, HERE), sub="else"), "signature is not valid"),
    "key of a stranger": (lambda p: signed_by(p, SigningKey()), "no key"),
    "its name alone": (lambda p: signed_by(p, SigningKey(), p.key.name), "signature is not valid"),
    "key name is a path": (lambda p: with_header(p, kid="../../dev/null"), "no key"),
    "logout token": (lambda p: with_header(p, typ="logout+jwt"), "another kind"),
    "ID-JAG": (lambda p: with_header(p, typ="oauth-id-jag+jwt"), "another kind"),
    "DPoP proof": (lambda p: with_header(p, typ="dpop+jwt"), "another kind"),
    "own key in the header": (own_key, "signature is not valid"),
    "no token": (lambda p: "eyJhbGciOiJSUzI1NiJ9.e30.x", "cannot be read"),
    "broken": (lambda p: "eyJ.eyJ.x", "cannot be read"),
    "long": (lambda p: token_of(p, HERE, padding="x" * 20_000), "too long"),
}


@pytest.mark.parametrize("wrong", REFUSED)
def test_a_wrong_token_makes_nobody_an_agent(
    company: FakeProvider, desk_app: AgentToken, wrong: str
) -> None:
    make, why = REFUSED[wrong]

    with pytest.raises(ProviderFailed, match=why):
        authenticate(make(company), tokens.load(), resource=HERE)


@pytest.mark.parametrize(
    "more", [{}, {"client_id": None, "azp": "desk-app"}, {"client_id": None, "appid": "desk-app"}]
)
def test_a_right_token_is_the_agent_of_its_client(
    company: FakeProvider, desk_app: AgentToken, more: dict[str, Any]
) -> None:
    found = authenticate(token_of(company, HERE, **more), tokens.load(), resource=HERE)

    assert (found.agent_name, found.person_name) == ("scout", "bob")
    assert found.token_id == desk_app.pk


def test_a_provider_that_was_not_switched_on_for_agents_is_not_believed(
    company: FakeProvider, desk_app: AgentToken, settings: Any
) -> None:
    configure(settings.OIDC_FILE, company, agent_tokens=False)

    with pytest.raises(ProviderFailed, match="not taken here"):
        authenticate(token_of(company, HERE), tokens.load(), resource=HERE)


def test_a_scope_that_is_wanted_has_to_be_there(
    company: FakeProvider, desk_app: AgentToken, settings: Any
) -> None:
    configure(settings.OIDC_FILE, company, agent_scope="tools")
    book = tokens.load()

    for lacking in ({}, {"scope": "toolsets"}, {"scp": ["tool"]}, {"scope": 1}):
        with pytest.raises(ScopeMissing):
            authenticate(token_of(company, HERE, **lacking), book, resource=HERE)
    for given in ({"scope": "openid tools"}, {"scp": ["tools"]}):
        assert authenticate(token_of(company, HERE, **given), book, resource=HERE)


def test_a_group_that_is_wanted_has_to_be_named(
    company: FakeProvider, desk_app: AgentToken, settings: Any
) -> None:
    configure(settings.OIDC_FILE, company, agent_groups=["agents", "ops"])
    book = tokens.load()

    for lacking in (
        {},
        {"groups": ["agent", "agents "]},
        {"groups": "agents ops"},
        {"groups": [["agents"]]},
        {"groups": {"agents": True}},
        # Of people in many groups, Entra ID says where they are to be asked for.
        {"_claim_names": {"groups": "src1"}, "_claim_sources": {"src1": {"endpoint": "x"}}},
    ):
        with pytest.raises(ProviderFailed, match="none of the groups"):
            authenticate(token_of(company, HERE, **lacking), book, resource=HERE)
    assert authenticate(token_of(company, HERE, groups=["x", "ops"]), book, resource=HERE)


@pytest.mark.long
def test_a_new_key_is_found_and_a_stranger_cannot_make_us_ask_all_the_time(
    company: FakeProvider, desk_app: AgentToken
) -> None:
    book = tokens.load()
    assert authenticate(token_of(company, HERE), book, resource=HERE)
    company.key = SigningKey()
    assert authenticate(token_of(company, HERE), book, resource=HERE)
    company.asked.clear()

    for _ in range(20):
        with pytest.raises(ProviderFailed):
            authenticate(signed_by(company, SigningKey()), book, resource=HERE)

    assert company.asked.count("/jwks") <= 5


def test_a_client_is_one_agent_of_a_user(
    company: FakeProvider, desk_app: AgentToken, bob: User
) -> None:
    other = accounts.create_agent("other", owner=bob, by=bob)
    with pytest.raises(accounts.AccountRefused, match="bob's agent “scout”"):
        accounts.name_client(other, issuer=company.issuer, client_id="desk-app", by=bob)

    assert accounts.revoke_token(desk_app, by=bob)
    accounts.name_client(other, issuer=company.issuer, client_id="desk-app", by=bob)

    found = authenticate(token_of(company, HERE), tokens.load(), resource=HERE)
    assert found.agent_name == "other"


def test_users_who_share_a_client_have_an_agent_each(
    company: FakeProvider, desk_app: AgentToken, bob: User
) -> None:
    ana = shared_with("ana", company)
    Identity.objects.create(person=bob, issuer=company.issuer, subject="bob-there")
    book = tokens.load()

    hers = authenticate(token_of(company, HERE, sub="ana-there"), book, resource=HERE)
    his = authenticate(token_of(company, HERE, sub="bob-there"), book, resource=HERE)

    assert [(one.agent_name, one.person_name) for one in (hers, his)] == [
        ("ana-app", "ana"),
        ("scout", "bob"),
    ]
    assert book.holds(hers)
    assert book.holds(his)
    # The client itself is nobody's agent more than another's.
    with pytest.raises(ProviderFailed, match="which is no single agent"):
        authenticate(token_of(company, HERE), book, resource=HERE)
    # One that is revoked is the others' no more than it was.
    accounts.revoke_token(desk_app, by=bob)
    after = tokens.load()
    assert not after.holds(his)
    assert after.holds(hers)
    with pytest.raises(ProviderFailed, match="owns no agent of this client, or several"):
        authenticate(token_of(company, HERE, sub="bob-there"), after, resource=HERE)
    assert ana.agents.get().name == "ana-app"


def test_two_agents_that_come_to_one_user_open_nothing(
    company: FakeProvider, desk_app: AgentToken, bob: User
) -> None:
    """Each was named for another owner: then one is handed over."""
    ana = shared_with("ana", company)
    token = token_of(company, HERE, sub="ana-there")
    before = authenticate(token, tokens.load(), resource=HERE)

    AgentRow.objects.filter(pk=desk_app.agent_id).update(owner=ana)

    book = tokens.load()
    assert not book.holds(before)
    with pytest.raises(ProviderFailed, match="owns no agent of this client, or several"):
        authenticate(token, book, resource=HERE)


def shared_with(name: str, provider: FakeProvider) -> User:
    """Another user of the same client, connected at the provider."""
    user = person(name, Role.APPROVER)
    agent = accounts.create_agent(f"{name}-app", owner=user, by=user)
    accounts.name_client(agent, issuer=provider.issuer, client_id="desk-app", by=user)
    Identity.objects.create(person=user, issuer=provider.issuer, subject=f"{name}-there")
    return user


def page_of(path: str, reader: User) -> str:
    console = Client()
    console.force_login(reader)
    answer = console.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


async def ping(stack: Stack, http: aiohttp.ClientSession, token: str, at: str = "desk") -> Reply:
    return await Agent(http, f"{stack.agents_url}/mcp/{at}", token).post(PING)


async def test_a_client_learns_where_its_tokens_come_from(
    gateway: Stack, http: aiohttp.ClientSession, company: FakeProvider
) -> None:
    for at in ("desk", "desk/rec", "nothing-of-this-name"):
        refused = await ping(gateway, http, "")
        place = f"{gateway.agents_url}{WELL_KNOWN}/mcp/{at}"

        assert refused.status == 401
        if at == "desk":
            assert refused.headers["WWW-Authenticate"] == f'Bearer resource_metadata="{place}"'
        async with http.get(place, headers={"Origin": "https://page.example"}) as answer:
            said = await answer.json()
            assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert said["resource"] == f"{gateway.agents_url}/mcp/{at}"
        assert said["authorization_servers"] == [company.issuer]
    # The host as a whole is no resource: a token for it would open nothing.
    for nowhere in (WELL_KNOWN, f"{WELL_KNOWN}/", f"{WELL_KNOWN}/mcp/a/b/c", f"{WELL_KNOWN}x"):
        async with http.get(f"{gateway.agents_url}{nowhere}") as answer:
            assert answer.status == 404
    async with http.post(f"{gateway.agents_url}{WELL_KNOWN}/mcp/desk") as answer:
        assert answer.status == 405


async def test_without_a_provider_for_agents_nothing_is_offered(
    agent: Agent, stack: Stack, http: aiohttp.ClientSession
) -> None:
    async with http.get(f"{stack.agents_url}{WELL_KNOWN}/mcp/desk") as answer:
        assert answer.status == 404
    reply = await agent.post(PING, headers={"Authorization": "Bearer eyJhbGciOiJSUzI1NiJ9.e30.x"})

    assert (reply.status, reply.headers["WWW-Authenticate"]) == (
        401,
        'Bearer error="invalid_token"',
    )


async def test_a_provider_may_write_the_address_with_a_slash(
    gateway: Stack, http: aiohttp.ClientSession, company: FakeProvider
) -> None:
    here = f"{gateway.agents_url}/mcp/desk"
    for aud in (f"{here}/", [f"{here}/"]):
        for at in ("desk", "desk/"):
            assert (await ping(gateway, http, token_of(company, aud), at)).status == 200
    for aud in (f"{here}//", [here, f"{here}/"], f"{gateway.agents_url}/mcp/"):
        assert (await ping(gateway, http, token_of(company, aud))).status == 401


@pytest.mark.long
async def test_refused_tokens_are_answered_alike_and_written_down_in_bounded_number(
    gateway: Stack, http: aiohttp.ClientSession, company: FakeProvider
) -> None:
    here = f"{gateway.agents_url}/mcp/desk"
    good = token_of(company, here)
    assert (await ping(gateway, http, good)).status == 200
    # It is good for one address.
    assert (await ping(gateway, http, good, at="desk/rec")).status == 401

    bad = [make(company) for make, _why in REFUSED.values() if make is not REFUSED["long"][0]]
    replies = [await ping(gateway, http, token) for token in bad + bad]

    assert {reply.status for reply in replies} == {401}
    assert len({reply.body for reply in replies}) == 1
    assert len({reply.headers["WWW-Authenticate"] for reply in replies}) == 1
    noted = [one async for one in Entry.objects.filter(action="agent.token_rejected")]
    # One of each reason, so that junk hides no token that was stolen for elsewhere.
    assert len({entry.reason for entry in noted}) == len(noted) > 10
    assert f"{here}/rec" in [
        entry.details["resource"] for entry in noted if "another address" in entry.reason
    ]
    assert not any("eyJ" in json.dumps(entry.details) for entry in noted)
    assert (await ping(gateway, http, good)).status == 200


def test_known_keys_outlive_a_provider_that_is_away_for_some_hours(
    company: FakeProvider, desk_app: AgentToken, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = tokens.load()
    assert authenticate(token_of(company, HERE), book, resource=HERE)
    monkeypatch.setattr(metadata, "KEPT_S", 0.0)
    monkeypatch.setattr(company, "answer", lambda path, form: (500, {}))

    assert authenticate(token_of(company, HERE), book, resource=HERE)
    # What is not known cannot be said to be wrong.
    with pytest.raises(metadata.ProviderAway):
        authenticate(signed_by(company, SigningKey()), book, resource=HERE)

    monkeypatch.setattr(metadata, "OUTLIVE_S", 0.0)
    with pytest.raises(metadata.ProviderAway):
        authenticate(token_of(company, HERE), book, resource=HERE)


async def test_a_provider_that_is_away_is_no_fault_of_the_token(
    gateway: Stack,
    http: aiohttp.ClientSession,
    company: FakeProvider,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(company, "answer", lambda path, form: (500, {}))

    reply = await ping(gateway, http, token_of(company, f"{gateway.agents_url}/mcp/desk"))

    assert (reply.status, reply.headers["Retry-After"]) == (503, "1")
    assert not await Entry.objects.filter(action="agent.token_rejected").aexists()


class Gate:
    """A provider that hangs at its keys until it is let go."""

    def __init__(self, provider: FakeProvider) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()
        self.asked = 0
        self._answer = provider.answer
        provider.answer = self._hold  # type: ignore[method-assign]

    def _hold(self, path: str, form: dict[str, str]) -> tuple[int, dict[str, Any]]:
        if path == "/jwks":
            self.asked += 1
            self.reached.set()
            self.opened.wait(10)
        return self._answer(path, form)


@pytest.mark.long
async def test_a_good_token_is_good_while_the_configuration_changes(
    gateway: Stack,
    http: aiohttp.ClientSession,
    company: FakeProvider,
    scout: AgentRow,
    scout_token: str,
    bob: User,
) -> None:
    gate = Gate(company)
    here = f"{gateway.agents_url}/mcp/desk"
    assert (await ping(gateway, http, scout_token)).status == 200
    asked = asyncio.create_task(ping(gateway, http, token_of(company, here)))
    assert await asyncio.to_thread(gate.reached.wait, 10)

    newer = await sync_to_async(accounts.issue_token)(scout, by=bob)

    async def known() -> bool:
        return (await ping(gateway, http, newer)).status == 200

    # The process has read the configuration anew.
    await until(known)
    gate.opened.set()

    assert (await asked).status == 200


@pytest.mark.long
async def test_a_provider_that_hangs_stops_no_agent_of_another_one(
    gateway: Stack,
    http: aiohttp.ClientSession,
    company: FakeProvider,
    settings: Any,
    scout: AgentRow,
    bob: User,
) -> None:
    with fake_provider.running() as other:
        entry = {"client_id": "countersign", "agent_tokens": True}
        both = {
            "company": {"issuer": company.issuer, **entry},
            "other": {"issuer": other.issuer, **entry},
        }
        settings.OIDC_FILE.write_text(json.dumps({"providers": both}))
        await sync_to_async(accounts.name_client)(
            scout, issuer=other.issuer, client_id="their-app", by=bob
        )
        gate = Gate(other)
        here = f"{gateway.agents_url}/mcp/desk"
        junk = [
            asyncio.create_task(
                ping(gateway, http, token_of(other, here, client_id="their-app", sub=str(n)))
            )
            for n in range(80)
        ]
        assert await asyncio.to_thread(gate.reached.wait, 10)
        done, _waiting = await asyncio.wait(junk, timeout=10, return_when=asyncio.FIRST_COMPLETED)
        full = {task.result().status for task in done}

        assert (await ping(gateway, http, token_of(company, here))).status == 200
        assert not any(task.done() and task.result().status == 401 for task in junk)
        assert full == {503}
        assert gate.asked == 1
        gate.opened.set()
        await asyncio.gather(*junk)


async def connect(who: User, provider: FakeProvider, subject: str) -> Identity:
    return await Identity.objects.acreate(person=who, issuer=provider.issuer, subject=subject)


async def test_somebody_else_is_refused_whether_they_are_known_here_or_not(
    gateway: Stack, http: aiohttp.ClientSession, company: FakeProvider, bob: User
) -> None:
    """Calls, tasks and keys are an agent's: two people on one would have each other's."""
    ana = await sync_to_async(person)("ana", Role.APPROVER)
    await connect(ana, company, "ana-there")
    await connect(bob, company, "bob-there")
    here = f"{gateway.agents_url}/mcp/desk"

    assert (await ping(gateway, http, token_of(company, here, sub="bob-there"))).status == 200
    assert (await ping(gateway, http, token_of(company, here))).status == 200
    assert (await ping(gateway, http, token_of(company, here, sub="zoe-there"))).status == 401
    assert (await ping(gateway, http, token_of(company, here, sub="ana-there"))).status == 401

    rejected = Entry.objects.filter(action="agent.token_rejected")
    assert {one.reason async for one in rejected} == {
        "The token's subject is no account that an agent's owner connected.",
        "The token is for a user who owns no agent of this client, or several.",
    }
    assert await Call.objects.acount() == 0


async def test_an_account_of_somebody_else_is_said_to_be_that(
    company: FakeProvider, desk_app: AgentToken
) -> None:
    await connect(await sync_to_async(person)("ana", Role.APPROVER), company, "ana-there")
    book = await sync_to_async(tokens.load)()

    with pytest.raises(ProviderFailed, match="owns no agent of this client, or several"):
        await sync_to_async(authenticate)(
            token_of(company, HERE, sub="ana-there"), book, resource=HERE
        )


async def test_the_clients_name_as_a_persons_account_is_that_person(
    company: FakeProvider, desk_app: AgentToken
) -> None:
    await connect(await sync_to_async(person)("ana", Role.APPROVER), company, "desk-app")
    book = await sync_to_async(tokens.load)()

    with pytest.raises(ProviderFailed, match="owns no agent of this client, or several"):
        await sync_to_async(authenticate)(token_of(company, HERE), book, resource=HERE)


async def test_an_account_at_another_provider_is_another_one(
    company: FakeProvider, desk_app: AgentToken, bob: User
) -> None:
    await Identity.objects.acreate(person=bob, issuer="https://other.example", subject="bob-there")
    book = await sync_to_async(tokens.load)()

    with pytest.raises(ProviderFailed, match="no account that an agent's owner connected"):
        await sync_to_async(authenticate)(
            token_of(company, HERE, sub="bob-there"), book, resource=HERE
        )


@pytest.mark.long
@pytest.mark.parametrize(
    "end", ["revoked", "agent disabled", "owner disabled", "disconnected", "another owner"]
)
async def test_what_ends_here_ends_the_tokens_of_elsewhere_at_once(
    gateway: Stack,
    http: aiohttp.ClientSession,
    company: FakeProvider,
    desk_app: AgentToken,
    scout: AgentRow,
    alice: User,
    bob: User,
    end: str,
) -> None:
    known = await connect(bob, company, "bob-there")
    token = token_of(company, f"{gateway.agents_url}/mcp/desk", sub="bob-there")
    assert (await ping(gateway, http, token)).status == 200
    book = await sync_to_async(tokens.load)()
    held = await sync_to_async(authenticate)(token, book, resource=f"{gateway.agents_url}/mcp/desk")
    assert book.holds(held)

    if end == "revoked":
        await sync_to_async(accounts.revoke_token)(desk_app, by=bob)
    elif end == "agent disabled":
        await sync_to_async(accounts.set_agent_enabled)(scout, False, by=bob)
    elif end == "owner disabled":
        await sync_to_async(accounts.set_active)(bob, False, by=alice)
    elif end == "another owner":
        await AgentRow.objects.filter(pk=scout.pk).aupdate(owner=alice)
    else:
        await sync_to_async(disconnect)(known, key=None)

    async def refused() -> bool:
        return (await ping(gateway, http, token)).status == 401

    await until(refused, seconds=3)
    # What goes on, such as a stream, ends as well.
    assert not (await sync_to_async(tokens.load)()).holds(held)


@pytest.mark.long
async def test_a_call_says_by_which_client_it_was_and_for_whom(
    gateway: Stack,
    http: aiohttp.ClientSession,
    company: FakeProvider,
    desk_app: AgentToken,
    upstream: Recorder,
    bob: User,
) -> None:
    await connect(bob, company, "bob-there")
    here = f"{gateway.agents_url}/mcp/desk"
    token = token_of(company, here, sub="bob-there", jti="t-1")

    reply = await Agent(http, here, token).call("rec.echo", {"text": "hello"})

    call = await Call.objects.select_related("person", "agent", "token").aget()
    assert reply.status == 200
    assert (call.state, call.person, call.agent.name) == (State.SUCCEEDED, bob, "scout")
    entry = await sync_to_async(lambda: Entry.objects.get(call_id=call.pk, seq=1))()
    assert entry.details["signed_in"] == {
        "issuer": company.issuer,
        "client_id": "desk-app",
        "subject": "bob-there",
        "token": "t-1",
        "groups": "unknown",
    }
    assert not any(token in json.dumps(one, default=str) for one in upstream.received)
    page = await sync_to_async(page_of)(f"/calls/{call.pk}/", bob)
    assert "desk-app" in page
    assert company.issuer in page
    assert "bob-there" in page


@pytest.mark.long
async def test_calls_by_one_client_are_each_users_own(
    gateway: Stack,
    http: aiohttp.ClientSession,
    company: FakeProvider,
    toolset: Toolset,
    upstream: Recorder,
    bob: User,
) -> None:
    ana = await sync_to_async(shared_with)("ana", company)
    await connect(bob, company, "bob-there")
    await toolset.agents.aadd(await AgentRow.objects.aget(name="ana-app"))
    here = f"{gateway.agents_url}/mcp/desk"

    async def accepted(sub: str) -> bool:
        return (await ping(gateway, http, token_of(company, here, sub=sub))).status == 200

    for sub in ("ana-there", "bob-there"):
        await until(partial(accepted, sub), seconds=3)
        agent = Agent(http, here, token_of(company, here, sub=sub))
        await agent.call("rec.echo", {"text": f"of {sub}"})

    calls = Call.objects.order_by("asked_at").values_list("person__username", "agent__name")
    assert [one async for one in calls] == [("ana", "ana-app"), ("bob", "scout")]
    # The client's own token is no user's.
    assert (await ping(gateway, http, token_of(company, here))).status == 401
    found = await sync_to_async(lambda: set(Call.objects.filter(person=ana)))()
    assert len(found) == 1


@pytest.mark.long
async def test_the_owner_does_not_decide_and_others_do(
    gateway: Stack,
    http: aiohttp.ClientSession,
    company: FakeProvider,
    desk_app: AgentToken,
    alice: User,
    bob: User,
) -> None:
    await sync_to_async(add_rule)(Effect.ASK, "echo")
    assert gateway.worker
    here = f"{gateway.agents_url}/mcp/desk"
    agent = Agent(http, here, token_of(company, here))

    asked = asyncio.create_task(agent.call("rec.echo", {"text": "hello"}))
    await until(lambda: Call.objects.filter(state=State.HELD).aexists())
    call = await Call.objects.aget()
    excluded = await sync_to_async(eligibility.excluded_people)(call)
    card = await sync_to_async(page_of)(f"/queue/{call.pk}/", alice)
    assert f"Asked by the client desk-app at {company.issuer}, which was named" in card
    assert "for <strong>bob</strong>" in card
    assert bob.pk in excluded
    await decide(alice)
    await asked

    await until(lambda: Call.objects.filter(state=State.SUCCEEDED).aexists())


class Kept(TokenStorage):
    """What the SDK's client keeps: registered by hand, as at most providers."""

    def __init__(self, redirect: str) -> None:
        self.tokens: OAuthToken | None = None
        self.client = OAuthClientInformationFull.model_validate(
            {
                "client_id": "desk-app",
                "redirect_uris": [redirect],
                "token_endpoint_auth_method": "none",
            }
        )

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        raise AssertionError("it registered itself anew")


@pytest.mark.long
async def test_the_sdks_client_signs_in_by_itself(
    gateway: Stack, company: FakeProvider, toolset: Toolset, settings: Any, bob: User
) -> None:
    await connect(bob, company, company.subject)
    configure(settings.OIDC_FILE, company, agent_scope="tools")
    redirect = "http://127.0.0.1:9/callback"
    answers: list[dict[str, str]] = []
    kept = Kept(redirect)

    async def visit(url: str) -> None:
        answers.append(company.authorize(url))

    async def come_back() -> AuthorizationCodeResult:
        return AuthorizationCodeResult(**answers[-1])

    here = f"{gateway.agents_url}/mcp/desk"
    provider = OAuthClientProvider(
        here,
        OAuthClientMetadata.model_validate(
            {"redirect_uris": [redirect], "token_endpoint_auth_method": "none"}
        ),
        kept,
        visit,
        come_back,
    )
    async with httpx2.AsyncClient(auth=provider) as web:
        transport = streamable_http_client(here, http_client=web)
        async with McpClient(transport) as client:
            found = await client.call_tool("rec.echo", {"text": "hello"})

    assert not found.is_error
    assert len(answers) == 1
    call = await Call.objects.select_related("agent").aget()
    assert (call.agent.name, call.state) == ("scout", State.SUCCEEDED)


GROUPS = {"g-pay": "payments", "g-ops": "operations"}


@pytest.mark.parametrize(
    ("claim", "known"),
    [
        ({"groups": ["g-pay", "g-other"]}, ("payments",)),
        ({"groups": ["g-pay", "g-ops", "g-pay"]}, ("operations", "payments")),
        ({"groups": "g-pay"}, ("payments",)),
        ({"groups": []}, ()),
        # By its name here, by more or less of its own, in capitals: another group.
        ({"groups": ["payments", "g-pay ", "G-PAY", "g-pay,g-ops"]}, ()),
        ({"groups": [str(n) for n in range(1_500)]}, ()),
        # The client chooses what its token says.
        ({}, None),
        ({"groups": None}, None),
        ({"groups": ["g-pay", 1]}, None),
        ({"groups": [["g-pay"]]}, None),
        ({"groups": {"g-pay": True}}, None),
        ({"groups": True}, None),
        ({"roles": ["g-pay"]}, None),
        ({"_claim_names": {"groups": "src1"}, "_claim_sources": {"src1": {"endpoint": "x"}}}, None),
        ({"groups": ["g-pay"], "_claim_names": {"groups": "src1"}}, None),
    ],
)
def test_the_groups_in_a_token_are_those_that_the_file_names(
    company: FakeProvider,
    desk_app: AgentToken,
    settings: Any,
    claim: dict[str, Any],
    known: tuple[str, ...] | None,
) -> None:
    configure(settings.OIDC_FILE, company, token_groups=GROUPS)

    found = authenticate(token_of(company, HERE, **claim), tokens.load(), resource=HERE)

    assert found.signed_in is not None
    assert found.signed_in.groups == known
    # They give nothing here.
    assert found.groups == {group.name for group in desk_app.agent.owner.groups.all()}


def test_groups_that_the_file_does_not_name_are_not_known(
    company: FakeProvider, desk_app: AgentToken
) -> None:
    token = token_of(company, HERE, groups=["g-pay"])

    found = authenticate(token, tokens.load(), resource=HERE)

    assert found.signed_in is not None
    assert found.signed_in.groups is None


def test_a_group_of_another_provider_is_another_one(
    company: FakeProvider,
    provider: FakeProvider,
    settings: Any,
    desk_app: AgentToken,
    scout: AgentRow,
    bob: User,
) -> None:
    with fake_provider.running() as other:
        entry = {"client_id": "countersign", "agent_tokens": True}
        settings.OIDC_FILE.write_text(
            json.dumps(
                {
                    "providers": {
                        "company": {"issuer": company.issuer, **entry, "token_groups": GROUPS},
                        "other": {
                            "issuer": other.issuer,
                            **entry,
                            "token_groups": {"g-pay": "visitors"},
                        },
                    }
                }
            )
        )
        accounts.name_client(scout, issuer=other.issuer, client_id="desk-app", by=bob)
        book = tokens.load()

        theirs = authenticate(token_of(other, HERE, groups=["g-pay"]), book, resource=HERE)

        assert theirs.signed_in is not None
        assert theirs.signed_in.groups == ("visitors",)
        # Nor does a word for the other help.
        with pytest.raises(ProviderFailed):
            authenticate(
                token_of(other, HERE, iss=company.issuer, groups=["g-pay"]), book, resource=HERE
            )


@pytest.mark.parametrize(
    "wrong",
    [
        {f"g-{n}": "x" for n in range(101)},
        {"g-pay": "x" * 101},
        {"g-pay": ""},
        {"g-pay": 1},
        ["g-pay"],
    ],
)
def test_names_of_groups_are_bounded(company: FakeProvider, settings: Any, wrong: Any) -> None:
    configure(settings.OIDC_FILE, company, token_groups=wrong)

    with pytest.raises(BadConfiguration, match="token_groups"):
        providers()


@pytest.mark.long
async def test_rules_know_the_groups_in_the_token_of_a_call(
    gateway: Stack,
    http: aiohttp.ClientSession,
    company: FakeProvider,
    settings: Any,
    scout_token: str,
    toolset: Toolset,
    upstream: Recorder,
    alice: User,
    bob: User,
    databases: Databases,
) -> None:
    configure(settings.OIDC_FILE, company, token_groups=GROUPS)
    await sync_to_async(add_rule)(
        Effect.ASK, "echo", when="'payments' in token.groups", reason="Payments are looked at."
    )
    await sync_to_async(add_rule)(
        Effect.DENY, "echo", when="'operations' in token.groups", name="no operations"
    )
    here = f"{gateway.agents_url}/mcp/desk"

    async def call(token: str, text: str) -> tuple[Call, Any]:
        asking = Agent(http, here, token, capabilities=TASKS)
        await asking.call("rec.echo", {"text": text})
        newest = await Call.objects.alatest("id")
        entry = await Entry.objects.aget(call_id=newest.pk, seq=1)
        return newest, (entry.details or {}).get("signed_in", {}).get("groups")

    pays = await call(token_of(company, here, groups=["g-pay", "x" * 9_000]), "a")
    runs = await call(token_of(company, here, groups=["g-pay", "g-ops"]), "b")
    silent = await call(token_of(company, here), "c")
    none = await call(token_of(company, here, groups=["g-other"]), "d")
    static = await call(scout_token, "e")

    assert [(one.effect, said) for one, said in (pays, runs, silent, none, static)] == [
        (Effect.ASK, ["payments"]),
        (Effect.DENY, ["operations", "payments"]),
        (Effect.ASK, "unknown"),
        (Effect.ALLOW, []),
        (Effect.ALLOW, None),
    ]
    assert pays[0].reason == "Payments are looked at."
    assert "not known" in silent[0].reason
    assert "payments" in await sync_to_async(page_of)(f"/calls/{pays[0].pk}/", bob)
    # And replays do, of each as it was.
    assert await sync_to_async(_replayed_groups)() == {
        pays[0].pk: ("payments",),
        runs[0].pk: ("operations", "payments"),
        silent[0].pk: None,
        none[0].pk: (),
        static[0].pk: (),
    }
    # Releases without this recorded no groups, whatever the token named.
    with databases.superuser(os.environ) as link, link.transaction():
        link.execute("SET LOCAL session_replication_role = replica")
        link.execute("UPDATE audit_entryrow SET details = details #- '{signed_in,groups}'")
    replayed = await sync_to_async(_replayed_groups)()
    assert [replayed[one.pk] for one, _ in (pays, none, static)] == [None, None, ()]
    assert await sync_to_async(_pending_groups)(pays[0]) is None


def _pending_groups(call: Call) -> Any:
    tool = CURRENT.tool(call.tool_id or 0)
    assert tool is not None
    return subject(call, tool, bytes(call.arguments)).token_groups


def _replayed_groups() -> dict[Any, Any]:
    taken = recorded_calls.sample(days=1, most=100, until=timezone.now())
    reader = SubjectReader(taken.since)
    with transaction.atomic():
        calls = list(recorded_calls.stream(taken))
    return {one.id: reader.subject(one, with_arguments=True).token_groups for one in calls}


@pytest.mark.long
async def test_a_pending_call_keeps_the_groups_of_its_token(
    gateway: Stack,
    http: aiohttp.ClientSession,
    company: FakeProvider,
    settings: Any,
    upstream: Recorder,
    alice: User,
) -> None:
    configure(settings.OIDC_FILE, company, token_groups=GROUPS)
    await sync_to_async(add_rule)(Effect.ASK, "echo")
    assert gateway.worker
    here = f"{gateway.agents_url}/mcp/desk"
    asking = Agent(http, here, token_of(company, here, groups=["g-pay"]), capabilities=TASKS)
    await asking.call("rec.echo", {"text": "hello"})

    await sync_to_async(add_rule)(
        Effect.DENY, "echo", when="'operations' in token.groups", name="no operations"
    )
    await decide(alice)
    await until(lambda: Call.objects.filter(state=State.SUCCEEDED).aexists())

    await asking.call("rec.echo", {"text": "again"})
    await sync_to_async(add_rule)(
        Effect.DENY, "echo", when="'payments' in token.groups", name="no payments"
    )
    await until(lambda: Call.objects.filter(state=State.SUPERSEDED).aexists())
    assert len(upstream.calls) == 1
