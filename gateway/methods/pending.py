"""The replies to a call that has not ended, by what its client supports."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import UUID

import orjson

from calls.content.answers import Answer
from calls.record.states import State
from calls.running.input_relay import InputQuestion
from calls.running.listeners import EarlyReply
from calls.running.progress import ProgressStep
from core import outage
from core.english import gettext as _
from core.errors import RecordUnavailable
from gateway.methods import input_requests, log_messages, sign_in, tasks
from gateway.methods.call_end import wait_for_end
from gateway.methods.named_calls import find_named
from gateway.process.call_watcher import ConsentRequested
from gateway.protocol import handles, replies
from gateway.protocol.context import RpcRequest
from gateway.protocol.errors import RpcError, invalid_params
from gateway.submit import lookups, messages, wait
from gateway.submit.lookups import AgentCall
from registry.methods import GET
from registry.models import OwnTool
from registry.publishing.published_tools import CALL

# SDKs give up at the tenth round: the last one must be an answer.
ROUNDS = 9
# A waiting client's own clock begins anew with each sign of life.
SIGN_OF_LIFE_S = 5.0
# What its server makes of answers is told at once if it comes within this.
MOMENT_S = 1.0


async def answer(
    rpc: RpcRequest,
    *,
    call_id: UUID,
    state: State,
    digest: str,
    early_reply: EarlyReply | None = None,
) -> bytes:
    try:
        return await _answer(rpc, call_id, state, digest, early_reply)
    except (RecordUnavailable, *outage.AWAY):
        # The call is on record and may run: its agent must not take this for a refusal.
        return _not_known(rpc, call_id, state)


async def _answer(
    rpc: RpcRequest, call_id: UUID, state: State, digest: str, early_reply: EarlyReply | None
) -> bytes:
    # What its server asks at once is asked at once; a task would only delay it.
    if rpc.takes_tasks and early_reply != "asked":
        return await tasks.created(rpc, call_id)
    first = _first_round(call_id, digest)
    if state != State.HELD:
        return await _until_done(rpc, first)
    if _asks_again(rpc, call_id):
        return _input_required(rpc, replace(first, round=1))
    return await _hold(rpc, first, at_first=True)


def _asks_again(rpc: RpcRequest, call_id: UUID) -> bool:
    """Does as `input_required` says, as far as it is known."""
    client, habits = rpc.client, rpc.runtime.habits
    return client.modern and (
        bool(client.abilities) or habits.asks_again(rpc.agent_id, client.name, call_id)
    )


async def retried(rpc: RpcRequest, *, digest: str) -> bytes:
    """A client that was told to ask again does so, and is held while nothing happens."""
    shown = rpc.message.params["requestState"]
    state = handles.unseal_state(shown, rpc.agent_id, digest=digest)
    if rpc.context.bearer.is_limited and not await find_named(rpc.context, state.call_id):
        raise invalid_params("This token does not open the call of this requestState.")
    rpc.runtime.habits.asked_again(rpc.agent_id, rpc.client.name, state.call_id)
    await input_requests.take_responses(rpc, state)
    await log_messages.go_on(rpc, state.logged)
    if state.questions:
        # It runs, and nobody else is to be waited for.
        rpc.reply.watch_disconnect(
            wait.on_disconnect(rpc.runtime, state.call_id, rpc.context.actor)
        )
        if rpc.takes_tasks:
            return await _soon_or_a_task(rpc, state)
        return await _until_done(rpc, state)
    rpc.reply.watch_disconnect(wait.on_disconnect(rpc.runtime, state.call_id, None))
    # Who goes in rounds comes back by itself: to be answered sooner would only end them sooner.
    seen = await _look_at_people(rpc, state, rpc.hold_s)
    if isinstance(seen, bytes):
        return seen
    if isinstance(seen, Answer):
        await wait.mark_delivered(rpc.runtime, state.call_id)
        return sign_in.ask(rpc, seen, rounds=state.round)
    found = await lookups.own(rpc.runtime, state.call_id, agent_id=rpc.agent_id)
    assert found is not None
    if state.round >= ROUNDS or _is_asked(rpc, found) or sign_in.is_declined(rpc):
        return await not_yet(rpc, state.call_id)
    if found.seen.consent_page:
        wanted = ConsentRequested(found.seen.consent_page, found.seen.reason)
        return _ask_consent(rpc, state, wanted)
    return _input_required(rpc, replace(state, round=state.round + 1), stopped=found.stopped)


def _is_asked(rpc: RpcRequest, found: AgentCall) -> bool:
    """People want to know something: the model can answer, its client cannot."""
    return OwnTool.JUSTIFY in rpc.context.toolset.own_tools and bool(found.questions)


async def _look(
    rpc: RpcRequest, state: handles.RequestState, seconds: float, *, for_people: bool = False
) -> Answer | bytes | None:
    """The call as it stands. Raises RecordUnavailable soon unless the call waits for people."""
    return await wait_for_end(
        rpc,
        state.call_id,
        seconds,
        partial(_present, rpc, state),
        ask_consent=partial(_ask_consent, rpc, state) if sign_in.asks_consent(rpc) else None,
        for_people=for_people,
        until_blind=not for_people,
    )


def _present(
    rpc: RpcRequest,
    state: handles.RequestState,
    asked: list[InputQuestion],
    new: list[InputQuestion],
) -> bytes | None:
    """A client of today is asked by the result; others are asked on their stream."""
    if rpc.client.modern and asked:
        return input_requests.input_required(rpc, state, asked)
    input_requests.push(rpc, state.call_id, new)
    return None


def _ask_consent(rpc: RpcRequest, state: handles.RequestState, wanted: ConsentRequested) -> bytes:
    """The page is the agent's user's own: they open it, and the same call goes on."""
    round_ = min(state.round + 1, ROUNDS)
    members: dict[str, Any] = {
        "resultType": "input_required",
        "inputRequests": sign_in.request_page(wanted.page, wanted.reason, round_),
        "requestState": handles.seal_state(
            replace(state, round=round_, logged=rpc.logged), rpc.agent_id
        ),
        "_meta": {replies.CALL: str(state.call_id), replies.WAITING: wanted.reason},
    }
    return rpc.result(orjson.dumps(members))


async def taken_up(rpc: RpcRequest, call_id: UUID) -> bytes:
    """The reply for a client that resumes its call's stream."""
    found = await lookups.own(rpc.runtime, call_id, agent_id=rpc.agent_id)
    assert found is not None
    rpc.runtime.habits.came_back(rpc.agent_id, rpc.client.name, call_id)
    first = _first_round(call_id, "")
    held = found.seen.state == State.HELD
    try:
        body = await (_hold(rpc, first) if held else _until_done(rpc, first))
    except RpcError:
        # It names the page on which the user signs in at the server: an answer, too.
        await wait.mark_delivered(rpc.runtime, call_id)
        raise
    await wait.mark_delivered(rpc.runtime, call_id)
    return body


