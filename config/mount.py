"""Which paths belong to agents, decided before any of Django runs."""

from typing import Any

from gateway.http.endpoint import app as agents

OF_AGENTS = ("/mcp/", "/.well-known/oauth-protected-resource")


def agents_first(console: Any) -> Any:
    async def route(scope: Any, receive: Any, send: Any) -> None:
        app = agents if scope["path"].startswith(OF_AGENTS) else console
        await app(scope, receive, send)

    return route
