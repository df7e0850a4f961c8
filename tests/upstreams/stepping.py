"""The recorder with a tool that says how far it is whenever, and however, it is told to."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

from tests.upstreams.recorder import DONE, Received, Recorder, _event, _reply


@dataclass
class Stepping(Recorder):
    """`said`: the members of each `notifications/progress` of "steps", as JSON. It answers when it
    is released."""

    said: list[str] = field(default_factory=list)

    def reset(self) -> None:
        super().reset()
        self.said.clear()

    async def _steps(self, received: Received, send: Any) -> None:
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        token = json.dumps(received.message["params"]["_meta"]["progressToken"])
        count, released = 0, self._released
        while not (released.is_set() and count == len(self.said)):
            for members in self.said[count:]:
                count += 1
                note = f'"method":"notifications/progress","params":{{"progressToken":{token},'
                note = f'{{"jsonrpc":"2.0",{note}{members}}}}}'
                await send(_event(note.encode(), more=True))
            await asyncio.sleep(0.01)
        await send(_event(_reply(received, DONE), more=False))
