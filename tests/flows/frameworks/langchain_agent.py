"""An agent of LangChain with langchain-mcp-adapters and their own defaults:
langchain_agent.py MCP_URL TOKEN CHAT_URL."""

import asyncio
import sys
from typing import Any

from driven import converse
from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_openai import ChatOpenAI
from pydantic import SecretStr


async def main(url: str, token: str, chat: str) -> None:
    headers = {"Authorization": f"Bearer {token}"}
    client = MultiServerMCPClient(
        {"countersign": {"transport": "streamable_http", "url": url, "headers": headers}}
    )
    model = ChatOpenAI(model="gpt-test", base_url=chat, api_key=SecretStr("none"))
    agent = create_agent(model, await client.get_tools())
    history: list[Any] = []

    async def ask(said: str) -> str:
        nonlocal history
        result = await agent.ainvoke({"messages": [*history, {"role": "user", "content": said}]})
        history = result["messages"]
        return str(history[-1].text)

    await converse(ask)


asyncio.run(main(*sys.argv[1:]))
