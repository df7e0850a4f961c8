"""Keeps children running, shows what they say, and stops them in order."""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from config.output import Output
from config.readiness import READY_FD, Readiness
from core import die_with_parent
from core.events_in_time import set_within

FIRST_DELAY_S, LAST_DELAY_S = 0.5, 30.0
# After so long a run the next end counts as the first again.
HEALTHY_AFTER_S = 30.0
LINE_MAX = 1024 * 1024


@dataclass
class SupervisedProcess:
    name: str
    # Asked anew for every start: the program with its arguments, and its whole environment.
    command: Callable[[], tuple[list[str], Mapping[str, str]]]
    ready: Callable[[int], Awaitable[bool]] | None = None
    stop_signal: signal.Signals = signal.SIGTERM
    stop_within_s: float = 10.0
    # Sockets that it inherits.
    fds: tuple[int, ...] = ()
    # It says by itself when it serves (config/readiness.py), which `serves` then tells.
    tells: bool = False
    # Two of it may not run at a time.
    alone: bool = False
    # Lines of its output with one of these are about nothing that matters here.
    dull: tuple[str, ...] = ()
    process: asyncio.subprocess.Process | None = None
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    serves: asyncio.Event = field(default_factory=asyncio.Event)
    refuses: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)
    stopping: asyncio.Event = field(default_factory=asyncio.Event)
    keeper: asyncio.Task[None] | None = None

    def next(self) -> SupervisedProcess:
        """Another one like it, not begun."""
        return replace(
            self,
            process=None,
            keeper=None,
            begun=asyncio.Event(),
            serves=asyncio.Event(),
            refuses=asyncio.Event(),
            ended=asyncio.Event(),
            stopping=asyncio.Event(),
        )


class Supervisor:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.children: list[SupervisedProcess] = []
        self.output = Output()

    async def start(self, child: SupervisedProcess, *, within_s: float = 60.0) -> bool:
        """True as soon as the child is ready; False if it is not in time, or refuses."""
        self.children.append(child)
        child.keeper = asyncio.create_task(self._keep(child))
        deadline = time.monotonic() + within_s
        while child.ready and not (child.process and await child.ready(child.process.pid)):
            if time.monotonic() > deadline or child.refuses.is_set():
                return False
            await asyncio.sleep(0.02)
        return True

    async def run(self, name: str, argv: list[str], env: Mapping[str, str]) -> tuple[int, bytes]:
        """A command to its end: its errors are shown, its output is the answer."""
        process = await asyncio.create_subprocess_exec(
            *die_with_parent.command(argv, signal=signal.SIGKILL),
            env=env,
            cwd=self.directory,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            limit=LINE_MAX,
            start_new_session=True,
            pass_fds=die_with_parent.lifelines(),
        )
        assert process.stdout
        assert process.stderr
        try:
            _, output = await asyncio.gather(
                self._show(name, process.stderr), process.stdout.read()
            )
            return await process.wait(), output
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()

    async def stop(self, *names: str) -> None:
        """Together, each with its own time; who takes longer is killed."""
        wanted = [child for child in self.children if child.name in names]
        await asyncio.gather(*(self._stop(child) for child in wanted))

    async def replace(self, name: str, *, within_s: float = 60.0) -> bool:
        """The next process of it takes over, and then the old one ends in its own time. False:
        the next one was not ready in time, and the old one stays."""
        old = next(child for child in self.children if child.name == name)
        new = old.next()
        if new.alone:
            await self._stop(old)
        self.children.append(new)
        new.keeper = asyncio.create_task(self._keep(new))
        await new.begun.wait()
        if new.tells and not await _serves(new, within_s):
            await self._stop(new)
            self.children.remove(new)
            return False
        await self._stop(old)
        self.children.remove(old)
        return True

    def shorten_waits(self) -> None:
        for child in self.children:
            child.stop_within_s = 0.5

    async def _keep(self, child: SupervisedProcess) -> None:
        delay = FIRST_DELAY_S
        while not child.stopping.is_set():
            began = time.monotonic()
            code = await self._run(child)
            child.ended.set()
            if child.stopping.is_set():
                return
            if time.monotonic() - began > HEALTHY_AFTER_S:
                delay = FIRST_DELAY_S
            self.output.say(
                child.name,
                f"ended by itself ({meaning(code)}); starts again in {delay:g} s",
                level=logging.WARNING,
            )
            await set_within(child.stopping, delay)
            delay = min(delay * 2, LAST_DELAY_S)

    async def _run(self, child: SupervisedProcess) -> int:
        child.process = await self._begun(child)
        child.begun.set()
        assert child.process.stdout
        showing = asyncio.create_task(self._show(child.name, child.process.stdout, child.dull))
        code = await child.process.wait()
        # A grandchild may keep the pipe open for ever.
        await asyncio.wait([showing], timeout=0.5)
        showing.cancel()
        return code

    async def _begun(self, child: SupervisedProcess) -> asyncio.subprocess.Process:
        argv, env = child.command()
        fds = (*die_with_parent.lifelines(), *child.fds)
        readiness = Readiness(child.serves, child.refuses) if child.tells else None
        if readiness:
            fds = (*fds, readiness.writing)
            env = {**env, READY_FD: str(readiness.writing)}
        try:
            return await asyncio.create_subprocess_exec(
                *argv,
                env=env,
                cwd=self.directory,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                limit=LINE_MAX,
                # Its own session: Ctrl-C in the terminal is ours to hand on, in our order.
                start_new_session=True,
                pass_fds=fds,
            )
        finally:
            if readiness:
                readiness.begun()

    async def _show(
        self, name: str, output: asyncio.StreamReader, dull: tuple[str, ...] = ()
    ) -> None:
        while True:
            try:
                line = await output.readline()
            except ValueError:
                continue  # longer than LINE_MAX: dropped
            if not line:
                return
            text = line.decode(errors="replace").rstrip()
            if not any(part in text for part in dull):
                self.output.relay(name, text)

    async def _stop(self, child: SupervisedProcess) -> None:
        child.stopping.set()
        if child.keeper is None:
            return
        if child.process and child.process.returncode is None:
            # The process alone, never its group: a Celery worker signals its own threads.
            child.process.send_signal(child.stop_signal)
        waited = 0.0
        while not child.keeper.done() and waited < child.stop_within_s:
            await asyncio.wait([child.keeper], timeout=0.1)
            waited += 0.1
        if child.process and child.process.returncode is None:
            self.output.say(child.name, "did not stop in time and is killed", level=logging.WARNING)
            child.process.kill()
        await child.keeper


async def _serves(child: SupervisedProcess, within_s: float) -> bool:
    """In time, and at its first attempt."""
    serves, ends = (asyncio.create_task(event.wait()) for event in (child.serves, child.ended))
    await asyncio.wait((serves, ends), timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
    serves.cancel()
    ends.cancel()
    return child.serves.is_set()


def meaning(code: int) -> str:
    return f"exit code {code}" if code >= 0 else signal.Signals(-code).name
