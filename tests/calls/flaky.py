"""The recorder, but it may break off or refuse the first calls that it gets, and be away."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tests.upstreams.recorder import Received, Recorder, respond


@dataclass
class Flaky(Recorder):
    # So many of the next calls end in the middle of the answer, or are refused.
    breaks: int = 0
    refusals: int = 0
    # The status with which it turns away whoever greets it, if any.
    turns_away: int = 0

    def reset(self) -> None:
        super().reset()
        self.breaks = self.refusals = self.turns_away = 0

    @property
    def keys(self) -> list[str | None]:
        """What the calls said to be known by."""
        metas = [call.message["params"].get("_meta", {}) for call in self.calls]
        return [meta.get("countersign/idempotencyKey") for meta in metas]

    @contextmanager
    def away(self) -> Iterator[None]:
        """Nobody takes a connection."""
        self.__exit__()
        try:
            yield
        finally:
            self.__enter__()

    async def _result(self, send: Any, received: Received, result: bytes) -> None:
        if self.turns_away and received.message["method"] == "server/discover":
            await respond(send, b"{}", status=self.turns_away)
        else:
            await super()._result(send, received, result)

    async def _call(self, received: Received, receive: Any, send: Any) -> None:
        if self.refusals:
            self.refusals -= 1
            await send({"type": "http.response.start", "status": 429})
            await send({"type": "http.response.body"})
        elif self.breaks:
            self.breaks -= 1
            headers = [(b"content-type", b"application/json"), (b"content-length", b"100")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b'{"json', "more_body": True})
        else:
            await super()._call(received, receive, send)
