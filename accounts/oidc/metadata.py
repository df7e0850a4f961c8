"""A provider's endpoints and keys, as it publishes them, kept in memory for some minutes.

Source: OpenID Connect Discovery 1.0, RFC 8414, RFC 7517.
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson
from jwt import PyJWK
from jwt.exceptions import PyJWTError

from accounts.oidc.providers import IdentityProvider
from accounts.oidc.workload_issuers import SPIFFE_USE, WorkloadIssuer
from core.database_pool import release_connection
from core.english import gettext as _
from core.errors import CountersignError
from core.guarded_http import LIMITS, RequestFailed, WebLimits, check_url, fetch
from core.outbound import AddressRefused

KEPT_S = 600.0
# Agents' tokens are checked with known keys for so long while the provider cannot be asked.
OUTLIVE_S = 4 * 3600.0
# A key that is not known is looked for at once, but so many times a minute: whoever may send us
# tokens must not make us ask the provider each time.
RENEWALS, RENEWALS_WITHIN_S = 5, 60.0
# Who asks for a key.
SIGN_IN, LOGOUT, AGENT = "sign_in", "logout", "agent"
# So long it is not asked again after it failed.
FAILED_S = 10.0
# Of a client, which no operator chose.
CLIENT_LIMITS = WebLimits(connect_s=3, idle_s=3, total_s=5, max_bytes=64 * 1024)
# Asymmetric ones alone: with others, whoever knows our secret or the public key could sign.
ALGORITHMS = {
    "RS256": "RSA",
    "RS384": "RSA",
    "RS512": "RSA",
    "PS256": "RSA",
    "PS384": "RSA",
    "PS512": "RSA",
    "ES256": "EC",
    "ES384": "EC",
    "ES512": "EC",
    "EdDSA": "OKP",
}


class ProviderFailed(CountersignError):
    """The provider cannot be asked, or answered something that cannot be used; says what."""


class ProviderAway(ProviderFailed):
    """The provider cannot be asked: whether the token is good is not known."""


@dataclass(slots=True)
class ProviderMetadata:
    """One provider's document and keys, as of `at`."""

    document: dict[str, Any]
    at: float
    keys: list[dict[str, Any]] = field(default_factory=list)
    keys_at: float = float("-inf")
    # Which of the keys are for tokens.
    key_use: str = "sig"
    # Which of our networks the keys may be in; None for those of servers.
    networks: Sequence[str] | None = None
    # By what asked: logout tokens and agents' tokens, which anybody can send, leave the others for
    # signing in.
    renewed: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def endpoint(self, name: str) -> str:
        """Empty where the provider has none."""
        value = self.document.get(name, "")
        return value if isinstance(value, str) else ""


# Whoever publishes keys.
Issuer = IdentityProvider | WorkloadIssuer
_kept: dict[tuple[str, str], ProviderMetadata] = {}
# By URL: when it failed, and what was said of it.
_failed: dict[str, tuple[float, str]] = {}
_lock = threading.Lock()
# One thread at a time asks a provider because of agents' tokens.
_asking: dict[tuple[str, str], threading.Lock] = {}


def metadata(provider: Issuer) -> ProviderMetadata:
    """Raises ProviderFailed."""
    place = (provider.slug, provider.issuer)
    with _lock:
        kept = _kept.get(place)
    if kept is not None and time.monotonic() - kept.at < KEPT_S:
        return kept
    read = ProviderMetadata(_document(provider), time.monotonic())
    if isinstance(provider, WorkloadIssuer):
        read.key_use, read.networks = provider.key_use, provider.networks
    if kept is not None and kept.endpoint("jwks_uri") == read.endpoint("jwks_uri"):
        read.keys, read.keys_at, read.renewed = kept.keys, kept.keys_at, kept.renewed
    with _lock:
        _kept[place] = read
    return read


def forget() -> None:
    """Everything that is kept: for tests, whose providers come and go."""
    with _lock:
        _kept.clear()
        _failed.clear()


def signing_key(provider: Issuer, header: dict[str, Any], *, asked_by: str = SIGN_IN) -> PyJWK:
    """The provider's key for a token with this header. Raises ProviderFailed."""
    _check_algorithm(header)
    if asked_by == AGENT:
        found = _key_for_agent(provider, header)
    else:
        known = _with_keys(provider)
        found = _matching(known.keys, header) or _new_key(known, header, asked_by)
    if found is None:
        raise ProviderFailed(_("The provider has no key with which this token can be checked."))
    return _key(found, header)


def key_among(keys: list[dict[str, Any]], header: dict[str, Any]) -> PyJWK:
    """The one of these keys for a token with this header. A key without a name may have any.
    Raises ProviderFailed."""
    _check_algorithm(header)
    kid = header.get("kid")
    named = [key for key in keys if kid is not None and key.get("kid") == kid]
    nameless = [key for key in keys if kid is None or "kid" not in key]
    found = _matching(named or nameless, {"alg": header["alg"]})
    if found is None:
        raise ProviderFailed(_("No key is known here with which this token can be checked."))
    return _key(found, header)


def _check_algorithm(header: dict[str, Any]) -> None:
    algorithm = header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise ProviderFailed(_("The token is signed in a way that is not taken here."))


def _key(found: dict[str, Any], header: dict[str, Any]) -> PyJWK:
    try:
        return PyJWK(found, algorithm=header["alg"])
    except PyJWTError as error:
        raise ProviderFailed(_("The provider's key cannot be read.")) from error


