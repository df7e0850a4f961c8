"""The form of a rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib.auth.models import Group
from django.db.models import Count
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from accounts.models import Agent
from core.messages.localizing import localized
from policies.forms.results import ResultRulesField, shown_form
from policies.forms.thresholds import (
    HELP,
    LABEL,
    ThresholdRow,
    ThresholdsField,
    rows,
)
from policies.models import Effect, Rule
from policies.offers import ConditionOffer
from registry.forms.tools import ResultRulesForm

# Fields that stand in the sentence; a new one stands below it.
CLAUSES = {"name", "agents", "owner_groups", "tool", "server", "hint", "when", "offered", "effect"}
CLAUSES |= {"results", "thresholds", "confirm_grants", "decide_within", "start_within", "reason"}


class RuleForm(forms.ModelForm):  # type: ignore[type-arg]
    """Every field that a rule has but its place, so that a new field is here with its model."""

    # Django would offer a row of dashes.
    effect = forms.ChoiceField(label=_("Effect"), choices=[("", _("Choose …")), *Effect.choices])
    thresholds = ThresholdsField(required=False, label=LABEL, help_text=HELP)
    results = ResultRulesField(required=False, label=_("Results"))

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
            "tool": _(
                "As its server calls it. A name or a pattern: "
                "* stands for anything, ? for one letter."
            ),
            "server": _("A name or a pattern."),
            "hint": _("What the server claims can make a rule stricter, never looser."),
            "agents": _("None chosen means every agent."),
            "owner_groups": _("None chosen means every owner."),
            "when": _(
                "In CEL, for example: args.amount > 1000. Empty means always. "
                "The calls above are counted without it."
            ),
            "reason": _("Agents and approvers read it."),
            "instead": _("Agents that are denied read it, and need not guess."),
            "shows_arguments": _(
                "Mails and chats on calls that need approval then have them, with secrets masked. "
                "Everybody in the channel can read them. If another rule asks too, it must say so "
                "as well."
            ),
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

    def __init__(
        self,
        *args: Any,
        offers: Sequence[ConditionOffer] = (),
        may_read: bool = False,
        **kwargs: Any,
    ) -> None:
        """`may_read`: whether whoever fills it in may read the arguments of calls."""
        super().__init__(*args, **kwargs)
        self._may_read = may_read
        self._offers = offers
        offered = self.fields["offered"]
        assert isinstance(offered, forms.MultipleChoiceField)
        offered.choices = offers
        if not offers:
            del self.fields["offered"]
        agents = self.fields["agents"]
        assert isinstance(agents, forms.ModelMultipleChoiceField)
        agents.queryset = Agent.objects.select_related("owner")
        agents.label_from_instance = lambda obj: _with_owner(obj)  # type: ignore[method-assign]  # noqa: PLW0108 typed
        groups = self.fields["owner_groups"]
        assert isinstance(groups, forms.ModelMultipleChoiceField)
        groups.queryset = Group.objects.annotate(agents=Count("user__agents")).order_by("name")
        groups.label_from_instance = lambda obj: _with_agents(obj)  # type: ignore[method-assign]  # noqa: PLW0108 typed

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        if chosen := given.pop("offered", []):
            written = given.get("when", "").strip()
            given["when"] = " && ".join([f"({written})"] * bool(written) + chosen)
        return given

    def clean_shows_arguments(self) -> bool:
        """Checks that whoever saves it may read what messages then say."""
        shows: bool = self.cleaned_data["shows_arguments"]
        if shows and not self._may_read:
            raise forms.ValidationError(
                _("Only users who may view arguments and results can save a rule with this.")
            )
        return shows

    def offers(self) -> list[tuple[ConditionOffer, bool]]:
        """Each with whether it is chosen."""
        chosen = self["offered"].value() or []
        return [(offer, offer.text in chosen) for offer in self._offers]

    def kind(self, name: str) -> str:
        return "check" if isinstance(self.fields[name].widget, forms.CheckboxInput) else "field"

    def threshold_rows(self) -> list[ThresholdRow]:
        return rows(self["thresholds"].value())

    def rest(self) -> list[tuple[str, forms.BoundField]]:
        """Fields that no clause of the sentence has (templates/policies/rule.html)."""
        return [(self.kind(bound.name), bound) for bound in self if bound.name not in CLAUSES]

    def result_form(self) -> ResultRulesForm:
        return shown_form(self["results"].value() or {})

    # Parts of the page that are folded unless something in them is set or wrong.

    def is_for_some(self) -> bool:
        return self._says("agents", "owner_groups")

    def names_deciders(self) -> bool:
        return self._says("thresholds", "confirm_grants")

    def demands_results(self) -> bool:
        if not self.is_bound:
            return self._says("results")
        # A browser sends each of its fields, changed or not.
        return bool(self["results"].errors or self.cleaned_data.get("results"))

    def sets_times(self) -> bool:
        return self._says("decide_within", "start_within")

    def says_more(self) -> bool:
        usual = {"mode": Rule.Mode.ENFORCE}
        rest = (bound for _kind, bound in self.rest())
        return any(b.errors or (b.value() or "") != usual.get(b.name, "") for b in rest)

    def _says(self, *names: str) -> bool:
        return any(self[name].errors or self[name].value() for name in names)


def _with_owner(agent: Any) -> str:
    return _("%(agent)s, for %(owner)s") % {"agent": agent.name, "owner": agent.owner.shown_name}


def _with_agents(group: Any) -> str:
    said = ngettext("%(group)s (%(n)d agent)", "%(group)s (%(n)d agents)", group.agents)
    return said % {"group": localized(group.name), "n": group.agents}
