"""The verb by which an operator says how a toolset shows one of its tools."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import connection as database
from django.db import transaction
from django.db.models import Q, QuerySet

from accounts.actors import By, acting
from audit.services import record
from core.english import gettext as _
from core.errors import CountersignError
from registry import names
from registry.models import NAME, ShownTool, Tool, Toolset
from registry.publishing import agent_names, tool_override
from registry.publishing.published_tools import ParsedDefinition
from registry.schemas import compiled

MAX_DESCRIPTION = 4_000
MAX_TITLE = 200
MAX_PINNED = 16 * 1024


class OverrideRefused(CountersignError):
    """It cannot be shown so; `field` says which word of it is wrong."""

    def __init__(self, field: str, sentence: str) -> None:
        self.field = field
        super().__init__(sentence)


def tools_of(toolset: Toolset) -> QuerySet[Tool]:
    """Without what stands for a server's other methods, which agents see by no name."""
    mine = Q(server__in=toolset.servers.all()) | Q(pk__in=toolset.tools.values("pk"))
    return Tool.objects.filter(mine).without_methods()


def offered_of(toolset: Toolset) -> QuerySet[Tool]:
    """The tools that agents of the toolset get: published ones of enabled servers."""
    published = tools_of(toolset).filter(state=Tool.State.PUBLISHED, server__enabled=True)
    return published.order_by("exposed_name")


@dataclass(frozen=True, slots=True)
class AgentNames:
    """The agents' names of a toolset's tools, by tool id; "" if several have that name."""

    names: Mapping[int, str]
    # Tools that have another name because it would not be theirs alone.
    doubled: frozenset[int]


def names_of(toolset: Toolset) -> AgentNames:
    have = dict(offered_of(toolset).values_list("pk", "exposed_name"))
    shown = toolset.shown_tools.exclude(name="").filter(tool__in=have)
    told = have, dict(shown.values_list("tool", "name")), toolset.separator
    listed = agent_names.names(*told)
    return AgentNames(
        {pk: listed.get(pk, "") for pk in have}, frozenset(agent_names.doubled(*told))
    )


@transaction.atomic
def show(
    toolset: Toolset,
    tool: Tool,
    *,
    by: By,
    name: str = "",
    title: str = "",
    description: str = "",
    pinned: str = "",
) -> None:
    """All of it anew; what is empty is as its server has it. Raises OverrideRefused."""
    _one_at_a_time()
    asked = {"name": name, "title": title, "description": description, "pinned": pinned.strip()}
    _check_lengths(asked)
    if name:
        _check_name(toolset, tool, name)
    _check_pinned(tool, asked["pinned"])
    known = ShownTool.objects.filter(toolset=toolset, tool=tool)
    before = known.values(*asked).first() or dict.fromkeys(asked, "")
    if asked == before:
        return
    if any(asked.values()):
        ShownTool.objects.update_or_create(toolset=toolset, tool=tool, defaults=asked)
    else:
        known.delete()
    record(
        "toolset.tool_shown",
        actor=acting(by),
        toolset=toolset.slug,
        server=tool.server.slug,
        tool=tool.exposed_name,
        shown={field: said for field, said in asked.items() if said},
    )


def _check_lengths(asked: dict[str, str]) -> None:
    most = {"title": MAX_TITLE, "description": MAX_DESCRIPTION, "pinned": MAX_PINNED}
    for field, length in most.items():
        if len(asked[field]) > length:
            raise OverrideRefused(field, _("At most %d characters.") % length)
        if "\0" in asked[field]:
            raise OverrideRefused(field, _("It holds a character that cannot be kept (NUL)."))


def _check_name(toolset: Toolset, tool: Tool, name: str) -> None:
    if NAME.regex.fullmatch(name) is None:  # type: ignore[union-attr]
        raise OverrideRefused("name", str(NAME.message))
    if name.casefold().replace("_", ".").replace("-", ".").split(".")[0] == names.RESERVED:
        raise OverrideRefused("name", _("Names that begin with “%s” are ours.") % names.RESERVED)
    if other := names.Names(_others(toolset, tool)).like(name):
        said = _("It is taken by, or could pass for, “%s” of this toolset.")
        raise OverrideRefused("name", said % other)


def _others(toolset: Toolset, tool: Tool) -> list[str]:
    """The agents' names of the other tools, at this address and at that of the tool's server."""
    others = tools_of(toolset).exclude(pk=tool.pk)
    beside = others.filter(server=tool.server_id)
    given = toolset.shown_tools.exclude(tool=tool).exclude(name="")
    return [
        *others.values_list("exposed_name", flat=True),
        *beside.values_list("name", flat=True),
        *given.values_list("name", flat=True),
    ]


def _check_pinned(tool: Tool, pinned: str) -> None:
    try:
        fixed = tool_override.pins(pinned)
    except ValueError as error:
        said = (
            str(error)
            if isinstance(error, tool_override.Ambiguous)
            else _("Write one JSON object.")
        )
        raise OverrideRefused("pinned", said) from error
    if not fixed:
        return
    definition = tool.published or tool.latest
    schema: Any = definition.content.get("inputSchema") if definition else None
    if compiled.problem(schema):
        raise OverrideRefused("pinned", _("The tool's schema cannot be checked against."))
    properties = schema.get("properties")
    known = properties if isinstance(properties, dict) else {}
    for name in fixed:
        if name not in known:
            said = _("“%(name)s” is no argument of this tool; there are: %(known)s.")
            told = {"name": name[:60], "known": ", ".join(known) or _("none")}
            raise OverrideRefused("pinned", said % told)
    _check_values(schema, {name: pin.value for name, pin in fixed.items()})


def _check_values(schema: dict[str, Any], values: dict[str, Any]) -> None:
    # What else is required, agents say.
    lax = {key: part for key, part in schema.items() if key != "required"}
    if found := ParsedDefinition.of(lax).violations(values):
        raise OverrideRefused("pinned", str(found[0]))


def _one_at_a_time() -> None:
    """Two tools renamed at once must not take names that pass for each other."""
    with database.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(hashtext('names of servers'))")