def _first_round(call_id: UUID, digest: str) -> handles.RequestState:
    return handles.RequestState(call_id, digest, 0, int(time.time()) + handles.LASTS_S)


def _input_required(rpc: RpcRequest, state: handles.RequestState, *, stopped: str = "") -> bytes:
    members: dict[str, Any] = {
        "resultType": "input_required",
        "requestState": handles.seal_state(replace(state, logged=rpc.logged), rpc.agent_id),
        "_meta": {
            replies.CALL: str(state.call_id),
            # A requestState alone does not say what is waited for.
            replies.WAITING: messages.asks_a_person(state.call_id, stopped),
            **rpc.warnings_meta,
        },
    }
    _say_that_people_decide(rpc)
    rpc.runtime.habits.told_to_ask_again(rpc.agent_id, rpc.client.name, state.call_id)
    # Asked once: whoever opened the page, or would not, need not be asked again every round.
    if rpc.client.opens_urls and state.round == 1:
        members["inputRequests"] = {"approval": _page(rpc, state.call_id)}
    return rpc.result(orjson.dumps(members))


def _page(rpc: RpcRequest, call_id: UUID) -> dict[str, Any]:
    said = _("A person has to approve the call of %(tool)s before it runs.")
    params = {
        "mode": "url",
        "url": messages.page_of(call_id),
        "message": said % {"tool": _asked_for(rpc)},
    }
    return {"method": "elicitation/create", "params": params}


