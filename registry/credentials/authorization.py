"""The way to a server's authorization server and back: authorization code with PKCE.

Sources: OAuth 2.1; RFC 8707; RFC 9207. What was begun is kept in the browser's session under its
`state`, names the user who began it, and is good for one answer.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import time
from dataclasses import asdict, dataclass

from django.http import HttpRequest
from yarl import URL

from accounts.models import User
from accounts.oidc.authorization import ANSWER
from core.english import gettext as _
from core.errors import CountersignError
from core.http import is_repeated
from registry.credentials import clients, credential_store, token_endpoint
from registry.credentials.authorization_server import CHANGED, SignInFailed
from registry.models import CredentialOwner, Server, ServerClient, ServerCredential

PENDING = "at_servers"
VALID_S = 600
AT_ONCE = 5
_OTHER_ISSUER = _("Another authorization server answered than the one that was asked.")


class AnswerRejected(CountersignError):
    """The answer belongs to nothing that this user began in this browser."""


@dataclass(frozen=True, slots=True)
class PendingConnection:
    """A connection on its way, kept in the session under its state."""

    server_id: int
    # Whoever began it; and whose the credential will be, as CredentialOwner has it.
    by: int
    kind: str
    owner: int | None
    # The registration that it was begun with, whose secret and verifier go to no other issuer.
    client: int
    issuer: str
    client_id: str
    verifier: str
    scopes: list[str]
    begun: int


def begin(request: HttpRequest, server: Server, owner: CredentialOwner) -> str:
    """The URL at the authorization server. Raises SignInFailed."""
    assert isinstance(request.user, User)
    client = clients.prepared(server)
    before = ServerCredential.objects.of(server.pk, owner).first()
    more = [*before.scopes, *before.wanted_scopes] if before else []
    state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
    scopes = clients.wanted_scopes(client, more)
    pending = PendingConnection(
        server_id=server.pk,
        by=request.user.pk,
        kind=owner.kind,
        owner=owner.pk,
        client=client.pk,
        issuer=client.issuer,
        client_id=client.client_id,
        verifier=verifier,
        scopes=scopes,
        begun=int(time.time()),
    )
    kept = dict(request.session.get(PENDING, {}))
    kept[state] = asdict(pending)
    request.session[PENDING] = dict(list(kept.items())[-AT_ONCE:])
    endpoint = URL(str(client.metadata["authorization_endpoint"]))
    return str(endpoint.update_query(_query(client, pending, state)))


def finish(request: HttpRequest, server_id: int) -> ServerCredential:
    """Takes the answer at the redirect address of this server.

    Raises AnswerRejected and SignInFailed.
    """
    pending = _take(request)
    if pending.server_id != server_id:
        raise AnswerRejected(_OTHER_ISSUER)
    client = _client(pending)
    _check_issuer(request, client)
    if request.GET.get("error"):
        raise SignInFailed(_("The authorization server did not let you in."))
    code = request.GET.get("code", "")
    if not code:
        raise SignInFailed(_("The authorization server's answer is not what was asked for."))
    there = clients.redirect_uri(server_id)
    tokens = token_endpoint.redeem(client, code=code, verifier=pending.verifier, redirect_uri=there)
    assert isinstance(request.user, User)
    owner = CredentialOwner(pending.kind, pending.owner)
    return credential_store.connect_tokens(client, owner, tokens, pending.scopes, by=request.user)


def _query(client: ServerClient, pending: PendingConnection, state: str) -> dict[str, str]:
    challenge = hashlib.sha256(pending.verifier.encode()).digest()
    query = {
        "response_type": "code",
        "client_id": client.client_id,
        "redirect_uri": clients.redirect_uri(client.server_id),
        "scope": " ".join(pending.scopes),
        "state": state,
        "resource": client.resource,
        "code_challenge": base64.urlsafe_b64encode(challenge).rstrip(b"=").decode(),
        "code_challenge_method": "S256",
    }
    if "offline_access" in pending.scopes:
        # Source: OpenID Connect Core 1.0, 11: without it, no refresh token.
        query["prompt"] = "consent"
    return {name: value for name, value in query.items() if value}


def _take(request: HttpRequest) -> PendingConnection:
    if is_repeated(request.GET, ANSWER):
        raise AnswerRejected(_("The answer has a parameter twice. Begin again."))
    kept = dict(request.session.get(PENDING, {}))
    found = kept.pop(request.GET.get("state", ""), None)
    if found is None:
        raise AnswerRejected(_("This sign-in expired, or was used before. Begin again."))
    request.session[PENDING] = kept
    pending = PendingConnection(**found)
    if not 0 <= time.time() - pending.begun <= VALID_S:
        raise AnswerRejected(_("This sign-in expired, or was used before. Begin again."))
    is_own = pending.kind == "person"
    if pending.by != request.user.pk or (is_own and pending.owner != request.user.pk):
        raise AnswerRejected(_("This browser was signed in as another user. Begin again."))
    if not is_own and not request.user.has_perm("registry.change_server"):
        raise AnswerRejected(_("You may no longer connect the account of this installation."))
    return pending


def _client(pending: PendingConnection) -> ServerClient:
    """Only the client that it was begun with: another issuer gets neither code nor verifier."""
    same = {"issuer": pending.issuer, "client_id": pending.client_id, "pk": pending.client}
    client = ServerClient.objects.select_related("server").filter(**same).first()
    if client is None or not client.server.enabled:
        raise AnswerRejected(CHANGED)
    return client


def _check_issuer(request: HttpRequest, client: ServerClient) -> None:
    """Source: RFC 9207, 2.4."""
    said = request.GET.get("iss")
    promised = client.metadata.get("authorization_response_iss_parameter_supported")
    if said is None and promised is True:
        raise AnswerRejected(_("The answer does not name its authorization server."))
    if said is not None and said != client.issuer:
        raise AnswerRejected(_OTHER_ISSUER)
