"""A company's identity provider lets clients act for its people (ID-JAG); and attacks on that."""

import json
import secrets
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import aiohttp
import jwt
import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group
from django.test import Client

from accounts import services as accounts
from accounts.agent_sign_in import clients
from accounts.agent_sign_in.id_jag import JWT_BEARER_GRANT, PROFILE
from accounts.models import Agent as AgentRow
from accounts.models import AgentToken, Identity, User
from accounts.oidc import metadata
from accounts.roles import Role
from audit.models import Entry
from registry import services
from registry.models import Toolset
from tests.accounts import fake_provider
from tests.accounts.fake_provider import FakeProvider, SigningKey
from tests.conformance.suite import node
from tests.conftest import person
from tests.gateway.client_documents import DocumentHost
from tests.gateway.proving import KeyHolder
from tests.gateway.test_agent_sign_in import ping, reasons
from tests.gateway.test_signing_clients import KEY, SIGNS, claims_of, shown, signed
from tests.processes import ROOT, Stack

pytestmark = pytest.mark.django_db(transaction=True)

HIS_ACCOUNT = "00u-bob"


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    metadata.forget()
    with fake_provider.running() as running:
        yield running
    metadata.forget()


@pytest.fixture
def documents(settings: Any) -> Iterator[DocumentHost]:
    settings.CLIENT_NETWORKS = ["127.0.0.0/8"]
    with DocumentHost() as host:
        host.answers["/jwks.json"] = {"keys": [KEY.public]}
        yield host


@pytest.fixture
def here(settings: Any) -> str:
    return f"{settings.AGENT_URL}/mcp/desk"


class EnterpriseClient:
    """A client that its company's provider lets act for people, without asking them."""

    def __init__(self, provider: FakeProvider, client_id: str, resource: str, issuer: str) -> None:
        self.provider, self.client_id, self.resource = provider, client_id, resource
        self.issuer = issuer
        self.http = Client(enforce_csrf_checks=True)

    def id_jag(self, *, typ: str | None = "oauth-id-jag+jwt", **wrong: Any) -> str:
        """None leaves a claim out."""
        now = int(time.time())
        claims = {
            "iss": self.provider.issuer,
            "sub": HIS_ACCOUNT,
            "aud": self.issuer,
            "resource": self.resource,
            "client_id": self.client_id,
            "jti": secrets.token_hex(8),
            "exp": now + 300,
            "iat": now,
            "scope": "tools",
            **wrong,
        }
        kept = {name: value for name, value in claims.items() if value is not None}
        header = {"kid": self.provider.key.name, "typ": typ}
        return jwt.encode(kept, self.provider.key.private, "RS256", header)

    def ask(self, id_jag: str, proof: str = "", **changed: Any) -> Any:
        said = {
            "grant_type": JWT_BEARER_GRANT,
            "assertion": id_jag,
            "client_id": self.client_id,
            **shown(signed(claims_of(self.client_id))),
            **changed,
        }
        body = urlencode({name: value for name, value in said.items() if value is not None})
        form = "application/x-www-form-urlencoded"
        headers = {"DPoP": proof} if proof else {}
        return self.http.post("/oauth/token", body, content_type=form, headers=headers)

    def sign_in(self) -> dict[str, Any]:
        answer = self.ask(self.id_jag())
        assert answer.status_code == 200, answer.content
        said: dict[str, Any] = answer.json()
        return said


@pytest.fixture
def account(provider: FakeProvider, bob: User) -> Identity:
    return Identity.objects.create(person=bob, issuer=provider.issuer, subject=HIS_ACCOUNT)


@pytest.fixture
def claude(
    provider: FakeProvider,
    documents: DocumentHost,
    account: Identity,
    toolset: Toolset,
    bob: User,
    here: str,
    settings: Any,
    tmp_path: Any,
) -> EnterpriseClient:
    services.set_agent_sign_in(toolset, True, by=bob)
    settings.OIDC_FILE = tmp_path / "oidc.json"
    return enterprise_client(provider, documents, here, settings)


def enterprise_client(
    provider: FakeProvider, documents: DocumentHost, resource: str, settings: Any
) -> EnterpriseClient:
    """A client that the host's file names."""
    keys: dict[str, Any] = {"jwks_uri": f"{documents.url}/jwks.json"}
    client_id = documents.describe(**{**SIGNS, **keys, "client_name": "Claude"})
    name_clients(settings, provider, client_id)
    return EnterpriseClient(provider, client_id, resource, settings.PUBLIC_URL)


