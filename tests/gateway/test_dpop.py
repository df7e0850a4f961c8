"""Tokens that are bound to a client's key (DPoP): given, shown, demanded; and attacks on that."""

import asyncio
import base64
import json
import time
import uuid
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

import aiohttp
import jwt
import pytest
from asgiref.sync import sync_to_async
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from django.core.management import call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from accounts import dpop, tokens, used_proofs
from accounts import services as accounts
from accounts.agent_sign_in import access_tokens, clients
from accounts.dpop import ProofFailed
from accounts.models import Agent as AgentRow
from accounts.models import AgentToken, SignInClient, UsedProof, User, WorkloadIdentity
from accounts.oidc.access_tokens import authenticate
from accounts.roles import Role
from accounts.tasks import remove_used_proofs
from accounts.workloads import identities
from audit.models import Entry
from calls.models import Call
from registry import services
from registry.models import Toolset
from tests.accounts.fake_provider import FakeProvider
from tests.conftest import person
from tests.gateway.agent import Agent
from tests.gateway.conftest import until
from tests.gateway.proving import KeyHolder, new_key, send
from tests.gateway.test_agent_sign_in import BACK, Browser, introspect, service_token
from tests.gateway.test_signed_tokens import HERE as PROVIDERS_HERE
from tests.gateway.test_signed_tokens import company, desk_app, provider, token_of
from tests.gateway.test_workloads import KEY, claims_of, signed
from tests.processes import Stack

__all__ = ["company", "desk_app", "provider"]
pytestmark = pytest.mark.django_db(transaction=True)

FORM = "application/x-www-form-urlencoded"
TOKEN = "cso_0"
URL = "https://agents.example.com/mcp/desk"


# What is a proof


def rsa_key(bits: int, exponent: int = 65537) -> tuple[Any, dict[str, Any]]:
    key = rsa.generate_private_key(public_exponent=exponent, key_size=bits)
    return key, RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)


def edwards_key() -> tuple[Any, dict[str, Any]]:
    key = ed25519.Ed25519PrivateKey.generate()
    return key, OKPAlgorithm.to_jwk(key.public_key(), as_dict=True)


def other_curve() -> tuple[Any, dict[str, Any]]:
    key = ec.generate_private_key(ec.SECP384R1())
    return key, ECAlgorithm.to_jwk(key.public_key(), as_dict=True)


def signed_by(pair: tuple[Any, dict[str, Any]], algorithm: str) -> str:
    key, jwk = pair
    head = {"alg": algorithm, "jwk": jwk}
    return KeyHolder(URL).proof(TOKEN, header=head, sign_with=key)


RIGHT: dict[str, Callable[[], str]] = {
    "ES256": lambda: KeyHolder(URL).proof(TOKEN),
    "ES384": lambda: signed_by(other_curve(), "ES384"),
    "EdDSA": lambda: signed_by(edwards_key(), "EdDSA"),
    "RS256": lambda: signed_by(rsa_key(2048), "RS256"),
    "PS256": lambda: signed_by(rsa_key(2048), "PS256"),
    "a clock that is ahead": lambda: KeyHolder(URL).proof(TOKEN, iat=int(time.time()) + 50),
    "a fraction of a second": lambda: KeyHolder(URL).proof(TOKEN, iat=time.time()),
}


@pytest.mark.parametrize("right", RIGHT)
def test_a_right_proof_proves_its_key(right: str) -> None:
    proof = dpop.check(RIGHT[right](), method="POST", url=URL, token=TOKEN)

    assert dpop.is_thumbprint(proof.jkt)
    assert 0 < proof.expires_at - time.time() <= 2 * dpop.WINDOW_S


def test_the_thumbprint_is_that_of_the_rfc() -> None:
    """RFC 7638, 3.1, and the key of RFC 9449, 4.1 with the thumbprint of 6.1."""
    jwk = {
        "kty": "EC",
        "x": "l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs",
        "y": "9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA",
        "crv": "P-256",
        "use": "sig",
    }
    assert dpop.thumbprint(jwk) == "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"
    # The access token of 7.1.
    token = "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU"
    assert dpop.token_digest(token) == "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo"


def with_private_part() -> str:
    key = new_key()
    jwk: dict[str, Any] = ECAlgorithm.to_jwk(key, as_dict=True)
    return KeyHolder(URL, key).proof(TOKEN, header={"jwk": jwk})


