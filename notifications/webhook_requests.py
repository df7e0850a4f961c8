"""One request to a webhook or a chat, through the client that looks at every address."""

from __future__ import annotations

import time
from contextlib import suppress
from email.utils import parsedate_to_datetime
from ipaddress import ip_address, ip_network

import orjson
from django.conf import settings
from django.utils import timezone, translation
from yarl import URL

from core import seal
from core.english import gettext as _
from core.loop import BackgroundLoop
from core.outbound import AddressRefused, Guard
from core.sealed_fields import SealedField
from notifications import chat_formats, signatures
from notifications.chat_texts import compose
from notifications.models import Delivery, Webhook
from notifications.outcomes import Failed, Impossible, NotNeeded
from notifications.payloads import payload
from registry.upstream.transport.connection_pool import ConnectionPool
from registry.upstream.transport.http_request import HttpReply, HttpRequest, head, post
from registry.upstream.values import Limits, UpstreamError

PURPOSE = "webhook secret"
ADDRESS_PURPOSE = "webhook address"
HEADERS = {
    "Content-Type": "application/json",
    "User-Agent": "Countersign",
    "Accept": "*/*",
    "Accept-Encoding": "identity",
}
LIMITS = Limits(connect_s=5, idle_s=15, total_s=20)
# The receiver wants no more of them.
GONE = 410
TOO_MANY = 429

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


def send(delivery: Delivery) -> str:
    """The id that the receiver gave the message, where it says one."""
    webhook = delivery.webhook
    assert webhook is not None
    if not webhook.enabled:
        raise NotNeeded(_("The webhook was disabled."))
    url, headers, body = (_chat if webhook.is_chat else _signed)(delivery, webhook)
    reply = _post(url, {**HEADERS, **headers}, body)
    if reply.status == GONE:
        raise Impossible(_("The receiver answered with status 410: it wants no more."))
    if not 200 <= reply.status < 300:
        raise Failed(
            _("The receiver answered with status %(status)s.") % {"status": reply.status},
            retry_after_s=_retry_after_s(reply) if reply.status == TOO_MANY else 0,
        )
    return chat_formats.receipt(webhook, _json(reply.body))


def _signed(delivery: Delivery, webhook: Webhook) -> tuple[str, dict[str, str], bytes]:
    body = payload(delivery)
    headers = signatures.headers(
        valid_secrets(webhook),
        message_id=str(delivery.pk),
        timestamp=int(time.time()),
        body=body,
    )
    return webhook.url, headers, body


def _chat(delivery: Delivery, webhook: Webhook) -> tuple[str, dict[str, str], bytes]:
    with translation.override(webhook.language):
        message = compose(delivery)
    url, body = chat_formats.request(webhook, address(webhook), message, _receipt_of_call(delivery))
    return str(url), {}, orjson.dumps(body)


def _receipt_of_call(delivery: Delivery) -> str:
    """The receipt of the first message on its call, to which the later ones answer."""
    earlier = Delivery.objects.filter(webhook=delivery.webhook_id, call_id=delivery.call_id)
    found = earlier.exclude(receipt="") if delivery.call_id else earlier.none()
    return found.order_by("id").values_list("receipt", flat=True).first() or ""


def address(webhook: Webhook) -> str:
    """A chat's whole address, a secret. Raises Impossible where it cannot be opened."""
    try:
        return seal.unseal(
            ADDRESS_PURPOSE, bytes(webhook.sealed_url or b""), place=place(webhook)
        ).decode()
    except seal.Unsealable as error:
        raise Impossible(_("Its URL cannot be opened here: change the webhook.")) from error


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


def _post(url: str, headers: dict[str, str], body: bytes) -> HttpReply:
    try:
        check_url(url)
        return _loop.run(_request(url, headers, body), timeout=LIMITS.total_s + 10)
    except AddressRefused as error:
        raise Failed(str(error)) from error
    except UpstreamError as error:
        raise Failed(str(error)) from error
    except TimeoutError as error:
        raise Failed(_("The receiver did not answer in time.")) from error


async def _request(text: str, headers: dict[str, str], body: bytes) -> HttpReply:
    """No redirect is followed."""
    pool, url = ConnectionPool(Guard(settings.UPSTREAM_NETWORKS)), URL(text)
    try:
        request = HttpRequest(0, pool.origin_of(url), head("POST", url, headers), body, LIMITS)
        return await post(pool, request)
    finally:
        await pool.aclose()


def _retry_after_s(reply: HttpReply) -> float:
    """Source: RFC 9110, 10.2.3: seconds, or a date. Telegram says it in its answer as well."""
    said = reply.headers.get(b"retry-after", "").strip()
    if said.replace(".", "", 1).isdecimal():
        return float(said)
    # A date may come without a zone.
    with suppress(ValueError, TypeError):
        return max((parsedate_to_datetime(said) - timezone.now()).total_seconds(), 0)
    match _json(reply.body):
        case {"parameters": {"retry_after": int(seconds)}}:
            return seconds
    return 0


def _json(body: bytes) -> object:
    with suppress(orjson.JSONDecodeError):
        return orjson.loads(body)
    return None


SEALED = (
    SealedField(Webhook, "sealed_url", ADDRESS_PURPOSE, place),
    SealedField(Webhook, "sealed_secret", PURPOSE, place),
    SealedField(Webhook, "sealed_previous", PURPOSE, place),
)
