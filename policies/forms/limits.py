"""The form of a limit."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, NamedTuple

from django import forms
from django.contrib.auth.models import Group
from django.utils.translation import gettext_lazy as _

from core.messages.localizing import localized
from policies.models import Limit


class LimitField(NamedTuple):
    bound: forms.BoundField
    widget: str
    kinds: str


class LimitSection(NamedTuple):
    title: str
    fields: list[LimitField]


class LimitForm(forms.ModelForm):  # type: ignore[type-arg]
    """Every field that a limit has, so that a new one is here with its model."""

    # Django would offer a row of dashes.
    kind = forms.ChoiceField(
        label=_("What is counted"), choices=[("", _("Choose …")), *Limit.Kind.choices]
    )
    effect = forms.ChoiceField(
        label=_("Effect"),
        choices=[("", _("Choose …")), *Limit._meta.get_field("effect").flatchoices],
        help_text=_("What happens to a call that is too much."),
    )
    period = forms.ChoiceField(
        label=_("Per"),
        required=False,
        choices=[("", _("no period")), *Limit.Period.choices],
        help_text=_("Cost is counted by the calendar, in UTC."),
    )
    per = forms.MultipleChoiceField(
        label=_("Counted for each"),
        required=False,
        choices=Limit.Per.choices,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("None chosen means that all calls that it covers are counted together."),
    )

    class Meta:
        model = Limit
        fields = "__all__"  # noqa: DJ007 as the class says
        widgets = {
            "server": forms.TextInput(attrs={"list": "servers"}),
            "tool": forms.TextInput(attrs={"list": "tools"}),
            "agents": forms.CheckboxSelectMultiple,
            "owner_groups": forms.CheckboxSelectMultiple,
        }
        labels = {
            "agents": _("Agents"),
            "owner_groups": _("Groups of their owners"),
            "burst": _("Burst"),
        }
        help_texts = {
            "burst": _("How many at once after a pause. Empty: as many as above."),
            "cost": _("The same for each call."),
            "cost_argument": _("An argument that says it, for example: order.total"),
            "cost_result": _(
                "A number in the result, for example: structuredContent.cost; or $size, its bytes. "
                "It replaces what the call reserved, once the call has ended."
            ),
            "unit": _("For example: EUR"),
            "minutes": _("For this long, its next calls are over the limit."),
            "server": _("A name or a pattern: * stands for anything, ? for one letter."),
            "tool": _("As its server calls it; patterns as above."),
            "hint": _("What the server claims can make a limit apply, never keep it off."),
            "agents": _("None chosen means every agent."),
            "owner_groups": _("None chosen means every owner."),
            "reason": _("Agents and approvers read it."),
        }

    field_order = [
        *("name", "kind", "amount", "period", "burst", "unit", "cost", "cost_argument"),
        *("cost_result", "minutes"),
        *("effect", "per", "server", "tool", "hint", "agents", "owner_groups", "reason", "mode"),
    ]
    # By the first field of each part of the form.
    parts = {
        "name": _("The limit"),
        "effect": _("When it is reached"),
        "server": _("What it covers"),
        "reason": _("About the limit"),
    }
    # The kinds of limits that a field is for; the others do not show it.
    kinds = {
        "period": "calls bytes cost",
        "burst": "calls bytes",
        "unit": "cost",
        "cost": "cost",
        "cost_argument": "cost",
        "cost_result": "cost",
        "minutes": "repeats failures",
    }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        groups = self.fields["owner_groups"]
        assert isinstance(groups, forms.ModelMultipleChoiceField)
        groups.queryset = Group.objects.order_by("name")
        groups.label_from_instance = lambda obj: localized(obj.name)  # type: ignore[method-assign]
        for name in ("amount", "cost"):
            # As it was typed, without the zeros of its column.
            if isinstance(kept := self.initial.get(name), Decimal):
                self.initial[name] = f"{kept.normalize():f}"

    def sections(self) -> list[LimitSection]:
        """Fields by their part of the form, a field that has no part to begin in the last."""
        found: list[LimitSection] = []
        for bound in self:
            if bound.name in self.parts:
                found.append(LimitSection(str(self.parts[bound.name]), []))
            found[-1].fields.append(
                LimitField(bound, _kind(bound.field.widget), self.kinds.get(bound.name, ""))
            )
        return found


def _kind(widget: forms.Widget) -> str:
    return "choices" if isinstance(widget, forms.CheckboxSelectMultiple) else "field"