def name_clients(settings: Any, provider: FakeProvider, *client_ids: str) -> None:
    known: dict[str, Any] = {"issuer": provider.issuer, "client_id": "countersign"}
    known |= {"id_jag_clients": list(client_ids)}
    settings.OIDC_FILE.write_text(json.dumps({"providers": {"company": known}}))


@pytest.fixture
def gateway(stack: Stack, settings: Any) -> Stack:
    settings.PUBLIC_URL, settings.AGENT_URL = stack.web_url, stack.agents_url
    assert stack.agents
    return stack


async def test_a_client_acts_for_a_user_whom_nobody_asked(
    gateway: Stack, http: aiohttp.ClientSession, claude: EnterpriseClient
) -> None:
    given = await sync_to_async(claude.sign_in)()

    assert (given["token_type"], given["scope"], given["expires_in"]) == ("Bearer", "tools", 3600)
    # It asks the provider each time.
    assert "refresh_token" not in given
    reply = await ping(gateway, http, given["access_token"])
    assert reply.status == 200, reply.body
    entry = await Entry.objects.aget(action="agent_sign_in.allowed_by_provider")
    assert entry.details["issuer"] == claude.provider.issuer
    assert entry.details["subject"] == HIS_ACCOUNT
    assert entry.details["client_id"] == claude.client_id
    assert entry.details["access_token"] == given["access_token"].split("_")[3]


def test_the_agent_is_the_users_and_stays_the_same(claude: EnterpriseClient, bob: User) -> None:
    claude.sign_in()
    claude.sign_in()

    agent = AgentRow.objects.get(name__startswith="bob-")
    assert agent.owner == bob
    # One grant for a day, whatever the number of access tokens.
    assert AgentToken.objects.sign_ins().filter(agent=agent).count() == 1
    assert Entry.objects.filter(action="agent_sign_in.allowed_by_provider").count() == 2


def test_metadata_offer_it_where_it_is_switched_on(
    claude: EnterpriseClient, provider: FakeProvider, settings: Any
) -> None:
    place = "/.well-known/oauth-authorization-server"
    said = Client().get(place).json()
    assert JWT_BEARER_GRANT in said["grant_types_supported"]
    assert said["authorization_grant_profiles_supported"] == [PROFILE]

    name_clients(settings, provider)
    off = Client().get(place).json()
    assert JWT_BEARER_GRANT not in off["grant_types_supported"]
    assert "authorization_grant_profiles_supported" not in off


def test_the_address_may_be_in_either_place(claude: EnterpriseClient) -> None:
    assert claude.ask(claude.id_jag(resource=None), resource=claude.resource).status_code == 200
    both = claude.ask(claude.id_jag(resource=[claude.resource]), resource=claude.resource)
    assert both.status_code == 200


NOT_ACCEPTED: dict[str, tuple[dict[str, Any], str]] = {
    "another audience": ({"aud": "https://other.example.com"}, "for another authorization server"),
    "two audiences": ({"aud": ["http://testserver", "https://b"]}, "another authorization server"),
    "another client": ({"client_id": "https://evil.example.com/app"}, "is of another client"),
    "no client": ({"client_id": None}, "is of another client"),
    "another issuer": ({"iss": "https://evil.example.com"}, "signs in no users of this client"),
    "nobody": ({"sub": "00u-nobody"}, "No user here has connected this account"),
    "no name": ({"sub": ""}, "names nobody"),
    "no jti": ({"jti": None}, "lacks “jti”"),
    "no iat": ({"iat": None}, "lacks “iat”"),
    "no end": ({"exp": None}, "lacks “exp”"),
    "expired": ({"exp": int(time.time()) - 120, "iat": int(time.time()) - 300}, "has expired"),
    "valid for a day": ({"exp": int(time.time()) + 86_400}, "valid for too long"),
    "an ID token": ({"typ": "JWT"}, "token of another kind"),
    "an access token": ({"typ": "at+jwt"}, "token of another kind"),
    "no kind": ({"typ": None}, "token of another kind"),
    "two addresses": ({"resource": ["http://a", "http://b"]}, "is for another address"),
    "no address": ({"resource": None}, "is for another address"),
    "bound": ({"cnf": {"jkt": "x" * 43}}, "bound to something"),
}


@pytest.mark.long
@pytest.mark.parametrize("wrong", NOT_ACCEPTED)
def test_what_allows_nothing_gets_nothing_and_is_recorded(
    claude: EnterpriseClient, wrong: str
) -> None:
    changed, why = NOT_ACCEPTED[wrong]

    answer = claude.ask(claude.id_jag(**changed))

    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
    # The client does not learn why.
    assert answer.json()["error_description"] == "The assertion is not accepted."
    (reason,) = reasons()
    assert why in reason
    assert not AgentToken.objects.sign_ins().exists()


