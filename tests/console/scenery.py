"""People, servers, tools and calls as pages find them, made by the product's own verbs."""

from datetime import timedelta
from functools import cache
from typing import Any
from uuid import UUID

import orjson
from django.contrib.auth.hashers import get_hasher, make_password
from django.contrib.auth.models import Group
from django.db import connection, transaction
from django.utils import timezone

from accounts.models import Agent, User
from accounts.roles import Role
from approvals.models import Approval
from approvals.services import ASK, approval_line
from audit.services import SYSTEM
from calls.models import Call
from calls.record.new_call import NewCall
from calls.record.statements import statement
from calls.record.states import Executed, State
from calls.record.transitions import MOVE, OPEN, Move, Outcome, ending, move_now
from core.ids import uuid7
from core.journal import Statement
from policies.decide import Decision
from policies.models import Effect, Rule
from policies.thresholds import DEFAULT, Threshold
from registry import services
from registry.models import Item, Server, Tool, Toolset
from registry.models.versioned import Sighting
from registry.publishing import published_catalogue
from registry.schemas import definitions
from registry.versions import item_versions, tool_versions
from tests.publishing import publish_as_read, publish_items_as_read

PASSWORD = "correct horse battery staple"
TOOLSET = "office"

SEND = {
    "name": "send_mail",
    "title": "Send a mail",
    "description": "Sends one mail from the office's address.\nThe recipient sees it at once.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "to": {
                "type": "array",
                "items": {"type": "string", "format": "email"},
                "minItems": 1,
                "description": "Who gets it.",
            },
            "subject": {"type": "string", "maxLength": 200, "description": "One line."},
            "body": {"type": "string", "description": "Plain text."},
            "options": {
                "type": "object",
                "description": "How it is sent.",
                "properties": {
                    "priority": {"enum": ["low", "normal", "high"], "default": "normal"},
                    "copies": {"type": "integer", "minimum": 1, "maximum": 5, "default": 1},
                },
            },
        },
        "required": ["to", "subject", "body"],
        "additionalProperties": False,
    },
    "annotations": {"destructiveHint": True, "openWorldHint": True, "readOnlyHint": False},
}
ADD = {
    "name": "add",
    "description": "Adds two numbers.",
    "inputSchema": {
        "type": "object",
        "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
        "required": ["a", "b"],
    },
    "annotations": {"readOnlyHint": True, "idempotentHint": True},
}
MAIL = {
    "to": ["ana@example.org"],
    "subject": "Minutes of Tuesday",
    "body": "Hello Ana,\n\nthe minutes are attached.",
    "options": {"priority": "high"},
}


@cache
def _encoded(password: str | None, algorithm: str) -> str:
    # Once: it costs a fifth of a second, on purpose.
    return make_password(password, hasher=algorithm)


def person(name: str, *roles: Role, password: str | None = None) -> User:
    """Without a password, unless one is needed."""
    made = User(username=name, password=_encoded(password, get_hasher().algorithm))
    made.save()
    made.groups.add(*Group.objects.filter(name__in=roles))
    return made


def server(slug: str, owner: User, *tools: dict[str, Any], publish: bool = True) -> Server:
    made = services.register(
        slug, transport="http", url="http://127.0.0.1:9/mcp", owner=owner, by=owner
    )
    for content in tools:
        see(made, content)
    if publish:
        publish_as_read(made, by=owner)
    return made


def see(offering: Server, content: dict[str, Any]) -> Tool:
    """What discovery does with one tool of a server's list."""
    tool, _made = Tool.objects.get_or_create(
        server=offering,
        name=content["name"],
        defaults={"exposed_name": f"{offering.slug}.{content['name']}"},
    )
    digest = definitions.digest(services.identity_of(offering), content)
    tool_versions.see_all([Sighting(tool, digest, definitions.body(content))], by=SYSTEM)
    tool.refresh_from_db()
    return tool


def shelve(offering: Server, kind: Item.Kind, *contents: dict[str, Any], publish: bool) -> None:
    """What discovery does with what a server lists beside its tools."""
    with transaction.atomic():
        shelf = item_versions.ItemSync(offering, kind, services.identity_of(offering))
        for content in contents:
            shelf.take(content)
        shelf.see(by=SYSTEM)
    if publish:
        publish_items_as_read(offering, by=offering.owner)


