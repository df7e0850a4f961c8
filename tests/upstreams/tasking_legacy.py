"""A server of 2025-11-25 whose tool "work" runs as a task and as nothing else."""

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

from tests.upstreams.asking import EVENTS, FORM, Asking, _event
from tests.upstreams.recorder import DONE, OBJECT, Received, Recorder

TIME = "2026-01-01T00:00:00Z"
RELATED = {"io.modelcontextprotocol/related-task": {"taskId": "task-1"}}
WORK = {"inputSchema": OBJECT, "execution": {"taskSupport": "required"}}


@dataclass
class LegacyTasking(Asking):
    """While it is asked for the task's result it says, on that stream, what it has to: `said`,
    as (method, params), and asks once where it `asks`. It is done when it is released."""

    said: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    asks: bool = False
    answer: Any = None
    status: str = "working"
    says: str = "Counting."
    poll_ms: int = 600_000
    token: Any = None

    def reset(self) -> None:
        super().reset()
        self.legacy, self.asks, self.answer = True, False, None
        self.status, self.says, self.token = "working", "Counting.", None
        self.said.clear()
        self.tools = {**Recorder().tools, "work": WORK}

    def capabilities(self) -> dict[str, Any]:
        tasks: dict[str, Any] = {"cancel": {}, "requests": {"tools": {"call": {}}}}
        return {"tools": {}, "logging": {}, "tasks": tasks}

    @property
    def about_tasks(self) -> list[str]:
        methods = [r.message.get("method", "") for r in self.received]
        return [method for method in methods if method.startswith("tasks/")]

    async def _of_a_session(self, received: Received, receive: Any, send: Any) -> None:
        message = received.message
        match message.get("method"):
            case "tools/call" if message["params"]["name"] == "work":
                self.token = message["params"].get("_meta", {}).get("progressToken")
                await self._reply(received, send, {"task": self._task()})
            case "tasks/get":
                await self._reply(received, send, self._task())
            case "tasks/cancel":
                self.status = "cancelled"
                await self._reply(received, send, self._task())
            case "tasks/result":
                await self._until_done(received, receive, send)
            case "logging/setLevel":
                await self._reply(received, send, {})
            case _:
                await super()._of_a_session(received, receive, send)

    async def _until_done(self, received: Received, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": EVENTS})
        count, gone = 0, asyncio.ensure_future(receive())
        while not (self._released.is_set() or gone.done() or self.status == "cancelled"):
            for method, params in self.said[count:]:
                count += 1
                note = {"jsonrpc": "2.0", "method": method, "params": params | {"_meta": RELATED}}
                await _event(send, note, more=True)
            if self.asks:
                self.asks, self.status = False, "input_required"
                form = {"method": FORM["method"], "params": {**FORM["params"], "_meta": RELATED}}  # type: ignore[dict-item]
                self.answer = await self._answer(form, send)
                self.status = "working"
            await asyncio.sleep(0.01)
        gone.cancel()
        self.status = "completed" if self._released.is_set() else self.status
        reply = {"jsonrpc": "2.0", "id": received.message["id"], "result": json.loads(DONE)}
        await _event(send, reply, more=False)

    async def _reply(self, received: Received, send: Any, members: dict[str, Any]) -> None:
        await self._result(send, received, json.dumps(members).encode())

    def _task(self) -> dict[str, Any]:
        return {
            "taskId": "task-1",
            "status": self.status,
            "statusMessage": self.says,
            "createdAt": TIME,
            "lastUpdatedAt": TIME,
            "ttl": 60_000,
            "pollInterval": self.poll_ms,
        }
