"""JSON Schemas of a policy file's sections: for editors, and for checking before anything else."""

from __future__ import annotations

from typing import Any

from accounts.models import MAX_HOLD_S
from inspection.results import HiddenText, Marking, SchemaCheck
from policies.conditions import TEXT_MAX
from policies.models import Effect, Limit, LimitEffect, Rule
from policies.models.limits import MOST_MINUTES
from policies.thresholds import AFTER_MOST_MIN, THRESHOLDS_MAX, Distinct, StepUp
from registry.labels import Label
from registry.models import OwnTool, RegistryReaders, Separator, Server
from registry.result_rules import LEAST_BYTES, MOST_BYTES

Schema = dict[str, Any]
SECONDS_MAX = 30 * 24 * 3600
NAMES_MAX = 1_000
# A label of a tool that nobody decided on.
HINTED = "hinted"


def text(most: int, about: str = "", least: int = 0) -> Schema:
    return _about({"type": "string", "minLength": least, "maxLength": most}, about)


def one_of(values: Any, about: str = "") -> Schema:
    return _about({"type": "string", "enum": [str(one) for one in values]}, about)


def flag(about: str = "") -> Schema:
    return _about({"type": "boolean"}, about)


def whole(least: int, most: int, about: str = "", nullable: bool = False) -> Schema:
    kind: Any = ["integer", "null"] if nullable else "integer"
    return _about({"type": kind, "minimum": least, "maximum": most}, about)


def amount(about: str, nullable: bool = False) -> Schema:
    """Digits, so that none of them is lost; editors take a number."""
    kinds = ["string", "number", *(["null"] if nullable else [])]
    return _about({"type": kinds, "pattern": r"^[0-9]{1,14}(\.[0-9]{1,6})?$"}, about)


def list_of(items: Schema, about: str = "", most: int = NAMES_MAX) -> Schema:
    kind = {"type": "array", "items": items, "maxItems": most, "uniqueItems": True}
    return _about(kind, about)


def members(required: tuple[str, ...] = (), **properties: Schema) -> Schema:
    named = {name.rstrip("_"): schema for name, schema in properties.items()}
    return {
        "type": "object",
        "properties": named,
        "required": list(required),
        "additionalProperties": False,
    }


def _about(schema: Schema, about: str) -> Schema:
    return {**schema, "description": about} if about else schema


def _names(about: str) -> Schema:
    return list_of(text(200, least=1), about)


def _covering() -> dict[str, Schema]:
    return {
        "name": text(100, "Identifies it: another name is another one.", least=1),
        "mode": one_of(Rule.Mode.values, "enforce: on; shadow: monitor only; off."),
        "server": text(100, "A name or a pattern: * ? [abc]", least=1),
        "tool": text(200, "A name or a pattern: * ? [abc]", least=1),
        "hint": one_of(Rule.Hint.values, "Only tools whose server claims this, or nothing."),
        "agents": _names("None: every agent."),
        "owner_groups": _names("Groups of the agents' owners. None: every owner."),
        "reason": text(300, "Agents and approvers read it."),
    }


def threshold() -> Schema:
    return members(
        ("approve",),
        approve=whole(1, 100),
        deny=whole(1, 100),
        from_=_about(
            {"type": "string", "pattern": "^$|^(group|person):."},
            "group:NAME, person:NAME, or empty: any approver.",
        ),
        distinct=one_of(Distinct.values),
        step_up=one_of(StepUp.values),
        after_min=whole(0, AFTER_MOST_MIN, "Minutes until it counts; one of a rule has 0."),
    )


def rule() -> Schema:
    return members(
        ("name", "effect"),
        **_covering(),
        effect=one_of(Effect.values),
        when=text(TEXT_MAX, "A condition in CEL. Empty: always."),
        instead=text(300, "What agents that are denied may do instead."),
        unnamed=flag("Agents are not told its name."),
        thresholds={
            "type": "array",
            "items": threshold(),
            "maxItems": THRESHOLDS_MAX,
            "description": "Who decides: the first that is met.",
        },
        decide_within=whole(1, SECONDS_MAX, "Seconds.", nullable=True),
        start_within=whole(1, SECONDS_MAX, "Seconds from the approval on.", nullable=True),
        confirm_grants=flag("Standing approvals need a passkey or code."),
        shows_arguments=flag("Messages to approvers have the arguments, with secrets masked."),
        results=_results(),
    )


def limit() -> Schema:
    return members(
        ("name", "effect", "kind", "amount"),
        **_covering(),
        effect=one_of(LimitEffect.values),
        kind=one_of(Limit.Kind.values, "What is counted."),
        amount=amount("At most so many."),
        period=one_of(["", *Limit.Period.values]),
        burst=whole(1, 2**53, "So many at once after a pause.", nullable=True),
        cost=amount("Cost of each call.", nullable=True),
        cost_argument=text(200, "The argument that says the cost, for example: order.total"),
        cost_result=text(200, "A number in the result: structuredContent.cost"),
        unit=text(20),
        minutes=whole(1, MOST_MINUTES, "Of loop breakers.", nullable=True),
        per=list_of(one_of(Limit.Per.values), "Counted for each."),
    )


def toolset() -> Schema:
    return members(
        title=text(200),
        servers=_names("All published tools of these servers."),
        tools=_names("Single tools: SERVER.TOOL"),
        agents=_names("Agents that may connect."),
        separator=one_of(Separator.values),
        search_mode=flag("Agents search for tools in place of listing them."),
        own_tools=list_of(one_of(OwnTool.values)),
        hold_seconds=whole(1, MAX_HOLD_S, "First answer within.", nullable=True),
        agent_sign_in=flag("Users may sign in their own agents, too."),
        registry_readers=one_of(RegistryReaders.values, "Readers of its MCP registry."),
    )


def server() -> Schema:
    return members(
        enabled=flag(),
        relays=list_of(one_of(Server.Relay.values), "What it may ask of agents."),
        wanted_revision=one_of(Server.Revision.values, "Empty: the newest."),
        methods=list_of(text(100, least=1), "Methods of extensions."),
        results=_results(),
    )


def _results() -> Schema:
    return members(
        schema=one_of(SchemaCheck),
        hidden=one_of(HiddenText),
        secrets=flag(),
        personal=flag(),
        tracebacks=flag(),
        max_bytes=whole(LEAST_BYTES, MOST_BYTES, nullable=True),
        links=flag(),
        hosts=text(1_000),
        marking=one_of(Marking),
        patterns=text(10_000),
    )


def tool() -> Schema:
    choice = one_of(["yes", "no", HINTED])
    return members(labels=members((), **{label.value: choice for label in Label}))
