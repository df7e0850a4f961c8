"""An agent: a model that chooses tools and uses them through Countersign until it can answer.

    export OPENAI_BASE_URL=http://127.0.0.1:11434/v1 OPENAI_API_KEY=… OPENAI_MODEL=…
    export COUNTERSIGN_URL=http://127.0.0.1:8001/mcp/default COUNTERSIGN_TOKEN=csa_…
    python examples/agent.py "Who approves a refund of 3,000 crowns? Mail it to office@example.org."

Any endpoint that speaks OpenAI's chat completions will do. Ends with 0 and the answer, or with:
2 a setting is missing, 3 Countersign cannot be used, 4 the chat endpoint refuses the key, 5 it
refuses more requests, 6 it fails otherwise, 7 no answer after --max-turns.
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
from contextlib import AsyncExitStack
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

SYSTEM = "You answer questions with the help of tools. Never invent what a tool could tell you."
SETTINGS = ["OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_MODEL"]
SETTINGS += ["COUNTERSIGN_URL", "COUNTERSIGN_TOKEN"]

# With this tool an agent asks what became of a call that a person has to decide.
AWAIT_CALL = "countersign_await_call"
CALL_ID = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
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
    """A chat endpoint in the dialect of OpenAI."""

    http: aiohttp.ClientSession
    url: str
    model: str

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
    functions: list[Message] = field(default_factory=list)

    async def fill(self) -> None:
        tools = await every_tool(self.client)
        self.names = names_for_chat(tool.name for tool in tools)
        aliases = {name: alias for alias, name in self.names.items()}
        self.functions = [as_function(aliases[tool.name], tool) for tool in tools]

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
        alias, text = function.get("name"), function.get("arguments") or "{}"
        if alias not in self.names:
            raise ValueError(f"there is no tool {alias!r}.")
        try:
            arguments = json.loads(text)
        except ValueError as error:
            raise ValueError(f"the arguments are not JSON: {error}.") from error
        if not isinstance(arguments, dict):
            raise ValueError("the arguments are not a JSON object.")
        return self.names[alias], arguments

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


def as_function(alias: str, tool: Tool) -> Message:
    description = "\n".join(filter(None, [tool.title, tool.description]))
    function = {"name": alias, "description": description, "parameters": tool.input_schema}
    return {"type": "function", "function": function}


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


async def converse(chat: Chat, toolbox: Toolbox, question: str, max_turns: int) -> str:
    messages: list[Message] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": question},
    ]
    say("person", question)
    for _ in range(max_turns):
        reply = await chat.answer(messages, toolbox.functions)
        messages.append(reply)
        calls = reply.get("tool_calls")
        if not calls:
            return reply["content"] or ""
        if reply["content"]:
            say("model", reply["content"])
        messages += await asyncio.gather(*map(toolbox.run, calls))
    raise AgentFailed(7, f"The model still wanted tools after {max_turns} turns.")


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


async def run(question: str, settings: dict[str, str], max_turns: int, patience: float) -> None:
    async with AsyncExitStack() as stack:
        url, token = settings["COUNTERSIGN_URL"], settings["COUNTERSIGN_TOKEN"]
        toolbox = Toolbox(await connect(stack, url, token), patience)
        await toolbox.fill()
        http = aiohttp.ClientSession(
            headers={"Authorization": f"Bearer {settings['OPENAI_API_KEY']}"},
            timeout=aiohttp.ClientTimeout(total=300),
        )
        await stack.enter_async_context(http)
        completions = settings["OPENAI_BASE_URL"].rstrip("/") + "/chat/completions"
        chat = Chat(http, completions, settings["OPENAI_MODEL"])
        say("answer", await converse(chat, toolbox, question, max_turns))


def first_cause(error: BaseException) -> BaseException:
    """Timeline, without the groups that concurrent code wraps it in."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("question")
    parser.add_argument("--max-turns", type=int, default=10, help="(default: %(default)s)")
    parser.add_argument("--patience", type=float, default=3600, help="seconds to wait for a person")
    options = parser.parse_args()
    missing = [name for name in SETTINGS if not os.environ.get(name)]
    if missing:
        parser.error(f"set {', '.join(missing)}")

    settings = {name: os.environ[name] for name in SETTINGS}
    try:
        asyncio.run(run(options.question, settings, options.max_turns, options.patience))
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
