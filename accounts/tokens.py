"""The format of tokens, and each process's in-memory cache of agents' valid ones.

`csa_<8>_<43>_<6>` in base 62: public id, 256-bit secret, CRC-32 of everything before it. Prefix
and checksum let secret scanners recognise leaked tokens. Service accounts' begin with `css_`,
identity providers' for SCIM with `csp_`. Access tokens of agents that users sign in have a form of
their own (accounts/agent_sign_in/access_tokens.py).
"""

from __future__ import annotations

import re
import secrets
import string
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hmac import compare_digest
from typing import Any, NamedTuple
from zlib import crc32

from django.conf import settings

from accounts.agent_sign_in import access_tokens
from accounts.independence import Inviters, inviters_behind, unconfirmed_inviters
from accounts.models import Agent, AgentToken, AgentTokenQuerySet, Identity, SignInClient
from accounts.teams import team_of
from core import seal

AGENT, SERVICE, SCIM = "csa", "css", "csp"
_matches = re.compile(r"(cs[asp])_[0-9A-Za-z]{8}_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}").fullmatch
# One kind is never taken for the other: the HMAC differs too.
_PURPOSES = {AGENT: "agent token", SERVICE: "service token", SCIM: "scim token"}
_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
UNKNOWN_GROUPS = "unknown"
# Compared with when the id is unknown, so that this takes as long as a wrong secret.
NOBODY = bytes(32)


class Parts(NamedTuple):
    public_id: str
    digest: bytes


@dataclass(frozen=True, slots=True)
class SignedIn:
    """The content of an access token, a provider's or ours: for whom, by which client, for what."""

    issuer: str
    client_id: str
    subject: str
    token_id: str
    # The one address where it opens something; a workload's tokens name theirs themselves.
    resource: str
    # What the client calls itself: it may change, and changes nothing.
    client_name: str = field(default="", compare=False)
    # Those that a provider's token names, by their names in rules; None: not known.
    groups: tuple[str, ...] | None = ()
    # Whether an identity provider signed the token, and not we.
    is_of_provider: bool = False

    def details(self) -> dict[str, Any]:
        """Details of the entry of a call."""
        said: dict[str, Any] = {
            "issuer": self.issuer,
            "client_id": self.client_id,
            "subject": self.subject,
            "token": self.token_id,
        }
        if self.client_name:
            said["client"] = self.client_name
        if self.is_of_provider:
            said["groups"] = UNKNOWN_GROUPS if self.groups is None else list(self.groups)
        return said


def recorded_groups(signed_in: Mapping[str, Any] | None) -> tuple[str, ...] | None:
    """SignedIn.groups of a provider's token, by its details; None also where these are gone, or
    older than groups in them."""
    groups = (signed_in or {}).get("groups", UNKNOWN_GROUPS)
    return None if groups == UNKNOWN_GROUPS else tuple(groups)


@dataclass(frozen=True, slots=True)
class Bearer:
    """An authenticated agent and the user who owns it."""

    token_id: int
    agent_id: int
    agent_name: str
    person_id: int
    person_name: str
    groups: frozenset[str]
    expires_at: float
    # Who has a part in what this token asks for: the agent's owner and creator, the token's issuer;
    # and who may still be behind their accounts (accounts/independence.py).
    parties: frozenset[int] = frozenset()
    inviters: frozenset[int] = frozenset()
    # How long its requests wait for people, where an operator said so of this agent. No part of who
    # it is: a change ends nothing that goes on.
    hold_s: int | None = field(default=None, compare=False)
    # Whether the agent's tokens open something only with proof of a key; likewise no part of it.
    requires_dpop: bool = field(default=False, compare=False)
    # The thumbprint of the key that this token is bound to (accounts/dpop.py).
    jkt: str = ""
    # The team that the agent acts for (accounts/teams.py).
    team: tuple[int, str] = (0, "")
    # The toolsets that this token opens; empty: all of the agent's. And whether it calls read-only
    # tools alone.
    toolsets: frozenset[str] = frozenset()
    reads_only: bool = False
    # Of a signed token: what it says, and the valid credential that it stands on.
    signed_in: SignedIn | None = None
    grant: Bearer | None = None

    @property
    def is_limited(self) -> bool:
        return self.reads_only or bool(self.toolsets)

    def opens(self, toolset: str) -> bool:
        return not self.toolsets or toolset in self.toolsets


