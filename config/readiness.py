"""How a child tells its supervisor that it serves: a byte on a pipe that it inherited."""

from __future__ import annotations

import asyncio
import os

READY_FD = "COUNTERSIGN_READY_FD"


READY, REFUSED = b"\n", b"!"


def say_ready() -> None:
    """In the child; nothing happens where nobody waits for it."""
    _say(READY)


def say_refused() -> None:
    """In a child that has said why it cannot serve: a person has to do something first."""
    _say(REFUSED)


def _say(what: bytes) -> None:
    number = os.environ.pop(READY_FD, "")
    if number:
        os.write(int(number), what)
        os.close(int(number))


class Readiness:
    """In the supervisor, for one process."""

    def __init__(self, serves: asyncio.Event, refuses: asyncio.Event) -> None:
        self._serves, self._refuses = serves, refuses
        self._reading, self.writing = os.pipe()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._reading, self._on_readable)

    def begun(self) -> None:
        """Closes our copy of the writing end, once the child process has its own."""
        os.close(self.writing)

    def close(self) -> None:
        if self._reading >= 0:
            self._loop.remove_reader(self._reading)
            os.close(self._reading)
            self._reading = -1

    def _on_readable(self) -> None:
        # Nothing to read: it ended without a word.
        said = os.read(self._reading, 1)
        if said == READY:
            self._serves.set()
        elif said == REFUSED:
            self._refuses.set()
        self.close()
