"""Agents ask what rules would say; nothing is called."""

from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from asgiref.sync import sync_to_async

from accounts import services as accounts
from accounts.models import Agent, User
from approvals import freezes
from audit.services import SYSTEM
from calls.models import Call
from policies.models import Effect, Rule
from policies.services import save_rule
from registry.models import Toolset
from registry.services import set_own_tools
from tests.gateway.agent import Reply
from tests.gateway.conftest import AddRule, Play
from tests.gateway.limiting import limit
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
        "effect": "deny", "said": "It would be denied.", "granted": False,
        "rule": "deny echo", "reason": "Not today.", "allowed": "",
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


Explain = Callable[..., Coroutine[Any, Any, Any]]


@pytest.fixture
async def explain(play: Play, rest: Rest, scout: Agent, bob: User, toolset: Toolset) -> Explain:  # noqa: F811
    """What an agent is told by its own tool, which has to be what REST says too."""
    await sync_to_async(set_own_tools)(toolset, ["explain"], by=bob)

    async def explain(arguments: Any) -> Any:
        # Who does not know this token looks again, and then knows all limits.
        token = await sync_to_async(accounts.issue_token)(scout, by=bob)
        question = {"tool": "rec.echo", "arguments": arguments}
        reply = await play(token=token).call("countersign.explain", question)
        told = reply.result["structuredContent"]
        rest.token = token
        same = (await explained(rest, "rec.echo", arguments)).last
        for member in ("effect", "said", "reason", "limits", "violations"):
            assert same[member] == told[member]
        return told

    return explain


@pytest.mark.long
@pytest.mark.parametrize(
    ("effect", "said", "reason"),
    [
        ("deny", "It would be denied.", "Limit “few” is reached: 1 call per hour. Ask again in "),
        ("ask", "It would wait until people approve it.", "Limit “few” is reached: 1 call per"),
        ("warn", "It would run at once.", "Rule"),
    ],
)
async def test_a_used_up_limit_is_no_promise(
    explain: Explain,
    rest: Rest,  # noqa: F811
    rule: AddRule,
    effect: str,
    said: str,
    reason: str,
) -> None:
    await rule(Effect.ALLOW, "echo", reason="Rule")
    await limit(name="few", amount=1, period="hour", effect=effect)
    before = await explain({"text": "x"})
    assert before["said"] == "It would run at once."
    assert [(one["name"], one["reached"]) for one in before["limits"]] == [("few", False)]
    await rest.call("rec.echo", {"text": "x"})

    told = await explain({"text": "y"})

    assert told["effect"] == {"warn": "allow"}.get(effect, effect)
    assert told["said"] == said
    assert told["reason"].startswith(reason)
    assert [(one["name"], one["reached"]) for one in told["limits"]] == [("few", True)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("total", "reason"),
    [
        (11, "Limit “money” is reached: 10 EUR per day. The call alone is more than that."),
        (
            "2",
            "Limit “money”: it counts the argument “order.total”, which has to be a number of at "
            "least 0.",
        ),
        (8, "Limit “money” is reached: 10 EUR per day. Ask again in "),
    ],
)
async def test_so_is_a_budget(
    explain: Explain,
    rest: Rest,  # noqa: F811
    total: Any,
    reason: str,
) -> None:
    await limit("cost", 10, name="money", cost_argument="order.total", period="day")
    await explain({"text": "x"})
    await rest.call("rec.echo", {"text": "x", "order": {"total": 5}})

    told = await explain({"text": "y", "order": {"total": total}})

    assert (told["effect"], told["rule"]) == ("deny", "money")
    assert told["reason"].startswith(reason)


async def test_neither_stops_nor_wrong_arguments_are_a_promise(
    explain: Explain, scout: Agent, olga: User
) -> None:
    assert (await explain({"text": 5}))["said"] == "Its arguments do not fit: it would be blocked."

    await sync_to_async(freezes.begin)(agent=scout, reason="Odd.", by=olga)

    told = await explain({"text": "x"})
    assert (told["effect"], told["said"]) == ("deny", "It would be denied.")
    assert "Odd." in told["reason"]
