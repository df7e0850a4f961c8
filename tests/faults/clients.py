"""The agents of the suite, and the two people at the console. What each is told is written down
before the next thing is done."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
from dataclasses import dataclass
from typing import Any

import aiohttp

from tests.faults.house import House
from tests.gateway.agent import MODERN, TASKS, Agent, NoSession, Reply

# What a client may see of a process that dies under it.
BROKEN = (aiohttp.ClientError, ConnectionError, TimeoutError, json.JSONDecodeError, KeyError)
# (kind, weight, tool, shortest and longest answer of the server in ms)
Kind = tuple[str, int, str, int, int]
KINDS: tuple[Kind, ...] = (
    ("plain", 50, "now", 0, 20),
    ("plain", 6, "now", 200, 1500),
    ("plain", 14, "later", 0, 300),
    ("plain", 6, "safe", 0, 3000),
    ("legacy", 6, "later", 0, 300),
    ("task", 6, "later", 0, 800),
    ("task cancelled", 3, "later", 300, 2500),
    ("legacy cancelled", 3, "later", 300, 2500),
    ("stream closed", 3, "later", 300, 2500),
    ("page cancelled", 1, "later", 300, 2500),
    ("approved", 1, "held", 0, 300),
    ("dropped", 1, "later", 0, 100),
)
CSRF = "c" * 32
FIELD = re.compile(r'<input type="hidden" name="(\w+)" value="([^"]*)"')
PATIENCE_S = 100.0
TURNED_AWAY = (429, 503)


@dataclass(frozen=True)
class Errand:
    nonce: str
    kind: str
    tool: str
    ms: int
    # How long after asking it is cancelled.
    cancel_after_s: float


class Crowd:
    """Runs errands until `enough` is set; seeded like all else."""

    def __init__(
        self, house: House, *, seed: int, size: int, pause_s: float, errands: str = ""
    ) -> None:
        self.house, self._seed, self._size, self._pause_s = house, seed, size, pause_s
        wanted = errands.split(",") if errands else [kind[0] for kind in KINDS]
        self._kinds = [kind for kind in KINDS if kind[0] in wanted]
        self.asked = self.answered = 0
        self.enough = asyncio.Event()

    async def run(self) -> None:
        connector = aiohttp.TCPConnector(limit=0)
        timeout = aiohttp.ClientTimeout(total=PATIENCE_S)
        async with aiohttp.ClientSession(connector=connector, timeout=timeout) as http:
            await asyncio.gather(*(self._member(http, n) for n in range(self._size)))

    async def _member(self, http: aiohttp.ClientSession, number: int) -> None:
        chance = random.Random(f"{self._seed} member {number}")
        one = Member(self.house, http)
        while not self.enough.is_set():
            self.asked += 1
            errand = _errand(chance, self._kinds, f"{number}-{self.asked}")
            self.house.told.write(nonce=errand.nonce, asked=errand.kind, tool=errand.tool)
            outcome = await one.run(errand)
            self.house.told.write(nonce=errand.nonce, **outcome)
            self.answered += outcome["told"] not in ("nothing", "refused")
            # One that is turned away does not come back at once.
            await asyncio.sleep(self._pause_s if "receipt" in outcome else 0.3)


def _errand(chance: random.Random, kinds: list[Kind], nonce: str) -> Errand:
    (kind, _, tool, least, most), *_ = chance.choices(kinds, [kind[1] for kind in kinds])
    ms = chance.randint(least, most)
    return Errand(nonce, kind, tool, ms, chance.uniform(0, ms / 1000))


def long_errands(count: int, ms: int) -> list[Errand]:
    """For calm times: longer than a lease, and nobody disturbs them."""
    return [Errand(f"long-{n}", "plain", "later", ms, 0) for n in range(count)]


class Member:
    def __init__(self, house: House, http: aiohttp.ClientSession) -> None:
        self._house, self._http = house, http
        url = f"{house.agents_url}/mcp/desk"
        self._modern = Agent(http, url, house.token)
        self._tasks = Agent(http, url, house.token, capabilities=TASKS)
        self._legacy = Agent(http, url, house.token, revision="2025-11-25")

    async def run(self, errand: Errand) -> dict[str, Any]:
        """What this client was told in the end; "nothing" when the connection broke."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                return await self._run(errand)
        except NoSession as refusal:
            return told(refusal.reply)
        except BROKEN as error:
            return {"told": "nothing", "why": repr(error)[:80]}

    async def _run(self, errand: Errand) -> dict[str, Any]:
        match errand.kind:
            case "plain" | "dropped":
                return told(await self._call(self._modern, errand))
            case "legacy":
                return told(await self._call(self._legacy, errand))
            case "task" | "task cancelled" | "page cancelled" | "approved":
                return await self._task(errand)
            case "legacy cancelled":
                return await self._cancelled(errand)
            case _:
                return await self._closed(errand)

    async def _call(self, agent: Agent, errand: Errand) -> Reply:
        return await agent.call(f"up.{errand.tool}", arguments(errand))

    async def _task(self, errand: Errand) -> dict[str, Any]:
        reply = await self._call(self._tasks, errand)
        if reply.status != 200 or reply.last.get("result", {}).get("resultType") != "task":
            return told(reply)
        task, call_id = reply.result["taskId"], reply.call_id
        # From here on the house has given its word that there is such a call.
        self._house.told.write(nonce=errand.nonce, told="accepted", call=call_id)
        helper = asyncio.create_task(self._help(errand, task, call_id))
        try:
            return await self._poll(task)
        finally:
            helper.cancel()

    async def _poll(self, task: str) -> dict[str, Any]:
        while True:
            with contextlib.suppress(*BROKEN):
                reply = await self._tasks.ask("tasks/get", {"taskId": task})
                if reply.status == 200 and reply.result["status"] == "cancelled":
                    return {"told": "cancelled"}
                if reply.status == 200 and reply.result["status"] != "working":
                    return _judged(reply.result)
            await asyncio.sleep(0.3)

    async def _help(self, errand: Errand, task: str, call_id: str) -> None:
        await asyncio.sleep(errand.cancel_after_s)
        while True:
            with contextlib.suppress(*BROKEN):
                if errand.kind == "task cancelled":
                    await self._tasks.ask("tasks/cancel", {"taskId": task})
                elif errand.kind == "page cancelled":
                    await self._press(self._house.bob, f"/calls/{call_id}/cancel/", {})
                elif errand.kind == "approved":
                    await self._approve(call_id)
                return
            await asyncio.sleep(0.5)

    async def _approve(self, call_id: str) -> None:
        page = await self._page(self._house.alice, f"/queue/{call_id}/")
        fields = dict(FIELD.findall(page)) | {"csrfmiddlewaretoken": CSRF}
        await self._press(self._house.alice, f"/queue/{call_id}/approve/", fields)

    async def _page(self, session: str, path: str) -> str:
        async with self._http.get(f"{self._house.web_url}{path}", headers=_as(session)) as response:
            response.raise_for_status()
            return await response.text()

    async def _press(self, session: str, path: str, fields: dict[str, str]) -> None:
        url, headers = f"{self._house.web_url}{path}", _as(session) | {"X-CSRFToken": CSRF}
        async with self._http.post(
            url, data=fields, headers=headers, allow_redirects=False
        ) as response:
            response.raise_for_status()

    async def _cancelled(self, errand: Errand) -> dict[str, Any]:
        agent = self._legacy
        params = {"name": f"up.{errand.tool}", "arguments": arguments(errand)}
        message = await agent.message("tools/call", params, request_id=errand.nonce)
        asking = asyncio.create_task(agent.post(message, headers=agent.headers(message)))
        try:
            await asyncio.sleep(errand.cancel_after_s)
            note = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
            note["params"] = {"requestId": errand.nonce}  # type: ignore[assignment]
            with contextlib.suppress(*BROKEN):
                await agent.post(note, headers=agent.headers(message))
            return told(await asking)
        finally:
            asking.cancel()

    async def _closed(self, errand: Errand) -> dict[str, Any]:
        """Goes away in the middle, which on 2026-07-28 cancels."""
        agent = self._modern
        params = {"name": f"up.{errand.tool}", "arguments": arguments(errand)}
        message = await agent.message("tools/call", params)
        try:
            async with asyncio.timeout(errand.cancel_after_s):
                return told(await agent.post(message, headers=agent.headers(message)))
        except TimeoutError:
            return {"told": "nothing", "why": "went away"}


