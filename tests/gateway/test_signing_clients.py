"""Clients of users that sign what they ask for tokens with (private_key_jwt); and attacks on it."""

import json
import secrets
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from django.conf import settings as django_settings
from django.test import Client
from django.urls import reverse
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from accounts.agent_sign_in import client_assertions, clients
from accounts.agent_sign_in.clients import DEVICE_GRANT, ClientRefused
from accounts.models import AgentToken, DeviceCode, SignInClient, UsedAssertion, User
from accounts.oidc import metadata
from audit.models import Entry
from core.request_rate import RequestRate
from gateway.views.agent_sign_in import consent
from registry import services
from registry.models import Toolset
from tests.accounts import fake_provider
from tests.accounts.fake_provider import SigningKey
from tests.gateway.client_documents import DocumentHost
from tests.gateway.test_agent_sign_in import BACK, Browser, reasons
from tests.gateway.test_device_sign_in import Device
from tests.gateway.test_workloads import ASSERTION_TYPE

pytestmark = pytest.mark.django_db(transaction=True)

KEY, NEXT = SigningKey(), SigningKey()
SIGNS = {"token_endpoint_auth_method": "private_key_jwt", "redirect_uris": [BACK]}


@pytest.fixture(autouse=True)
def anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """This process knows no keys and has counted no requests yet."""
    monkeypatch.setattr(consent, "PAGES", RequestRate(consent.PAGES.amount, 60))
    monkeypatch.setattr(client_assertions, "RENEWALS", RequestRate(1, 60))
    metadata.forget()
    yield
    metadata.forget()


@pytest.fixture
def open_desk(toolset: Toolset, bob: User) -> Toolset:
    services.set_agent_sign_in(toolset, True, by=bob)
    return toolset


@pytest.fixture
def here(open_desk: Toolset, settings: Any) -> str:
    return f"{settings.AGENT_URL}/mcp/desk"


@pytest.fixture
def documents(settings: Any) -> Iterator[DocumentHost]:
    settings.CLIENT_NETWORKS = ["127.0.0.0/8"]
    with DocumentHost() as host:
        host.answers["/jwks.json"] = {"keys": [KEY.public]}
        yield host


def by_document(documents: DocumentHost, who: User, here: str, **said: Any) -> Browser:
    keys = {} if "jwks" in said else {"jwks_uri": f"{documents.url}/jwks.json"}
    client_id = documents.describe(**{**SIGNS, **keys, **said})
    return Browser(who, SignInClient(client_id=client_id), here)


@pytest.fixture
def browser(documents: DocumentHost, bob: User, here: str) -> Browser:
    return by_document(documents, bob, here)


def claims_of(client_id: str, **changed: Any) -> dict[str, Any]:
    """As a client signs; None leaves a claim out."""
    now = int(time.time())
    said = {
        "iss": client_id,
        "sub": client_id,
        "aud": django_settings.PUBLIC_URL,
        "iat": now,
        "exp": now + 120,
        "jti": secrets.token_hex(8),
        **changed,
    }
    return {name: value for name, value in said.items() if value is not None}


def signed(claims: dict[str, Any], key: Any = KEY, **header: Any) -> str:
    algorithm = header.pop("alg", "RS256")
    return jwt.encode(claims, key.private, algorithm, {"kid": key.name, **header})


def shown(assertion: str) -> dict[str, str]:
    return {"client_assertion": assertion, "client_assertion_type": ASSERTION_TYPE}


def proof(browser: Browser, **changed: Any) -> dict[str, str]:
    return shown(signed(claims_of(browser.app.client_id, **changed)))


