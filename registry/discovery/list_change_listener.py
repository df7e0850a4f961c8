"""Listens to each server that announces list changes, and discovers it then.

One process of the whole installation does, whichever got the lock in the database; it loses that
with its connection, and another one goes on. Nobody's call waits for any of this, and what nobody
heard of the next look at all servers finds.

Sources: MCP 2026-07-28, basic/patterns/subscriptions; 2025-11-25, basic/transports, server/tools.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import psycopg
from channels.db import database_sync_to_async
from django.conf import settings

from core.listen import LISTS
from core.text import revealed
from registry.connections import Unreachable
from registry.discovery.discovery import ServerSession
from registry.models import Server

log = logging.getLogger(__name__)

# How often it is looked at who is to be listened to, and in other processes, whether they are to.
EVERY_S = 1.0
# A stream that ends is opened again, less and less often, unless it lasted.
AGAIN_S, AT_MOST_S, LASTED_S = 0.5, 300.0, 60.0
# What changes together is told of in several pieces.
SETTLES_S = 0.2
# Between two looks, where one follows the other: at first, and at most, with cause and without.
GAP_S, WITH_CAUSE_S, WITHOUT_S = 0.5, 30.0, 600.0
CALM_S = 120.0

_MINE = "SELECT pg_try_advisory_lock(hashtext('countersign attendant'))"
_WHO = "SELECT id, slug, connection_version FROM registry_server WHERE enabled AND tells_of_lists"

Link = psycopg.AsyncConnection[tuple[Any, ...]]


class Who(NamedTuple):
    server_id: int
    slug: str
    connection_version: int


async def attend() -> None:
    """Listens for ever, in every worker."""
    while True:
        try:
            async with await _connect() as link:
                await _my_turn(link)
                await _Attendant(link).run()
        except (psycopg.Error, OSError, TimeoutError) as error:
            log.warning("attendant: %s", str(error).strip())
        except Exception:
            log.exception("The attendant failed; it goes on in a second.")
        await asyncio.sleep(EVERY_S)


async def _connect() -> Link:
    return await psycopg.AsyncConnection.connect(
        settings.DATABASE_DIRECT_URL,
        autocommit=True,
        connect_timeout=2,
        application_name="countersign attendant",
    )


async def _my_turn(link: Link) -> None:
    while True:
        if await _rows(link, _MINE) == [(True,)]:
            return
        await asyncio.sleep(EVERY_S)


async def _rows(link: Link, query: str) -> list[tuple[Any, ...]]:
    async with asyncio.timeout(5):
        return await (await link.execute(query)).fetchall()


class _Attendant:
    """Holds the lock as long as its connection answers."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._posts: dict[Who, _Post] = {}

    async def run(self) -> None:
        try:
            await self._link.execute(f"LISTEN {LISTS}")
            while True:
                await self._look_round()
                async for heard in self._link.notifies(timeout=EVERY_S, stop_after=1):
                    self._tell(heard.payload)
        finally:
            posts, self._posts = list(self._posts.values()), {}
            await asyncio.gather(*(post.aclose() for post in posts))

    async def _look_round(self) -> None:
        wanted = {Who._make(row) for row in await _rows(self._link, _WHO)}
        gone = [self._posts.pop(who) for who in self._posts.keys() - wanted]
        await asyncio.gather(*(post.aclose() for post in gone))
        for who in wanted - self._posts.keys():
            self._posts[who] = _Post(who)

    def _tell(self, slug: str) -> None:
        """A call of it heard so, in whichever process it runs."""
        for (_id, name, _version), post in self._posts.items():
            if name == slug:
                post.told()


class RefreshThrottle:
    """When a server that says something changed may be asked: soon; but one that goes on saying so
    is asked less and less often, most of all where nothing had changed."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._gap_s = 0.0
        self._looked_at = float("-inf")

    def wait_s(self) -> float:
        return max(0.0, self._looked_at + self._gap_s - self._now())

    def looked(self, *, moved: bool) -> None:
        calm = self._now() > self._looked_at + self._gap_s + CALM_S
        most = WITH_CAUSE_S if moved else WITHOUT_S
        self._gap_s = GAP_S if calm else min(max(2 * self._gap_s, GAP_S), most)
        self._looked_at = self._now()


class _Post:
    """Listens to one server."""

    def __init__(self, who: Who) -> None:
        self._server_id, self._slug, _version = who
        self._told = asyncio.Event()
        # It said so itself, and not we, who had not listened for a while.
        self._its_word = False
        self._unheard: str | None = None
        self._pace = RefreshThrottle(asyncio.get_running_loop().time)
        self._asking = asyncio.Lock()
        self._task = asyncio.create_task(self._run(), name=f"attend {self._slug}")

    def told(self) -> None:
        self._its_word = True
        self._told.set()

    async def aclose(self) -> None:
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _run(self) -> None:
        loop, pause_s, before = asyncio.get_running_loop(), AGAIN_S, False
        while True:
            began = loop.time()
            try:
                await self._listen(again=before)
            except Unreachable as error:
                log.info("%s says nothing by itself now: %s", self._slug, error)
            except Server.DoesNotExist:
                # The next look round would find that out.
                log.info("%s is gone: it is no longer listened to", self._slug)
                return
            except Exception:
                log.exception("%s could not be listened to", self._slug)
            lasted = loop.time() - began > LASTED_S
            pause_s, before = AGAIN_S if lasted else min(2 * pause_s, AT_MOST_S), True
            # Many may stand behind one proxy that ended them all.
            await asyncio.sleep(pause_s * random.uniform(0.5, 1))  # noqa: S311 no secret

    async def _listen(self, *, again: bool) -> None:
        """Listens while one stream lasts."""
        line, opened = ServerSession(self._server_id, self.told), asyncio.Event()
        tasks = [
            asyncio.create_task(line.keep(opened)),
            asyncio.create_task(self._looks(line, opened, again=again)),
        ]
        try:
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            # What is being read may be read to its end.
            async with self._asking:
                pass
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await line.aclose()
        try:
            for task in ended:
                task.result()
        except Unreachable as error:
            if not opened.is_set():
                await self._note(str(error))
            raise

    async def _note(self, unheard: str) -> None:
        """Whether it can be listened to at all, for the server's page."""
        if unheard != self._unheard:
            row = Server.objects.filter(pk=self._server_id)
            update = database_sync_to_async(row.update, thread_sensitive=False)
            await update(lists_unheard=revealed(unheard)[:500])
            self._unheard = unheard

    async def _looks(self, line: ServerSession, opened: asyncio.Event, *, again: bool) -> None:
        await opened.wait()
        await self._note("")
        if again:
            # Of what changed meanwhile nobody was told.
            self._told.set()
        while True:
            await self._told.wait()
            await asyncio.sleep(max(SETTLES_S, self._pace.wait_s()))
            async with self._asking:
                self._told.clear()
                its_word, self._its_word = self._its_word, False
                row = await line.look(on_its_word=its_word)
                self._pace.looked(moved=row.moved)
