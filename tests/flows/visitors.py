"""Real clients of others, behind one face: list, call, hear progress, change one's mind.

Cancelling the task that awaits `call` is what a host does whose user presses Stop.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import aiohttp
import httpx2
import mcp_types as types
from mcp import Client, MCPError
from mcp.client import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client

from tests.clients import environment_of
from tests.conformance.suite import node as node_22
from tests.flows.servers import INSPECTOR, NODE
from tests.gateway.agent import LEGACY, Agent

SCRIPTS = Path(__file__).parent / "clients"
OnStep = Callable[[dict[str, Any]], object]
Json = dict[str, Any]


class Refused(Exception):
    """The answer was a JSON-RPC error, or the client itself gave up."""

    def __init__(self, code: Any, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code, self.message = code, message


@dataclass(frozen=True)
class Hello:
    """What it learned when it came."""

    revision: str
    # What can be asked for: tools, resources and the like.
    can: set[str]


class Visitor(Protocol):
    # What it was asked to show its user.
    asked: list[Json]

    async def tools(self) -> list[Json]: ...

    async def call(self, tool: str, arguments: Json, on_step: OnStep | None = None) -> Json: ...


class Reader(Visitor, Protocol):
    async def hello(self) -> Hello: ...

    async def ask(self, method: str, params: Json) -> Json:
        """Of resources and prompts."""
        ...


class PythonVisitor:
    def __init__(self, url: str, token: str, mode: str) -> None:
        self.url, self.token = url, token
        self.asked: list[Json] = []
        self.mode = "legacy" if mode == "legacy" else "auto"
        self.opens = mode == "opens"

    @asynccontextmanager
    async def connected(self) -> AsyncIterator["PythonVisitor"]:
        headers = {"Authorization": f"Bearer {self.token}"}
        timeout = httpx2.Timeout(30, read=300)
        async with AsyncExitStack() as resources:
            http = await resources.enter_async_context(
                httpx2.AsyncClient(headers=headers, timeout=timeout)
            )
            callback = self._opened if self.opens else None
            client = Client(
                streamable_http_client(self.url, http_client=http),
                mode=self.mode,
                elicitation_callback=callback,
                client_info=types.Implementation(name="flows", version="1"),
            )
            self.client = await resources.enter_async_context(client)
            yield self

    async def hello(self) -> Hello:
        can = set(_json(self.client.server_capabilities))
        return Hello(str(self.client.protocol_version), can)

    async def _opened(
        self, context: ClientRequestContext, params: types.ElicitRequestParams
    ) -> types.ElicitResult:
        self.asked.append(_json(params))
        return types.ElicitResult(action="accept")

    async def tools(self) -> list[Json]:
        tools: list[Json] = []
        cursor = None
        while True:
            page = await self.client.list_tools(cursor=cursor)
            tools += map(_json, page.tools)
            cursor = page.next_cursor
            if cursor is None:
                return tools

    async def call(self, tool: str, arguments: Json, on_step: OnStep | None = None) -> Json:
        async def hear(progress: float, total: float | None, message: str | None) -> None:
            assert on_step is not None
            on_step({"progress": progress, "total": total, "message": message})

        try:
            result = await self.client.call_tool(
                tool, arguments, progress_callback=hear if on_step else None
            )
        except MCPError as error:
            raise Refused(error.code, error.message) from error
        return _json(result)

    async def ask(self, method: str, params: Json) -> Json:
        asking: dict[str, Callable[..., Any]] = {
            "resources/list": self.client.list_resources,
            "resources/templates/list": self.client.list_resource_templates,
            "resources/read": self.client.read_resource,
            "prompts/list": self.client.list_prompts,
            "prompts/get": self.client.get_prompt,
        }
        try:
            return _json(await asking[method](**params))
        except MCPError as error:
            raise Refused(error.code, error.message) from error


def _json(model: Any) -> Json:
    """As it came, without what the SDK's types add to it."""
    dumped: Json = model.model_dump(mode="json", by_alias=True, exclude_unset=True)
    return dumped


