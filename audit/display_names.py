"""Display names of the people in entries, which know them by their usernames."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.contrib.auth import get_user_model

from audit.models import Entry


def shown_names(usernames: Iterable[str]) -> dict[str, str]:
    """By username, of those who have a display name now: it and the username."""
    people: Any = get_user_model()
    found = people.objects.filter(username__in=set(usernames)).exclude(first_name="")
    return {person.username: person.shown_name for person in found}


def of_entries(entries: Iterable[Entry]) -> dict[str, str]:
    return shown_names(name for entry in entries for name in _people(entry))


def _people(entry: Entry) -> Iterable[str]:
    if entry.actor_kind == Entry.ActorKind.PERSON:
        yield entry.actor
    if entry.person:
        yield entry.person
    # Whose standing approval let it run.
    if granted_by := entry.details.get("granted_by"):
        yield granted_by
