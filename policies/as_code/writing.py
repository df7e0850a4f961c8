"""Applies the changes of a policy file within the caller's transaction."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from django.db import connection, transaction
from django.db.models import Model

from audit.services import Actor
from policies.as_code.differences import PolicyChange, changes, parts_of
from policies.as_code.documents import Objects
from policies.as_code.sections import Section, every_section
from policies.models import Limit, Rule
from registry.managed import PolicyApplier, manage
from registry.models import ManagedPart, Server, Tool, Toolset

# One who writes to any of them waits for the other; who reads does not. Always in this order,
# which is that of the services: a rule before its agents.
_LOCKED: tuple[type[Model], ...] = (
    ManagedPart,
    Rule,
    Rule.agents.through,
    Rule.owner_groups.through,
    Limit,
    Limit.agents.through,
    Limit.owner_groups.through,
    Toolset,
    Toolset.servers.through,
    Toolset.tools.through,
    Toolset.agents.through,
)


def lock(wanted: Objects) -> None:
    """Keeps others from changing what the file is about until the transaction ends."""
    beside = [model for one in every_section() if one.key in wanted for model in one.locked]
    tables = ", ".join(f'"{model._meta.db_table}"' for model in (*_LOCKED, *beside))
    with connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLE {tables} IN SHARE ROW EXCLUSIVE MODE")
    servers, tools = wanted.get("servers", {}), wanted.get("tools", {})
    list(Server.objects.filter(slug__in=servers).order_by("pk").select_for_update().values("pk"))
    list(
        Tool.objects.filter(exposed_name__in=tools).order_by("pk").select_for_update().values("pk")
    )


def write(present: Objects, wanted: Objects, *, by: Actor) -> list[PolicyChange]:
    """Makes `present` into `wanted`, each change with its entry."""
    assert transaction.get_connection().in_atomic_block
    applier = PolicyApplier.of(by)
    found = changes(present, wanted)
    for section in every_section():
        mine = [one for one in found if one.section == section.key]
        _write(section, mine, wanted.get(section.key, {}), applier)
    return found


def _write(
    section: Section, found: Iterable[PolicyChange], order: Collection[str], by: Actor
) -> None:
    has_order = False
    for change in found:
        has_order = has_order or change.kind != "changed"
        if change.kind == "removed":
            assert section.remove is not None
            section.remove(change.name, by)
        elif change.after is not None and change.kind != "moved":
            section.save(change.name, change.after, by)
    if section.order is not None and has_order:
        section.order(list(order), by)


def manage_parts(wanted: Objects, source: str) -> None:
    """Makes what the file names read-only elsewhere from now on; without a source, nothing."""
    manage(parts_of(wanted) if source else [], source)
