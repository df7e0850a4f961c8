"""A published tool, a toolset of them and the whole catalogue: immutable, as agents get them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import jsonschema_rs
import orjson

from core.header_params import ANNOTATION, InvalidAnnotation, Path, declared
from inspection.results import ResultRules, SchemaCheck
from inspection.strictness import combine_rules
from inspection.words import result_sentences
from registry import methods
from registry.connections import ServerConnection
from registry.models import Separator, Tool
from registry.publishing import agent_names
from registry.publishing.agent_names import ToolsByName
from registry.publishing.published_items import PublishedItems
from registry.publishing.tool_override import AS_IT_IS, OverriddenTool
from registry.schemas import compiled, definitions, recursion
from registry.schemas.subsets import stand_ins
from registry.schemas.violations import Violation, violations

__all__ = [
    "CALL",
    "Catalogue",
    "ParsedDefinition",
    "PublishedTool",
    "PublishedToolset",
    "ServerConnection",
    "Violation",
]

CALL = "tools/call"


class ParsedDefinition:
    """One definition, parsed once in the life of this process, its schema compiled when needed."""

    __slots__ = (
        *("_lengths", "_levels", "_subschemas", "_validator"),
        *("_output", "content", "hints", "param_headers", "runs_as_task", "stand_ins"),
    )

    def __init__(self, body: str | bytes) -> None:
        self.content: dict[str, Any] = orjson.loads(body)
        self.hints = definitions.hints(self.content)
        self.param_headers = _param_headers(self.content) if _may_declare(body) else {}
        self.runs_as_task = _runs_as_task(self.content)
        # Arguments' names by what tool lists for models' APIs call them.
        self.stand_ins = _stand_ins(self.content.get("inputSchema"))
        self._validator: jsonschema_rs.Validator | None = None
        self._subschemas = 0
        self._levels: int | None = None
        self._lengths: tuple[jsonschema_rs.Validator, set[int]] | None = None
        self._output: ParsedDefinition | None = None

    @classmethod
    def of(cls, schema: dict[str, Any]) -> ParsedDefinition:
        """The parsed definition of a schema alone."""
        return cls(orjson.dumps({"inputSchema": schema}))

    def violations(self, arguments: Any) -> list[Violation]:
        try:
            validator = self._validator or self._compiled()
        except (compiled.SchemaRejected, jsonschema_rs.ValidationError, ValueError):
            # Published under rules that have become stricter since. Unchecked is not an option.
            return [Violation("$", "cannot be checked: the tool's schema is not accepted here")]
        if self._levels is not None and recursion.depth(arguments) > self._levels:
            most = self._levels
            return [
                Violation("$", f"is nested too deeply to be checked: give at most {most} levels")
            ]
        if validator.is_valid(arguments):
            return []
        return violations(validator, arguments, subschemas=self._subschemas, lengths=self._lengths)

    def result_violations(self, result: Any) -> list[Violation]:
        """`result`: parsed. What a tool with an outputSchema must bring, unless it fails.

        Source: MCP 2025-06-18, server/tools, "Output Schema"."""
        if not isinstance(result, dict) or "structuredContent" not in result:
            return [Violation("$", "has no structuredContent")]
        if self._output is None:
            self._output = ParsedDefinition.of(self.content["outputSchema"])
        return self._output.violations(result["structuredContent"])

    def _compiled(self) -> jsonschema_rs.Validator:
        schema = self.content["inputSchema"]
        self._levels = compiled.levels(schema)
        self._subschemas = sum(1 for _ in compiled.subschemas(schema))
        if self._levels is not None:
            self._subschemas = compiled.MAX_UNFOLDED
        self._lengths = compiled.lengths(schema)
        self._validator = compiled.compiled(schema)
        return self._validator


def _stand_ins(schema: Any) -> Mapping[str, str]:
    """None, where the schema was published under rules that were less strict."""
    try:
        return stand_ins(schema)
    except (AttributeError, TypeError, ValueError):
        return {}


def _may_declare(body: str | bytes) -> bool:
    """Whether the text has the keyword at all: parsing every definition takes long."""
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
    # By an operator's word nobody has to find out whether a cancelled call was executed.
    cancel_is_final: bool = False
    # What is done to its results; None: they pass byte for byte.
    result_rules: ResultRules | None = None
    # For information flow (registry/labels.py).
    labels: tuple[str, ...] = ()
    # The definition as its server wrote it. Shared: never change it.
    content: dict[str, Any] = field(init=False)
    hints: dict[str, bool] = field(init=False)
    # How its server is asked: what is no tool of it is a method of its own.
    method: str = field(init=False)
    # An operator declared it retry-safe or read-only: an unknown outcome needs no resolving.
    is_harmless: bool = field(init=False)
    # Duplicates share one idempotency key, so that the database lets one of them run.
    claims_duplicate_key: bool = field(init=False)
    # A duplicate is not sent while the outcome of the call before was not delivered.
    blocks_undelivered: bool = field(init=False)

    def __post_init__(self) -> None:
        claimed = self.shape.hints.get("readOnlyHint", False)
        harmless = self.safe_to_repeat or (self.confirmed_read_only and claimed)
        for name, value in (
            ("content", self.shape.content),
            ("hints", self.shape.hints),
            ("method", self.name if methods.is_one(self.name) else CALL),
            ("is_harmless", harmless),
            ("claims_duplicate_key", self.repeats == Tool.Repeats.GUARD and not harmless),
            ("blocks_undelivered", self.repeats == Tool.Repeats.AUTO and not harmless),
        ):
            object.__setattr__(self, name, value)

    def violations(self, arguments: Any) -> list[Violation]:
        return self.shape.violations(arguments)

    def with_results(self, demanded: ResultRules | None) -> PublishedTool:
        """The tool with its results treated at least as strictly as rules demand for a call."""
        if demanded is None:
            return self
        rules = combine_rules((self.result_rules, demanded))
        return self if rules == self.result_rules else replace(self, result_rules=rules)

    @property
    def only_reads(self) -> bool:
        """By its server's own words, of which none says the opposite."""
        hints = self.hints
        return hints.get("readOnlyHint", False) and not hints.get("destructiveHint", False)

    @property
    def result_sentences(self) -> list[str]:
        """The treatment of its results, in English."""
        rules = self.result_rules
        if rules is not None and "outputSchema" not in self.content:
            rules = rules._replace(schema=SchemaCheck.OFF)
        return result_sentences(rules)

    @property
    def listed_as(self) -> tuple[str, ...]:
        """The fields that decide whether and where a toolset lists the tool."""
        return self.server_slug, self.name, self.exposed_name

    def result_violations(self, result: Any) -> list[Violation]:
        """How a result of it does not fit its outputSchema, if it has one."""
        return self.shape.result_violations(result) if "outputSchema" in self.content else []