class ScriptVisitor:
    """A program of its own, driven by lines of JSON: see clients/serve.mjs."""

    def __init__(self, interpreter: str, script: str, url: str, token: str, mode: str) -> None:
        self.argv = [interpreter, str(SCRIPTS / script), url, token, mode]
        self.asked: list[Json] = []
        self._waiting: dict[int, tuple[asyncio.Future[Json], OnStep | None]] = {}

    @asynccontextmanager
    async def connected(self) -> AsyncIterator["ScriptVisitor"]:
        self._process = await asyncio.create_subprocess_exec(
            *self.argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=2**24,
        )
        assert self._process.stdout
        assert self._process.stderr
        complaints = asyncio.create_task(self._process.stderr.read())
        first = await self._process.stdout.readline()
        assert first, (await complaints).decode()
        said = json.loads(first)
        self._hello = Hello(said["revision"], set(said["can"]))
        reader = asyncio.create_task(self._read(self._process.stdout))
        try:
            yield self
        finally:
            await self._leave(reader, complaints)

    async def _leave(self, reader: asyncio.Task[None], complaints: asyncio.Task[bytes]) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        try:
            async with asyncio.timeout(60):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            raise
        await reader
        said = await complaints
        assert not said, said.decode()

    async def _read(self, stdout: asyncio.StreamReader) -> None:
        async for line in stdout:
            self._hear(json.loads(line))
        for answer, _ in self._waiting.values():
            if not answer.done():
                answer.set_exception(ConnectionError("The client ended."))

    def _hear(self, message: Json) -> None:
        if "asked" in message:
            self.asked.append(message["asked"])
            return
        answer, on_step = self._waiting[message.pop("id")]
        if "progress" in message:
            assert on_step is not None
            on_step(message["progress"])
        elif not answer.done():
            answer.set_result(message)

    async def _ask(self, request: Json, on_step: OnStep | None = None) -> Json:
        number = len(self._waiting) + 1
        answer: asyncio.Future[Json] = asyncio.get_running_loop().create_future()
        self._waiting[number] = answer, on_step
        await self._write({"id": number, "progress": on_step is not None, **request})
        try:
            message = await answer
        except asyncio.CancelledError:
            await self._write({"abort": number})
            raise
        if "error" in message:
            raise Refused(**message["error"])
        return message

    async def _write(self, message: Json) -> None:
        assert self._process.stdin
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        await self._process.stdin.drain()

    async def hello(self) -> Hello:
        return self._hello

    async def tools(self) -> list[Json]:
        tools: list[Json] = (await self._ask({}))["tools"]
        return tools

    async def call(self, tool: str, arguments: Json, on_step: OnStep | None = None) -> Json:
        answer = await self._ask({"name": tool, "arguments": arguments}, on_step)
        result: Json = answer["result"]
        return result

    async def call_as_task(self, tool: str, arguments: Json) -> Json:
        """FastMCP alone: with a handle that it may look at, which it does once."""
        answer = await self._ask({"name": tool, "arguments": arguments, "task": True})
        result: Json = answer["result"]
        return result

    async def ask(self, method: str, params: Json) -> Json:
        result: Json = (await self._ask({"method": method, "params": params}))["result"]
        return result


