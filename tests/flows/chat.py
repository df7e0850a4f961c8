"""A model behind the chat API: as strict about tools as the real ones, and does as it is told.

What it refuses is what OpenAI's and Anthropic's answer with 400, by their documents and errors.
"""

import json
import re
from collections.abc import Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import jsonschema_rs
from aiohttp import web

Json = dict[str, Any]

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
MOST_TOOLS = 128
LONGEST_DESCRIPTION = 1024
# Neither takes these where a tool's arguments begin.
NOT_AT_THE_TOP = ("oneOf", "anyOf", "allOf", "enum", "not")
# What openai-agents tells a model instead of any error.
TRY_AGAIN = "Please try again."
COME_BACK = re.compile(r"call (countersign_\w+) with (\{.*?\})")


class Rejected(Exception):
    """The request is one that the real API would not take."""


@dataclass
class Chat:
    """Calls the tool that its user names and says what the tool said, word for word.

    The user's message is JSON: `{"call": NAME, "arguments": {…}}`, or `{"again": true}` to do what
    it was last told to do for the outcome. It does so of itself as often as `patience` says, and
    tries again once where it is told that.
    """

    url: str = ""
    rejected: list[str] = field(default_factory=list)
    # Names of the tools that the last request brought.
    offered: set[str] = field(default_factory=set)

    async def answer(self, request: web.Request) -> web.Response:
        body = await request.json()
        try:
            check(body)
        except Rejected as error:
            self.rejected.append(str(error))
            problem = {"message": str(error), "type": "invalid_request_error"}
            return web.json_response({"error": problem}, status=400)
        self.offered = {tool["function"]["name"] for tool in body.get("tools", ())}
        return web.json_response(completion(body["model"], reply(body["messages"])))

    @asynccontextmanager
    async def serving(self) -> Any:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", self.answer)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        try:
            yield self
        finally:
            await runner.cleanup()


def check(body: Json) -> None:
    tools = [tool["function"] for tool in body.get("tools", ())]
    if len(tools) > MOST_TOOLS:
        raise Rejected(f"'tools': array too long, {len(tools)}")
    for number, tool in enumerate(tools):
        try:
            check_tool(tool)
        except Rejected as error:
            raise Rejected(f"'tools[{number}].function', {tool['name']!r}: {error}") from error
    names = [tool["name"] for tool in tools]
    if len(set(names)) < len(names):
        raise Rejected("'tools': tool names must be unique")
    check_answered(body["messages"])


def check_tool(tool: Json) -> None:
    if not NAME.fullmatch(tool["name"]):
        raise Rejected(f"'name' does not match {NAME.pattern}")
    if len(tool.get("description") or "") > LONGEST_DESCRIPTION:
        raise Rejected("'description': string too long")
    parameters = tool.get("parameters", {"type": "object", "properties": {}})
    if parameters.get("type") != "object" or set(parameters) & set(NOT_AT_THE_TOP):
        raise Rejected("'parameters' must be of type object, without oneOf and the like")
    try:
        jsonschema_rs.meta.validate(parameters)
    except jsonschema_rs.ValidationError as error:
        raise Rejected(f"'parameters': {error.message}") from error
    for schema in subschemas(parameters):
        if schema.get("type") == "array" and "items" not in schema:
            raise Rejected("'parameters': array schema missing items")
        if schema.get("type") == "object" and "properties" not in schema:
            raise Rejected("In context=(), object schema missing properties")
        if tool.get("strict") and schema.get("type") == "object":
            check_strict(schema)


# Of the arguments themselves, by the API's own words.
ARGUMENT = re.compile(r"^[a-zA-Z0-9_.-]{1,64}$")


def check_anthropic(tool: Json) -> None:
    """A tool of the Messages API."""
    schema = tool["input_schema"]
    if not NAME.fullmatch(tool["name"]):
        raise Rejected("tools.0.custom.name: String should match pattern")
    if schema.get("type") != "object" or set(schema) & {"oneOf", "anyOf", "allOf"}:
        raise Rejected("input_schema does not support oneOf, allOf, or anyOf at the top level")
    try:
        jsonschema_rs.Draft202012Validator(schema)
    except jsonschema_rs.ValidationError as error:
        raise Rejected(f"JSON schema is invalid. It must match draft 2020-12: {error}") from error
    for name in schema.get("properties", ()):
        if not ARGUMENT.fullmatch(name):
            raise Rejected(
                f"tools.0.custom.input_schema.properties: Property keys should match pattern "
                f"'{ARGUMENT.pattern}'"
            )


def check_strict(schema: Json) -> None:
    every = set(schema.get("properties", ()))
    if schema.get("additionalProperties") is not False or set(schema.get("required", ())) != every:
        raise Rejected("'parameters': strict wants every property required, and no others")


def subschemas(schema: Any) -> Iterator[Json]:
    if isinstance(schema, dict):
        yield schema
        for value in schema.values():
            yield from subschemas(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from subschemas(value)


def check_answered(messages: list[Json]) -> None:
    """Every call of a tool is followed by its answer."""
    open_calls: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                raise Rejected("'messages': a tool's message without a call before it")
            open_calls.remove(message["tool_call_id"])
        elif open_calls:
            raise Rejected(f"'messages': no answer to {sorted(open_calls)}")
        open_calls |= {call["id"] for call in message.get("tool_calls") or ()}


def reply(messages: list[Json]) -> Json:
    turns = [number for number, message in enumerate(messages) if message["role"] == "user"]
    wish = json.loads(text_of(messages[turns[-1]]))
    heard = [text_of(message) for message in messages if message["role"] == "tool"]
    of_turn = [text_of(message) for message in messages[turns[-1] :] if message["role"] == "tool"]
    if not of_turn:
        return calling(messages, *(told_to(heard) if "again" in wish else wished(wish)))
    if TRY_AGAIN in of_turn[-1] and of_turn[-1:] != of_turn[-2:-1]:
        return calling(messages, *last_call(messages))
    came_back = sum(1 for text in of_turn if COME_BACK.search(text))
    if COME_BACK.search(of_turn[-1]) and came_back <= wish.get("patience", 0):
        return calling(messages, *told_to(heard))
    return {"role": "assistant", "content": of_turn[-1]}


def wished(wish: Json) -> tuple[str, str]:
    return wish["call"], json.dumps(wish["arguments"])


def last_call(messages: list[Json]) -> tuple[str, str]:
    (call,) = [message for message in messages if message.get("tool_calls")][-1]["tool_calls"]
    return call["function"]["name"], call["function"]["arguments"]


def told_to(heard: list[str]) -> tuple[str, str]:
    told = [found for text in heard for found in COME_BACK.findall(text)]
    assert told, heard
    name, arguments = told[-1]
    return name, arguments


def calling(messages: list[Json], name: str, arguments: str) -> Json:
    function = {"name": name, "arguments": arguments}
    call = {"id": f"call_{len(messages)}", "type": "function", "function": function}
    return {"role": "assistant", "content": None, "tool_calls": [call]}


def text_of(message: Json) -> str:
    content = message["content"]
    if isinstance(content, str):
        return content
    return "".join(part["text"] for part in content)


def completion(model: str, message: Json) -> Json:
    why = "tool_calls" if "tool_calls" in message else "stop"
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_780_000_000,
        "model": model,
        "choices": [{"index": 0, "message": message, "finish_reason": why, "logprobs": None}],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }
