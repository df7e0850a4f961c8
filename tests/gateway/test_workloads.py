"""Programs without a user get access tokens by signed assertions; and attacks on that."""

import asyncio
import json
import secrets
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlencode

import aiohttp
import httpx2
import jwt
import pytest
from asgiref.sync import sync_to_async
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from django.db import connection
from django.test import Client
from mcp import Client as McpClient
from mcp.client.auth.extensions.client_credentials import (
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.client.streamable_http import streamable_http_client

from accounts import services as accounts
from accounts.actors import AccountRefused
from accounts.models import Agent as AgentRow
from accounts.models import AgentToken, UsedAssertion, User, WorkloadIdentity
from accounts.oidc import metadata
from accounts.roles import Role
from accounts.workloads import identities, sign_in
from accounts.workloads.public_keys import KeysRefused, read_keys
from audit.models import Entry
from calls.models import Call
from calls.record.states import State
from policies.models import Effect
from registry import services
from registry.models import Toolset
from tests.accounts import fake_provider
from tests.accounts.fake_provider import FakeProvider, SigningKey
from tests.conftest import person
from tests.gateway.agent import Agent, Reply
from tests.gateway.conftest import add_rule, decide, until
from tests.gateway.test_agent_sign_in import introspect, page_of, service_token
from tests.gateway.test_signed_tokens import Kept
from tests.processes import Stack

pytestmark = pytest.mark.django_db(transaction=True)

PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
SUBJECT = "system:serviceaccount:ci:deployer"
KEY = SigningKey()


@pytest.fixture
def here(settings: Any) -> str:
    return f"{settings.AGENT_URL}/mcp/desk"


@pytest.fixture
def own_key(scout: AgentRow, olga: User, settings: Any) -> WorkloadIdentity:
    """Scout's program has a key."""
    pem = KEY.public_pem.decode()
    return identities.bind_key(scout, issuer=settings.PUBLIC_URL, keys=pem, by=olga)


@pytest.fixture
def issuer() -> Iterator[FakeProvider]:
    metadata.forget()
    with fake_provider.running() as running:
        # All that GitHub and Kubernetes publish.
        running.document = {"authorization_endpoint": None, "token_endpoint": None}
        yield running
    metadata.forget()


@pytest.fixture
def deployer(scout: AgentRow, olga: User, issuer: FakeProvider) -> WorkloadIdentity:
    """Scout's program runs in a cluster."""
    return identities.bind_issuer(
        scout,
        issuer=issuer.issuer,
        audience="countersign",
        subject=SUBJECT,
        claims={"namespace": "ci"},
        by=olga,
    )


def claims_of(workload: WorkloadIdentity, audience: str, **changed: Any) -> dict[str, Any]:
    """As a program signs for itself; None leaves a claim out."""
    name, now = workload.token.client_id, int(time.time())
    said = {
        "iss": name,
        "sub": name,
        "aud": audience,
        "iat": now,
        "exp": now + 120,
        "jti": secrets.token_hex(8),
        **changed,
    }
    return {name: value for name, value in said.items() if value is not None}


def signed(claims: dict[str, Any], key: Any = KEY.private, **header: Any) -> str:
    algorithm = header.pop("alg", "RS256")
    return jwt.encode(claims, key, algorithm, header)


def issued(workload: WorkloadIdentity, provider: FakeProvider, **changed: Any) -> str:
    """As the issuer signs for its workload."""
    now = int(time.time())
    said = {
        "iss": provider.issuer,
        "sub": SUBJECT,
        "aud": ["countersign"],
        "iat": now,
        "exp": now + 3600,
        "namespace": "ci",
        **changed,
    }
    return provider.signed({name: value for name, value in said.items() if value is not None})


def token(assertion: str, resource: str, /, **changed: Any) -> Any:
    said = {
        "grant_type": "client_credentials",
        "client_assertion_type": ASSERTION_TYPE,
        "client_assertion": assertion,
        "resource": resource,
        **changed,
    }
    form = urlencode({name: value for name, value in said.items() if value is not None})
    return Client(enforce_csrf_checks=True).post(
        "/oauth/token", form, content_type="application/x-www-form-urlencoded"
    )


def reasons() -> list[str]:
    return [entry.reason for entry in Entry.objects.filter(action="agent_sign_in.rejected")]


async def ping(stack: Stack, http: aiohttp.ClientSession, token: str, at: str = "desk") -> Reply:
    return await Agent(http, f"{stack.agents_url}/mcp/{at}", token).post(PING)


@pytest.fixture
def gateway(stack: Stack, toolset: Toolset, settings: Any) -> Stack:
    settings.PUBLIC_URL, settings.AGENT_URL = stack.web_url, stack.agents_url
    assert stack.agents
    return stack


@pytest.mark.long
async def test_a_program_with_a_key_gets_a_token_and_calls(
    gateway: Stack, http: aiohttp.ClientSession, own_key: WorkloadIdentity, alice: User
) -> None:
    await sync_to_async(add_rule)(
        Effect.ASK, "echo", when=f"client.id == '{own_key.token.client_id}'"
    )
    assert gateway.worker
    here = f"{gateway.agents_url}/mcp/desk"
    assertion = signed(claims_of(own_key, gateway.web_url))
    said = (await sync_to_async(token)(assertion, here)).json()
    assert (said["token_type"], said["expires_in"]) == ("Bearer", sign_in.LIFETIME_S)
    assert "refresh_token" not in said

    agent = Agent(http, here, said["access_token"])
    asked = asyncio.create_task(agent.call("rec.echo", {"text": "hello"}))
    await until(lambda: Call.objects.filter(state=State.HELD).aexists())
    call = await Call.objects.select_related("agent", "person").aget()
    card = await sync_to_async(page_of)(f"/queue/{call.pk}/", alice)
    await decide(alice)
    reply = await asked

    assert reply.status == 200, reply.body
    assert (call.agent.name, call.person.username) == ("scout", "bob")
    name = own_key.token.client_id
    assert f"Asked by the program {name}, which signs with a key of its own" in card
    entry = await sync_to_async(lambda: Entry.objects.get(call_id=call.pk, seq=1))()
    told = entry.details["signed_in"]
    assert (told["client_id"], told["subject"], told["issuer"]) == (name, name, gateway.web_url)
    came = await Entry.objects.aget(action="agent.workload_signed_in")
    assert came.details["access_token"] == told["token"]
    # One address's token opens no other.
    assert (await ping(gateway, http, said["access_token"], at="desk/rec")).status == 401
    await until(lambda: Entry.objects.filter(action="agent.token_rejected").aexists())
    await until(lambda: Call.objects.filter(pk=call.pk, state=State.SUCCEEDED).aexists())


@pytest.mark.long
async def test_a_workload_gets_a_token_by_its_issuers(
    gateway: Stack, http: aiohttp.ClientSession, deployer: WorkloadIdentity, issuer: FakeProvider
) -> None:
    here, name = f"{gateway.agents_url}/mcp/desk", deployer.token.client_id
    text = issued(deployer, issuer)

    # The issuer renews it in its time: meanwhile it is shown as often as the program likes.
    for _ in range(2):
        answer = await sync_to_async(token)(text, here, client_id=name)
        assert answer.status_code == 200, answer.content
    assert (await ping(gateway, http, answer.json()["access_token"])).status == 200
    entries = [one async for one in Entry.objects.filter(action="agent.workload_signed_in")]
    assert {one.details["subject"] for one in entries} == {SUBJECT}
    assert issuer.asked == ["/.well-known/openid-configuration", "/jwks"]


def test_a_spiffe_identity_is_its_trust_domains(
    scout: AgentRow, olga: User, toolset: Toolset, here: str
) -> None:
    bundle = {"keys": [{**KEY.public, "use": "jwt-svid"}]}
    made = identities.bind_issuer(
        scout,
        issuer="spiffe://example.org",
        audience="countersign",
        subject="spiffe://example.org/ci",
        keys=json.dumps(bundle),
        by=olga,
    )
    now = int(time.time())
    said = {"sub": "spiffe://example.org/ci", "aud": ["countersign"], "exp": now + 300}

    def status(**changed: Any) -> int:
        text = signed({**said, **changed}, kid=KEY.name, typ="JWT")
        return int(token(text, here, client_id=made.token.client_id).status_code)

    assert status() == 200
    assert status(sub="spiffe://example.org/ci/other") == 401
    assert status(sub="spiffe://example.org.evil/ci") == 401
    assert status(aud=["countersign", "other"]) == 401


def test_keys_of_a_trust_domain_are_those_for_its_tokens(
    scout: AgentRow, olga: User, toolset: Toolset, here: str, issuer: FakeProvider
) -> None:
    issuer.keys = [{**KEY.public, "use": "x509-svid"}]
    made = identities.bind_issuer(
        scout,
        issuer="spiffe://example.org",
        audience="countersign",
        subject="spiffe://example.org/ci",
        keys_url=f"{issuer.issuer}/jwks",
        by=olga,
    )
    said = {"sub": "spiffe://example.org/ci", "aud": "countersign", "exp": int(time.time()) + 300}

    def status() -> int:
        text = signed(said, kid=KEY.name)
        return int(token(text, here, client_id=made.token.client_id).status_code)

    assert status() == 401
    issuer.keys = [{**KEY.public, "use": "jwt-svid"}]
    metadata.forget()
    assert status() == 200


def hmac_of_public_key(claims: dict[str, Any]) -> str:
    return fake_provider._hmac_signed(claims, {}, KEY.public_pem)


OWN: dict[str, tuple[dict[str, Any], str]] = {
    "for another server": ({"aud": "https://other.example"}, "another authorization server"),
    "for the token endpoint": ({"aud": "http://127.0.0.1:8000/oauth/token"}, "another auth"),
    "for two": ({"aud": ["http://127.0.0.1:8000", "https://other.example"]}, "another auth"),
    "for nobody": ({"aud": None}, "lacks “aud”"),
    "expired": ({"exp": 1}, "has expired"),
    "endless": ({"exp": 10**11}, "valid for too long"),
    "without an end": ({"exp": None}, "lacks “exp”"),
    "an hour": ({"exp": int(time.time()) + 7200}, "valid for too long"),
    "end in words": ({"exp": "soon"}, "cannot be read"),
    "not yet": ({"nbf": 10**11}, "from the future"),
    "without an id": ({"jti": None}, "lacks “jti”"),
    "an id that is no text": ({"jti": {"a": 1}}, "lacks “jti”|cannot be read"),
    "another issuer": ({"iss": "https://other.example"}, "another client"),
    "for somebody else": ({"sub": "csw_other"}, "another client|No program"),
    "NUL": ({"jti": "a\0b"}, "no text may have"),
}


@pytest.mark.parametrize("wrong", OWN)
def test_a_wrong_assertion_gets_no_token_and_is_recorded(
    own_key: WorkloadIdentity, toolset: Toolset, here: str, settings: Any, wrong: str
) -> None:
    changed, why = OWN[wrong]
    settings.PUBLIC_URL = "http://127.0.0.1:8000"
    text = signed(claims_of(own_key, settings.PUBLIC_URL, **changed))

    answer = token(text, here, client_id=own_key.token.client_id)

    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
    assert answer.json()["error_description"] == "The assertion is not accepted."
    (reason,) = reasons()
    assert any(part in reason for part in why.split("|")), reason
    assert not UsedAssertion.objects.exists()


FORGED: dict[str, Any] = {
    "unsigned": lambda claims: jwt.encode(claims, "", "none"),
    "public key as secret": hmac_of_public_key,
    "a stranger's key": lambda claims: signed(claims, SigningKey().private),
    "a stranger's key with its name": lambda claims: signed(
        claims, SigningKey().private, kid=KEY.name
    ),
    "its own key in the header": lambda claims: signed(
        claims, (evil := SigningKey()).private, jwk=evil.public
    ),
    "no token": lambda claims: "a.b.c",
    "a DPoP proof": lambda claims: signed(claims, typ="dpop+jwt"),
    "an access token": lambda claims: signed(claims, typ="at+jwt"),
    "cut off": lambda claims: signed(claims)[:-20],
    "long": lambda claims: signed({**claims, "more": "x" * 20_000}),
    "empty": lambda claims: "-",
}


@pytest.mark.parametrize("forged", FORGED)
def test_a_forged_assertion_gets_no_token(
    own_key: WorkloadIdentity, toolset: Toolset, here: str, settings: Any, forged: str
) -> None:
    text = FORGED[forged](claims_of(own_key, settings.PUBLIC_URL))

    answer = token(text, here, client_id=own_key.token.client_id)

    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
    assert len(reasons()) == 1
    assert not any(text in json.dumps(one.details) for one in Entry.objects.all() if len(text) > 5)


ISSUED: dict[str, tuple[dict[str, Any], str]] = {
    "another workload": ({"sub": "system:serviceaccount:ci:other"}, "another workload"),
    "another namespace": ({"namespace": "prod"}, "“namespace” is another one"),
    "namespace is a list": ({"namespace": ["ci"]}, "“namespace” is another one"),
    "no namespace": ({"namespace": None}, "“namespace” is another one"),
    "another audience": ({"aud": "https://kubernetes.default.svc"}, "another audience"),
    "two audiences": ({"aud": ["countersign", "vault"]}, "another audience"),
    "another issuer": ({"iss": "https://evil.example"}, "another issuer"),
    "no issuer": ({"iss": None}, "another issuer"),
    "a year": ({"exp": int(time.time()) + 365 * 86400}, "valid for too long"),
    "old": ({"exp": int(time.time()) - 1}, "has expired"),
}


@pytest.mark.parametrize("wrong", ISSUED)
def test_a_token_that_is_not_the_workloads_gets_none_of_ours(
    deployer: WorkloadIdentity, issuer: FakeProvider, toolset: Toolset, here: str, wrong: str
) -> None:
    changed, why = ISSUED[wrong]

    answer = token(issued(deployer, issuer, **changed), here, client_id=deployer.token.client_id)

    assert answer.status_code == 401
    (reason,) = reasons()
    assert why in reason


def test_a_token_of_an_issuer_without_the_programs_id_is_nobodys(
    deployer: WorkloadIdentity, issuer: FakeProvider, toolset: Toolset, here: str
) -> None:
    """What is known of two agents with one subject: the program says which one it is."""
    for name in (None, "csw_other", SUBJECT, "a\0"):
        assert token(issued(deployer, issuer), here, client_id=name).status_code in (400, 401)
    assert issuer.asked == []


def test_an_assertion_counts_once(
    own_key: WorkloadIdentity, toolset: Toolset, here: str, settings: Any
) -> None:
    text = signed(claims_of(own_key, settings.PUBLIC_URL))

    assert [token(text, here).status_code for _ in range(3)] == [200, 401, 401]
    assert reasons() == ["The assertion was used before."]
    # Its id again, in another assertion.
    again = claims_of(own_key, settings.PUBLIC_URL, jti=jwt.decode(
        text, options={"verify_signature": False})["jti"])  # fmt: skip
    assert token(signed(again), here).status_code == 401


def test_an_assertion_shown_by_many_at_once_counts_once(
    own_key: WorkloadIdentity, toolset: Toolset, here: str, settings: Any
) -> None:
    text = signed(claims_of(own_key, settings.PUBLIC_URL))

    def status() -> int:
        try:
            return int(token(text, here).status_code)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        shown = [pool.submit(status) for _ in range(4)]
        assert sorted(one.result(20) for one in shown) == [200, 401, 401, 401]


@pytest.mark.parametrize(
    "resource", ["/mcp/other", "/mcp/desk//", "/mcp/desk/other", "/mcp/desk?x", "", "/mcp/DESK"]
)
def test_no_token_is_for_an_address_that_the_agent_has_not(
    own_key: WorkloadIdentity, toolset: Toolset, settings: Any, olga: User, resource: str
) -> None:
    services.create_toolset(slug="other", by=olga)
    text = signed(claims_of(own_key, settings.PUBLIC_URL))

    answer = token(text, f"{settings.AGENT_URL}{resource}")

    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_target")
    assert reasons() == ["The agent has no toolset at this address."]


WAYS = [
    {"client_assertion_type": None},
    {"client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:saml2-bearer"},
    {"client_assertion": None},
    {"resource": None},
    {"client_assertion": None, "client_assertion_type": None, "client_secret": "guessed"},
]


@pytest.mark.parametrize("changed", WAYS)
def test_there_is_no_other_way(
    own_key: WorkloadIdentity, toolset: Toolset, here: str, settings: Any, changed: dict[str, Any]
) -> None:
    text = signed(claims_of(own_key, settings.PUBLIC_URL))

    assert token(text, here, **changed).status_code in (400, 401)
    assert not Entry.objects.filter(action="agent.workload_signed_in").exists()


ENDS = ["revoked", "agent disabled", "owner disabled", "out of the toolset"]


@pytest.mark.parametrize("end", ENDS)
async def test_what_ends_the_binding_ends_its_tokens_at_once(
    gateway: Stack,
    http: aiohttp.ClientSession,
    own_key: WorkloadIdentity,
    toolset: Toolset,
    alice: User,
    bob: User,
    end: str,
) -> None:
    here, name = f"{gateway.agents_url}/mcp/desk", own_key.token.client_id

    def given() -> Any:
        return token(signed(claims_of(own_key, gateway.web_url)), here, client_id=name)

    text = (await sync_to_async(given)()).json()["access_token"]
    assert (await ping(gateway, http, text)).status == 200
    agent = own_key.token.agent
    if end == "revoked":
        await sync_to_async(accounts.revoke_token)(own_key.token, by=alice)
    elif end == "agent disabled":
        await sync_to_async(accounts.set_agent_enabled)(agent, False, by=alice)
    elif end == "owner disabled":
        await sync_to_async(accounts.set_active)(bob, False, by=alice)
    else:
        await sync_to_async(services.unassign)(toolset, agent, by=alice)

    async def refused() -> bool:
        return (await ping(gateway, http, text)).status in (401, 404)

    await until(refused, seconds=3)
    assert (await sync_to_async(given)()).status_code in (400, 401)


async def test_the_sdks_client_finds_the_way_by_itself(
    gateway: Stack, http: aiohttp.ClientSession, own_key: WorkloadIdentity
) -> None:
    """From the toolset's address alone, where no user may sign in an agent."""
    pem = KEY.private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    ).decode()
    name, here = own_key.token.client_id, f"{gateway.agents_url}/mcp/desk"
    assert await sync_to_async(lambda: bool(gateway.web))()
    signing = SignedJWTParameters(issuer=name, subject=name, signing_key=pem)
    auth = PrivateKeyJWTOAuthProvider(
        here,
        Kept("http://127.0.0.1/none"),
        name,
        signing.create_assertion_provider(),
        issuer=gateway.web_url,
    )

    async with (
        httpx2.AsyncClient(auth=auth) as client,
        McpClient(streamable_http_client(here, http_client=client)) as session,
    ):
        tools = await session.list_tools()

    assert "rec_echo" in [tool.name for tool in tools.tools]


