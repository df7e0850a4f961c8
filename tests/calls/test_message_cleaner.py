"""Messages of a running call that take long to clean."""

import asyncio
import threading
import time
from typing import Any

from calls.running import message_cleaner
from calls.running.message_cleaner import WAITING_MAX, MessageCleaner


def slowly(message: Any) -> tuple[Any, int]:
    time.sleep(0.002)
    return message, threading.get_ident()


def lingering(message: Any) -> Any:
    time.sleep(0.2)
    return message


async def test_they_are_cleaned_in_a_thread_and_keep_their_order() -> None:
    passed: list[Any] = []
    cleaner = MessageCleaner()
    for n in range(20):
        cleaner.clean(n, slowly, passed.append)

    await cleaner.drain()

    assert [message for message, _thread in passed] == [*range(20)]
    assert threading.get_ident() not in {thread for _message, thread in passed}


async def test_of_a_flood_the_newest_are_passed_on() -> None:
    passed: list[Any] = []
    cleaner = MessageCleaner()
    for n in range(WAITING_MAX * 3):
        cleaner.clean(n, slowly, passed.append)

    await cleaner.drain()

    assert len(passed) == WAITING_MAX
    assert passed[-1][0] == WAITING_MAX * 3 - 1


async def test_the_end_of_a_call_waits_for_them_for_a_while(monkeypatch: Any) -> None:
    monkeypatch.setattr(message_cleaner, "DRAIN_S", 0.05)
    passed: list[Any] = []
    cleaner = MessageCleaner()
    for n in range(3):
        cleaner.clean(n, lingering, passed.append)
    began = time.monotonic()

    await cleaner.drain()
    cleaner.close()
    took_s = time.monotonic() - began
    await asyncio.sleep(0.5)

    assert took_s < 0.19
    assert passed == []
