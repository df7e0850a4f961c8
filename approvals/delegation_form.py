"""The form by which a person names a delegate."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django import forms
from django.contrib.auth.models import Group
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from accounts.roles import Role
from approvals.models import Delegation
from core.periods import BEGIN, check_period, period_widgets
from policies.thresholds import people
from registry.models import Server

# To fill in the form.
GRACE = timedelta(minutes=10)


class DelegationForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = Delegation
        fields = ["delegate", "group", "server", "begins_at", "ends_at", "asks_both"]
        labels = {
            "delegate": _("Delegate"),
            "group": _("Only for rules that ask"),
            "server": _("Only for calls of"),
            "begins_at": _("From"),
            "ends_at": _("Until"),
            "asks_both": _("Notify me too"),
        }
        help_texts = {
            "delegate": _("Only users who may already decide: a delegation grants no permission."),
        }
        widgets = period_widgets()

    def __init__(self, person: User, *args: Any, **kwargs: Any) -> None:
        kwargs["instance"] = Delegation(delegator=person)
        super().__init__(*args, **kwargs)
        deciding = User.objects.filter(pk__in=people("")).exclude(pk=person.pk)
        self._offer("delegate", deciding.order_by("username"), "–")
        groups = Group.objects.filter(user=person).exclude(name__in=list(Role))
        self._offer("group", groups.order_by("name"), _("Any group"))
        self._offer("server", Server.objects.order_by("slug"), _("Any server"))

    def _offer(self, name: str, choices: Any, empty: object) -> None:
        field: Any = self.fields[name]
        field.queryset, field.empty_label = choices, empty

    def clean(self) -> dict[str, Any]:
        check_period(self.cleaned_data)
        begins = self.cleaned_data.get(BEGIN)
        if begins and begins < timezone.now() - GRACE:
            self.add_error(BEGIN, _("It must not begin in the past."))
        return self.cleaned_data