def test_service_accounts_learn_what_a_workloads_token_is(
    own_key: WorkloadIdentity, toolset: Toolset, here: str, settings: Any, olga: User
) -> None:
    ada = person("ada", Role.ADMINISTRATOR)
    may = service_token("asker", ["accounts.view_agenttoken"], ada)
    text = token(signed(claims_of(own_key, settings.PUBLIC_URL)), here).json()["access_token"]

    said = introspect(text, may).json()
    assert (said["active"], said["aud"], said["sub"]) == (True, here, own_key.token.client_id)
    # A client cannot end what an operator bound.
    form = urlencode({"token": text, "client_id": own_key.token.client_id})
    Client().post("/oauth/revoke", form, content_type="application/x-www-form-urlencoded")
    assert introspect(text, may).json()["active"]
    services.unassign(toolset, own_key.token.agent, by=olga)
    assert introspect(text, may).json() == {"active": False}


@pytest.mark.long
def test_an_operator_binds_and_revokes_on_pages(
    scout: AgentRow, olga: User, bob: User, issuer: FakeProvider
) -> None:
    console, there = Client(), "/agents/scout/workloads/add/"
    console.force_login(olga)

    answer = console.post(there, {"kind": "key", "own-keys": KEY.public_pem.decode()}, follow=True)
    name = AgentToken.objects.get(workload__kind="key").client_id
    assert name in answer.content.decode()
    given = {
        "kind": "issuer",
        "issuer-issuer": issuer.issuer,
        "issuer-audience": "countersign",
        "issuer-claims": "repository=example/app\nref = refs/heads/main",
    }
    page = console.post(there, given, follow=True).content.decode()
    assert "repository" in page
    assert "example/app" in page
    bound = Entry.objects.filter(action="agent.workload_bound").order_by("pk")
    assert [one.details["kind"] for one in bound] == ["key", "issuer"]
    assert bound[1].details["claims"] == {"repository": "example/app", "ref": "refs/heads/main"}
    for token_row in AgentToken.objects.exclude(workload=None):
        console.post(f"/agents/scout/tokens/{token_row.public_id}/revoke/")
    assert not AgentToken.objects.workloads().exists()
    # Its owner has not the right: the issuer's token could be another agent's.
    own = Client()
    own.force_login(bob)
    assert own.get(there).status_code == 403
    assert own.post(there, given).status_code == 403


