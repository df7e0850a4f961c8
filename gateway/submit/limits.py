"""Limits: one step of `submit`, of which a call that none covers knows nothing.

Rates are taken here, from this process's shares. Budgets, calls at the same time and loop breakers
are reserved in the commit that opens the call; what stands in its way there comes back as AtLimit.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from calls.record import reservations
from calls.record.new_call import digest
from calls.record.reservations import RESERVE, OverLimit, Reservation
from core.journal import Line
from core.pipeline import Row
from gateway.call_request import NO_ARGUMENTS, CallRequest, claimed_key, subject
from gateway.process.limit_shares import WantedUses
from gateway.process.limit_windows import BlockedCall
from gateway.process.runtime import Runtime
from policies.limits.compiled import (
    CallParties,
    CompiledLimit,
    CounterKey,
    LimitBook,
    LimitKey,
    LimitReached,
    TakenUses,
)
from policies.limits.costs import cost_of
from policies.models import Limit, LimitEffect
from registry.publishing.published_tools import PublishedTool


class AtLimit(Exception):
    """The call is too much for a limit; nothing was sent."""

    def __init__(self, call_request: CallRequest, reached: LimitReached) -> None:
        super().__init__(reached.sentence)
        self.call_request = call_request
        self.reached = reached


async def meter(
    runtime: Runtime, book: LimitBook, call_request: CallRequest, tool: PublishedTool
) -> CallRequest:
    """With what it is to reserve, and why people are to be asked. Raises AtLimit."""
    place = (call_request.bearer.agent_id, tool.definition_id, call_request.toolset.slug)
    counters = book.counters.get(place)
    if counters is None:
        counters = book.count(subject(call_request, tool), parties_of(call_request, tool))
    rates, exact = counters
    if call_request.is_metered or not (rates or exact):
        return call_request
    call_request = call_request._replace(warnings=[])
    # First: whose cost nobody can say takes nothing.
    uses = tuple(_reservations(call_request, exact)) if exact else ()
    reached = None
    # Mostly this process has what it takes.
    taken = runtime.limits.spend(rates, len(call_request.arguments))
    if taken is None:
        taken, reached = await _take(runtime, call_request, rates)
    call_request = call_request._replace(is_metered=True, taken=taken, uses=uses, exact=exact)
    return call_request if reached is None else put_to_people(call_request, reached)


def put_to_people(call_request: CallRequest, reached: LimitReached) -> CallRequest:
    """They answer for what is too much. Raises AtLimit where the limit is no matter of people."""
    if reached.limit.effect != LimitEffect.ASK:
        raise AtLimit(call_request, reached)
    uses = tuple(
        replace(use, forced=use.forced or use.limit_id == reached.limit.id)
        for use in call_request.uses
    )
    said = " ".join(filter(None, (call_request.over, reached.sentence)))
    return call_request._replace(uses=uses, over=said, grant=None)


def give_back(runtime: Runtime, call_request: CallRequest) -> None:
    """The call was not opened: what it took of rates is there for others."""
    if call_request.taken:
        runtime.limits.give_back(call_request.taken)


def unmetered(call_request: CallRequest) -> CallRequest:
    """Begins anew, after what it took was given back."""
    return call_request._replace(is_metered=False, taken=(), exact=(), uses=(), over="")


def while_held(call_request: CallRequest) -> CallRequest:
    """Until people decided it costs its money, and takes no place of those that run."""
    uses = tuple(use for use in call_request.uses if use.kind == Limit.Kind.COST)
    return call_request._replace(uses=uses)


def lines(call_request: CallRequest) -> list[Line]:
    key = claimed_key(call_request)
    once = key.id if key else None
    return [(RESERVE, reservations.line(call_request.call_id, call_request.uses, once))]


def check_reserved(runtime: Runtime, call_request: CallRequest, row: Row | None) -> None:
    """Raises AtLimit where the commit reserved nothing, and so opened nothing."""
    if row is None:
        return
    over = reservations.over(row[2])
    for one in over:
        if one.forced and (passed := _exceeded(call_request, one)).limit.lets_run:
            _note_passed(runtime, call_request, passed)
    reached = [_exceeded(call_request, one) for one in over if not one.forced]
    for loop in reached:
        if loop.limit.kind in Limit.BREAKERS:
            # Its owner is told, also where people are asked instead.
            runtime.limit_windows.note_reached(loop, agent_of(call_request))
    if worst := strictest(reached):
        raise AtLimit(call_request, worst)


def _note_passed(runtime: Runtime, call_request: CallRequest, passed: LimitReached) -> None:
    """The limit is reached, and the call runs all the same: an entry a window, and a warning."""
    runtime.limit_windows.note_reached(passed, agent_of(call_request))
    _warn(call_request, passed)


def _warn(call_request: CallRequest, passed: LimitReached) -> None:
    """Once a limit. Monitor-only limits are none of the agent's."""
    found = call_request.warnings
    if found is None or passed.limit.shadow:
        return
    if passed.limit.id not in {one.limit.id for one in found}:
        found.append(passed)


