"""An agent: a model that chooses tools and uses them through Countersign until it can answer.

    export OPENAI_BASE_URL=http://127.0.0.1:11434/v1 OPENAI_API_KEY=… OPENAI_MODEL=…
    export COUNTERSIGN_URL=http://127.0.0.1:8001/mcp/default COUNTERSIGN_TOKEN=csa_…
    python examples/agent.py "Who approves a refund of 3,000 crowns? Mail it to office@example.org."

Any endpoint that speaks OpenAI's chat completions will do; with --form anthropic one that speaks
Anthropic's messages, with ANTHROPIC_BASE_URL, ANTHROPIC_API_KEY and ANTHROPIC_MODEL. Without a
question it is a dialogue, until you type "exit".

Ends with 0 and the answer, or with: 2 a setting is missing, 3 Countersign cannot be used, 4 the
chat endpoint refuses the key, 5 it refuses more requests, 6 it fails otherwise, 7 no answer after
--max-turns.
"""

import argparse
import asyncio
import hashlib
import json
import os
import re
import sys
import textwrap
import time
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import httpx2
from mcp import Client, InputRequiredRoundsExceededError, MCPError
from mcp.client import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from mcp_types import (
    CallToolResult,
    ContentBlock,
    ElicitRequestParams,
    ElicitRequestURLParams,
    ElicitResult,
    EmbeddedResource,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
)

Message = dict[str, Any]

SYSTEM = {
    "en": "You answer questions with the help of tools. Never invent what a tool could tell you.",
    "zh": "你借助工具回答问题。凡是工具能够告诉你的内容，绝不编造。请用中文回答。",
}
EXIT = ("exit", "quit", "退出")

# With this tool an agent asks what became of a call that a person has to decide.
AWAIT_CALL = "countersign_await_call"
CALL_ID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
ARGUMENT = re.compile(r"[A-Za-z0-9_.-]{1,64}")
TRIES, LONGEST_PAUSE = 4, 30.0
# A round of waiting for a person takes about 45 seconds.
ROUNDS_OF_WAITING = 80
LONGEST_RESULT = 20_000


class AgentFailed(Exception):
    def __init__(self, exit_code: int, reason: str) -> None:
        super().__init__(reason)
        self.exit_code = exit_code


def say(who: str, words: str) -> None:
    lines = textwrap.indent(words.strip(), " " * 10).strip()
    print(f"{who:9} {lines}", flush=True)


# The chat endpoint


@dataclass
class Chat:
    """A chat endpoint in the dialect of OpenAI, which is also how the conversation is kept."""

    http: aiohttp.ClientSession
    url: str
    model: str

    path = "/chat/completions"

    @staticmethod
    def headers(key: str) -> dict[str, str]:
        return {"Authorization": f"Bearer {key}"}

    async def answer(self, messages: list[Message], functions: list[Message]) -> Message:
        """The model's next message; it holds an answer or tool calls."""
        body = {"model": self.model, "messages": messages}
        if functions:
            body |= {"tools": functions, "tool_choice": "auto"}
        reply = await self._post(body)
        try:
            choice = reply["choices"][0]
            message, reason = choice["message"], choice.get("finish_reason")
            calls = message.get("tool_calls") or []
            known = {"role": "assistant", "content": message.get("content")}
        except (LookupError, TypeError, AttributeError) as error:
            raise AgentFailed(6, f"{self.url} answered without a message.") from error
        if reason in ("length", "content_filter"):
            raise AgentFailed(6, f"The model was cut short ({reason}).")
        return known | ({"tool_calls": calls} if calls else {})

    async def _post(self, body: Message) -> Any:
        attempt = 0
        while True:
            attempt += 1
            try:
                async with self.http.post(self.url, json=body) as response:
                    if response.ok:
                        return await response.json(content_type=None)
                    pause = await self._pause_after(response, attempt)
            except (aiohttp.ClientError, TimeoutError) as error:
                raise AgentFailed(6, f"{self.url} cannot be reached: {error}") from error
            except ValueError as error:
                raise AgentFailed(6, f"{self.url} did not answer with JSON.") from error
            say("wait", f"The chat endpoint answered {response.status}; once more in {pause:g} s.")
            await asyncio.sleep(pause)

    async def _pause_after(self, response: aiohttp.ClientResponse, attempt: int) -> float:
        """How long to wait before another attempt; raises if none would help."""
        reason = await reason_of(response)
        if response.status in (401, 403):
            raise AgentFailed(4, f"{self.url} refuses the key: {reason}")
        pause = seconds_asked_for(response, default=2.0**attempt)
        busy = response.status == 429 or response.status >= 500
        if busy and attempt < TRIES and pause <= LONGEST_PAUSE and "quota" not in reason:
            return pause
        code = 5 if response.status == 429 else 6
        raise AgentFailed(code, f"{self.url} answered {response.status}: {reason}")