def _asked_for(rpc: RpcRequest) -> str:
    """The tool or prompt; elsewhere a name may be anything."""
    method = rpc.message.method
    named = method in (CALL, GET) and rpc.message.params.get("name")
    return str(named or method)


async def _hold(rpc: RpcRequest, state: handles.RequestState, *, at_first: bool = False) -> bytes:
    rpc.reply.watch_disconnect()
    with rpc.waiting(state.call_id):
        seconds = rpc.first_hold_s if at_first else rpc.learned_hold_s
        seen = await _look_at_people(rpc, state, seconds)
    return await not_yet(rpc, state.call_id) if seen is None else _as_reply(rpc, seen)


async def _look_at_people(
    rpc: RpcRequest, state: handles.RequestState, seconds: float
) -> Answer | bytes | None:
    """Waits for people as long as the client does, with progress if it wants that."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if _say_that_people_decide(rpc):
            left = min(left, SIGN_OF_LIFE_S)
        seen = await _look(rpc, state, left, for_people=True)
        if seen is not None or rpc.runtime.watch.until is not None:
            return seen
    return None


def _say_that_people_decide(rpc: RpcRequest) -> bool:
    if rpc.progress is None:
        return False
    rpc.progress.step(ProgressStep(None, None, _("Pending approval.")))
    return True


async def _until_done(rpc: RpcRequest, state: handles.RequestState) -> bytes:
    """Waits for the end of a running call, which its time limit brings."""
    rpc.reply.watch_disconnect()
    while True:
        seen = await _look(rpc, state, 60)
        if seen is not None:
            return _as_reply(rpc, seen)
        if rpc.runtime.watch.is_blind:
            return _not_known(rpc, state.call_id, State.RUNNING)
        if rpc.runtime.watch.until is not None:
            # Cut off, it would look as if its client went away, and the call would be cancelled.
            return await not_yet(rpc, state.call_id)


async def _soon_or_a_task(rpc: RpcRequest, state: handles.RequestState) -> bytes:
    """Its client need not be held: what goes on for longer, it comes back for."""
    seen = await _look(rpc, state, MOMENT_S)
    if seen is None:
        return await tasks.created(rpc, state.call_id)
    return _as_reply(rpc, seen)


def _as_reply(rpc: RpcRequest, seen: Answer | bytes) -> bytes:
    return sign_in.ask(rpc, seen) if isinstance(seen, Answer) else seen


def _not_known(rpc: RpcRequest, call_id: UUID, state: State) -> bytes:
    """It goes on wherever it runs, and nobody here can read what becomes of it. `state`: as it was
    when that could last be read."""
    # Whoever asks for the same again is told what became of this.
    rpc.runtime.keep(wait.surely(lambda: wait.mark_undelivered(call_id)))
    text = f"{lookups.NOT_KNOWN} {messages.come_back(call_id, rpc.context.toolset)}"
    return rpc.sentence(text, call=str(call_id), state=state, executed="unknown")


async def not_yet(rpc: RpcRequest, call_id: UUID) -> bytes:
    """The end of an agent's patience, not of the call."""
    found = await lookups.own(rpc.runtime, call_id, agent_id=rpc.agent_id)
    assert found is not None
    if found.seen.answer is not None:
        return sign_in.ask(rpc, found.seen.answer)
    if rpc.reads:
        # Whoever reads the same again is told what became of this.
        await wait.mark_undelivered(call_id)
    state = found.seen.state
    toolset = rpc.context.toolset
    text = f"{messages.of(found, toolset)} {messages.come_back(call_id, toolset)}"
    # What nobody has to decide any more, a worker may have taken before this is read.
    certain = state == State.HELD and not found.seen.maybe
    executed = "no" if certain else "unknown"
    return rpc.sentence(text, call=str(call_id), state=state, executed=executed)
