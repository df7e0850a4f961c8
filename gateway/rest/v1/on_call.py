"""On-call schedules and their overrides, checked by the console's forms.

They say who is notified of a pending call; who may decide on it is said elsewhere, and only those
can be named here.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import Model, QuerySet
from django.forms import BaseModelForm
from django.shortcuts import get_object_or_404
from django.urls import reverse
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from core.english import gettext as _
from gateway.rest.v1 import forms, plain
from gateway.rest.v1.members import Members, Moment, PatternText, StrictChoice, Text
from gateway.rest.v1.views import ListView, RowView, caller_of
from notifications import schedules
from notifications.models import OnCallOverride, OnCallSchedule
from notifications.policy_section import DAYS
from notifications.schedule_forms import (
    PEOPLE_MAX,
    CalendarScheduleForm,
    OnCallScheduleForm,
    OverrideForm,
    deciding_people,
)

VIEW = ("notifications.view_oncallschedule",)
CHANGE = ("notifications.change_oncallschedule",)
ROTATION = ("handover_day", "handover_at", "starts_on", "people")
ADDRESS = "calendar_url"
# As the forms call them.
FIELDS = {"handover_weekday": "handover_day", "url": ADDRESS}


class OnCallScheduleChange(Members):
    """The people in turn, or the address of a calendar that names them: a schedule stays the one or
    the other."""

    name = Text(max_length=60)
    time_zone = Text(max_length=64, required=False)
    handover_day = StrictChoice(choices=[*DAYS], required=False)
    handover_at = PatternText(r"^([01][0-9]|2[0-3]):[0-5][0-9]\Z", required=False)
    # The first hand-over on or after this day begins the first week.
    starts_on = PatternText(r"^2[01][0-9]{2}-[0-9]{2}-[0-9]{2}\Z", required=False)
    # In their order: each is on call for a week.
    people = serializers.ListField(
        child=PatternText(r"^\S+\Z", max_length=200),
        required=False,
        min_length=1,
        max_length=PEOPLE_MAX,
    )
    # A secret: no answer has it whole.
    calendar_url = Text(max_length=2000, required=False, write_only=True)
    together = {"not": {"required": [ADDRESS], "anyOf": [{"required": [one]} for one in ROTATION]}}

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if ADDRESS in attrs and attrs.keys() & set(ROTATION):
            raise serializers.ValidationError(_("Give either people in turn or a calendar."))
        return attrs


class OnCallScheduleBody(OnCallScheduleChange):
    time_zone = Text(max_length=64, default="UTC")
    together = {
        "oneOf": [
            {"required": [ADDRESS], "not": {"anyOf": [{"required": [one]} for one in ROTATION]}},
            {"required": [*ROTATION], "not": {"required": [ADDRESS]}},
        ]
    }

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        given = super().validate(attrs)
        missing = [] if ADDRESS in given else [one for one in ROTATION if one not in given]
        if missing:
            raise serializers.ValidationError({one: [_("It is required.")] for one in missing})
        return given


class OnCallOverrideBody(Members):
    person = Text(max_length=200)
    begins_at = Moment()
    ends_at = Moment()


class OnCallScheduleAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    name = serializers.CharField()
    time_zone = serializers.CharField()
    # Null and empty where a calendar names the people.
    handover_day = serializers.ChoiceField(choices=[*DAYS], allow_null=True)
    handover_at = serializers.CharField(allow_null=True)
    starts_on = serializers.DateField(allow_null=True)
    people = serializers.ListField(child=serializers.CharField())
    # Its host and its last characters; null without a calendar.
    calendar_url = serializers.CharField(allow_null=True)
    calendar_read_at = serializers.DateTimeField(allow_null=True)
    # Why it cannot be read; empty where it can.
    calendar_error = serializers.CharField(allow_blank=True)
    # At this moment; null: nobody.
    on_call = serializers.CharField(allow_null=True)


class OnCallOverrideAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    person = serializers.CharField()
    begins_at = serializers.DateTimeField()
    ends_at = serializers.DateTimeField()


class OnCallSchedules(ListView):
    """Users who are on call in turn, or as a calendar says."""

    scopes = {"GET": VIEW, "POST": CHANGE}
    bodies = {"POST": OnCallScheduleBody}
    answers = {"GET": OnCallScheduleAnswer, "POST": (201, OnCallScheduleAnswer)}
    rows = staticmethod(lambda request: _schedules())
    key = "name"
    cursor = str
    shown = staticmethod(plain.schedule)

    def post(self, request: Request) -> Response:
        return self.once(request, lambda: self._add(request))

    def _add(self, request: Request) -> Response:
        given = self.body(request)
        zone = given["time_zone"]
        made = OnCallSchedule.for_calendar(zone) if ADDRESS in given else OnCallSchedule()
        _save(request, made, given, has_calendar=ADDRESS in given)
        there = reverse("api:schedule_detail", args=[made.pk])
        return OneOnCallSchedule().answer(_schedule(made.pk), 201, there)


class OneOnCallSchedule(RowView):
    scopes = {"GET": VIEW, "PATCH": CHANGE, "DELETE": CHANGE}
    bodies = {"PATCH": OnCallScheduleChange}
    answers = {"GET": OnCallScheduleAnswer, "PATCH": OnCallScheduleAnswer, "DELETE": (204, None)}
    volatile = ("calendar_read_at", "calendar_error", "on_call")

    def row(self, request: Request, schedule: UUID) -> OnCallSchedule:
        return _schedule(schedule)

    def plain(self, row: OnCallSchedule) -> dict[str, Any]:
        return plain.schedule(row)

    def unseen(self, row: OnCallSchedule) -> dict[str, Any]:
        calendar = getattr(row, "calendar", None)
        return {"sealed": bytes(calendar.sealed_url).hex() if calendar else ""}

    def patch(self, request: Request, schedule: UUID) -> Response:
        return self.changed(request, lambda row: self._change(request, row), schedule=schedule)

    def _change(self, request: Request, row: OnCallSchedule) -> Response:
        given, has_calendar = self.body(request), hasattr(row, "calendar")
        foreign = given.keys() & set(ROTATION if has_calendar else (ADDRESS,))
        if foreign:
            said = _("A schedule has people in turn or a calendar, and keeps which of them it has.")
            raise ValidationError({one: [said] for one in sorted(foreign)})
        if given:
            _save(request, row, {**plain.schedule(row), ADDRESS: "", **given}, has_calendar)
        return self.answer(_schedule(row.pk))

    def delete(self, request: Request, schedule: UUID) -> Response:
        return self.changed(request, lambda row: self._remove(request, row), schedule=schedule)

    def _remove(self, request: Request, row: OnCallSchedule) -> Response:
        schedules.remove(row, by=caller_of(request))
        return Response(None, 204)


class OnCallOverrides(ListView):
    """Users who are on call for a time, the newest first: of several that one counts."""

    scopes = {"GET": VIEW, "POST": CHANGE}
    bodies = {"POST": OnCallOverrideBody}
    answers = {"GET": OnCallOverrideAnswer, "POST": (201, OnCallOverrideAnswer)}
    rows = staticmethod(lambda request, schedule: _overrides(schedule))
    key = "-id"
    cursor = UUID
    shown = staticmethod(plain.override)

    def post(self, request: Request, schedule: UUID) -> Response:
        return self.once(request, lambda: self._add(request, schedule))

    def _add(self, request: Request, schedule: UUID) -> Response:
        shown, given = _schedule(schedule), self.body(request)
        filled = {**given, "person": _person(given["person"])}
        form = OverrideForm(filled, instance=OnCallOverride(schedule=shown))
        forms.check(form)
        made = form.save(commit=False)
        schedules.add_override(made, by=caller_of(request))
        there = reverse("api:override_detail", args=[shown.pk, made.pk])
        row = _overrides(schedule).get(pk=made.pk)
        return OneOnCallOverride().answer(row, 201, there)


class OneOnCallOverride(RowView):
    """It is not changed: a newer one counts."""

    scopes = {"GET": VIEW, "DELETE": CHANGE}
    answers = {"GET": OnCallOverrideAnswer, "DELETE": (204, None)}

    def row(self, request: Request, schedule: UUID, override: UUID) -> OnCallOverride:
        return get_object_or_404(_overrides(schedule), pk=override)

    def plain(self, row: OnCallOverride) -> dict[str, Any]:
        return plain.override(row)

    def delete(self, request: Request, schedule: UUID, override: UUID) -> Response:
        named = {"schedule": schedule, "override": override}
        return self.changed(request, lambda row: self._remove(request, row), **named)

    def _remove(self, request: Request, row: OnCallOverride) -> Response:
        schedules.remove_override(row, by=caller_of(request))
        return Response(None, 204)


def _save(request: Request, row: Model, given: dict[str, Any], has_calendar: bool) -> None:
    """Raises ValidationError and ManagedElsewhere."""
    by = caller_of(request)
    form: BaseModelForm[Any]
    if has_calendar:
        form = CalendarScheduleForm({**given, "url": given[ADDRESS]}, instance=row)
        forms.check(form, FIELDS)
        address = form.cleaned_data["url"]
        schedules.save_with_calendar(form.save(commit=False), by=by, address=address)
        return
    written = {
        "people": "\n".join(given["people"]),
        "handover_weekday": DAYS[given["handover_day"]],
    }
    form = OnCallScheduleForm({**given, **written}, instance=row)
    forms.check(form, FIELDS)
    schedules.save(form.save(commit=False), form.cleaned_data["people"], by=by)


def _person(name: str) -> int:
    """Raises ValidationError."""
    found = deciding_people().filter(username=name).first()
    if found is None:
        said = _("“%(name)s” is no user who may decide on calls.")
        raise ValidationError({"person": [said % {"name": name}]})
    return int(found.pk)


def _schedules() -> QuerySet[OnCallSchedule]:
    rows = OnCallSchedule.objects.select_related("calendar")
    return rows.prefetch_related("members__person", "overrides__person")


def _schedule(pk: UUID) -> OnCallSchedule:
    return get_object_or_404(_schedules(), pk=pk)


def _overrides(schedule: UUID) -> QuerySet[OnCallOverride]:
    shown = get_object_or_404(OnCallSchedule, pk=schedule)
    return shown.overrides.select_related("person")
