"""A user's own act behind one statement, at the identity provider where their session began.

They sign in there anew, and the ID token repeats the SHA-256 of the statement as its nonce: the
provider's signature is of this statement. Coming back decides nothing; the session keeps what was
confirmed until its user presses the button. Source: OpenID Connect Core 1.0, 3.1.2.1.
"""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import jwt
import orjson
from django.contrib.sessions.backends.base import SessionBase
from django.db import transaction
from django.http import HttpRequest

from accounts import sessions, stepup
from accounts.models import Identity, Proof, User
from accounts.oidc import authorization
from accounts.oidc.authorization import PendingAuthorization, ProviderAnswer
from accounts.oidc.metadata import signing_key
from accounts.oidc.providers import IdentityProvider, UnknownProvider, provider
from accounts.sessions import ProviderSession
from accounts.stepup import VALID_S, NotProven, Ticket
from audit.services import record
from core.english import gettext as _

CONFIRMED = "confirmed_at_provider"
_NOT_THERE = _("You did not sign in at a provider where this can be confirmed.")
_SOMEBODY_ELSE = _("A different account signed in at the provider. Nothing is confirmed.")


@dataclass(frozen=True, slots=True)
class StepUpPlace:
    """Where this session's user may confirm, and who they are there."""

    provider: IdentityProvider
    identity: Identity

    def whole(self, statement: str) -> str:
        """The statement with who confirms it."""
        return f"{statement}issuer: {self.identity.issuer}\nsubject: {self.identity.subject}\n"


@dataclass(frozen=True, slots=True)
class ProviderConfirmation:
    """A statement that was confirmed at a provider, kept in the session until it is used."""

    statement: str
    id_token: str
    key: dict[str, Any]
    at: float

    @property
    def is_fresh(self) -> bool:
        return 0 <= time.time() - self.at <= VALID_S

    @property
    def ticket(self) -> Ticket:
        lines = dict(line.partition(": ")[::2] for line in self.statement.splitlines())
        return Ticket(lines["nonce"], int(lines["at"]))


def place(session: SessionBase, person: User) -> StepUpPlace | None:
    """None where the session did not begin at a provider, or the provider's settings allow no
    step-up."""
    kept = session.get(sessions.AT_PROVIDER)
    if not kept:
        return None
    at = ProviderSession(**kept)
    try:
        known = provider(at.provider)
    except UnknownProvider:
        return None
    connected = person.identities.connected().filter(pk=at.identity, issuer=known.issuer).first()
    return StepUpPlace(known, connected) if connected and known.step_up_acr_values else None


def begin(request: HttpRequest, person: User, statement: str, *, next_page: str) -> str:
    """The URL at the provider to which the browser goes. Raises NotProven and ProviderFailed."""
    here = _place(request, person)
    said = here.whole(statement)
    return authorization.begin(request, here.provider, next_page=next_page, statement=said)


def finish(request: HttpRequest, at: IdentityProvider, pending: PendingAuthorization) -> None:
    """Keeps what was confirmed, for the session that began it. Raises NotProven and
    ProviderFailed."""
    person = request.user
    if not isinstance(person, User):
        raise NotProven(_("Your session ended. Sign in, then begin again."))
    here = _place(request, person)
    answer = authorization.finish(request, at, pending)
    is_theirs = (at.issuer, answer.claims["sub"]) == (here.identity.issuer, here.identity.subject)
    if not is_theirs or not pending.statement.endswith(here.whole("")):
        raise NotProven(_SOMEBODY_ELSE)
    _keep(request, person, here, answer)


def confirmation(session: SessionBase) -> ProviderConfirmation | None:
    """The last confirmation, if it is fresh."""
    kept = session.get(CONFIRMED)
    read = ProviderConfirmation(**kept) if kept else None
    return read if read and read.is_fresh else None


def prove(request: HttpRequest, person: User, statement: str) -> Proof:
    """Keeps the proof that `statement` was confirmed at the provider. Raises NotProven."""
    here, kept = _place(request, person), confirmation(request.session)
    # Taken out first: it is good once.
    request.session.pop(CONFIRMED, None)
    if kept is None or kept.statement != here.whole(statement):
        raise NotProven(_("What was confirmed is not this decision. Press the button again."))
    evidence = orjson.dumps({"id_token": kept.id_token, "key": kept.key}).decode()
    return stepup.keep_provider_proof(person, kept.statement, evidence)


def _place(request: HttpRequest, person: User) -> StepUpPlace:
    found = place(request.session, person)
    if found is None:
        raise NotProven(_NOT_THERE)
    return found


@transaction.atomic
def _keep(request: HttpRequest, person: User, here: StepUpPlace, answer: ProviderAnswer) -> None:
    key = _public_key(here.provider, answer.id_token)
    statement = answer.pending.statement
    kept = ProviderConfirmation(statement, answer.id_token, key, time.time())
    request.session[CONFIRMED] = asdict(kept)
    _note_session(request, person, here, answer)
    record(
        "step_up.confirmed",
        actor=person.actor,
        reason=_("At the identity provider %s.") % here.provider.label,
        provider=here.provider.label,
        issuer=here.identity.issuer,
        subject=here.identity.subject,
        strength=answer.claims[here.provider.acr_claim],
        signed_in_at=answer.claims["auth_time"],
        proof=authorization.digest(statement),
        key=stepup.key_digest(key),
    )


def _note_session(
    request: HttpRequest, person: User, here: StepUpPlace, answer: ProviderAnswer
) -> None:
    """The provider may have begun another session of its own, which is the one that it ends."""
    sid = answer.claims.get("sid")
    text = sid[:255] if isinstance(sid, str) else ""
    at = ProviderSession(here.provider.slug, here.identity.pk, text, answer.id_token)
    request.session[sessions.AT_PROVIDER] = asdict(at)
    sessions.note_provider_session(request, person, at)


def _public_key(at: IdentityProvider, id_token: str) -> dict[str, Any]:
    """The key that the token was checked with, as the proof keeps it."""
    found = signing_key(at, jwt.get_unverified_header(id_token))
    public: dict[str, Any] = found.Algorithm.to_jwk(found.key, as_dict=True)
    return public
