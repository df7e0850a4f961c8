"""Checks on arguments for rules: of a path, an address, a word of a shell, an amount.

Each function says yes only where every reader of the text would read the same harmless thing. None
looks anything up: no name of a host, no link in a file system, no table.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from unicodedata import normalize
from urllib.parse import SplitResult, urlsplit

# Ends of names in somebody's own network: reserved for it (RFC 6762, ICANN), or used so.
_LOCAL = frozenset(
    (
        *("localhost", "local", "internal", "intranet", "lan", "localdomain", "arpa", "onion"),
        *("private", "corp", "home", "mail", "svc", "consul", "cluster", "test", "invalid"),
        *("domain", "router", "workgroup", "belkin", "dhcp", "alt", "nomad"),
    )
)
# Public by its number, and answered by the host that a machine of Azure runs on.
_OF_HOSTS = frozenset([IPv4Address("168.63.129.16")])
_NAT64 = IPv6Network("64:ff9b::/96")
# All other IPv6 addresses are of special use, or nobody's yet (RFC 4291, RFC 8215).
_GIVEN_OUT = IPv6Network("2000::/3")
_is_visible_ascii = re.compile(r"[\x21-\x7e]+").fullmatch
# An @ in front names a file to many programs.
_is_word = re.compile(r"[A-Za-z0-9_:,./][A-Za-z0-9_@%+=:,./-]*").fullmatch
_assigns = re.compile(r"[A-Za-z_.][A-Za-z0-9_.]*\+?=").match
# Of POSIX, bash, ksh and zsh, in the first place of a command.
_is_shell_word = re.compile(
    "if|then|else|elif|fi|do|done|case|esac|while|until|for|in|select|function|time|coproc"
    "|foreach|repeat|end|nocorrect|noglob|namespace|always"
).fullmatch
# Commands of the shell itself that run, read or change what comes after them.
_is_builtin = re.compile(
    r"[.:]|alias|autoload|bg|bind|break|builtin|caller|cd|chdir|command|compgen|complete|compopt"
    r"|continue|declare|dirs|disable|disown|emulate|enable|eval|exec|exit|export|fc|fg|float"
    r"|functions|getopts|hash|history|integer|jobs|kill|let|local|logout|mapfile|popd|pushd|read"
    r"|readarray|readonly|return|set|setopt|shift|shopt|source|suspend|trap|typeset|ulimit|umask"
    r"|unalias|unfunction|unset|unsetopt|wait|zmodload"
).fullmatch
_is_host = re.compile(r"[a-z0-9_-]+(?:\.[a-z0-9_-]+)*").fullmatch
_is_number = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?").fullmatch
_is_legacy_part = re.compile(r"0[xX][0-9a-fA-F]*|[0-9]+").fullmatch


def path_within(path: str, root: str) -> bool:
    """Whether an absolute path leads to `root` or below, by its text.

    No way up, no escape that somebody may decode, no separator of another system.
    """
    if normalize("NFKC", path) != path or not path.isprintable():
        return False
    # Patterns, and what servlets cut off: `..;` is a way up to them.
    if any(part in path for part in "\\%~$*?{}[];|`"):
        return False
    parts, wanted = path.rstrip("/").split("/"), root.rstrip("/").split("/")
    is_plain = path.startswith("/") and root.startswith("/")
    # Some systems take no notice of spaces, or of more dots: `.. ` is a way up to them.
    is_plain = is_plain and not any(part.strip(" .") == "" != part for part in parts)
    return is_plain and parts[: len(wanted)] == wanted


def url_host_in(url: str, hosts: Sequence[str]) -> bool:
    """Whether an http or https URL leads to one of `hosts`: a name, or `*.` and what names below
    it end with. Nothing that two readers of URLs take for different hosts."""
    parts = _split(url)
    if parts is None or parts.scheme not in ("http", "https"):
        return False
    host = _plain_host(parts)
    return bool(host) and any(_is_below(host, wanted.lower()) for wanted in hosts)


def _is_below(host: str, wanted: str) -> bool:
    return host.endswith(wanted[1:]) if wanted.startswith("*.") else host == wanted


def _split(url: str) -> SplitResult | None:
    if not _is_visible_ascii(url) or "\\" in url:
        return None
    try:
        parts = urlsplit(url)
        # Raises ValueError for one that is no number.
        _port = parts.port
    except ValueError:
        return None
    return None if "@" in parts.netloc or "%" in parts.netloc else parts


def _plain_host(parts: SplitResult) -> str:
    host = (parts.hostname or "").rstrip(".")
    return host if _is_host(host) or ":" in host else ""


def is_private_address(address: str) -> bool:
    """Whether a URL, host or IP address, however written, is one that only insiders reach.

    Yes also where that is in doubt. A name is not looked up: what it leads to is not known here.
    """
    parts = _split(address if "//" in address else f"//{address}")
    host = _plain_host(parts) if parts else ""
    if not host:
        return True
    if host.rpartition(".")[2] in _LOCAL:
        return True
    found = _ip(host)
    if found is None:
        # One label alone is found in the searcher's own network, and numbers mean what one reads.
        return "." not in host or host.rpartition(".")[2].isdecimal()
    inner = _carried(found)
    if isinstance(inner, IPv6Address) and inner not in _GIVEN_OUT:
        return True
    is_public = found.is_global and inner.is_global and inner not in _OF_HOSTS
    return not is_public or inner.is_multicast


def _carried(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The IPv4 address that an IPv6 address stands for: mapped, 6to4, NAT64 or ISATAP. Teredo's
    are not global themselves."""
    if isinstance(address, IPv4Address):
        return address
    # The third group of the host's half, without the bit for "unique".
    is_isatap = int(address) >> 32 & 0xFDFFFFFF == 0x5EFE
    if address in _NAT64 or is_isatap:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def _ip(host: str) -> IPv4Address | IPv6Address | None:
    """Also as `inet_aton` reads it: 127.1, 0x7f.1, 2130706433."""
    try:
        return ip_address(host)
    except ValueError:
        parts = host.split(".")
    # Of zeros in front some readers take no notice, and to others they mean eights.
    has_zeros = any(part.startswith("0") and part.isdecimal() and len(part) > 1 for part in parts)
    if len(parts) > 4 or has_zeros or not all(map(_is_legacy_part, parts)):
        return None
    *first, last = [_legacy(part) for part in parts]
    if any(one > 255 for one in first) or last >= 256 ** (4 - len(first)):
        return None
    value = sum(one << (24 - 8 * place) for place, one in enumerate(first)) + last
    return IPv4Address(value)


def _legacy(part: str) -> int:
    if part[:2].lower() == "0x":
        return int(part[2:] or "0", 16)
    return int(part)


def shell_safe(text: str) -> bool:
    """Whether a shell reads the text as one word without a meaning of its own, wherever in a
    command it stands, and a program does not read it as an option."""
    has_meaning = _is_shell_word(text) or _is_builtin(text) or _assigns(text)
    return _is_word(text) is not None and not has_meaning


def max_amount(amount: float | str, most: float) -> bool:
    """Whether the amount is a finite number from 0 to `most`; text counts if it is one. Each
    digit counts: nothing is rounded."""
    if isinstance(amount, bool) or (isinstance(amount, str) and not _is_number(amount)):
        return False
    try:
        value, bound = _exact(amount), _exact(most)
    except (InvalidOperation, ValueError):
        return False
    # A bound of inf takes any number, and NaN is no number and no bound.
    return value.is_finite() and not bound.is_nan() and 0 <= value <= bound


def _exact(amount: float | str) -> Decimal:
    """A number as it is written: 0.3 is not the fraction of two that is nearest to it."""
    return Decimal(repr(amount) if isinstance(amount, float) else amount)
