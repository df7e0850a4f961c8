"""The form of break-glass: only people who can be reached are offered as the second."""

from __future__ import annotations

from typing import Any

from django import forms
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from accounts.models import User
from approvals.break_glass import REASON_MAX, REASON_MIN, seconds
from approvals.models import Approval
from notifications.models import MailRecipient, PushDevice
from notifications.subscriptions import is_allowed


class BreakGlassForm(forms.Form):
    second = forms.ModelChoiceField(
        User.objects.none(),
        label=_("Who is notified at once"),
        help_text=_("They decide on calls, and have a confirmed address or a device."),
    )
    reason = forms.CharField(
        label=_("Reason"),
        min_length=REASON_MIN,
        max_length=REASON_MAX,
        widget=forms.Textarea({"rows": 3}),
        help_text=_("Agents, reviewers and the audit log have it."),
    )

    def __init__(self, approval: Approval, person: User, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        reached = Q(pk__in=MailRecipient.objects.reachable().values("person"))
        devices = PushDevice.objects.reachable().values_list("person", "host")
        reached |= Q(pk__in={pk for pk, host in devices if is_allowed(host)})
        found = seconds(approval, person).filter(reached)
        self.fields["second"].queryset = found  # type: ignore[attr-defined]

    @property
    def has_second(self) -> bool:
        return bool(self.fields["second"].queryset.exists())  # type: ignore[attr-defined]
