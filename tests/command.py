"""`manage.py test`: which tests run together, which are repeated, and what is said of them."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

from tests.browser import whole
from tests.budget import ORDER, UNTIL
from tests.outcomes import (
    DIRECTORY,
    ONLY,
    Phase,
    left_out_in,
    phases_in,
    quiet_since,
    running_in,
    unfinished_in,
)

ROOT = Path(__file__).resolve().parent.parent
# Of two cores: a worker waits a third of its time, for leases, sweeps and browsers.
WORKERS = ("-n", "4", "--dist", "loadfile", "--no-loadscope-reorder")
LONG, PROOF = "--long", "--proof"
# `--long --minutes 40`: what has not begun by then is left out and named.
MINUTES = "--minutes"
SOME_FAILED, NONE_RAN = 1, 5
# More than so many did not fail by bad luck, and repeating them takes long.
MOST_REPEATED = 40
SLOWEST = 10
# A hanging test ends by itself after ten minutes (pyproject.toml); this ends what hangs beside.
MINUTE_S = 60
REPEATING_S = 12 * MINUTE_S
# A worker that was ended may leave its file to nobody, and then its stage never ends.
STILL_S = 15 * MINUTE_S


class Stage(NamedTuple):
    arguments: tuple[str, ...]
    # On two quick cores it takes a third of that or less. Some machines are slower, and a test that
    # hangs ends by itself long before.
    within_s: float | None = None
    # Of the time that a run may have, the share after which this begins no test any more.
    share: float = 1


def run_tests(arguments: Sequence[str]) -> int:
    """The exit code: 0 if everything passed, at once or when it was repeated."""
    arguments, minutes = without_minutes(arguments)
    chosen = [argument for argument in arguments if argument not in (LONG, PROOF)]
    if chosen and len(chosen) == len(arguments):
        return run_pytest(chosen, {})
    with tempfile.TemporaryDirectory(prefix="countersign-tests-") as name:
        home = Path(name)
        # Before `--long` another command may have run the other browser tests, and says where it
        # wrote what they used.
        used = Path(os.environ.get(whole.DIRECTORY) or home)
        first, controls = home / "first", {whole.DIRECTORY: str(used)}
        begun = time.time()
        codes = {
            run_pytest(
                [*stage.arguments, *chosen],
                {**controls, DIRECTORY: str(first), **budget(stage, begun, minutes)},
                within_s=stage.within_s,
            )
            for stage in stages(arguments, is_continued=any(used.glob("finished-*")))
        }
        phases = list(phases_in(first))
        failed = {phase.test for phase in phases if phase.failed} | unfinished_in(first)
        left_out = left_out_in(first)
        failed_twice = repeat(failed, home, controls)
    report(phases, failed, failed_twice)
    report_left_out(left_out, minutes)
    is_broken = codes - {0, SOME_FAILED, NONE_RAN} or codes == {NONE_RAN}
    is_unexplained = SOME_FAILED in codes and not failed
    return int(bool(is_broken or is_unexplained or failed_twice))


def without_minutes(arguments: Sequence[str]) -> tuple[list[str], float | None]:
    if MINUTES not in arguments:
        return list(arguments), None
    place = arguments.index(MINUTES)
    try:
        return [*arguments[:place], *arguments[place + 2 :]], float(arguments[place + 1])
    except (IndexError, ValueError):
        sys.exit(f"{MINUTES} takes a number: `manage.py test {LONG} {MINUTES} 40`.")


def budget(stage: Stage, begun: float, minutes: float | None) -> dict[str, str]:
    """What tests/budget.py is to know."""
    if minutes is None:
        return {}
    head = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, check=False)
    until = begun + stage.share * minutes * MINUTE_S
    return {UNTIL: str(until), ORDER: head.stdout.decode().strip() or "no commit"}


def stages(arguments: Sequence[str], *, is_continued: bool) -> list[Stage]:
    """What shares the machine's cores, and then what kills or counts on its time."""
    if PROOF in arguments:
        return [Stage(("-m", "proof", "-o", "faulthandler_timeout=0"))]
    if LONG not in arguments:
        return [Stage((*WORKERS, "-m", "not long and not proof"), 45 * MINUTE_S)]
    # What no browser test used of a page is known when all of them have run.
    wanted = "long" if is_continued else "(long or browser)"
    return [
        Stage((*WORKERS, "-m", f"{wanted} and not alone and not proof"), 90 * MINUTE_S, 0.75),
        Stage(("-m", f"{wanted} and alone and not proof"), 40 * MINUTE_S),
    ]


