"""The first row of what is asked for: made anew, or from what is known of calls just like it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from accounts.tokens import Bearer
from calls.models import Call
from calls.record.new_call import NewCall, NewCallTemplate
from calls.record.statements import statement
from calls.record.states import State
from core.journal import PreparedLine
from gateway.call_request import NO_ARGUMENTS, CallRequest, claimed_key, is_guarded
from policies.decide import Decision
from registry.publishing.published_catalogue import PublishedTool

NAME_MAX = 200
REMEMBERED = 2_000


@dataclass(frozen=True, slots=True)
class _Known:
    # The very same, and not only by name: between two snapshots names may change.
    bearer: Bearer
    tool: PublishedTool
    decision: Decision
    usual: NewCallTemplate


class NewCallCache:
    """Of calls that run at once. An agent's next call of a tool differs from its last in little:
    all else is written as JSON once, as long as the configuration stays what it is."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], _Known] = {}

    def line(
        self, call_request: CallRequest, tool: PublishedTool, decision: Decision, owner: str
    ) -> Mapping[str, Any] | PreparedLine:
        options = call_request.options
        special = call_request.again or options.abilities or options.trace or call_request.grant
        if special or claimed_key(call_request):
            return opening(call_request, State.RUNNING, decision, owner=owner).line()
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
        made = opening(call_request, State.RUNNING, decision, owner=owner)
        known = self._known[place] = _Known(
            call_request.bearer, tool, decision, NewCallTemplate(made.line())
        )
        return known


def opening(
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
        outcome=reason if state == State.REFUSED else "",
        revision=call_request.revision,
        client=storable(call_request.client)[:NAME_MAX],
        request_key=call_request.request_key,
        lease_owner=owner,
        details=_details(call_request, decision)
        | call_request.options.details(for_workers=state in (State.HELD, State.QUEUED)),
        once=key.id if state != State.REFUSED and (key := claimed_key(call_request)) else None,
        guarded=inline and call_request.grant is None and is_guarded(call_request),
        grant_id=call_request.grant.id if call_request.grant else None,
        statement=_statement(call_request) if state in (State.HELD, State.QUEUED) else "",
        decide_within_s=decision.decide_within_s if decision else None,
        start_within_s=decision.start_within_s if decision else None,
    )


def _details(call_request: CallRequest, decision: Decision | None) -> dict[str, Any]:
    details: dict[str, Any] = {"would": decision.would} if decision and decision.would else {}
    if call_request.grant is not None:
        details |= {"grant": call_request.grant.id, "granted_by": call_request.grant.owner}
    if call_request.key:
        details["idempotency_key"] = call_request.key
    if call_request.again:
        details["again"] = str(call_request.repeats or "")
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
    )


def storable(text: str) -> str:
    """What an agent says of itself, fit for a text column."""
    return text.replace("\0", "�").encode(errors="replace").decode()
