"""The first row of what is asked for: made anew, or from what is known of calls just like it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

from accounts.tokens import Bearer
from calls.models import Call
from calls.opening import Opening, Usual
from calls.statements import statement
from calls.states import State
from core.journal import Written
from gateway.asked import NO_ARGUMENTS, Ask, is_guarded, once
from policies.decide import Decision
from registry.published import PublishedTool

NAME_MAX = 200
REMEMBERED = 2_000


@dataclass(frozen=True, slots=True)
class _Known:
    # The very same, and not only by name: between two snapshots names may change.
    bearer: Bearer
    tool: PublishedTool
    decision: Decision
    usual: Usual


class Openings:
    """Of calls that run at once. An agent's next call of a tool differs from its last in little:
    all else is written as JSON once, as long as the configuration stays what it is."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], _Known] = {}

    def line(
        self, ask: Ask, tool: PublishedTool, decision: Decision, owner: str
    ) -> Mapping[str, Any] | Written:
        if not _is_usual(ask):
            return opening(ask, State.RUNNING, decision, owner=owner).line()
        token, slug = ask.bearer.token_id, ask.toolset.slug
        place = (token, tool.tool_id, slug, *_said(ask), owner)
        known = self._known.get(place)
        if (
            known is None
            or known.bearer is not ask.bearer
            or known.tool is not tool
            or known.decision is not decision
        ):
            known = self._remember(place, ask, tool, decision, owner)
        return known.usual.written(ask.call_id, ask.arguments or NO_ARGUMENTS, ask.request_key)

    def _remember(
        self, place: tuple[Any, ...], ask: Ask, tool: PublishedTool, decision: Decision, owner: str
    ) -> _Known:
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        made = opening(ask, State.RUNNING, decision, owner=owner)
        known = self._known[place] = _Known(ask.bearer, tool, decision, Usual(made.line()))
        return known


def _said(ask: Ask) -> tuple[Any, ...]:
    """What a client says of itself, in what stands of it in the first row and its entry."""
    return ask.client, ask.revision, ask.origin, ask.takes_tasks


def _is_usual(ask: Ask) -> bool:
    special = ask.key or ask.again or ask.abilities or ask.trace or ask.grant is not None
    return not special and once(ask) is None


def opening(
    ask: Ask, state: State, decision: Decision | None, *, reason: str = "", owner: str = ""
) -> Opening:
    tool = ask.tool
    inline = state == State.RUNNING
    return Opening(
        id=ask.call_id,
        agent_id=ask.bearer.agent_id,
        agent=ask.bearer.agent_name,
        token_id=ask.bearer.token_id or None,
        person_id=ask.bearer.person_id,
        person=ask.bearer.person_name,
        toolset=ask.toolset.slug,
        server_id=tool.server_id if tool else None,
        server=tool.server_slug if tool else "",
        tool_id=tool.tool_id if tool else None,
        definition_id=tool.definition_id if tool else None,
        definition_digest=tool.digest if tool else "",
        tool_name=storable(tool.exposed_name if tool else ask.tool_name)[:NAME_MAX],
        arguments=ask.arguments or NO_ARGUMENTS,
        origin=ask.origin,
        mode=Call.Mode.INLINE if inline else Call.Mode.BACKGROUND,
        effect=decision.effect if decision else "",
        rule_id=decision.rule_id if decision else None,
        rule=decision.rule if decision else "",
        reason=reason or _reason(ask, decision),
        state=state,
        outcome=reason if state == State.REFUSED else "",
        revision=ask.revision,
        client=storable(ask.client)[:NAME_MAX],
        request_key=ask.request_key,
        lease_owner=owner,
        details=_details(ask, decision) | _for_workers(ask, state),
        once=key.id if state != State.REFUSED and (key := once(ask)) else None,
        guarded=inline and ask.grant is None and is_guarded(ask),
        grant_id=ask.grant.id if ask.grant else None,
        statement=_statement(ask) if state in (State.HELD, State.QUEUED) else "",
        decide_within_s=decision.decide_within_s if decision else None,
        start_within_s=decision.start_within_s if decision else None,
    )


def _details(ask: Ask, decision: Decision | None) -> dict[str, Any]:
    details: dict[str, Any] = {"would": decision.would} if decision and decision.would else {}
    if ask.abilities:
        details["answers"] = ask.abilities
    if ask.takes_tasks:
        details["tasks"] = True
    if ask.trace:
        details["trace"] = ask.trace
    if ask.grant is not None:
        details |= {"grant": ask.grant.id, "granted_by": ask.grant.owner}
    if ask.key:
        details["idempotency_key"] = ask.key
    if ask.again:
        details["again"] = str(ask.repeats or "")
    return details


def _for_workers(ask: Ask, state: State) -> dict[str, Any]:
    """What whoever runs it later has to know of the client, beside what it can be asked."""
    if state not in (State.HELD, State.QUEUED):
        return {}
    wishes = {"log_level": ask.log_level, "session": ask.session}
    return {name: wish for name, wish in wishes.items() if wish}


def _reason(ask: Ask, decision: Decision | None) -> str:
    if ask.grant is not None:
        said = _("Granted by %(who)s in advance (grant %(id)d).")
        return said % {"who": ask.grant.owner, "id": ask.grant.id}
    return decision.reason if decision else ""


def _statement(ask: Ask) -> str:
    assert ask.tool is not None
    return statement(
        agent=(ask.bearer.agent_id, ask.bearer.agent_name),
        person=(ask.bearer.person_id, ask.bearer.person_name),
        tool=ask.tool,
        arguments=ask.arguments or NO_ARGUMENTS,
    )


def storable(text: str) -> str:
    """What an agent says of itself, fit for a text column."""
    return text.replace("\0", "�").encode(errors="replace").decode()
