"""Requests to key providers, by the client that looks at each address first."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from core.guarded_http import PlainReply, RequestFailed, fetch


class KeyProviderFailed(Exception):
    """A secret cannot be wrapped or opened; says why, and repeats no secret."""


def ask(
    name: str, url: str, headers: Mapping[str, str], body: bytes, networks: Sequence[str]
) -> PlainReply:
    """`name`: of the provider, for sentences."""
    try:
        return fetch("POST", url, headers, body, networks=networks)
    except RequestFailed as error:
        raise KeyProviderFailed(f"{name} cannot be asked: {error}") from error


def text_in(name: str, reply: PlainReply, *path: str) -> str:
    """The text at this path of the answer's JSON."""
    try:
        found: Any = json.loads(reply.body)
        for member in path:
            found = found[member]
    except (ValueError, KeyError, TypeError):
        found = None
    if not isinstance(found, str):
        raise KeyProviderFailed(f"{name} answered something that cannot be used.")
    return found
