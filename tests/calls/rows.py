"""Calls as rows alone: bound and queued, with nobody told. Who asked can follow tasks."""

from uuid import UUID

import orjson

from accounts.models import Agent, User
from calls.record.statements import statement
from calls.record.states import State
from registry.models import Tool
from registry.publishing import published_catalogue
from tests.console import scenery


def queue(agent: Agent, owner: User, name: str, *, count: int = 1) -> list[UUID]:
    tool = Tool.objects.select_related("server", "latest").get(name=name)
    offered = published_catalogue.one(tool.pk)
    assert offered is not None
    ids = []
    for n in range(count):
        asked = {"text": str(n)}
        bound = statement(
            agent=(agent.pk, agent.name),
            person=(owner.pk, owner.username),
            tool=offered,
            arguments=orjson.dumps(asked),
        )
        line = {"statement": bound, "toolset": "desk", "details": {"tasks": True}}
        ids.append(scenery.call(agent, tool, asked, State.QUEUED, **line))
    return ids