class AgentClient(NamedTuple):
    """An agent that a client at an identity provider is, and the subjects for whom it is."""

    bearer: Bearer
    subjects: frozenset[str]


def make(prefix: str = AGENT) -> str:
    body = f"{prefix}_{_random(8)}_{_random(43)}"
    return f"{body}_{_checksum(body)}"


def well_formed(token: str, prefix: str = AGENT) -> bool:
    body, _, checksum = token.rpartition("_")
    found = _matches(token)
    return found is not None and found[1] == prefix and _checksum(body) == checksum


def parse(token: str, prefix: str = AGENT) -> Parts | None:
    """Splits a token. Cheap for garbage: only a well-formed token costs an HMAC."""
    if not well_formed(token, prefix):
        return None
    return Parts(token[4:12], seal.sign(_PURPOSES[prefix], token.encode()))


def is_token(token: str, shown: Parts, digest: bytes, prefix: str = AGENT) -> bool:
    """Whether this is the token whose HMAC is kept."""
    return compare_digest(shown.digest, digest) or (
        # Issued before the installation's secret was replaced?
        bool(settings.OLD_SECRET_KEYS)
        and seal.is_signature(_PURPOSES[prefix], token.encode(), digest)
    )


class TokenBook:
    """Every valid token, in memory. Stores HMACs, never tokens."""

    def __init__(
        self,
        lines: Iterable[tuple[Parts, Bearer]],
        clients: Iterable[tuple[tuple[str, str], AgentClient]] = (),
        grants: Mapping[str, Bearer] | None = None,
    ) -> None:
        self._lines = {parts.public_id: (parts.digest, bearer) for parts, bearer in lines}
        # By issuer and client id: an agent for each user who shares the client.
        self._clients: dict[tuple[str, str], list[AgentClient]] = defaultdict(list)
        for named, client in clients:
            self._clients[named].append(client)
        # By public id, of agents that users signed in here, and of workloads; each with
        # `signed_in`.
        self._grants = dict(grants or {})
        # Agents whose programs get tokens here without a user.
        self.workload_agents = frozenset(
            one.agent_id
            for one in self._grants.values()
            if one.signed_in and not one.signed_in.resource
        )
        self._held = frozenset(
            [
                *(bearer for _, bearer in self._lines.values()),
                *(client.bearer for shared in self._clients.values() for client in shared),
                *self._grants.values(),
            ]
        )

    def holds(self, bearer: Bearer) -> bool:
        """Whether a token that was valid before still is, for the same agent and owner."""
        grant, signed_in = bearer.grant or bearer, bearer.signed_in
        # A sign-in here has its client and user in the grant itself.
        if signed_in and signed_in.is_of_provider:
            named = signed_in.issuer, signed_in.client_id
            if self.agent_of(*named, signed_in.subject) != grant:
                return False
        return grant in self._held and bearer.expires_at > time.time()

    def has_client(self, issuer: str, client_id: str) -> bool:
        """Whether this client at an identity provider is an agent, or several."""
        return (issuer, client_id) in self._clients

    def agent_of(self, issuer: str, client_id: str, subject: str) -> Bearer | None:
        """The agent that a client is for this subject: an account of the agent's owner, or the
        client itself. None also where several agents fit: their calls are not mixed."""
        shared = self._clients.get((issuer, client_id), [])
        fitting = [client.bearer for client in shared if subject in client.subjects]
        if len(fitting) != 1 or (subject == client_id and len(shared) > 1):
            return None
        return fitting[0]

    def bearer(self, token: str) -> Bearer | None:
        if token.startswith(access_tokens.PREFIX):
            return self._signed_in_here(token)
        shown = parse(token)
        if shown is None:
            return None
        digest, bearer = self._lines.get(shown.public_id, (NOBODY, None))
        if not is_token(token, shown, digest) or bearer is None:
            return None
        return bearer if bearer.expires_at > time.time() else None

    def _signed_in_here(self, token: str) -> Bearer | None:
        shown = access_tokens.read(token)
        grant = self._grants.get(shown.grant) if shown else None
        if shown is None or grant is None or grant.signed_in is None:
            return None
        ends = min(shown.expires_at, grant.expires_at)
        if ends <= time.time() or bool(shown.resource) == bool(grant.signed_in.resource):
            return None
        resource = shown.resource or grant.signed_in.resource
        signed_in = replace(grant.signed_in, token_id=shown.token_id, resource=resource)
        return replace(grant, grant=grant, signed_in=signed_in, expires_at=ends, jkt=shown.jkt)


