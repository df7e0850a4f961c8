"""Violations of a schema in the language of the page; agents and the record get them in English.

Pages show what the record has in their language (core/messages/localizing.py)."""

from __future__ import annotations

from django.utils.translation import gettext

from core.kept_english import gettext as _
from registry.schemas.violations import Violation

_VALUE = "%(value)s"
# As registry/schemas/violations.py says them; the more exact of two comes first.
_MESSAGES = (
    _("is required"),
    _("is not a known property"),
    _("must not be there"),
    _("must not have the same item twice"),
    _("must not fit the schema under “not”"),
    _("fits more than one alternative, where it must fit exactly one"),
    _("does not fit the schema's “%(value)s”"),
    _("is too long to be checked against its pattern: give at most %(value)s characters"),
    _("has a property whose name does not fit: it %(value)s"),
    _("must fit at least one of: %(value)s"),
    _("must fit one of: %(value)s"),
    _("must be of type %(value)s"),
    _("must be one of %(value)s"),
    _("must match the pattern %(value)s"),
    _("must have the format %(value)s"),
    _("must have at least %(value)s character"),
    _("must have at least %(value)s characters"),
    _("must have at most %(value)s character"),
    _("must have at most %(value)s characters"),
    _("must have at least %(value)s item"),
    _("must have at least %(value)s items"),
    _("must have at most %(value)s item"),
    _("must have at most %(value)s items"),
    _("must have at least %(value)s property"),
    _("must have at least %(value)s properties"),
    _("must have at most %(value)s property"),
    _("must have at most %(value)s properties"),
    _("must be at least %(value)s"),
    _("must be at most %(value)s"),
    _("must be greater than %(value)s"),
    _("must be less than %(value)s"),
    _("must be a multiple of %(value)s"),
    _("must be %(value)s"),
)


def in_words(violation: Violation) -> str:
    return _translated(violation.expected)


def _translated(expected: str) -> str:
    for message in _MESSAGES:
        before, has_value, after = message.partition(_VALUE)
        if expected == message:
            return gettext(message)
        if has_value and expected.startswith(before) and expected.endswith(after):
            value = expected[len(before) : len(expected) - len(after)]
            return gettext(message) % {"value": _value(message, value)}
    return expected


def _value(message: str, value: str) -> str:
    """The value, where it holds violations itself: those of alternatives, or of a name."""
    if ": it " in message:
        return _translated(value)
    if " one of: " in message:
        return "; ".join(_alternative(one) for one in value.split("; "))
    return value


def _alternative(said: str) -> str:
    path, _space, expected = said.partition(" ")
    return f"{path} {_translated(expected)}"
