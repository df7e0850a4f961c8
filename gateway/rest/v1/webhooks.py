"""Webhooks and chats: a secret is in one answer, and a chat's address in none.

Messages of a chat that a token saved show no arguments, whatever rules show: no token reads any.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.urls import reverse
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from core.english import gettext as _
from gateway.rest import problems
from gateway.rest.v1 import forms, plain
from gateway.rest.v1.members import Flag, Members, StrictChoice, Text
from gateway.rest.v1.views import ListView, RowView, ServiceView, caller_of
from notifications import services
from notifications.events import WEBHOOK_CHOICES
from notifications.forms import WebhookForm
from notifications.models import Delivery, Webhook

CHANGE = ("notifications.change_webhook",)
# A Slack app is made with its manifest and its secrets, on a page of its own.
FORMATS = [one for one in Webhook.Format.values if one != Webhook.Format.SLACK_APP]
LANGUAGES = [code for code, _name in settings.LANGUAGES]
EVENTS = [name for name, _label in WEBHOOK_CHOICES]


class WebhookMembers(Members):
    name = Text(max_length=60)
    # Of a chat, a secret: no answer has it whole.
    url = Text(max_length=2000, write_only=True)
    # Of messages in a chat.
    language = StrictChoice(choices=LANGUAGES, required=False)
    # Without any: all of them.
    events = serializers.ListField(
        child=StrictChoice(choices=EVENTS), required=False, max_length=len(EVENTS)
    )


class WebhookBody(WebhookMembers):
    format = StrictChoice(choices=FORMATS, default=Webhook.Format.STANDARD.value)


class WebhookChange(WebhookMembers):
    enabled = Flag(required=False)


class WebhookAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    format = serializers.ChoiceField(choices=Webhook.Format.values)
    url = serializers.CharField()
    language = serializers.ChoiceField(choices=LANGUAGES)
    events = serializers.ListField(child=serializers.CharField())
    enabled = serializers.BooleanField()
    created_at = serializers.DateTimeField()
    created_by = serializers.CharField(allow_null=True)


class SecretWebhookAnswer(WebhookAnswer):
    # Null for a chat, and where the request is repeated: it is shown once.
    secret = serializers.CharField(allow_null=True)


class DeliveryAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    event = serializers.CharField()
    call = serializers.UUIDField(allow_null=True)
    state = serializers.ChoiceField(choices=Delivery.State.values)
    attempts = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    ended_at = serializers.DateTimeField(allow_null=True)
    error = serializers.CharField()


class RepeatedAnswer(serializers.Serializer[Any]):
    repeated = serializers.IntegerField()


class Webhooks(ListView):
    scopes = {"GET": ("notifications.view_webhook",), "POST": ("notifications.add_webhook",)}
    bodies = {"POST": WebhookBody}
    answers = {"GET": WebhookAnswer, "POST": (201, SecretWebhookAnswer)}
    rows = staticmethod(lambda request: _webhooks())
    key = "name"
    cursor = str
    shown = staticmethod(plain.webhook)

    def post(self, request: Request) -> Response:
        return self.once(request, lambda: self._add(request), secret="secret")  # noqa: S106 a member's name

    def _add(self, request: Request) -> Response:
        form = _filled(None, self.body(request))
        made = form.save(commit=False)
        secret = services.add_webhook(made, by=caller_of(request), address=form.address)
        there = reverse("api:webhook_detail", args=[made.pk])
        answer = OneWebhook().answer(_webhook(made.pk), 201, there)
        answer.data["secret"] = secret or None
        return answer


class OneWebhook(RowView):
    scopes = {
        "GET": ("notifications.view_webhook",),
        "PATCH": CHANGE,
        "DELETE": ("notifications.delete_webhook",),
    }
    bodies = {"PATCH": WebhookChange}
    answers = {"GET": WebhookAnswer, "PATCH": WebhookAnswer, "DELETE": (204, None)}

    def row(self, request: Request, webhook: UUID) -> Webhook:
        return _webhook(webhook)

    def plain(self, row: Webhook) -> dict[str, Any]:
        return plain.webhook(row)

    def unseen(self, row: Webhook) -> dict[str, Any]:
        return {"sealed": bytes(row.sealed_url or b"").hex()}

    def patch(self, request: Request, webhook: UUID) -> Response:
        return self.changed(request, lambda row: self._change(request, row), webhook=webhook)

    def _change(self, request: Request, webhook: Webhook) -> Response:
        given, by = self.body(request), caller_of(request)
        enabled = given.pop("enabled", None)
        if given:
            form = _filled(webhook, given)
            services.change_webhook(form.save(commit=False), by=by, address=form.address)
        if enabled is not None:
            services.set_webhook_enabled(webhook, enabled, by=by)
        return self.answer(_webhook(webhook.pk))

    def delete(self, request: Request, webhook: UUID) -> Response:
        return self.changed(request, lambda row: self._remove(request, row), webhook=webhook)

    def _remove(self, request: Request, webhook: Webhook) -> Response:
        services.remove_webhook(webhook, by=caller_of(request))
        return Response(None, 204)


class RotateWebhookSecret(ServiceView):
    """A new secret; the old one signs as well for 24 hours. A chat has none."""

    scopes = {"POST": CHANGE}
    bodies = {"POST": Members}
    answers = {"POST": SecretWebhookAnswer}

    def post(self, request: Request, webhook: UUID) -> Response:
        return self.once(request, lambda: self._rotate(request, webhook), secret="secret")  # noqa: S106 as above

    def _rotate(self, request: Request, webhook: UUID) -> Response:
        self.body(request)
        signed = _webhooks().filter(format=Webhook.Format.STANDARD)
        row = get_object_or_404(signed, pk=webhook)
        secret = services.rotate_secret(row, by=caller_of(request))
        return Response({**plain.webhook(_webhook(webhook)), "secret": secret})


class TestWebhook(ServiceView):
    """Sends a test message."""

    scopes = {"POST": CHANGE}
    bodies = {"POST": Members}
    answers = {"POST": (202, DeliveryAnswer)}

    def post(self, request: Request, webhook: UUID) -> Response:
        return self.once(request, lambda: self._test(request, webhook))

    def _test(self, request: Request, webhook: UUID) -> Response:
        self.body(request)
        made = services.test_webhook(_webhook(webhook), by=caller_of(request))
        return Response(plain.delivery(Delivery.objects.get(pk=made.pk)), 202)


class WebhookDeliveries(ListView):
    """The newest first."""

    scopes = {"GET": ("notifications.view_webhook",)}
    answers = {"GET": DeliveryAnswer}
    queries = ("state",)
    query_schemas = {"state": {"type": "string", "enum": Delivery.State.values}}
    rows = staticmethod(lambda request, webhook: _deliveries(request, webhook))  # noqa: PLW0108 defined below
    key = "-id"
    cursor = UUID
    shown = staticmethod(plain.delivery)


class RepeatDelivery(ServiceView):
    """Sends a message again, under the same id."""

    scopes = {"POST": CHANGE}
    bodies = {"POST": Members}
    answers = {"POST": (202, DeliveryAnswer)}

    def post(self, request: Request, webhook: UUID, delivery: UUID) -> Response:
        return self.once(request, lambda: self._repeat(request, webhook, delivery))

    def _repeat(self, request: Request, webhook: UUID, delivery: UUID) -> Response:
        self.body(request)
        rows = Delivery.objects.filter(webhook=_webhook(webhook))
        row = get_object_or_404(rows, pk=delivery)
        if not services.send_again(row, by=caller_of(request)):
            return problems.problem(409, _("It is being sent, or cannot be sent again."))
        return Response(plain.delivery(rows.get(pk=delivery)), 202)


class RepeatDeliveries(ServiceView):
    """Sends again all messages that were given up on their way there, under the same ids."""

    scopes = {"POST": CHANGE}
    bodies = {"POST": Members}
    answers = {"POST": (202, RepeatedAnswer)}

    def post(self, request: Request, webhook: UUID) -> Response:
        return self.once(request, lambda: self._repeat(request, webhook))

    def _repeat(self, request: Request, webhook: UUID) -> Response:
        self.body(request)
        row = _webhook(webhook)
        return Response(
            {"repeated": services.send_all_again(str(row.pk), by=caller_of(request))}, 202
        )


def _webhooks() -> QuerySet[Webhook]:
    return Webhook.objects.select_related("created_by")


def _webhook(pk: UUID) -> Webhook:
    return get_object_or_404(_webhooks(), pk=pk)


def _deliveries(request: Request, webhook: UUID) -> QuerySet[Delivery]:
    state = request.query_params.get("state", Delivery.State.DEAD.value)
    if state not in Delivery.State.values:
        known = ", ".join(Delivery.State.values)
        raise ValidationError({"detail": _("state must be one of %s.") % known})
    rows = Delivery.objects.filter(webhook=_webhook(webhook))
    return rows.filter(state=state) if "state" in request.query_params else rows


def _filled(webhook: Webhook | None, given: dict[str, Any]) -> WebhookForm:
    """The console's form with these members. Raises ValidationError."""
    if webhook and webhook.is_slack_app:
        raise ValidationError({"detail": _("A Slack app is changed in the console.")})
    present = _present(webhook) if webhook else {"language": settings.LANGUAGE_CODE}
    form = WebhookForm({**present, **given}, instance=webhook)
    forms.check(form)
    return form


def _present(webhook: Webhook) -> dict[str, Any]:
    # A chat's address stays as it is where the form gets none.
    url = "" if webhook.is_chat else webhook.url
    return {
        "name": webhook.name,
        "language": webhook.language,
        "url": url,
        "events": webhook.events,
    }
