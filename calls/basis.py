"""The facts that a waiting call was decided on, and which of them changed since."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import orjson
from django.utils import timezone

from accounts.models import AgentToken
from accounts.tokens import recorded_groups
from audit.models import Entry
from audit.services import SYSTEM
from calls.configuration import CURRENT, CallConfiguration
from calls.models import Call
from calls.record.refusal import AGAIN, RetryAdvice, of_policy
from calls.record.statements import differences, statement
from calls.record.states import Executed, State
from calls.record.transitions import Move
from core.english import gettext as _
from policies import decide, lookback
from policies.decide import Decision, RuleBook
from policies.limits.compiled import CallParties
from policies.models import Effect
from registry.connections import Commands, Unreachable, connection
from registry.credentials.owners import owner_for
from registry.models import Server, Tool
from registry.publishing.published_tools import PublishedTool
from registry.publishing.tool_override import OverriddenTool


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a call that waits can no longer be sent, and when its agent may ask again."""

    why: str
    again: RetryAdvice = RetryAdvice.NOW


def find_changes(
    call: Call, tool: PublishedTool | None, configuration: CallConfiguration = CURRENT
) -> Obstacle | None:
    """Lists what changed since the call was requested, policy apart."""
    if tool is None:
        return _unpublished(call)
    return next(_changes(call, tool, configuration), None)


def _unpublished(call: Call) -> Obstacle:
    row = Tool.objects.filter(pk=call.tool_id).first() if call.tool_id else None
    said = _("The tool is no longer published.")
    if row is None or row.state == Tool.State.RETIRED:
        return Obstacle(
            f"{said} {_('It is gone from its server, or was taken back.')}", RetryAdvice.NO
        )
    if row.state == Tool.State.CHANGED:
        waits = _("It changed and must be published again.")
        return Obstacle(f"{said} {waits}", RetryAdvice.LATER)
    return Obstacle(f"{said} {_why_not_here(row.server)}".rstrip(), RetryAdvice.LATER)


def _why_not_here(server: Server) -> str:
    """Why a published tool cannot be called from this host; empty if that is over meanwhile."""
    if not server.enabled:
        return _("Its server is disabled.")
    try:
        connection(server, Commands())
    except Unreachable as error:
        return str(error)
    return ""


def _changes(
    call: Call, tool: PublishedTool, configuration: CallConfiguration
) -> Iterator[Obstacle]:
    if tool.definition_id != call.definition_id:
        yield Obstacle(_("The tool's definition changed after the call was asked for."))
    if call.executed == Executed.UNKNOWN and not tool.safe_to_repeat:
        yield Obstacle(_("The tool is no longer marked as retry-safe."), RetryAdvice.NO)
    if not (call.agent.enabled and call.agent.owner.is_active):
        yield Obstacle(_("The agent or its owner was disabled."), RetryAdvice.LATER)
    if call.token and (call.token.revoked_at or call.token.expires_at <= timezone.now()):
        yield Obstacle(_("The agent's token was revoked or has expired."))
    if not configuration.offers(call.toolset, tool, agent_id=call.agent_id):
        yield Obstacle(_("The toolset no longer offers the tool to the agent."), RetryAdvice.NO)
    if not _is_fixed_alike(call, configuration.override_of(call.toolset, tool)):
        said = _("The toolset now fixes arguments of the tool otherwise.")
        yield Obstacle(said, RetryAdvice.CHANGED)
    if why := _other_statement(call, tool):
        yield Obstacle(why)


def _is_fixed_alike(call: Call, shown: OverriddenTool) -> bool:
    if not shown.is_readable:
        return False
    return not shown.pins or shown.agrees(orjson.loads(call.to_send))


def _other_statement(call: Call, tool: PublishedTool) -> str:
    """Is what is about to be sent what was decided on?"""
    if call.mode == Call.Mode.INLINE:
        # Sent before, at once and by a gateway: nobody decided, and what it asks is fixed.
        return ""
    owner = call.agent.owner
    now = statement(
        agent=(call.agent.pk, call.agent.name),
        person=(owner.pk, owner.username),
        tool=tool,
        arguments=call.to_send,
        credential_owner=owner_for(call.agent, tool.connection),
    )
    if now == call.statement:
        return ""
    if not call.statement:
        return _("The call is not bound to what was decided on. Ask again.")
    return _("What would be sent is not what was decided on: other now: %(what)s.") % {
        "what": ", ".join(differences(call.statement, now))
    }


def subject(
    call: Call, tool: PublishedTool, arguments: bytes, configuration: CallConfiguration = CURRENT
) -> decide.Subject:
    """The call as rules would see it if it were sent now with these arguments."""
    owner = call.agent.owner
    return decide.Subject(
        agent_id=call.agent_id,
        agent=call.agent.name,
        groups=configuration.groups_of(owner),
        definition_id=tool.definition_id,
        server=tool.server_slug,
        tool=tool.name,
        hints=tool.hints,
        owner=owner.username,
        arguments=orjson.loads(arguments),
        size=len(arguments),
        # As it was called then, and as the record knows it.
        exposed=call.tool_name,
        tags=tool.tags,
        labels=tool.labels,
        credential=owner_for(call.agent, tool.connection).label,
        client=call.token.client_id if call.token else "",
        token_groups=_token_groups(call),
    )


def _token_groups(call: Call) -> tuple[str, ...] | None:
    """Those of the token that asked for it: it may have expired since."""
    if not (call.token and call.token.issuer):
        return ()
    if not AgentToken.objects.at_providers().filter(pk=call.token.pk).exists():
        return ()
    first = Entry.objects.filter(call_id=call.pk, seq=1).values_list("details__signed_in")
    (signed_in,) = first.get()
    return recorded_groups(signed_in)


def limit_parties(call: Call, tool: PublishedTool) -> CallParties:
    """The parties by which limits count the call."""
    person = call.person or call.agent.owner
    return CallParties(
        (call.agent_id, call.agent.name),
        (person.pk, person.username),
        call.toolset,
        (tool.server_id, tool.server_slug),
        (tool.tool_id, tool.exposed_name),
        tool.hints,
    )


def judged(
    call: Call,
    tool: PublishedTool,
    arguments: bytes,
    *,
    book: RuleBook | None = None,
    at: datetime | None = None,
    configuration: CallConfiguration = CURRENT,
) -> Decision:
    """The decision of rules (`book`, or the current ones) on the call with these arguments.

    `at`: what conditions take for the time of day; None: now.
    """
    rules, asked = book or configuration.rules(), subject(call, tool, arguments, configuration)
    asked.at = at
    # As it was when the call was asked for: what came after says nothing against it.
    lookback.read(rules, asked, but=call.pk, at=call.asked_at)
    return rules.decide(asked)


def find_denial(decision: Decision) -> Obstacle | None:
    if decision.effect != Effect.DENY:
        return None
    refusal = of_policy(decision.public_rule, decision.instead, conditional=decision.conditional)
    said = _("Policy now forbids the call: %(why)s") % {"why": decision.reason}
    return Obstacle(said, refusal.again)


def superseding(call_id: UUID, source: State, obstacle: Obstacle) -> Move:
    """Its entry also says when the agent may ask again (calls/record/refusal.py)."""
    why = obstacle.why
    details = {AGAIN: obstacle.again.value}
    return Move(call_id, source, State.SUPERSEDED, SYSTEM, reason=why, outcome=why, details=details)
