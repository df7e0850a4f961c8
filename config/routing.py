"""WebSockets of the console: one a tab, which rings for the rows that this person may see."""

from typing import Any

from django.urls import path

from calls.consumers import CallConsumer
from core.consumers import ConsoleConsumer

# Group → the permission to hear that something in it changed.
BELLS = {
    "queue": "approvals.view_approval",
    "calls": "calls.view_call",
    "frozen": "calls.view_call",
}

# The type of path() knows only HTTP's views.
rings: Any = ConsoleConsumer.as_asgi(bells=BELLS)
call: Any = CallConsumer.as_asgi(bells=BELLS)

websocket_urlpatterns = [path("live/", rings), path("live/calls/<uuid:call_id>/", call)]
