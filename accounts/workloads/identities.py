"""Binding agents to programs that prove who they are. Each change writes its entry."""

from __future__ import annotations

import re
import secrets
from collections.abc import Mapping
from typing import Any

from django.db import transaction

from accounts.actors import AccountRefused
from accounts.models import Agent, AgentToken, User, WorkloadIdentity
from accounts.oidc.workload_issuers import SPIFFE
from accounts.services import NO_END
from accounts.workloads.public_keys import KeysRefused, read_keys, thumbprint
from audit.services import record
from core.english import gettext as _
from core.guarded_http import check_url
from core.outbound import AddressRefused

TEXT_MAX, CLAIMS_MAX = 500, 10
# Source: SPIFFE ID, 2.1.
_TRUST_DOMAIN = re.compile(r"spiffe://[a-z0-9._-]{1,255}", re.ASCII)
_CLAIM = re.compile(r"[\w.:/-]{1,100}", re.ASCII)
# Checked elsewhere, or of no meaning for who somebody is.
_NOT_CHOSEN = frozenset({"iss", "sub", "aud", "exp", "nbf", "iat", "jti"})


@transaction.atomic
def bind_key(agent: Agent, *, issuer: str, keys: str, by: User) -> WorkloadIdentity:
    """A program that signs assertions for us, `issuer`, with a key of its own. Raises
    AccountRefused."""
    return _bind(agent, issuer, by, kind=WorkloadIdentity.Kind.KEY, keys=_keys(keys))


@transaction.atomic
def bind_issuer(
    agent: Agent,
    *,
    issuer: str,
    audience: str,
    subject: str = "",
    claims: Mapping[str, str] | None = None,
    keys: str = "",
    keys_url: str = "",
    by: User,
) -> WorkloadIdentity:
    """A program whose tokens an issuer signs. `keys`: in place of those that the issuer publishes;
    `keys_url`: where it publishes them, if not by a discovery document. Raises AccountRefused."""
    issuer, audience, subject = (one.strip() for one in (issuer, audience, subject))
    known = {name.strip(): value.strip() for name, value in (claims or {}).items()}
    _check_issuer(issuer, has_keys=bool(keys.strip() or keys_url))
    _check_address(keys_url)
    _check_texts(audience, subject, known)
    if issuer.startswith(SPIFFE) and subject and not subject.startswith(f"{issuer}/"):
        raise AccountRefused(_("The subject is of another trust domain."))
    return _bind(
        agent,
        issuer,
        by,
        kind=WorkloadIdentity.Kind.ISSUER,
        keys=_keys(keys) if keys.strip() else [],
        keys_url=keys_url,
        audience=audience,
        subject=subject,
        claims=known,
    )


def thumbprints(workload: WorkloadIdentity) -> list[str]:
    return [thumbprint(key) for key in workload.keys]


def _bind(agent: Agent, issuer: str, by: User, **given: Any) -> WorkloadIdentity:
    token = AgentToken.objects.create(
        agent=agent,
        public_id=secrets.token_hex(4),
        # Of no token: nobody has its secret.
        digest=secrets.token_bytes(32),
        created_by=by,
        expires_at=NO_END,
        issuer=issuer,
        client_id=f"csw_{secrets.token_urlsafe(18)}",
    )
    made = WorkloadIdentity.objects.create(token=token, **given)
    record(
        "agent.workload_bound",
        actor=by.actor,
        agent=(agent.pk, agent.name),
        token=str(token),
        kind=made.kind,
        issuer=issuer,
        client_id=token.client_id,
        audience=made.audience,
        subject=made.subject,
        claims=made.claims,
        keys=thumbprints(made),
        keys_url=made.keys_url,
    )
    return made


def _keys(text: str) -> list[dict[str, Any]]:
    try:
        return read_keys(text)
    except KeysRefused as error:
        raise AccountRefused(str(error)) from error


def _check_issuer(issuer: str, *, has_keys: bool) -> None:
    if not issuer.startswith(SPIFFE):
        _check_address(issuer or "-")
    elif not _TRUST_DOMAIN.fullmatch(issuer):
        raise AccountRefused(_("A trust domain is spiffe:// and a name, without a path."))
    elif not has_keys:
        raise AccountRefused(_("A trust domain has no discovery document: give its keys."))


def _check_address(url: str) -> None:
    if len(url) > TEXT_MAX:
        raise AccountRefused(_("The address is too long."))
    try:
        if url:
            check_url(url)
    except AddressRefused as error:
        raise AccountRefused(str(error)) from error


def _check_texts(audience: str, subject: str, claims: Mapping[str, str]) -> None:
    if not 0 < len(audience) <= TEXT_MAX:
        raise AccountRefused(_("Give the audience that the issuer's tokens have for Countersign."))
    if not subject and not claims:
        raise AccountRefused(_("Give a subject or a claim: an issuer knows many programs."))
    if len(subject) > TEXT_MAX or "\0" in f"{subject}{audience}":
        raise AccountRefused(_("The subject is too long."))
    if len(claims) > CLAIMS_MAX:
        raise AccountRefused(_("At most %d claims can be compared.") % CLAIMS_MAX)
    for name, value in claims.items():
        if not _CLAIM.fullmatch(name) or name in _NOT_CHOSEN or not 0 < len(value) <= TEXT_MAX:
            raise AccountRefused(_("“%s” is no claim that can be compared.") % name)
