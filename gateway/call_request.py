"""The one request that every door hands to `submit`, and the result that it gets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from uuid import UUID

from accounts.tokens import Bearer
from approvals.grants import StandingGrant
from calls.content.answers import Answer
from calls.record.call_options import NO_OPTIONS, CallOptions
from calls.record.idempotency import ClaimedKey, agent_key, duplicate_key
from calls.record.new_call import digest
from calls.record.reservations import Reservation
from calls.record.states import State
from calls.running.listeners import EarlyReply
from policies.decide import Subject
from policies.limits.compiled import CompiledLimit, CounterKey, LimitReached, TakenUses
from registry.connections import ServerConnection
from registry.models import CredentialOwner
from registry.publishing.published_tools import PublishedTool, PublishedToolset, Violation
from registry.schemas.argument_names import restored

NO_ARGUMENTS = b"{}"


class CallRequest(NamedTuple):
    """A parsed call, before rules decide on it: who, tool, arguments, options.

    A named tuple, since one is made for every call: a frozen dataclass takes twice as long to make
    (docs/en/contributing/dependencies.md).
    """

    # Chosen before the call is recorded, so that its agent can cancel it meanwhile.
    call_id: UUID
    bearer: Bearer
    toolset: PublishedToolset
    # None: there is no such tool.
    tool: PublishedTool | None
    tool_name: str
    arguments: bytes
    parsed: Any
    origin: str
    revision: str = ""
    client: str = ""
    request_key: str = ""
    # A worker runs it: for commands, which end before the call does.
    background: bool = False
    # The reason to hold the call for approval where rules would allow it; "": none.
    hold_for: str = ""
    # False: a call that needs approval is denied, since its client cannot wait.
    may_hold: bool = True
    # The standing approval that lets it run, once one is found.
    grant: StandingGrant | None = None
    options: CallOptions = NO_OPTIONS
    # The agent wants a task of 2025-11-25, which it may list.
    as_task: bool = False
    # `inputResponses` of a first request, as JSON: for a server that keeps no state.
    responses: bytes = b""
    # The client understands input requests or tasks in place of the result.
    may_reply_early: bool = False
    # The agent's idempotency key; "": none.
    key: str = ""
    # The agent wants it run although it equals an earlier call; the id of that, once found.
    allow_duplicate: bool = False
    duplicate_of: UUID | None = None
    # A call of its own whatever equals it, but for its key: its program acts upon it by itself.
    is_separate: bool = False
    # Violations that the schema cannot express.
    extra_violations: tuple[Violation, ...] = ()
    # What was taken of rates for it; what it reserves of exact limits in the commit that opens it.
    is_metered: bool = False
    taken: tuple[TakenUses, ...] = ()
    exact: tuple[tuple[CompiledLimit, CounterKey], ...] = ()
    uses: tuple[Reservation, ...] = ()
    # The soft limits that are reached, as a sentence for approvers; "": none.
    over: str = ""
    # Those that only warn, each once it was found to be reached: some in the commit that opens it.
    warnings: list[LimitReached] | None = None
    # Which credential it carries, for its entry: id, generation, issuer; None: none, or not known.
    credential: dict[str, Any] | None = None


@dataclass(slots=True)
class SubmitResult:
    """`answer` once the call has ended.

    `refusal`: "", "unknown_tool", "invalid", "frozen", "policy", "limit", "sign_in", "scope"
    or "key". `joined`: an
    earlier call answers this request.
    """

    call_id: UUID
    state: State
    answer: Answer | None = None
    joined: bool = False
    refusal: str = ""
    reason: str = ""
    violations: list[Violation] = field(default_factory=list)
    # Why there is no answer yet: the server asked for input, or made a task of the call.
    early_reply: EarlyReply | None = None
    # The limit that was in its way.
    reached: LimitReached | None = None
    # Limits that only warn, and were reached.
    warnings: tuple[LimitReached, ...] = ()


def with_fixed_arguments(call_request: CallRequest) -> tuple[CallRequest, list[Violation]]:
    """Adds the arguments that the toolset fixes, so that people see and decide what is sent. The
    violations are fixed arguments that the agent gave another value."""
    tool = call_request.tool
    if tool is not None and tool.shape.stand_ins:
        call_request = _with_own_names(call_request, tool.shape.stand_ins)
    if tool is None or tool.tool_id not in call_request.toolset.shown:
        return call_request, []
    whole, parsed, differing = call_request.toolset.override_for(tool).put_in(
        call_request.arguments, call_request.parsed
    )
    if whole is not call_request.arguments:
        call_request = call_request._replace(arguments=whole, parsed=parsed)
    return call_request, differing


def _with_own_names(call_request: CallRequest, names: Mapping[str, str]) -> CallRequest:
    """The names that its server knows, for arguments that a tool list had to rename."""
    written, parsed = restored(call_request.arguments, call_request.parsed, names)
    return call_request._replace(arguments=written, parsed=parsed)


def claimed_key(call_request: CallRequest) -> ClaimedKey | None:
    """The agent's idempotency key, or the key that all duplicates of the call share."""
    if call_request.key:
        return agent_key(call_request.bearer.agent_id, call_request.key)
    tool = call_request.tool
    if tool is None or not tool.claims_duplicate_key:
        return None
    if call_request.allow_duplicate or call_request.is_separate:
        return None
    return duplicate_key(
        call_request.bearer.agent_id, tool.tool_id, digest(call_request.arguments or NO_ARGUMENTS)
    )


def is_guarded(call_request: CallRequest) -> bool:
    """Not sent while an earlier duplicate may have run without its outcome being delivered."""
    tool = call_request.tool
    return (
        tool is not None
        and tool.blocks_undelivered
        and not (call_request.key or call_request.allow_duplicate or call_request.is_separate)
    )


def owner_for(bearer: Bearer, connection: ServerConnection) -> CredentialOwner:
    """Whose credential a call of this agent carries, where it is not the shared one."""
    person = (bearer.person_id, bearer.person_name)
    agent = (bearer.agent_id, bearer.agent_name)
    return connection.owner(person=person, team=bearer.team, agent=agent)


def subject(call_request: CallRequest, tool: PublishedTool) -> Subject:
    signed_in = call_request.bearer.signed_in
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
        labels=tool.labels,
        credential=owner_for(call_request.bearer, tool.connection).label
        if tool.connection.credential_of
        else "",
        client=signed_in.client_id if signed_in else "",
        token_groups=signed_in.groups if signed_in else (),
    )
