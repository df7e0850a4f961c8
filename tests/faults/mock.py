"""The well-behaved upstream server of the suite, a process of its own: it writes down every call
it receives, by its nonce and with the characters of its arguments, before anything else is done.

    python -m tests.faults.mock PORT PAPER

A call's `ms` say how long it takes to answer; with `drop` it breaks off in the middle. The answer
names the nonce and, counted from one, which receipt of this nonce it belongs to.
"""

import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

import uvicorn

from tests.faults.paper import Paper, arguments_in, count_receipts
from tests.upstreams.recorder import DISCOVERED, respond

ASKED = {
    "type": "object",
    "properties": {
        "nonce": {"type": "string"},
        "ms": {"type": "integer"},
        "drop": {"type": "boolean"},
        "steps": {"type": "integer"},
    },
    "required": ["nonce", "ms"],
}
LISTED = {
    "resultType": "complete",
    "tools": [{"name": name, "inputSchema": ASKED} for name in ("now", "later", "safe", "held")],
    "ttlMs": 0,
    "cacheScope": "private",
}


class Mock:
    def __init__(self, paper: Paper) -> None:
        self._paper = paper
        self._receipts = count_receipts(paper.path)

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            got = await receive()
            body += got.get("body", b"")
            more = got.get("more_body", False)
        message = json.loads(body)
        match message["method"]:
            case "server/discover":
                result = DISCOVERED
            case "tools/list":
                result = json.dumps(LISTED).encode()
            case "tools/call":
                result = await self._called(arguments_in(body), **message["params"])
            case _:
                await respond(send, b"")
                return
        if message.get("params", {}).get("arguments", {}).get("drop"):
            await _break_off(send)
            return
        if steps := message.get("params", {}).get("arguments", {}).get("steps"):
            await _tell_steps(send, message, steps)
            return
        request_id = json.dumps(message["id"]).encode()
        await respond(send, b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (request_id, result))

    async def _called(self, sent: str, name: str, arguments: dict[str, Any], **_: Any) -> bytes:
        nonce = arguments["nonce"]
        self._receipts[nonce] += 1
        receipt = self._receipts[nonce]
        self._paper.write(nonce=nonce, tool=name, receipt=receipt, arguments=sent)
        await asyncio.sleep(arguments["ms"] / 1000)
        text = json.dumps({"nonce": nonce, "receipt": receipt})
        return json.dumps({"content": [{"type": "text", "text": text}]}).encode()


async def _tell_steps(send: Any, message: dict[str, Any], steps: int) -> None:
    """One a second, each with the time at which it was said."""
    headers = [(b"content-type", b"text/event-stream")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    token = message["params"]["_meta"].get("progressToken")
    for step in range(1, steps + 1):
        await asyncio.sleep(1)
        said = {"progressToken": token, "progress": step, "message": f"at {time.time():.4f}"}
        note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": said}
        await send(_event(note, more=True))
    result = {"content": [{"type": "text", "text": "done"}]}
    await send(_event({"jsonrpc": "2.0", "id": message["id"], "result": result}, more=False))


def _event(message: dict[str, Any], *, more: bool) -> dict[str, Any]:
    body = b"data: %b\n\n" % json.dumps(message).encode()
    return {"type": "http.response.body", "body": body, "more_body": more}


async def _break_off(send: Any) -> None:
    """Less comes than was promised: the connection ends in the middle of the reply."""
    headers = [(b"content-type", b"application/json"), (b"content-length", b"1000")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b'{"jsonrpc"'})


if __name__ == "__main__":
    mock = Mock(Paper(Path(sys.argv[2])))
    uvicorn.run(
        mock.app,
        port=int(sys.argv[1]),
        lifespan="off",
        interface="asgi3",
        log_level="warning",
        access_log=False,
    )
