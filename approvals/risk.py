"""How much depends on a call, and what says so. What a server claims only ever adds to it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any, NamedTuple

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from calls.history import RECENT as RECENT_CALLS
from calls.models import Call
from core.text import hidden_count, lookalike_count

RECENT = timedelta(days=7)


class Risk(NamedTuple):
    level: str
    reasons: list[str]

    @property
    def label(self) -> str:
        return {"high": _("High risk"), "medium": _("Some risk"), "low": _("Low risk")}[self.level]


def risk(call: Call, given: Any, *, used_lately: bool) -> Risk:
    high = [*_destroys(call), *_hides(given)]
    medium = [*_changes(call), *_unproven(call, used_lately=used_lately)]
    level = "high" if high else "medium" if medium else "low"
    return Risk(level, [*high, *medium] or [_("Its server declares it read-only, here.")])


def _destroys(call: Call) -> Iterator[str]:
    hints = call.definition.hints if call.definition else {}
    if hints.get("readOnlyHint"):
        return
    if hints.get("destructiveHint"):
        yield _("Its server declares it destructive: it may delete or overwrite something.")
    elif "destructiveHint" not in hints:
        yield _("Its server does not declare it non-destructive.")


def _hides(given: Any) -> Iterator[str]:
    texts = list(_texts(given))
    if hidden := sum(map(hidden_count, texts)):
        yield ngettext(
            "The arguments hold %(n)d character that does not show itself.",
            "The arguments hold %(n)d characters that do not show themselves.",
            hidden,
        ) % {"n": hidden}
    if odd := sum(map(lookalike_count, texts)):
        yield ngettext(
            "The arguments hold %(n)d character that passes for another.",
            "The arguments hold %(n)d characters that pass for others.",
            odd,
        ) % {"n": odd}


def _changes(call: Call) -> Iterator[str]:
    hints = call.definition.hints if call.definition else {}
    if not hints.get("readOnlyHint") and hints.get("destructiveHint") is False:
        yield _("It changes something.")
    if hints.get("openWorldHint", True):
        yield _("It is open-world: what is sent may reach other systems.")


def _unproven(call: Call, *, used_lately: bool) -> Iterator[str]:
    definition = call.definition
    if definition and definition.version > 1 and timezone.now() - definition.first_seen_at < RECENT:
        yield _("Its definition changed in the last seven days.")
    if not used_lately:
        yield _("Its tool is not among the last %(n)d calls of this agent.") % {"n": RECENT_CALLS}


def _texts(given: Any) -> Iterator[str]:
    if isinstance(given, str):
        yield given
    elif isinstance(given, dict):
        for name, member in given.items():
            yield name
            yield from _texts(member)
    elif isinstance(given, list):
        for member in given:
            yield from _texts(member)
