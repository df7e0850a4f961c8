"""The product's processes: what each is started with. `up` and the tests start the same."""

import signal
import sys

from core import die_with_parent

PYTHON = [sys.executable, "-m"]
CELERY = [sys.executable, "-W", "ignore:You're running the worker with superuser"]
CELERY += ["-m", "celery", "--quiet", "-A", "config.celery"]


def web(host: str, port: int) -> list[str]:
    return [*PYTHON, "config.web", "--host", host, "--port", str(port)]


def agents(host: str, port: int, *, number: int = 0) -> list[str]:
    """`number`: of several on the same socket, from 1 on."""
    argv = [*PYTHON, "config.agents", "--host", host, "--port", str(port)]
    return [*argv, "--number", str(number)] if number else argv


def worker() -> list[str]:
    argv = [*CELERY, "worker", "-P", "threads", "-c", "32", "--prefetch-multiplier", "1"]
    return [*argv, "--without-gossip", "--without-mingle"]


def beat() -> list[str]:
    return [*CELERY, "beat", "--pidfile="]


def seal() -> list[str]:
    return [*PYTHON, "config.seal"]


def leashed(argv: list[str]) -> list[str]:
    # Killed, not asked: with the supervisor goes the database that they would need to end well.
    return die_with_parent.command(argv, signal=signal.SIGKILL)
