"""The one loop in which requests of agents wait for the end of a call."""

from __future__ import annotations

import time
from collections.abc import Callable
from uuid import UUID

from calls.content.answers import Answer
from calls.running.input_relay import InputQuestion
from gateway.methods import input_requests
from gateway.process.call_watcher import ConsentRequested, InputRequested
from gateway.protocol.context import RpcRequest

# Of all that its server asks now, and of what of that is new: how its client is told. What it
# returns ends the waiting.
Present = Callable[[list[InputQuestion], list[InputQuestion]], bytes | None]


async def wait_for_end(
    rpc: RpcRequest,
    call_id: UUID,
    seconds: float,
    present: Present,
    *,
    ask_consent: Callable[[ConsentRequested], bytes] | None = None,
    for_people: bool,
    until_blind: bool,
) -> Answer | bytes | None:
    """The call's answer, what its client is to be told instead, or None within `seconds`."""
    until = time.monotonic() + seconds
    while True:
        seen = await rpc.runtime.watch.wait(
            call_id,
            seconds=max(0.0, until - time.monotonic()),
            on_step=rpc.on_step,
            for_people=for_people,
            lines=rpc.lines,
            # Whose client cannot be asked anything waits for nothing else than the end.
            after=rpc.asked_last if rpc.client.abilities else None,
            until_blind=until_blind,
            until_consent=ask_consent is not None,
        )
        if isinstance(seen, ConsentRequested) and ask_consent is not None:
            return ask_consent(seen)
        if not isinstance(seen, InputRequested):
            assert not isinstance(seen, ConsentRequested)
            return seen
        new_from, rpc.asked_last = rpc.asked_last, seen.last
        asked = await input_requests.of(rpc, call_id)
        told = present(asked, [one for one in asked if one.id > new_from])
        if told is not None:
            return told