@pytest.mark.long
@pytest.mark.parametrize("forged", ["another key", "none", "HS256", "altered"])
def test_a_forged_one_gets_nothing(claude: EnterpriseClient, forged: str) -> None:
    right = claude.id_jag()
    claims = jwt.decode(right, options={"verify_signature": False})
    header = {"kid": claude.provider.key.name, "typ": "oauth-id-jag+jwt"}
    match forged:
        case "another key":
            text = jwt.encode(claims, SigningKey().private, "RS256", header)
        case "none":
            text = jwt.encode(claims, "", "none", header)
        case "HS256":
            claude.provider.algorithm = "HS256"
            text = claude.provider.signed(claims)
        case _:
            head, body, signature = right.split(".")
            text = f"{head}.{body}.{signature[:-4]}AAAA"

    answer = claude.ask(text)

    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")
    assert len(reasons()) == 1


def test_it_counts_once(claude: EnterpriseClient) -> None:
    once = claude.id_jag()

    assert claude.ask(once).status_code == 200
    assert claude.ask(once).json()["error"] == "invalid_grant"
    assert reasons() == ["The assertion was used before."]


def test_it_is_for_one_address(claude: EnterpriseClient, here: str) -> None:
    answer = claude.ask(claude.id_jag(), resource=f"{here}/up")

    assert answer.json()["error"] == "invalid_grant"
    assert reasons() == ["The assertion is for another address."]


@pytest.mark.long
def test_the_client_proves_itself(claude: EnterpriseClient) -> None:
    unsigned = claude.ask(claude.id_jag(), client_assertion=None, client_assertion_type=None)
    other = claude.ask(claude.id_jag(), **shown(signed(claims_of(claude.client_id), SigningKey())))

    assert [one.status_code for one in (unsigned, other)] == [401, 401]
    assert len(reasons()) == 2
    assert not AgentToken.objects.sign_ins().exists()


def test_a_client_that_the_host_does_not_name_gets_nothing(
    claude: EnterpriseClient, documents: DocumentHost
) -> None:
    documents.asked.clear()
    other = documents.describe("/other.json", **SIGNS, jwks={"keys": [KEY.public]})
    stranger = EnterpriseClient(claude.provider, other, claude.resource, claude.issuer)

    answer = stranger.ask(stranger.id_jag())

    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
    assert reasons() == ["No identity provider signs in users of this client here."]
    # Strangers make us read nothing.
    assert documents.asked == []


def test_a_provider_signs_in_nobody_elses_accounts(
    claude: EnterpriseClient, settings: Any, bob: User
) -> None:
    """Two providers: the second knows an account of the same number."""
    with fake_provider.running() as second:
        first = claude.provider
        known = {
            slug: {"issuer": one.issuer, "client_id": "c", "id_jag_clients": [claude.client_id]}
            for slug, one in {"first": first, "second": second}.items()
        }
        settings.OIDC_FILE.write_text(json.dumps({"providers": known}))
        claude.provider = second
        answer = claude.ask(claude.id_jag())
        forged = claude.ask(claude.id_jag(iss=first.issuer))

    assert answer.json()["error"] == forged.json()["error"] == "invalid_grant"
    assert "No user here has connected this account of the provider." in reasons()
    assert not AgentToken.objects.sign_ins().exists()


ENDS = ["the user", "the account", "the role", "the agent", "the toolset"]


@pytest.mark.long
@pytest.mark.parametrize("end", ENDS)
def test_what_ended_is_not_signed_in_again(
    claude: EnterpriseClient, account: Identity, bob: User, alice: User, toolset: Toolset, end: str
) -> None:
    claude.sign_in()
    match end:
        case "the user":
            accounts.set_active(bob, False, by=alice)
        case "the account":
            Identity.objects.update(disconnected_at=account.created_at)
        case "the role":
            bob.groups.set(Group.objects.none())
        case "the agent":
            accounts.set_agent_enabled(
                AgentRow.objects.get(name__startswith="bob-"), False, by=alice
            )
        case _:
            services.set_agent_sign_in(toolset, False, by=alice)

    answer = claude.ask(claude.id_jag())

    assert answer.json()["error"] == "invalid_grant", answer.content
    assert len(reasons()) == 1


