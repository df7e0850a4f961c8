"""Checks every address before the first byte leaves for it."""

import asyncio
import re
import socket
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from urllib.parse import urlsplit

from yarl import URL

from core.kept_english import gettext as _

Address = IPv4Address | IPv6Address
# As getaddrinfo gives it: family, kind, protocol, canonical name, and the address to connect to.
Addresses = tuple[int, int, int, str, tuple[object, ...]]

# Named one by one, because `is_global` of Python 3.11 to 3.13 disagrees with itself about most of
# them, and several carry an IPv4 address inside that would be reached without being looked at.
_NEVER_PUBLIC = [
    ip_network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",
        "2001::/23",  # Teredo, ORCHID, benchmarks
        "2001:db8::/32",
        "2002::/16",  # 6to4
        "2620:4f:8000::/48",
        "3fff::/20",
    )
]
# Parsers read past them, escape them or stop there.
_CONTROL = re.compile("[\x00-\x1f\x7f]")
_NETWORKS = _("If the server belongs there, add its network to COUNTERSIGN_UPSTREAM_NETWORKS.")
# Everything outside is site-local, link-local, NAT64, multicast, loopback or not handed out.
_PUBLIC_IPV6 = IPv6Network("2000::/3")


class AddressRefused(OSError):
    """An address or URL that may not be connected to. Nothing was sent.

    An OSError, so that it comes through connectors like any other address that cannot be reached.
    """


class Guard:
    """Says which addresses may be connected to: public ones, and the networks named here."""

    def __init__(self, networks: Sequence[str] = ()) -> None:
        self._networks = [ip_network(network, strict=False) for network in networks]

    def allows(self, address: Address) -> bool:
        if isinstance(address, IPv6Address) and address.ipv4_mapped:
            address = address.ipv4_mapped
        if any(address in network for network in self._networks):
            return True
        return _is_public(address)

    def check_address(self, host: str) -> None:
        """Look at an address as the operating system will be given it."""
        try:
            address = ip_address(host)
        except ValueError:
            raise AddressRefused(_("“%s” is not an address.") % host) from None
        if not self.allows(address):
            raise AddressRefused(f"{_('The address %s is not public.') % address} {_NETWORKS}")

    def check_url(self, text: str) -> URL:
        try:
            if _CONTROL.search(text):
                raise ValueError(text)
            url = URL(text)
            # Decoded when it is read: xn-- may be followed by no name.
            host = url.host
        except ValueError:
            raise AddressRefused(_("“%s” is not a URL.") % _CONTROL.sub("�", text)) from None
        if url.scheme not in ("http", "https"):
            raise AddressRefused(_("The URL must begin with https:// or http://."))
        if not host:
            raise AddressRefused(_("The URL names no host."))
        if url.user is not None or url.password is not None:
            raise AddressRefused(_("The URL must not contain a user name or password."))
        if _is_literal(host):
            self.check_address(host)
        return url

    async def resolve(self, host: str, port: int) -> list[Addresses]:
        """All addresses of a name; one that is not allowed refuses the name."""
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except UnicodeError:
            raise AddressRefused(
                _("The server's URL names a host that cannot be connected to.")
            ) from None
        for *_about, address in found:
            self.check_address(str(address[0]))
        return list(found)

    def open_socket(self, found: Addresses) -> socket.socket:
        """Last look: makes the socket for the very address that is connected to next."""
        family, kind, protocol, _name, address = found
        self.check_address(str(address[0]))
        made = socket.socket(family, kind, protocol)
        made.setblocking(False)
        return made


def _is_public(address: Address) -> bool:
    if not address.is_global:
        return False
    if isinstance(address, IPv6Address) and address not in _PUBLIC_IPV6:
        return False
    return not any(address in network for network in _NEVER_PUBLIC)


def _is_literal(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdigit()


def without_credentials(url: str) -> str:
    """The URL without user name, password, query and fragment, where receivers put tokens."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()