def _with_keys(provider: Issuer) -> ProviderMetadata:
    known = metadata(provider)
    if time.monotonic() - known.keys_at >= KEPT_S:
        _read_keys(known)
    return known


def _new_key(
    known: ProviderMetadata, header: dict[str, Any], asked_by: str
) -> dict[str, Any] | None:
    if not _may_renew(known.renewed[asked_by]):
        return None
    _read_keys(known)
    return _matching(known.keys, header)


def _key_for_agent(provider: Issuer, header: dict[str, Any]) -> dict[str, Any] | None:
    """Keys that are known do not wait for a provider that hangs, nor for whom it keeps waiting."""
    place = (provider.slug, provider.issuer)
    with _lock:
        kept, asking = _kept.get(place), _asking.setdefault(place, threading.Lock())
    age = time.monotonic() - kept.keys_at if kept else float("inf")
    found = _matching(kept.keys, header) if kept and age < OUTLIVE_S else None
    if found is not None and age < KEPT_S:
        return found
    # Without any keys whoever comes waits for the one who asks.
    if not asking.acquire(blocking=age == float("inf")):
        if found is not None:
            return found
        raise ProviderAway(_("The identity provider is being asked for its keys already."))
    try:
        known = _with_keys(provider)
        return _matching(known.keys, header) or _new_key(known, header, AGENT)
    except ProviderAway:
        if found is None:
            raise
        return found
    finally:
        asking.release()


def read_json(body: bytes) -> dict[str, Any]:
    """Raises ProviderFailed."""
    try:
        read = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ProviderFailed(_("The provider's answer is not JSON.")) from error
    if not isinstance(read, dict):
        raise ProviderFailed(_("The provider's answer is not what was asked for."))
    return read


@contextmanager
def _remembering(url: str) -> Iterator[None]:
    """Remembers a failure: junk that others send must not make us ask that provider each time."""
    with _lock:
        at, said = _failed.get(url, (float("-inf"), ""))
    if time.monotonic() - at < FAILED_S:
        raise ProviderAway(said)
    try:
        yield
    except ProviderFailed as error:
        with _lock:
            _failed[url] = (time.monotonic(), str(error))
        raise ProviderAway(str(error)) from error


def _document(provider: Issuer) -> dict[str, Any]:
    if isinstance(provider, WorkloadIssuer) and provider.keys_url:
        return {"jwks_uri": provider.keys_url}
    url = f"{provider.issuer.rstrip('/')}/.well-known/openid-configuration"
    with _remembering(url):
        return _read_document(provider, url)


def _read_document(provider: Issuer, url: str) -> dict[str, Any]:
    document = _get(url)
    if document.get("issuer") != provider.issuer:
        raise ProviderFailed(_("The provider's document is of another issuer."))
    if isinstance(provider, WorkloadIssuer):
        _check_endpoint("jwks_uri", document.get("jwks_uri"))
        return document
    for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
        _check_endpoint(name, document.get(name))
    for name in ("userinfo_endpoint", "end_session_endpoint"):
        if document.get(name):
            _check_endpoint(name, document[name])
    methods = document.get("code_challenge_methods_supported")
    if methods is not None and "S256" not in methods:
        raise ProviderFailed(_("The provider offers no PKCE with S256."))
    return document


def _check_endpoint(name: str, url: Any) -> None:
    if not isinstance(url, str):
        raise ProviderFailed(_("The provider's document has no “%s”.") % name)
    try:
        check_url(url)
    except AddressRefused as error:
        raise ProviderFailed(f"{name}: {error}") from error


def _get(url: str, networks: Sequence[str] | None = None) -> dict[str, Any]:
    limits = LIMITS if networks is None else CLIENT_LIMITS
    release_connection()
    try:
        reply = fetch("GET", url, {}, networks=networks, limits=limits)
    except RequestFailed as error:
        raise ProviderFailed(str(error)) from error
    if reply.status != 200:
        raise ProviderFailed(_("The provider answered with status %d.") % reply.status)
    return read_json(reply.body)


def _read_keys(known: ProviderMetadata) -> None:
    url = known.endpoint("jwks_uri")
    with _remembering(url):
        keys = _get(url, known.networks).get("keys")
        if not isinstance(keys, list):
            raise ProviderFailed(_("The provider's keys cannot be read."))
    known.keys = [key for key in keys if isinstance(key, dict) and _is_for(key, known.key_use)]
    known.keys_at = time.monotonic()


def _is_for(key: dict[str, Any], use: str) -> bool:
    """Whether it is for tokens: others are for encryption or, of SPIFFE, for certificates."""
    return bool(key.get("use", "sig") == use)


def _may_renew(renewed: list[float]) -> bool:
    now = time.monotonic()
    renewed[:] = [at for at in renewed if now - at < RENEWALS_WITHIN_S]
    if len(renewed) >= RENEWALS:
        return False
    renewed.append(now)
    return True


def _matching(keys: list[dict[str, Any]], header: dict[str, Any]) -> dict[str, Any] | None:
    fitting = [key for key in keys if _fits(key, header)]
    if header.get("kid") is None:
        # Without a name, only where there is no choice.
        return fitting[0] if len(fitting) == 1 else None
    return next((key for key in fitting if key.get("kid") == header["kid"]), None)


def _fits(key: dict[str, Any], header: dict[str, Any]) -> bool:
    return (
        key.get("kty") == ALGORITHMS[header["alg"]]
        and key.get("use", "sig") in ("sig", SPIFFE_USE)
        and key.get("alg", header["alg"]) == header["alg"]
    )
