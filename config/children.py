"""The product's processes: what each is started with. `up` and the tests start the same."""

import sys

PYTHON = [sys.executable, "-m"]


def web(host: str, port: int) -> list[str]:
    return [
        *PYTHON,
        "daphne",
        "-b",
        host,
        "-p",
        str(port),
        "--no-server-name",
        "config.asgi:application",
    ]


def agents(host: str, port: int) -> list[str]:
    argv = [*PYTHON, "uvicorn", "config.agents:app", "--host", host, "--port", str(port)]
    argv += ["--loop", "uvloop", "--http", "httptools", "--ws", "none", "--lifespan", "off"]
    # Held streams would keep it from ending for as long as a person thinks.
    argv += ["--no-access-log", "--no-server-header", "--timeout-graceful-shutdown", "5"]
    return argv


def worker() -> list[str]:
    argv = [
        *PYTHON,
        "celery",
        "-A",
        "config.celery",
        "worker",
        "-P",
        "threads",
        "-c",
        "32",
        "-l",
        "INFO",
    ]
    return [*argv, "--without-gossip", "--without-mingle", "--prefetch-multiplier", "1"]


def beat() -> list[str]:
    return [*PYTHON, "celery", "-A", "config.celery", "beat", "-l", "INFO", "--pidfile="]
