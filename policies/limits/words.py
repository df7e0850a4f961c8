"""Limits in a few words, for pages, cards and agents."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, Protocol

from django.utils import translation

from core.english import gettext as _
from core.english import ngettext
from policies.models import Limit


class Measured(Protocol):
    """A limit, as a row or compiled."""

    @property
    def kind(self) -> str: ...
    @property
    def amount(self) -> Decimal: ...
    @property
    def period(self) -> str: ...
    @property
    def unit(self) -> str: ...


def number(value: Any) -> str:
    """With thousands separators, and no zeros behind."""
    exact = Decimal(value).normalize()
    return f"{exact:,f}"


def measure(limit: Measured) -> str:
    """“10 calls per minute”, “3 calls at the same time”: for agents and the record."""
    return _measure(limit, _, ngettext, limit.period)


def shown_measure(limit: Measured) -> str:
    """The same in the page's language."""
    period = str(Limit.Period(limit.period).label) if limit.period else ""
    return _measure(limit, translation.gettext, translation.ngettext, period)


def _measure(
    limit: Measured,
    _: Callable[[str], str],
    ngettext: Callable[[str, str, int], str],
    period: str,
) -> str:
    n, said = int(limit.amount), {"n": number(limit.amount), "unit": limit.unit}
    match limit.kind:
        case Limit.Kind.CALLS:
            much = ngettext("%(n)s call", "%(n)s calls", n) % said
        case Limit.Kind.BYTES:
            much = _("%(n)s bytes of arguments") % said
        case Limit.Kind.CONCURRENCY:
            return ngettext("%(n)s call at the same time", "%(n)s calls at the same time", n) % said
        case Limit.Kind.COST:
            much = _("%(n)s %(unit)s") % said
        case Limit.Kind.REPEATS:
            calls = ngettext("%(n)s identical call in a row", "%(n)s identical calls in a row", n)
            return calls % said
        case _other:
            return ngettext("%(n)s failure in a row", "%(n)s failures in a row", n) % said
    return _("%(much)s per %(period)s") % {"much": much, "period": period}


def wait(seconds: float) -> str:
    """“in 12 s”, “in 5 min”, “in 3 h”; rounded up, so that whoever keeps to it is not too early."""
    whole = int(-(-seconds // 1))
    if whole < 120:
        return _("%d s") % max(whole, 1)
    if whole < 7200:
        return _("%d min") % -(-whole // 60)
    if whole < 172_800:
        return _("%d h") % -(-whole // 3600)
    return _("%d days") % -(-whole // 86400)