class AnthropicChat(Chat):
    """A chat endpoint in the dialect of Anthropic: parts of messages in place of messages."""

    path = "/v1/messages"

    @staticmethod
    def headers(key: str) -> dict[str, str]:
        return {"x-api-key": key, "anthropic-version": "2023-06-01"}

    async def answer(self, messages: list[Message], functions: list[Message]) -> Message:
        system, *said = messages
        body = {"model": self.model, "max_tokens": 4096, "system": system["content"]}
        body["messages"] = as_parts(said)
        if functions:
            body["tools"] = [as_anthropic_tool(one["function"]) for one in functions]
        reply = await self._post(body)
        try:
            parts, reason = reply["content"], reply.get("stop_reason")
            text = "".join(one["text"] for one in parts if one["type"] == "text")
            calls = [as_call(one) for one in parts if one["type"] == "tool_use"]
        except (LookupError, TypeError, AttributeError) as error:
            raise AgentFailed(6, f"{self.url} answered without a message.") from error
        if reason in ("max_tokens", "refusal"):
            raise AgentFailed(6, f"The model was cut short ({reason}).")
        known = {"role": "assistant", "content": text or None}
        return known | ({"tool_calls": calls} if calls else {})


def as_parts(messages: list[Message]) -> list[Message]:
    """Answers to tool calls are one message of the user, with a part for each."""
    found: list[Message] = []
    for message in messages:
        match message:
            case {"role": "tool"}:
                named = {"tool_use_id": message["tool_call_id"], "content": message["content"]}
                part = {"type": "tool_result", **named}
                if found[-1]["role"] == "user":
                    found[-1]["content"].append(part)
                else:
                    found.append({"role": "user", "content": [part]})
            case {"role": role}:
                text = message.get("content")
                parts = [{"type": "text", "text": text}] if text else []
                parts += map(as_tool_use, message.get("tool_calls", []))
                found.append({"role": role, "content": parts})
    return found


def as_tool_use(call: Message) -> Message:
    function = call["function"]
    arguments = json.loads(function["arguments"])
    return {"type": "tool_use", "id": call["id"], "name": function["name"], "input": arguments}


def as_call(part: Message) -> Message:
    function = {"name": part["name"], "arguments": json.dumps(part["input"], ensure_ascii=False)}
    return {"id": part["id"], "type": "function", "function": function}


def as_anthropic_tool(function: Message) -> Message:
    about = {"name": function["name"], "description": function["description"]}
    return {**about, "input_schema": function["parameters"]}


FORMS = {"openai": Chat, "anthropic": AnthropicChat}


async def reason_of(response: aiohttp.ClientResponse) -> str:
    body = await response.text(errors="replace")
    try:
        error = json.loads(body)["error"]
        return f"{error['message']} ({error.get('code') or error.get('type')})"
    except (ValueError, LookupError, TypeError, AttributeError):
        return body[:200] or "no reason given"


def seconds_asked_for(response: aiohttp.ClientResponse, default: float) -> float:
    try:
        return float(response.headers["Retry-After"])
    except (KeyError, ValueError):
        return default


# The tools


