"""Periods in forms: from one moment until another, by the clock of whoever fills them in."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.core.exceptions import ValidationError
from django.utils import timezone
from django.utils.translation import gettext as _

BEGIN, END = "begins_at", "ends_at"
MAX = timedelta(days=366)


def period_widgets() -> dict[str, forms.Widget]:
    return {
        name: forms.DateTimeInput({"type": "datetime-local"}, "%Y-%m-%dT%H:%M")
        for name in (BEGIN, END)
    }


def check_period(given: Mapping[str, Any]) -> None:
    """Raises ValidationError. A moment that is missing was complained of already."""
    begins: datetime | None = given.get(BEGIN)
    ends: datetime | None = given.get(END)
    if not begins or not ends:
        return
    if ends <= begins:
        raise ValidationError(_("It must end after it begins."))
    now = timezone.now()
    if ends <= now or ends - begins > MAX:
        raise ValidationError(_("It must end in the future, and last a year at most."))
    # The last hours of the calendar are in year 10000 elsewhere, which no page could read again.
    if begins - now > MAX:
        raise ValidationError(_("It must begin within a year."))
