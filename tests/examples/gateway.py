"""A stand-in for Countersign, small enough to see through: it holds calls and knows one token."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import anyio
import uvicorn
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolResult,
    ElicitRequest,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    ImageContent,
    InputRequiredResult,
    TextContent,
    Tool,
)
from pydantic import Field
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

TOKEN = "csa_only_for_tests"
CALL_ID = "0199f3a2-7c1e-7d52-9a31-5b7c6d1e2f30"
PAGE = "http://127.0.0.1:8000/approvals/42"
HELD = f"Not executed: pending approval. A person decides at {PAGE}. "
HELD += f'To get the outcome, call countersign_await_call with {{"call_id": "{CALL_ID}"}}.'
LONG_NAME = "a-server-with-a-rather-long-name.a_tool_whose_name_is_rather_long_as_well"
FORM = {"type": "object", "properties": {"colour": {"type": "string"}}}


def held() -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=HELD)], is_error=True)


class Gateway(MCPServer):
    async def list_tools(self) -> list[Tool]:
        tools = await super().list_tools()
        # The SDK's own server would not let a result out that does not fit.
        (lie,) = [tool for tool in tools if tool.name == "camera.lie"]
        lie.output_schema = {"type": "object", "required": ["size"]}
        return tools


def gateway() -> MCPServer:
    server = Gateway("gateway")
    arrived = [anyio.Event(), anyio.Event()]
    asked: list[str] = []

    @server.tool(name="calculator.add", title="Add")
    def add(a: float, b: float) -> float:
        """Add two numbers."""
        return a + b

    @server.tool(name="tickets.price")
    def price(città: Annotated[str, Field(description="A quay.")]) -> str:
        return f"To {città}: 62"

    @server.tool(name="calculator.fail")
    def fail() -> None:
        raise ToolError("no luck today")

    @server.tool(name="calculator.break")
    def break_protocol() -> None:
        raise MCPError(-32602, "arguments out of this world")

    @server.tool(name=LONG_NAME)
    def long_name() -> str:
        return "the long one"

    @server.tool(name="camera.shoot")
    def shoot() -> ImageContent:
        return ImageContent(type="image", data="AAAA", mime_type="image/png")

    @server.tool(name="camera.lie")
    def lie() -> CallToolResult:
        return CallToolResult(content=[], structured_content={"weight": 1})

    @server.tool(name="pair.meet")
    async def meet(place: int) -> str:
        arrived[place].set()
        with anyio.fail_after(10):
            await arrived[1 - place].wait()
        return "met"

    @server.tool(name="reports.write")
    async def write(ctx: Context) -> str:
        for step in range(3):
            await ctx.report_progress(step, 3, "Halfway" if step else "Starting")
        return "written"

    @server.tool(name="mailer.send_mail")
    def send_mail(subject: str) -> CallToolResult:
        return held()

    @server.tool(name="countersign_await_call")
    def await_call(call_id: str) -> CallToolResult:
        asked.append(call_id)
        sent = CallToolResult(content=[TextContent(type="text", text=f"sent, {call_id}")])
        return sent if len(asked) == 2 else held()

    @server.tool(name="mailer.shred")
    def shred(ctx: Context) -> CallToolResult | InputRequiredResult:
        if ctx.request_state == "waiting":
            return CallToolResult(content=[TextContent(type="text", text="shredded")])
        page = ElicitRequestURLParams(url=PAGE, message="A person decides:", elicitation_id=None)
        return InputRequiredResult(
            input_requests={"approval": ElicitRequest(params=page)}, request_state="waiting"
        )

    @server.tool(name="mailer.quiz")
    def quiz(ctx: Context) -> CallToolResult | InputRequiredResult:
        form = ElicitRequestFormParams(message="Which colour?", requested_schema=FORM)
        answers = ctx.input_responses
        if answers is None:
            return InputRequiredResult(input_requests={"colour": ElicitRequest(params=form)})
        answer = answers["colour"]
        assert isinstance(answer, ElicitResult)
        return CallToolResult(content=[TextContent(type="text", text=answer.action)])

    return server


def behind_token(app: ASGIApp) -> ASGIApp:
    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        headers = dict(scope.get("headers", []))
        if scope["type"] == "http" and headers.get(b"authorization") != f"Bearer {TOKEN}".encode():
            await Response("who are you?", 401)(scope, receive, send)
            return
        await app(scope, receive, send)

    return guarded


@contextmanager
def serving(server: MCPServer) -> Iterator[str]:
    """Its URL, once it listens."""
    app = behind_token(server.streamable_http_app())
    listening = socket.create_server(("127.0.0.1", 0))
    process = uvicorn.Server(uvicorn.Config(app, ws="none", log_config=None))
    thread = threading.Thread(target=process.run, args=[[listening]])
    thread.start()
    try:
        # The socket listens already: a request that comes early waits in its queue.
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
    finally:
        process.should_exit = True
        thread.join()
        listening.close()
