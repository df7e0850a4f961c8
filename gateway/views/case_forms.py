"""Forms of saved cases: what is expected, and when they run by themselves."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.validators import MinValueValidator
from django.utils.translation import gettext_lazy as _

from accounts.models import Agent, User
from gateway.cases.expectations import InvalidExpectation, parse_values
from gateway.models import CaseSchedule, SavedCase
from inspection import secrets


class CaseForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = SavedCase
        fields = ["name", "outcome", "fits_schema", "contains", "values", "within_ms"]
        labels = {
            "name": _("Name"),
            "outcome": _("It ends with"),
            "contains": _("The result contains the text"),
            "values": _("Values in the result"),
            "within_ms": _("It takes at most (ms)"),
        }
        help_texts = {
            "values": _(
                'One a line, as JSONPath = JSON: $.items[0].name = "Ada". Paths lead into the '
                "structured content, or else into JSON in the only text."
            ),
        }
        widgets = {"values": forms.Textarea(attrs={"rows": 3, "spellcheck": "false"})}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["within_ms"].validators.append(MinValueValidator(1))
        self.fields["values"].widget.attrs["class"] = "mono"

    def clean_name(self) -> str:
        return self._without_secrets("name")

    def clean_contains(self) -> str:
        return self._without_secrets("contains")

    def clean_values(self) -> str:
        written = self._without_secrets("values")
        try:
            parse_values(written)
        except InvalidExpectation as error:
            raise forms.ValidationError(str(error)) from error
        return written

    def _without_secrets(self, name: str) -> str:
        written: str = self.cleaned_data[name]
        if next(iter(secrets.find(written)), None):
            said = _("This looks like a secret. Entries of failed runs repeat it: leave it out.")
            raise forms.ValidationError(said)
        return written


class CaseScheduleForm(forms.Form):
    every = forms.ChoiceField(
        label=_("Runs by itself"),
        choices=[("", _("Not scheduled")), *CaseSchedule.Every.choices],
        required=False,
    )
    agent = forms.ModelChoiceField(
        label=_("As the agent"), queryset=Agent.objects.none(), to_field_name="name"
    )
    confirmed = forms.BooleanField(required=False)

    def __init__(self, *args: Any, person: User, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["agent"]
        assert isinstance(field, forms.ModelChoiceField)
        field.queryset = person.agents.filter(enabled=True).order_by("name")
        field.empty_label = None
        # Whoever ends a schedule may have no agent any more.
        field.required = bool(self.data.get("every"))
