"""What an agent sees of a call that has no outcome yet, by what its client understands."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any
from uuid import UUID

import orjson
from django.conf import settings
from django.utils.translation import gettext as _

from calls.answers import Answer
from calls.heard import Turned
from calls.progress import Step
from calls.states import State
from gateway import handles, hearing, lookups, questions, replies, task_methods, waiting, wording
from gateway.exchange import Turn
from gateway.watch import Asked
from registry.methods import GET
from registry.models import OwnTool
from registry.published import CALL

# SDKs give up at the tenth round: the last one must be an answer.
ROUNDS = 9
# A waiting client's own clock begins anew with each sign of life.
SIGN_OF_LIFE_S = 5.0
# What its server makes of answers is told at once if it comes within this.
MOMENT_S = 1.0
_TINY = 1e-6


async def answer(
    turn: Turn, *, call_id: UUID, state: State, digest: str, turned: Turned | None = None
) -> bytes:
    # What its server asks at once is asked at once; a task would only delay it.
    if turn.takes_tasks and turned != "asked":
        return await task_methods.created(turn, call_id)
    first = _first_round(call_id, digest)
    if state != State.HELD:
        return await _until_done(turn, first)
    if turn.client.modern:
        return _input_required(turn, replace(first, round=1))
    return await _held(turn, first)


async def retried(turn: Turn, *, digest: str) -> bytes:
    """A client that was told to ask again does so, and is held while nothing happens."""
    shown = turn.message.params["requestState"]
    state = handles.unseal_state(shown, turn.agent_id, digest=digest)
    await questions.given(turn, state)
    await hearing.go_on(turn, state.logged)
    if state.questions:
        # It runs, and nobody else is to be waited for.
        turn.reply.linger(waiting.gone(turn.runtime, state.call_id, turn.exchange.actor))
        if turn.takes_tasks:
            return await _soon_or_a_task(turn, state)
        return await _until_done(turn, state)
    turn.reply.linger(waiting.gone(turn.runtime, state.call_id, None))
    seen = await _look(turn, state, settings.HOLD_S, for_people=True)
    if isinstance(seen, bytes):
        return seen
    if isinstance(seen, Answer):
        await waiting.heard(turn.runtime, state.call_id)
        return turn.answered(seen)
    if state.round >= ROUNDS or await _is_asked(turn, state.call_id):
        return await not_yet(turn, state.call_id)
    return _input_required(turn, replace(state, round=state.round + 1))


async def _is_asked(turn: Turn, call_id: UUID) -> bool:
    """People want to know something: the model can answer, its client cannot."""
    if OwnTool.JUSTIFY not in turn.exchange.toolset.own_tools:
        return False
    found = await lookups.own(turn.runtime, call_id, agent_id=turn.agent_id)
    return found is not None and bool(found.questions)


async def _look(
    turn: Turn, state: handles.State, seconds: float, *, for_people: bool = False
) -> Answer | bytes | None:
    """The call's answer, what its client is to be told instead, or None within `seconds`. A
    client that is asked on its stream is asked there."""
    until = time.monotonic() + seconds
    # Whose client cannot be asked anything waits for nothing else than the end.
    after = 0 if turn.client.abilities else None
    while True:
        seen = await turn.runtime.watch.wait(
            state.call_id,
            seconds=max(0.0, until - time.monotonic()),
            on_step=turn.on_step,
            for_people=for_people,
            lines=turn.lines,
            after=None if after is None else max(after, turn.asked_last),
        )
        if not isinstance(seen, Asked):
            return seen
        new_from, turn.asked_last = turn.asked_last, seen.last
        asked = await questions.of(turn, state.call_id)
        if turn.client.modern and asked:
            return questions.shown(turn, state, asked)
        questions.push(turn, state.call_id, [one for one in asked if one.id > new_from])


async def taken_up(turn: Turn, call_id: UUID) -> bytes:
    """For a client that comes back to the stream of its call."""
    found = await lookups.own(turn.runtime, call_id, agent_id=turn.agent_id)
    assert found is not None
    first = _first_round(call_id, "")
    held = found.seen.state == State.HELD
    body = await (_held(turn, first) if held else _until_done(turn, first))
    await waiting.heard(turn.runtime, call_id)
    return body


def _first_round(call_id: UUID, digest: str) -> handles.State:
    return handles.State(call_id, digest, 0, int(time.time()) + handles.LASTS_S)


def _input_required(turn: Turn, state: handles.State) -> bytes:
    members: dict[str, Any] = {
        "resultType": "input_required",
        "requestState": handles.seal_state(replace(state, logged=turn.logged), turn.agent_id),
        "_meta": {replies.CALL: str(state.call_id)},
    }
    # Asked once: whoever opened the page, or would not, need not be asked again every round.
    if turn.client.opens_urls and state.round == 1:
        members["inputRequests"] = {"approval": _page(turn, state.call_id)}
    return turn.result(orjson.dumps(members))


def _page(turn: Turn, call_id: UUID) -> dict[str, Any]:
    said = _("A person has to approve the call of %(tool)s before it runs.")
    params = {
        "mode": "url",
        "url": wording.page_of(call_id),
        "message": said % {"tool": _asked_for(turn)},
    }
    return {"method": "elicitation/create", "params": params}


def _asked_for(turn: Turn) -> str:
    """The tool or prompt; elsewhere a name may be anything."""
    method = turn.message.method
    named = method in (CALL, GET) and turn.message.params.get("name")
    return str(named or method)


async def _held(turn: Turn, state: handles.State) -> bytes:
    turn.reply.linger()
    until = time.monotonic() + settings.HOLD_S
    beat = 0
    while (left := until - time.monotonic()) > 0:
        if turn.progress is not None:
            # So small that whatever the server says later is more.
            beat += 1
            turn.progress.step(Step(beat * _TINY, None, _("Waiting for a person's approval.")))
            left = min(left, SIGN_OF_LIFE_S)
        seen = await _look(turn, state, left, for_people=True)
        if seen is not None:
            return _said(turn, seen)
        if turn.runtime.watch.until is not None:
            break
    return await not_yet(turn, state.call_id)


async def _until_done(turn: Turn, state: handles.State) -> bytes:
    """Nobody has to decide: whoever runs it has a time limit, which ends this."""
    turn.reply.linger()
    while True:
        seen = await _look(turn, state, 60)
        if seen is not None:
            return _said(turn, seen)
        if turn.runtime.watch.until is not None:
            # Cut off, it would look as if its client went away, and the call would be cancelled.
            return await not_yet(turn, state.call_id)


async def _soon_or_a_task(turn: Turn, state: handles.State) -> bytes:
    """Its client need not be held: what goes on for longer, it comes back for."""
    seen = await _look(turn, state, MOMENT_S)
    if seen is None:
        return await task_methods.created(turn, state.call_id)
    return _said(turn, seen)


def _said(turn: Turn, seen: Answer | bytes) -> bytes:
    return turn.answered(seen) if isinstance(seen, Answer) else seen


async def not_yet(turn: Turn, call_id: UUID) -> bytes:
    """The end of an agent's patience, not of the call."""
    found = await lookups.own(turn.runtime, call_id, agent_id=turn.agent_id)
    assert found is not None
    if found.seen.answer is not None:
        return turn.answered(found.seen.answer)
    if turn.reads:
        # Whoever reads the same again is told what became of this.
        await waiting.unheard(call_id)
    state = found.seen.state
    text = f"{wording.of(found, turn.exchange.toolset)} {wording.come_back(call_id)}"
    sent = state == State.RUNNING or found.seen.maybe
    executed = "unknown" if sent else "no"
    return turn.sentence(text, call=str(call_id), state=state, executed=executed)
