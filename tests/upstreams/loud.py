"""A server of 2025-11-25 that logs what "say" is given, as far as its session was told to."""

import json
from dataclasses import dataclass, field
from typing import Any

from tests.upstreams.asking import EVENTS, Asking, _event
from tests.upstreams.recorder import DONE, Received

LEVELS = ("debug", "info", "notice", "warning", "error")


@dataclass
class Loud(Asking):
    logs: bool = True
    # What it was told, in order; of its one session.
    told: list[str] = field(default_factory=list)

    def reset(self) -> None:
        super().reset()
        self.legacy = True
        self.logs = True
        self.told.clear()

    def capabilities(self) -> dict[str, Any]:
        return {"tools": {}} | ({"logging": {}} if self.logs else {})

    async def _of_a_session(self, received: Received, receive: Any, send: Any) -> None:
        message = received.message
        match message.get("method"):
            case "logging/setLevel":
                self.told.append(message["params"]["level"])
                await self._result(send, received, b"{}")
            case "tools/call" if message["params"]["name"] == "say":
                await self._say_it(received, receive, send)
            case _:
                await super()._of_a_session(received, receive, send)

    async def _say_it(self, received: Received, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": EVENTS})
        least = LEVELS.index(self.told[-1]) if self.told else LEVELS.index("error")
        arguments = received.message["params"]["arguments"]
        for line in arguments["lines"]:
            if LEVELS.index(line["level"]) >= least:
                note = {"jsonrpc": "2.0", "method": "notifications/message", "params": line}
                await _event(send, note, more=True)
        if arguments.get("wait"):
            await self._released_before_gone(receive)
        reply = {"jsonrpc": "2.0", "id": received.message["id"], "result": json.loads(DONE)}
        await _event(send, reply, more=False)
