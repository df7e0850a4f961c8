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
}


def label(kind: str) -> str:
    """The label of a kind that inspection.results counts."""
    family, _dot, masked = kind.partition(".")
    if family == "masked":
        return str(secrets.LABELS.get(masked) or personal.LABELS.get(masked) or masked)
    return str(_LABELS.get(kind, kind))
