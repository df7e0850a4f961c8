"""One request to a receiver, through the client that looks at every address."""

from __future__ import annotations

from contextlib import suppress
from email.utils import parsedate_to_datetime

import orjson
from django.utils import timezone

from core.english import gettext as _
from core.guarded_http import PlainReply, RequestFailed, fetch
from core.guarded_http import check_url as check_url
from notifications.outcomes import Failed

HEADERS = {"Accept": "*/*"}
# The receiver wants no more of them.
GONE = 410
TOO_MANY = 429


def post(
    url: str, headers: dict[str, str], body: bytes, *, is_answer_needed: bool = False
) -> PlainReply:
    """Whatever its status. Raises Failed where there is no answer."""
    try:
        return fetch("POST", url, {**HEADERS, **headers}, body, is_answer_needed=is_answer_needed)
    except RequestFailed as error:
        raise Failed(str(error)) from error


def check_success(reply: PlainReply) -> None:
    """Raises Failed for a status other than 2xx."""
    if not 200 <= reply.status < 300:
        raise Failed(
            _("The receiver answered with status %(status)s.") % {"status": reply.status},
            retry_after_s=_retry_after_s(reply) if reply.status == TOO_MANY else 0,
        )


def _retry_after_s(reply: PlainReply) -> float:
    """Source: RFC 9110, 10.2.3: seconds, or a date. Telegram says it in its answer as well."""
    said = reply.headers.get(b"retry-after", "").strip()
    if said.replace(".", "", 1).isdecimal():
        return float(said)
    # A date may come without a zone, or be of no year that there is.
    with suppress(ValueError, TypeError, OverflowError):
        return max((parsedate_to_datetime(said) - timezone.now()).total_seconds(), 0)
    match json_of(reply):
        case {"parameters": {"retry_after": int(seconds)}}:
            return max(seconds, 0)
    return 0


def json_of(reply: PlainReply) -> object:
    with suppress(orjson.JSONDecodeError):
        return orjson.loads(reply.body)
    return None
