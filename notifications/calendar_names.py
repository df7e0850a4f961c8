"""Active users whom events of a calendar name: by their user name, or by an address that they
confirmed. A name that several users have is nobody's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from django.db.models.functions import Lower

from accounts.models import User
from notifications.models import MailRecipient
from notifications.schedule_models import CalendarShift


@dataclass(frozen=True)
class PeopleByName:
    # By names and addresses in lower case.
    ids: Mapping[str, int]

    @classmethod
    def of(cls, shifts: Iterable[CalendarShift]) -> Self:
        wanted = {name for one in shifts for name in one.names}
        found: dict[str, set[int]] = {}
        for name, pk in [*_by_user_name(wanted), *_by_address(wanted)]:
            found.setdefault(name, set()).add(pk)
        return cls({name: one.pop() for name, one in found.items() if len(one) == 1})

    def first(self, names: Iterable[str]) -> int | None:
        """The user of the first of these names that is a user's."""
        return next((self.ids[name] for name in names if name in self.ids), None)


def _by_user_name(wanted: set[str]) -> Iterable[tuple[str, int]]:
    known = User.objects.filter(is_active=True).annotate(name=Lower("username"))
    return known.filter(name__in=wanted).values_list("name", "pk")


def _by_address(wanted: set[str]) -> Iterable[tuple[str, int]]:
    known = MailRecipient.objects.reachable().annotate(name=Lower("address"))
    return known.filter(name__in=wanted).values_list("name", "person_id")
