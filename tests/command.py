"""`manage.py test`: which tests run together, which are repeated, and what is said of them."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import NamedTuple

import psutil

from tests.browser import whole
from tests.outcomes import DIRECTORY, ONLY, Phase, phases_in, running_in, unfinished_in

ROOT = Path(__file__).resolve().parent.parent
# Of two cores: a worker waits a third of its time, for leases, sweeps and browsers.
WORKERS = ("-n", "4", "--dist", "loadfile", "--no-loadscope-reorder")
LONG, PROOF = "--long", "--proof"
SOME_FAILED, NONE_RAN = 1, 5
# More than so many did not fail by bad luck, and repeating them takes long.
MOST_REPEATED = 40
SLOWEST = 10
# A hanging test ends by itself after fifteen minutes (pyproject.toml); this ends what hangs beside.
MINUTE_S = 60
REPEATING_S = 15 * MINUTE_S


class Stage(NamedTuple):
    arguments: tuple[str, ...]
    # On two quick cores it takes a third of that or less. Some machines are slower, and a test that
    # hangs ends by itself long before.
    within_s: float | None = None


def run_tests(arguments: Sequence[str]) -> int:
    """The exit code: 0 if everything passed, at once or when it was repeated."""
    chosen = [argument for argument in arguments if argument not in (LONG, PROOF)]
    if chosen and len(chosen) == len(arguments):
        return run_pytest(chosen, {})
    with tempfile.TemporaryDirectory(prefix="countersign-tests-") as name:
        home = Path(name)
        # Before `--long` another command may have run the other browser tests, and says where it
        # wrote what they used.
        used = Path(os.environ.get(whole.DIRECTORY) or home)
        first, controls = home / "first", {whole.DIRECTORY: str(used)}
        codes = {
            run_pytest(
                [*stage.arguments, *chosen],
                {**controls, DIRECTORY: str(first)},
                within_s=stage.within_s,
            )
            for stage in stages(arguments, is_continued=any(used.glob("finished-*")))
        }
        phases = list(phases_in(first))
        failed = {phase.test for phase in phases if phase.failed} | unfinished_in(first)
        failed_twice = repeat(failed, home, controls)
    report(phases, failed, failed_twice)
    is_broken = codes - {0, SOME_FAILED, NONE_RAN} or codes == {NONE_RAN}
    is_unexplained = SOME_FAILED in codes and not failed
    return int(bool(is_broken or is_unexplained or failed_twice))


def stages(arguments: Sequence[str], *, is_continued: bool) -> list[Stage]:
    """What shares the machine's cores, and then what kills or counts on its time."""
    if PROOF in arguments:
        return [Stage(("-m", "proof", "-o", "faulthandler_timeout=0"))]
    if LONG not in arguments:
        return [Stage((*WORKERS, "-m", "not long and not proof"), 45 * MINUTE_S)]
    # What no browser test used of a page is known when all of them have run.
    wanted = "long" if is_continued else "(long or browser)"
    return [
        Stage((*WORKERS, "-m", f"{wanted} and not alone and not proof"), 90 * MINUTE_S),
        Stage(("-m", f"{wanted} and alone and not proof"), 40 * MINUTE_S),
    ]


def repeat(failed: Collection[str], home: Path, environment: dict[str, str]) -> set[str]:
    """Those that fail again when they run by themselves."""
    if not failed or len(failed) > MOST_REPEATED:
        return set(failed)
    say("", f"Once more, one after the other: what failed ({len(failed)})")
    only, second = home / "only", home / "second"
    only.write_text("\n".join(failed))
    files = sorted({test.partition("::")[0] for test in failed})
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


def run_pytest(
    arguments: Sequence[str], environment: dict[str, str], *, within_s: float | None = None
) -> int:
    command = [sys.executable, "-m", "pytest", *arguments]
    with subprocess.Popen(command, cwd=ROOT, env={**os.environ, **environment}) as process:
        try:
            return process.wait(within_s)
        except subprocess.TimeoutExpired:
            say("", f"Not finished after {within_s:.0f} s. Still running:")
            say(*sorted(running_in(Path(environment[DIRECTORY]))), "")
            cut_short(psutil.Process(process.pid))
            return SOME_FAILED


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
