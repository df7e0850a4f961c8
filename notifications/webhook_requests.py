"""One request to a webhook or a chat."""

from __future__ import annotations

import time

import orjson
from django.utils import timezone, translation

from core import seal
from core.english import gettext as _
from core.sealed_fields import SealedField
from notifications import chat_formats, signatures, slack_messages
from notifications.chat_texts import compose
from notifications.guarded_requests import GONE, check_success, json_of, post
from notifications.models import Delivery, Webhook
from notifications.outcomes import Impossible, NotNeeded
from notifications.payloads import payload

PURPOSE = "webhook secret"
ADDRESS_PURPOSE = "webhook address"


def send(delivery: Delivery) -> str:
    """The id that the receiver gave the message, where it says one."""
    webhook = delivery.webhook
    assert webhook is not None
    if not webhook.enabled:
        raise NotNeeded(_("The webhook was disabled."))
    if webhook.is_slack_app:
        return slack_messages.send(delivery, webhook)
    url, headers, body = (_chat if webhook.is_chat else _signed)(delivery, webhook)
    reply = post(url, {"Content-Type": "application/json", **headers}, body)
    if reply.status == GONE:
        raise Impossible(_("The receiver answered with status 410: it wants no more."))
    check_success(reply)
    return chat_formats.receipt(webhook, json_of(reply))


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
    earlier = _receipt_of_call(delivery)
    with translation.override(webhook.language):
        message = compose(delivery)
        url, body = chat_formats.request(webhook, address(webhook), message, earlier)
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


SEALED = (
    SealedField(Webhook, "sealed_url", ADDRESS_PURPOSE, place),
    SealedField(Webhook, "sealed_secret", PURPOSE, place),
    SealedField(Webhook, "sealed_previous", PURPOSE, place),
)
