"""Lets a test drive an agent: a line on stdin is what its user says, one on stdout the answer."""

import asyncio
import json
import sys
import traceback
from collections.abc import Awaitable, Callable


def say(message: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


async def converse(ask: Callable[[str], Awaitable[str]]) -> None:
    say({"ready": True})
    while line := await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline):
        try:
            say({"said": await ask(line.strip())})
        except Exception as error:
            traceback.print_exc()
            say({"failed": f"{type(error).__name__}: {error}"})
