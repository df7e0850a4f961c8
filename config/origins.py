"""Which pages may open the console's WebSockets: its own, by scheme, host and port."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.http.request import split_domain_port, validate_host

DEFAULT_PORTS = {"http": 80, "https": 443}

# Scheme, host and port, the port always as a number.
Origin = tuple[str, str, int]


class SameOrigin:
    """ASGI: hands a WebSocket on if its page came from the address that the socket goes to."""

    def __init__(self, application: Any) -> None:
        self._application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = {name: value.decode("latin-1") for name, value in scope.get("headers", [])}
        if is_same_origin(headers.get(b"origin", ""), headers.get(b"host", "")):
            await self._application(scope, receive, send)
        else:
            await WebsocketDenier()(scope, receive, send)


def is_same_origin(origin: str, host: str) -> bool:
    """Is it COUNTERSIGN_PUBLIC_URL's, or, with that one's scheme, the host's that was asked?"""
    page = parse_origin(origin)
    if page is None:
        return False
    if page == parse_origin(settings.PUBLIC_URL):
        return True
    is_ours = validate_host(split_domain_port(host)[0], settings.ALLOWED_HOSTS)
    # Behind a proxy the connection's own scheme says nothing of the browser's.
    return is_ours and page == parse_origin(f"{urlsplit(settings.PUBLIC_URL).scheme}://{host}")


def parse_origin(text: str) -> Origin | None:
    try:
        parts = urlsplit(text)
        port = parts.port or DEFAULT_PORTS.get(parts.scheme)
    except ValueError:
        return None
    if not port or not parts.hostname:
        return None
    return parts.scheme, parts.hostname, port
