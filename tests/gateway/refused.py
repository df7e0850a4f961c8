"""`python -m tests.gateway.refused TOKEN`: a process like that of pages, whose runtime lives on the
background loop and is never closed, refuses calls and ends."""

import os
import sys


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    import django

    django.setup()
    from core import loop
    from gateway.process.current import get_runtime
    from tests.gateway.limiting import ask

    async def refuse() -> None:
        runtime = await get_runtime()
        for n in range(4):
            await ask(runtime, sys.argv[1], str(n))

    loop.run(refuse(), timeout=30)


if __name__ == "__main__":
    main()
