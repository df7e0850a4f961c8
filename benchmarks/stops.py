"""How soon a revoked token and an emergency stop hold at another installation on one database.

`python -m benchmarks.stops [--tools 10000] [--a-second 2] [--rounds 10]` starts two agents'
processes, changes tools meanwhile, and asks the second one without a pause. It prints how long
after the commit of the revocation, or of the stop, the last call was asked for that got through.
"""

from __future__ import annotations

import argparse
import http.client
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.changes import ECHO, changing, many_tools
from benchmarks.hot_path import request
from benchmarks.house import house
from tests.processes import HOST, Stack

ALLOWED = b'"hello"'


class Asker:
    """One connection that asks again and again, and notes when it last was let through."""

    def __init__(self, port: int, token: str) -> None:
        head, _, self.body = request("/mcp/desk/up", token, "tools/call", ECHO).partition(
            "\r\n\r\n"
        )
        self.headers = dict(line.split(": ", 1) for line in head.split("\r\n")[1:])
        self.link = http.client.HTTPConnection(HOST, port, timeout=30)
        self.allowed_at = float("-inf")
        self.refused = threading.Event()
        self.over = False
        self.thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self.over:
            asked_at = time.monotonic()
            self.link.request("POST", "/mcp/desk/up", self.body, self.headers)
            if ALLOWED in self.link.getresponse().read():
                self.allowed_at = asked_at
                self.refused.clear()
            else:
                self.refused.set()

    def wait_for(self, condition: Callable[[], bool]) -> None:
        while not condition():
            assert self.thread.is_alive()
            time.sleep(0.001)


@contextmanager
def asking(port: int, token: str) -> Iterator[Asker]:
    asker = Asker(port, token)
    asker.thread.start()
    try:
        asker.wait_for(lambda: asker.allowed_at > 0)
        yield asker
    finally:
        asker.over = True
        asker.thread.join()
        asker.link.close()


def until_it_holds(asker: Asker, stop: Callable[[], Any]) -> float:
    """In seconds: from its commit to when the last call was asked for that was let through."""
    stop()
    committed_at = time.monotonic()
    asker.wait_for(asker.refused.is_set)
    # What was under way; and nothing comes through after that.
    time.sleep(0.1)
    return max(0.0, asker.allowed_at - committed_at)


def people() -> tuple[Any, Any]:
    from django.contrib.auth.models import Group

    from accounts.models import User
    from accounts.roles import Role

    made = []
    for name in ("olga", "ada"):
        person = User.objects.create_user(name)
        person.groups.add(*Group.objects.filter(name__in=[Role.OPERATOR, Role.ADMINISTRATOR]))
        made.append(person)
    return made[0], made[1]


def revocations(port: int, rounds: int) -> list[float]:
    from accounts import services
    from accounts.models import Agent, AgentToken

    scout = Agent.objects.get(name="scout")
    seen = []
    for _ in range(rounds):
        text = services.issue_token(scout, by=scout.owner)
        token = AgentToken.objects.latest("pk")
        with asking(port, text) as asker:
            seen.append(
                until_it_holds(asker, lambda: services.revoke_token(token, by=scout.owner))  # noqa: B023 now
            )
    return seen


def stops(port: int, token: str, rounds: int) -> list[float]:
    from approvals import freezes
    from calls.models import Freeze

    olga, ada = people()
    seen = []
    with asking(port, token) as asker:
        for _ in range(rounds):
            seen.append(until_it_holds(asker, lambda: freezes.begin(by=olga, reason="Look.")))
            freezes.end(Freeze.objects.holding().get(), by=ada, why="Looked.")
            again = time.monotonic()
            asker.wait_for(lambda: asker.allowed_at > again)  # noqa: B023 now
    return seen


def line(name: str, seen: list[float]) -> str:
    return f"{name:<16} held after {median(seen):.3f} s (median), {max(seen):.3f} s (slowest)\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=int, default=10_000)
    parser.add_argument("--a-second", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="countersign-") as data:
        Path(data).chmod(0o711)
        with house(Path(data) / "var") as it, Stack(Path(data)) as second:
            tools = many_tools(options.tools)
            port = second.agents.pid and second.agents_port
            with asking(it.agents_port, it.token), changing(tools, options.a_second):
                sys.stdout.write(line("revoked token", revocations(port, options.rounds)))
                sys.stdout.write(line("emergency stop", stops(port, it.token, options.rounds)))


if __name__ == "__main__":
    main()