def load() -> TokenBook:
    known = unconfirmed_inviters()
    return TokenBook(_lines(AgentToken.objects.valid(), known), _clients(known), _grants(known))


def look_up(token: str) -> Bearer | None:
    """Authenticates a token by the database, for processes without the cache."""
    shown = parse(token)
    if shown is None:
        return None
    found = AgentToken.objects.valid().filter(public_id=shown.public_id)
    return TokenBook(_lines(found, unconfirmed_inviters())).bearer(token)


def _lines(tokens: AgentTokenQuerySet, known: Inviters) -> Iterable[tuple[Parts, Bearer]]:
    found = _with_owners(tokens.filter(issuer=""))
    return ((Parts(token.public_id, bytes(token.digest)), _bearer(token, known)) for token in found)


def _clients(known: Inviters) -> Iterator[tuple[tuple[str, str], AgentClient]]:
    tokens = list(_with_owners(AgentToken.objects.valid().at_providers()))
    connected = _connected({token.issuer for token in tokens})
    for token in tokens:
        subjects = _subjects(token, connected)
        yield (token.issuer, token.client_id), AgentClient(_bearer(token, known), subjects)


def _grants(known: Inviters) -> dict[str, Bearer]:
    workloads = AgentToken.objects.workloads().select_related("workload")
    tokens = [*_with_owners(AgentToken.objects.sign_ins()), *_with_owners(workloads)]
    ids = {token.client_id for token in tokens if token.resource}
    rows = SignInClient.objects.filter(client_id__in=ids) if ids else SignInClient.objects.none()
    names = dict(rows.values_list("client_id", "name"))
    return {
        token.public_id: replace(_bearer(token, known), signed_in=_signed_in(token, names))
        for token in tokens
    }


def _signed_in(token: AgentToken, names: Mapping[str, str]) -> SignedIn:
    of_workload = "" if token.resource else token.workload.subject or token.client_id
    return SignedIn(
        issuer=token.issuer,
        client_id=token.client_id,
        subject=of_workload or token.agent.owner.username,
        token_id=token.public_id,
        resource=token.resource,
        client_name=names.get(token.client_id, "") if token.resource else "",
    )


def _connected(issuers: set[str]) -> list[Identity]:
    return list(Identity.objects.filter(issuer__in=issuers)) if issuers else []


def _subjects(token: AgentToken, connected: list[Identity]) -> frozenset[str]:
    """The owner's accounts there, and the client's own name, unless a person ever had it."""
    there = [one for one in connected if one.issuer == token.issuer]
    owned = {
        one.subject
        for one in there
        if one.person_id == token.agent.owner_id and one.disconnected_at is None
    }
    return frozenset(owned | ({token.client_id} - {one.subject for one in there}))


def _with_owners(tokens: AgentTokenQuerySet) -> AgentTokenQuerySet:
    known = tokens.select_related("agent__owner", "agent__team")
    return known.prefetch_related("agent__owner__groups")


def _bearer(token: AgentToken, known: Inviters) -> Bearer:
    owner = token.agent.owner
    party = parties(token.agent, token.created_by_id)
    return Bearer(
        token_id=token.pk,
        agent_id=token.agent_id,
        agent_name=token.agent.name,
        person_id=owner.pk,
        person_name=owner.username,
        groups=frozenset(group.name for group in owner.groups.all()),
        expires_at=token.expires_at.timestamp(),
        parties=party,
        inviters=frozenset(inviters_behind(party, known)),
        hold_s=token.agent.hold_s,
        requires_dpop=token.agent.requires_dpop,
        team=team_of(token.agent),
        toolsets=frozenset(token.toolsets),
        reads_only=token.reads_only,
    )


def parties(agent: Agent, issuer: int | None = None) -> frozenset[int]:
    owner = agent.owner_id
    return frozenset({owner, agent.created_by_id or owner, issuer or owner})


def _random(length: int) -> str:
    return "".join(secrets.choice(_ALPHABET) for _ in range(length))


def _checksum(body: str) -> str:
    value = crc32(body.encode())
    digits = []
    for _ in range(6):
        value, digit = divmod(value, 62)
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))