@dataclass
class Toolbox:
    """The tools of a toolset, under names that the chat endpoint allows."""

    client: Client
    patience: float
    names: dict[str, str] = field(default_factory=dict)
    # By the tool's alias: the arguments' own names by what stands for them.
    arguments: dict[str, dict[str, str]] = field(default_factory=dict)
    functions: list[Message] = field(default_factory=list)

    async def fill(self) -> None:
        tools = await every_tool(self.client)
        self.names = names_for_chat(tool.name for tool in tools)
        aliases = {name: alias for alias, name in self.names.items()}
        self.arguments = {
            aliases[tool.name]: arguments_for_chat(tool.input_schema.get("properties", {}))
            for tool in tools
        }
        known = [(aliases[tool.name], tool) for tool in tools]
        self.functions = [as_function(alias, one, self.arguments[alias]) for alias, one in known]

    async def run(self, call: Message) -> Message:
        """Does what the model asked for; whatever goes wrong is told to the model."""
        name = str(call.get("function", {}).get("name"))
        try:
            name, arguments = self._understand(call)
            say("call", f"{name} {json.dumps(arguments, ensure_ascii=False)}")
            words = as_text(await self._result(name, arguments))
        except MCPError as error:
            words = f"Error {error.code}: {error.message}"
        except InputRequiredRoundsExceededError:
            words = "Error: nobody has decided on this call. It may still be approved later."
        # RuntimeError: what the SDK raises for a result that does not fit its outputSchema.
        except (ValueError, RuntimeError) as error:
            words = f"Error: {error}"
        say("result", f"{name}: {textwrap.shorten(words, 600, placeholder=' …')}")
        return {"role": "tool", "tool_call_id": call.get("id"), "content": words[:LONGEST_RESULT]}

    def _understand(self, call: Message) -> tuple[str, dict[str, Any]]:
        function = call.get("function", {})
        alias, text = str(function.get("name")), function.get("arguments") or "{}"
        if alias not in self.names:
            raise ValueError(f"there is no tool {alias!r}.")
        try:
            arguments: dict[str, Any] = json.loads(text)
        except ValueError as error:
            raise ValueError(f"the arguments are not JSON: {error}.") from error
        if not isinstance(arguments, dict):
            raise ValueError("the arguments are not a JSON object.")
        own = self.arguments[alias]
        return self.names[alias], {own.get(name, name): value for name, value in arguments.items()}

    async def _result(self, name: str, arguments: dict[str, Any]) -> CallToolResult:
        progress = tells_new_messages(name)
        result = await self.client.call_tool(name, arguments, progress_callback=progress)
        give_up = time.monotonic() + self.patience
        while time.monotonic() < give_up and (call_id := self._not_decided(result)):
            say("wait", f"{name}: {content_as_text(result)}")
            # Countersign holds this until there is news; the pause is for a server that does not.
            await asyncio.sleep(0.5)
            result = await self.client.call_tool(AWAIT_CALL, {"call_id": call_id})
        return result

    def _not_decided(self, result: CallToolResult) -> str | None:
        """The id of a call that has no outcome yet: its answer says how to ask for one."""
        words = content_as_text(result)
        if AWAIT_CALL not in self.names.values() or AWAIT_CALL not in words:
            return None
        found = CALL_ID.search(words)
        return found[0] if found and result.is_error else None


async def every_tool(client: Client) -> list[Tool]:
    page = await client.list_tools()
    tools = page.tools
    while page.next_cursor is not None:
        page = await client.list_tools(cursor=page.next_cursor)
        tools = tools + page.tools
    return tools


def names_for_chat(names: Iterable[str]) -> dict[str, str]:
    """Chat endpoints allow 64 of [A-Za-z0-9_-]: gives each name one that fits, and the way back."""
    aliases: dict[str, str] = {}
    for name in names:
        alias = re.sub(r"[^A-Za-z0-9_-]", "_", name.replace(".", "__"))
        if len(alias) > 64 or alias in aliases:
            alias = f"{alias[:55]}_{hashlib.sha256(name.encode()).hexdigest()[:8]}"
        aliases[alias] = name
    return aliases


def arguments_for_chat(names: Iterable[str]) -> dict[str, str]:
    """Names of arguments may hold anything; chat endpoints take 64 of [A-Za-z0-9_.-]."""
    wrong = [name for name in names if not ARGUMENT.fullmatch(name)]
    digests = {name: hashlib.sha256(name.encode()).hexdigest()[:8] for name in wrong}
    kept = {name: re.sub(r"[^A-Za-z0-9]+", "_", name)[:40].strip("_") for name in wrong}
    return {"_".join(filter(None, ["arg", kept[name], digests[name]])): name for name in wrong}