@pytest.mark.long
def test_a_client_signs_each_of_its_requests(browser: Browser, documents: DocumentHost) -> None:
    code = browser.allowed()["code"]
    given = browser.redeem(code, **proof(browser)).json()
    renewed = browser.refresh(given["refresh_token"], **proof(browser)).json()

    assert renewed["access_token"]
    # The keys are read once in ten minutes.
    assert documents.asked == ["/app.json", "/jwks.json"]
    out = {"token": renewed["refresh_token"], "client_id": browser.app.client_id}
    assert Client().post("/oauth/revoke", _form(out), content_type=FORM).status_code == 401
    assert AgentToken.objects.sign_ins().exists()
    answer = Client().post("/oauth/revoke", _form(out | proof(browser)), content_type=FORM)
    assert answer.status_code == 200
    assert not AgentToken.objects.sign_ins().exists()
    assert reasons() == ["The client has to sign its request (private_key_jwt)."]


FORM = "application/x-www-form-urlencoded"


def _form(said: dict[str, str]) -> str:
    return urlencode(said)


@pytest.mark.long
@pytest.mark.parametrize(
    "audience", ["{}", "{}/", "{}/oauth/token", ["{}"], ["{}/oauth/token"]], ids=str
)
def test_it_may_mean_our_name_or_the_endpoint(browser: Browser, audience: Any) -> None:
    ours = django_settings.PUBLIC_URL
    texts = [one.format(ours) for one in audience] if isinstance(audience, list) else None
    code = browser.allowed()["code"]

    answer = browser.redeem(code, **proof(browser, aud=texts or audience.format(ours)))

    assert answer.status_code == 200, answer.content


@pytest.mark.long
def test_the_assertion_alone_names_the_client(browser: Browser) -> None:
    code = browser.allowed()["code"]

    answer = browser.redeem(code, client_id=None, **proof(browser))

    assert answer.status_code == 200, answer.content


@pytest.mark.long
def test_keys_may_be_in_the_document(documents: DocumentHost, bob: User, here: str) -> None:
    private = ec.generate_private_key(ec.SECP256R1())
    public = ECAlgorithm.to_jwk(private.public_key(), as_dict=True)
    encrypts = {**SigningKey().public, "use": "enc"}
    browser = by_document(documents, bob, here, jwks={"keys": [encrypts, public]})
    code = browser.allowed()["code"]
    text = jwt.encode(claims_of(browser.app.client_id), private, "ES256")

    assert browser.redeem(code, **shown(text)).status_code == 200
    assert documents.asked == ["/app.json"]


@pytest.mark.long
def test_a_client_that_registers_itself_may_sign(bob: User, here: str, settings: Any) -> None:
    settings.CLIENT_REGISTRATION = True
    asked = {**SIGNS, "jwks": {"keys": [KEY.public]}, "token_endpoint_auth_signing_alg": "RS256"}
    said = (
        Client().post("/oauth/register", json.dumps(asked), content_type="application/json").json()
    )
    assert said["token_endpoint_auth_method"] == "private_key_jwt"
    assert said["token_endpoint_auth_signing_alg"] == "RS256"
    assert said["jwks"]["keys"][0]["n"] == KEY.public["n"]
    browser = Browser(bob, SignInClient(client_id=said["client_id"]), here)
    code = browser.allowed()["code"]

    assert browser.redeem(code).status_code == 401
    assert browser.redeem(code, **proof(browser)).status_code == 200


def test_metadata_offer_it(open_desk: Toolset) -> None:
    said = Client().get("/.well-known/oauth-authorization-server").json()

    for endpoint in ("token", "revocation"):
        assert said[f"{endpoint}_endpoint_auth_methods_supported"] == ["none", "private_key_jwt"]
        offered = said[f"{endpoint}_endpoint_auth_signing_alg_values_supported"]
        assert {"RS256", "ES256"} <= set(offered)
        assert not {"none", "HS256"} & set(offered)


@pytest.mark.parametrize("name", ["\0", "csr_a\0b", "\ud800", "https://app.example/\udfff"])
@pytest.mark.parametrize("path", ["token", "revoke", "device_authorization"])
def test_a_name_that_cannot_be_stored_is_nobodys(browser: Browser, path: str, name: str) -> None:
    said = {
        **shown(jwt.encode({"sub": name}, "k" * 32, "HS256")),
        "grant_type": "refresh_token",
        "refresh_token": "csf_x",
        "token": "csf_x",
        "resource": browser.resource,
    }

    answer = browser.http.post(reverse(f"gateway:{path}"), _form(said), content_type=FORM)

    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")


def _none(claims: dict[str, Any]) -> str:
    return jwt.encode(claims, "", "none")


def _hmac(claims: dict[str, Any]) -> str:
    return fake_provider._hmac_signed(claims, {"kid": KEY.name}, KEY.public_pem)


ATTACKS: dict[str, tuple[Any, str]] = {
    "no assertion": (None, "has to sign"),
    "unsigned": (_none, "signed in a way that is not taken"),
    "HMAC with the public key": (_hmac, "signed in a way that is not taken"),
    "another key of that name": (
        lambda said: jwt.encode(said, NEXT.private, "RS256", {"kid": KEY.name}),
        "signature is not valid",
    ),
    "a key that it does not publish": (lambda said: signed(said, NEXT), "no key with which"),
    "a key in the header": (lambda said: signed(said, NEXT, jwk=NEXT.public), "no key with"),
    "keys of an address in the header": (
        lambda said: signed(said, NEXT, jku="https://evil.example/jwks.json"),
        "no key with which",
    ),
    "an access token": (lambda said: signed(said, typ="at+jwt"), "token of another kind"),
    "a DPoP proof": (lambda said: signed(said, typ="dpop+jwt"), "token of another kind"),
    "rubbish": (lambda said: "e30.e30.e30", "cannot be read|signed in a way"),
    "too long": (lambda said: signed({**said, "more": "x" * 20_000}), "too long"),
    "cut off": (lambda said: signed(said)[:-20], "signature is not valid|cannot be read"),
}
CLAIMS: dict[str, tuple[dict[str, Any], str]] = {
    "for another server": ({"aud": "https://other.example"}, "another authorization server"),
    "for two": ({"aud": ["http://127.0.0.1:8000", "https://other.example"]}, "another auth"),
    "for the resource": ({"aud": "http://127.0.0.1:8000/mcp/desk"}, "another auth"),
    "for nobody": ({"aud": None}, "lacks “aud”"),
    "of another issuer": ({"iss": "https://other.example/app.json"}, "another client"),
    "of another client": ({"sub": "https://other.example/app.json"}, "another client"),
    "expired": ({"exp": 1}, "has expired"),
    "an hour": ({"exp": int(time.time()) + 7200}, "valid for too long"),
    "endless": ({"exp": None}, "lacks “exp”"),
    "not yet": ({"nbf": 10**11}, "from the future"),
    "without an id": ({"jti": None}, "lacks “jti”"),
}
for _name, (_changed, _why) in CLAIMS.items():
    ATTACKS[_name] = (lambda said, new=_changed: signed(_without_none({**said, **new})), _why)


def _without_none(said: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in said.items() if value is not None}


@pytest.mark.long
@pytest.mark.parametrize("attack", ATTACKS)
def test_what_does_not_prove_the_client_gets_nothing(
    browser: Browser, settings: Any, attack: str
) -> None:
    settings.PUBLIC_URL = "http://127.0.0.1:8000"
    make, why = ATTACKS[attack]
    code = browser.allowed()["code"]
    sent = shown(make(claims_of(browser.app.client_id))) if make else {}

    answer = browser.redeem(code, **sent)

    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
    (reason,) = reasons()
    assert any(part in reason for part in why.split("|")), reason
    (entry,) = Entry.objects.filter(action="agent_sign_in.rejected")
    assert entry.details["client_id"] == browser.app.client_id[:100]
    assert not UsedAssertion.objects.exists()
    # Who cannot prove to be the client uses up none of its codes.
    assert browser.redeem(code, **proof(browser)).status_code == 200


@pytest.mark.long
def test_an_assertion_counts_once(browser: Browser) -> None:
    sent = proof(browser)
    given = browser.redeem(browser.allowed()["code"], **sent).json()

    answer = browser.refresh(given["refresh_token"], **sent)

    assert (answer.status_code, answer.json()["error"]) == (401, "invalid_client")
    assert reasons() == ["The assertion was used before."]
    assert browser.refresh(given["refresh_token"], **proof(browser)).status_code == 200


