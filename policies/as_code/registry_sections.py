"""Toolsets, settings of servers and labels of tools in a policy file: those that it names."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from django.db.models import Q, QuerySet

from accounts.models import Agent
from audit.services import Actor
from core.english import gettext as _
from inspection.results import rules_of, stored_rules
from policies.as_code import schemas
from policies.as_code.schemas import HINTED
from policies.as_code.sections import BadMember, Plain, Section, named_rows
from registry import result_rules, services
from registry.labels import Label, LabelChoice
from registry.managed import SERVERS, TOOLS, TOOLSETS
from registry.models import OwnTool, Server, Tool, Toolset

LISTS = ("servers", "tools", "agents")


def _named(rows: QuerySet[Any], key: str, names: Collection[str] | None) -> QuerySet[Any]:
    return rows if names is None else rows.filter(**{f"{key}__in": list(names)})


# Toolsets.


def _read_toolsets(names: Collection[str] | None) -> dict[str, Plain]:
    rows = Toolset.objects.order_by("slug").prefetch_related(*LISTS, "tools__server")
    return {row.slug: _toolset(row) for row in _named(rows, "slug", names)}


def _toolset(row: Toolset) -> Plain:
    return {
        "title": row.title,
        "servers": sorted(one.slug for one in row.servers.all()),
        "tools": sorted(
            one.exposed_name for one in row.tools.all() if one.server.deleted_at is None
        ),
        "agents": sorted(one.name for one in row.agents.all()),
        "separator": row.separator,
        "search_mode": row.search_mode,
        "own_tools": [name for name in OwnTool.values if name in row.own_tools],
        "hold_seconds": row.hold_s,
        "agent_sign_in": row.agent_sign_in,
        "registry_readers": row.registry_readers,
    }


def _usual_toolset() -> Plain:
    empty = Toolset()
    return {
        **dict.fromkeys(LISTS, ()),
        **{
            name: getattr(empty, name)
            for name in ("title", "separator", "search_mode", "agent_sign_in", "registry_readers")
        },
        "own_tools": empty.own_tools,
        "hold_seconds": None,
    }


def _kept_servers() -> QuerySet[Server]:
    return Server.objects.kept()


def _known_tools() -> QuerySet[Tool]:
    return Tool.objects.filter(server__deleted_at=None)


# What may be in each list, and by which column it is named there.
_MEMBERS: dict[str, tuple[Callable[[], QuerySet[Any]], str]] = {
    "servers": (_kept_servers, "slug"),
    "tools": (_known_tools, "exposed_name"),
    "agents": (Agent.objects.all, "name"),
}
_VERBS: dict[str, tuple[Callable[..., None], Callable[..., None]]] = {
    "servers": (services.add_server, services.remove_server),
    "tools": (services.add_tool, services.remove_tool),
    "agents": (services.assign, services.unassign),
}
_SETTERS: dict[str, Callable[..., object]] = {
    "title": services.set_title,
    "separator": services.set_separator,
    "search_mode": services.set_search_mode,
    "own_tools": services.set_own_tools,
    "hold_seconds": services.set_hold,
    "agent_sign_in": services.set_agent_sign_in,
    "registry_readers": services.set_registry_readers,
}


def _normal_toolset(name: str, given: Plain, now: Plain | None) -> Plain:
    if now is None:
        Toolset(slug=name).full_clean(validate_unique=False)
    for member, (rows, key) in _MEMBERS.items():
        named_rows(rows(), key, given.get(member, ()), member)
    filled = {**(now or _usual_toolset()), **given}
    own = [one for one in OwnTool.values if one in filled["own_tools"]]
    return {**filled, **{one: sorted(set(filled[one])) for one in LISTS}, "own_tools": own}


def _save_toolset(name: str, plain: Plain, by: Actor) -> None:
    toolset = Toolset.objects.filter(slug=name).first() or services.create_toolset(name, by=by)
    for member, put in _SETTERS.items():
        put(toolset, plain[member], by=by)
    for member, (join, part) in _VERBS.items():
        rows, key = _MEMBERS[member]
        wanted = set(named_rows(rows(), key, plain[member], member))
        here = set(rows().filter(pk__in=getattr(toolset, member).values("pk")))
        for one in sorted(wanted - here, key=str):
            join(toolset, one, by=by)
        for one in sorted(here - wanted, key=str):
            part(toolset, one, by=by)


def _shown_toolset(plain: Plain) -> Plain:
    usual = _usual_toolset()
    return {name: value for name, value in plain.items() if (value or ()) != (usual[name] or ())}


# Settings of servers.


def _read_servers(names: Collection[str] | None) -> dict[str, Plain]:
    rows = Server.objects.kept().order_by("slug")
    return {row.slug: _server(row) for row in _named(rows, "slug", names)}


def _server(row: Server) -> Plain:
    return {
        "enabled": row.enabled,
        "relays": [one for one in Server.Relay.values if one in row.relays],
        "wanted_revision": row.wanted_revision,
        "methods": sorted(row.methods),
        "results": stored_rules(rules_of(row.result_rules)),
    }


def _normal_server(name: str, given: Plain, now: Plain | None) -> Plain:
    if now is None:
        raise BadMember(_("There is no such server. Register it first: a file has no addresses."))
    filled = {**now, **given}
    filled["relays"] = [one for one in Server.Relay.values if one in filled["relays"]]
    filled["methods"] = sorted(set(filled["methods"]))
    filled["results"] = stored_rules(rules_of(filled["results"]))
    return filled


def _save_server(name: str, plain: Plain, by: Actor) -> None:
    server = Server.objects.kept().get(slug=name)
    services.set_enabled(server, plain["enabled"], by=by)
    services.set_relays(server, plain["relays"], by=by)
    services.set_revision(server, plain["wanted_revision"], by=by)
    services.set_methods(server, plain["methods"], by=by)
    result_rules.set_server_result_rules(server, rules_of(plain["results"]), by=by)


# Labels of tools.


def _read_tools(names: Collection[str] | None) -> dict[str, Plain]:
    rows = Tool.objects.filter(server__deleted_at=None).order_by("exposed_name")
    if names is None:
        decided = [~Q(**{f"label_{label}": LabelChoice.HINTED}) for label in Label]
        rows = rows.filter(decided[0] | decided[1] | decided[2])
    return {row.exposed_name: _tool(row) for row in _named(rows, "exposed_name", names)}


def _tool(row: Tool) -> Plain:
    choices = row.label_choices
    return {"labels": {label.value: choices[label] or HINTED for label in Label}}


def _normal_tool(name: str, given: Plain, now: Plain | None) -> Plain:
    if now is None:
        raise BadMember(_("There is no such tool. Refresh its server first."))
    return {"labels": {**now["labels"], **given.get("labels", {})}}


def _save_tool(name: str, plain: Plain, by: Actor) -> None:
    tool = Tool.objects.select_related("server").get(exposed_name=name)
    said = {label: plain["labels"][label.value] for label in Label}
    choices = {label: "" if choice == HINTED else choice for label, choice in said.items()}
    services.set_labels(tool, choices, by=by)


def _shown_tool(plain: Plain) -> Plain:
    said = {label: choice for label, choice in plain["labels"].items() if choice != HINTED}
    return {"labels": said}


SERVER_SECTION = Section(
    SERVERS,
    False,
    _read_servers,
    _normal_server,
    _save_server,
    lambda plain: plain,
    schemas.server,
    {"changed": ("registry.change_server",)},
)
TOOL_SECTION = Section(
    TOOLS,
    False,
    _read_tools,
    _normal_tool,
    _save_tool,
    _shown_tool,
    schemas.tool,
    {"changed": ("registry.operate_server",)},
)
TOOLSET_SECTION = Section(
    TOOLSETS,
    False,
    _read_toolsets,
    _normal_toolset,
    _save_toolset,
    _shown_toolset,
    schemas.toolset,
    {
        "added": ("registry.add_toolset", "registry.change_toolset", "accounts.view_agent"),
        "changed": ("registry.change_toolset", "accounts.view_agent"),
    },
)
