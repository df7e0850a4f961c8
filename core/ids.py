"""Identifiers that sort by time, so that their indexes grow at one end."""

import os
import time
from datetime import datetime
from uuid import UUID

# SQL of `first_id`. Without a function of ours: PostgreSQL knows it before a statement begins, and
# opens no partition that it leaves out.
FIRST_ID = (
    "rpad(lpad(to_hex((extract(epoch FROM {moment}) * 1000)::bigint), 12, '0'), 32, '0')::uuid"
)


def uuid7() -> UUID:
    """RFC 9562, version 7: 48 bits of milliseconds, 74 random bits."""
    stamp = time.time_ns() // 1_000_000
    value = (stamp & 0xFFFF_FFFF_FFFF) << 80 | int.from_bytes(os.urandom(10), "big")
    value = value & ~(0xF << 76) | 0x7 << 76
    return UUID(int=value & ~(0b11 << 62) | 0b10 << 62)


def uuid7_floor(at: datetime) -> UUID:
    """Smaller than every id that is made from `at` on: an index of ids is one of times too."""
    return UUID(int=int(at.timestamp() * 1000) << 80 | 0x7 << 76 | 0b10 << 62)


def first_id(at: datetime) -> UUID:
    """Below every id of that moment and later: bounds a search by time."""
    return UUID(int=max(0, int(at.timestamp() * 1000)) << 80)
