"""Agents ask what rules would say; nothing is called."""

from typing import Any

import pytest
from asgiref.sync import sync_to_async

from audit.services import SYSTEM
from calls.models import Call
from policies.models import Effect, Rule
from policies.services import save_rule
from tests.gateway.agent import Reply
from tests.gateway.conftest import AddRule
from tests.gateway.test_rest import Rest, rest  # noqa: F401 a fixture
from tests.upstreams.recorder import Recorder

pytestmark = pytest.mark.django_db(transaction=True)


async def explained(rest: Rest, tool: str, arguments: Any, toolset: str = "desk") -> Reply:  # noqa: F811
    body = {"toolset": toolset, "tool": tool, "arguments": arguments}
    return await rest.send("POST", "explain", body)


async def test_the_rule_that_decides_is_named_and_no_other(
    rest: Rest,  # noqa: F811
    rule: AddRule,
    upstream: Recorder,
) -> None:
    await rule(Effect.DENY, "echo", reason="Not today.")

    reply = await explained(rest, "rec.echo", {"text": "hi"})

    assert reply.status == 200
    assert reply.last == {
        "effect": "deny", "rule": "deny echo", "reason": "Not today.", "allowed": "",
        "limits": [], "results": [], "labels": ["untrusted", "sensitive", "sink"], "violations": [],
    }  # fmt: skip
    assert upstream.received == []
    assert not await Call.objects.aexists()


async def test_what_there_is_not_is_said(rest: Rest) -> None:  # noqa: F811
    assert (await explained(rest, "rec.nope", {})).status == 404
    assert (await explained(rest, "rec.echo", {}, toolset="other")).status == 404
    assert (await explained(rest, "rec.echo", {"text": 5})).last["violations"]


async def test_strangers_learn_nothing(rest: Rest) -> None:  # noqa: F811
    rest.token = "csa_nobody"

    assert (await explained(rest, "rec.echo", {})).status == 401


async def test_a_condition_decides_a_call_by_its_arguments(
    rest: Rest,  # noqa: F811
    rule: AddRule,
    upstream: Recorder,
) -> None:
    made = Rule(name="no bye", effect=Effect.DENY, tool="echo", when="args.text == 'bye'")

    await sync_to_async(save_rule)(made, by=SYSTEM)
    await rule(Effect.ALLOW, "echo")

    assert (await rest.call("rec.echo", {"text": "bye"})).status == 403
    assert (await rest.call("rec.echo", {"text": "hi"})).status == 201
