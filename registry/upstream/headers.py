"""The HTTP headers that repeat parts of a request, so that proxies can route without parsing."""

import base64
import re
from collections.abc import Mapping
from typing import Any

from core.header_params import PREFIX, Path, header_value, value_at

_SAFE = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
_SENTINEL = re.compile(r"=\?base64\?.*\?=")


def encode(value: str) -> str:
    """The value itself, or base64 between sentinels where a header could not carry it."""
    if (_SAFE.fullmatch(value) or not value) and not _SENTINEL.fullmatch(value):
        return value
    return f"=?base64?{base64.b64encode(value.encode()).decode()}?="


def param_headers(declared: Mapping[Path, str], arguments: Mapping[str, Any]) -> dict[str, str]:
    """The Mcp-Param-* headers for one call."""
    said = {name: header_value(value_at(arguments, path)) for path, name in declared.items()}
    return {f"{PREFIX}{name}": encode(text) for name, text in said.items() if text is not None}