def public_key_as_secret() -> str:
    """The oldest confusion: an HMAC by what everybody knows."""
    holder = KeyHolder(URL)
    pem = holder.key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    head, body, _ = holder.proof(TOKEN, header={"alg": "ES256"}).split(".")
    changed = {**json.loads(base64.urlsafe_b64decode(head + "==")), "alg": "HS256"}
    start = f"{encoded(changed)}.{body}"
    mac = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
    return f"{start}.{jwt.utils.base64url_encode(mac.sign(start.encode(), pem)).decode()}"


def encoded(said: dict[str, Any]) -> str:
    return jwt.utils.base64url_encode(json.dumps(said).encode()).decode()


def unsigned() -> str:
    head, body, _ = KeyHolder(URL).proof(TOKEN).split(".")
    changed = {**json.loads(base64.urlsafe_b64decode(head + "==")), "alg": "none"}
    return f"{encoded(changed)}.{body}."


def oct_key() -> str:
    jwk = {"kty": "oct", "k": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3JldA"}
    return KeyHolder(URL).proof(TOKEN, header={"jwk": jwk})


def made(**changed: Any) -> Callable[[], str]:
    return lambda: KeyHolder(URL).proof(TOKEN, **changed)


WRONG: dict[str, tuple[Callable[[], str], str]] = {
    "none": (lambda: "", "no proof"),
    "garbage": (lambda: "a.b.c", "cannot be read"),
    "long": (lambda: "x" * 9000, "too long"),
    "two, joined": (
        lambda: f"{KeyHolder(URL).proof(TOKEN)}, {KeyHolder(URL).proof(TOKEN)}",
        "read",
    ),
    "an access token": (made(header={"typ": "at+jwt"}), "type"),
    "no type": (made(header={"typ": "JWT"}), "type"),
    "unsigned": (unsigned, "not taken here"),
    "public key as secret": (public_key_as_secret, "not taken here"),
    "critical extension": (made(header={"crit": ["x"], "x": 1}), "cannot be read"),
    "no key": (made(header={"jwk": None}), "public key"),
    "key with its private part": (with_private_part, "public key"),
    "secret key": (oct_key, "public key"),
    "key of another kind": (made(header={"jwk": rsa_key(2048)[1]}), "does not fit"),
    "another curve": (made(header={"jwk": other_curve()[1]}), "does not fit"),
    "key with numbers": (made(header={"jwk": {"kty": "EC", "crv": "P-256", "x": 1}}), "not fit"),
    "no point of the curve": (
        made(header={"jwk": {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"}}),
        "cannot be read",
    ),
    "RSA of 1024 bits": (lambda: signed_by(rsa_key(1024), "RS256"), "2048 to 4096"),
    "RSA with exponent 3": (lambda: signed_by(rsa_key(2048, 3), "RS256"), "exponent 65537"),
    "RSA with SHA-512": (lambda: signed_by(rsa_key(2048), "RS512"), "not taken here"),
    "signed by another key": (
        lambda: KeyHolder(URL).proof(TOKEN, sign_with=new_key()),
        "signature",
    ),
    "no id": (made(jti=None), "jti"),
    "id that is a number": (made(jti=7), "cannot be read"),
    "long id": (made(jti="x" * 300), "jti"),
    "another method": (made(method="GET"), "another method"),
    "method in small letters": (made(method="post"), "another method"),
    "another address": (made(htu="https://agents.example.com/mcp/other"), "another address"),
    "another host": (made(htu="https://evil.example/mcp/desk"), "another address"),
    "plain HTTP": (made(htu=URL.replace("https", "http")), "another address"),
    "a query": (made(htu=f"{URL}?a=b"), "another address"),
    "a fragment": (made(htu=f"{URL}#a"), "another address"),
    "a slash more": (made(htu=f"{URL}/"), "another address"),
    "no time": (made(iat=None), "iat"),
    "time as text": (made(iat="now"), "iat"),
    "time without end": (made(iat=1e400), "iat"),
    "more than a float holds": (made(iat=10**400), "iat"),
    "old": (made(iat=int(time.time()) - 100), "too old"),
    "from the future": (made(iat=int(time.time()) + 300), "from the future"),
    "expired by itself": (made(exp=int(time.time()) - 10), "cannot be read"),
    "no token's digest": (made(ath=None), "another token"),
    "another token's": (made(ath=dpop.token_digest("cso_1")), "another token"),
}


@pytest.mark.filterwarnings("ignore::jwt.warnings.InsecureKeyLengthWarning")
@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_proof_proves_nothing(wrong: str) -> None:
    make, why = WRONG[wrong]

    with pytest.raises(ProofFailed, match=why):
        dpop.check(make(), method="POST", url=URL, token=TOKEN)


def test_a_proof_counts_once_and_is_forgotten() -> None:
    proof = dpop.check(KeyHolder(URL).proof(), method="POST", url=URL)

    used_proofs.use_up(proof)
    with pytest.raises(ProofFailed, match="used before"):
        used_proofs.use_up(proof)
    remove_used_proofs()
    assert UsedProof.objects.count() == 1
    # The host that removes it may have a clock that is ahead of the gateways'.
    UsedProof.objects.update(expires_at=timezone.now() - timedelta(minutes=5))
    remove_used_proofs()
    with pytest.raises(ProofFailed, match="used before"):
        used_proofs.use_up(proof)
    UsedProof.objects.update(expires_at=timezone.now() - timedelta(minutes=11))
    remove_used_proofs()
    assert not UsedProof.objects.exists()


# At the token endpoint


@pytest.fixture
def open_desk(toolset: Toolset, bob: User) -> Toolset:
    services.set_agent_sign_in(toolset, True, by=bob)
    return toolset


@pytest.fixture
def here(settings: Any) -> str:
    return f"{settings.AGENT_URL}/mcp/desk"


@pytest.fixture
def app(db: None) -> SignInClient:
    return clients.register({"client_name": "Desk app", "redirect_uris": [BACK]})


@pytest.fixture
def endpoint(settings: Any) -> KeyHolder:
    """The client, as it proves its key at the token endpoint."""
    return KeyHolder(f"{settings.PUBLIC_URL}/oauth/token")


class BoundBrowser(Browser):
    """A browser whose client sends this proof with each request for tokens."""

    proof = ""

    def token(self, said: dict[str, Any]) -> Any:
        more = {"DPoP": self.proof} if self.proof else {}
        return self.http.post("/oauth/token", urlencode(said), content_type=FORM, headers=more)

    def sign_in(self, holder: KeyHolder | None = None, **asked: Any) -> dict[str, Any]:
        code = self.allowed(**asked)["code"]
        self.proof = holder.proof() if holder else ""
        answer = self.redeem(code)
        assert answer.status_code == 200, answer.content
        found: dict[str, Any] = answer.json()
        return found


@pytest.fixture
def browser(bob: User, app: SignInClient, open_desk: Toolset, here: str) -> BoundBrowser:
    return BoundBrowser(bob, app, here)


def reasons(action: str = "agent_sign_in.rejected") -> list[str]:
    return [entry.reason for entry in Entry.objects.filter(action=action).order_by("id")]


def test_a_proof_binds_the_tokens(
    browser: BoundBrowser, endpoint: KeyHolder, open_desk: Toolset
) -> None:
    given = browser.sign_in(endpoint)

    assert given["token_type"] == "DPoP"
    read = access_tokens.read(given["access_token"])
    assert read is not None
    assert read.jkt == endpoint.jkt
    bearer = tokens.load().bearer(given["access_token"])
    assert bearer is not None
    assert bearer.jkt == endpoint.jkt
    ada = person("ada", Role.ADMINISTRATOR)
    reader = service_token("reader", ["accounts.view_agenttoken"], ada)
    said = introspect(given["access_token"], reader).json()
    assert (said["token_type"], said["cnf"]) == ("DPoP", {"jkt": endpoint.jkt})
    # Another key in its place, or none, is another token.
    other = KeyHolder("x").jkt
    assert access_tokens.read(given["access_token"].replace(endpoint.jkt, other)) is None
    stripped = given["access_token"].replace(f"~{endpoint.jkt}.", "_")
    assert access_tokens.read(stripped) is None


def test_a_token_has_one_spelling() -> None:
    plain = access_tokens.issue("0" * 8)
    head, _, signature = plain.rpartition("_")

    assert access_tokens.read(plain)
    assert access_tokens.read(f"{head}.{signature}") is None


def test_metadata_name_the_algorithms(open_desk: Toolset) -> None:
    said = Client().get("/.well-known/oauth-authorization-server").json()

    assert said["dpop_signing_alg_values_supported"] == list(dpop.ALGORITHMS)
    assert not any(one.startswith(("HS", "none")) for one in dpop.ALGORITHMS)


def test_refresh_needs_the_same_key(browser: BoundBrowser, endpoint: KeyHolder) -> None:
    given = browser.sign_in(endpoint)
    refresh = given["refresh_token"]

    browser.proof = ""
    assert browser.refresh(refresh).json()["error"] == "invalid_grant"
    browser.proof = KeyHolder(endpoint.url).proof()
    assert browser.refresh(refresh).json()["error"] == "invalid_grant"
    # The thief's tries used nothing up.
    browser.proof = endpoint.proof()
    answer = browser.refresh(refresh).json()
    assert answer["token_type"] == "DPoP"
    said = "It is bound to a key, and the request has no proof of that key."
    assert reasons() == [said]


def test_a_client_without_a_key_stays_as_it_was(browser: BoundBrowser, endpoint: KeyHolder) -> None:
    given = browser.sign_in()

    assert given["token_type"] == "Bearer"
    # A proof binds nothing afterwards: whoever stole the token would bind it to theirs.
    browser.proof = endpoint.proof()
    assert browser.refresh(given["refresh_token"]).json()["token_type"] == "Bearer"


@pytest.mark.parametrize("wrong", ["another address", "replay", "no proof at all", "two"])
def test_a_wrong_proof_gets_no_token_and_uses_nothing_up(
    browser: BoundBrowser, endpoint: KeyHolder, wrong: str
) -> None:
    code = browser.allowed()["code"]
    used = endpoint.proof()
    used_proofs.use_up(dpop.check(used, method="POST", url=endpoint.url))
    browser.proof = {
        "another address": endpoint.proof(htu=browser.resource),
        "replay": used,
        "no proof at all": "nothing",
        "two": f"{endpoint.proof()},{endpoint.proof()}",
    }[wrong]

    answer = browser.redeem(code)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_dpop_proof")
    assert len(reasons()) == 1
    browser.proof = endpoint.proof()
    assert browser.redeem(code).json()["token_type"] == "DPoP"


def test_a_code_can_be_bound_before(browser: BoundBrowser, endpoint: KeyHolder) -> None:
    code = browser.allowed(dpop_jkt=endpoint.jkt)["code"]
    browser.proof = KeyHolder(endpoint.url).proof()
    assert browser.redeem(code).json()["error"] == "invalid_grant"

    given = browser.sign_in(endpoint, dpop_jkt=endpoint.jkt)
    assert given["token_type"] == "DPoP"
    assert browser.page(dpop_jkt="x").status_code == 400


def test_an_agent_that_needs_a_key_gets_no_token_without(
    browser: BoundBrowser, endpoint: KeyHolder, bob: User
) -> None:
    before = browser.sign_in()
    accounts.set_requires_dpop(AgentRow.objects.get(name="bob-registered-desk-app"), True, by=bob)

    said = "This agent's tokens must be bound to a key: sign in with DPoP."
    code = browser.allowed()["code"]
    assert browser.redeem(code).json() == {"error": "invalid_grant", "error_description": said}
    # Whoever has its old refresh token binds it to no key of theirs.
    browser.proof = endpoint.proof()
    assert browser.refresh(before["refresh_token"]).json()["error_description"] == said
    assert browser.sign_in(endpoint)["token_type"] == "DPoP"


def test_a_program_binds_its_tokens(
    scout: AgentRow, toolset: Toolset, olga: User, settings: Any, endpoint: KeyHolder, here: str
) -> None:
    pem = KEY.public_pem.decode()
    workload = identities.bind_key(scout, issuer=settings.PUBLIC_URL, keys=pem, by=olga)

    given = ask_as(workload, here, settings.PUBLIC_URL, endpoint.proof()).json()
    read = access_tokens.read(given["access_token"])
    assert given["token_type"] == "DPoP"
    assert read is not None
    assert (read.resource, read.jkt) == (here, endpoint.jkt)
    assert tokens.load().bearer(given["access_token"]) is not None
    accounts.set_requires_dpop(scout, True, by=olga)
    answer = ask_as(workload, here, settings.PUBLIC_URL, "")
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_dpop_proof")


def ask_as(workload: WorkloadIdentity, resource: str, issuer: str, proof: str) -> Any:
    said = {
        "grant_type": "client_credentials",
        "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
        "client_assertion": signed(claims_of(workload, issuer)),
        "resource": resource,
    }
    more = {"DPoP": proof} if proof else {}
    return Client().post("/oauth/token", urlencode(said), content_type=FORM, headers=more)


# At the agents' endpoint


@pytest.fixture
def gateway(stack: Stack, open_desk: Toolset, settings: Any) -> Stack:
    settings.PUBLIC_URL, settings.AGENT_URL = stack.web_url, stack.agents_url
    assert stack.agents
    return stack


@pytest.fixture
def bound(gateway: Stack, bob: User, app: SignInClient) -> tuple[str, KeyHolder]:
    """A bound access token, and its client at the address that it opens."""
    resource, key = f"{gateway.agents_url}/mcp/desk", new_key()
    browser = BoundBrowser(bob, app, resource)
    given = browser.sign_in(KeyHolder(f"{gateway.web_url}/oauth/token", key))
    return given["access_token"], KeyHolder(resource, key)


def challenge(reply: Any) -> str:
    return str(reply.headers["WWW-Authenticate"])


async def test_a_bound_token_works_with_its_proofs(
    gateway: Stack, http: aiohttp.ClientSession, bound: tuple[str, KeyHolder]
) -> None:
    token, holder = bound
    for _ in range(3):
        assert (await holder.ping(http, token)).status == 200

    shown = {"Authorization": f"DPoP {token}", "DPoP": holder.proof(token)}
    agent = Agent(http, holder.url, "")
    message = await agent.message("tools/call", {"name": "rec_echo", "arguments": {"text": "a"}})
    reply = await agent.post(message, headers=agent.headers(message) | shown)
    assert reply.status == 200, reply.body
    call = await Call.objects.select_related("person", "agent").aget()
    assert (call.person.username, call.agent.name) == ("bob", "bob-registered-desk-app")
    place = f"{gateway.agents_url}/.well-known/oauth-protected-resource/mcp/desk"
    async with http.get(place) as answer:
        said = await answer.json()
    assert said["dpop_signing_alg_values_supported"] == list(dpop.ALGORITHMS)


async def test_a_proof_may_be_for_the_address_with_a_slash(
    gateway: Stack, http: aiohttp.ClientSession, bound: tuple[str, KeyHolder]
) -> None:
    token, holder = bound
    typed = KeyHolder(f"{holder.url}/", holder.key)

    assert (await typed.ping(http, token)).status == 200
    assert (await holder.ping(http, token, proof=typed.proof(token))).status == 401


def other_of(holder: KeyHolder) -> KeyHolder:
    return KeyHolder(holder.url)


ATTACKS: dict[str, tuple[Callable[[KeyHolder, str], dict[str, Any]], str, str]] = {
    "as a bearer token": (
        lambda h, t: {"proof": "", "scheme": "Bearer"},
        "invalid_token",
        "The token is bound to a key: show it with the scheme DPoP and a proof.",
    ),
    "as a bearer token with a proof": (
        lambda h, t: {"proof": h.proof(t), "scheme": "Bearer"},
        "invalid_token",
        "The token is bound to a key: show it with the scheme DPoP and a proof.",
    ),
    "without a proof": (lambda h, t: {"proof": ""}, "invalid_dpop_proof", "The DPoP header has"),
    "of another key": (
        lambda h, t: {"proof": other_of(h).proof(t)},
        "invalid_token",
        "The proof is of another key than the token is bound to.",
    ),
    "for another method": (
        lambda h, t: {"proof": h.proof(t, method="GET")},
        "invalid_dpop_proof",
        "The proof is for another method.",
    ),
    "for another address": (
        lambda h, t: {"proof": h.proof(t, htu=f"{h.url}/rec")},
        "invalid_dpop_proof",
        "The proof is for another address.",
    ),
    "for the address of a proxy's making": (
        lambda h, t: {
            "proof": h.proof(t, htu="https://evil.example/mcp/desk"),
            "X-Forwarded-Host": "evil.example",
            "X-Forwarded-Proto": "https",
            "Forwarded": "host=evil.example;proto=https",
        },
        "invalid_dpop_proof",
        "The proof is for another address.",
    ),
    "for another token": (
        lambda h, t: {"proof": h.proof("cso_1")},
        "invalid_dpop_proof",
        "The proof is for another token.",
    ),
    "old": (
        lambda h, t: {"proof": h.proof(t, iat=int(time.time()) - 90)},
        "invalid_dpop_proof",
        "The proof is too old, or from the future.",
    ),
}


@pytest.mark.parametrize("attack", ATTACKS)
async def test_a_stolen_token_opens_nothing(
    gateway: Stack, http: aiohttp.ClientSession, bound: tuple[str, KeyHolder], attack: str
) -> None:
    (token, holder), (make, error, why) = bound, ATTACKS[attack]
    given = make(holder, token)
    proof = given.pop("proof")

    reply = await send(http, holder.url, token, proof, **given)

    assert reply.status == 401
    assert challenge(reply).startswith(f'DPoP error="{error}", error_description="{why}')
    assert 'algs="ES256 ES384 EdDSA RS256 PS256"' in challenge(reply)
    assert "resource_metadata=" in challenge(reply)
    entry = await Entry.objects.aget(action="agent.token_rejected")
    assert entry.reason.startswith(why)
    assert token not in json.dumps(entry.details)
    # The client itself goes on.
    assert (await holder.ping(http, token)).status == 200


async def test_two_proofs_in_one_request_are_none(
    gateway: Stack, http: aiohttp.ClientSession, bound: tuple[str, KeyHolder]
) -> None:
    token, holder = bound
    headers = [
        ("Authorization", f"DPoP {token}"),
        ("DPoP", holder.proof(token)),
        ("DPoP", holder.proof(token)),
        ("Accept", "application/json, text/event-stream"),
    ]
    async with http.post(holder.url, json={}, headers=headers) as answer:
        assert answer.status == 401
        assert "Send one proof." in answer.headers["WWW-Authenticate"]


async def test_an_unbound_token_is_no_bound_one(
    gateway: Stack, http: aiohttp.ClientSession, bob: User, app: SignInClient, scout_token: str
) -> None:
    resource = f"{gateway.agents_url}/mcp/desk"
    given = await sync_to_async(lambda: BoundBrowser(bob, app, resource).sign_in())()
    holder = KeyHolder(resource)

    for token in (given["access_token"], scout_token):
        reply = await holder.ping(http, token)
        assert reply.status == 401
        assert "The token is bound to no key" in challenge(reply)
        assert (await send(http, resource, token, "", scheme="Bearer")).status == 200


@pytest.mark.long
@pytest.mark.parametrize("times", [2, 20])
async def test_a_proof_counts_once_at_both_gateways(
    gateway: Stack,
    own_stack: Stack,
    http: aiohttp.ClientSession,
    bound: tuple[str, KeyHolder],
    times: int,
) -> None:
    """Behind one address, as a balancer has them."""
    own_stack.env["COUNTERSIGN_AGENT_URL"] = gateway.agents_url
    own_stack.env["COUNTERSIGN_PUBLIC_URL"] = gateway.web_url
    assert own_stack.agents
    token, holder = bound
    proof = holder.proof(token)
    places = [holder.url, f"{own_stack.agents_url}/mcp/desk"]
    # Each takes the client's own.
    for place in places:
        assert (await send(http, place, token, holder.proof(token))).status == 200

    replies = await asyncio.gather(*(send(http, places[n % 2], token, proof) for n in range(times)))

    assert sorted(reply.status for reply in replies) == [200] + [401] * (times - 1)
    assert "agent.token_rejected" in {one.action async for one in Entry.objects.all()}
    late = await send(http, places[1], token, proof)
    assert (late.status, "used before" in challenge(late)) == (401, True)


async def test_an_agent_that_needs_a_key_uses_no_token_without(
    gateway: Stack, http: aiohttp.ClientSession, scout_token: str, olga: User
) -> None:
    scout = await AgentRow.objects.aget(name="scout")
    resource = f"{gateway.agents_url}/mcp/desk"
    agent = Agent(http, resource, scout_token)
    assert (await agent.post({"jsonrpc": "2.0", "id": 1, "method": "ping"})).status == 200

    await sync_to_async(accounts.set_requires_dpop)(scout, True, by=olga)
    await until(lambda: status_is(agent, 401))
    reply = await agent.post({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    said = "This agent's tokens must be bound to a key: sign in with DPoP."
    assert challenge(reply).startswith(f'DPoP error="invalid_token", error_description="{said}"')
    assert [one.reason async for one in Entry.objects.filter(action="agent.token_rejected")] == [
        said
    ]
    await sync_to_async(accounts.set_requires_dpop)(scout, False, by=olga)
    await until(lambda: status_is(agent, 200))


def test_rest_takes_no_proofs(scout: AgentRow, scout_token: str, olga: User) -> None:
    def status() -> int:
        shown = {"Authorization": f"Bearer {scout_token}"}
        return Client().get(f"/api/calls/{uuid.uuid4()}", headers=shown).status_code

    assert status() == 404
    accounts.set_requires_dpop(scout, True, by=olga)
    assert status() == 401


async def status_is(agent: Agent, status: int) -> bool:
    return (await agent.post({"jsonrpc": "2.0", "id": 1, "method": "ping"})).status == status


async def test_a_flood_of_wrong_proofs_writes_few_entries(
    gateway: Stack, http: aiohttp.ClientSession, bound: tuple[str, KeyHolder]
) -> None:
    token, holder = bound
    wrong = [holder.proof(token, method="GET") for _ in range(60)]

    replies = await asyncio.gather(*(send(http, holder.url, token, one) for one in wrong))

    assert {reply.status for reply in replies} == {401}
    assert await Entry.objects.filter(action="agent.token_rejected").acount() == 1
    assert await UsedProof.objects.acount() == 1  # The sign-in's own.


# Tokens of identity providers


def test_a_providers_bound_token_names_its_key(company: FakeProvider, desk_app: AgentToken) -> None:
    jkt = KeyHolder("x").jkt

    bound = authenticate(
        token_of(company, PROVIDERS_HERE, cnf={"jkt": jkt}), tokens.load(), resource=PROVIDERS_HERE
    )
    plain = authenticate(token_of(company, PROVIDERS_HERE), tokens.load(), resource=PROVIDERS_HERE)

    assert (bound.jkt, plain.jkt) == (jkt, "")
    # It ends with the client's registration, as the others do.
    assert tokens.load().holds(bound)


@pytest.mark.long
async def test_a_providers_bound_token_needs_its_proof(
    own_stack: Stack,
    http: aiohttp.ClientSession,
    company: FakeProvider,
    desk_app: AgentToken,
    toolset: Toolset,
    settings: Any,
) -> None:
    own_stack.env["COUNTERSIGN_OIDC_FILE"] = str(settings.OIDC_FILE)
    assert own_stack.agents
    holder = KeyHolder(f"{own_stack.agents_url}/mcp/desk")
    token = token_of(company, holder.url, cnf={"jkt": holder.jkt})

    for _ in range(2):
        assert (await send(http, holder.url, token, "", scheme="Bearer")).status == 401
        assert (await holder.ping(http, token)).status == 200
    assert (await other_of(holder).ping(http, token)).status == 401
    proof = holder.proof(token)
    assert (await holder.ping(http, token, proof)).status == 200
    assert (await holder.ping(http, token, proof)).status == 401
    plain = token_of(company, holder.url)
    assert (await send(http, holder.url, plain, "", scheme="Bearer")).status == 200
    scout = await AgentRow.objects.aget(name="scout")
    await sync_to_async(accounts.set_requires_dpop)(scout, True, by=None)
    await until(lambda: status_is(Agent(http, holder.url, plain), 401))


# Who demands it


def test_an_operator_demands_it(client: Client, olga: User, scout: AgentRow) -> None:
    client.force_login(olga)
    there = reverse("accounts:set_agent_dpop", args=["scout"])

    page = client.post(there, {"required": "1"}, follow=True).content.decode()
    assert "“scout” needs proof of its key with each request." in page
    client.post(there, {"required": "1"})
    assert AgentRow.objects.get().requires_dpop
    client.post(there, {"required": "0"})

    entries = Entry.objects.filter(action="agent.dpop_set").order_by("id")
    assert [one.details["required"] for one in entries] == [True, False]
    assert {(one.actor, one.agent) for one in entries} == {("olga", "scout")}


def test_its_owner_does_not(client: Client, scout: AgentRow) -> None:
    client.force_login(scout.owner)

    there = reverse("accounts:set_agent_dpop", args=["scout"])
    assert client.post(there, {"required": "1"}).status_code == 403


def test_the_command_demands_it(scout: AgentRow, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("update_agent", "scout", "--dpop", "required")

    assert "scout: required" in capsys.readouterr().out
    assert AgentRow.objects.get().requires_dpop
