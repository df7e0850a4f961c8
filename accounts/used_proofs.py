"""Proofs of clients' keys that were used: each counts once, in all processes together."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db import connection
from django.utils import timezone

from accounts.dpop import KeyProof, ProofFailed
from accounts.models import UsedProof
from core.english import gettext as _
from core.journal import Statement

# A proof is kept after its end: the clock of the host that removes it may be ahead of a gateway's.
CLOCKS_DIFFER = timedelta(minutes=10)
# A line's id is the proof's, so that two with one proof never share a statement.
USE_PROOF = Statement(
    "use_proof",
    """
INSERT INTO accounts_usedproof AS p (digest, request, expires_at)
-- In one order, whoever comes: two processes never wait for each other.
SELECT id, request, expires_at FROM json_to_recordset(%s::json) AS r(
    id text, request uuid, expires_at timestamptz) ORDER BY id
-- A line may come twice when the first commit's fate was unknown.
ON CONFLICT (digest) DO UPDATE SET request = EXCLUDED.request WHERE p.request = EXCLUDED.request
RETURNING digest
""",
    order=0,
)


def line_of(proof: KeyProof) -> dict[str, Any]:
    until = datetime.fromtimestamp(proof.expires_at, UTC)
    return {"id": proof.digest, "request": str(uuid.uuid4()), "expires_at": until.isoformat()}


def used_before() -> ProofFailed:
    return ProofFailed(_("The proof was used before."))


def use_up(proof: KeyProof) -> None:
    """Raises ProofFailed for one that was shown before."""
    with connection.cursor() as cursor:
        cursor.execute(USE_PROOF.sql, USE_PROOF.of_one(line_of(proof)))
        if cursor.fetchone() is None:
            raise used_before()


def remove_ended() -> None:
    UsedProof.objects.filter(expires_at__lt=timezone.now() - CLOCKS_DIFFER).delete()
