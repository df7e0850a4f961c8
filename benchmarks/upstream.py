"""The leanest MCP server that we can write: what a call costs when nobody stands between.

`python -m benchmarks.upstream PORT`
"""

import sys
from typing import Any

import orjson
import uvicorn

TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
FILTER = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "minLength": 1, "description": "What to look for."},
        "limit": {"type": "integer", "minimum": 1, "maximum": 100, "default": 10},
        "order": {"enum": ["newest", "oldest", "relevance"]},
    },
    "required": ["query"],
}
TOOLS = [{"name": "echo", "description": "Says it again.", "inputSchema": TEXT}]
TOOLS += [
    {"name": f"search_{n}", "description": f"Searches collection {n}.", "inputSchema": FILTER}
    for n in range(199)
]
COMMON = {"resultType": "complete", "ttlMs": 60_000, "cacheScope": "private"}
RESULTS = {
    "server/discover": {**COMMON, "supportedVersions": ["2026-07-28"], "capabilities": {}},
    "tools/list": {**COMMON, "tools": TOOLS},
}
JSON = (b"content-type", b"application/json")


async def app(scope: Any, receive: Any, send: Any) -> None:
    got = await receive()
    body = got["body"]
    while got.get("more_body"):
        got = await receive()
        body += got["body"]
    request = orjson.loads(body)
    reply = orjson.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result(request)})
    headers = [JSON, (b"content-length", b"%d" % len(reply))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": reply})


def result(request: dict[str, Any]) -> dict[str, Any]:
    if request["method"] == "tools/call":
        text = request["params"]["arguments"]["text"]
        return {"resultType": "complete", "content": [{"type": "text", "text": text}]}
    return RESULTS[request["method"]]


if __name__ == "__main__":
    uvicorn.run(
        app,
        port=int(sys.argv[1]),
        loop="uvloop",
        http="httptools",
        interface="asgi3",
        lifespan="off",
        access_log=False,
        log_level="warning",
    )