def pem_of(key: Any) -> str:
    said: bytes = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return said.decode()


def private_pem(key: Any) -> str:
    said: bytes = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    return said.decode()


SMALL = rsa.generate_private_key(public_exponent=65537, key_size=1024)
NO_KEYS = {
    "nothing": "",
    "words": "ssh-rsa AAAA",
    "private": private_pem(KEY.private),
    "private JWK": json.dumps({**KEY.public, "d": "AQAB"}),
    "a secret": json.dumps({"kty": "oct", "k": "c2VjcmV0"}),
    "1,024 bits": pem_of(SMALL),
    "another curve": pem_of(ec.generate_private_key(ec.SECP256K1())),
    "for encryption": json.dumps({**KEY.public, "use": "enc"}),
    "no list": '{"keys": {}}',
    "an empty list": '{"keys": []}',
    "too many": json.dumps({"keys": [KEY.public] * 11}),
    "a number": "5",
    "half": json.dumps({"kty": "RSA", "n": "AQAB"}),
    "a certificate": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----",
}


@pytest.mark.parametrize("text", NO_KEYS)
def test_what_is_no_public_key_is_not_bound(text: str) -> None:
    with pytest.raises(KeysRefused):
        read_keys(NO_KEYS[text])


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [
        (ec.generate_private_key(ec.SECP256R1()), "ES256"),
        (ec.generate_private_key(ec.SECP384R1()), "ES384"),
        (ed25519.Ed25519PrivateKey.generate(), "EdDSA"),
        (KEY.private, "PS256"),
    ],
)
def test_keys_of_each_kind_sign(
    scout: AgentRow,
    olga: User,
    toolset: Toolset,
    here: str,
    settings: Any,
    key: Any,
    algorithm: str,
) -> None:
    made = identities.bind_key(scout, issuer=settings.PUBLIC_URL, keys=pem_of(key), by=olga)

    text = signed(claims_of(made, settings.PUBLIC_URL), key, alg=algorithm, kid="any")

    assert token(text, here).status_code == 200


