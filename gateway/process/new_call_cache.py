"""The first row of what is asked for: made anew, or from what is known of calls just like it."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson

from accounts.tokens import Bearer
from calls.models import Call
from calls.record.new_call import NewCall
from calls.record.statements import statement
from calls.record.states import NOT_SENT, State
from calls.record.transitions import OPEN
from calls.record.usual_calls import OPEN_USUAL
from core.english import gettext as _
from core.journal import Line, PreparedLine, Statement
from gateway.call_request import NO_ARGUMENTS, CallRequest, claimed_key, is_guarded, owner_for
from policies.decide import Decision
from registry.publishing.published_tools import PublishedTool

NAME_MAX = 200
REMEMBERED = 2_000


# What the numbers of names say, and what all calls that begin to run have alike.
IMPLIED = {"agent", "person", "server", "definition_digest", "rule"}
IMPLIED |= {"state", "outcome", "statement", "call_digest"}


class NewCallTemplate:
    """The JSON that an agent's calls of one tool share. They differ in the call id, the arguments
    and the client's request id."""

    __slots__ = ("_line", "_rest", "_statement")

    def __init__(self, line: dict[str, Any]) -> None:
        varying = ("id", "arguments", "arguments_digest", "request_key")
        self._line = {name: value for name, value in line.items() if name not in varying}
        self._rest = orjson.dumps(self._line)[1:]
        self._statement = OPEN

    def learn(self, names: list[int | None]) -> None:
        """Replaces texts by the numbers of their names, which the first call's commit returned."""
        line = self._line.items()
        rest = {name: said for name, said in line if name not in IMPLIED and said not in (None, {})}
        self._rest = orjson.dumps({**rest, "names": names})[1:]
        self._statement = OPEN_USUAL

    def written(
        self, call_id: UUID, arguments: bytes, request_key: str
    ) -> tuple[Statement, TemplateLine]:
        id_ = str(call_id)
        json = b'{"id":"%b","arguments":%b,"arguments_digest":"%b","request_key":%b,%b' % (
            id_.encode(),
            orjson.dumps(arguments.decode()),
            hashlib.sha256(arguments).hexdigest().encode(),
            orjson.dumps(request_key),
            self._rest,
        )
        return self._statement, TemplateLine(id_, json, self)


@dataclass(frozen=True, slots=True)
class TemplateLine(PreparedLine):
    """One that a template wrote, which may learn from what becomes of it."""

    template: NewCallTemplate


@dataclass(frozen=True, slots=True)
class _Known:
    # The very same, and not only by name: between two snapshots names may change.
    bearer: Bearer
    tool: PublishedTool
    decision: Decision
    usual: NewCallTemplate


