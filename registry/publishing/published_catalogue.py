"""Loads the published catalogue, and of one that was loaded before only what changed."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from django.db.models import Model, Q, QuerySet

from inspection.results import PASS_ALL, ResultRules, rules_of
from registry import methods
from registry.connections import Commands, ServerConnection, Unreachable, connection
from registry.models import Definition, Server, ShownTool, Tool, Toolset
from registry.models.tools import RESULT_FIELDS
from registry.publishing import changes
from registry.publishing import published_items as offered
from registry.publishing.agent_names import NamesFound, ToolsByName
from registry.publishing.changes import Look
from registry.publishing.published_items import NOTHING, PublishedItems
from registry.publishing.published_tools import (
    Catalogue,
    ParsedDefinition,
    PublishedTool,
    PublishedToolset,
)
from registry.publishing.tool_override import AS_IT_IS, OverriddenTool, as_written

log = logging.getLogger(__name__)


class ReachedServer(NamedTuple):
    slug: str
    relays: frozenset[str]
    connection: ServerConnection
    # Of tools without choices of their own.
    result_rules: ResultRules


class ToolRow(NamedTuple):
    """The columns that are read of a tool."""

    id: int
    server_id: int
    name: str
    exposed_name: str
    published_id: int
    mode: str
    is_long: bool
    safe_to_repeat: bool
    confirmed_read_only: bool
    cancel_is_final: bool
    repeats: str
    timeout_s: int
    result_schema: str
    result_hidden: str
    result_secrets: bool
    result_personal: bool
    result_tracebacks: bool
    result_max_bytes: int | None
    result_links: bool
    result_hosts: str
    result_marking: str
    result_patterns: str
    labels: list[str]
    published__digest: str


class _TaggedRow(NamedTuple):
    line: ToolRow
    tags: tuple[str, ...]


class _Kept(NamedTuple):
    """A tool, and what it was made of: its row with its tags, and its server."""

    row: _TaggedRow
    server: ReachedServer
    tool: PublishedTool

    @property
    def shape(self) -> tuple[int, str]:
        """By which its definition is in `_shapes`."""
        return self.row.line.published_id, self.row.line.published__digest


@dataclass(frozen=True, slots=True)
class _Loaded:
    """All published tools as one load found them, and what the next needs to find what changed."""

    seen: Look
    # With those whose server cannot be reached, which are not offered.
    rows: int
    tools: dict[int, _Kept]


class _Before:
    """The last load: a change concerns few of thousands of tools. A load replaces these and changes
    none, since several may run at once."""

    servers: dict[int, tuple[tuple[Any, ...], ReachedServer]] = {}
    loaded: _Loaded | None = None
    toolsets: dict[int, _Gathered] = {}


# Definitions never change, so what was parsed stays right: by id and digest.
_shapes: dict[tuple[int, str], ParsedDefinition] = {}


def load() -> Catalogue:
    """Everything that is published now. Later loads read and make only what changed since."""
    before = _Before.loaded
    # Before all else: what is committed from here on is looked at once more by the next load.
    now = changes.look(before.seen if before else None)
    made = _changed(before, now) if before else None
    if made is None:
        made = _everything()
    _Before.loaded = _Loaded(now, *made)
    tools = {tool_id: one.tool for tool_id, one in made[1].items()}
    return Catalogue(tools, _toolsets(tools, offered.load()))


def one(tool_id: int) -> PublishedTool | None:
    """A single tool as it is published now, for those who hold no picture."""
    return next(iter(_tools(Tool.objects.filter(pk=tool_id))), None)


def offers(slug: str, tool: PublishedTool, *, agent_id: int) -> bool:
    """Does this toolset give the tool to the agent now?"""
    holds = Q(servers=tool.server_id) | Q(tools=tool.tool_id)
    return Toolset.objects.filter(holds, slug=slug, agents=agent_id).exists()


def override_of(slug: str, tool: PublishedTool) -> OverriddenTool:
    """How this toolset shows the tool now."""
    row = ShownTool.objects.filter(toolset__slug=slug, tool=tool.tool_id).first()
    return _row(row) if row else AS_IT_IS


def _tools(candidates: QuerySet[Tool]) -> list[PublishedTool]:
    rows = _rows(candidates)
    servers = _connections({row.line.server_id for row in rows}, keep=False)
    return [one.tool for one in _published_tools(rows, servers, {}).values()]


def _rows(candidates: QuerySet[Tool], *, tagged: bool = True) -> list[_TaggedRow]:
    """With their tags, unless no tool has any."""
    found = candidates.filter(state=Tool.State.PUBLISHED, server__enabled=True)
    found = found.exclude(published=None).order_by()
    lines = [ToolRow._make(row) for row in found.values_list(*ToolRow._fields)]
    tags = _tags(found) if tagged and lines else {}
    return [_TaggedRow(line, tuple(tags.get(line.id, ()))) for line in lines]


def _in_order(made: dict[int, _Kept]) -> dict[int, _Kept]:
    """In the order of their names."""
    return dict(sorted(made.items(), key=lambda one: one[1].tool.exposed_name))


def _published_tools(
    rows: list[_TaggedRow],
    servers: Mapping[int, ReachedServer],
    before: Mapping[int, _Kept],
) -> dict[int, _Kept]:
    """By id. What was made of the same is taken from `before`."""
    found: dict[int, _Kept | None] = {}
    new = []
    for row in rows:
        server = servers.get(row.line.server_id)
        if server is None:
            continue
        kept = before.get(row.line.id)
        if kept is None or kept.server is not server or kept.row != row:
            new.append(row)
            kept = None
        found[row.line.id] = kept
    shapes = _shaped({(line.published_id, line.published__digest) for line, _ in new})
    for row in new:
        server = servers[row.line.server_id]
        tool = _published(row.line, server, shapes[row.line.published_id], row.tags)
        found[row.line.id] = _Kept(row, server, tool)
    return {tool_id: kept for tool_id, kept in found.items() if kept}


def _everything() -> tuple[int, dict[int, _Kept]]:
    """How many rows there are, and what was made of them."""
    rows = _rows(Tool.objects.all())
    servers = _connections({row.line.server_id for row in rows}, keep=True)
    made = _in_order(
        _published_tools(rows, servers, _Before.loaded.tools if _Before.loaded else {})
    )
    for unused in _shapes.keys() - {kept.shape for kept in made.values()}:
        _shapes.pop(unused, None)
    return len(rows), made


def _changed(before: _Loaded, now: Look) -> tuple[int, dict[int, _Kept]] | None:
    """Like `_everything`, from only the rows written since. None: that does not suffice."""
    if not now.tells_all_since(before.seen):
        return None
    rows = _rows(Tool.objects.filter(pk__in=now.touched), tagged=now.is_tagged)
    listed = {row.line.id for row in rows}
    gone = [pk for pk in now.touched if pk in before.tools and pk not in listed]
    new = listed - before.tools.keys()
    known = {kept.row.line.server_id: kept.server for kept in before.tools.values()}
    servers = _connections({*known, *(row.line.server_id for row in rows)}, keep=True)
    fresh = _published_tools(rows, servers, before.tools)
    if (
        any(servers.get(pk) is not server for pk, server in known.items())
        or len(fresh) != len(rows)
        or now.published != before.rows - len(gone) + len(new)
    ):
        return None
    for pk in (*gone, *fresh):
        old = before.tools.get(pk)
        if old and (pk not in fresh or fresh[pk].shape != old.shape):
            _shapes.pop(old.shape, None)
    made = before.tools | fresh if fresh else before.tools
    if gone:
        made = {pk: kept for pk, kept in made.items() if pk not in gone}
    had = {pk: before.tools[pk].tool.exposed_name for pk in fresh.keys() & before.tools.keys()}
    moves = any(had.get(pk) != kept.tool.exposed_name for pk, kept in fresh.items())
    return now.published, _in_order(made) if moves else made


def _tags(tools: QuerySet[Tool]) -> dict[int, list[str]]:
    tags: dict[int, list[str]] = defaultdict(list)
    through = Tool.tags.through._default_manager.filter(tool__in=tools.values("pk"))
    for tool_id, name in through.order_by("tag__name").values_list("tool_id", "tag__name"):
        tags[tool_id].append(name)
    return tags


def _published(
    line: ToolRow, server: ReachedServer, shape: ParsedDefinition, tags: tuple[str, ...]
) -> PublishedTool:
    return PublishedTool(
        tool_id=line.id,
        server_id=line.server_id,
        server_slug=server.slug,
        name=line.name,
        exposed_name=line.exposed_name,
        definition_id=line.published_id,
        digest=line.published__digest,
        mode=_mode(line.mode, line.is_long or shape.runs_as_task),
        safe_to_repeat=line.safe_to_repeat,
        timeout_s=line.timeout_s,
        connection=server.connection,
        shape=shape,
        tags=tags,
        repeats=line.repeats,
        relays=server.relays,
        confirmed_read_only=line.confirmed_read_only,
        cancel_is_final=line.cancel_is_final,
        result_rules=_result_rules(line, server),
        labels=tuple(line.labels),
    )


def _result_rules(line: ToolRow, server: ReachedServer) -> ResultRules | None:
    own = ResultRules(*(getattr(line, name) for name in RESULT_FIELDS))
    rules = server.result_rules if own == PASS_ALL else own
    return None if rules == PASS_ALL else rules


def _mode(chosen: str, is_long: bool) -> str:
    """Automatic becomes what it comes to, here and not for each call."""
    return Tool.Mode.BACKGROUND if chosen == Tool.Mode.AUTO and is_long else chosen


# What a connection is made of.
_REACHED_BY = (
    *("slug", "transport", "url", "command", "argv", "sealed_headers", "sealed_credential"),
    *("connection_version", "relays", "revision", "wanted_revision", "by_events"),
    *("result_rules", "sign_in"),
)


def _connections(server_ids: set[int], *, keep: bool) -> dict[int, ReachedServer]:
    """Servers that cannot be connected to offer nothing; discovery tells people why."""
    found, commands = {}, Commands()
    for server in Server.objects.filter(pk__in=server_ids).only(*_REACHED_BY):
        row = tuple(getattr(server, name) for name in _REACHED_BY)
        kept = _Before.servers.get(server.pk)
        # What a command is stands in a file of the host besides.
        if kept and kept[0] == row and server.is_at_url:
            found[server.pk] = kept
            continue
        try:
            reached = connection(server, commands)
        except Unreachable as error:
            log.warning("%s is not offered: %s", server.slug, error)
            continue
        made = ReachedServer(
            server.slug, frozenset(server.relays), reached, rules_of(server.result_rules)
        )
        found[server.pk] = kept if kept and kept[1] == made else (row, made)
    if keep:
        _Before.servers = found
    return {pk: reached for pk, (_row, reached) in found.items()}


def _shaped(wanted: set[tuple[int, str]]) -> dict[int, ParsedDefinition]:
    # Another thread may forget at any moment: what this load needs, it holds itself.
    held = {key: shape for key in wanted if (shape := _shapes.get(key))}
    fresh = Definition.objects.filter(pk__in=[pk for pk, digest in wanted - held.keys()])
    for pk, digest, body in fresh.values_list("pk", "digest", "body"):
        held[pk, digest] = ParsedDefinition(body)
    _shapes.update(held)
    return {pk: shape for (pk, _digest), shape in held.items()}


def _toolsets(
    tools: Mapping[int, PublishedTool], items: Mapping[int, PublishedItems]
) -> dict[str, PublishedToolset]:
    of_server: dict[int, dict[int, PublishedTool]] = defaultdict(dict)
    for tool in tools.values():
        of_server[tool.server_id][tool.tool_id] = tool

    agents = _members(Toolset.agents.through, "agent_id")
    servers = _members(Toolset.servers.through, "server_id")
    single = _members(Toolset.tools.through, "tool_id")
    shown = _overrides()
    gathered = {}
    for pk, slug, own_tools, separator, hold_s, search_mode, sign_in in Toolset.objects.values_list(
        *_TOOLSET
    ):
        mine: dict[int, PublishedTool] = {}
        for server_id in servers[pk]:
            mine |= of_server[server_id]
        mine |= {tool_id: tools[tool_id] for tool_id in single[pk] if tool_id in tools}
        gathered[pk] = _Gathered(
            slug=slug,
            agents=frozenset(agents[pk]),
            own_tools=frozenset(own_tools),
            separator=separator,
            hold_s=hold_s,
            search_mode=search_mode,
            agent_sign_in=sign_in,
            tools=mine,
            items={pk: items.get(pk, NOTHING) for pk in {tool.server_id for tool in mine.values()}},
            shown=shown[pk],
        ).as_before(_Before.toolsets.get(pk))
    _Before.toolsets = gathered
    return {toolset.slug: toolset.published for toolset in gathered.values()}


_TOOLSET = ("pk", "slug", "own_tools", "separator", "hold_s", "search_mode", "agent_sign_in")


def _members(through: type[Model], column: str) -> dict[int, list[int]]:
    members: dict[int, list[int]] = defaultdict(list)
    for toolset_id, member in through._default_manager.values_list("toolset_id", column):
        members[toolset_id].append(member)
    return members


def _overrides() -> dict[int, dict[int, OverriddenTool]]:
    """All overrides, by toolset and tool."""
    shown: dict[int, dict[int, OverriddenTool]] = defaultdict(dict)
    for said in ShownTool.objects.all():
        shown[said.toolset_id][said.tool_id] = _row(said)
    return shown


def _row(said: ShownTool) -> OverriddenTool:
    found = as_written(said.name, said.title, said.description, said.pinned)
    if not found.is_readable:
        log.error("Tool %s is not offered: what is fixed is no JSON object.", said.tool_id)
    return found


@dataclass(slots=True)
class _Gathered:
    """The parts that a toolset is made of."""

    slug: str
    agents: frozenset[int]
    own_tools: frozenset[str]
    separator: str
    hold_s: int | None
    search_mode: bool
    agent_sign_in: bool
    tools: dict[int, PublishedTool]
    # By server.
    items: dict[int, PublishedItems]
    shown: dict[int, OverriddenTool]
    # Of each server, and of all together (""): to find them takes longest of all.
    names: dict[str, NamesFound] = field(default_factory=dict, compare=False)
    _published: PublishedToolset | None = field(default=None, compare=False)

    def as_before(self, before: _Gathered | None) -> _Gathered:
        if before is not None:
            if before == self:
                return before
            self.names = before.names
            self._published = self._changed_from(before)
        return self

    def _changed_from(self, before: _Gathered) -> PublishedToolset | None:
        """Where nothing but some tools changed, and none its name."""
        of_before = before._published
        alike = (
            "slug",
            "agents",
            "own_tools",
            "separator",
            "hold_s",
            "search_mode",
            "agent_sign_in",
            "items",
            "shown",
        )
        if of_before is None or self.tools.keys() != before.tools.keys():
            return None
        if any(getattr(self, name) != getattr(before, name) for name in alike):
            return None
        changed = {pk: t for pk, t in self.tools.items() if before.tools[pk] is not t}
        if any(tool.listed_as != before.tools[pk].listed_as for pk, tool in changed.items()):
            return None
        by_server = dict(of_before.by_server)
        for slug in {tool.server_slug for tool in changed.values()} & by_server.keys():
            mine = self.names[slug].of_changed(changed)
            by_server[slug] = by_server[slug].with_changed(mine, self.tools)
        mine = self.names[""].of_changed(changed)
        by_exposed = of_before.by_exposed.with_changed(mine, self.tools)
        return replace(of_before, by_exposed=by_exposed, by_server=by_server)

    @property
    def published(self) -> PublishedToolset:
        if self._published is None:
            self._published = self._publish()
        return self._published

    def _publish(self) -> PublishedToolset:
        before, self.names = self.names, {}
        said = self.shown
        tools = {pk: t for pk, t in self.tools.items() if pk not in said or said[pk].is_readable}
        by_server: dict[str, dict[int, PublishedTool]] = defaultdict(dict)
        for pk, tool in tools.items():
            by_server[tool.server_slug][pk] = tool
        by_server = {slug: by_server[slug] for slug in sorted(by_server)}
        return PublishedToolset(
            slug=self.slug,
            agents=self.agents,
            by_exposed=self._placed(tools, before, ""),
            by_server={slug: self._placed(by_server[slug], before, slug) for slug in by_server},
            own_tools=frozenset(self.own_tools),
            separator=self.separator,
            hold_s=self.hold_s,
            search_mode=self.search_mode,
            agent_sign_in=self.agent_sign_in,
            offered={
                slug: found
                for slug, mine in by_server.items()
                if (found := _offered(list(mine.values()), self.items))
            },
            shown=said,
        )

    def _placed(
        self, tools: dict[int, PublishedTool], before: dict[str, NamesFound], server: str
    ) -> ToolsByName[PublishedTool]:
        have = {pk: tool.name if server else tool.exposed_name for pk, tool in tools.items()}
        given = {pk: said.name for pk, said in self.shown.items()}
        found = NamesFound.of(have, given, self.separator, before.get(server))
        self.names[server] = found
        return found.placed(tools)


def _offered(
    mine: list[PublishedTool], items: Mapping[int, PublishedItems]
) -> PublishedItems | None:
    """The resources and prompts that these tools of one server let agents read and get."""
    server_id = mine[0].server_id
    found = items.get(server_id, NOTHING)
    names = {tool.name for tool in mine}
    reads, gets = methods.READ in names, methods.GET in names
    offers_any = reads or gets or found.instructions
    return found.of(reads=reads, gets=gets) if offers_any else None
