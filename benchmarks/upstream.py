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
# The second is what benchmarks/limits.py puts limits and result rules on.
TOOLS = [
    {"name": name, "description": "Says it again.", "inputSchema": TEXT}
    for name in ("echo", "limited_echo")
]
TOOLS += [
    {"name": f"search_{n}", "description": f"Searches collection {n}.", "inputSchema": FILTER}
    for n in range(198)
]
COMMON = {"resultType": "complete", "ttlMs": 60_000, "cacheScope": "private"}
RESULTS = {
    "server/discover": {**COMMON, "supportedVersions": ["2026-07-28"], "capabilities": {}},
    "tools/list": {**COMMON, "tools": TOOLS},
}
JSON = (b"content-type", b"application/json")
EVENTS = (b"content-type", b"text/event-stream")
# What echo is asked to say when it shall tell how far it is.
TELLS = "steps"
STEPS = 3


async def app(scope: Any, receive: Any, send: Any) -> None:
    got = await receive()
    body = got["body"]
    while got.get("more_body"):
        got = await receive()
        body += got["body"]
    request = orjson.loads(body)
    if tells(request):
        await stream(request, send)
        return
    reply = orjson.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result(request)})
    headers = [JSON, (b"content-length", b"%d" % len(reply))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": reply})


def tells(request: dict[str, Any]) -> bool:
    params = request["params"]
    text = params.get("arguments", {}).get("text")
    return text == TELLS and "progressToken" in params.get("_meta", {})


async def stream(request: dict[str, Any], send: Any) -> None:
    """Each step by itself, as a server that works would send them."""
    await send({"type": "http.response.start", "status": 200, "headers": [EVENTS]})
    token = request["params"]["_meta"]["progressToken"]
    for number in range(1, STEPS + 1):
        params = {"progressToken": token, "progress": number, "total": STEPS}
        said = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
        await send({"type": "http.response.body", "body": event(said), "more_body": True})
    reply = {"jsonrpc": "2.0", "id": request["id"], "result": result(request)}
    await send({"type": "http.response.body", "body": event(reply)})


def event(message: dict[str, Any]) -> bytes:
    return b"event: message\ndata: %b\n\n" % orjson.dumps(message)


def result(request: dict[str, Any]) -> dict[str, Any]:
    if request["method"] == "tools/call":
        arguments = request["params"]["arguments"]
        text = arguments.get("text") or arguments["query"]
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