def offered(agent: Agent, tool: Tool) -> Tool:
    """The tool, which the agent gets by the toolset that `call` names."""
    toolset, _made = Toolset.objects.get_or_create(slug=TOOLSET)
    toolset.agents.add(agent)
    toolset.tools.add(tool)
    return tool


def _rule_called(name: str) -> int | None:
    """Else the rule's own page knows nothing of a call that names it."""
    found = Rule.objects.filter(name=name).first() if name else None
    return found.pk if found else None


def call(agent: Agent, tool: Tool, arguments: Any, state: State, **changes: Any) -> UUID:
    """A call's first row, as the gateway writes it; a held one with its approval."""
    thresholds: tuple[Threshold, ...] = changes.pop("thresholds", DEFAULT)
    pending_min: int = changes.pop("pending_min", 0)
    values: dict[str, Any] = {
        "id": uuid7(),
        "agent_id": agent.pk,
        "agent": agent.name,
        "token_id": None,
        "person_id": agent.owner_id,
        "person": agent.owner.username,
        "toolset": TOOLSET,
        "server_id": tool.server_id,
        "server": tool.server.slug,
        "tool_id": tool.pk,
        "definition_id": tool.latest_id,
        "definition_digest": tool.latest.digest if tool.latest else "",
        "tool_name": tool.exposed_name,
        "arguments": orjson.dumps(arguments),
        "origin": "mcp",
        "mode": "background",
        "effect": "ask" if state == State.HELD else "allow",
        "rule_id": _rule_called(str(changes.get("rule", ""))),
        "rule": "",
        "reason": "No rule covers this call, so a person decides.",
        "state": state,
        "statement": _statement(agent, tool, orjson.dumps(arguments)),
    }
    opening = NewCall(**{**values, **changes})
    write(OPEN, opening.line())
    if state == State.HELD:
        if "toolset" not in changes:
            # Else no vote could let it be sent.
            offered(agent, tool)
        asked = Decision(
            Effect.ASK,
            None,
            "",
            opening.reason,
            thresholds=thresholds,
            shows_arguments=_rules_show_arguments(),
        )
        line = approval_line(opening.id, asked)
        if pending_min:
            _ask_earlier(line, pending_min)
        else:
            write(ASK, line)
    return opening.id


def _rules_show_arguments() -> bool:
    asking = Rule.objects.filter(effect=Effect.ASK, mode=Rule.Mode.ENFORCE)
    return asking.exists() and not asking.filter(shows_arguments=False).exists()


def _ask_earlier(line: dict[str, Any], minutes: int) -> None:
    """The approval of a call that has been pending for so long."""
    asked_at = timezone.now() - timedelta(minutes=minutes)
    after = line.pop("widens_in_min")
    Approval.objects.create(
        call_id=line.pop("id"),
        asked_at=asked_at,
        decide_by=timezone.now() + timedelta(hours=1),
        widens_at=asked_at + timedelta(minutes=after) if after else None,
        **line,
    )


def _statement(agent: Agent, tool: Tool, arguments: bytes) -> str:
    offered = published_catalogue.one(tool.pk)
    if offered is None:
        return ""
    owner = (agent.owner.pk, agent.owner.username)
    return statement(agent=(agent.pk, agent.name), person=owner, tool=offered, arguments=arguments)


def run(call_id: UUID) -> None:
    assert move_now(Move(call_id, State.QUEUED, State.RUNNING, SYSTEM))


def finish(call_id: UUID, result: Any, state: State = State.SUCCEEDED, said: str = "") -> None:
    """What execution writes at the end, for a call that runs. `result`: None where none came."""
    fence = Call.objects.get(pk=call_id).fence
    body = None if result is None else orjson.dumps(result)
    is_answered = state in (State.SUCCEEDED, State.TOOL_ERROR)
    outcome = Outcome(state, said, Executed.YES if is_answered else Executed.UNKNOWN, body)
    assert write(MOVE, ending(call_id, fence, outcome, SYSTEM))


def write(statement: Statement, line: dict[str, Any]) -> bool:
    """What the journal writes, of one line alone."""
    with connection.cursor() as cursor:
        cursor.execute(statement.sql, statement.of_one(line))
        return cursor.fetchone() is not None
