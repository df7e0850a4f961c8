"""Subscriptions that browsers give: an address at a push service, and keys to encrypt with."""

from __future__ import annotations

import hashlib
from fnmatch import fnmatchcase
from typing import NamedTuple

import http_ece
import orjson
from cryptography.hazmat.primitives.asymmetric import ec
from django.conf import settings
from django.utils.translation import gettext as _
from yarl import URL

from core import seal
from core.errors import CountersignError
from core.outbound import AddressRefused
from core.sealed_fields import SealedField
from notifications.guarded_requests import check_url
from notifications.models import PushDevice

PURPOSE = "push subscription"
URL_MAX = 2000
AUTH_BYTES = 16
# Messages of all kinds are as long as each other: services see nothing in that.
PADDED = 512


class SubscriptionRefused(CountersignError):
    """The subscription cannot be used; says why."""


class PushSubscription(NamedTuple):
    url: str
    # Its public key, and what it shares with us alone.
    point: bytes
    auth: bytes

    @property
    def host(self) -> str:
        return URL(self.url).host or ""

    @property
    def fingerprint(self) -> str:
        return hashlib.sha256(self.url.encode()).hexdigest()

    def encrypt(self, message: bytes) -> bytes:
        """Source: RFC 8291. With a key pair of its own, so that only the browser opens it."""
        encrypted: bytes = http_ece.encrypt(
            message.ljust(PADDED),
            private_key=ec.generate_private_key(ec.SECP256R1()),
            dh=self.point,
            auth_secret=self.auth,
            version="aes128gcm",
        )
        return encrypted


def read(text: str) -> PushSubscription:
    """Reads what a browser's `PushSubscription.toJSON()` gives. Raises SubscriptionRefused."""
    match _json(text):
        case {"endpoint": str(url), "keys": {"p256dh": str(point), "auth": str(auth)}}:
            given = PushSubscription(url, _bytes(point), _bytes(auth))
        case _:
            raise SubscriptionRefused(_("The browser gave no subscription."))
    if len(given.auth) != AUTH_BYTES or not _is_point(given.point):
        raise SubscriptionRefused(_("The browser gave keys that cannot be used."))
    check_service(given.url)
    return given


def is_allowed(host: str) -> bool:
    return any(fnmatchcase(host, one) for one in settings.PUSH_HOSTS)


def check_service(url: str) -> None:
    """Raises SubscriptionRefused for a host that the operator did not allow."""
    try:
        check_url(url)
    except AddressRefused as error:
        raise SubscriptionRefused(str(error)) from None
    host = URL(url).host or ""
    if len(url) > URL_MAX or not is_allowed(host):
        raise SubscriptionRefused(
            _("%(host)s is none of the push services that COUNTERSIGN_PUSH_HOSTS allows.")
            % {"host": host[:253]}
        )


def sealed(given: PushSubscription, device: PushDevice) -> bytes:
    value = [given.url, seal.to_text(given.point), seal.to_text(given.auth)]
    return seal.seal(PURPOSE, orjson.dumps(value), place=_place(device))


def opened(device: PushDevice) -> PushSubscription:
    """Raises Unsealable."""
    value = seal.unseal(PURPOSE, bytes(device.sealed_subscription), place=_place(device))
    url, point, auth = orjson.loads(value)
    return PushSubscription(url, seal.from_text(point), seal.from_text(auth))


def _json(text: str) -> object:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def _bytes(text: str) -> bytes:
    """Some browsers pad them."""
    try:
        return seal.from_text(text.rstrip("="))
    except ValueError:
        return b""


def _is_point(value: bytes) -> bool:
    try:
        ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), value)
    except ValueError:
        return False
    return len(value) == 65


def _place(device: PushDevice) -> str:
    return f"notifications_pushdevice|{device.pk}"


SEALED = (SealedField(PushDevice, "sealed_subscription", PURPOSE, _place),)
