"""What tokens cost: one of Countersign, an access token, and one that is bound to a key (DPoP).

`python -m benchmarks.dpop [--seconds 3] [--rounds 5] [--connections 16]` alternates the three on
the same processes with the same call and prints medians of the rounds, and ratios. Each request
with the bound token brings a proof of its own, made beforehand.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.hot_path import request
from benchmarks.house import House, house
from benchmarks.load import Client
from tests.processes import HOST

CALL = {"name": "echo", "arguments": {"text": "hello"}}
PATH = "/mcp/desk/up"
# More than a connection gets answered.
PROOFS_PER_S = 1_500


class Asking(Client):
    """Sends another request each time."""

    last = b""

    def __init__(self, requests: Iterator[bytes], times: list[float]) -> None:
        super().__init__(b"", b"hello", times, "", 0.0)
        self._requests = requests

    def connection_lost(self, exc: Exception | None) -> None:
        # What is refused is also cut off.
        if not self.done.done():
            self.done.set_exception(ConnectionError(self.last.decode(errors="replace")))

    def data_received(self, data: bytes) -> None:
        self.last = data
        super().data_received(data)

    def _ask(self) -> None:
        self._request = next(self._requests)
        super()._ask()


@dataclass
class Round:
    per_second: float
    p50_ms: float
    gateway_ms: float
    database_ms: float


async def load(
    port: int, requests: Iterator[bytes], connections: int, seconds: float
) -> list[float]:
    times: list[float] = []
    loop = asyncio.get_running_loop()
    made = [
        await loop.create_connection(lambda: Asking(requests, times), HOST, port)
        for _ in range(connections)
    ]
    until = time.perf_counter() + seconds
    for _, client in made:
        client.begin(until)
    await asyncio.gather(*(client.done for _, client in made))
    assert not sum(client.wrong for _, client in made), "replies were wrong"
    for transport, _ in made:
        transport.close()
    return times


def measure(it: House, requests: Iterator[bytes], connections: int, seconds: float) -> Round:
    gateway, database = it.gateway_cpu(), it.database_cpu()
    times = asyncio.run(load(it.agents_port, requests, connections, seconds))
    return Round(
        len(times) / seconds,
        1000 * median(times),
        1000 * (it.gateway_cpu() - gateway) / len(times),
        1000 * (it.database_cpu() - database) / len(times),
    )


def plain(token: str) -> Callable[[float], Iterator[bytes]]:
    sent = request(PATH, token, "tools/call", CALL).encode()

    def requests(_seconds: float) -> Iterator[bytes]:
        while True:
            yield sent

    return requests


def bound(it: House, make_token: Callable[[str, str], str]) -> Callable[[float], Iterator[bytes]]:
    from tests.gateway.proving import KeyHolder

    holder = KeyHolder(f"http://{HOST}:{it.agents_port}{PATH}")
    token = make_token(holder.url, holder.jkt)
    head, _, body = request(PATH, token, "tools/call", CALL).partition("\r\n\r\n")
    head = head.replace("Bearer", "DPoP")

    def requests(seconds: float) -> Iterator[bytes]:
        proofs = [holder.proof(token) for _ in range(int(PROOFS_PER_S * seconds))]
        return (f"{head}\r\nDPoP: {one}\r\n\r\n{body}".encode() for one in proofs)

    return requests


def sign_in(resource: str, jkt: str) -> str:
    """An access token of a user's client, as it gets one."""
    from accounts.agent_sign_in import access_tokens, clients, grants
    from accounts.models import User
    from registry import services as registry
    from registry.models import Toolset

    bob, toolset = User.objects.get(), Toolset.objects.get()
    registry.set_agent_sign_in(toolset, True, by=bob)
    app = clients.register({"redirect_uris": ["http://127.0.0.1/callback"]})
    agent = grants.find_or_make_agent(bob, app)
    if not toolset.agents.filter(pk=agent.pk).exists():
        registry.assign(toolset, agent, by=bob)
    grant = grants.make_grant(app, bob, agent, resource, jkt)
    return access_tokens.issue(grant.public_id, jkt=jkt)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--connections", type=int, default=16)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="countersign-") as data:
        Path(data).chmod(0o711)
        with house(Path(data) / "var") as it:
            url = f"http://{HOST}:{it.agents_port}{PATH}"
            sides = {
                "token": plain(it.token),
                "access token": plain(sign_in(url, "")),
                "DPoP": bound(it, sign_in),
            }
            report(it, sides, options)


def report(
    it: House, sides: dict[str, Callable[[float], Iterator[bytes]]], options: argparse.Namespace
) -> None:
    for requests in sides.values():
        measure(it, requests(1), options.connections, 1)
    rounds: dict[str, list[Round]] = {name: [] for name in sides}
    for _ in range(options.rounds):
        for name, requests in sides.items():
            made = requests(options.seconds)
            rounds[name].append(measure(it, made, options.connections, options.seconds))
    print(f"{'':<14}{'calls/s':>9}{'p50 ms':>8}   CPU ms a call, gateway + database")
    for name, ran in rounds.items():
        pairs = zip(rounds["token"], ran, strict=True)
        ratio = median(one.per_second / first.per_second for first, one in pairs)
        mid = [median(getattr(one, what) for one in ran) for what in Round.__annotations__]
        print(
            f"{name:<14}{mid[0]:>9.0f}{mid[1]:>8.2f}   {mid[2]:.3f} + {mid[3]:.3f}   "
            f"{ratio:.1%} of a token"
        )


if __name__ == "__main__":
    main()
