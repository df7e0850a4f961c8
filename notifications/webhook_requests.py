"""One signed request to a webhook, through the client that looks at every address."""

from __future__ import annotations

import time
from ipaddress import ip_address, ip_network

from django.conf import settings
from django.utils import timezone
from yarl import URL

from core import seal
from core.english import gettext as _
from core.loop import BackgroundLoop
from core.outbound import AddressRefused, Guard
from notifications import signatures
from notifications.models import Delivery, Webhook
from notifications.outcomes import Failed, Impossible, NotNeeded
from notifications.payloads import payload
from registry.upstream.transport.connection_pool import ConnectionPool
from registry.upstream.transport.http_request import HttpRequest, deliver, head
from registry.upstream.values import Limits, UpstreamError

PURPOSE = "webhook secret"
LIMITS = Limits(connect_s=5, idle_s=15, total_s=20)
# The receiver wants no more of them.
GONE = 410

# Names are looked up in threads: calls and discovery do not wait for those of a webhook.
_loop = BackgroundLoop("webhooks loop", threads=4)


def check_url(text: str) -> None:
    """Raises AddressRefused, with a sentence."""
    url = Guard(settings.UPSTREAM_NETWORKS).check_url(text)
    if url.scheme != "https" and not _is_named_network(url.host or ""):
        raise AddressRefused(
            _(
                "The URL must begin with https://. Only addresses in a network of "
                "COUNTERSIGN_UPSTREAM_NETWORKS may be reached by http://."
            )
        )


def _is_named_network(host: str) -> bool:
    try:
        address = ip_address(host)
    except ValueError:
        return False
    return any(address in ip_network(one, strict=False) for one in settings.UPSTREAM_NETWORKS)


def send(delivery: Delivery) -> None:
    webhook = delivery.webhook
    assert webhook is not None
    if not webhook.enabled:
        raise NotNeeded(_("The webhook was disabled."))
    body = payload(delivery)
    status = _post(webhook, _headers(delivery, webhook, body), body)
    if status == GONE:
        raise Impossible(_("The receiver answered with status 410: it wants no more."))
    if not 200 <= status < 300:
        raise Failed(_("The receiver answered with status %(status)s.") % {"status": status})


def _headers(delivery: Delivery, webhook: Webhook, body: bytes) -> dict[str, str]:
    return {
        "Content-Type": "application/json",
        "User-Agent": "Countersign",
        "Accept": "*/*",
        **signatures.headers(
            valid_secrets(webhook),
            message_id=str(delivery.pk),
            timestamp=int(time.time()),
            body=body,
        ),
    }


def valid_secrets(webhook: Webhook) -> list[str]:
    """The present one first. Raises Impossible where this installation cannot open it."""
    sealed = [webhook.sealed_secret]
    if webhook.sealed_previous and (webhook.previous_until or timezone.now()) > timezone.now():
        sealed.append(webhook.sealed_previous)
    try:
        return [seal.unseal(PURPOSE, bytes(one), place=place(webhook)).decode() for one in sealed]
    except seal.Unsealable as error:
        raise Impossible(_("Its secret cannot be opened here: rotate it.")) from error


def place(webhook: Webhook) -> str:
    return f"notifications_webhook|{webhook.pk}"


def _post(webhook: Webhook, headers: dict[str, str], body: bytes) -> int:
    try:
        check_url(webhook.url)
        return _loop.run(_request(webhook.url, headers, body), timeout=LIMITS.total_s + 10)
    except AddressRefused as error:
        raise Failed(str(error)) from error
    except UpstreamError as error:
        raise Failed(str(error)) from error
    except TimeoutError as error:
        raise Failed(_("The receiver did not answer in time.")) from error


async def _request(text: str, headers: dict[str, str], body: bytes) -> int:
    """The status of the answer: nothing else of it is looked at, and no redirect is followed."""
    pool, url = ConnectionPool(Guard(settings.UPSTREAM_NETWORKS)), URL(text)
    try:
        request = HttpRequest(0, pool.origin_of(url), head("POST", url, headers), body, LIMITS)
        return await deliver(pool, request)
    finally:
        await pool.aclose()
