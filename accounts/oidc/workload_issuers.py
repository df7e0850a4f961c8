"""Issuers of programs' identities. Unlike identity providers they sign nobody in: all that is asked
of them is their keys. So of clients that sign what they ask for."""

from __future__ import annotations

from dataclasses import dataclass

SPIFFE = "spiffe://"
# Of keys for JWT-SVIDs. Source: SPIFFE Trust Domain and Bundle, 4.2.2.
SPIFFE_USE = "jwt-svid"


@dataclass(frozen=True, slots=True)
class WorkloadIssuer:
    """`keys_url`: where its keys are, if it has no discovery document. `networks`: which of ours
    they may be in; None for those of servers."""

    issuer: str
    keys_url: str = ""
    networks: tuple[str, ...] | None = None

    @property
    def slug(self) -> str:
        """One issuer whose keys are looked for in two places is two; a client, which chooses the
        place as often as it likes, is one."""
        return f"workload {self.keys_url}" if self.networks is None else "client"

    @property
    def key_use(self) -> str:
        return SPIFFE_USE if self.issuer.startswith(SPIFFE) else "sig"
