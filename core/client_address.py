"""The client's address, also behind proxies that the operator trusts.

A proxy adds the address that it saw at the end of `X-Forwarded-For` (or `Forwarded`, RFC 7239); all
that stands before it may be the client's invention. So the client is the right-most address that is
no trusted proxy's, and without a trusted peer no header is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

from django.conf import settings
from django.http import HttpRequest

Address = IPv4Address | IPv6Address

# One `for=` of a Forwarded element: a token, or a quoted string.
_FOR = re.compile(r'(?:^|;)\s*for=("?)([^";,]*)\1\s*(?=;|$)', re.IGNORECASE)
_PORT = re.compile(r"^(?:\[([^\]]+)\](?::\w+)?|([^:]+):\w+)$")


def client_address(request: HttpRequest) -> str:
    """The client's IP address as text; empty where the peer has none."""
    headers = request.headers
    peer = str(request.META.get("REMOTE_ADDR", ""))
    return address_from(peer, headers.get("X-Forwarded-For", ""), headers.get("Forwarded", ""))


def address_from(peer_text: str, forwarded_for: str, forwarded: str) -> str:
    """The same, of the peer's address and two headers, empty where there are none."""
    peer = _parse(peer_text)
    if peer is None:
        return ""
    if not _is_trusted(peer):
        return str(peer)
    by_list = _client(peer, forwarded_for.split(","))
    by_standard = _client(peer, map(_for, forwarded.split(",")))
    # A proxy that writes one of them may hand on the other as the client sent it.
    told = {by_list, by_standard} - {peer}
    return str(told.pop() if len(told) == 1 else peer)


def host_network(address: str) -> str:
    """Cuts IPv6 to its first 64 bits: the rest is a host's own, and may change at any time."""
    found = ip_address(address)
    if found.version == 4:
        return str(found)
    return str(IPv6Network((int(found) >> 64 << 64, 64)))


def _client(peer: Address, told: Iterable[str]) -> Address:
    """Reads the list from the right, past trusted proxies; stops at what is no address."""
    client = peer
    for text in reversed(list(told)):
        address = _parse(text)
        if address is None:
            break
        client = address
        if not _is_trusted(address):
            break
    return client


def _for(element: str) -> str:
    found = _FOR.search(element)
    return found[2] if found else ""


def _parse(text: str) -> Address | None:
    text = text.strip()
    if with_port := _PORT.match(text):
        text = with_port[1] or with_port[2]
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _is_trusted(address: Address) -> bool:
    return any(address in network for network in settings.TRUSTED_PROXIES)
