"""What a client says beside a call of how it is meant: once by its key, or again on purpose."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.utils.translation import gettext as _

from core.errors import CountersignError

KEY_HEADER = b"idempotency-key"
KEY = "countersign/idempotencyKey"
AGAIN = "countersign/again"
# In `_meta`.
NAMES = frozenset((KEY, AGAIN))
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
    """Some write a structured field's quotes, most do not: both mean the same."""
    quoted = len(header) > 1 and header[0] == header[-1] == '"'
    return header[1:-1] if quoted else header


def again_of(meta: Mapping[str, Any]) -> bool:
    said = meta.get(AGAIN, False)
    if not isinstance(said, bool):
        raise InvalidOption(_("%s must be true or false.") % AGAIN)
    return said
