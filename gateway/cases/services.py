"""Verbs on saved cases. Each writes its entry in the same transaction."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import ValidationError
from django.db import transaction

from accounts.models import User
from audit.services import record
from core.english import gettext as _
from core.errors import CountersignError
from gateway.models import SavedCase
from registry.models import Tool
from registry.schemas.secret_arguments import find_secrets

# Who saves, changes, runs and schedules cases.
PERMISSION = "registry.operate_server"
CASES_MAX = 50
ARGUMENTS_MAX = 64 * 1024


class CaseRefused(CountersignError):
    """The case cannot be kept as it is; says why, and what would be right."""


@transaction.atomic
def add_case(tool: Tool, arguments: bytes, parsed: Any, *, schema: Any, by: User) -> SavedCase:
    """A case that only expects a result, under a name that nobody has given yet."""
    # Two who add at once get two names.
    Tool.objects.select_for_update().get(pk=tool.pk)
    names = set(tool.cases.values_list("name", flat=True))
    if len(names) >= CASES_MAX:
        raise CaseRefused(_("A tool has at most %d cases: delete one first.") % CASES_MAX)
    check_arguments(arguments, parsed, schema)
    name = next(name for n in range(1, CASES_MAX + 2) if (name := f"Case {n}") not in names)
    case = SavedCase.objects.create(tool=tool, name=name, arguments=arguments, written_by=by)
    _record("saved_case.added", case, by)
    return case


def check_arguments(arguments: bytes, parsed: Any, schema: Any) -> None:
    """Raises CaseRefused."""
    if len(arguments) > ARGUMENTS_MAX:
        said = _("A case keeps at most %d bytes of arguments.")
        raise CaseRefused(said % ARGUMENTS_MAX)
    if found := find_secrets(schema, parsed):
        said = _(
            "A case keeps no secrets, and these arguments are marked or look like one: %s. "
            "Leave them out, or let a toolset fix them."
        )
        raise CaseRefused(said % ", ".join(found))


@transaction.atomic
def change_case(case: SavedCase, *, by: User) -> None:
    """Saves the fields of `case`, which its form has checked. Raises CaseRefused."""
    case.written_by = by
    try:
        case.validate_constraints()
    except ValidationError as error:
        raise CaseRefused(" ".join(error.messages)) from error
    case.save()
    _record("saved_case.changed", case, by)


@transaction.atomic
def delete_case(case: SavedCase, *, by: User) -> None:
    _record("saved_case.deleted", case, by)
    case.delete()


def _record(action: str, case: SavedCase, by: User) -> None:
    tool = case.tool
    record(action, actor=by.actor, server=tool.server.slug, tool=tool.exposed_name, case=case.name)
