"""JSON members in the console's forms, so that both are checked in one place."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django import forms
from rest_framework.exceptions import ValidationError

from core.english import gettext as _
from policies.forms.results import ResultRulesField, posted
from policies.forms.thresholds import PARTS, ThresholdsField


def data_of(
    form: type[forms.Form] | type[forms.ModelForm[Any]], plain: Mapping[str, Any]
) -> dict[str, Any]:
    """The data that a browser would send for these members. Raises ValidationError."""
    data: dict[str, Any] = {}
    for name, field in form.base_fields.items():
        value = plain.get(name)
        if isinstance(field, ResultRulesField):
            data |= posted(value or {})
        elif isinstance(field, ThresholdsField):
            data |= _thresholds(name, value or [])
        elif isinstance(field, forms.ModelMultipleChoiceField):
            data[name] = _keys(name, field, value or [])
        elif value is True:
            data[name] = "on"
        elif value is not None and value is not False:
            data[name] = value
    return data


def check(form: forms.BaseForm, names: Mapping[str, str] | None = None) -> None:
    """Raises ValidationError with the form's mistakes. `names`: of members that the form's fields
    call otherwise."""
    if not form.is_valid():
        called = {**dict.fromkeys(form.errors), **(names or {})}
        raise ValidationError(
            {
                called[name] or name: [str(one) for one in mistakes]
                for name, mistakes in form.errors.items()
            }
        )


def _thresholds(name: str, rows: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """With an empty row where there is none: without any, the form would leave them as they are."""
    filled = [*rows] or [{}]
    return {
        f"{name}-{n}-{part}": str(row.get(part, ""))
        for n, row in enumerate(filled)
        for part in PARTS
    }


def _keys(name: str, field: Any, names: list[str]) -> list[int]:
    found = dict(
        field.queryset.model._default_manager.filter(name__in=names).values_list("name", "pk")
    )
    if missing := [one for one in names if one not in found]:
        raise ValidationError({name: [_("There is no “%s” here.") % missing[0]]})
    return sorted(found.values())
