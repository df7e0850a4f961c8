"""What is asked for, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from accounts.tokens import Bearer
from approvals.grants import StandingGrant
from calls.answers import Answer
from calls.heard import Turned
from calls.opening import digest
from calls.repeats import Key, given, guarding
from calls.states import State
from core.ids import uuid7
from policies.decide import Subject
from registry.models import Tool
from registry.published import PublishedTool, PublishedToolset, Violation

NO_ARGUMENTS = b"{}"


# Not frozen: made for every call, and setting fields past the guard costs three times as much.
@dataclass(slots=True)
class Ask:
    """What an agent asks for, parsed and not yet judged. `tool` is None for an unknown one."""

    bearer: Bearer
    toolset: PublishedToolset
    tool: PublishedTool | None
    tool_name: str
    arguments: bytes
    parsed: Any
    origin: str
    revision: str = ""
    client: str = ""
    request_key: str = ""
    # Set by surfaces that may not run calls themselves, such as commands that end at once.
    background: bool = False
    # Why people are to decide even where rules would allow it.
    hold_for: str = ""
    # A person's yes in advance, which lets it run where rules ask.
    grant: StandingGrant | None = None
    # What its client can be asked for the server, in words of core.abilities.
    abilities: tuple[str, ...] = ()
    # Whoever asks can follow a task, so that the server may make one of it.
    takes_tasks: bool = False
    # It is to be a task of 2025-11-25, which its agent may list.
    as_task: bool = False
    # Answers before any question, as the client sent them: for a server that keeps no state.
    responses: bytes = b""
    # Its client can be given something else than the result: questions, or a task.
    may_turn: bool = False
    # As which least important line of its server's log it wants to hear; "": not at all.
    log_level: str = ""
    # Where it may hear that a page is done with: the key of its session; "": nowhere.
    session: str = ""
    # The trace that it belongs to, in the members of W3C Trace Context.
    trace: Mapping[str, str] = field(default_factory=dict)
    # The agent's own, by which it may ask again and again for this one call.
    key: str = ""
    # Meant, although it is the same as a call before: the id of that, once it is known.
    again: bool = False
    repeats: UUID | None = None
    # What is wrong with its arguments beyond their schema.
    wrong: tuple[Violation, ...] = ()
    # Who asks cannot wait for people: where they would have to decide, it is refused.
    at_once: bool = False
    # Known beforehand, so that whoever asks can cancel while it is still being answered.
    call_id: UUID = field(default_factory=uuid7)


@dataclass(slots=True)
class Submitted:
    """`answer` once the call has ended.

    `refusal`: "", "unknown_tool", "invalid", "frozen", "policy" or "key". `joined`: what was asked
    for is a call that there was before.
    """

    call_id: UUID
    state: State
    answer: Answer | None = None
    joined: bool = False
    refusal: str = ""
    reason: str = ""
    violations: list[Violation] = field(default_factory=list)
    # Why there is no answer yet: it asked its agent something, or goes on as a task.
    turned: Turned | None = None


def fitted(ask: Ask) -> tuple[Ask, list[Violation]]:
    """With the arguments that its toolset fixes, so that people see and decide what is sent; and
    what of them the agent wants otherwise."""
    if ask.tool is None:
        return ask, []
    whole, parsed, differing = ask.toolset.how(ask.tool).put_in(ask.arguments, ask.parsed)
    return (
        ask if whole is ask.arguments else replace(ask, arguments=whole, parsed=parsed)
    ), differing


def once(ask: Ask) -> Key | None:
    """The key that it takes: the agent's, or one of all calls that are the same."""
    if ask.key:
        return given(ask.bearer.agent_id, ask.key)
    tool = ask.tool
    if tool is None or ask.again or tool.repeats != Tool.Repeats.GUARD or tool.safe_to_repeat:
        return None
    return guarding(ask.bearer.agent_id, tool.tool_id, digest(ask.arguments or NO_ARGUMENTS))


def is_guarded(ask: Ask) -> bool:
    """Not to be sent while nobody knows that the agent heard what became of the same before."""
    tool = ask.tool
    return (
        tool is not None
        and tool.repeats == Tool.Repeats.AUTO
        and not (tool.safe_to_repeat or ask.again or ask.key)
    )


def subject(ask: Ask, tool: PublishedTool) -> Subject:
    return Subject(
        agent_id=ask.bearer.agent_id,
        agent=ask.bearer.agent_name,
        groups=ask.bearer.groups,
        definition_id=tool.definition_id,
        server=tool.server_slug,
        tool=tool.name,
        hints=tool.hints,
        owner=ask.bearer.person_name,
        arguments=ask.parsed,
        size=len(ask.arguments),
        exposed=tool.exposed_name,
        tags=tool.tags,
    )
