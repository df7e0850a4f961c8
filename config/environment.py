"""Readers of environment variables: a mistake is a sentence with the setting's name.

An empty value counts as none: the default stands.
"""

from __future__ import annotations

import math
import os
from ipaddress import ip_network
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict

from core.bad_setting import BadSetting

DATABASES = (
    "DATABASE_URL",
    "DATABASE_DIRECT_URL",
    "DATABASE_OWNER_URL",
    "DATABASE_SEAL_URL",
    "DATABASE_MAINTENANCE_URL",
)
DATABASE_FORM = (
    "has not the form postgresql://USER:PASSWORD@HOST:PORT/DATABASE. In the user name and "
    "password, write / as %2F, # as %23, ? as %3F, @ as %40, : as %3A and % as %25."
)


def whole(name: str, default: str, *, least: int = 0) -> int:
    text = os.environ.get(name) or default
    try:
        found = int(text)
    except ValueError:
        found = least - 1
    if found < least:
        raise BadSetting(f"{name} is {text!r}, and must be a whole number from {least} on.")
    return found


def number(name: str, default: str, *, above: float | None = None) -> float:
    """From 0 on, or more than `above`."""
    return parse_number(name, os.environ.get(name) or default, above=above)


def numbers(name: str, default: str) -> list[float]:
    """A list, separated by commas."""
    text = os.environ.get(name) or default
    return [parse_number(name, one) for one in text.split(",")]


def parse_number(name: str, text: str, *, above: float | None = None) -> float:
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not math.isfinite(found) or found < 0 or (above is not None and found <= above):
        allowed = "from 0 on" if above is None else f"above {above:g}"
        raise BadSetting(f"{name} is {text!r}, and must be a number {allowed}.")
    return found


def switch(name: str, default: str = "0") -> bool:
    """“true” would otherwise count as the default, which may be the less strict one."""
    text = os.environ.get(name) or default
    if text not in ("0", "1"):
        raise BadSetting(f"{name} is {text!r}, and must be 0 or 1.")
    return text == "1"


def networks(name: str, text: str) -> list[str]:
    """CIDRs, separated by commas."""
    found = [one.strip() for one in text.split(",") if one.strip()]
    for one in found:
        try:
            ip_network(one)
        except ValueError as error:
            raise BadSetting(f"{name} has {one!r}, {_right(one)}.") from error
    return found


def _right(network: str) -> str:
    """The correction for text that is no network."""
    try:
        whole = ip_network(network, strict=False)
    except ValueError:
        return "and must be networks such as 10.0.0.0/8, separated by commas"
    address = network.partition("/")[0]
    return f"an address within a network: write {whole} for the network, or {address} for it alone"


def level(name: str, default: str) -> str:
    text = (os.environ.get(name) or default).upper()
    known = ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")
    if text not in known:
        raise BadSetting(f"{name} is {text!r}, and may be {', '.join(known)}.")
    return text


def check_database_urls() -> None:
    """Raises BadSetting for a database's address that cannot be one."""
    for name in DATABASES:
        database_parts(name, os.environ.get(name, ""))


def database_parts(name: str, url: str) -> dict[str, Any]:
    """The parameters of a database's address."""
    try:
        parts = dict(conninfo_to_dict(url))
    except psycopg.Error:
        parts = {"port": "none"}
    # A "/" that is not encoded ends the host, and the password is taken for a port. The words of
    # PostgreSQL's library, and a chained error, would have it.
    if not all(port.isdecimal() for port in str(parts.get("port", "")).split(",") if port):
        raise BadSetting(f"{name} {DATABASE_FORM}")
    return parts
