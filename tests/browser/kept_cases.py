"""A saved case with a history, for pages and pictures: passed, and failed by its schedule once the
tool's definition had changed."""

from typing import Any

from accounts.models import Agent, User
from calls.record.states import State
from gateway.cases import runs, schedules
from gateway.cases.services import add_case
from gateway.models import CaseRun, SavedCase
from registry import services
from registry.models import Tool, versioned
from tests.browser.scene import ALLOWED, FORECAST
from tests.console import scenery


def keep_cases(person: User) -> SavedCase:
    agent = Agent.objects.create(name=f"{person.username}-desk", owner=person)
    tool = Tool.objects.for_catalogue().get(exposed_name="weather.forecast")
    scenery.offered(agent, tool)
    case = add_case(tool, b'{"place":"Utrecht"}', {}, schema={}, by=person)
    case.name, case.contains, case.values = "Utrecht", "Utrecht", '$.sky = "clear"'
    case.save()
    ran(case, agent, {"place": "Utrecht", "sky": "clear"})
    changed = {**FORECAST, "description": "The weather of a place, hour by hour."}
    scenery.see(tool.server, changed)
    case.tool.refresh_from_db()
    services.publish(
        case.tool,
        difference=versioned.difference(case.tool),
        by=person,
        reason="It is as its server says.",
    )
    ran(case, agent, {"place": "Utrecht", "sky": "rain"}, is_scheduled=True)
    schedules.set_schedule(case, "day", agent=agent, confirmed=True, by=person)
    return case


def ran(case: SavedCase, agent: Agent, content: Any, **more: Any) -> None:
    tool = Tool.objects.for_catalogue().get(pk=case.tool_id)
    call = scenery.call(agent, tool, {"place": "Utrecht"}, State.QUEUED, **ALLOWED)
    scenery.run(call)
    text = {"type": "text", "text": "The weather of Utrecht"}
    scenery.finish(call, {"content": [text], "structuredContent": content})
    run = CaseRun.objects.create(
        case=case,
        call_id=call,
        definition=tool.published,
        agent=agent,
        person=agent.owner,
        **more,
    )
    runs.settle([run])
    SavedCase.objects.filter(pk=case.pk).update(last_run=run)
