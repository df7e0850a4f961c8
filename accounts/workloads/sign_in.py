"""Access tokens for programs that proved which agent they are (RFC 6749, 4.4)."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.db import transaction

from accounts.agent_sign_in import access_tokens
from accounts.agent_sign_in.grants import IsOpen, why_unbound
from accounts.dpop import ProofFailed
from accounts.models import AgentToken, WorkloadIdentity
from accounts.oidc.metadata import ProviderAway, ProviderFailed
from accounts.workloads import assertions
from accounts.workloads.assertions import AssertionRefused
from audit.services import record
from core.english import gettext as _
from core.errors import CountersignError

# Without a refresh token: who has the key, or a token of the issuer, asks again.
LIFETIME_S = 900


class ResourceRefused(CountersignError):
    """The program proved who it is, and no token is given for this address. English, for the
    record."""


class SignedInWorkload(NamedTuple):
    access_token: str
    lifetime_s: int


def sign_in(
    assertion: str, *, client_id: str, resource: str, is_open: IsOpen, jkt: str = ""
) -> SignedInWorkload:
    """Raises AssertionRefused, ResourceRefused, ProofFailed, and ProviderAway where the issuer
    cannot be asked. `jkt`: of the key that the program proved to have."""
    workload = _workload(client_id or assertions.client_of(assertion))
    try:
        claims = assertions.check(workload, assertion)
    except ProviderAway:
        raise
    except ProviderFailed as error:
        raise AssertionRefused(str(error)) from error
    if not is_open(resource, workload.token.agent):
        raise ResourceRefused(_("The agent has no toolset at this address."))
    if why := why_unbound(workload.token.agent, jkt):
        raise ProofFailed(why)
    return _issue(workload, claims, resource, jkt)


def _workload(client_id: str) -> WorkloadIdentity:
    known = WorkloadIdentity.objects.select_related("token__agent__owner")
    valid = known.filter(token__in=AgentToken.objects.workloads(), token__client_id=client_id)
    found = valid.first() if client_id and "\0" not in client_id else None
    if found is None:
        raise AssertionRefused(_("No program is known here by this client id."))
    return found


@transaction.atomic
def _issue(
    workload: WorkloadIdentity, claims: dict[str, Any], resource: str, jkt: str
) -> SignedInWorkload:
    grant = workload.token
    if workload.kind == WorkloadIdentity.Kind.KEY:
        assertions.use_up(grant.client_id, claims)
    text = access_tokens.issue(grant.public_id, resource=resource, jkt=jkt, lifetime_s=LIFETIME_S)
    issued = access_tokens.read(text)
    assert issued is not None
    shown = claims.get("jti")
    record(
        "agent.workload_signed_in",
        actor=grant.agent.actor,
        agent=(grant.agent_id, grant.agent.name),
        token=str(grant),
        client_id=grant.client_id,
        issuer=grant.issuer,
        subject=claims["sub"],
        assertion=shown[:255] if isinstance(shown, str) else "",
        access_token=issued.token_id,
        resource=resource,
    )
    return SignedInWorkload(text, LIFETIME_S)
