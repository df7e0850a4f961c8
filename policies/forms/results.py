"""The demands of a rule for results, as the form of a tool has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from inspection.results import ResultRules, rules_of, stored_rules
from registry.forms.tools import ResultRulesForm
from registry.models import Tool
from registry.models.tools import RESULT_FIELDS


class ResultRulesWidget(forms.Widget):
    """Reads result_schema and so on; registry/result_rules.html writes them."""

    def value_from_datadict(self, data: Mapping[str, Any], files: Any, name: str) -> dict[str, Any]:
        return {field: data[field] for field in RESULT_FIELDS if field in data}

    def value_omitted_from_data(self, data: Mapping[str, Any], files: Any, name: str) -> bool:
        # A box that is not checked is not sent.
        return False


class ResultRulesField(forms.Field):
    """Its value is as `stored_rules` returns it."""

    widget = ResultRulesWidget

    def to_python(self, value: dict[str, Any] | None) -> dict[str, Any]:
        form = ResultRulesForm(value or {})
        if not form.is_valid():
            raise ValidationError(
                [str(one) for mistakes in form.errors.values() for one in mistakes]
            )
        return stored_rules(form.rules)

    def has_changed(self, initial: Any, data: Any) -> bool:
        return bool(initial or data)


def posted(value: Mapping[str, Any]) -> dict[str, Any]:
    """The data that a browser would send for what is stored."""
    named = {f"result_{key}": one for key, one in value.items() if one is not None}
    return {name: "on" if one is True else one for name, one in named.items() if one is not False}


def shown_form(value: Mapping[str, Any]) -> ResultRulesForm:
    """The form of a tool with these choices: `value` as stored, or as a browser sent it."""
    if any(name in RESULT_FIELDS for name in value):
        return ResultRulesForm(dict(value))
    rules: ResultRules = rules_of(value)
    return ResultRulesForm(
        instance=Tool(**{f"result_{key}": one for key, one in rules._asdict().items()})
    )
