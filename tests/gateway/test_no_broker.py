"""The broker is a convenience: without it long calls are taken all the same, and nobody waits."""

import pytest
from asgiref.sync import sync_to_async

from calls.models import Call
from config.embedded.valkey import free_port
from policies.models import Effect
from registry.models import Tool, Toolset
from tests.gateway.agent import TASKS
from tests.gateway.conftest import AddRule, Play, until
from tests.processes import HOST, Stack

pytestmark = pytest.mark.django_db(transaction=True)

CALLS = 12


@pytest.mark.long
async def test_who_asks_for_long_calls_does_not_wait_for_a_broker_that_is_away(
    toolset: Toolset, own_stack: Stack, play: Play, rule: AddRule
) -> None:
    await rule(Effect.ALLOW, "echo")
    await Tool.objects.filter(name="echo").aupdate(mode=Tool.Mode.BACKGROUND)
    own_stack.env |= {"REDIS_URL": f"redis://{HOST}:{free_port()}/0"}
    agents = await sync_to_async(lambda: own_stack.agents)()
    agent = play(at_stack=own_stack, capabilities=TASKS)

    for n in range(CALLS):
        reply = await agent.call("rec.echo", {"text": str(n)})
        assert reply.result["resultType"] == "task"

    assert await Call.objects.acount() == CALLS

    async def noticed() -> bool:
        return "the broker is away" in agents.text()

    await until(noticed)
    # Found out once in a while, and not by each.
    assert agents.text().count("the broker is away") < CALLS
    assert "Traceback" not in agents.text()
