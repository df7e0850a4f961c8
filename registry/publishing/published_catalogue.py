"""What agents get: a picture of the published catalogue, whole and immutable, held in memory."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import jsonschema_rs
import orjson
from django.db.models import Model, Q, QuerySet

from core.header_params import ANNOTATION, InvalidAnnotation, Path, declared
from registry import methods
from registry.connections import Commands, ServerConnection, Unreachable, connection
from registry.models import Definition, Server, ShownTool, Tool, Toolset
from registry.publishing import published_items as offered
from registry.publishing.published_items import NOTHING, PublishedItems
from registry.publishing.tool_override import AS_IT_IS, OverriddenTool, as_written, placed
from registry.schemas import compiled, definitions
from registry.schemas.violations import Violation, violations

__all__ = ["Catalogue", "PublishedTool", "PublishedToolset", "ServerConnection", "Violation"]

log = logging.getLogger(__name__)

CALL = "tools/call"


class ParsedDefinition:
    """One definition, parsed once in the life of this process, its schema compiled when needed."""

    __slots__ = (
        *("_lengths", "_subschemas", "_validator"),
        *("content", "hints", "param_headers", "runs_as_task"),
    )

    def __init__(self, body: str | bytes) -> None:
        self.content: dict[str, Any] = orjson.loads(body)
        self.hints = definitions.hints(self.content)
        self.param_headers = _param_headers(self.content) if _may_declare(body) else {}
        self.runs_as_task = _runs_as_task(self.content)
        self._validator: jsonschema_rs.Validator | None = None
        self._subschemas = 0
        self._lengths: tuple[jsonschema_rs.Validator, set[int]] | None = None

    @classmethod
    def of(cls, schema: dict[str, Any]) -> ParsedDefinition:
        """Of a schema alone."""
        return cls(orjson.dumps({"inputSchema": schema}))

    def violations(self, arguments: Any) -> list[Violation]:
        try:
            validator = self._validator or self._compiled()
        except (compiled.SchemaRejected, jsonschema_rs.ValidationError, ValueError):
            # Published under rules that have become stricter since. Unchecked is not an option.
            return [Violation("$", "cannot be checked: the tool's schema is not accepted here")]
        if validator.is_valid(arguments):
            return []
        return violations(validator, arguments, subschemas=self._subschemas, lengths=self._lengths)

    def _compiled(self) -> jsonschema_rs.Validator:
        schema = self.content["inputSchema"]
        self._subschemas = sum(1 for _ in compiled.subschemas(schema))
        self._lengths = compiled.lengths(schema)
        self._validator = compiled.compiled(schema)
        return self._validator


def _may_declare(body: str | bytes) -> bool:
    """Hardly a definition does, and to look through all of one takes long."""
    return ANNOTATION in body if isinstance(body, str) else ANNOTATION.encode() in body


def _param_headers(content: dict[str, Any]) -> Mapping[Path, str]:
    """Which arguments it wants repeated in headers. None, where any of its annotations is wrong:
    its server speaks in a way that knows no such headers, or it would be left out."""
    try:
        return declared(content["inputSchema"])
    except InvalidAnnotation:
        return {}


def _runs_as_task(content: dict[str, Any]) -> bool:
    """Its server runs it as a task and in no other way.

    Source: MCP 2025-11-25, basic/utilities/tasks, "Tool-Level Negotiation"."""
    execution = content.get("execution")
    return isinstance(execution, dict) and execution.get("taskSupport") == "required"


@dataclass(frozen=True, slots=True)
class PublishedTool:
    """A tool as it is published. What a call needs to know of it is found out here, once."""

    tool_id: int
    server_id: int
    server_slug: str
    name: str
    exposed_name: str
    definition_id: int
    digest: str
    mode: str
    safe_to_repeat: bool
    timeout_s: int
    connection: ServerConnection
    shape: ParsedDefinition
    tags: tuple[str, ...] = ()
    repeats: str = Tool.Repeats.AUTO
    # What its server may ask of agents: families of core.abilities.
    relays: frozenset[str] = frozenset()
    confirmed_read_only: bool = False
    # The definition as its server wrote it. Shared: never change it.
    content: dict[str, Any] = field(init=False)
    hints: dict[str, bool] = field(init=False)
    # How its server is asked: what is no tool of it is a method of its own.
    method: str = field(init=False)
    # By an operator's word: a call that may have run leaves nothing to find out.
    is_harmless: bool = field(init=False)

    def __post_init__(self) -> None:
        claimed = self.shape.hints.get("readOnlyHint", False)
        harmless = self.safe_to_repeat or (self.confirmed_read_only and claimed)
        for name, value in (
            ("content", self.shape.content),
            ("hints", self.shape.hints),
            ("method", self.name if methods.is_one(self.name) else CALL),
            ("is_harmless", harmless),
        ):
            object.__setattr__(self, name, value)

    def violations(self, arguments: Any) -> list[Violation]:
        return self.shape.violations(arguments)


@dataclass(frozen=True, slots=True)
class PublishedToolset:
    """Ordered by the names that agents see, so that lists come out alike in every process."""

    slug: str
    agents: frozenset[int]
    # All servers together, and each alone.
    by_exposed: Mapping[str, PublishedTool]
    by_server: Mapping[str, Mapping[str, PublishedTool]]
    own_tools: frozenset[str] = frozenset()
    # What may be read and got there, by the servers' names and in their order.
    offered: Mapping[str, PublishedItems] = field(default_factory=dict)
    # By tool id, where an operator had something to say.
    shown: Mapping[int, OverriddenTool] = field(default_factory=dict)

    def asking(self, server: str, method: str) -> PublishedTool | None:
        """By which this server is asked for something else than a tool."""
        mine = self.by_server.get(server, {}).values()
        return next((tool for tool in mine if tool.name == method), None)

    def how(self, tool: PublishedTool) -> OverriddenTool:
        return self.shown.get(tool.tool_id, AS_IT_IS)

    def told(self, name: str, tool: PublishedTool) -> dict[str, Any]:
        """The definition as agents get it where the tool has this name."""
        return self.how(tool).words(tool.content, name=name, exposed_name=tool.exposed_name)

    def param_headers(self, tool: PublishedTool) -> Mapping[Path, str]:
        """Which arguments agents repeat in headers: what is fixed is not theirs to send."""
        fixed = self.how(tool).pins
        declared = tool.shape.param_headers
        return {path: name for path, name in declared.items() if path[0] not in fixed}

    def holding(self, tool_id: int) -> PublishedTool | None:
        """The tool, by whatever name it is seen here."""
        return next((t for t in self.by_exposed.values() if t.tool_id == tool_id), None)


class Catalogue:
    def __init__(
        self, tools: Mapping[int, PublishedTool], toolsets: Mapping[str, PublishedToolset]
    ) -> None:
        self._tools = tools
        self._toolsets = toolsets

    def tool(self, tool_id: int) -> PublishedTool | None:
        return self._tools.get(tool_id)

    def toolset(self, slug: str) -> PublishedToolset | None:
        return self._toolsets.get(slug)


# Definitions never change, so what was parsed stays right: keyed by id and digest.
_shapes: dict[tuple[int, str], ParsedDefinition] = {}


def load() -> Catalogue:
    """Everything that is published now. Later loads parse only what they have not seen."""
    tools = {tool.tool_id: tool for tool in _tools(Tool.objects.all())}
    _forget_all_but(tools.values())
    return Catalogue(tools, _toolsets(tools, offered.load()))


def one(tool_id: int) -> PublishedTool | None:
    """A single tool as it is published now, for those who hold no picture."""
    return next(_tools(Tool.objects.filter(pk=tool_id)), None)


def offers(slug: str, tool: PublishedTool, *, agent_id: int) -> bool:
    """Does this toolset give the tool to the agent now?"""
    holds = Q(servers=tool.server_id) | Q(tools=tool.tool_id)
    return Toolset.objects.filter(holds, slug=slug, agents=agent_id).exists()


def shown(slug: str, tool: PublishedTool) -> OverriddenTool:
    """How this toolset shows the tool now."""
    row = ShownTool.objects.filter(toolset__slug=slug, tool=tool.tool_id).first()
    return _row(row) if row else AS_IT_IS


def _tools(candidates: QuerySet[Tool]) -> Iterator[PublishedTool]:
    lines = list(
        candidates.filter(state=Tool.State.PUBLISHED, server__enabled=True)
        .exclude(published=None)
        .order_by("exposed_name")
        .values_list(*_COLUMNS, "published__digest", named=True)
    )
    connections = _connections({line.server_id for line in lines})
    shapes = _shaped({(line.published_id, line.published__digest) for line in lines})
    tags = _tags({line.id for line in lines})
    for line in lines:
        known = connections.get(line.server_id)
        if known is not None:
            yield _published(line, *known, shapes[line.published_id], tuple(tags[line.id]))


_COLUMNS = (
    "id",
    "server_id",
    "name",
    "exposed_name",
    "published_id",
    "mode",
    "is_long",
    "safe_to_repeat",
    "confirmed_read_only",
    "repeats",
    "timeout_s",
)


def _tags(tool_ids: set[int]) -> dict[int, list[str]]:
    tags: dict[int, list[str]] = defaultdict(list)
    through = Tool.tags.through._default_manager.filter(tool_id__in=tool_ids)
    for tool_id, name in through.order_by("tag__name").values_list("tool_id", "tag__name"):
        tags[tool_id].append(name)
    return tags


def _published(
    line: Any,
    slug: str,
    relays: frozenset[str],
    connection: ServerConnection,
    shape: ParsedDefinition,
    tags: tuple[str, ...],
) -> PublishedTool:
    return PublishedTool(
        tool_id=line.id,
        server_id=line.server_id,
        server_slug=slug,
        name=line.name,
        exposed_name=line.exposed_name,
        definition_id=line.published_id,
        digest=line.published__digest,
        mode=_mode(line.mode, line.is_long or shape.runs_as_task),
        safe_to_repeat=line.safe_to_repeat,
        timeout_s=line.timeout_s,
        connection=connection,
        shape=shape,
        tags=tags,
        repeats=line.repeats,
        relays=relays,
        confirmed_read_only=line.confirmed_read_only,
    )


def _mode(chosen: str, is_long: bool) -> str:
    """Automatic becomes what it comes to, here and not for each call."""
    return Tool.Mode.BACKGROUND if chosen == Tool.Mode.AUTO and is_long else chosen


def _connections(server_ids: set[int]) -> dict[int, tuple[str, frozenset[str], ServerConnection]]:
    """Servers that cannot be connected to offer nothing; discovery tells people why."""
    known = {}
    commands = Commands()
    for server in Server.objects.filter(pk__in=server_ids):
        try:
            reached = connection(server, commands)
            known[server.pk] = (server.slug, frozenset(server.relays), reached)
        except Unreachable as error:
            log.warning("%s is not offered: %s", server.slug, error)
    return known


def _shaped(wanted: set[tuple[int, str]]) -> dict[int, ParsedDefinition]:
    # Another thread may forget at any moment: what this load needs, it holds itself.
    held = {key: shape for key in wanted if (shape := _shapes.get(key))}
    fresh = Definition.objects.filter(pk__in=[pk for pk, digest in wanted - held.keys()])
    for pk, digest, body in fresh.values_list("pk", "digest", "body"):
        held[pk, digest] = ParsedDefinition(body)
    _shapes.update(held)
    return {pk: shape for (pk, _digest), shape in held.items()}


def _forget_all_but(tools: Iterable[PublishedTool]) -> None:
    used = {(tool.definition_id, tool.digest) for tool in tools}
    for key in set(_shapes) - used:
        _shapes.pop(key, None)


def _toolsets(
    tools: Mapping[int, PublishedTool], items: Mapping[int, PublishedItems]
) -> dict[str, PublishedToolset]:
    of_server: dict[int, list[PublishedTool]] = defaultdict(list)
    for tool in tools.values():
        of_server[tool.server_id].append(tool)

    agents = _members(Toolset.agents.through, "agent_id")
    servers = _members(Toolset.servers.through, "server_id")
    single = _members(Toolset.tools.through, "tool_id")
    shown = _shown()
    return {
        slug: _toolset(
            slug,
            agents[pk],
            {t.tool_id: t for server_id in servers[pk] for t in of_server[server_id]}
            | {tool_id: tools[tool_id] for tool_id in single[pk] if tool_id in tools},
            own,
            items,
            shown[pk],
        )
        for pk, slug, own in Toolset.objects.values_list("pk", "slug", "own_tools")
    }


def _members(through: type[Model], column: str) -> dict[int, list[int]]:
    members: dict[int, list[int]] = defaultdict(list)
    for toolset_id, member in through._default_manager.values_list("toolset_id", column):
        members[toolset_id].append(member)
    return members


def _shown() -> dict[int, dict[int, OverriddenTool]]:
    """By toolset and tool."""
    shown: dict[int, dict[int, OverriddenTool]] = defaultdict(dict)
    for said in ShownTool.objects.all():
        shown[said.toolset_id][said.tool_id] = _row(said)
    return shown


def _row(said: ShownTool) -> OverriddenTool:
    found = as_written(said.name, said.title, said.description, said.pinned)
    if not found.is_readable:
        log.error("Tool %s is not offered: what is fixed is no JSON object.", said.tool_id)
    return found


def _toolset(
    slug: str,
    agents: Iterable[int],
    tools: Mapping[int, PublishedTool],
    own_tools: Iterable[str],
    items: Mapping[int, PublishedItems],
    shown: Mapping[int, OverriddenTool],
) -> PublishedToolset:
    by_server: dict[str, dict[int, tuple[str, PublishedTool]]] = defaultdict(dict)
    tools = {pk: tool for pk, tool in tools.items() if pk not in shown or shown[pk].is_readable}
    for pk, tool in tools.items():
        by_server[tool.server_slug][pk] = (tool.name, tool)
    given = {pk: said.name for pk, said in shown.items()}
    return PublishedToolset(
        slug=slug,
        agents=frozenset(agents),
        by_exposed=placed({pk: (tool.exposed_name, tool) for pk, tool in tools.items()}, given),
        by_server={slug: placed(by_server[slug], given) for slug in sorted(by_server)},
        own_tools=frozenset(own_tools),
        offered=_offers(by_server, items),
        shown=shown,
    )


def _offers(
    by_server: Mapping[str, Mapping[int, tuple[str, PublishedTool]]],
    items: Mapping[int, PublishedItems],
) -> dict[str, PublishedItems]:
    """Each server's, in the order of their names."""
    mine = {slug: [tool for _, tool in by_server[slug].values()] for slug in sorted(by_server)}
    return {slug: found for slug, tools in mine.items() if (found := _offered(tools, items))}


def _offered(
    mine: list[PublishedTool], items: Mapping[int, PublishedItems]
) -> PublishedItems | None:
    """What these tools of one server let agents read and get of it."""
    server_id = mine[0].server_id
    found = items.get(server_id, NOTHING)
    names = {tool.name for tool in mine}
    reads, gets = methods.READ in names, methods.GET in names
    return found.of(reads=reads, gets=gets) if reads or gets else None
