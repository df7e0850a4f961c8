"""Signs decisions, so that others verify them without asking Countersign.

Sources: RFC 7515 (JWS), RFC 8037 (Ed25519), RFC 7517 (JWK Set).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jwt
import orjson
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.db import connection, transaction
from django.utils import timezone

from approvals.models import DecisionKey
from audit.services import SYSTEM, Actor, record
from core import seal
from core.english import gettext as _
from core.errors import CountersignError
from core.sealed_fields import SealedField

PURPOSE = "decision key"
ALGORITHM, TYPE = "EdDSA", "countersign-decision+jwt"
# Of two processes that need the first key at once, one makes it.
_LOCK = 0x6465636B


class NoKey(CountersignError):
    """The key cannot be opened here: the installation's secret is another one."""


class KeyRefused(CountersignError):
    """The key is not withdrawn; says why."""


def sign(claims: Mapping[str, Any]) -> str:
    """The JWS of these claims in compact form. Raises NoKey."""
    key = DecisionKey.objects.valid().first() or _first()
    headers = {"kid": str(key.pk), "typ": TYPE}
    jws = jwt.PyJWS()
    return jws.encode(orjson.dumps(claims), _private(key), algorithm=ALGORITHM, headers=headers)


def key_set() -> dict[str, list[dict[str, Any]]]:
    """The public keys, as a JWK Set. Those that were withdrawn stand apart, so that no library
    verifies by them: RFC 7517 lets a set have members of its own, and OpenID Federation names the
    field `revoked`."""
    if not DecisionKey.objects.valid().exists():
        _first()
    known = list(DecisionKey.objects.all())
    return {
        "keys": [_jwk(key) for key in known if key.withdrawn_at is None],
        "revoked_keys": [_revoked(key) for key in known if key.withdrawn_at],
    }


@transaction.atomic
def withdraw(key: DecisionKey, *, reason: str, by: Actor) -> DecisionKey:
    """From now on nothing that it signed is to be believed; returns the key that signs. Raises
    KeyRefused."""
    key = DecisionKey.objects.select_for_update().get(pk=key.pk)
    if key.withdrawn_at:
        raise KeyRefused(_("This key is withdrawn already."))
    if not reason.strip():
        raise KeyRefused(_("Say why: verifiers read it."))
    # An earlier key was replaced for a reason: it never signs again.
    was_signing = DecisionKey.objects.valid().first() == key
    key.withdrawn_at, key.reason = timezone.now(), reason.strip()[:300]
    key.save(update_fields=["withdrawn_at", "reason"])
    record("decision_key.withdrawn", actor=by, reason=key.reason, key=str(key.pk))
    signing = None if was_signing else DecisionKey.objects.valid().first()
    return signing or new_key()


@transaction.atomic
def new_key() -> DecisionKey:
    """Signs from now on. Its first use needs no restart."""
    private = Ed25519PrivateKey.generate()
    made = DecisionKey(public=private.public_key().public_bytes_raw())
    made.sealed_private = seal.seal(PURPOSE, private.private_bytes_raw(), place=_place(made))
    made.save(force_insert=True)
    reason = _("A key that signs decisions was created.")
    record("decision_key.created", actor=SYSTEM, reason=reason, key=str(made.pk))
    return made


@transaction.atomic
def _first() -> DecisionKey:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
    return DecisionKey.objects.valid().first() or new_key()


def _private(key: DecisionKey) -> Ed25519PrivateKey:
    try:
        seed = seal.unseal(PURPOSE, bytes(key.sealed_private), place=_place(key))
    except seal.Unsealable as error:
        raise NoKey(_("The key that signs decisions cannot be opened here.")) from error
    return Ed25519PrivateKey.from_private_bytes(seed)


def _jwk(key: DecisionKey) -> dict[str, str]:
    point = seal.to_text(bytes(key.public))
    jwk = {"kty": "OKP", "crv": "Ed25519", "x": point, "kid": str(key.pk)}
    return jwk | {"use": "sig", "alg": ALGORITHM}


def _revoked(key: DecisionKey) -> dict[str, Any]:
    assert key.withdrawn_at is not None
    revoked = {"revoked_at": int(key.withdrawn_at.timestamp()), "reason": key.reason}
    return _jwk(key) | {"revoked": revoked}


def _place(key: DecisionKey) -> str:
    return f"approvals_decisionkey|{key.pk}"


SEALED = (SealedField(DecisionKey, "sealed_private", PURPOSE, _place),)