@pytest.mark.long
def test_two_users_of_one_client_are_two_agents(claude: EnterpriseClient) -> None:
    dora = person("dora", Role.VIEWER)
    issuer = claude.provider.issuer
    Identity.objects.create(person=dora, issuer=issuer, subject="00u-dora")

    assert claude.ask(claude.id_jag()).status_code == 200
    assert claude.ask(claude.id_jag(sub="00u-dora")).status_code == 200

    owners = {one.agent.owner.username for one in AgentToken.objects.sign_ins()}
    assert owners == {"bob", "dora"}


def test_tokens_are_bound_to_a_key_that_is_shown(claude: EnterpriseClient, settings: Any) -> None:
    holder = KeyHolder(f"{settings.PUBLIC_URL}/oauth/token")

    bound = claude.ask(claude.id_jag(), holder.proof())

    assert bound.json()["token_type"] == "DPoP"
    assert AgentToken.objects.sign_ins().get().jkt == holder.jkt
    # A token without the key stands on another grant.
    assert claude.ask(claude.id_jag()).json()["token_type"] == "Bearer"
    assert AgentToken.objects.sign_ins().count() == 2


def test_a_client_without_a_key_is_taken_because_the_host_names_it(
    claude: EnterpriseClient, documents: DocumentHost, provider: FakeProvider, settings: Any
) -> None:
    public = documents.describe("/public.json", client_name="Desk app")
    name_clients(settings, provider, public)
    app = EnterpriseClient(provider, public, claude.resource, claude.issuer)
    nothing: dict[str, Any] = {"client_assertion": None, "client_assertion_type": None}

    assert app.ask(app.id_jag(), **nothing).status_code == 200


PROGRAMS = Path(__file__).parent / "enterprise_clients"
SDKS = {
    "python": [sys.executable, str(PROGRAMS / "by_id_jag.py")],
    "typescript": [node(), str(PROGRAMS / "by_id_jag.mjs")],
}


@pytest.mark.long
@pytest.mark.parametrize("sdk", SDKS)
def test_an_sdks_client_signs_in_with_an_id_jag(
    own_stack: Stack,
    provider: FakeProvider,
    documents: DocumentHost,
    account: Identity,
    toolset: Toolset,
    bob: User,
    settings: Any,
    tmp_path: Path,
    sdk: str,
) -> None:
    """These clients know secrets alone: the document says that this one has none."""
    services.set_agent_sign_in(toolset, True, by=bob)
    settings.OIDC_FILE = tmp_path / "oidc.json"
    client_id = documents.describe("/public.json", client_name="An SDK")
    name_clients(settings, provider, client_id)
    own_stack.env |= {
        "COUNTERSIGN_OIDC_FILE": str(settings.OIDC_FILE),
        "COUNTERSIGN_CLIENT_NETWORKS": "127.0.0.0/8",
        "COUNTERSIGN_UPSTREAM_NETWORKS": "127.0.0.0/8",
    }
    assert own_stack.web
    assert own_stack.agents
    here = f"{own_stack.agents_url}/mcp/desk"
    issued = EnterpriseClient(provider, client_id, here, own_stack.web_url)

    with subprocess.Popen(
        [*SDKS[sdk], here, client_id, own_stack.web_url],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdin
        assert program.stdout
        asked = json.loads(program.stdout.readline())
        program.stdin.write(f"{issued.id_jag(resource=asked['resource'])}\n")
        program.stdin.flush()
        said = json.loads(program.stdout.readline())

    assert asked == {"audience": own_stack.web_url, "resource": here}
    assert "rec_echo" in said["tools"]
    assert AgentToken.objects.sign_ins().get().agent.owner == bob


def test_a_provider_that_is_away_is_no_fault_of_the_client(
    claude: EnterpriseClient, provider: FakeProvider
) -> None:
    provider.keys = []
    provider.document = {"jwks_uri": "http://127.0.0.1:9/jwks"}

    answer = claude.ask(claude.id_jag())

    assert (answer.status_code, answer.json()["error"]) == (503, "temporarily_unavailable")
    assert reasons() == []


def test_it_is_no_way_in_for_other_tokens(claude: EnterpriseClient) -> None:
    """An ID-JAG is no client's proof and no access token; a client's proof is no ID-JAG."""
    clients.find_client(claude.client_id)
    as_proof = claude.ask(claude.id_jag(), **shown(claude.id_jag()))
    as_id_jag = claude.ask(signed(claims_of(claude.client_id)))

    assert as_proof.status_code == 401
    assert as_id_jag.json()["error"] == "invalid_grant"
    assert len(reasons()) == 2
