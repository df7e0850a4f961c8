"""The agents of the suite, and the two people at the console. What each is told is written down
before the next thing is done."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import random
import re
from dataclasses import dataclass
from typing import Any

import aiohttp

from tests.faults.house import House
from tests.faults.plan import Plan
from tests.gateway.agent import MODERN, TASKS, Agent, NoSession, Reply
from tests.upstreams.cases import DEEDS_ON_STDIO, EVERY_STATUS, WAYS, Case, cases

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
    ("approved", 2, "held", 0, 300),
    ("denied", 1, "held", 0, 300),
    ("dropped", 1, "later", 0, 100),
    ("rest", 4, "now", 0, 300),
    ("rest", 2, "later", 0, 300),
    ("rest cancelled", 1, "later", 300, 2500),
    # Dealt from a pack of their own: every case once, and then at random.
    ("misbehaving", 60, "", 0, 0),
    # To a server that hears of the cancellation, or does not.
    ("legacy cancelled at a session", 3, "later", 300, 1500),
)
# How a misbehaving server is asked, and which tool: one that runs in the gateway, or in a worker.
DOORS = (
    *(("plain", "do"), ("plain", "do"), ("plain", "later"), ("legacy", "do"), ("rest", "do")),
    *(("rest", "later"), ("task", "later"), ("approved", "held")),
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
    server: str = "up"
    case: Case | None = None

    @property
    def arguments(self) -> str:
        """Spelled so that writing them anew would change them."""
        if self.case is not None:
            return self.case.spelled(self.nonce)
        dropped = ', "drop" :true' if self.kind == "dropped" else ""
        late = ', "do": "late"' if self.server != "up" else ""
        return f'{{"nonce" :"{self.nonce}","ms":  {self.ms}{dropped}{late} }}'

    @property
    def asked(self) -> dict[str, Any]:
        """What is written down before anybody is asked."""
        case = {"case": vars(self.case)} if self.case else {}
        said = {"nonce": self.nonce, "asked": self.kind, "tool": self.tool, "server": self.server}
        return {**said, "arguments": self.arguments, **case}


class Pack:
    """Every case of misbehaviour once, in a seeded order, and from then on again."""

    def __init__(self, seed: int) -> None:
        self._cases = cases(EVERY_STATUS, not_acting=WAYS)
        self._cases += [Case("pipe", do) for do in DEEDS_ON_STDIO]
        random.Random(f"{seed} pack").shuffle(self._cases)
        self._dealt = itertools.count()
        self.size = len(self._cases)
        self.done = 0

    def deal(self) -> Case:
        return self._cases[next(self._dealt) % self.size]

    @property
    def through(self) -> bool:
        return self.done >= self.size


class Crowd:
    """Runs errands until `enough` is set; seeded like all else."""

    def __init__(self, house: House, plan: Plan) -> None:
        self.house, self._seed, self._size = house, plan.seed, plan.crowd
        self._pause_s = plan.pause_s
        wanted = plan.errands.split(",") if plan.errands else [kind[0] for kind in KINDS]
        if not plan.misbehaving:
            wanted = [kind for kind in wanted if kind != "misbehaving"]
        self._kinds = [kind for kind in KINDS if kind[0] in wanted]
        self.asked = self.answered = 0
        self.enough = asyncio.Event()
        self.pack = Pack(plan.seed)

    def is_through(self, calls: int) -> bool:
        """So many were answered, and every case of misbehaviour was asked for."""
        dealt = "misbehaving" in [kind[0] for kind in self._kinds]
        return self.answered >= calls and (self.pack.through or not dealt)

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
            errand = self._errand(chance, f"{number}-{self.asked}")
            self.house.told.write(**errand.asked)
            outcome = await one.run(errand)
            self.house.told.write(nonce=errand.nonce, **outcome)
            self.pack.done += errand.case is not None
            self.answered += outcome["told"] not in ("nothing", "refused")
            # One that is turned away does not come back at once.
            turned_away = outcome["told"] in ("nothing", "refused")
            await asyncio.sleep(0.3 if turned_away else self._pause_s)

    def _errand(self, chance: random.Random, nonce: str) -> Errand:
        weights = [kind[1] for kind in self._kinds]
        (kind, _, tool, least, most), *_ = chance.choices(self._kinds, weights)
        if kind == "misbehaving":
            door, tool = chance.choice(DOORS)
            case = self.pack.deal()
            return Errand(nonce, door, tool, 0, chance.uniform(0, 0.3), case.way, case)
        kind, _, elsewhere = kind.partition(" at a ")
        ms = chance.randint(least, most)
        return Errand(nonce, kind, tool, ms, chance.uniform(0, ms / 1000), elsewhere or "up")


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
            case "rest" | "rest cancelled":
                return await self._rest(errand)
            case "task" | "task cancelled" | "page cancelled" | "approved" | "denied":
                return await self._task(errand)
            case "legacy cancelled":
                return await self._cancelled(errand)
            case _:
                return await self._closed(errand)

    async def _call(self, agent: Agent, errand: Errand) -> Reply:
        return await agent.call_raw(f"{errand.server}.{errand.tool}", errand.arguments)

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

    async def _rest(self, errand: Errand) -> dict[str, Any]:
        tool = f"{errand.server}.{errand.tool}"
        body = f'{{"toolset": "desk", "tool": "{tool}", "arguments":  {errand.arguments} }}'
        reply = await self._ask_rest("POST", "calls?wait=5", body)
        if reply["status"] not in (201, 202):
            return _turned_away(reply)
        call_id = reply["id"]
        self._house.told.write(nonce=errand.nonce, told="accepted", call=call_id)
        helper = asyncio.create_task(self._help_rest(errand, call_id))
        try:
            while (said := _told_by_rest(reply)) is None:
                await asyncio.sleep(0.3)
                with contextlib.suppress(*BROKEN):
                    reply = await self._ask_rest("GET", f"calls/{call_id}")
            return said
        finally:
            helper.cancel()

    async def _help_rest(self, errand: Errand, call_id: str) -> None:
        while errand.kind == "rest cancelled":
            with contextlib.suppress(*BROKEN):
                await self._ask_rest("POST", f"calls/{call_id}/cancel")
                return
            await asyncio.sleep(0.5)

    async def _ask_rest(self, verb: str, path: str, body: str = "") -> dict[str, Any]:
        headers = {"Authorization": f"Bearer {self._house.token}"}
        headers |= {"Content-Type": "application/json"} if body else {}
        url = f"{self._house.web_url}/api/{path}"
        async with self._http.request(
            verb, url, data=body.encode() or None, headers=headers
        ) as response:
            text = await response.text()
            try:
                return {**json.loads(text), "status": response.status}
            except json.JSONDecodeError:
                return {"status": response.status, "detail": text}

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
                    await self._decide(call_id, "approve")
                elif errand.kind == "denied":
                    await self._decide(call_id, "refuse")
                return
            await asyncio.sleep(0.5)

    async def _decide(self, call_id: str, word: str) -> None:
        page = await self._page(self._house.alice, f"/queue/{call_id}/")
        fields = dict(FIELD.findall(page)) | {"csrfmiddlewaretoken": CSRF, "reason": "because"}
        await self._press(self._house.alice, f"/queue/{call_id}/{word}/", fields)

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
        message = await _message(agent, errand, request_id=errand.nonce)
        asking = asyncio.create_task(_posted(agent, message, errand))
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
        message = await _message(agent, errand)
        try:
            async with asyncio.timeout(errand.cancel_after_s):
                return told(await _posted(agent, message, errand))
        except TimeoutError:
            return {"told": "nothing", "why": "went away"}


async def _message(agent: Agent, errand: Errand, *, request_id: Any = None) -> dict[str, Any]:
    params = {"name": f"{errand.server}.{errand.tool}", "arguments": "@@"}
    return await agent.message("tools/call", params, request_id=request_id)


async def _posted(agent: Agent, message: dict[str, Any], errand: Errand) -> Reply:
    body = json.dumps(message).replace('"@@"', errand.arguments).encode()
    return await agent.post(body, headers=agent.headers(message))


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


def _turned_away(reply: dict[str, Any]) -> dict[str, Any]:
    """By REST, which says for itself whether there may be such a call."""
    recorded = reply.get("recorded", "")
    said = {"told": "refused", "status": reply["status"], "why": reply.get("detail", "")[:300]}
    return said | {"recorded": recorded}


GOING_ON = ("held", "approved", "queued", "running")


def _told_by_rest(reply: dict[str, Any]) -> dict[str, Any] | None:
    """None while it goes on."""
    if reply["status"] >= 300 or reply["state"] in GOING_ON:
        return None
    if reply["state"] == "succeeded":
        return _succeeded(reply["result"]["content"][0]["text"])
    said = {"told": reply["state"], "executed": reply["executed"], "by": "rest"}
    return said | {"why": str(reply["outcome"])[:300]}


def _succeeded(text: str) -> dict[str, Any]:
    return {"told": "succeeded", "receipt": json.loads(text)["receipt"], "text": text}


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
    return _succeeded(text)


__all__ = ["MODERN", "Crowd", "Member", "long_errands"]
