"""Labels of tools for information flow: what comes in by a tool, and what may go out by it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from django.db import models
from django.utils.translation import gettext_lazy as _


class Label(models.TextChoices):
    UNTRUSTED = "untrusted", _("Untrusted source")
    SENSITIVE = "sensitive", _("Sensitive source")
    SINK = "sink", _("Sends outside")


class LabelChoice(models.TextChoices):
    """An operator's word on one label of a tool."""

    HINTED = "", _("As its hints say")
    YES = "yes", _("Yes")
    NO = "no", _("No")


LABEL_FIELDS = tuple(f"label_{label}" for label in Label)


def of_hints(hints: Mapping[str, bool]) -> frozenset[Label]:
    """The labels that a server's own words admit; what it does not say is no assurance.

    An open-world tool brings strangers' texts, and takes texts to strangers: a query or an address
    carries them out as well as a message. Whether what it brings is sensitive, only a server says
    that is closed to the world; of an open one, an operator has to.
    """
    open_world = hints.get("openWorldHint")
    if open_world is None:
        return frozenset(Label)
    return frozenset({Label.UNTRUSTED, Label.SINK} if open_world else {Label.SENSITIVE})


def labels(said: Iterable[Mapping[str, bool]], choices: Mapping[Label, str]) -> list[str]:
    """The labels that count: an operator's word where there is one, else those of any hints.

    `said`: the hints of its latest definition, and of those that agents had last. What a server
    says by itself may add a label, and takes none back before somebody published it.
    """
    hinted = frozenset[Label]().union(*map(of_hints, said))
    return [
        label.value
        for label in Label
        if choices[label] == LabelChoice.YES
        or (choices[label] == LabelChoice.HINTED and label in hinted)
    ]