class NewCallCache:
    """Templates of inline calls, by agent and tool, as long as the configuration stays the same."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], _Known] = {}

    def line(
        self, call_request: CallRequest, tool: PublishedTool, decision: Decision, owner: str
    ) -> Line:
        options = call_request.options
        repeats = call_request.allow_duplicate or call_request.is_separate
        is_special = repeats or call_request.grant or claimed_key(call_request)
        if is_special or call_request.uses or options.abilities or options.trace:
            return OPEN, make_new_call(call_request, State.RUNNING, decision, owner=owner).line()
        place = (
            *(call_request.bearer.token_id, tool.tool_id, call_request.toolset.slug),
            # What a client says of itself, in what stands of it in the first row and its entry.
            *(call_request.client, call_request.revision, call_request.origin),
            *(options.takes_tasks, owner),
        )
        known = self._known.get(place)
        if (
            known is None
            or known.bearer is not call_request.bearer
            or known.tool is not tool
            or known.decision is not decision
        ):
            known = self._remember(place, call_request, tool, decision, owner)
        return known.usual.written(
            call_request.call_id, call_request.arguments or NO_ARGUMENTS, call_request.request_key
        )

    def _remember(
        self,
        place: tuple[Any, ...],
        call_request: CallRequest,
        tool: PublishedTool,
        decision: Decision,
        owner: str,
    ) -> _Known:
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        made = make_new_call(call_request, State.RUNNING, decision, owner=owner)
        known = self._known[place] = _Known(
            call_request.bearer, tool, decision, NewCallTemplate(made.line())
        )
        return known


def make_new_call(
    call_request: CallRequest,
    state: State,
    decision: Decision | None,
    *,
    reason: str = "",
    owner: str = "",
) -> NewCall:
    tool = call_request.tool
    inline = state == State.RUNNING
    return NewCall(
        id=call_request.call_id,
        agent_id=call_request.bearer.agent_id,
        agent=call_request.bearer.agent_name,
        token_id=call_request.bearer.token_id or None,
        person_id=call_request.bearer.person_id,
        person=call_request.bearer.person_name,
        toolset=call_request.toolset.slug,
        server_id=tool.server_id if tool else None,
        server=tool.server_slug if tool else "",
        tool_id=tool.tool_id if tool else None,
        definition_id=tool.definition_id if tool else None,
        definition_digest=tool.digest if tool else "",
        tool_name=storable(tool.exposed_name if tool else call_request.tool_name)[:NAME_MAX],
        arguments=call_request.arguments or NO_ARGUMENTS,
        origin=call_request.origin,
        mode=Call.Mode.INLINE if inline else Call.Mode.BACKGROUND,
        effect=decision.effect if decision else "",
        rule_id=decision.rule_id if decision else None,
        rule=decision.rule if decision else "",
        reason=reason or _reason(call_request, decision),
        state=state,
        outcome=reason if state in NOT_SENT else "",
        revision=call_request.revision,
        client=storable(call_request.client)[:NAME_MAX],
        request_key=call_request.request_key,
        lease_owner=owner,
        details=_details(call_request, decision)
        | call_request.options.details(for_workers=state in (State.HELD, State.QUEUED)),
        once=key.id if state not in NOT_SENT and (key := claimed_key(call_request)) else None,
        guarded=inline and call_request.grant is None and is_guarded(call_request),
        separate=call_request.is_separate,
        grant_id=call_request.grant.id if call_request.grant else None,
        reserves=state not in NOT_SENT and bool(call_request.uses),
        statement=_statement(call_request) if state in (State.HELD, State.QUEUED) else "",
        decide_within_s=decision.decide_within_s if decision else None,
        start_within_s=decision.start_within_s if decision else None,
    )


def _details(call_request: CallRequest, decision: Decision | None) -> dict[str, Any]:
    details: dict[str, Any] = (
        {"would": decision.shadow_effect} if decision and decision.shadow_effect else {}
    )
    if signed_in := call_request.bearer.signed_in:
        details["signed_in"] = signed_in.details()
    if call_request.tool is not None and call_request.tool.connection.credential_of:
        owner = owner_for(call_request.bearer, call_request.tool.connection)
        details["credential"] = {"owner": owner.label}
    if call_request.credential is not None:
        details["credential"] = details.get("credential", {}) | call_request.credential
    if call_request.grant is not None:
        details |= {"grant": call_request.grant.id, "granted_by": call_request.grant.owner}
    if call_request.key:
        details["idempotency_key"] = call_request.key
    if call_request.allow_duplicate:
        details["again"] = str(call_request.duplicate_of or "")
    return details


def _reason(call_request: CallRequest, decision: Decision | None) -> str:
    if call_request.grant is not None:
        said = _("Standing approval %(id)d of %(who)s.")
        return said % {"who": call_request.grant.owner, "id": call_request.grant.id}
    return decision.reason if decision else ""


def _statement(call_request: CallRequest) -> str:
    assert call_request.tool is not None
    return statement(
        agent=(call_request.bearer.agent_id, call_request.bearer.agent_name),
        person=(call_request.bearer.person_id, call_request.bearer.person_name),
        tool=call_request.tool,
        arguments=call_request.arguments or NO_ARGUMENTS,
        credential_owner=owner_for(call_request.bearer, call_request.tool.connection),
    )


def storable(text: str) -> str:
    """Text of an agent, fit for a text column."""
    return text.replace("\0", "�").encode(errors="replace").decode()
