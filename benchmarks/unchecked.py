"""The agents' endpoint without what the sign-in of agents added to each request: whether a token is
for this address and for a toolset that still takes it, whether it is bound to a key, when it was
last shown, and from which address. For `benchmarks.dpop` alone.

`python -m benchmarks.unchecked --host 127.0.0.1 --port 8001`, as config.agents is run.
"""

from __future__ import annotations

import os
import runpy
from typing import Any

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from gateway.http import endpoint, request_checks  # noqa: E402
from gateway.protocol.context import RequestContext  # noqa: E402
from gateway.protocol.header_cache import KNOWN, HeaderCacheEntry  # noqa: E402
from gateway.protocol.headers import Headers  # noqa: E402


class Unchecked(endpoint.Endpoint):
    async def _admit(self, scope: Any) -> RequestContext:
        known: HeaderCacheEntry | None = scope.get(KNOWN)
        headers = Headers(scope["headers"])
        if known is not None and known.address is not None:
            toolset, server = known.address
        else:
            toolset, server = endpoint._address(scope)
            request_checks.check_origin(headers)
            request_checks.check_size(headers)
        runtime = self._runtime or await self._start()
        snapshot = await runtime.fresh()
        bearer = self._tokens.bearer(headers, snapshot.tokens)
        found = endpoint._toolset(snapshot, toolset, server, bearer)
        if known is None or known.address is None:
            request_checks.check_form(headers)
            if known is not None:
                known.address = toolset, server
        tools = found.by_server[server] if server else found.by_exposed
        return RequestContext(runtime, snapshot, bearer, found, server, tools, headers, known)


if __name__ == "__main__":
    endpoint.Endpoint = Unchecked  # type: ignore[misc]
    runpy.run_module("config.agents", run_name="__main__", alter_sys=True)
