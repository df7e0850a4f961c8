"""The begin of a request as bytes: its request line and its Host.

Source: RFC 9112, 3.2.
"""

from __future__ import annotations

import re

from yarl import URL

from core.kept_english import gettext as _
from core.outbound import AddressRefused

_VISIBLE = re.compile(r"[\x21-\x7e]+").fullmatch


def request_head(method: str, target: str, url: URL) -> bytes:
    """`url` says the host. Raises AddressRefused for a target that could end early."""
    if not _VISIBLE(target):
        raise AddressRefused(_("The path of the request holds characters that no path may have."))
    return f"{method} {target} HTTP/1.1\r\nHost: {url.host_port_subcomponent}".encode()
