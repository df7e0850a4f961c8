"""Vectors of what tools do and of what is asked, by an endpoint in the dialect of OpenAI's
embeddings, where one is set.

The signs of a vector's numbers are compared first, as the bits of one integer: that takes a few
milliseconds for ten thousand tools. The nearest of them are compared as vectors.
"""

from __future__ import annotations

import logging
import math
import time
from array import array
from collections.abc import Mapping, Sequence
from heapq import nlargest, nsmallest
from typing import Any, NamedTuple

import orjson
from django.conf import settings

from core.errors import CountersignError
from core.guarded_http import WebLimits, fetch

LOG = logging.getLogger(__name__)
# So many texts, of so many characters, in one request.
BATCH, MAX_TEXT = 64, 2_000
LEARNING = WebLimits(total_s=60, max_bytes=16 * 1024 * 1024)
ASKING = WebLimits(connect_s=2, idle_s=2, total_s=3)
# After a failure the words alone count for so long.
PAUSE_S = 60.0
# Compared as vectors, and how near (cosine) is near.
COMPARED, NEAR = 200, 0.3

_silent_until = 0.0


class EmbeddingFailed(CountersignError):
    """The endpoint gave no vectors."""


class Meaning(NamedTuple):
    signs: int
    # Of length 1.
    vector: array[float]


def is_on() -> bool:
    return bool(settings.EMBEDDINGS_URL)


def is_pausing() -> bool:
    return time.monotonic() < _silent_until


def text_of(definition: Mapping[str, Any]) -> str:
    """The words by which the endpoint is told of a tool; "" where there is no endpoint."""
    if not is_on():
        return ""
    parts = (definition.get(name) for name in ("name", "title", "description"))
    return "\n".join(part for part in parts if isinstance(part, str))[:MAX_TEXT]


def of_question(question: str) -> Meaning | None:
    """None where the endpoint does not answer."""
    if is_pausing():
        return None
    try:
        return embed([question], ASKING)[0]
    except CountersignError as error:
        pause(error)
        return None


def pause(error: Exception) -> None:
    global _silent_until  # noqa: PLW0603 one endpoint for the process
    _silent_until = time.monotonic() + PAUSE_S
    LOG.warning("Tools are searched for by their words alone: %s", error)


def embed(texts: Sequence[str], limits: WebLimits = LEARNING) -> list[Meaning]:
    """Raises CountersignError."""
    key = settings.EMBEDDINGS_KEY
    headers = {"Content-Type": "application/json"}
    headers |= {"Authorization": f"Bearer {key}"} if key else {}
    asked = orjson.dumps({"model": settings.EMBEDDINGS_MODEL, "input": list(texts)})
    reply = fetch("POST", f"{settings.EMBEDDINGS_URL}/embeddings", headers, asked, limits=limits)
    if reply.status != 200:
        raise EmbeddingFailed(f"The endpoint of embeddings answered {reply.status}.")
    try:
        found = {one["index"]: one["embedding"] for one in orjson.loads(reply.body)["data"]}
        return [meaning(found[place]) for place in range(len(texts))]
    except (ValueError, LookupError, TypeError, OverflowError) as error:
        raise EmbeddingFailed("The endpoint of embeddings gave no vectors.") from error


def meaning(numbers: Sequence[float]) -> Meaning:
    """Raises ValueError, TypeError and OverflowError."""
    length = math.hypot(*numbers)
    if not math.isfinite(length):
        raise ValueError
    signs = int("1" + "".join("1" if number > 0 else "0" for number in numbers), 2)
    return Meaning(signs, array("f", [number / (length or 1.0) for number in numbers]))


def nearest(wanted: Meaning, known: Mapping[str, Meaning], most: int) -> list[str]:
    """The names of those that are near, the nearest first."""
    signs = wanted.signs
    few = nsmallest(COMPARED, known, key=lambda name: (known[name].signs ^ signs).bit_count())
    near = {name: _cosine(wanted, known[name]) for name in few}
    return [name for name in nlargest(most, near, key=near.__getitem__) if near[name] >= NEAR]


def _cosine(one: Meaning, other: Meaning) -> float:
    # Of another length where the endpoint's model has become another.
    if len(one.vector) != len(other.vector):
        return 0.0
    return sum(a * b for a, b in zip(one.vector, other.vector, strict=True))
