"""Forms of escalation policies: a group of approvers, and up to five steps."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django import forms
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from notifications.escalation_models import EscalationPolicy, EscalationStep, in_turn
from notifications.schedule_models import OnCallSchedule
from policies.models import Effect, Rule

STEPS_MAX = 5
IN_TURN_MAX = 3
# A call expires after hours; a step after a day notifies nobody.
AFTER_MAX_MIN = 1440
KNOWN_ALREADY = _("There is an escalation policy for it already.")
Target = EscalationStep.Target


class EscalationStepForm(forms.Form):
    after = forms.IntegerField(label=_("Wait (minutes)"), min_value=0, max_value=AFTER_MAX_MIN)
    who = forms.ChoiceField(label=_("Notify"), required=False)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["after"].required = False
        self.fields["who"].choices = targets()  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        given = self.cleaned_data
        if given.get("who") and given.get("after") is None and "after" not in self.errors:
            self.add_error("after", _("After how many minutes? The first step: 0."))
        return given

    def step(self) -> EscalationStep | None:
        who = self.cleaned_data.get("who")
        if not who:
            return None
        kind, _colon, of = who.partition(":")
        made = EscalationStep(after_min=self.cleaned_data["after"], target=kind)
        if kind == Target.ROUND_ROBIN:
            made.people = int(of)
        elif kind == Target.ON_CALL:
            made.schedule_id = UUID(of)
        elif kind == Target.GROUP:
            made.group_id = int(of)
        return made


class StepFormSet(forms.BaseFormSet):  # type: ignore[type-arg]
    def clean(self) -> None:
        if any(self.errors):
            return
        after = [step.after_min for step in self.steps()]
        if not after:
            raise ValidationError(_("Choose who is notified first."))
        if after[0] != 0:
            raise ValidationError(_("The first step must be after 0 minutes."))
        if after != sorted(set(after)):
            raise ValidationError(_("Each step must be later than the one before."))

    def shown(self) -> list[forms.Form]:
        """Steps that are filled in, and one more."""
        filled = [n for n, form in enumerate(self.forms) if form.initial or form.has_changed()]
        return self.forms[: max(filled, default=-1) + 2]

    def further(self) -> list[forms.Form]:
        return self.forms[len(self.shown()) :]

    def steps(self) -> list[EscalationStep]:
        return [step for form in self.forms if (step := form.step())]


Steps: type[StepFormSet] = forms.formset_factory(  # type: ignore[assignment]
    EscalationStepForm,
    formset=StepFormSet,
    extra=STEPS_MAX,
    max_num=STEPS_MAX,
    absolute_max=STEPS_MAX,
)


class EscalationPolicyForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = EscalationPolicy
        fields = ["group", "rule"]
        labels = {"group": _("Approvers of the rules"), "rule": _("Only for one rule")}
        help_texts = {
            "group": _("The group that a rule names as its approvers."),
            "rule": _("A policy for one rule takes precedence over that of its approvers."),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = self.fields["group"]
        field.required = False
        field.queryset = Group.objects.order_by("name")  # type: ignore[attr-defined]
        field.empty_label = _("Whoever may decide")  # type: ignore[attr-defined]
        rule = self.fields["rule"]
        rule.required = False
        # Also the chosen one, whose effect may have changed since.
        asking = Q(effect=Effect.ASK) | Q(pk=self.instance.rule_id)
        rule.queryset = Rule.objects.filter(asking)  # type: ignore[attr-defined]
        rule.empty_label = _("all rules with these approvers")  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        group, rule = self.cleaned_data.get("group"), self.cleaned_data.get("rule")
        if group and rule:
            raise ValidationError(_("Choose a group or a rule, not both."))
        others = EscalationPolicy.objects.exclude(pk=self.instance.pk)
        if others.filter(group=group, rule=rule).exists():
            raise ValidationError(KNOWN_ALREADY)
        return self.cleaned_data


def targets() -> list[tuple[str, object]]:
    turns = [(f"{Target.ROUND_ROBIN}:{n}", in_turn(n)) for n in range(1, IN_TURN_MAX + 1)]
    groups = [
        (f"{Target.GROUP}:{one.pk}", _("Group: %(name)s") % {"name": one.name})
        for one in Group.objects.order_by("name")
    ]
    on_call = [
        (f"{Target.ON_CALL}:{one.pk}", _("On call: %(name)s") % {"name": one.name})
        for one in OnCallSchedule.objects.all()
    ]
    return [("", "–"), (Target.EVERYBODY.value, Target.EVERYBODY.label), *turns, *on_call, *groups]


def value_of(step: EscalationStep) -> str:
    """The choice of `who` that the step was made of."""
    of = step.people or step.group_id or step.schedule_id
    return f"{step.target}:{of}" if of else step.target
