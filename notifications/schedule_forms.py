"""Forms of on-call schedules and their overrides."""

from __future__ import annotations

from copy import deepcopy
from datetime import date
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils.translation import gettext_lazy as _

from accounts.forms import TimeZoneForm
from accounts.models import User
from core.outbound import AddressRefused
from core.periods import check_period, period_widgets
from notifications.guarded_requests import check_url
from notifications.models import OnCallOverride, OnCallSchedule
from policies.thresholds import people

PEOPLE_MAX = 50
YEAR_MAX = 2199


class OnCallScheduleForm(forms.ModelForm):  # type: ignore[type-arg]
    time_zone = deepcopy(TimeZoneForm.base_fields["time_zone"])
    people = forms.CharField(
        label=_("People in order"),
        widget=forms.Textarea({"rows": 5}),
        help_text=_("One user name a line. Each is on call for a week, then the next one is."),
    )

    class Meta:
        model = OnCallSchedule
        fields = ["name", "time_zone", "handover_weekday", "handover_at", "starts_on"]
        widgets = {
            "handover_at": forms.TimeInput({"type": "time"}, "%H:%M"),
            "starts_on": forms.DateInput({"type": "date"}, "%Y-%m-%d"),
        }
        help_texts = {
            "starts_on": _("The first hand-over on or after this day begins the first week.")
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["time_zone"].help_text = _("Hand-overs keep this local time all year.")

    def clean_starts_on(self) -> date:
        """Far from both ends of the calendar, beyond which there is no hand-over."""
        day: date = self.cleaned_data["starts_on"]
        if not 2000 <= day.year <= YEAR_MAX:
            raise ValidationError(_("Choose a day from 2000 to %(year)d.") % {"year": YEAR_MAX})
        return day

    def clean_people(self) -> list[User]:
        names = [line.strip() for line in self.cleaned_data["people"].splitlines() if line.strip()]
        if not 1 <= len(names) <= PEOPLE_MAX:
            raise ValidationError(_("Name 1 to %(n)d people.") % {"n": PEOPLE_MAX})
        known = {one.username: one for one in deciding_people()}
        if unknown := [name for name in names if name not in known]:
            said = _("“%(name)s” is no user who may decide on calls.")
            raise ValidationError(said % {"name": unknown[0]})
        return [known[name] for name in names]


class CalendarScheduleForm(forms.ModelForm):  # type: ignore[type-arg]
    """The address is a secret: it is in `cleaned_data` once valid, and in no page again."""

    time_zone = deepcopy(TimeZoneForm.base_fields["time_zone"])
    url = forms.CharField(
        label=_("Calendar URL"),
        max_length=2000,
        widget=forms.URLInput({"autocomplete": "off"}),
        help_text=_(
            "The address of an iCalendar file (.ics), https:// only. Private networks are rejected "
            "unless the host allows them. Afterwards only its host and its last 4 characters are "
            "shown."
        ),
    )

    class Meta:
        model = OnCallSchedule
        fields = ["name", "time_zone"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["time_zone"].help_text = _("For days and times that name no time zone.")
        if not self.instance._state.adding:
            self.fields["url"].required = False
            stays = _("Left empty, it stays %s.") % self.instance.calendar.url
            self.fields["url"].help_text = stays

    def clean_url(self) -> str:
        given = str(self.cleaned_data["url"])
        if not given:
            return ""
        try:
            check_url(given)
        except AddressRefused as error:
            # The sentence may have the whole of it.
            raise ValidationError(str(error).replace(given, "…")) from None
        return given

    def clean(self) -> dict[str, Any]:
        # A page with errors does not have it either.
        self.data = self.data.copy()  # type: ignore[attr-defined]
        self.data["url"] = ""  # type: ignore[index]
        return self.cleaned_data


class OverrideForm(forms.ModelForm):  # type: ignore[type-arg]
    class Meta:
        model = OnCallOverride
        fields = ["person", "begins_at", "ends_at"]
        labels = {"person": _("On call"), "begins_at": _("From"), "ends_at": _("Until")}
        widgets = period_widgets()

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        person = self.fields["person"]
        assert isinstance(person, forms.ModelChoiceField)
        person.queryset = deciding_people()
        person.empty_label = _("Choose …")

    def clean(self) -> dict[str, Any]:
        check_period(self.cleaned_data)
        return self.cleaned_data


def deciding_people() -> Any:
    return User.objects.filter(pk__in=people("")).order_by("username")
