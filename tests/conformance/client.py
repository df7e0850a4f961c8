"""Our upstream client as the conformance suite drives it: discover, then call what there is.

Run by the suite as `python -m tests.conformance.client URL`.
"""

import asyncio
import json
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from core import header_params
from core.abilities import InputAnswer
from registry.upstream import (
    Limits,
    PausedCall,
    ServerListing,
    Target,
    UpstreamCall,
    Upstreams,
    param_headers,
)

EXAMPLES: dict[str, Any] = {
    "string": "text",
    "integer": 1,
    "number": 2.5,
    "boolean": True,
    "array": [],
    "object": {},
    "null": None,
}


async def main(url: str) -> None:
    target = Target(key="suite", transport="http", url=url)
    upstreams = Upstreams(networks=["127.0.0.0/8", "::1/128"])
    try:
        found = await upstreams.discover(target)
        for name, arguments in wanted(found):
            schema = next(tool["inputSchema"] for tool in found.tools if tool["name"] == name)
            await upstreams.call_tool(
                target,
                UpstreamCall(
                    name=name,
                    arguments=json.dumps(arguments).encode(),
                    limits=Limits(total_s=20),
                    param_headers=param_headers(header_params.declared(schema), arguments),
                    asking=User(),
                    abilities=("form",),
                ),
            )
    finally:
        await upstreams.aclose()


class User:
    """Takes every form as it is proposed."""

    async def look(self, requests: Mapping[str, Any], round_: int) -> dict[str, InputAnswer]:
        return {key: InputAnswer(self._accepted(request)) for key, request in requests.items()}

    async def wait(
        self, requests: Mapping[str, Any], round_: int, pause: PausedCall | None = None
    ) -> dict[str, InputAnswer]:
        return await self.look(requests, round_)

    def _accepted(self, request: dict[str, Any]) -> dict[str, Any]:
        properties = request["params"]["requestedSchema"]["properties"]
        content = {name: part.get("default", value(part)) for name, part in properties.items()}
        return {"action": "accept", "content": content}


def wanted(found: ServerListing) -> Iterator[tuple[str, dict[str, Any]]]:
    """What the scenario asks for, or each tool once."""
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
    schemas = {tool["name"]: tool["inputSchema"] for tool in found.tools}
    match os.environ.get("MCP_CONFORMANCE_SCENARIO"):
        case "json-schema-ref-no-deref":
            # To list them is all that it serves.
            return
        case "json-schema-2020-12-preservation":
            yield "json_schema_echo", {"schema": schemas["json_schema_2020_12_tool"]}
        case _ if calls := context.get("toolCalls"):
            yield from (
                (call["name"], call["arguments"]) for call in calls if call["name"] in schemas
            )
        case _:
            yield from ((name, example(schema)) for name, schema in schemas.items())


def example(schema: dict[str, Any]) -> dict[str, Any]:
    """A value for each required property."""
    properties = schema.get("properties", {})
    return {name: value(properties.get(name, {})) for name in schema.get("required", ())}


def value(schema: dict[str, Any]) -> Any:
    if "enum" in schema:
        return schema["enum"][0]
    kind = schema.get("type", "string")
    return EXAMPLES[kind if isinstance(kind, str) else kind[0]]


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
