"""One of the product's processes, again and again, forked from an image that has imported it all:
who is killed two hundred times cannot read all code anew each time.

    python -m tests.faults.warm worker|gateway|web ARGUMENT …

Each line on the standard input names a log and starts one; its number is printed, and its end.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Callable

PR_SET_PDEATHSIG = 1


def worker() -> Callable[[], object]:
    import django

    django.setup()
    from celery.__main__ import main

    import config.sweep
    import config.watchdog  # noqa: F401
    from config.celery import app

    app.loader.import_default_modules()
    return main


def gateway() -> Callable[[], object]:
    import uvloop  # noqa: F401

    from config.agents import main

    return main


def web() -> Callable[[], object]:
    import autobahn.websocket.protocol  # noqa: F401
    import twisted.web.http  # noqa: F401

    import config.asgi  # noqa: F401
    import gateway.subscriptions.streams  # noqa: F401

    def main() -> None:
        # Daphne opens its event loop when it is imported: each process needs its own.
        from config.web import main

        main()

    return main


def become(main: Callable[[], object], log: str) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    os.setsid()
    output = os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    for number in (1, 2):
        os.dup2(output, number)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    main()


def serve(main: Callable[[], object]) -> None:
    for line in sys.stdin:
        pid = os.fork()
        if pid == 0:
            become(main, line.strip())
            sys.exit()
        print(pid, flush=True)  # noqa: T201
        os.waitpid(pid, 0)
        print("ended", flush=True)  # noqa: T201


if __name__ == "__main__":
    role, *arguments = sys.argv[1:]
    made = {"worker": worker, "gateway": gateway, "web": web}[role]()
    sys.argv = [role, *arguments]
    serve(made)
