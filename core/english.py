"""Sentences that are kept in the record or sent to agents: English, whoever's page is at work.

They are extracted like others and have translations: pages show them in the reader's language
(core/messages/localizing.py).
"""

from __future__ import annotations

import unicodedata

from django.utils.translation import override

from core.kept_english import gettext as gettext


def with_full_stop(text: str) -> str:
    """A person's words, after which another sentence follows."""
    if not text or text[-1] in ".?!:。？！：…":
        return text
    is_wide = unicodedata.east_asian_width(text[-1]) in ("W", "F")
    return f"{text}{'。' if is_wide else '.'}"


def ngettext(singular: str, plural: str, number: int) -> str:
    return singular if number == 1 else plural


def english(label: object) -> str:
    """The English word of a choice."""
    with override("en"):
        return str(label)
