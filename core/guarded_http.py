"""One HTTP request to an address that the guard allows, and its whole answer. No redirect is
followed."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address, ip_network

from django.conf import settings
from yarl import URL

from core.connection_pool import ConnectionPool
from core.english import gettext as _
from core.errors import CountersignError
from core.http_connection import Fields, HttpConnection
from core.http_head import request_head
from core.loop import BackgroundLoop
from core.outbound import AddressRefused, Guard
from core.system_errors import describe

HEADERS = {
    "User-Agent": "Countersign",
    "Accept": "application/json",
    "Accept-Encoding": "identity",
}
_BREAK = re.compile(r"[\r\n\0]")
_loop = BackgroundLoop("web requests loop", threads=4)


@dataclass(frozen=True, slots=True)
class WebLimits:
    connect_s: float = 5
    idle_s: float = 10
    total_s: float = 15
    max_bytes: int = 512 * 1024


LIMITS = WebLimits()
# For an answer whose status is enough.
DRAIN_S = 2
# For the addresses of a name that is only looked at.
RESOLVE_S = 3


class RequestFailed(CountersignError):
    """There is no answer; says why."""


@dataclass(frozen=True, slots=True)
class PlainReply:
    status: int
    headers: Fields
    body: bytes


def check_url(text: str, networks: Sequence[str] | None = None) -> None:
    """Raises AddressRefused, with a sentence. `networks`: None for those of the installation."""
    url = Guard(_networks(networks)).check_url(text)
    if url.scheme != "https" and not is_named_network(url.host or "", _networks(networks)):
        raise AddressRefused(
            _(
                "The URL must begin with https://. Only addresses in a network of "
                "COUNTERSIGN_UPSTREAM_NETWORKS may be reached by http://."
            )
        )


def fetch(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes = b"",
    *,
    is_answer_needed: bool = True,
    networks: Sequence[str] | None = None,
    limits: WebLimits = LIMITS,
) -> PlainReply:
    """Whatever its status. Raises RequestFailed.

    Where the status is enough, the body is empty if it is long or late. `networks`: which may be
    reached besides public addresses; None for those of the installation.
    """
    try:
        check_url(url, networks)
        head = _head(method, URL(url), {**HEADERS, **headers}, len(body))
        work = _fetch(URL(url), head + body, is_answer_needed, _networks(networks), limits)
        return _loop.run(work, timeout=limits.total_s + 5)
    except AddressRefused as error:
        # It may be no URL at all.
        raise RequestFailed(str(error)) from error
    except OSError as error:
        raise RequestFailed(_why(error, URL(url).raw_host or "")) from error


async def _fetch(
    url: URL,
    request: bytes,
    is_answer_needed: bool,
    networks: Sequence[str],
    limits: WebLimits,
) -> PlainReply:
    pool = ConnectionPool(Guard(networks))
    try:
        async with asyncio.timeout(limits.total_s):
            connection = await pool.connect(pool.origin_of(url), limits)
            await connection.ask(request, limits.idle_s)
            read = _content if is_answer_needed else _content_if_short
            content = await read(connection, limits.max_bytes)
            return PlainReply(connection.status, connection.headers, content)
    finally:
        await pool.aclose()


async def _content_if_short(connection: HttpConnection, max_bytes: int) -> bytes:
    with suppress(OSError):
        async with asyncio.timeout(DRAIN_S):
            return await _content(connection, max_bytes)
    return b""


def _head(method: str, url: URL, headers: Mapping[str, str], size: int) -> bytes:
    lines = ["", *(f"{name}: {value}" for name, value in headers.items())]
    lines += [f"Content-Length: {size}"]
    if any(_BREAK.search(line) for line in lines):
        raise AddressRefused(_("A header of the request holds a line break."))
    start = request_head(method, url.raw_path_qs, url)
    return start + "\r\n".join(lines).encode() + b"\r\n\r\n"


async def _content(connection: HttpConnection, max_bytes: int) -> bytes:
    pieces, size = [], 0
    while chunk := await connection.readany():
        pieces.append(chunk)
        size += len(chunk)
        if size > max_bytes:
            raise ConnectionError(_("the answer is too long"))
    return b"".join(pieces)


def _networks(chosen: Sequence[str] | None) -> Sequence[str]:
    if chosen is not None:
        return chosen
    named: Sequence[str] = settings.UPSTREAM_NETWORKS
    return named


def is_named_network(host: str, networks: Sequence[str]) -> bool:
    try:
        # Its addresses are looked at before they are connected to, like those of other names.
        address = ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        return False
    return any(address in ip_network(one, strict=False) for one in networks)


def is_inside(url: str) -> bool:
    """Whether a URL's host is in a network of the installation, by its address or by any that its
    name has now. A name without an address is not."""
    return any(_insides(url))


def is_wholly_inside(url: str) -> bool:
    """Whether all addresses that a URL's host has now are in networks of the installation, and its
    server is really there: whose name it is can have it lead anywhere for a moment."""
    found = _insides(url)
    return bool(found) and all(found) and _is_met_inside(URL(url))


def _is_met_inside(url: URL) -> bool:
    """Whether a server with a certificate of that name answers at an address inside."""
    networks = _networks(None)
    if is_named_network(url.host or "", networks):
        return True
    try:
        met = _loop.run(_peer(url), timeout=LIMITS.connect_s + 1)
    except OSError:
        return False
    return url.scheme == "https" and is_named_network(met, networks)


async def _peer(url: URL) -> str:
    pool = ConnectionPool(Guard(_networks(None)))
    try:
        return (await pool.connect(pool.origin_of(url), LIMITS)).peer
    finally:
        await pool.aclose()


def _insides(url: str) -> list[bool]:
    """One for each address of a URL's host: whether it is in a network of the installation."""
    host, networks = URL(url).host or "", _networks(None)
    if not networks or is_named_network(host, networks):
        return [bool(networks)]
    try:
        found = _loop.run(_addresses(host), timeout=RESOLVE_S + 1)
    except (OSError, UnicodeError):
        return []
    return [is_named_network(address, networks) for address in found]


async def _addresses(host: str) -> list[str]:
    async with asyncio.timeout(RESOLVE_S):
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    # Without the interface of a link-local one.
    return [str(address[0]).partition("%")[0] for *_about, address in found]


def _why(error: OSError, host: str) -> str:
    match error:
        case socket.gaierror():
            return _("The name %s was not found.") % host
        case ssl.SSLCertVerificationError():
            return _("The certificate of %s is not valid.") % host
        case TimeoutError():
            return _("%s did not answer in time.") % host
        case OSError(errno=int(number)) if not isinstance(error, ssl.SSLError):
            return _("%(host)s could not be reached: %(why)s.") % {
                "host": host,
                "why": describe(number),
            }
    said = str(error) or type(error).__name__
    return _("%(host)s could not be reached: %(why)s.") % {"host": host, "why": said}
