"""The product's processes: what each is started with. `up` and the tests start the same."""

import signal
import sys

from config.embedded import leash

PYTHON = [sys.executable, "-m"]
CELERY = [sys.executable, "-W", "ignore:You're running the worker with superuser"]
CELERY += ["-m", "celery", "--quiet", "-A", "config.celery"]


def web(host: str, port: int) -> list[str]:
    argv = [*PYTHON, "daphne", "--bind", host, "--port", str(port), "--verbosity", "0"]
    return [*argv, "--no-server-name", "config.asgi:application"]


def agents(host: str, port: int) -> list[str]:
    argv = [*PYTHON, "uvicorn", "config.agents:app", "--host", host, "--port", str(port)]
    argv += ["--loop", "uvloop", "--http", "httptools", "--ws", "none", "--lifespan", "on"]
    argv += [
        "--no-access-log",
        "--no-server-header",
        "--no-proxy-headers",
        "--log-level",
        "warning",
    ]
    # Held streams would keep it from ending for as long as a person thinks.
    return [*argv, "--timeout-graceful-shutdown", "5"]


def worker() -> list[str]:
    argv = [*CELERY, "worker", "-P", "threads", "-c", "32", "--prefetch-multiplier", "1"]
    return [*argv, "--without-gossip", "--without-mingle", "-l", "INFO"]


def beat() -> list[str]:
    return [*CELERY, "beat", "-l", "INFO", "--pidfile="]


def leashed(argv: list[str]) -> list[str]:
    # Killed, not asked: with the supervisor goes the database that they would need to end well.
    return leash.command(argv, signal=signal.SIGKILL)
