"""What is asked for, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID

from accounts.tokens import Bearer
from approvals.grants import StandingGrant
from calls.content.answers import Answer
from calls.record.call_options import NO_OPTIONS, CallOptions
from calls.record.idempotency import ClaimedKey, given, guarding
from calls.record.new_call import digest
from calls.record.states import State
from calls.running.listeners import EarlyReply
from core.ids import uuid7
from policies.decide import Subject
from registry.models import Tool
from registry.publishing.published_catalogue import PublishedTool, PublishedToolset, Violation

NO_ARGUMENTS = b"{}"


# Not frozen: made for every call, and setting fields past the guard costs three times as much.
@dataclass(slots=True)
class CallRequest:
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
    options: CallOptions = NO_OPTIONS
    # It is to be a task of 2025-11-25, which its agent may list.
    as_task: bool = False
    # Answers before any question, as the client sent them: for a server that keeps no state.
    responses: bytes = b""
    # Its client can be given something else than the result: questions, or a task.
    may_reply_early: bool = False
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
class SubmitResult:
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
    early_reply: EarlyReply | None = None


def with_fixed_arguments(call_request: CallRequest) -> tuple[CallRequest, list[Violation]]:
    """With the arguments that its toolset fixes, so that people see and decide what is sent; and
    what of them the agent wants otherwise."""
    tool = call_request.tool
    if tool is None or tool.tool_id not in call_request.toolset.shown:
        return call_request, []
    whole, parsed, differing = call_request.toolset.how(tool).put_in(
        call_request.arguments, call_request.parsed
    )
    return (
        call_request
        if whole is call_request.arguments
        else replace(call_request, arguments=whole, parsed=parsed)
    ), differing


def claimed_key(call_request: CallRequest) -> ClaimedKey | None:
    """The key that it takes: the agent's, or one of all calls that are the same."""
    if call_request.key:
        return given(call_request.bearer.agent_id, call_request.key)
    tool = call_request.tool
    if tool is None or call_request.again or tool.repeats != Tool.Repeats.GUARD or tool.is_harmless:
        return None
    return guarding(
        call_request.bearer.agent_id, tool.tool_id, digest(call_request.arguments or NO_ARGUMENTS)
    )


def is_guarded(call_request: CallRequest) -> bool:
    """Not to be sent while nobody knows that the agent heard what became of the same before."""
    tool = call_request.tool
    return (
        tool is not None
        and tool.repeats == Tool.Repeats.AUTO
        and not (tool.is_harmless or call_request.again or call_request.key)
    )


def subject(call_request: CallRequest, tool: PublishedTool) -> Subject:
    return Subject(
        agent_id=call_request.bearer.agent_id,
        agent=call_request.bearer.agent_name,
        groups=call_request.bearer.groups,
        definition_id=tool.definition_id,
        server=tool.server_slug,
        tool=tool.name,
        hints=tool.hints,
        owner=call_request.bearer.person_name,
        arguments=call_request.parsed,
        size=len(call_request.arguments),
        exposed=tool.exposed_name,
        tags=tool.tags,
    )
