"""An agent asks what rules would say, before it asks for a call. Nothing is sent or recorded."""

from __future__ import annotations

from typing import Any

import orjson
from django.utils.translation import gettext as _

from calls.models import Call
from gateway import replies
from gateway.asked import Ask, fitted, subject
from gateway.exchange import Turn
from gateway.submit import decided
from policies.decide import Decision
from policies.models import Effect
from registry.published import PublishedTool


async def explain(turn: Turn) -> bytes:
    """The very decision that the call would meet, with the tool at this address.

    No other rule is named than the one that decides: an agent that was misled would learn where
    the gaps are.
    """
    given = turn.message.params.get("arguments")
    given = given if isinstance(given, dict) else {}
    tool = turn.exchange.tools.get(str(given.get("tool")))
    if tool is None:
        return turn.sentence(_("There is no such tool here: name one as it is listed."))
    arguments = given.get("arguments", {})
    ask, differing = fitted(_ask(turn, tool, arguments))
    snapshot = await turn.runtime.newest()
    decision = await decided(turn.runtime, snapshot, ask, tool)
    granted = decision.effect == Effect.ASK and snapshot.grants.matching(
        subject(ask, tool), decision, ask.arguments
    )
    members = _said(decision, granted=bool(granted))
    members["violations"] = [
        {"path": v.path, "expected": v.expected} for v in differing or tool.violations(ask.parsed)
    ]
    return turn.result(replies.structured(members, modern=turn.client.modern))


def _ask(turn: Turn, tool: PublishedTool, arguments: Any) -> Ask:
    exchange = turn.exchange
    return Ask(
        bearer=exchange.bearer,
        toolset=exchange.toolset,
        tool=tool,
        tool_name=tool.exposed_name,
        arguments=orjson.dumps(arguments),
        parsed=arguments,
        origin=Call.Origin.MCP,
    )


def _said(decision: Decision, *, granted: bool) -> dict[str, Any]:
    said = {
        Effect.ALLOW: _("It would run at once."),
        Effect.ASK: _("It would wait until people approve it."),
        Effect.DENY: _("It would be refused."),
    }
    text = _("It would run: people granted it in advance.") if granted else said[decision.effect]
    return {
        "effect": decision.effect,
        "granted": granted,
        "said": text,
        "rule": decision.told or None,
        "reason": decision.reason,
        "allowed": decision.instead or None,
    }
