"""One request to a receiver, through the client that looks at every address."""

from __future__ import annotations

from contextlib import suppress
from email.utils import parsedate_to_datetime

import orjson
from django.conf import settings
from django.utils import timezone
from yarl import URL

from core.connection_pool import ConnectionPool
from core.english import gettext as _
from core.guarded_http import check_url as check_url
from core.loop import BackgroundLoop
from core.outbound import AddressRefused, Guard
from notifications.outcomes import Failed
from registry.upstream.transport.http_request import HttpReply, HttpRequest, head
from registry.upstream.transport.http_request import post as post_request
from registry.upstream.values import Limits, UpstreamError

LIMITS = Limits(connect_s=5, idle_s=15, total_s=20)
HEADERS = {"User-Agent": "Countersign", "Accept": "*/*", "Accept-Encoding": "identity"}
# The receiver wants no more of them.
GONE = 410
TOO_MANY = 429

# Names are looked up in threads: calls and discovery do not wait for those of a receiver.
_loop = BackgroundLoop("notifications loop", threads=4)


def post(url: str, headers: dict[str, str], body: bytes) -> HttpReply:
    """Whatever its status. Raises Failed where there is no answer."""
    try:
        check_url(url)
        request = _request(url, {**HEADERS, **headers}, body)
        return _loop.run(request, timeout=LIMITS.total_s + 10)
    except AddressRefused as error:
        raise Failed(str(error)) from error
    except UpstreamError as error:
        raise Failed(str(error)) from error
    except TimeoutError as error:
        raise Failed(_("The receiver did not answer in time.")) from error


async def _request(text: str, headers: dict[str, str], body: bytes) -> HttpReply:
    """No redirect is followed."""
    pool, url = ConnectionPool(Guard(settings.UPSTREAM_NETWORKS)), URL(text)
    try:
        request = HttpRequest(0, pool.origin_of(url), head("POST", url, headers), body, LIMITS)
        return await post_request(pool, request)
    finally:
        await pool.aclose()


def check_success(reply: HttpReply) -> None:
    """Raises Failed for a status other than 2xx."""
    if not 200 <= reply.status < 300:
        raise Failed(
            _("The receiver answered with status %(status)s.") % {"status": reply.status},
            retry_after_s=_retry_after_s(reply) if reply.status == TOO_MANY else 0,
        )


def _retry_after_s(reply: HttpReply) -> float:
    """Source: RFC 9110, 10.2.3: seconds, or a date. Telegram says it in its answer as well."""
    said = reply.headers.get(b"retry-after", "").strip()
    if said.replace(".", "", 1).isdecimal():
        return float(said)
    # A date may come without a zone.
    with suppress(ValueError, TypeError):
        return max((parsedate_to_datetime(said) - timezone.now()).total_seconds(), 0)
    match json_of(reply):
        case {"parameters": {"retry_after": int(seconds)}}:
            return seconds
    return 0


def json_of(reply: HttpReply) -> object:
    with suppress(orjson.JSONDecodeError):
        return orjson.loads(reply.body)
    return None
