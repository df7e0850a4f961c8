"""A chat endpoint that speaks the wire format of OpenAI's chat completions and of Anthropic's
messages, following a script.

It is as strict as the real one about what it is sent: names of tools, answers to every tool call,
a key. What it answers was written before by the test, step by step.
"""

import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from anyio.from_thread import start_blocking_portal

KEY = "sk-only-for-tests"
TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
ARGUMENT_NAME = re.compile(r"[a-zA-Z0-9_.-]{1,64}")
Json = dict[str, Any]


@dataclass
class Step:
    """One answer: a status, headers, and a body that is a completion or an error."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)


def answers(text: str, finish_reason: str = "stop") -> Step:
    return completion({"role": "assistant", "content": text}, finish_reason)


def wants(*calls: tuple[str, Any], saying: str | None = None) -> Step:
    """Tool calls: (name, arguments), where arguments given as text are sent as they are."""
    tool_calls = [
        {
            "id": f"call_{number}",
            "type": "function",
            "function": {
                "name": name,
                "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
            },
        }
        for number, (name, arguments) in enumerate(calls)
    ]
    message = {"role": "assistant", "content": saying, "tool_calls": tool_calls}
    return completion(message, "tool_calls")


def completion(message: Json, finish_reason: str) -> Step:
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish_reason}
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
    return Step(
        body={
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1_795_000_000,
            "model": "scripted",
            "choices": [choice],
            "usage": usage,
        }
    )


def parts(*content: Json, stop: str = "end_turn") -> Step:
    """An answer in Anthropic's form."""
    usage = {"input_tokens": 100, "output_tokens": 20}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted"}
    return Step(body={**message, "content": [*content], "stop_reason": stop, "usage": usage})


def text_part(text: str) -> Json:
    return {"type": "text", "text": text}


def use_part(number: int, name: str, **arguments: Any) -> Json:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": arguments}


def refuses(status: int, message: str, code: str, **headers: str) -> Step:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Step(status, {"error": error}, named)


@dataclass
class ChatServer:
    script: list[Step]
    requests: list[Json] = field(default_factory=list)
    url: str = ""

    async def complete(self, request: web.Request) -> web.Response:
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            return respond(refuses(401, "Incorrect API key provided.", "invalid_api_key"))
        body = await request.json()
        self.requests.append(body)
        if wrong := what_is_wrong_with(body):
            return respond(refuses(400, wrong, "invalid_value"))
        if not self.script:
            return respond(refuses(500, "The script is at its end.", "script_over"))
        return respond(self.script.pop(0))

    async def message(self, request: web.Request) -> web.Response:
        if request.headers.get("x-api-key") != KEY:
            return respond(refuses(401, "invalid x-api-key", "authentication_error"))
        body = await request.json()
        self.requests.append(body)
        if not request.headers.get("anthropic-version"):
            return respond(refuses(400, "anthropic-version: required", "invalid_request_error"))
        if wrong := wrong_parts(body):
            return respond(refuses(400, wrong, "invalid_request_error"))
        return respond(self.script.pop(0))

    def told(self) -> dict[str, str]:
        """What the latest request says that the tools returned, by tool call."""
        messages = self.requests[-1]["messages"]
        return {
            each["tool_call_id"]: each["content"] for each in messages if each["role"] == "tool"
        }

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self.complete)
        app.router.add_post("/v1/v1/messages", self.message)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        try:
            yield
        finally:
            await runner.cleanup()


@contextmanager
def chat_server(*script: Step) -> Iterator[ChatServer]:
    server = ChatServer(list(script))
    with start_blocking_portal() as portal, portal.wrap_async_context_manager(server.serving()):
        yield server


def respond(step: Step) -> web.Response:
    if isinstance(step.body, str):
        return web.Response(status=step.status, text=step.body, headers=step.headers)
    return web.json_response(step.body, status=step.status, headers=step.headers)


def what_is_wrong_with(body: Json) -> str | None:
    for index, tool in enumerate(body.get("tools", [])):
        if not TOOL_NAME.fullmatch(tool["function"]["name"]):
            return f"Invalid 'tools[{index}].function.name': does not match pattern."
        if wrong := wrong_argument(tool["function"]["parameters"]):
            return f"Invalid 'tools[{index}].function.parameters.properties': '{wrong}'"
        if tool["function"]["parameters"].get("type") != "object":
            return f"Invalid 'tools[{index}].function.parameters': not an object schema."
    if not body.get("model"):
        return "You must provide a model parameter."
    return unanswered_call(body["messages"])


def wrong_argument(schema: Json) -> str | None:
    names = schema.get("properties", {})
    return next((name for name in names if not ARGUMENT_NAME.fullmatch(name)), None)


def unanswered_call(messages: list[Json]) -> str | None:
    waiting: list[str] = []
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                return "messages with role 'tool' must follow one with 'tool_calls'."
            waiting.remove(message["tool_call_id"])
        elif waiting:
            break
        waiting += [call["id"] for call in message.get("tool_calls", [])]
    return f"These tool_call_ids had no response: {', '.join(waiting)}" if waiting else None


def wrong_parts(body: Json) -> str | None:
    """Anthropic's rules: turns of both sides after each other, and a result for each tool use."""
    for index, tool in enumerate(body.get("tools", [])):
        if not TOOL_NAME.fullmatch(tool["name"]) or "input_schema" not in tool:
            return f"tools.{index}: invalid"
        if wrong_argument(tool["input_schema"]):
            said = "input_schema.properties: Property keys should match pattern"
            return f"tools.{index}.custom.{said} '{ARGUMENT_NAME.pattern}'"
    if not isinstance(body.get("max_tokens"), int) or not isinstance(body.get("system"), str):
        return "max_tokens, system: required"
    waiting: list[str] = []
    for place, message in enumerate(body["messages"]):
        if message["role"] != ("user", "assistant")[place % 2] or not message["content"]:
            return f"messages.{place}: roles must alternate, and no message is empty"
        found = [one for one in message["content"] if one["type"] == "tool_result"]
        if sorted(one["tool_use_id"] for one in found) != sorted(waiting):
            return f"messages.{place}: tool_use ids without tool_result blocks"
        waiting = [one["id"] for one in message["content"] if one["type"] == "tool_use"]
    return None
