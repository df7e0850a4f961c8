"""What tokens cost: one of Countersign, an access token, and one that is bound to a key (DPoP).

`python -m benchmarks.dpop [--seconds 3] [--rounds 5] [--connections 16]` alternates the three with
the same call on the same database, and with a gateway that makes none of the checks that the
sign-in of agents added (benchmarks/unchecked.py). Who comes first changes from round to round.
Printed are medians of the rounds, and of each round's ratios to the gateway without checks, with
the 95 % interval of the median. Each request with the bound token brings a proof of its own, made
beforehand.

The record of a call with an access token also names the user's client, twice. `same record` is that
token at the gateway without checks: the two differ by the checks alone.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks.against import interval
from benchmarks.hot_path import request
from benchmarks.house import House, beside, cpu_seconds, house
from benchmarks.load import Client
from config.embedded.valkey import free_port
from tests.processes import HOST

CALL = {"name": "echo", "arguments": {"text": "hello"}}
PATH = "/mcp/desk/up"
# More than a connection gets answered.
PROOFS_PER_S = 4_000
WITHOUT = "without checks"
SAME_RECORD = "same record"


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

    @property
    def cpu_ms(self) -> float:
        return self.gateway_ms + self.database_ms


@dataclass
class Side:
    """One way to be asked: at which gateway, and with which requests for so many seconds."""

    port: int
    pid: int
    requests: Callable[[float], Iterator[bytes]]


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


def measure(it: House, side: Side, connections: int, seconds: float) -> Round:
    requests = side.requests(seconds)
    gateway, database = cpu_seconds(side.pid), it.database_cpu()
    times = asyncio.run(load(side.port, requests, connections, seconds))
    return Round(
        len(times) / seconds,
        1000 * median(times),
        1000 * (cpu_seconds(side.pid) - gateway) / len(times),
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


@contextmanager
def unchecked(it: House) -> Iterator[tuple[int, int]]:
    """Port and process of the gateway without checks."""
    assert it.stack is not None
    os.environ |= it.stack.env
    port = free_port()
    argv = ["-m", "benchmarks.unchecked", "--host", HOST, "--port", str(port)]
    with beside(argv, port, it.data / "unchecked.log") as process:
        yield port, process.pid


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--connections", type=int, default=16)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="countersign-") as data:
        Path(data).chmod(0o711)
        with house(Path(data) / "var") as it, unchecked(it) as bare:
            here = it.agents_port, it.gateway_pid
            url = f"http://{HOST}:{it.agents_port}{PATH}"
            access_token = plain(sign_in(url, ""))
            sides = {
                WITHOUT: Side(*bare, plain(it.token)),
                SAME_RECORD: Side(*bare, access_token),
                "token": Side(*here, plain(it.token)),
                "access token": Side(*here, access_token),
                "DPoP": Side(*here, bound(it, sign_in)),
            }
            report(it, sides, options)


def alternated(
    it: House, sides: dict[str, Side], options: argparse.Namespace
) -> dict[str, list[Round]]:
    for side in sides.values():
        measure(it, side, options.connections, 1)
    rounds: dict[str, list[Round]] = {name: [] for name in sides}
    for number in range(options.rounds):
        for name in list(sides)[:: -1 if number % 2 else 1]:
            rounds[name].append(measure(it, sides[name], options.connections, options.seconds))
    return rounds


def report(it: House, sides: dict[str, Side], options: argparse.Namespace) -> None:
    rounds = alternated(it, sides, options)
    print(f"{'':<16}{'calls/s':>9}{'p50 ms':>8}   CPU ms a call, gateway + database")
    for name, ran in rounds.items():
        mid = [median(getattr(one, what) for one in ran) for what in Round.__annotations__]
        print(
            f"{name:<16}{mid[0]:>9.0f}{mid[1]:>8.2f}   {mid[2]:.3f} + {mid[3]:.3f}   "
            f"{ratio(rounds, name, 'per_second')} of the calls, {ratio(rounds, name, 'cpu_ms')} "
            "of the CPU"
        )
    found = ratio(rounds, "access token", "per_second", SAME_RECORD)
    cpu = ratio(rounds, "access token", "cpu_ms", SAME_RECORD)
    print(f"access token to {SAME_RECORD}: {found} of the calls, {cpu} of the CPU")


def ratio(rounds: dict[str, list[Round]], name: str, what: str, to: str = WITHOUT) -> str:
    """Round by round."""
    pairs = zip(rounds[name], rounds[to], strict=True)
    found = [getattr(one, what) / getattr(bare, what) for one, bare in pairs]
    return interval(found)


if __name__ == "__main__":
    main()
