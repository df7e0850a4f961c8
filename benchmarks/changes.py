"""What changes of configuration cost calls where there are ten thousand tools.

`python -m benchmarks.changes [--tools 10000] [--a-second 2] [--seconds 5] [--rounds 3]` asks for
one short call again and again, in turn with and without tools being changed meanwhile, and prints
medians of the rounds: the rate, the slowest of a hundred calls, and the rate's ratio.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from statistics import median

from benchmarks.hot_path import Run, Sides
from benchmarks.house import house

ECHO = {"name": "echo", "arguments": {"text": "hello"}}
CONNECTIONS = (4, 16)


def many_tools(number: int) -> list[int]:
    """Beside the one that is called, in the same toolset, the short way into the tables."""
    from django.db import connection
    from django.db.models import OuterRef, Subquery

    from accounts.models import User
    from registry import services
    from registry.models import Definition, Tool, Toolset
    from registry.schemas import definitions

    with connection.cursor() as cursor:
        # On a busy machine it takes longer than any transaction of the product may.
        cursor.execute("SET idle_in_transaction_session_timeout = 0; SET transaction_timeout = 0")
    bob = User.objects.get(username="bob")
    server = services.register(
        "many", transport="http", url="http://127.0.0.1:9/", owner=bob, by=bob
    )
    services.add_server(Toolset.objects.get(slug="desk"), server, by=bob)
    names = [f"tool{n}" for n in range(number)]
    tools = Tool.objects.bulk_create(
        Tool(server=server, name=name, exposed_name=f"many.{name}") for name in names
    )
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    contents = [{"name": name, "description": "Does it.", "inputSchema": schema} for name in names]
    identity = services.identity_of(server)
    Definition.objects.bulk_create(
        Definition(
            tool=tool,
            version=1,
            digest=definitions.digest(identity, content),
            body=definitions.body(content),
        )
        for tool, content in zip(tools, contents, strict=True)
    )
    made = Subquery(Definition.objects.filter(tool=OuterRef("pk")).values("pk"))
    Tool.objects.filter(server=server).update(
        latest=made, published=made, state=Tool.State.PUBLISHED
    )
    return [tool.pk for tool in tools]


@contextmanager
def changing(tools: list[int], a_second: float) -> Iterator[None]:
    """Another tool gets another time limit, so often."""
    over = threading.Event()

    def change() -> None:
        from registry.models import Tool

        for number in count():
            if over.wait(1 / a_second):
                return
            chosen = Tool.objects.filter(pk=tools[number % len(tools)])
            chosen.update(timeout_s=100 + number % 50)

    thread = threading.Thread(target=change)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def line(connections: int, still: list[Run], moving: list[Run]) -> str:
    ratio = median(
        b.seen.per_second / a.seen.per_second for a, b in zip(still, moving, strict=True)
    )
    told = [
        f"{median(r.seen.per_second for r in runs):>6.0f}/s, "
        f"p99 {median(r.seen.p99_ms for r in runs):>6.1f} ms"
        for runs in (still, moving)
    ]
    return f"{connections:>3} connections   without {told[0]}   with {told[1]}   {ratio:.0%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tools", type=int, default=10_000)
    parser.add_argument("--a-second", type=float, default=2)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="countersign-") as data:
        Path(data).chmod(0o711)
        with house(Path(data) / "var") as it:
            tools = many_tools(options.tools)
            sides = Sides(it, "tools/call", ECHO, "hello")
            sides.measure_governed(16, 2)
            for connections in CONNECTIONS:
                still, moving = [], []
                for _ in range(options.rounds):
                    still.append(sides.measure_governed(connections, options.seconds))
                    with changing(tools, options.a_second):
                        moving.append(sides.measure_governed(connections, options.seconds))
                sys.stdout.write(line(connections, still, moving) + "\n")


if __name__ == "__main__":
    main()
