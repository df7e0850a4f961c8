"""One short call through several states of this project, in turn: has one become slower?

`python -m benchmarks.against TREE [TREE …] [--seconds 2] [--rounds 6]`: each tree is a checkout
with its environment. All their houses stand at once, and one at a time is asked; printed are
medians of the rounds, and of each round's ratio to the first tree's, with the median's 95 %
interval. With `--record`, also what each call left: bytes by table, and the CPU of sealing it, in
the sealer and in the database. With `--sealing`, each house seals its record while it is asked,
every second on the same cores, so that calls a second have the cost of sealing in them.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.hot_path import Run, Sides
from benchmarks.house import House

SERVE = """
import json, sys, tempfile
from pathlib import Path
from benchmarks.house import house
with tempfile.TemporaryDirectory(prefix="countersign-") as data:
    Path(data).chmod(0o711)
    with house(Path(data) / "var") as it:
        if "sealing" in sys.argv:
            import os, subprocess
            key = {"COUNTERSIGN_SEAL_KEY_FILE": str(it.data / "key")}
            env = {**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings", **key}
            sealer = subprocess.Popen([sys.executable, "-c", SEALER], env=env)
        told = [it.agents_port, it.upstream_port, it.token, it.gateway_pid, str(it.data)]
        print(json.dumps(told), flush=True)
        if sys.stdin.readline() == "record\\n":
            import os, resource, psycopg
            from tests.database import manage
            def seal():
                before = resource.getrusage(resource.RUSAGE_CHILDREN), it.database_cpu()
                manage(["audit_seal"], env={"COUNTERSIGN_SEAL_KEY_FILE": str(it.data / "key")})
                after = resource.getrusage(resource.RUSAGE_CHILDREN)
                own = after.ru_utime + after.ru_stime - before[0].ru_utime - before[0].ru_stime
                return own, it.database_cpu() - before[1]
            first, idle = seal(), seal()
            with psycopg.connect(os.environ["DATABASE_OWNER_URL"], autocommit=True) as link:
                link.execute("VACUUM")
                sizes = dict(link.execute(SIZES).fetchall())
                calls = link.execute("SELECT count(*) FROM calls_call").fetchone()[0]
            spent = [a - b for a, b in zip(first, idle)]
            print(json.dumps([calls, spent, sizes]), flush=True)
        sys.stdin.read()
        if "sealing" in sys.argv:
            sealer.kill()
            sealer.wait()
"""
SEALER = """
import time, django
django.setup()
from audit.sealing import seal_all
while True:
    seal_all()
    time.sleep(1)
"""
SIZES = """
SELECT COALESCE(i.inhparent, c.oid)::regclass::text, sum(pg_total_relation_size(c.oid))::bigint
FROM pg_class c LEFT JOIN pg_inherits i ON i.inhrelid = c.oid
WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname ~ '^(audit|calls)_'
GROUP BY 1
"""
ECHO = {"name": "echo", "arguments": {"text": "hello"}}


class Standing(NamedTuple):
    sides: Sides
    process: subprocess.Popen[str]

    def record(self) -> str:
        """What each call left, as text."""
        assert self.process.stdin
        assert self.process.stdout
        self.process.stdin.write("record\n")
        self.process.stdin.flush()
        calls, (sealer, database), sizes = json.loads(self.process.stdout.readline())
        a_call = {name: round(size / calls) for name, size in sizes.items() if size / calls > 1}
        largest = sorted(a_call.items(), key=lambda one: -one[1])
        sealing = f"{1000 * sealer / calls:.3f} + {1000 * database / calls:.3f} ms"
        return (
            f"{calls} calls, sealing {sealing}, {sum(a_call.values())} bytes a call: "
            + ", ".join(f"{name} {size}" for name, size in largest)
        )


@contextmanager
def standing(tree: Path, *, is_sealing: bool) -> Iterator[Standing]:
    program = f"SIZES = {SIZES!r}\nSEALER = {SEALER!r}\n{SERVE}"
    python = str(tree / ".venv" / "bin" / "python")
    argv = [python, "-c", program, *(["sealing"] if is_sealing else [])]
    pipe = subprocess.PIPE
    with subprocess.Popen(argv, cwd=tree, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdout
        agents, upstream, token, pid, data = json.loads(process.stdout.readline())
        it = House(agents, upstream, token, pid, Path(data))
        yield Standing(Sides(it, "tools/call", ECHO, "hello"), process)
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


def interval(ratios: list[float]) -> str:
    """Their median, and where the median of very many would be (95 %)."""
    ordered, n = sorted(ratios), len(ratios)
    first = max(0, math.floor((n - 1.96 * math.sqrt(n)) / 2))
    return f"{median(ratios):.1%} ({ordered[first]:.1%} to {ordered[n - 1 - first]:.1%})"


def line(tree: Path, runs: list[Run], first: list[Run]) -> str:
    ratios = [
        run.seen.per_second / other.seen.per_second for run, other in zip(runs, first, strict=True)
    ]
    return (
        f"{tree.name:<16}{median(r.seen.per_second for r in runs):>8.0f}/s"
        f"{median(r.seen.p50_ms for r in runs):>8.2f} ms"
        f"   CPU {median(r.gateway_ms for r in runs):.3f} + "
        f"{median(r.database_ms for r in runs):.3f} ms"
        f"   {interval(ratios)}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trees", nargs="+", type=Path)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--sealing", action="store_true")
    options = parser.parse_args()
    if options.record and options.sealing:
        parser.error("--record seals after the calls, --sealing while they run: choose one.")
    trees = [tree.resolve() for tree in options.trees]
    with ExitStack() as houses:
        there = [houses.enter_context(standing(tree, is_sealing=options.sealing)) for tree in trees]
        sides = [one.sides for one in there]
        runs = alternated(sides, options.connections, options.seconds, options.rounds)
        left = [one.record() for one in there] if options.record else []
    for tree, mine in zip(trees, runs, strict=True):
        sys.stdout.write(line(tree, mine, runs[0]) + "\n")
    for tree, told in zip(trees, left, strict=False):
        sys.stdout.write(f"{tree.name:<16}{told}\n")


if __name__ == "__main__":
    main()
