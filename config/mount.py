"""Which paths belong to agents, decided before any of Django runs."""

import asyncio
from typing import Any

from gateway.http.endpoint import app as agents

OF_AGENTS = ("/mcp/", "/.well-known/oauth-protected-resource")
_answering: set[asyncio.Task[None]] = set()


def agents_first(console: Any) -> Any:
    async def route(scope: Any, receive: Any, send: Any) -> None:
        if not scope["path"].startswith(OF_AGENTS):
            await console(scope, receive, send)
            return
        # daphne cancels an answer some seconds after its client left. A call that is on its way
        # ends as it ends.
        task = asyncio.ensure_future(agents(scope, receive, send))
        _answering.add(task)
        task.add_done_callback(_answering.discard)
        await asyncio.shield(task)

    return route
