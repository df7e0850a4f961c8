"""`python -m tests.gateway.spender TOKEN`: gateways that are killed while they spend a budget.

For each line, a number of seconds, a process is forked that asks for calls as fast as it can, and
is killed after so long.
"""

import asyncio
import os
import select
import signal
import sys
import time
from contextlib import suppress

# A gateway that has not begun by then is killed, and another takes its place.
BEGUN_S = 20.0


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    # What every child needs is imported once, here.
    from core.errors import RecordUnavailable
    from gateway.process.runtime import Runtime
    from tests.gateway.limiting import ask

    async def spend() -> None:
        runtime = Runtime()
        await runtime.start()
        await runtime.newest()
        os.write(ready[1], b"x")

        async def client() -> None:
            for n in range(10_000):
                # On a busy machine the record may be too late: then nothing was sent.
                with suppress(RecordUnavailable):
                    await ask(runtime, sys.argv[1], f"{os.getpid()} {time.monotonic_ns()} {n}")

        await asyncio.gather(*(client() for _ in range(6)))

    for line in sys.stdin:
        has_begun = False
        while not has_begun:
            ready = os.pipe()
            child = os.fork()
            if not child:
                try:
                    asyncio.run(spend())
                finally:
                    os._exit(1)
            os.close(ready[1])
            # Otherwise it ended or hangs before it began, since the database does not answer.
            told, _, _ = select.select([ready[0]], [], [], BEGUN_S)
            has_begun = bool(told) and os.read(ready[0], 1) == b"x"
            if has_begun:
                time.sleep(float(line))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(ready[0])
        sys.stdout.write("killed\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