@dataclass(frozen=True, slots=True)
class PublishedToolset:
    """Ordered by the names that agents see, so that lists come out alike in every process."""

    slug: str
    agents: frozenset[int]
    # All servers together, and each alone.
    by_exposed: ToolsByName[PublishedTool]
    by_server: Mapping[str, ToolsByName[PublishedTool]]
    own_tools: frozenset[str] = frozenset()
    separator: str = Separator.UNDERSCORE
    # How long a request waits for people; None: as everywhere.
    hold_s: int | None = None
    # The list has tools for searching in place of these.
    search_mode: bool = False
    # Users sign in their agents.
    agent_sign_in: bool = False
    # What may be read and got there, by the servers' names and in their order.
    offered: Mapping[str, PublishedItems] = field(default_factory=dict)
    # By tool id, where an operator had something to say.
    shown: Mapping[int, OverriddenTool] = field(default_factory=dict)

    def own_name(self, own_tool: str) -> str:
        """The agents' name of one of the gateway's own tools here."""
        return agent_names.own(own_tool, self.separator)

    def method_tool(self, server: str, method: str) -> PublishedTool | None:
        """The tool row through which this server answers a method other than tools/call."""
        mine = self.by_server.get(server)
        return mine.find(method) if mine else None

    def override_for(self, tool: PublishedTool) -> OverriddenTool:
        return self.shown.get(tool.tool_id, AS_IT_IS)

    def definition_for(self, name: str, tool: PublishedTool) -> dict[str, Any]:
        """The definition as agents get it where the tool has this name."""
        return self.override_for(tool).words(
            tool.content, name=name, exposed_name=tool.exposed_name
        )

    def param_headers(self, tool: PublishedTool) -> Mapping[Path, str]:
        """Which arguments agents repeat in headers: what is fixed is not theirs to send."""
        fixed = self.override_for(tool).pins
        declared = tool.shape.param_headers
        return {path: name for path, name in declared.items() if path[0] not in fixed}

    def by_id(self, tool_id: int) -> PublishedTool | None:
        """The tool, by whatever name it is seen here."""
        return next((t for t in self.by_exposed.values() if t.tool_id == tool_id), None)


class Catalogue:
    def __init__(
        self, tools: Mapping[int, PublishedTool], toolsets: Mapping[str, PublishedToolset]
    ) -> None:
        self._tools = tools
        self._toolsets = toolsets

    def __len__(self) -> int:
        return len(self._tools)

    def tool(self, tool_id: int) -> PublishedTool | None:
        return self._tools.get(tool_id)

    def toolset(self, slug: str) -> PublishedToolset | None:
        return self._toolsets.get(slug)