def strictest(reached: Sequence[LimitReached]) -> LimitReached | None:
    """The first of the strictest; among equals the one that lasts longest is told."""
    return min(
        reached,
        key=lambda one: (one.limit.effect != LimitEffect.DENY, -(one.wait_s or 0)),
        default=None,
    )


def parties_of(call_request: CallRequest, tool: PublishedTool) -> CallParties:
    bearer = call_request.bearer
    return CallParties(
        agent_of(call_request),
        (bearer.person_id, bearer.person_name),
        call_request.toolset.slug,
        (tool.server_id, tool.server_slug),
        (tool.tool_id, tool.exposed_name),
        tool.hints,
    )


def agent_of(call_request: CallRequest) -> tuple[int, str]:
    return call_request.bearer.agent_id, call_request.bearer.agent_name


def blocked_call(call_request: CallRequest) -> BlockedCall:
    tool = call_request.tool
    # Limits cover published tools.
    assert tool is not None
    return BlockedCall(
        call_request.call_id, agent_of(call_request), tool.server_slug, tool.exposed_name
    )


async def _take(
    runtime: Runtime, call_request: CallRequest, rates: Sequence[LimitKey]
) -> tuple[tuple[TakenUses, ...], LimitReached | None]:
    """Takes from every rate, or from none; and the one for which people have to be asked. Raises
    AtLimit."""
    taken: list[TakenUses] = []
    found: list[LimitReached] = []
    try:
        if known := _find_known_reached(runtime, call_request, rates):
            raise AtLimit(call_request, known)
        wanted = [WantedUses(*one, _uses(one[0], call_request)) for one in rates]
        answers = await runtime.limits.take(wanted)
        taken = [one for one in answers if isinstance(one, TakenUses)]
        for (limit, key), one in zip(rates, answers, strict=True):
            if isinstance(one, TakenUses):
                continue
            reached = _make_reached(limit, key, one)
            if limit.lets_run:
                _note_passed(runtime, call_request, reached)
            else:
                found.append(reached)
        worst = strictest(found)
        if worst is not None and worst.limit.effect == LimitEffect.DENY:
            raise AtLimit(call_request, worst)
    except BaseException:
        runtime.limits.give_back(taken)
        raise
    return tuple(taken), worst


def _find_known_reached(
    runtime: Runtime, call_request: CallRequest, rates: Sequence[LimitKey]
) -> LimitReached | None:
    """The hard limit that this process knows to be reached: then no other is asked."""
    hard = [one for one in rates if one[0].effect == LimitEffect.DENY and not one[0].shadow]
    waits = (runtime.limits.known_wait_s(*one, _uses(one[0], call_request)) for one in hard)
    found = zip(hard, waits, strict=True)
    return strictest([_make_reached(*one, wait_s) for one, wait_s in found if wait_s])


def _uses(limit: CompiledLimit, call_request: CallRequest) -> int:
    return len(call_request.arguments) if limit.counts_bytes else 1


def _make_reached(limit: CompiledLimit, key: CounterKey, wait_s: float) -> LimitReached:
    return LimitReached(limit, key, None if wait_s == math.inf else wait_s)


def _reservations(call_request: CallRequest, exact: Iterable[LimitKey]) -> Iterable[Reservation]:
    for limit, key in exact:
        amount = cost_of(limit, call_request.arguments or NO_ARGUMENTS)
        if amount is None:
            unknown = LimitReached(limit, key, None, limit.lacks_cost)
            if not limit.lets_run:
                raise AtLimit(call_request, unknown)
            _warn(call_request, unknown)
        yield Reservation(
            limit_id=limit.id,
            key=key.key,
            label=key.label,
            agent_id=key.agent_id,
            person_id=key.person_id,
            kind=limit.kind,
            period=limit.period,
            most=str(limit.amount),
            amount=str(amount or 0),
            hold_s=limit.hold_s,
            alike=_same_calls(limit, call_request),
            forced=limit.lets_run,
        )


def _same_calls(limit: CompiledLimit, call_request: CallRequest) -> str:
    if limit.kind != Limit.Kind.REPEATS or call_request.tool is None:
        return ""
    return f"{call_request.tool.tool_id} {digest(call_request.arguments or NO_ARGUMENTS)}"


def _exceeded(call_request: CallRequest, over: OverLimit) -> LimitReached:
    limit, key = next(one for one in call_request.exact if one[0].id == over.limit_id)
    return LimitReached(limit, key, over.wait_s)
