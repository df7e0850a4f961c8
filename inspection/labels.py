"""Words for people of the kinds found in results."""

from __future__ import annotations

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from inspection import personal, secrets

_LABELS: dict[str, str | Promise] = {
    "hidden.ansi": _("terminal commands"),
    "hidden.control": _("control characters"),
    "hidden.bidi": _("characters that turn the direction of text"),
    "hidden.selector": _("variation selectors"),
    "hidden.tag": _("tag characters"),
    "hidden.unseen": _("characters without a width"),
    "hidden.surrogate": _("halves of characters"),
    "traceback": _("tracebacks"),
    "path": _("internal paths"),
    "cut": _("cut to the size allowed"),
    "link": _("links to other hosts, deactivated"),
    "marked": _("texts marked as data"),
}


def label(kind: str) -> str:
    """The label of a kind that inspection.results counts."""
    family, _dot, masked = kind.partition(".")
    if family == "masked":
        known = secrets.LABELS.get(masked) or personal.LABELS.get(masked)
        return str(known or masked.removeprefix("custom."))
    return str(_LABELS.get(kind, kind))
