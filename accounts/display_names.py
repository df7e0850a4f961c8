"""How people are called beside the name that entries know them by: never like somebody else."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator

from django.db import connection, transaction

from accounts.actors import AccountRefused
from accounts.models import UsedName, User
from accounts.roles import shown_names
from audit.services import SYSTEM, Actor, record
from core.english import gettext as _
from core.look_alikes import skeleton
from core.text import hidden_count, lookalike_count

LENGTH_MAX = 60
# Held by whoever sets one, so that no two take the same at once.
SETTING = 71021
# Nobody's: they would speak for the house.
RESERVED = ("admin", "root", "policy", SYSTEM.name, SYSTEM.kind)


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
    if name and not skeleton(name):
        return _("Use letters.")
    if _is_reserved(name):
        return _("“%s” would pass for a role or for the system.") % name
    # Pages show the username in brackets behind it.
    if any(unicodedata.category(letter) in ("Ps", "Pe") for letter in name):
        return _("Use no brackets.")
    if name and _is_of_another(person, name):
        return _("“%s” is another user's name.") % name
    return ""


def _is_of_another(person: User, name: str) -> bool:
    names = UsedName.objects.exclude(person=person).values_list("name", flat=True)
    look = skeleton(name)
    return look in map(skeleton, names) or any(_shown_like(person, name))


def _is_reserved(name: str) -> bool:
    reserved = {skeleton(one) for one in (*RESERVED, *shown_names())}
    words = {skeleton(word) for word in re.findall(r"[^\W_]+", name)}
    # Words of Chinese stand without a space between them.
    wide = {one for one in reserved if not one.isascii()}
    look = skeleton(name)
    return bool({look, *words} & reserved) or any(one in look for one in wide)


def give_way(person: User, *, actor: Actor) -> None:
    """Takes display names from others that pass for this person's username, which wins."""
    for other in _shown_like(person, person.username):
        names = {"person": other.username, "before": other.first_name, "after": ""}
        record("person.display_name_set", actor=actor, **names)
        other.first_name = ""
        other.save(update_fields=["first_name"])


def _shown_like(person: User, name: str) -> Iterator[User]:
    look = skeleton(name)
    shown = User.objects.exclude(first_name="").exclude(pk=person.pk)
    return (other for other in shown if skeleton(other.first_name) == look)
