"""Agents' tokens: their format, and each process's in-memory cache of valid ones.

`csa_<8>_<43>_<6>` in base 62: public id, 256-bit secret, CRC-32 of everything before it. Prefix
and checksum let secret scanners recognise leaked tokens.
"""

from __future__ import annotations

import re
import secrets
import string
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from hmac import compare_digest
from typing import NamedTuple
from zlib import crc32

from django.conf import settings

from accounts.independence import Inviters, inviters_behind, unconfirmed_inviters
from accounts.models import Agent, AgentToken, AgentTokenQuerySet
from core import seal

PATTERN = r"csa_[0-9A-Za-z]{8}_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}"
_matches = re.compile(PATTERN).fullmatch
_PURPOSE = "agent token"
_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
# Compared with when the id is unknown, so that this takes as long as a wrong secret.
_NOBODY = bytes(32)


class Parts(NamedTuple):
    public_id: str
    digest: bytes


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


def make() -> str:
    body = f"csa_{_random(8)}_{_random(43)}"
    return f"{body}_{_checksum(body)}"


def well_formed(token: str) -> bool:
    body, _, checksum = token.rpartition("_")
    return _matches(token) is not None and _checksum(body) == checksum


def parse(token: str) -> Parts | None:
    """Splits a token. Cheap for garbage: only a well-formed token costs an HMAC."""
    if not well_formed(token):
        return None
    return Parts(token[4:12], seal.sign(_PURPOSE, token.encode()))


class TokenBook:
    """Every valid token, in memory. Stores HMACs, never tokens."""

    def __init__(self, lines: Iterable[tuple[Parts, Bearer]]) -> None:
        self._lines = {parts.public_id: (parts.digest, bearer) for parts, bearer in lines}
        self._held = frozenset(bearer for _, bearer in self._lines.values())

    def holds(self, bearer: Bearer) -> bool:
        """Whether a token that was valid before still is, for the same agent and owner."""
        return bearer in self._held and bearer.expires_at > time.time()

    def bearer(self, token: str) -> Bearer | None:
        shown = parse(token)
        if shown is None:
            return None
        digest, bearer = self._lines.get(shown.public_id, (_NOBODY, None))
        is_known = compare_digest(shown.digest, digest) or (
            # Issued before the installation's secret was replaced?
            bool(settings.OLD_SECRET_KEYS) and seal.is_signature(_PURPOSE, token.encode(), digest)
        )
        if not is_known or bearer is None:
            return None
        return bearer if bearer.expires_at > time.time() else None


def load() -> TokenBook:
    return TokenBook(_lines(AgentToken.objects.valid()))


def look_up(token: str) -> Bearer | None:
    """Authenticates a token by the database, for processes without the cache."""
    shown = parse(token)
    if shown is None:
        return None
    return TokenBook(_lines(AgentToken.objects.valid().filter(public_id=shown.public_id))).bearer(
        token
    )


def _lines(tokens: AgentTokenQuerySet) -> Iterable[tuple[Parts, Bearer]]:
    found = tokens.select_related("agent__owner").prefetch_related("agent__owner__groups")
    known = unconfirmed_inviters()
    return ((Parts(token.public_id, bytes(token.digest)), _bearer(token, known)) for token in found)


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
