"""The recorder as a server that logs while it runs "say": the lines that the arguments name."""

import json
from collections.abc import Iterator
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
        for method, told in self.notes(params):
            note = {"jsonrpc": "2.0", "method": f"notifications/{method}", "params": told}
            await send(_event(json.dumps(note).encode(), more=True))
        await self._released_before_gone(receive)
        await send(_event(_reply(received, DONE), more=False))

    def notes(self, params: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
        for line in params["arguments"]["lines"]:
            yield "message", line
