"""A client that declares the tasks extension; the SDKs at hand do not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp

from tests.flows.visitors import Json, OnStep, Refused
from tests.gateway.agent import TASKS, Agent


class TasksVisitor:
    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        # What it could show its user: a sentence for each look at a task.
        self.asked: list[Json] = []

    async def tools(self) -> list[Json]:
        tools: list[Json] = (await self.agent.ask("tools/list")).result["tools"]
        return tools

    async def call(self, tool: str, arguments: Json, on_step: OnStep | None = None) -> Json:
        """`on_step` hears nothing: tasks are polled."""
        created: Json = (await self.agent.call(tool, arguments)).result
        if created["resultType"] != "task":
            return created
        try:
            return await self._outcome(created)
        except asyncio.CancelledError:
            await self.agent.ask("tasks/cancel", {"taskId": created["taskId"]})
            assert (await self._look(created["taskId"]))["status"] == "cancelled"
            raise

    async def _outcome(self, task: Json) -> Json:
        while task["status"] == "working":
            self.asked.append(task)
            await asyncio.sleep(task["pollIntervalMs"] / 1000)
            task = await self._look(task["taskId"])
        if task["status"] == "failed":
            raise Refused(**task["error"])
        assert task["status"] == "completed", task
        result: Json = task["result"]
        return result

    async def _look(self, task_id: str) -> Json:
        task: Json = (await self.agent.ask("tasks/get", {"taskId": task_id})).result
        return task


@asynccontextmanager
async def visiting_with_tasks(url: str, token: str) -> AsyncIterator[TasksVisitor]:
    async with aiohttp.ClientSession() as session:
        yield TasksVisitor(Agent(session, url, token, capabilities=TASKS))
