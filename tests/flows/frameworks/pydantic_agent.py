"""An agent of pydantic-ai with its own defaults: pydantic_agent.py MCP_URL TOKEN CHAT_URL."""

import asyncio
import sys
from typing import Any

from driven import converse
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


async def main(url: str, token: str, chat: str) -> None:
    model = OpenAIChatModel("gpt-test", provider=OpenAIProvider(base_url=chat, api_key="none"))
    tools = MCPToolset(url, headers={"Authorization": f"Bearer {token}"})
    agent = Agent(model, toolsets=[tools])
    history: list[Any] = []
    async with agent:

        async def ask(said: str) -> str:
            nonlocal history
            result = await agent.run(said, message_history=history)
            history = result.all_messages()
            return str(result.output)

        await converse(ask)


asyncio.run(main(*sys.argv[1:]))
