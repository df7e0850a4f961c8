"""Issuers of programs' identities. Unlike identity providers they sign nobody in: all that is asked
of them is their keys."""

from __future__ import annotations

from dataclasses import dataclass

SPIFFE = "spiffe://"
# Of keys for JWT-SVIDs. Source: SPIFFE Trust Domain and Bundle, 4.2.2.
SPIFFE_USE = "jwt-svid"


@dataclass(frozen=True, slots=True)
class WorkloadIssuer:
    """`keys_url`: where its keys are, if it has no discovery document."""

    issuer: str
    keys_url: str = ""

    @property
    def slug(self) -> str:
        """One issuer whose keys are looked for in two places is two."""
        return f"workload {self.keys_url}"

    @property
    def key_use(self) -> str:
        return SPIFFE_USE if self.issuer.startswith(SPIFFE) else "sig"
