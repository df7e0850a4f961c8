"""As little as Channels can do: what one socket says, all hear."""

import os
from typing import Any

import django
from channels.generic.websocket import AsyncWebsocketConsumer
from channels.routing import ProtocolTypeRouter

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()


class Echo(AsyncWebsocketConsumer):
    groups = ["echo"]

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        await self.channel_layer.group_send("echo", {"type": "said", "text": text_data})

    async def said(self, event: dict[str, Any]) -> None:
        await self.send(event["text"])


application = ProtocolTypeRouter({"websocket": Echo.as_asgi()})
