"""Identifiers that sort by time, so that their indexes grow at one end."""

import os
import time
from uuid import UUID


def uuid7() -> UUID:
    """RFC 9562, version 7: 48 bits of milliseconds, 74 random bits."""
    stamp = time.time_ns() // 1_000_000
    value = (stamp & 0xFFFF_FFFF_FFFF) << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    return UUID(int=value & ~(0b11 << 62) | 0b10 << 62)
