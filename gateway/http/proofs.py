"""Access tokens that are bound to a client's key: each request brings a proof of it (RFC 9449, 7).

Requests with other tokens pay nothing for it.
"""

from __future__ import annotations

from typing import Any

from accounts import dpop
from accounts.dpop import ProofFailed
from accounts.tokens import Bearer
from accounts.used_proofs import USE_PROOF, line_of, used_before
from core.english import gettext as _
from core.journal import GroupCommit
from gateway.protocol.errors import CLOSE, RpcError
from gateway.protocol.headers import Headers

HEADER = b"dpop"
SCHEME = b"dpop"
# Of a scope: the key that was proved. A request may be looked at twice, and its proof counts once.
PROVED = "countersign.proved"


class ProofRejected(RpcError):
    """A token that is known, without the proof that it needs. `error`: as RFC 9449 has it."""

    def __init__(self, reason: str, error: str = "invalid_dpop_proof") -> None:
        super().__init__(401, reason, headers=(CLOSE,))
        self.error = error


def check_scheme(headers: Headers, bearer: Bearer) -> None:
    """Raises ProofRejected where a bound token is shown as a bearer token, or one that is bound to
    nothing by an agent that has to have a key."""
    if bearer.requires_dpop and not bearer.jkt:
        said = _("This agent's tokens must be bound to a key: sign in with DPoP.")
        raise ProofRejected(said, "invalid_token")
    is_dpop = headers.get(b"authorization").partition(b" ")[0].lower() == SCHEME
    if is_dpop and not bearer.jkt:
        said = _("The token is bound to no key: show it as a bearer token.")
        raise ProofRejected(said, "invalid_token")
    if bearer.jkt and not is_dpop:
        said = _("The token is bound to a key: show it with the scheme DPoP and a proof.")
        raise ProofRejected(said, "invalid_token")


async def prove(
    scope: Any, headers: Headers, bearer: Bearer, url: str, journal: GroupCommit
) -> None:
    """Raises ProofRejected; RecordUnavailable where it cannot be known whether it was used."""
    if scope.get(PROVED) == bearer.jkt:
        return
    try:
        if HEADER in headers.repeated:
            raise ProofFailed(_("Send one proof."))
        token = headers.get(b"authorization").partition(b" ")[2].strip().decode("latin-1")
        proof = dpop.check(headers.text(HEADER) or "", method=scope["method"], url=url, token=token)
        if proof.jkt != bearer.jkt:
            said = _("The proof is of another key than the token is bound to.")
            raise ProofRejected(said, "invalid_token")
        (row,) = await journal.write((USE_PROOF, line_of(proof)))
        if row is None:
            raise used_before()
    except ProofFailed as error:
        raise ProofRejected(str(error)) from error
    scope[PROVED] = bearer.jkt
