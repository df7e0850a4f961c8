"""The relying party of passkeys: the console's public address, and nothing else.

A browser takes no number for a name: on one's own machine the site is `localhost`.
"""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from django.conf import settings

LOCAL = "localhost"


def rp_id() -> str:
    host = urlsplit(settings.PUBLIC_URL).hostname or LOCAL
    return LOCAL if _is_loopback(host) else host


def expected_origins() -> list[str]:
    public = urlsplit(settings.PUBLIC_URL)
    if not _is_loopback(public.hostname or LOCAL):
        return [settings.PUBLIC_URL]
    port = f":{public.port}" if public.port else ""
    return [f"{public.scheme}://{LOCAL}{port}"]


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == LOCAL
