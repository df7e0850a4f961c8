"""Idempotency keys, and the option that allows a duplicate, as a client sends them with a call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core.english import gettext as _
from core.errors import CountersignError

KEY_HEADER = b"idempotency-key"
KEY = "countersign/idempotencyKey"
ALLOW_DUPLICATE = "countersign/again"
# In `_meta`.
NAMES = frozenset((KEY, ALLOW_DUPLICATE))
KEY_MAX = 255


class InvalidOption(CountersignError):
    """Says which, and what would be right."""


def key_of(header: str | None, meta: Mapping[str, Any]) -> str:
    """The idempotency key from either place; empty where there is none. Raises InvalidOption."""
    inside = meta.get(KEY)
    if header is None and inside is None:
        return ""
    keys = [checked(_bare(header))] if header is not None else []
    keys += [checked(inside)] if inside is not None else []
    if len(set(keys)) > 1:
        raise InvalidOption(_("The header Idempotency-Key says something else than _meta."))
    return keys[0]


def checked(key: object) -> str:
    if isinstance(key, str) and 0 < len(key) <= KEY_MAX and key.isprintable():
        return key
    said = _("An idempotency key is a text of 1 to %(n)d characters that can be seen.")
    raise InvalidOption(said % {"n": KEY_MAX})


def _bare(header: str) -> str:
    """Without the quotes of a structured field, which few clients write."""
    quoted = len(header) > 1 and header[0] == header[-1] == '"'
    return header[1:-1] if quoted else header


def duplicate_allowed(meta: Mapping[str, Any]) -> bool:
    said = meta.get(ALLOW_DUPLICATE, False)
    if not isinstance(said, bool):
        raise InvalidOption(_("%s must be true or false.") % ALLOW_DUPLICATE)
    return said