def as_function(alias: str, tool: Tool, own_names: dict[str, str]) -> Message:
    description = "\n".join(filter(None, [tool.title, tool.description]))
    parameters = with_names(tool.input_schema, {name: other for other, name in own_names.items()})
    function = {"name": alias, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


def with_names(schema: Message, names: dict[str, str]) -> Message:
    """The schema with other names of arguments, whose descriptions begin with their own."""
    if not names:
        return schema
    properties = {
        names.get(name, name): as_described(name, one) if name in names else one
        for name, one in schema["properties"].items()
    }
    required = [names.get(name, name) for name in schema.get("required", [])]
    return {**schema, "properties": properties, "required": required}


def as_described(name: str, schema: Any) -> Message:
    known = schema if isinstance(schema, dict) else {}
    return {**known, "description": ": ".join(filter(None, [name, known.get("description")]))}


def as_text(result: CallToolResult) -> str:
    words = content_as_text(result)
    return f"Error: {words}" if result.is_error else words


def content_as_text(result: CallToolResult) -> str:
    words = "\n".join(map(block_as_text, result.content))
    if not words and result.structured_content is not None:
        words = json.dumps(result.structured_content, ensure_ascii=False)
    return words


def block_as_text(block: ContentBlock) -> str:
    match block:
        case TextContent(text=text):
            return text
        case EmbeddedResource(resource=TextResourceContents(text=text)):
            return text
        case ResourceLink(uri=uri, name=name):
            return f"[{name}: {uri}]"
    return f"[{block.type}, which cannot be shown as text]"


def tells_new_messages(name: str) -> Callable[..., Any]:
    told = None

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        nonlocal told
        if message != told:
            told = message
            of_all = f" of {total:g}" if total else ""
            say("progress", f"{name}: {message} ({progress:g}{of_all})")

    return tell


async def show_link(context: ClientRequestContext, params: ElicitRequestParams) -> ElicitResult:
    """Shows the page where a person decides. Any other question to the agent's user is declined."""
    if not isinstance(params, ElicitRequestURLParams):
        return ElicitResult(action="decline")
    say("wait", f"{params.message} {params.url}")
    return ElicitResult(action="accept")


# The loop


@dataclass
class Dialogue:
    """Questions and answers, all of which the model is shown each time."""

    chat: Chat
    toolbox: Toolbox
    max_turns: int
    messages: list[Message]

    async def ask(self, question: str) -> str:
        self.messages.append({"role": "user", "content": question})
        for _ in range(self.max_turns):
            reply = await self.chat.answer(self.messages, self.toolbox.functions)
            self.messages.append(reply)
            calls = reply.get("tool_calls")
            if not calls:
                return reply["content"] or ""
            if reply["content"]:
                say("model", reply["content"])
            self.messages += await asyncio.gather(*map(self.toolbox.run, calls))
        raise AgentFailed(7, f"The model still wanted tools after {self.max_turns} turns.")

    async def go_on(self) -> None:
        """Asks what a person types, until they end it."""
        with suppress(EOFError):
            while (question := await read_question()) not in EXIT:
                if question:
                    say("answer", await self.ask(question))


async def read_question() -> str:
    return (await asyncio.to_thread(input, f"{'person':9} ")).strip()


async def connect(stack: AsyncExitStack, url: str, token: str) -> Client:
    statuses: list[int] = []

    async def remember(response: httpx2.Response) -> None:
        statuses.append(response.status_code)

    http = httpx2.AsyncClient(
        headers={"Authorization": f"Bearer {token}"},
        timeout=httpx2.Timeout(30, read=300),
        event_hooks={"response": [remember]},
    )
    await stack.enter_async_context(http)
    client = Client(
        streamable_http_client(url, http_client=http),
        elicitation_callback=show_link,
        input_required_max_rounds=ROUNDS_OF_WAITING,
    )
    try:
        return await stack.enter_async_context(client)
    except Exception as error:
        # The SDK does not say which status made it fail.
        if 401 in statuses or 403 in statuses:
            raise AgentFailed(3, f"{url} refuses the token.") from error
        raise AgentFailed(3, f"{url} cannot be used: {first_cause(error)}") from error


async def run(options: argparse.Namespace, settings: dict[str, str]) -> None:
    async with AsyncExitStack() as stack:
        url, token = settings["COUNTERSIGN_URL"], settings["COUNTERSIGN_TOKEN"]
        toolbox = Toolbox(await connect(stack, url, token), options.patience)
        await toolbox.fill()
        form = FORMS[options.form]
        base, key, model = (settings[name] for name in chat_settings(options.form))
        http = aiohttp.ClientSession(
            headers=form.headers(key), timeout=aiohttp.ClientTimeout(total=300)
        )
        await stack.enter_async_context(http)
        chat = form(http, base.rstrip("/") + form.path, model)
        system = {"role": "system", "content": SYSTEM[options.language]}
        dialogue = Dialogue(chat, toolbox, options.max_turns, [system])
        if options.question is None:
            await dialogue.go_on()
            return
        say("person", options.question)
        say("answer", await dialogue.ask(options.question))


def chat_settings(form: str) -> list[str]:
    return [f"{form.upper()}_{name}" for name in ("BASE_URL", "API_KEY", "MODEL")]


def first_cause(error: BaseException) -> BaseException:
    """Timeline, without the groups that concurrent code wraps it in."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("question", nargs="?", help="without, it is a dialogue")
    parser.add_argument("--form", choices=[*FORMS], default="openai", help="of the chat endpoint")
    parser.add_argument("--language", choices=[*SYSTEM], default="en", help="of the system prompt")
    parser.add_argument("--max-turns", type=int, default=10, help="(default: %(default)s)")
    parser.add_argument("--patience", type=float, default=3600, help="seconds to wait for a person")
    options = parser.parse_args()
    needed = [*chat_settings(options.form), "COUNTERSIGN_URL", "COUNTERSIGN_TOKEN"]
    missing = [name for name in needed if not os.environ.get(name)]
    if missing:
        parser.error(f"set {', '.join(missing)}")

    settings = {name: os.environ[name] for name in needed}
    try:
        asyncio.run(run(options, settings))
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        failure = first_cause(error)
        print(f"agent: {failure}", file=sys.stderr)
        if isinstance(failure, AgentFailed):
            return failure.exit_code
        if isinstance(failure, MCPError | httpx2.HTTPError):
            return 3
        raise
    return 0


if __name__ == "__main__":
    sys.exit(main())
