"""Listening sockets: opened once by `up` and lent to its children, or opened by a child itself.

What comes while one process makes way for the next waits in the socket, and nobody is refused.
"""

from __future__ import annotations

import argparse
import socket
from urllib.parse import urlsplit

from core.bad_setting import BadSetting

BACKLOG = 2048


def listen(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """Raises OSError. `shared`: another process of the same user may listen there too."""
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        made.bind((host.strip("[]"), port))
        made.listen(BACKLOG)
    except OSError:
        made.close()
        raise
    made.setblocking(False)
    made.set_inheritable(True)
    return made


def parse_address(text: str, *, setting: str) -> tuple[str, int] | None:
    """`host:port` of a setting; None where it is empty."""
    if not text:
        return None
    try:
        parts = urlsplit(f"//{text}")
        if parts.hostname and parts.port:
            return parts.hostname, parts.port
    except ValueError:
        pass
    raise BadSetting(f"{setting} is {text!r}, and has to be an address with a port: 127.0.0.1:9100")


def arguments() -> argparse.Namespace:
    """Arguments of this process."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--fd", type=int, help="a socket that listens already, inherited")
    parser.add_argument("--number", type=int, default=0, help="of several on that socket, from 1")
    return parser.parse_args()


def asked_for(given: argparse.Namespace) -> socket.socket:
    """The port that this process was told to listen on."""
    if given.fd is not None:
        return socket.socket(fileno=given.fd)
    return listen(given.host, given.port)
