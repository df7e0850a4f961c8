"""On-call schedules: who is on call now and next, and their changes by administrators."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts.forms import zones
from accounts.http import ConsoleRequest
from accounts.models import User
from core.http import page
from core.messages.localizing import localized
from notifications import calendars
from notifications import schedules as services
from notifications.events import Event
from notifications.models import OnCallCalendar, OnCallOverride, OnCallSchedule
from notifications.on_call import OnCallPlan
from notifications.recipients import Audience
from notifications.schedule_forms import (
    CalendarScheduleForm,
    OnCallScheduleForm,
    OverrideForm,
)
from policies.thresholds import DECIDE
from registry import managed

ROTATION_WEEKS = 8
CALENDAR_WEEKS = 2


@page("notifications.view_oncallschedule")
def schedules(request: HttpRequest) -> HttpResponse:
    context = {"section": "notifications", "rows": [_row(one) for one in _all()]}
    return render(request, "notifications/schedules.html", context)


@page("notifications.view_oncallschedule")
def schedule(request: HttpRequest, pk: UUID) -> HttpResponse:
    return _show(request, get_object_or_404(_all(), pk=pk), OverrideForm())


@page("notifications.change_oncallschedule", "GET", "HEAD", "POST")
def add(request: ConsoleRequest) -> HttpResponse:
    return _form(request, OnCallSchedule(time_zone=request.user.time_zone or "UTC"))


@page("notifications.change_oncallschedule", "GET", "HEAD", "POST")
def add_from_calendar(request: ConsoleRequest) -> HttpResponse:
    made = OnCallSchedule.for_calendar(request.user.time_zone or "UTC")
    return _calendar_form(request, made)


@page("notifications.change_oncallschedule", "GET", "HEAD", "POST")
def edit(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    edited = get_object_or_404(OnCallSchedule.objects.select_related("calendar"), pk=pk)
    return (_calendar_form if hasattr(edited, "calendar") else _form)(request, edited)


@page("notifications.change_oncallschedule", "POST")
def read_calendar(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    found = get_object_or_404(OnCallCalendar.objects.select_related("schedule"), pk=pk)
    _read(request, found)
    return redirect("notifications:schedule", pk)


@page("notifications.change_oncallschedule", "GET", "HEAD", "POST")
def remove(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    gone = get_object_or_404(_all(), pk=pk)
    if request.method != "POST":
        overrides = gone.overrides.filter(ends_at__gt=timezone.now()).count()
        context = {"section": "notifications", "overrides": overrides, **_row(gone)}
        return render(request, "notifications/schedule_remove.html", context)
    try:
        services.remove(gone, by=request.user)
    except services.ScheduleInUse as error:
        messages.error(request, str(error))
        return redirect("notifications:schedule", pk)
    messages.success(request, _("“%s” is removed.") % gone.name)
    return redirect("notifications:schedules")


@page("notifications.change_oncallschedule", "POST")
def add_override(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    shown = get_object_or_404(_all(), pk=pk)
    with timezone.override(shown.time_zone):
        form = OverrideForm(request.POST, instance=OnCallOverride(schedule=shown))
        if not form.is_valid():
            return _show(request, shown, form)
    services.add_override(form.save(commit=False), by=request.user)
    messages.success(request, _("The override is added."))
    return redirect("notifications:schedule", pk)


@page("notifications.change_oncallschedule", "POST")
def remove_override(request: ConsoleRequest, pk: UUID) -> HttpResponse:
    gone = get_object_or_404(OnCallOverride.objects.select_related("schedule", "person"), pk=pk)
    services.remove_override(gone, by=request.user)
    messages.success(request, _("The override is removed."))
    return redirect("notifications:schedule", gone.schedule_id)


def _all() -> QuerySet[OnCallSchedule]:
    found = OnCallSchedule.objects.select_related("calendar")
    return found.prefetch_related("members__person", "overrides__person")


def _row(shown: OnCallSchedule) -> dict[str, object]:
    now, calendar = timezone.now(), getattr(shown, "calendar", None)
    weeks = CALENDAR_WEEKS if calendar else ROTATION_WEEKS
    until = now + timedelta(weeks=weeks)
    shifts = OnCallPlan.of(shown).shifts(now, until)
    names = User.objects.in_bulk([one.person for one in shifts if one.person])
    named = [(one, names.get(one.person) if one.person else None) for one in shifts]
    return {
        "schedule": shown,
        "managed_by": managed.source_of(managed.SCHEDULES, shown.name),
        "calendar": calendar,
        "weeks": weeks,
        "until": until,
        "zone": ZoneInfo(shown.time_zone),
        "now": named[0],
        "next": named[1:2],
        "shifts": named,
        "unreachable": names.keys() - _reachable(),
    }


def _reachable() -> set[int]:
    """Ids of people who may decide and can be notified. For others the group is notified."""
    people = Audience().people(Event.APPROVAL_NEEDED)
    return {one.pk for one in people if one.has_perm(DECIDE)}


def _show(request: HttpRequest, shown: OnCallSchedule, form: OverrideForm) -> HttpResponse:
    overrides = shown.overrides.filter(ends_at__gt=timezone.now()).select_related("person")
    context = {"section": "notifications", "form": form, "overrides": overrides, **_row(shown)}
    with timezone.override(shown.time_zone):
        return render(request, "notifications/schedule.html", context)


def _form(request: ConsoleRequest, edited: OnCallSchedule) -> HttpResponse:
    people = "" if edited._state.adding else _names(edited)
    form = OnCallScheduleForm(request.POST or None, instance=edited, initial={"people": people})
    if request.method == "POST" and form.is_valid():
        services.save(form.save(commit=False), form.cleaned_data["people"], by=request.user)
        messages.success(request, _("“%s” is saved.") % edited.name)
        return redirect("notifications:schedule", edited.pk)
    context = {
        "section": "notifications",
        "form": form,
        "schedule": None if edited._state.adding else edited,
        "zones": zones(),
    }
    return render(request, "notifications/schedule_form.html", context)


def _calendar_form(request: ConsoleRequest, edited: OnCallSchedule) -> HttpResponse:
    form = CalendarScheduleForm(request.POST or None, instance=edited)
    is_new = edited._state.adding
    if request.method == "POST" and form.is_valid():
        calendar = services.save_with_calendar(
            form.save(commit=False), by=request.user, address=form.cleaned_data["url"]
        )
        messages.success(request, _("“%s” is saved.") % edited.name)
        _read(request, calendar)
        return redirect("notifications:schedule", edited.pk)
    context = {
        "section": "notifications",
        "form": form,
        "schedule": None if is_new else edited,
        "from_calendar": True,
        "zones": zones(),
    }
    return render(request, "notifications/schedule_form.html", context)


def _read(request: HttpRequest, calendar: OnCallCalendar) -> None:
    calendars.read_now(calendar)
    calendar.refresh_from_db()
    if calendar.failing_since:
        messages.warning(request, _("The calendar cannot be read: %s") % localized(calendar.error))


def _names(schedule: OnCallSchedule) -> str:
    members = schedule.members.select_related("person")
    return "\n".join(one.person.username for one in members)
