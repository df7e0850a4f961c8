"""Sentences that are kept in the record or sent to agents: English, whoever's page is at work.

They are extracted like others and have translations: pages show them in the reader's language
(core/messages/localizing.py).
"""

from __future__ import annotations

from django.utils.translation import override

from core.kept_english import gettext as gettext


def ngettext(singular: str, plural: str, number: int) -> str:
    return singular if number == 1 else plural


def english(label: object) -> str:
    """The English word of a choice."""
    with override("en"):
        return str(label)
