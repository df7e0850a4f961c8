"""Thresholds as rows of a plain form: what is left empty is none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.models import User
from core.messages.localizing import localized
from policies.thresholds import (
    BACKEND,
    DECIDE,
    GROUP,
    PERSON,
    THRESHOLDS_MAX,
    BadThresholds,
    Distinct,
    StepUp,
    parse,
)

AT_LEAST = 3
PARTS = ("approve", "deny", "from", "distinct", "step_up", "after_min")
NUMBERS = ("approve", "deny", "after_min")
Raw = dict[str, Any]
Choices = list[tuple[str, str]]


class ThresholdRowsWidget(forms.Widget):
    """Reads NAME-0-approve and so on; policies/thresholds.html writes them."""

    def value_from_datadict(self, data: Mapping[str, Any], files: Any, name: str) -> list[Raw]:
        rows = (
            {part: data.get(f"{name}-{n}-{part}", "") for part in PARTS}
            for n in range(THRESHOLDS_MAX)
        )
        return [row for row in rows if str(row["approve"]).strip()]

    def value_omitted_from_data(self, data: Mapping[str, Any], files: Any, name: str) -> bool:
        return f"{name}-0-approve" not in data


class ThresholdsField(forms.Field):
    widget = ThresholdRowsWidget

    def to_python(self, value: list[Raw] | None) -> list[Raw]:
        try:
            return [one.plain() for one in parse([_numbered(row) for row in value or []])]
        except BadThresholds as error:
            raise ValidationError(str(error)) from error

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(initial or data)


def _numbered(row: Raw) -> Raw:
    """A text as a number, if it is one; other text stays, to be refused with the rest."""
    return {
        key: int(value) if key in NUMBERS and str(value).isdecimal() else value
        for key, value in {**row, "deny": row["deny"] or "1"}.items()
        if value != "" or key in ("from", "step_up")
    }


@dataclass(frozen=True, slots=True)
class ThresholdRow:
    place: int
    value: Raw
    sources: list[tuple[str, Choices]]
    distinct: Choices
    step_ups: Choices


def rows(value: list[Raw] | None) -> list[ThresholdRow]:
    """The existing rows, and room for more."""
    given = list(value or [])
    room = min(THRESHOLDS_MAX, max(AT_LEAST, len(given) + 1))
    sources = _sources({str(row.get("from", "")) for row in given})
    distinct = [(str(v), str(label)) for v, label in Distinct.choices]
    step_ups = [(str(v), str(label)) for v, label in StepUp.choices]
    empty: list[Raw] = [{}] * (room - len(given))
    return [
        ThresholdRow(n, row, sources, distinct, step_ups)
        for n, row in enumerate([*given, *empty], start=0)
    ]


def _sources(chosen: set[str]) -> list[tuple[str, Choices]]:
    """Groups and people to choose from; what is chosen and gone is still shown."""
    groups = Group.objects.order_by("name").values_list("name", flat=True)
    able = User.objects.with_perm(DECIDE, backend=BACKEND).order_by("username")
    known = {GROUP: list(groups), PERSON: list(able.values_list("username", flat=True))}
    for source in sorted(chosen):
        kind, colon, name = source.partition(":")
        if colon and name not in known.get(kind + colon, [name]):
            known[kind + colon].append(name)
    titles = {GROUP: _("Groups"), PERSON: _("People")}
    return [
        (titles[kind], [(kind + name, localized(name)) for name in known[kind]]) for kind in known
    ]


LABEL = gettext_lazy("Who decides")
HELP = gettext_lazy(
    "Where the rule requires approval: the first line that is met decides. All empty means one "
    "person's vote. Never counted is who has a part in the call: the agent's owner and creator, "
    "the token's issuer, whoever edited the arguments. A line with minutes counts only once the "
    "call has been pending for so long: its people are notified then, and the card says so."
)
