"""On-call schedules in a policy file: rotations that it names.

Overrides stay in the console, and so do schedules from a calendar, whose address is a secret.
"""

from __future__ import annotations

from collections.abc import Collection

from django.core.exceptions import ValidationError

from audit.services import Actor
from core.english import gettext as _
from notifications import schedules
from notifications.models import OnCallMember, OnCallSchedule
from notifications.schedule_forms import PEOPLE_MAX, OnCallScheduleForm
from notifications.schedule_models import Weekday
from policies.as_code import schemas
from policies.as_code.schemas import Schema
from policies.as_code.sections import BadMember, Plain, Section
from registry.managed import SCHEDULES

DAYS = {day.name.lower(): day.value for day in Weekday}
DAY_NAMES = {value: name for name, value in DAYS.items()}
# As the form calls them, where a file does not.
_MEMBERS = {"handover_weekday": "handover_day"}


def _read(names: Collection[str] | None) -> dict[str, Plain]:
    rows = OnCallSchedule.objects.filter(calendar=None).prefetch_related("members__person")
    if names is not None:
        rows = rows.filter(name__in=list(names))
    return {row.name: _plain(row) for row in rows}


def _plain(row: OnCallSchedule) -> Plain:
    return {
        "time_zone": row.time_zone,
        "handover_day": DAY_NAMES[row.handover_weekday],
        "handover_at": f"{row.handover_at:%H:%M}",
        "starts_on": row.starts_on.isoformat(),
        "people": [one.person.username for one in row.members.all()],
    }


def _normal(name: str, given: Plain, now: Plain | None) -> Plain:
    filled = {**(now or {}), **given}
    form = _filled(name, filled)
    if not form.is_valid():
        raise ValidationError(
            {
                "__all__" if member == "name" else _MEMBERS.get(member, member): messages
                for member, messages in form.errors.items()
            }
        )
    return filled


def _filled(name: str, plain: Plain) -> OnCallScheduleForm:
    found = OnCallSchedule.objects.filter(name=name).first()
    if hasattr(found, "calendar"):
        raise BadMember(_("Its people come from a calendar: change it in the console."))
    written = {**plain, "name": name, "people": "\n".join(plain.get("people", ()))}
    written["handover_weekday"] = DAYS.get(plain.get("handover_day", ""), "")
    return OnCallScheduleForm(written, instance=found)


def _save(name: str, plain: Plain, by: Actor) -> None:
    form = _filled(name, plain)
    if not form.is_valid():
        raise ValidationError(form.errors.as_data())
    schedules.save(form.save(commit=False), form.cleaned_data["people"], by=by)


def _schema() -> Schema:
    person = schemas.text(200, least=1)
    in_turn = "User names, in their order: each is on call for a week."
    return schemas.members(
        time_zone=schemas.text(64, "As Europe/Berlin.", least=1),
        handover_day=schemas.one_of([*DAYS]),
        handover_at={"type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$"},
        starts_on={
            "type": "string",
            "pattern": "^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
            "description": "The first hand-over on or after this day begins the first week.",
        },
        people={
            "type": "array",
            "items": person,
            "minItems": 1,
            "maxItems": PEOPLE_MAX,
            "description": in_turn,
        },
    )


CHANGE = ("notifications.change_oncallschedule",)
SCHEDULE_SECTION = Section(
    SCHEDULES,
    False,
    _read,
    _normal,
    _save,
    lambda plain: plain,
    _schema,
    {"added": CHANGE, "changed": CHANGE},
    locked=(OnCallSchedule, OnCallMember),
)
