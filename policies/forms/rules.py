"""The form of a rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib.auth.models import Group
from django.utils.translation import gettext_lazy as _

from core.messages.localizing import localized
from policies.forms.thresholds import (
    HELP,
    LABEL,
    ThresholdRow,
    ThresholdRowsWidget,
    ThresholdsField,
    rows,
)
from policies.models import Effect, Rule
from policies.offers import ConditionOffer


class RuleForm(forms.ModelForm):  # type: ignore[type-arg]
    """Every field that a rule has but its place, so that a new field is here with its model."""

    # Django would offer a row of dashes.
    effect = forms.ChoiceField(label=_("Effect"), choices=[("", _("Choose …")), *Effect.choices])
    thresholds = ThresholdsField(required=False, label=LABEL, help_text=HELP)

    class Meta:
        model = Rule
        exclude = ["position"]  # noqa: DJ006 as the class says
        widgets = {
            "agents": forms.CheckboxSelectMultiple,
            "owner_groups": forms.CheckboxSelectMultiple,
            "when": forms.Textarea(attrs={"rows": 2, "class": "mono", "spellcheck": "false"}),
        }
        labels = {
            "agents": _("Agents"),
            "owner_groups": _("Groups of their owners"),
        }
        help_texts = {
            "server": _("A name or a pattern: * stands for anything, ? for one letter."),
            "tool": _("As its server calls it; patterns as above."),
            "hint": _("What the server claims can make a rule stricter, never looser."),
            "agents": _("None chosen means every agent."),
            "owner_groups": _("None chosen means every owner."),
            "when": _(
                "In CEL, for example: args.amount > 1000. Empty means always. "
                "The calls counted above are those before it."
            ),
            "reason": _("Agents and approvers read it."),
            "instead": _("Agents that are denied read it, and need not guess."),
            "decide_within": _("Seconds. Empty: as the installation is set."),
            "start_within": _("Seconds from the approval to the start. Empty as above."),
        }

    # Chosen of what is offered (policies/offers.py), and joined to the condition.
    offered = forms.MultipleChoiceField(required=False, label=_("Conditions from this call"))

    field_order = [
        "name",
        "effect",
        "server",
        "tool",
        "hint",
        "when",
        "offered",
        "agents",
        "owner_groups",
    ]

    def __init__(self, *args: Any, offers: Sequence[ConditionOffer] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._offers = offers
        offered = self.fields["offered"]
        assert isinstance(offered, forms.MultipleChoiceField)
        offered.choices = offers
        if not offers:
            del self.fields["offered"]
        groups = self.fields["owner_groups"]
        assert isinstance(groups, forms.ModelMultipleChoiceField)
        groups.queryset = Group.objects.order_by("name")
        groups.label_from_instance = lambda obj: localized(obj.name)  # type: ignore[method-assign]

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        if chosen := given.pop("offered", []):
            written = given.get("when", "").strip()
            given["when"] = " && ".join([f"({written})"] * bool(written) + chosen)
        return given

    def offers(self) -> list[tuple[ConditionOffer, bool]]:
        """Each with whether it is chosen."""
        chosen = self["offered"].value() or []
        return [(offer, offer.text in chosen) for offer in self._offers]

    def kind(self, name: str) -> str:
        widget = self.fields[name].widget
        if name == "offered":
            return "offers"
        if isinstance(widget, ThresholdRowsWidget):
            return "thresholds"
        if isinstance(widget, forms.CheckboxSelectMultiple):
            return "choices"
        return "check" if isinstance(widget, forms.CheckboxInput) else "field"

    def threshold_rows(self) -> list[ThresholdRow]:
        return rows(self["thresholds"].value())

    def pieces(self) -> list[tuple[str, forms.BoundField]]:
        return [(self.kind(bound.name), bound) for bound in self]