@pytest.mark.long
def test_another_client_that_signs_gets_none_of_its_tokens(
    browser: Browser, documents: DocumentHost, bob: User, here: str
) -> None:
    documents.answers["/evil-jwks.json"] = {"keys": [NEXT.public]}
    uri = f"{documents.url}/evil-jwks.json"
    evil = by_document(documents, bob, here, path="/evil.json", jwks_uri=uri)
    own = shown(signed(claims_of(evil.app.client_id), NEXT))
    assert evil.redeem(evil.allowed()["code"], **own).status_code == 200
    code = browser.allowed()["code"]

    as_itself = shown(signed(claims_of(evil.app.client_id), NEXT))
    assert evil.redeem(code, **as_itself).status_code == 400
    as_other = shown(signed(claims_of(browser.app.client_id), NEXT))
    assert browser.redeem(browser.allowed()["code"], **as_other).status_code == 401


@pytest.mark.long
def test_the_declared_algorithm_alone_is_taken(
    documents: DocumentHost, bob: User, here: str
) -> None:
    browser = by_document(documents, bob, here, token_endpoint_auth_signing_alg="PS256")
    documents.answers["/jwks.json"] = {"keys": [{**KEY.public, "alg": "PS256"}]}
    code, said = browser.allowed()["code"], claims_of(browser.app.client_id)

    assert browser.redeem(code, **shown(signed(said))).status_code == 401
    assert reasons() == ["The client declared another algorithm."]
    assert browser.redeem(code, **shown(signed(said, alg="PS256"))).status_code == 200


@pytest.mark.long
def test_a_short_key_proves_nothing(documents: DocumentHost, bob: User, here: str) -> None:
    short = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    public = RSAAlgorithm.to_jwk(short.public_key(), as_dict=True)
    documents.answers["/jwks.json"] = {"keys": [{**public, "kid": "short"}]}
    browser = by_document(documents, bob, here)
    code = browser.allowed()["code"]
    with pytest.warns(jwt.warnings.InsecureKeyLengthWarning):
        text = jwt.encode(claims_of(browser.app.client_id), short, "RS256", {"kid": "short"})

    assert browser.redeem(code, **shown(text)).status_code == 401
    assert reasons() == ["An RSA key needs 2048 bits at least."]


@pytest.mark.long
def test_a_new_key_is_found_at_once(browser: Browser, documents: DocumentHost) -> None:
    given = browser.redeem(browser.allowed()["code"], **proof(browser)).json()
    documents.answers["/jwks.json"] = {"keys": [NEXT.public]}
    sent = shown(signed(claims_of(browser.app.client_id), NEXT))

    assert browser.refresh(given["refresh_token"], **sent).status_code == 200
    # What it no longer publishes proves nothing.
    code = browser.allowed()["code"]
    assert browser.redeem(code, **proof(browser)).status_code == 401


