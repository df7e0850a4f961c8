"""What limits and cleaned results cost a call, beside the same call without any.

`python -m benchmarks.limits [--seconds 1] [--rounds 30] [--connections 16]` asks two tools of one
server in turn, through one gateway: one has none, the other ten limits that are never reached, and
then cleaned results too, without and with links, marking and own patterns; at last a budget for all
calls together, which their commits take turns at. Rounds are short, so that what else the machine
does hits both tools of a round alike. Printed are medians of the rounds' ratios, each with the 95 %
interval of the median.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from benchmarks.against import alternated, interval
from benchmarks.cleaning import PATTERNS
from benchmarks.hot_path import Run, Side, Sides, request
from benchmarks.house import House, house

FREE, LIMITED = "echo", "limited_echo"
SHORT, LONG = "hello", "All of it is as it should be, and nobody has to look. " * 38
# Also of bytes, of which a call has some thousand: no share of it is spent before its time.
MUCH = 1_000_000_000_000
# Ten, as a team might have them: for each agent, person, toolset, server and tool.
PER = (["agent"], ["person"], ["toolset"], ["server"], ["agent", "tool"])
RATES = tuple(product(("calls", "bytes"), PER))


class Case(NamedTuple):
    name: str
    text: str
    runs: list[list[Run]]


class Echo(Sides):
    """One tool, asked by an agent."""

    def __init__(self, house: House, tool: str, text: str) -> None:
        super().__init__(house, "tools/call", {}, text)
        arguments = {"name": tool, "arguments": {"text": text}}
        asked = request("/mcp/desk/up", house.token, "tools/call", arguments)
        self.sides = [Side(tool, house.agents_port, asked, house.gateway_pid)]


def limit(name: str, **fields: Any) -> None:
    from audit.services import SYSTEM
    from policies.limits.services import save_limit
    from policies.models import Limit

    made = Limit(name=name, effect="deny", amount=MUCH, tool=LIMITED, **fields)
    save_limit(made, by=SYSTEM)


def ten_limits() -> None:
    for number, (kind, per) in enumerate(RATES):
        limit(f"{kind} {number}", kind=kind, period=("minute", "hour")[number % 2], per=per)


def clean_results(**more: Any) -> None:
    from inspection.results import HiddenText, ResultRules, SchemaCheck
    from registry.models import Tool
    from registry.result_rules import set_result_rules

    rules = ResultRules(SchemaCheck.BLOCK, HiddenText.REMOVE, True, True, True, 100_000)
    set_result_rules(Tool.objects.get(name=LIMITED), rules._replace(**more), by=None)


def cases(it: House, options: argparse.Namespace) -> Iterator[Case]:
    def case(name: str, text: str = SHORT) -> Case:
        both: list[Sides] = [Echo(it, tool, text) for tool in (FREE, LIMITED)]
        runs = alternated(both, options.connections, options.seconds, options.rounds)
        return Case(name, text, runs)

    yield case("nothing")
    ten_limits()
    yield case("ten limits")
    clean_results()
    yield case("… and cleaning")
    yield case("… and cleaning", LONG)
    clean_results(links=True, marking="found", patterns=PATTERNS)
    yield case("… by all choices")
    yield case("… by all choices", LONG)
    clean_results()
    limit("budget", kind="cost", period="month", cost=1, unit="EUR")
    yield case("… and one budget")


def line(case: Case) -> str:
    free, limited = case.runs
    rounds = list(zip(free, limited, strict=True))
    gateway, database = (
        median(getattr(b, what) - getattr(a, what) for a, b in rounds)
        for what in ("gateway_ms", "database_ms")
    )
    return (
        f"{case.name:<18}{len(case.text):>6}"
        f"{median(run.seen.per_second for run in free):>10.0f}"
        f"{median(run.seen.per_second for run in limited):>10.0f}"
        f"{interval([b.seen.per_second / a.seen.per_second for a, b in rounds]):>28}"
        f"{interval([cpu_ms(a) / cpu_ms(b) for a, b in rounds]):>28}"
        f"   {gateway:+.3f} {database:+.3f}"
    )


def cpu_ms(run: Run) -> float:
    return run.gateway_ms + run.database_ms


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=1)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--connections", type=int, default=16)
    options = parser.parse_args()
    heading = f"{'on the second tool':<18}{'bytes':>6}{'without':>10}{'with':>10}"
    print(f"{heading}{'ratio of calls/s':>28}{'of calls by CPU':>28}   CPU ms a call more")
    with tempfile.TemporaryDirectory(prefix="countersign-") as data:
        Path(data).chmod(0o711)
        with house(Path(data) / "var") as it:
            for case in cases(it, options):
                print(line(case), flush=True)


if __name__ == "__main__":
    main()