NO_ISSUERS: dict[str, dict[str, str]] = {
    "inward": {"issuer": "https://10.0.0.1"},
    "not https": {"issuer": "http://tokens.example"},
    "a file": {"issuer": "file:///etc/passwd"},
    "nothing": {"issuer": ""},
    "keys inward": {"keys_url": "https://169.254.169.254/keys"},
    "no audience": {"audience": " "},
    "everybody": {"subject": ""},
    "a domain without keys": {"issuer": "spiffe://example.org"},
    "a domain with a path": {
        "issuer": "spiffe://example.org/ci",
        "keys_url": "https://a.example/k",
    },
    "a subject of another domain": {
        "issuer": "spiffe://example.org",
        "subject": "spiffe://other.example/ci",
        "keys_url": "https://a.example/keys",
    },
}


@pytest.mark.parametrize("wrong", NO_ISSUERS)
def test_what_is_no_issuer_is_not_bound(
    scout: AgentRow, olga: User, settings: Any, wrong: str
) -> None:
    settings.UPSTREAM_NETWORKS = []
    said: dict[str, Any] = {
        "issuer": "https://tokens.example",
        "audience": "countersign",
        "subject": SUBJECT,
    }

    with pytest.raises(AccountRefused):
        identities.bind_issuer(scout, **{**said, **NO_ISSUERS[wrong]}, by=olga)
    assert not WorkloadIdentity.objects.exists()


def test_an_issuer_that_is_away_is_no_fault_of_the_token(
    deployer: WorkloadIdentity, issuer: FakeProvider, toolset: Toolset, here: str
) -> None:
    issuer.document = {"issuer": "https://other.example"}

    answer = token(issued(deployer, issuer), here, client_id=deployer.token.client_id)

    assert (answer.status_code, answer.json()["error"]) == (503, "temporarily_unavailable")
    assert reasons() == []
