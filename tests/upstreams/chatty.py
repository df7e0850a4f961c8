"""The recorder as a server that logs while it runs "say": the lines that the arguments name."""

import json
from typing import Any

from tests.upstreams.recorder import DONE, Received, Recorder, _event, _reply


class Chatty(Recorder):
    async def _call(self, received: Received, receive: Any, send: Any) -> None:
        params = received.message["params"]
        if params["name"] != "say":
            await super()._call(received, receive, send)
            return
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for line in params["arguments"]["lines"]:
            note = {"jsonrpc": "2.0", "method": "notifications/message", "params": line}
            await send(_event(json.dumps(note).encode(), more=True))
        await self._released_before_gone(receive)
        await send(_event(_reply(received, DONE), more=False))
