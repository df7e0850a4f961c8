"""Learns how long clients wait, from what they did.

Frameworks give up after 5 s or after 60, and say neither that they will nor that they did. Whoever
asks for the same call again, although the request before was not answered, waited no longer than
until then: from then on its requests are answered a second sooner.

And some take `input_required` for an error: openai-agents 0.24 tells its model only that there was
one. Whoever asks for the call anew instead is answered with a sentence from then on.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar
from uuid import UUID

K = TypeVar("K")
V = TypeVar("V")

# Sooner, two requests were sent side by side.
SIDE_BY_SIDE_S = 2.0
# Our answer is to be there before it gives up, and no model comes back more often than so.
MARGIN_S, LEAST_S = 1.0, 2.0
# What was learned is forgotten then: another program may use the agent's token.
LEARNED_S = 3600.0
HABITS_MAX = 4096


# An agent's, by its client, for a call.
Request = tuple[int, str, UUID]


class ClientHabits:
    """Observed patience by agent and client; in memory, so that each process learns for itself."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        # When the request before began, and ended without an answer if it has ended.
        self._unanswered: OrderedDict[tuple[int, str, UUID], tuple[float, float | None]] = (
            OrderedDict()
        )
        # Told by `input_required` to ask again, which they have not done yet.
        self._told: OrderedDict[Request, None] = OrderedDict()
        # Since when it is known that they do not.
        self._never_ask_again: OrderedDict[tuple[int, str], float] = OrderedDict()
        # For how long its requests are held, and since when that is known.
        self._learned: OrderedDict[tuple[int, str], tuple[float, float]] = OrderedDict()

    def hold_s(self, agent_id: int, client: str, usual: float) -> float:
        seconds, since = self._learned.get((agent_id, client), (usual, self._now()))
        return min(usual, seconds) if self._now() - since < LEARNED_S else usual

    def told_to_ask_again(self, agent_id: int, client: str, call_id: UUID) -> None:
        _put(self._told, (agent_id, client, call_id), None)

    def asked_again(self, agent_id: int, client: str, call_id: UUID) -> None:
        self._told.pop((agent_id, client, call_id), None)
        self._never_ask_again.pop((agent_id, client), None)

    def asks_again(self, agent_id: int, client: str, call_id: UUID) -> bool:
        """Whether a client that asks for this call is one that does as `input_required` says."""
        if (agent_id, client, call_id) in self._told:
            _put(self._never_ask_again, (agent_id, client), self._now())
        since = self._never_ask_again.get((agent_id, client), float("-inf"))
        return self._now() - since >= LEARNED_S

    def came_back(self, agent_id: int, client: str, call_id: UUID) -> None:
        """To the stream of its request, which was cut: it did not give up."""
        self._unanswered.pop((agent_id, client, call_id), None)

    @contextmanager
    def waiting(self, agent_id: int, client: str, call_id: UUID) -> Iterator[None]:
        """Notes, while entered, that a request of this client waits for the call."""
        key, began = (agent_id, client, call_id), self._now()
        if before := self._unanswered.get(key):
            self._learn((agent_id, client), *before)
        _put(self._unanswered, key, (began, None))
        try:
            yield
        except BaseException:
            if self._is_mine(key, began):
                _put(self._unanswered, key, (began, self._now()))
            raise
        if self._is_mine(key, began):
            del self._unanswered[key]

    def _is_mine(self, key: Request, began: float) -> bool:
        return self._unanswered.get(key, (None,))[0] == began

    def _learn(self, key: tuple[int, str], began: float, ended: float | None) -> None:
        now = self._now()
        lasted = (ended or now) - began
        if lasted >= SIDE_BY_SIDE_S:
            seconds = max(LEAST_S, lasted - MARGIN_S)
            _put(self._learned, key, (self.hold_s(*key, usual=seconds), now))


def _put(kept: OrderedDict[K, V], key: K, value: V) -> None:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > HABITS_MAX:
        kept.popitem(last=False)
