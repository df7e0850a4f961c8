"""The form of a limit."""

from __future__ import annotations

from typing import Any

from django import forms
from django.contrib.auth.models import Group
from django.utils.translation import gettext_lazy as _

from core.messages.localizing import localized
from policies.models import Limit


class LimitForm(forms.ModelForm):  # type: ignore[type-arg]
    """Every field that a limit has, so that a new one is here with its model."""

    # Django would offer a row of dashes.
    kind = forms.ChoiceField(
        label=_("What is counted"), choices=[("", _("Choose …")), *Limit.Kind.choices]
    )
    effect = forms.ChoiceField(
        label=_("Effect"),
        choices=[("", _("Choose …")), *Limit._meta.get_field("effect").flatchoices],
        help_text=_("Of a call that is too much."),
    )
    period = forms.ChoiceField(
        label=_("Per"),
        required=False,
        choices=[("", _("no period")), *Limit.Period.choices],
        help_text=_("Of calls, bytes and cost. Cost is counted by the calendar, in UTC."),
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
        }
        help_texts = {
            "burst": _("Of calls and bytes: so many after a pause. Empty: as many as above."),
            "cost": _("Of cost: the same for each call."),
            "cost_argument": _("Of cost: an argument that says it, for example: order.total"),
            "unit": _("Of cost, for example: EUR"),
            "minutes": _(
                "Of failures and identical calls: for so long its next calls are too much."
            ),
            "server": _("A name or a pattern: * stands for anything, ? for one letter."),
            "tool": _("As its server calls it; patterns as above."),
            "hint": _("What the server claims can make a limit apply, never keep it off."),
            "agents": _("None chosen means every agent."),
            "owner_groups": _("None chosen means every owner."),
            "reason": _("Agents and approvers read it."),
        }

    field_order = [
        *("name", "kind", "amount", "period", "burst", "cost", "cost_argument", "unit", "minutes"),
        *("effect", "per", "server", "tool", "hint", "agents", "owner_groups", "reason", "mode"),
    ]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        groups = self.fields["owner_groups"]
        assert isinstance(groups, forms.ModelMultipleChoiceField)
        groups.queryset = Group.objects.order_by("name")
        groups.label_from_instance = lambda obj: localized(obj.name)  # type: ignore[method-assign]

    def pieces(self) -> list[tuple[str, forms.BoundField]]:
        return [(_kind(bound.field.widget), bound) for bound in self]


def _kind(widget: forms.Widget) -> str:
    return "choices" if isinstance(widget, forms.CheckboxSelectMultiple) else "field"