def arguments(errand: Errand) -> dict[str, Any]:
    dropped = {"drop": True} if errand.kind == "dropped" else {}
    return {"nonce": errand.nonce, "ms": errand.ms, **dropped}


def _as(session: str) -> dict[str, str]:
    return {"Cookie": f"sessionid={session}; csrftoken={CSRF}"}


def told(reply: Reply) -> dict[str, Any]:
    """In the checker's words."""
    if reply.status != 200:
        return {"told": "refused", "status": reply.status, "why": reply.body[:300].decode()}
    message = reply.last
    if message.get("error", {}).get("code") in TURNED_AWAY:
        # Once a stream has begun, its status can no longer say so.
        error = message["error"]
        return {"told": "refused", "status": error["code"], "why": error["message"][:300]}
    return _judged(message)


def _judged(task: dict[str, Any]) -> dict[str, Any]:
    if "error" in task:
        return {"told": "error", "why": json.dumps(task["error"])[:300]}
    result = task["result"]
    meta = result.get("_meta", {})
    text = result["content"][0]["text"]
    state = meta.get("countersign/state")
    if state is not None:
        executed = meta.get("countersign/executed")
        return {"told": state, "executed": executed, "why": text[:300]}
    return {"told": "succeeded", "receipt": json.loads(text)["receipt"]}


__all__ = ["MODERN", "Crowd", "Member", "long_errands"]