@pytest.mark.long
def test_a_new_key_in_the_document_is_found_once_a_minute(
    documents: DocumentHost, bob: User, here: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    browser = by_document(documents, bob, here, jwks={"keys": [KEY.public]})
    given = browser.redeem(browser.allowed()["code"], **proof(browser)).json()
    documents.asked.clear()
    for _ in range(3):
        sent = shown(signed(claims_of(browser.app.client_id), NEXT))
        assert browser.refresh(given["refresh_token"], **sent).status_code == 401
    assert documents.asked == ["/app.json"]

    by_document(documents, bob, here, jwks={"keys": [NEXT.public]})
    monkeypatch.setattr(client_assertions, "RENEWALS", RequestRate(1, 60))
    sent = shown(signed(claims_of(browser.app.client_id), NEXT))
    assert browser.refresh(given["refresh_token"], **sent).status_code == 200


@pytest.mark.long
def test_strangers_make_us_ask_for_keys_a_few_times(
    browser: Browser, documents: DocumentHost
) -> None:
    code = browser.allowed()["code"]
    for _ in range(12):
        sent = shown(signed(claims_of(browser.app.client_id), NEXT))
        assert browser.redeem(code, **sent).status_code == 401

    assert documents.asked.count("/jwks.json") <= metadata.RENEWALS + 1
    assert documents.asked.count("/app.json") <= 2


@pytest.mark.long
def test_known_keys_outlive_their_host_and_unknown_ones_are_waited_for(
    browser: Browser, documents: DocumentHost
) -> None:
    code = browser.allowed()["code"]
    good, documents.answers["/jwks.json"] = documents.answers["/jwks.json"], (500, b"")
    answer = browser.redeem(code, **proof(browser))
    assert (answer.status_code, answer.json()["error"]) == (503, "temporarily_unavailable")
    metadata.forget()
    documents.answers["/jwks.json"] = good
    given = browser.redeem(code, **proof(browser)).json()

    documents.answers["/jwks.json"] = (500, b"")
    assert browser.refresh(given["refresh_token"], **proof(browser)).status_code == 200
    assert reasons() == []


@pytest.mark.long
@pytest.mark.parametrize("answer", [(302, b"/elsewhere"), (200, b"[]"), (200, b"x" * 70_000)])
def test_what_is_no_key_set_proves_nothing(
    browser: Browser, documents: DocumentHost, answer: tuple[int, bytes]
) -> None:
    code = browser.allowed()["code"]
    documents.answers["/jwks.json"] = answer

    assert browser.redeem(code, **proof(browser)).status_code == 503
    assert "/elsewhere" not in documents.asked


def test_nothing_is_asked_for_a_client_that_no_user_allowed(
    browser: Browser, documents: DocumentHost
) -> None:
    browser.page()
    documents.asked.clear()

    browser.redeem("guessed", **proof(browser))
    browser.redeem("guessed", client_id=None, **proof(browser))

    assert documents.asked == []


WRONG: dict[str, dict[str, Any]] = {
    "no keys": {"jwks_uri": None},
    "both": {"jwks": {"keys": [KEY.public]}, "jwks_uri": "https://app.example/jwks.json"},
    "a shared secret": {"jwks": {"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}},
    "a private key": {"jwks": {"keys": [{**KEY.public, "d": "AQAB"}]}},
    "no key": {"jwks": {"keys": []}},
    "no key set": {"jwks": [KEY.public]},
    "HMAC": {"token_endpoint_auth_signing_alg": "HS256"},
    "no signature": {"token_endpoint_auth_signing_alg": "none"},
    "keys inside": {"jwks_uri": "https://169.254.169.254/latest/meta-data"},
    "keys here": {"jwks_uri": "https://10.0.0.1/jwks.json"},
    "keys without TLS": {"jwks_uri": "http://app.example/jwks.json"},
    "a file": {"jwks_uri": "file:///etc/passwd"},
    "an address that is none": {"jwks_uri": 5},
    "a long address": {"jwks_uri": f"https://app.example/{'x' * 600}"},
    "an address with NUL": {"jwks_uri": "https://app.example/\0"},
    "a key whose name has NUL": {"jwks_uri": None, "jwks": {"keys": [{**KEY.public, "kid": "\0"}]}},
    "a key with more than its letters": {
        "jwks_uri": None,
        "jwks": {"keys": [{**KEY.public, "n": f"\0{KEY.public['n']}"}]},
    },
}


@pytest.mark.long
@pytest.mark.parametrize("wrong", WRONG)
def test_keys_that_cannot_be_used_make_no_client(
    documents: DocumentHost, bob: User, here: str, wrong: str
) -> None:
    browser = by_document(documents, bob, here, **WRONG[wrong])

    assert browser.page().status_code == 400
    assert not SignInClient.objects.exists()
    assert len(reasons()) == 1
    with pytest.raises(ClientRefused):
        clients.register({**SIGNS, "jwks_uri": "https://app.example/k", **WRONG[wrong]})


def test_keys_are_not_looked_for_in_networks_of_servers(
    documents: DocumentHost, bob: User, here: str, settings: Any
) -> None:
    """A document may name an address that is public only by its name."""
    browser = by_document(documents, bob, here)
    code = browser.allowed()["code"]
    settings.CLIENT_NETWORKS, settings.UPSTREAM_NETWORKS = [], ["127.0.0.0/8"]
    documents.asked.clear()

    assert browser.redeem(code, **proof(browser)).status_code == 503
    assert documents.asked == []


@pytest.mark.long
def test_a_client_that_offers_both_may_leave_it_out_but_not_show_a_wrong_one(
    documents: DocumentHost, bob: User, here: str
) -> None:
    both = {
        "token_endpoint_auth_method": "none",
        "token_endpoint_auth_methods_supported": ["none", "private_key_jwt"],
    }
    browser = by_document(documents, bob, here, **both)

    code = browser.allowed()["code"]
    assert browser.redeem(code, **shown(_none(claims_of("x")))).status_code == 401
    assert browser.redeem(code, client_assertion="x").status_code == 401
    assert browser.redeem(code, **proof(browser)).status_code == 200
    assert browser.redeem(browser.allowed()["code"]).status_code == 200


@pytest.mark.long
def test_a_client_without_keys_proves_nothing_with_an_assertion(
    documents: DocumentHost, bob: User, here: str
) -> None:
    browser = by_document(documents, bob, here, token_endpoint_auth_method="none")
    code = browser.allowed()["code"]

    assert browser.redeem(code, **proof(browser)).status_code == 401
    assert browser.redeem(code).status_code == 200


@pytest.mark.long
def test_a_client_that_begins_to_sign_is_asked_to_from_its_next_assertion_on(
    documents: DocumentHost, bob: User, here: str
) -> None:
    """Also one that was signed in before its keys were looked at."""
    browser = by_document(documents, bob, here, token_endpoint_auth_method="none")
    given = browser.sign_in()
    by_document(documents, bob, here)

    answer = browser.refresh(given["refresh_token"], **proof(browser))
    assert answer.status_code == 200, answer.content
    assert browser.refresh(answer.json()["refresh_token"]).status_code == 401


@pytest.mark.long
def test_a_device_signs_once_its_user_has_answered(
    documents: DocumentHost, bob: User, here: str
) -> None:
    browser = by_document(documents, bob, here, grant_types=[DEVICE_GRANT], redirect_uris=[])
    device = Device(bob, browser.app.client_id, here)
    said = device.start()
    assert device.error(said["device_code"]) == "authorization_pending"
    assert device.poll(said["device_code"], **proof(browser)).json()["error"] == "slow_down"
    assert documents.asked == []
    device.press(device.typed(said["user_code"]))
    DeviceCode.objects.update(polled_at=None)

    assert device.poll(said["device_code"]).status_code == 401
    assert device.poll(said["device_code"], **proof(browser)).status_code == 200


@pytest.mark.long
def test_a_device_of_a_client_that_signs_asks_with_its_signature(
    documents: DocumentHost, bob: User, here: str
) -> None:
    """From its user's first answer on: before that, nobody asks for its keys."""
    browser = by_document(documents, bob, here, grant_types=[DEVICE_GRANT], redirect_uris=[])
    device = Device(bob, browser.app.client_id, here)
    device.press(device.typed(device.start()["user_code"]))
    DeviceCode.objects.all().delete()

    unsigned = device.ask()
    again = proof(browser)
    right = device.ask(**again)

    assert (unsigned.status_code, unsigned.json()["error"]) == (401, "invalid_client")
    assert right.status_code == 200, right.content
    assert device.ask(**again).json()["error_description"] == "The assertion was used before."
    assert device.ask(**proof(browser, aud="https://other.example.com/")).status_code == 401
    alone = device.ask(client_id=None, **proof(browser))
    assert alone.status_code == 200, alone.content
    assert DeviceCode.objects.count() == 2
    assert len(reasons()) == 3
