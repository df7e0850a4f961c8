"""An agent of openai-agents with its own defaults: openai_agents.py MCP_URL TOKEN CHAT_URL."""

import asyncio
import sys
from typing import Any

from agents import (
    Agent,
    Runner,
    set_default_openai_api,
    set_default_openai_client,
    set_tracing_disabled,
)
from agents.mcp import MCPServerStreamableHttp
from driven import converse
from openai import AsyncOpenAI


async def main(url: str, token: str, chat: str) -> None:
    # What leads to the model: nothing of it is said to the server.
    set_default_openai_client(AsyncOpenAI(base_url=chat, api_key="none"), use_for_tracing=False)
    set_default_openai_api("chat_completions")
    set_tracing_disabled(True)
    headers = {"Authorization": f"Bearer {token}"}
    async with MCPServerStreamableHttp(params={"url": url, "headers": headers}) as server:
        agent = Agent(name="Assistant", mcp_servers=[server], model="gpt-test")
        history: list[Any] = []

        async def ask(said: str) -> str:
            nonlocal history
            result = await Runner.run(agent, [*history, {"role": "user", "content": said}])
            history = result.to_input_list()
            return str(result.final_output)

        await converse(ask)


asyncio.run(main(*sys.argv[1:]))
