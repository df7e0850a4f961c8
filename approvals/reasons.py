"""Why people say no, in words that an agent can act on."""

from __future__ import annotations

from collections.abc import Iterable

from django.utils.translation import gettext_lazy, pgettext_lazy

from core.english import gettext as _

REASONS = {
    "target": _("It is aimed at the wrong target."),
    "scope": _("It does more than is needed."),
    "time": _("Not now."),
    "unclear": _("It is not clear why this is needed: say so and ask again."),
    "mistake": _("The arguments hold a mistake."),
    "harm": _("It looks like an attack, or like something that does harm."),
}
# On the chips that people press.
SHORT = {
    "target": gettext_lazy("Wrong target"),
    "scope": gettext_lazy("Too much"),
    "time": pgettext_lazy("denial", "Not now"),
    "unclear": gettext_lazy("Unclear why"),
    "mistake": gettext_lazy("Mistake"),
    "harm": gettext_lazy("Does harm"),
}


def sentence(chosen: Iterable[str], text: str) -> str:
    """The reasons that were picked, in our order, and then the written one."""
    pressed = set(chosen)
    said = [str(reason) for name, reason in REASONS.items() if name in pressed]
    return " ".join([*said, text]).strip()[:1000]
