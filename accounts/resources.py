"""Addresses that tokens are for, as clients write them (RFC 8707)."""

from __future__ import annotations

from django.conf import settings


def canonical_resource(named: str) -> str:
    """Without the slash that many clients write at the end of an address of ours. Nothing else is
    made equal: an address is exact to its path."""
    is_ours = named.startswith(f"{settings.AGENT_URL}/mcp/")
    return named[:-1] if is_ours and named.endswith("/") else named
