"""One short call through several states of this project, in turn: has one become slower?

`python -m benchmarks.against TREE [TREE …] [--seconds 2] [--rounds 6]`: each tree is a checkout
with its environment. All their houses stand at once, and one at a time is asked; printed are
medians of the rounds, and each round's ratio to the first tree's.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median

from benchmarks.hot_path import Run, Sides
from benchmarks.house import House

SERVE = """
import json, sys, tempfile
from pathlib import Path
from benchmarks.house import house
with tempfile.TemporaryDirectory(prefix="countersign-") as data:
    Path(data).chmod(0o711)
    with house(Path(data) / "var") as it:
        told = [it.agents_port, it.upstream_port, it.token, it.gateway_pid, str(it.data)]
        print(json.dumps(told), flush=True)
        sys.stdin.read()
"""
ECHO = {"name": "echo", "arguments": {"text": "hello"}}


@contextmanager
def standing(tree: Path) -> Iterator[Sides]:
    argv = [str(tree / ".venv" / "bin" / "python"), "-c", SERVE]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, cwd=tree, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout
        agents, upstream, token, pid, data = json.loads(process.stdout.readline())
        yield Sides(House(agents, upstream, token, pid, Path(data)), "tools/call", ECHO, "hello")
        assert process.stdin
        process.stdin.close()


def alternated(
    sides: list[Sides], connections: int, seconds: float, rounds: int
) -> list[list[Run]]:
    """By tree. Who comes first changes from round to round."""
    runs: list[list[Run]] = [[] for _ in sides]
    for side in sides:
        side.measure_governed(connections, 1)
    for number in range(rounds):
        turn = list(range(len(sides)))[:: 1 if number % 2 else -1]
        for which in turn:
            runs[which].append(sides[which].measure_governed(connections, seconds))
    return runs


def line(tree: Path, runs: list[Run], first: list[Run]) -> str:
    ratios = [
        run.seen.per_second / other.seen.per_second for run, other in zip(runs, first, strict=True)
    ]
    return (
        f"{tree.name:<16}{median(r.seen.per_second for r in runs):>8.0f}/s"
        f"{median(r.seen.p50_ms for r in runs):>8.2f} ms"
        f"   CPU {median(r.gateway_ms for r in runs):.3f} + "
        f"{median(r.database_ms for r in runs):.3f} ms"
        f"   {median(ratios):.1%} ({min(ratios):.1%} to {max(ratios):.1%})"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trees", nargs="+", type=Path)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--connections", type=int, default=16)
    options = parser.parse_args()
    trees = [tree.resolve() for tree in options.trees]
    with ExitStack() as houses:
        sides = [houses.enter_context(standing(tree)) for tree in trees]
        runs = alternated(sides, options.connections, options.seconds, options.rounds)
    for tree, mine in zip(trees, runs, strict=True):
        sys.stdout.write(line(tree, mine, runs[0]) + "\n")


if __name__ == "__main__":
    main()
