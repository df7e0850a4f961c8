"""Calls as gateways submit them, of which several live in one test's process."""

import json
from collections import Counter
from collections.abc import Iterable
from typing import Any

from asgiref.sync import sync_to_async

from audit.services import SYSTEM
from calls.record.states import State
from core.ids import uuid7
from gateway.call_request import CallRequest, SubmitResult
from gateway.process.runtime import Runtime
from gateway.submit.submit import submit
from policies.limits.services import save_limit
from policies.models import Limit


def add_limit(kind: str = "calls", amount: Any = 3, **more: Any) -> Limit:
    """Hard, and for each agent, unless said otherwise."""
    if kind in Limit.PERIODIC:
        more = {"period": "minute", **more}
    if kind == "cost" and "cost_argument" not in more:
        more = {"cost": 1, **more}
    if kind == "cost":
        more = {"unit": "EUR", **more}
    for_some = {name: more.pop(name, ()) for name in ("agents", "owner_groups")}
    given = {"name": f"{kind} {Limit.objects.count()}", "effect": "deny", "per": ["agent"], **more}
    return save_limit(Limit(kind=kind, amount=amount, **given), by=SYSTEM, **for_some)


limit = sync_to_async(add_limit)


async def ask(
    runtime: Runtime,
    token: str,
    text: str = "x",
    *,
    tool: str = "rec.echo",
    place: str = "desk",
    **more: Any,
) -> SubmitResult:
    """One call, as it is now."""
    snapshot = await runtime.newest()
    bearer, toolset = snapshot.tokens.bearer(token), snapshot.catalogue.toolset(place)
    assert bearer is not None
    assert toolset is not None
    arguments = more.pop("arguments", {"text": text})
    call_request = CallRequest(
        call_id=uuid7(),
        bearer=bearer,
        toolset=toolset,
        tool=toolset.by_exposed.find(tool),
        tool_name=tool,
        arguments=json.dumps(arguments).encode(),
        parsed=arguments,
        origin="mcp",
        **more,
    )
    return await submit(runtime, call_request)


def states(results: Iterable[SubmitResult]) -> Counter[str]:
    """By state; of what a limit refused, that it did."""
    return Counter("limit" if one.refusal == "limit" else State(one.state).value for one in results)
