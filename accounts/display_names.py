"""How people are called beside the name that entries know them by: never like somebody else."""

from __future__ import annotations

import unicodedata

from django.db import connection, transaction

from accounts.actors import AccountRefused
from accounts.models import UsedName, User
from audit.services import record
from core.english import gettext as _
from core.text import hidden_count, lookalike_count

LENGTH_MAX = 60
# Held by whoever sets one, so that no two take the same at once.
SETTING = 71021


@transaction.atomic
def set_display_name(person: User, written: str) -> None:
    """Empty: none. Raises AccountRefused."""
    name = " ".join(unicodedata.normalize("NFC", written).split())
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [SETTING])
    if why := why_not(person, name):
        raise AccountRefused(why)
    if name == person.first_name:
        return
    names = {"person": person.username, "before": person.first_name, "after": name}
    record("person.display_name_set", actor=person.actor, **names)
    person.first_name = name
    person.save(update_fields=["first_name"])


def why_not(person: User, name: str) -> str:
    """Why this person may not be called so, as a sentence; empty if they may."""
    if len(name) > LENGTH_MAX:
        return _("Use at most %d characters.") % LENGTH_MAX
    if hidden_count(name):
        return _("That name has characters that cannot be seen.")
    # Amid Latin letters, as it stands on pages: a word of look-alikes alone passes for one of them.
    if lookalike_count(f"a {name}"):
        return _("“%s” has letters that look like those of another alphabet.") % name
    if name and _is_of_another(person, name):
        return _("“%s” is somebody else's name.") % name
    return ""


def _is_of_another(person: User, name: str) -> bool:
    names = UsedName.objects.filter(name__iexact=name).exclude(person=person)
    called = User.objects.filter(first_name__iexact=name).exclude(pk=person.pk)
    return names.exists() or called.exists()
