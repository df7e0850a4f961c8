"""The recorder as a server that makes a task of every call of "hang"."""

import json
from dataclasses import dataclass, field
from typing import Any

from tests.upstreams.recorder import DONE, Received, Recorder, respond

EXTENSION = "io.modelcontextprotocol/tasks"
NEEDS_TASKS: dict[str, Any] = {
    "code": -32021,
    "message": "This takes a while.",
    "data": {"requiredCapabilities": {"extensions": {EXTENSION: {}}}, "more": 1.50},
}
TIME = "2026-01-01T00:00:00Z"


@dataclass
class Tasking(Recorder):
    tasks: dict[str, str] = field(default_factory=dict)
    # "working", "input_required", or how each task ends that is asked for.
    says: str = "working"
    answers: dict[str, Any] = field(default_factory=dict)
    # Of who does not understand tasks: "run" the call, "refuse" it, or make a "task" all the same.
    otherwise: str = "run"
    # How often it wishes to be asked; and whether it says by itself how its tasks go on.
    poll_ms: int = 100
    tells: bool = False
    # When each task that has ended did so, as it says.
    ended_at: str = TIME

    def reset(self) -> None:
        super().reset()
        self.tasks.clear()
        self.says = "working"
        self.answers.clear()
        self.otherwise = "run"
        self.poll_ms = 100
        self.tells = False
        self.ended_at = TIME

    @property
    def about_tasks(self) -> list[str]:
        return [r.message["method"] for r in self.received if "tasks/" in r.message["method"]]

    async def _call(self, received: Received, receive: Any, send: Any) -> None:
        name = received.message["params"]["name"]
        capabilities = received.message["params"]["_meta"][
            "io.modelcontextprotocol/clientCapabilities"
        ]
        invited = EXTENSION in capabilities.get("extensions", {})
        if name == "hang" and not invited and self.otherwise == "refuse":
            reply = {"jsonrpc": "2.0", "id": received.message["id"], "error": NEEDS_TASKS}
            await respond(send, json.dumps(reply).encode(), status=400)
            return
        if name != "hang" or not (invited or self.otherwise == "task"):
            await super()._call(received, receive, send)
            return
        self.tasks["task-1"] = "working"
        await self._say(send, received, {"resultType": "task", **self._task("working")})

    async def other(self, received: Received, receive: Any, send: Any) -> None:
        method = received.message["method"]
        if method == "subscriptions/listen":
            await self._tell_of_tasks(received, receive, send)
            return
        assert received.headers["mcp-name"] == received.message["params"]["taskId"] == "task-1"
        if method == "tasks/update":
            self.answers |= received.message["params"]["inputResponses"]
            self.says = "working"
            await self._say(send, received, {"resultType": "complete"})
            return
        if method == "tasks/cancel":
            self.says = "cancelled"
            await self._say(send, received, {"resultType": "complete"})
            return
        members: dict[str, Any] = {"resultType": "complete", **self._task(self.says)}
        if self._released.is_set() and self.says == "working":
            members |= {"status": "completed", "result": json.loads(DONE)}
            members["lastUpdatedAt"] = self.ended_at
        await self._say(send, received, members)

    async def _tell_of_tasks(self, received: Received, receive: Any, send: Any) -> None:
        if not self.tells:
            error = {"code": -32601, "message": "It tells of nothing."}
            reply = {"jsonrpc": "2.0", "id": received.message["id"], "error": error}
            await respond(send, json.dumps(reply).encode(), status=404)
            return
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        named = {"_meta": {"io.modelcontextprotocol/subscriptionId": received.message["id"]}}
        listened = {"notifications": received.message["params"]["notifications"]}
        method = "notifications/subscriptions/acknowledged"
        await send(_notice(method, named | listened))
        if await self._released_before_gone(receive):
            await send(_notice("notifications/tasks", named | self._task("completed")))
            await receive()

    async def _say(self, send: Any, received: Received, members: dict[str, Any]) -> None:
        await self._result(send, received, json.dumps(members).encode())

    def _task(self, status: str) -> dict[str, Any]:
        asked = {
            "method": "elicitation/create",
            "params": {"message": "How many bags?", "requestedSchema": {"type": "object"}},
        }
        return {
            **({"inputRequests": {"bags": asked}} if status == "input_required" else {}),
            "taskId": "task-1",
            "status": status,
            "statusMessage": "Counting passengers.",
            "createdAt": TIME,
            "lastUpdatedAt": TIME,
            "ttlMs": 60_000,
            "pollIntervalMs": self.poll_ms,
        }


def _notice(method: str, params: dict[str, Any]) -> dict[str, Any]:
    note = {"jsonrpc": "2.0", "method": method, "params": params}
    body = b"data: %b\n\n" % json.dumps(note).encode()
    return {"type": "http.response.body", "body": body, "more_body": True}
