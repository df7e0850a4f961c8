"""Input requests of a server in the middle of a call, and the replies to them.

Sources: MCP 2026-07-28, basic/patterns/mrtr; 2025-11-25, client/{elicitation,sampling,roots}.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from itertools import count
from typing import Any, Protocol

import orjson

from core import abilities
from core.abilities import InputAnswer
from core.events_in_time import set_within
from core.kept_english import gettext as _
from registry.upstream import wire
from registry.upstream.session.calling import UpstreamCall
from registry.upstream.values import (
    CallReply,
    CancelledUpstream,
    Lost,
    NotSent,
    PausedCall,
    ProtocolError,
    RefusedByServer,
    RpcErrorReply,
    Unanswered,
)
from registry.upstream.wire import WireMessage

# A server that only wants to be asked again later is asked so often, at growing distances.
_LATER_TIMES, _LATER_S, _LATER_MOST_S = 60, 0.1, 5.0

INPUT_REQUIRED = "input_required"
# Of 2025-11-25: a page has to be opened before the same is asked for again.
URL_REQUIRED = -32042

# Why the same call is sent once more: each time it is the server that wants it so.
_ANSWERS_GO_ALONG = "The server asked for input; the answers go along."
_ASK_LATER = "The server wants to be asked again."
_PAGE_FIRST = "The server wanted a page to be opened first."


class AnsweringServer(Protocol):
    async def call(self, call: UpstreamCall) -> CallReply: ...


async def answered(server: AnsweringServer, call: UpstreamCall, reply: CallReply) -> CallReply:
    """Ask for the call again with the answers, as long as its server replies with questions."""
    later = 0
    while reply.kind == INPUT_REQUIRED:
        requests, state = _requests_of(reply)
        later = 0 if requests else later + 1
        asked = {"inputRequests": requests, "requestState": state}
        pause = PausedCall(next(call.rounds) if requests else call.sends, asked)
        if requests:
            more = await _answers(call, requests, pause)
        elif later <= _LATER_TIMES:
            more = b""
            await _pause(call, later)
        else:
            raise ProtocolError(_("The server answers only that it wants to be asked again."))
        parts = [more, b'"requestState":' + orjson.dumps(state) if state is not None else b""]
        call = replace(
            call,
            more=b",".join(part for part in parts if part),
            was_taken=True,
            resend_reason=_ANSWERS_GO_ALONG if requests else _ASK_LATER,
        )
        try:
            reply = await called(server, call)
        except RefusedByServer as error:
            error.pause = pause
            raise
    return reply


async def called(
    server: AnsweringServer, call: UpstreamCall, refused: RpcErrorReply | None = None
) -> CallReply:
    """The reply, also where pages have to be opened for it. `refused`: it was asked for, and this
    came instead."""
    try:
        return await _called_with_pages(server, call, refused)
    except NotSent as error:
        if not call.was_taken:
            raise
        if call.cancel is not None and call.cancel.is_set():
            raise _stopped() from None
        # It may have acted before it asked, whatever its question says.
        said = _("The server took the call and could not be asked again. %s")
        raise Lost(said % error) from error


async def _called_with_pages(
    server: AnsweringServer, call: UpstreamCall, refused: RpcErrorReply | None
) -> CallReply:
    """For agents without the error that names pages to open: asks them to open the page, and sends
    the call again until the server has seen it done."""
    opened: set[str] = set()
    later = 0
    while True:
        try:
            if refused is not None:
                raise refused
            return await server.call(call)
        except RpcErrorReply as error:
            refused, pages = None, _pages(error)
            for name in pages:
                _note_page(call, name)
            if not pages or not call.asks_pages:
                raise
        new = {key: page for key, page in pages.items() if key not in opened}
        if new:
            await _open(call, new)
            later = 0
        elif later >= _LATER_TIMES:
            raise Unanswered(words(pages))
        opened |= new.keys()
        later += 1
        call.was_taken, call.resend_reason = True, _PAGE_FIRST
        await _pause(call, later)


def _pages(error: RpcErrorReply) -> dict[str, Any]:
    """The pages that must be opened first, as input requests; none if the error is another one."""
    data = error.data if isinstance(error.data, dict) else {}
    listed = data.get("elicitations") if error.code == URL_REQUIRED else None
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        return {}
    return {
        str(one.get("elicitationId") or f"page-{number}"): {
            "method": "elicitation/create",
            "params": {k: v for k, v in one.items() if k != "elicitationId"} | {"mode": "url"},
        }
        for number, one in enumerate(listed)
    }


def _note_page(call: UpstreamCall, name: Any) -> None:
    if call.note_page is not None:
        call.note_page(name)


async def _open(call: UpstreamCall, pages: dict[str, Any]) -> None:
    given = await _waited(call, pages)
    if call.cancel is not None and call.cancel.is_set():
        raise _stopped()
    answers = input_responses(pages, given)
    if answers is None or any(one.get("action") != "accept" for one in answers.values()):
        raise Unanswered(words(pages))


def _requests_of(reply: CallReply) -> tuple[dict[str, Any], str | None]:
    value = orjson.loads(reply.result)
    requests, state = value.get("inputRequests"), value.get("requestState")
    if requests is not None and not isinstance(requests, dict):
        raise ProtocolError(_("The server asks for input in a form that is not MCP."))
    if state is not None and not isinstance(state, str):
        raise ProtocolError(_("The server's requestState is not text."))
    if not requests and state is None:
        raise ProtocolError(_("The server asks for input without naming any."))
    return requests or {}, state


async def _pause(call: UpstreamCall, times: int) -> None:
    # The first time at once: it may just have wanted to be rid of the connection.
    seconds = 0.0 if times == 1 else min(_LATER_S * 2**times, _LATER_MOST_S)
    if call.cancel is None:
        await asyncio.sleep(seconds)
    elif await set_within(call.cancel, seconds):
        raise _stopped()


def resumed(call: UpstreamCall, pause: PausedCall) -> CallReply:
    """The reply with which it was asked, once more."""
    call.rounds, call.sends = count(pause.round), pause.round
    return CallReply(orjson.dumps(pause.asked), is_error=False, kind=INPUT_REQUIRED)


async def _answers(call: UpstreamCall, requests: dict[str, Any], pause: PausedCall) -> bytes:
    given = await _waited(call, requests, pause)
    if call.cancel is not None and call.cancel.is_set():
        raise _stopped()
    answers = input_responses(requests, given)
    if answers is None:
        raise Unanswered(words(requests))
    return wire.responses(orjson.dumps(answers))


async def _waited(
    call: UpstreamCall, requests: Mapping[str, Any], pause: PausedCall | None = None
) -> dict[str, InputAnswer] | None:
    """Waits until everything is answered, or the call is cancelled."""
    if call.asking is None:
        return None
    round_ = pause.round if pause else next(call.rounds)
    asking = asyncio.ensure_future(call.asking.wait(requests, round_, pause))
    stop = asyncio.ensure_future((call.cancel or asyncio.Event()).wait())
    try:
        await asyncio.wait({asking, stop}, return_when=asyncio.FIRST_COMPLETED)
        return await asking if asking.done() else None
    finally:
        asking.cancel()
        stop.cancel()


def input_responses(
    requests: Mapping[str, Any], given: Mapping[str, InputAnswer] | None
) -> dict[str, dict[str, Any]] | None:
    """The answers as `inputResponses`; None if one is missing."""
    answers = {}
    for key, one in (given or {}).items():
        value = abilities.result(requests[key], one)
        if value is None:
            return None
        answers[key] = value
    return answers if given is not None else None


def _stopped() -> CancelledUpstream:
    error = CancelledUpstream(acknowledged=True)
    error.args = ("The call was cancelled while its server waited for an answer.",)
    return error


def words(requests: Mapping[str, Any]) -> str:
    """The server's message in the first request that has one; "" if none has."""
    for one in requests.values():
        params = one.get("params") if isinstance(one, dict) else None
        said = params.get("message") if isinstance(params, dict) else None
        if isinstance(said, str) and said:
            return said[:300]
    return ""


def may_be_asked(call: UpstreamCall, question: WireMessage) -> bool:
    """A server of an earlier revision asks by a request of its own, if it was told that it may."""
    needed = abilities.needed({"method": question.method, "params": question.params or {}})
    return call.asking is not None and needed is not None and needed <= set(call.abilities)


async def reply_to(call: UpstreamCall, question: WireMessage) -> bytes:
    """The reply to an input request of an earlier revision."""
    assert call.asking is not None
    request: dict[str, Any] = {"method": question.method}
    if question.params is not None:
        request["params"] = question.params
    _note_page(call, (question.params or {}).get("elicitationId"))
    round_ = next(call.rounds)
    key = f"question-{round_}"
    given = await call.asking.wait({key: request}, round_)
    return wire.answer(question, _or_none(request, given[key] if given else None))


def _or_none(request: Mapping[str, Any], given: InputAnswer | None) -> InputAnswer:
    if given is not None:
        return given
    failed = InputAnswer({"code": wire.NO_ANSWER, "message": "Nobody answered."}, is_error=True)
    value = abilities.result(request, failed)
    return failed if value is None else InputAnswer(value)
