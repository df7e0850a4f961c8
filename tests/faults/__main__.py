"""`manage.py faults`: kills, stops and starves the product, and holds three records beside each
other afterwards.

    python3 manage.py faults                        about a minute, as in CI
    python3 manage.py faults --long                 200 workers, 50 gateways, 20 databases killed
    python3 manage.py faults --broken no-fence      with a mistake built in, which must be found
    python3 manage.py faults --prove                all nine mistakes, one after the other
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import sys
from dataclasses import replace

from tests.faults.broken import VARIANTS
from tests.faults.plan import Plan
from tests.faults.suite import Report, run

SHORT = Plan(
    seed=0,
    calls=300,
    workers=3,
    gateways=1,
    databases=1,
    rounds=1,
    seconds=20,
    cut_s=3,
    at_once=3,
)
LONG = Plan(
    seed=0,
    calls=20_000,
    workers=200,
    gateways=50,
    databases=20,
    rounds=3,
    seconds=1500,
    crowd=32,
    pause_s=0.02,
    cut_s=30,
)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="manage.py faults",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, default=secrets.randbelow(1_000_000))
    parser.add_argument("--long", action="store_true")
    parser.add_argument("--calls", type=int)
    parser.add_argument("--workers", type=int, help="how many times one is killed")
    parser.add_argument("--gateways", type=int)
    parser.add_argument("--databases", type=int)
    parser.add_argument("--rounds", type=int, help="how many times everything else is done")
    parser.add_argument("--seconds", type=float, help="over which the faults are spread")
    parser.add_argument("--cut-s", type=float, help="how long the database is cut off")
    parser.add_argument("--only", default="", help="only these deeds, by name, with commas")
    parser.add_argument("--broken", choices=VARIANTS, default="")
    parser.add_argument("--prove", action="store_true")
    options = parser.parse_args()
    given = {
        name: value
        for name, value in vars(options).items()
        if value is not None and name not in ("long", "prove", "broken")
    }
    plan = replace(LONG if options.long else SHORT, **given)
    if options.prove:
        return prove(options.seed)
    if options.broken:
        return broken(options.broken, options.seed)
    return show(asyncio.run(run(plan)))


def show(report: Report) -> int:
    for line in report.lines():
        say(line)
    return 1 if report.violations else 0


def broken(name: str, seed: int) -> int:
    return show(asyncio.run(run(replace(VARIANTS[name].plan, seed=seed, broken=name))))


def prove(seed: int) -> int:
    """Ends well when every mistake was found."""
    missed = []
    for name in VARIANTS:
        report = asyncio.run(run(replace(VARIANTS[name].plan, seed=seed, broken=name)))
        first = report.violations[0] if report.violations else "NOT FOUND"
        say(f"{name}: {first} ({report.asked} calls, {report.seconds:.0f} s)")
        if not report.violations:
            missed.append(name)
    say(f"{len(VARIANTS) - len(missed)} of {len(VARIANTS)} mistakes found, seed {seed}")
    return 1 if missed else 0


def say(line: str) -> None:
    print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main())
