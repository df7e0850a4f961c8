"""Messages that were given up: how many by receiver, and sending again those to people."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from gateway.rest.v1 import plain
from gateway.rest.v1.members import Members, StrictChoice
from gateway.rest.v1.views import ServiceView, caller_of
from gateway.rest.v1.webhooks import CHANGE, RepeatedAnswer
from notifications import services
from notifications.models import CHANNELS, Delivery


class ChannelBody(Members):
    # Those of a webhook are sent again at its own address.
    channel = StrictChoice(choices=CHANNELS)


class FailedReceiver(serializers.Serializer[Any]):
    channel = serializers.ChoiceField(choices=Delivery.Channel.values)
    # Null: users, by mail or on their devices.
    webhook = serializers.UUIDField(allow_null=True)
    count = serializers.IntegerField()


class FailedMessagesAnswer(serializers.Serializer[Any]):
    receivers = FailedReceiver(many=True)


class FailedMessages(ServiceView):
    """Numbers of messages that were given up, of the newest 10,000: to each webhook, and to users
    by mail and on their devices."""

    scopes = {"GET": ("notifications.view_webhook",)}
    answers = {"GET": FailedMessagesAnswer}

    def get(self, request: Request) -> Response:
        found = Delivery.objects.dead().by_receiver()
        return Response({"receivers": [plain.failed_receiver(one) for one in found]})


class RepeatMessages(ServiceView):
    """Sends again all messages by mail, or all to devices, that were given up; under the same
    ids."""

    scopes = {"POST": CHANGE}
    bodies = {"POST": ChannelBody}
    answers = {"POST": (202, RepeatedAnswer)}

    def post(self, request: Request) -> Response:
        return self.once(request, lambda: self._repeat(request))

    def _repeat(self, request: Request) -> Response:
        channel = self.body(request)["channel"]
        found = services.send_all_again(channel, by=caller_of(request))
        return Response({"repeated": found}, 202)
