"""The agents' endpoint as a process of its own, which ends without a client seeing it.

python -m config.agents --host 127.0.0.1 --port 8001
"""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import sys
import time
from typing import Any

import django
import uvicorn

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

from channels.layers import get_channel_layer  # noqa: E402
from django.conf import settings  # noqa: E402

from calls.running.runtime import all_runtimes  # noqa: E402
from config import telemetry  # noqa: E402
from config.connection_limit import raise_file_limit  # noqa: E402
from config.front import Front  # noqa: E402
from config.metrics import metrics_first  # noqa: E402
from config.older_database import keep_position, require_database  # noqa: E402
from config.ports import arguments, asked_for  # noqa: E402
from config.probes import AGENTS_PLACE, serve_probes  # noqa: E402
from config.readiness import say_ready  # noqa: E402
from core.process import set_role  # noqa: E402
from gateway.http.endpoint import Endpoint  # noqa: E402
from gateway.http.health import NOT_LISTENING  # noqa: E402
from gateway.subscriptions import streams  # noqa: E402

# So long a client that keeps its connection is waited for, to tell it with an answer that it ends.
# Who asks more rarely finds it closed, as after any pause.
LAST_ANSWERS_S = 2.0
# Longer than any common client keeps an idle connection (httpx 5 s, aiohttp 15 s, Go 90 s): where
# the server closes first, a request that meets the close cannot be told from one that ran.
IDLE_S = 120

app = Endpoint()

# Imports its broker's client, which takes longer than an agent should wait for its first answer.
get_channel_layer()
gc.collect()
gc.freeze()
# A call makes and drops hundreds of objects and leaves no cycles behind: the usual 700 would have
# those of the calls under way looked at again and again.
gc.set_threshold(10_000)
# A thread that makes the next snapshot of thousands of tools must not keep calls waiting for the
# usual 5 ms at each of their steps.
sys.setswitchinterval(0.0005)


class AgentServer(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        say_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Others may accept on the same socket by now; what is connected here ends in good form."""
        for server in self.servers:
            server.close()
        # uvicorn waits for streams to end, and tells nobody that it waits.
        streams.end_all()
        app.shorten_waits()
        # Closed at once, an idle connection would break what its client is just asking.
        self.server_state.default_headers.append((b"connection", b"close"))
        until = time.monotonic() + LAST_ANSWERS_S
        while self.server_state.connections and time.monotonic() < until:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
        await super().shutdown(sockets)


def find_fault() -> str:
    is_listening = all(runtime.listener.is_listening for runtime in all_runtimes())
    return "" if is_listening else NOT_LISTENING


def served(number: int) -> Any:
    """One of several answers for its figures at a port of its own: at the common one, whoever asks
    would meet another process each time."""
    if not number:
        return metrics_first(app, with_record=False)
    serve_probes("agents", find_fault, place=AGENTS_PLACE + number - 1)
    return app


def main() -> None:
    set_role("agents")
    given = arguments()
    require_database()
    raise_file_limit()
    telemetry.start()
    keep_position()
    config = uvicorn.Config(
        served(given.number),
        # By its look it would be of the second.
        interface="asgi3",
        loop="uvloop",
        http=Front,
        ws="none",
        lifespan="on",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        log_config=None,  # settings.LOGGING has its loggers too
        log_level="warning",
        timeout_keep_alive=IDLE_S,
        timeout_graceful_shutdown=max(1, round(settings.STOP_WITHIN_S)),
    )
    AgentServer(config).run([asked_for(given)])


if __name__ == "__main__":
    main()
