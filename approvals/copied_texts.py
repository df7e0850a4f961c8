"""Argument texts that stood in an untrusted result before: marked on approval cards, with where
they came from.

Compared by value alone, so a text that the agent wrote in other words is not found. Work is
bounded: the newest results within the window, none that is long, and texts of some length. Of
shorter ones, and within texts, what says where something goes: addresses, hosts and numbers.
"""

from __future__ import annotations

import logging
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import orjson
from django.conf import settings
from django.db import transaction

from calls.models import Call, Result
from core.exact_json import Number
from core.ids import first_id
from registry.labels import Label

log = logging.getLogger(__name__)

RESULTS, RESULT_BYTES = 20, 64 * 1024
TEXTS, SHORTEST, LONGEST = 100, 12, 10_000
# Of arguments or of one result; 64 KiB of JSON cannot hold as many.
VALUES = 100_000
# So many letters of Chinese, Japanese or Korean say as much.
_WIDE = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{4}")
# A mail address; a host with its scheme; the number of an account or a phone.
_DESTINATION = re.compile(
    r"(?<![\w.+\-])[\w.+\-]{1,64}@[\w\-]{1,63}(?:\.[\w\-]{1,63}){1,6}"
    r"|(?<=://)[^\s/?#@:\"'<>]{4,253}"
    r"|(?<![\w.])\d(?:[ \-]?\d){5,31}(?!\w)"
)
EXCERPT, SHOWN = 80, 10
END = object()
# Shown as nothing, or as little: a zero-width space, a soft hyphen, marks of direction.
UNSEEN = {
    point: None
    for plane in (0, 1, 14)
    for point in range(plane << 16, (plane + 1) << 16)
    if unicodedata.category(chr(point)) == "Cf"
}


@dataclass(frozen=True, slots=True)
class CopiedText:
    """A text of the arguments. `path`: where it stands there."""

    path: str
    text: str
    call_id: UUID
    tool: str
    at: datetime


@dataclass(frozen=True, slots=True)
class CopiedTexts:
    """The part of them that a card shows. `more`: found, but not shown; `uncompared`: more texts
    than are compared; `failed`: nobody knows."""

    shown: Sequence[CopiedText] = ()
    more: int = 0
    uncompared: int = 0
    failed: bool = False


NOT_ASKED = CopiedTexts()


def find_copied(call: Call, given: Any) -> CopiedTexts:
    """`given`: the call's arguments, parsed. One for each text, from its newest source."""
    try:
        with transaction.atomic():
            return _find(call, given)
    # What agents and servers wrote takes no card from the people who decide.
    except Exception:
        log.exception("The texts of call %s could not be compared.", call.pk)
        return CopiedTexts(failed=True)


def _find(call: Call, given: Any) -> CopiedTexts:
    pieces = list(_pieces(given))
    texts = pieces[:TEXTS]
    found: dict[tuple[str, str], CopiedText] = {}
    for call_id, tool, at, body in _untrusted_results(call) if texts else ():
        came = _plain_result(bytes(body))
        for path, text, plain in texts:
            if (path, plain) not in found and _stood_in(came, plain):
                found[path, plain] = CopiedText(path, text[:EXCERPT], call_id, tool, at)
    whole = [one for key, one in found.items() if not _is_within_another(key, found)]
    shown = whole[:SHOWN]
    return CopiedTexts(shown, len(whole) - len(shown), len(pieces) - len(texts))


def _stood_in(came: str, plain: str) -> bool:
    """A number is none of the digits of a longer one."""
    if plain[0].isdigit() and plain[-1].isdigit():
        return re.search(rf"(?<!\d){re.escape(plain)}(?!\d)", came) is not None
    return plain in came


def _is_within_another(key: tuple[str, str], found: Iterable[tuple[str, str]]) -> bool:
    path, plain = key
    return any(path == at and plain != other and plain in other for at, other in found)


def _untrusted_results(call: Call) -> Iterable[Sequence[Any]]:
    """The newest first: id, tool, time and body of each."""
    since = call.asked_at - timedelta(seconds=settings.FLOW_WINDOW_S)
    found = Result.objects.filter(
        call__agent=call.agent_id,
        call__tool__labels__contains=[Label.UNTRUSTED.value],
        call__result_size__lte=RESULT_BYTES,
        call__id__lt=call.pk,
        call__id__gte=first_id(since),
        call__finished_at__lt=call.asked_at,
        call__finished_at__isnull=False,
        kept_until=None,
    )
    columns = ("call_id", "call__tool_name", "call__finished_at", "body")
    return found.order_by("-call_id").values_list(*columns)[:RESULTS]


def _pieces(given: Any) -> Iterator[tuple[str, str, str]]:
    """Path, text and plain form of each text that is long enough, of each line of it, and of each
    destination in it."""
    for path, text in _texts(given):
        lines = dict.fromkeys((text, *text.splitlines())) if "\n" in text else (text,)
        for line in lines:
            plain = _plain(line[:LONGEST])
            if len(plain) >= SHORTEST or _WIDE.search(plain):
                yield path, line, plain
            for one in dict.fromkeys(_DESTINATION.findall(plain)):
                if one != plain or len(plain) < SHORTEST:
                    yield path, one, one


def _texts(given: Any) -> Iterator[tuple[str, str]]:
    """All texts with their paths, however deep: a server may nest as it likes."""
    levels = [iter([("", given)])]
    left = VALUES
    while levels:
        path, value = next(levels[-1], ("", END))
        left -= 1
        if not left:
            raise ValueError("more values than are looked at")
        if value is END:
            levels.pop()
        elif isinstance(value, str):
            yield path, value
        elif isinstance(value, Number):
            yield path, value.text
        elif isinstance(value, int) and not isinstance(value, bool):
            yield path, str(value)
        else:
            levels.append(_members(path, value))


def _members(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        return ((_below(path, name), member) for name, member in value.items())
    return ((path, member) for member in (value if isinstance(value, list) else ()))


def _below(path: str, name: str) -> str:
    """Short at every step: names may be as long as all arguments, and stand over many members."""
    below = f"{path}.{name[:EXCERPT]}" if path else name[: EXCERPT + 1]
    return below if len(below) <= EXCERPT else f"{below[: EXCERPT - 1]}…"


def _plain_result(body: bytes) -> str:
    return "\n".join(_plain(text) for _path, text in _texts(orjson.loads(body)))


def _plain(text: str) -> str:
    """Without what changes nothing for a reader: width, case, spaces, what is not seen."""
    seen = text if text.isascii() else unicodedata.normalize("NFKC", text.translate(UNSEEN))
    return " ".join(seen.casefold().split())
