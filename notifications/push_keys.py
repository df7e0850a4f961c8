"""The installation's own key for push services: by it they know who may write to a device."""

from __future__ import annotations

import time
from email.utils import parseaddr

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.conf import settings
from py_vapid import Vapid02
from yarl import URL

from core import seal
from core.english import gettext as _
from core.sealed_fields import SealedField
from notifications.models import PushKey
from notifications.outcomes import Impossible

PURPOSE = "push key"
# Services take up to 24 hours.
VALID_S = 12 * 3600


def ensure() -> PushKey:
    """The key, made where there is none."""
    if known := PushKey.objects.first():
        return known
    private = ec.generate_private_key(ec.SECP256R1()).private_numbers().private_value
    made = PushKey()
    made.sealed_private = seal.seal(PURPOSE, private.to_bytes(32), place=_place(made))
    # Of two that make one at once, the first stays.
    PushKey.objects.bulk_create([made], ignore_conflicts=True)
    return PushKey.objects.get()


def public_key() -> str:
    """Returns it as browsers take it. Raises Impossible."""
    point = _private_key().public_key()
    return seal.to_text(point.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint))


def authorization(url: str) -> dict[str, str]:
    """The header that a request to this address needs. Source: RFC 8292. Raises Impossible."""
    claims = {
        "aud": str(URL(url).origin()),
        "sub": f"mailto:{parseaddr(settings.DEFAULT_FROM_EMAIL)[1]}",
        "exp": int(time.time()) + VALID_S,
    }
    # Not strict: a host of one's own network may have a name without a dot.
    signer = Vapid02(_private_key(), {"no-strict": True})
    return dict(signer.sign(claims))


def _private_key() -> ec.EllipticCurvePrivateKey:
    key = ensure()
    try:
        private = seal.unseal(PURPOSE, bytes(key.sealed_private), place=_place(key))
    except seal.Unsealable as error:
        raise Impossible(_("The key for push services cannot be opened here.")) from error
    return ec.derive_private_key(int.from_bytes(private), ec.SECP256R1())


def _place(key: PushKey) -> str:
    return f"notifications_pushkey|{key.pk}"


SEALED = (SealedField(PushKey, "sealed_private", PURPOSE, _place),)
