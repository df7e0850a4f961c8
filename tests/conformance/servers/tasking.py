"""The tools of the conformance suite that run as tasks of 2026-07-28, which this server keeps."""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import anyio
from mcp.server import Server, ServerRequestContext
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolRequestParams, CallToolResult, InputRequiredResult, RequestParams
from starlette.requests import Request

from tests.conformance.servers.questions import MISSING_CAPABILITY

EXTENSION = "io.modelcontextprotocol/tasks"
INVALID_PARAMS, INTERNAL_ERROR, HEADER_MISMATCH = -32602, -32603, -32020
POLL_MS, TTL_MS = 200, 600_000


def form(message: str, **properties: Any) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    params = {"message": message, "requestedSchema": schema}
    return {"method": "elicitation/create", "params": params}


TEXT, YES = {"type": "string"}, {"type": "boolean"}
NAME = form("What is your name?", name=TEXT)
ARGUMENTS: dict[str, dict[str, Any]] = {
    "greet": {"name": TEXT},
    "slow_compute": {"seconds": {"type": "number"}, "label": TEXT},
    "failing_job": {},
    "protocol_error_job": {},
    "confirm_delete": {"filename": TEXT},
    "multi_input": {},
    "test_tool_with_task": {},
}
# What each of them asks while it runs.
WANTED: dict[str, dict[str, Any]] = {
    "confirm_delete": {"confirm": form("Delete it?", confirm=YES)},
    "multi_input": {
        "first": form("The first?", name=TEXT, confirm=YES),
        "second": form("The second?", name=TEXT, confirm=YES),
    },
}
# Not for who cannot follow a task. The first that is listed is also called by who knows no tasks.
AS_TASK_ONLY = ARGUMENTS.keys() - {"confirm_delete", "greet", "slow_compute"}
LASTS_S = {"failing_job": 1.0, "protocol_error_job": 0.5, "test_tool_with_task": 3.0}


@dataclass
class Task:
    """How far it is, its clock says; nothing runs."""

    name: str
    says: str
    seconds: float
    wanted: dict[str, Any]
    id: str = field(default_factory=lambda: str(uuid4()))
    began: float = field(default_factory=time.monotonic)
    cancelled: bool = False

    def shown(self) -> dict[str, Any]:
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        times = {"createdAt": at, "lastUpdatedAt": at, "ttlMs": TTL_MS, "pollIntervalMs": POLL_MS}
        return {"taskId": self.id, **times, **self._state()}

    def _state(self) -> dict[str, Any]:
        if self.cancelled:
            return {"status": "cancelled"}
        if self.wanted:
            return {"status": "input_required", "inputRequests": self.wanted}
        if (past := time.monotonic() - self.began) < self.seconds:
            return {
                "status": "working",
                "statusMessage": f"Step {int(4 * past / self.seconds) + 1}",
            }
        if self.name == "protocol_error_job":
            error = {"code": INTERNAL_ERROR, "message": "It broke."}
            return {"status": "failed", "error": error}
        return {"status": "completed", "result": result(self.name, self.says)}

    def ended(self) -> bool:
        return self._state()["status"] in ("completed", "failed", "cancelled")


class About(RequestParams):
    task_id: str
    input_responses: dict[str, Any] | None = None


tasks: dict[str, Task] = {}


def tools() -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "description": f"Tool {name} of the suite.",
            "inputSchema": {"type": "object", "properties": properties},
        }
        for name, properties in ARGUMENTS.items()
    ]


def result(name: str, says: str) -> dict[str, Any]:
    content = [{"type": "text", "text": says}]
    return {"content": content, "isError": name == "failing_job", "resultType": "complete"}


async def call(ctx: ServerRequestContext[Any, Request], params: CallToolRequestParams) -> Any:
    name, given = params.name, params.arguments or {}
    seconds = float(given.get("seconds", LASTS_S.get(name, 0)))
    says = f"Hello, {given['name']}!" if name == "greet" else f"{name} is done."
    if name == "test_tool_with_task":
        answers: dict[str, Any] = params.input_responses or {}
        if "user_name" not in answers:
            requests: Any = {"user_name": NAME}
            return InputRequiredResult(input_requests=requests, request_state="asked")
        says = f"It is done for {answers['user_name']}."
    if name == "greet" or not _takes_tasks(ctx):
        return await _at_once(name, says, seconds)
    made = Task(name, says, seconds, dict(WANTED.get(name, {})))
    tasks[made.id] = made
    created = {key: value for key, value in made.shown().items() if key != "inputRequests"}
    return {"resultType": "task", **created, "status": "working"}


async def _at_once(name: str, says: str, seconds: float) -> CallToolResult:
    if name in AS_TASK_ONLY:
        raise _needs_tasks()
    await anyio.sleep(seconds)
    return CallToolResult.model_validate(result(name, says))


def _needs_tasks() -> MCPError:
    data: dict[str, Any] = {"requiredCapabilities": {"extensions": {EXTENSION: {}}}}
    return MCPError(MISSING_CAPABILITY, "This is for clients that can follow a task.", data)


def _takes_tasks(ctx: ServerRequestContext[Any, Request]) -> bool:
    known = ctx.session.client_capabilities
    return known is not None and EXTENSION in (known.extensions or {})


def _found(ctx: ServerRequestContext[Any, Request], params: About) -> Task:
    if not _takes_tasks(ctx):
        raise _needs_tasks()
    name = ctx.request.headers.get("mcp-name") if ctx.request else None
    if name is not None and name != params.task_id:
        raise MCPError(HEADER_MISMATCH, "Mcp-Name is not the task that is asked about.")
    if params.task_id not in tasks:
        raise MCPError(INVALID_PARAMS, "There is no such task.")
    return tasks[params.task_id]


async def _get(ctx: ServerRequestContext[Any, Request], params: About) -> dict[str, Any]:
    return {"resultType": "complete", **_found(ctx, params).shown()}


async def _update(ctx: ServerRequestContext[Any, Request], params: About) -> dict[str, Any]:
    task = _found(ctx, params)
    for key in params.input_responses or {}:
        task.wanted.pop(key, None)
    return {"resultType": "complete"}


async def _cancel(ctx: ServerRequestContext[Any, Request], params: About) -> dict[str, Any]:
    task = _found(ctx, params)
    task.cancelled = task.cancelled or not task.ended()
    return {"resultType": "complete"}


def serve(server: Server[Any]) -> None:
    server.extensions[EXTENSION] = {}
    server.add_request_handler("tasks/get", About, _get)
    server.add_request_handler("tasks/update", About, _update)
    server.add_request_handler("tasks/cancel", About, _cancel)
