"""A host around a client that is no agent by itself: it shows a model what the client lists."""

import json
from dataclasses import dataclass, field

import aiohttp

from tests.flows.chat import Json
from tests.flows.visitors import Refused, Visitor


@dataclass
class Host:
    """Does what the model says, and tells it what the client says, as hosts do."""

    visitor: Visitor
    chat_url: str
    _tools: list[Json] = field(default_factory=list)
    _messages: list[Json] = field(default_factory=list)

    async def say(self, wish: Json) -> str:
        if not self._tools:
            self._tools = [_function(tool) for tool in await self.visitor.tools()]
        self._messages.append({"role": "user", "content": json.dumps(wish)})
        async with aiohttp.ClientSession() as http:
            while True:
                said = await self._complete(http)
                self._messages.append(said)
                if not said.get("tool_calls"):
                    return str(said["content"])
                for call in said["tool_calls"]:
                    text = await self._call(**call["function"])
                    answer = {"role": "tool", "tool_call_id": call["id"], "content": text}
                    self._messages.append(answer)

    async def _complete(self, http: aiohttp.ClientSession) -> Json:
        body = {"model": "gpt-test", "messages": self._messages, "tools": self._tools}
        async with http.post(f"{self.chat_url}/chat/completions", json=body) as response:
            answer = await response.json()
        assert response.status == 200, answer
        message: Json = answer["choices"][0]["message"]
        return message

    async def _call(self, name: str, arguments: str) -> str:
        try:
            result = await self.visitor.call(name, json.loads(arguments))
        except Refused as error:
            return f"Error: {error}"
        return "".join(item.get("text", "") for item in result["content"])


def _function(tool: Json) -> Json:
    function = {"name": tool["name"], "parameters": tool["inputSchema"]}
    if "description" in tool:
        function["description"] = tool["description"]
    return {"type": "function", "function": function}
