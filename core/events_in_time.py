"""Waiting for an event, for so long."""

import asyncio


async def set_within(event: asyncio.Event, seconds: float) -> bool:
    """Whether it is set, by then at the latest.

    `asyncio.wait_for` of Python 3.11 loses a cancellation that comes in the moment of the event:
    its task then goes on for ever, and whoever waits for its end does so too.
    """
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return event.is_set()
    return True