class RawVisitor:
    """No SDK at all: the requests that a program of the spring of 2025 would write."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.asked: list[Json] = []

    async def hello(self) -> Hello:
        said = (await self.agent.begin()).result
        return Hello(said["protocolVersion"], set(said["capabilities"]))

    async def tools(self) -> list[Json]:
        tools: list[Json] = (await self.agent.ask("tools/list")).result["tools"]
        return tools

    async def call(self, tool: str, arguments: Json, on_step: OnStep | None = None) -> Json:
        params = {"name": tool, "arguments": arguments}
        token = "how-far" if on_step else None
        message = await self.agent.message("tools/call", params, token=token)
        try:
            last = await self._heard(message, on_step)
        except asyncio.CancelledError:
            await self._take_back(message["id"])
            raise
        if "error" in last:
            raise Refused(last["error"]["code"], last["error"]["message"])
        result: Json = last["result"]
        return result

    async def ask(self, method: str, params: Json) -> Json:
        last = (await self.agent.ask(method, params)).last
        if "error" in last:
            raise Refused(last["error"]["code"], last["error"]["message"])
        result: Json = last["result"]
        return result

    async def _heard(self, message: Json, on_step: OnStep | None) -> Json:
        async with self.agent.open(message) as response:
            if response.content_type == "application/json":
                whole: Json = await response.json()
                return whole
            async for line in response.content:
                if not line.startswith(b"data:"):
                    continue
                said: Json = json.loads(line[5:])
                if "id" in said:
                    return said
                if on_step and said["method"] == "notifications/progress":
                    on_step(
                        {key: said["params"].get(key) for key in ("progress", "total", "message")}
                    )
        raise ConnectionError("The stream ended before the answer.")

    async def _take_back(self, request_id: Any) -> None:
        params = {"requestId": request_id}
        said = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
        await self.agent.post(said, headers=self.agent.headers(said))


class InspectorVisitor:
    """The Inspector's command line: each question is a program of its own."""

    def __init__(self, url: str, token: str, *, era: str) -> None:
        """`era`: "" for the one that it speaks unless it is told to."""
        self.asked: list[Json] = []
        self._argv = [
            *(node_22(), str(INSPECTOR), "--cli", url, "--transport", "http"),
            *(["--protocol-era", era] if era else []),
            *("--header", f"Authorization: Bearer {token}"),
        ]

    async def hello(self) -> Hello:
        said = await self._run("--method", "initialize")
        return Hello(said["protocolVersion"], set(said["capabilities"]))

    async def tools(self) -> list[Json]:
        tools: list[Json] = (await self._run("--method", "tools/list"))["tools"]
        return tools

    async def call(self, tool: str, arguments: Json, on_step: OnStep | None = None) -> Json:
        given = [f"{name}={_as_argument(value)}" for name, value in arguments.items()]
        pairs = ["--tool-arg", *given] if given else []
        return await self._run("--method", "tools/call", "--tool-name", tool, *pairs)

    async def ask(self, method: str, params: Json) -> Json:
        given = [f"{name}={value}" for name, value in params.get("arguments", {}).items()]
        more = ["--uri", params["uri"]] if "uri" in params else []
        more += ["--prompt-name", params["name"]] if "name" in params else []
        more += ["--prompt-args", *given] if given else []
        return await self._run("--method", method, *more)

    async def _run(self, *more: str) -> Json:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *self._argv, *more, stdin=asyncio.subprocess.DEVNULL, stdout=pipe, stderr=pipe
        )
        try:
            out, complaint = await process.communicate()
        except asyncio.CancelledError:
            process.terminate()
            await process.wait()
            raise
        try:
            answer: Json = json.loads(out)
        except ValueError:
            raise Refused(process.returncode, complaint.decode()) from None
        return answer


def _as_argument(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


CLIENTS = (
    "python",
    "python-legacy",
    "python-opens",
    "typescript",
    "typescript-legacy",
    "typescript-opens",
    "typescript-v1",
    "fastmcp",
    "inspector",
    "raw",
)


@asynccontextmanager
async def visiting(client: str, url: str, token: str) -> AsyncIterator[Reader]:
    """`-legacy`: with a handshake; `-opens`: can show its user a page; `-v1`, `-v1.22`: the earlier
    SDK; `-default`: as it is without any option."""
    language, _, mode = client.partition("-")
    if language == "python":
        async with PythonVisitor(url, token, mode).connected() as visitor:
            yield visitor
        return
    if language == "inspector":
        yield InspectorVisitor(url, token, era={"": "modern", "default": ""}[mode])
        return
    if language == "raw":
        async with aiohttp.ClientSession() as session:
            yield RawVisitor(Agent(session, url, token, LEGACY[-1], client="flows"))
        return
    interpreter, script = NODE, "sdk.mjs" if mode.startswith("v1") else "client.mjs"
    if language == "fastmcp":
        interpreter = str(environment_of("fastmcp") / "bin" / "python")
        script = "fastmcp_client.py"
    driven = ScriptVisitor(interpreter, script, url, token, mode or "auto")
    async with driven.connected() as other:
        yield other
