"""Objects that a policy file manages are changed by applying the file, and by nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import OuterRef, Subquery

from accounts.actors import By, acting
from audit.services import Actor
from core.english import gettext as _
from core.errors import CountersignError
from registry.models import ManagedPart

RULES, LIMITS, TOOLSETS, SERVERS, TOOLS = "rules", "limits", "toolsets", "servers", "tools"
SCHEDULES = "schedules"


class ManagedElsewhere(CountersignError):
    """A policy file manages it; says where that is."""


@dataclass(frozen=True, slots=True)
class PolicyApplier(Actor):
    """The actor that applies a policy file, for whom nothing is read-only."""

    @classmethod
    def of(cls, actor: Actor) -> PolicyApplier:
        return cls(actor.kind, actor.id, actor.name)


class ManagedName(NamedTuple):
    section: str
    name: str = ""


def source_of(section: str, name: str = "") -> str:
    """Where the file is that manages it; empty if none does."""
    found = ManagedPart.objects.filter(section=section, name=name)
    return found.values_list("source", flat=True).first() or ""


def source_of_each(section: str, name_field: str) -> Subquery:
    """The same for each row of a query, by its field; NULL if none does."""
    found = ManagedPart.objects.filter(section=section, name=OuterRef(name_field))
    return Subquery(found.values("source")[:1])


def check(section: str, name: str = "", *, by: By) -> None:
    """Raises ManagedElsewhere unless `by` applies the file."""
    if isinstance(acting(by), PolicyApplier):
        return
    if source := source_of(section, name):
        said = _("A policy file manages this: %(source)s. Change it there, and apply the file.")
        raise ManagedElsewhere(said % {"source": source})


def manage(parts: Iterable[ManagedName], source: str) -> None:
    """These, and nothing else, are managed from now on; nothing without a source."""
    ManagedPart.objects.all().delete()
    if source:
        ManagedPart.objects.bulk_create(
            ManagedPart(section=section, name=name, source=source) for section, name in parts
        )