def repeat(failed: Collection[str], home: Path, environment: dict[str, str]) -> set[str]:
    """Those that fail again when they run by themselves."""
    if not failed or len(failed) > MOST_REPEATED:
        return set(failed)
    say("", f"Once more, one after the other: what failed ({len(failed)})")
    only, second = home / "only", home / "second"
    only.write_text("\n".join(failed))
    named = {test.partition("::")[0] for test in failed}
    files = sorted(file for file in named if (ROOT / file).exists())
    code = run_pytest(
        files, {**environment, DIRECTORY: str(second), ONLY: str(only)}, within_s=REPEATING_S
    )
    phases = list(phases_in(second))
    if code not in (0, SOME_FAILED):
        return set(failed)
    passed = {phase.test for phase in phases} - {phase.test for phase in phases if phase.failed}
    return set(failed) - (passed - unfinished_in(second))


def report(phases: Sequence[Phase], failed: set[str], failed_twice: set[str]) -> None:
    seconds: defaultdict[str, float] = defaultdict(float)
    for phase in phases:
        seconds[phase.test] += phase.seconds
    slowest = sorted(seconds, key=lambda test: -seconds[test])[:SLOWEST]
    say("", f"The {SLOWEST} slowest of {len(seconds)}:")
    say(*(f"{seconds[test]:7.1f} s  {test}" for test in slowest))
    say(*(f"FLAKY {test}" for test in sorted(failed - failed_twice)))
    say(*(f"FAILED {test}" for test in sorted(failed_twice)))


def report_left_out(tests: Collection[str], minutes: float | None) -> None:
    if tests:
        say(f"Left out, as {minutes:g} minutes were over before they began ({len(tests)} tests):")
        files = sorted(Counter(test.partition("::")[0] for test in tests).items())
        say(*(f"{count:7}    {file}" for file, count in files))


def run_pytest(
    arguments: Sequence[str], environment: dict[str, str], *, within_s: float | None = None
) -> int:
    command = [sys.executable, "-m", "pytest", *arguments]
    with subprocess.Popen(command, cwd=ROOT, env={**os.environ, **environment}) as process:
        if within_s is None:
            return process.wait()
        outcomes = Path(environment[DIRECTORY])
        if (cause := ended_badly(process, outcomes, within_s)) is None:
            return process.returncode
        say("", f"{cause} Still running:", *sorted(running_in(outcomes)), "")
        cut_short(psutil.Process(process.pid))
        return SOME_FAILED


def ended_badly(process: subprocess.Popen[bytes], outcomes: Path, within_s: float) -> str | None:
    """Waits for its end, and returns why it cannot be waited for any more, if so."""
    begun = time.time()
    while (now := time.time()) < begun + within_s:
        if now - max(begun, quiet_since(outcomes)) > STILL_S:
            return f"No test began or ended for {STILL_S:.0f} s."
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(min(STILL_S, within_s) / 60)
            return None
    return f"Not finished after {within_s:.0f} s."


def cut_short(pytest: psutil.Process) -> None:
    """It and its workers say where each of their threads is, and end with all that they started."""
    workers, everything = pytest.children(), pytest.children(recursive=True)
    for ends, how in (
        (workers, signal.SIGABRT),
        ([pytest], signal.SIGABRT),
        (everything, signal.SIGKILL),
    ):
        for one in ends:
            with contextlib.suppress(psutil.NoSuchProcess):
                one.send_signal(how)
        psutil.wait_procs(ends, timeout=5)


def say(*lines: str) -> None:
    for line in lines:
        print(line, flush=True)  # noqa: T201
