"""Taking a queued call to run it: once, and only if nothing that was decided on has changed."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from uuid import UUID

import orjson
from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _

from audit.models import ClockTime
from audit.services import SYSTEM
from calls.execution import Sending
from calls.freezes import frozen, wait_for_freezes
from calls.inputs import wishes_of
from calls.models import Call
from calls.statements import differences, statement
from calls.states import Executed, State
from calls.transitions import Move, move_now
from calls.turns import is_room_for, whose_turn
from policies import decide, history
from policies.decide import Decision
from policies.models import Effect
from registry import published
from registry.published import PublishedTool

# Says what, of what people said, no longer lets the call be sent; empty if nothing.
Check = Callable[[Call, Decision], str]

# Others look at the same moment and take the first of them.
TRIED = 64


@cache
def _checks() -> tuple[Check, ...]:
    """Of people, who are above calls: settings name them."""
    return tuple(import_string(path) for path in settings.CLAIM_CHECKS)


def claim_next(*, owner: str) -> Sending | None:
    """The call whose turn it is; None when none may start now."""
    while candidates := whose_turn(most=TRIED):
        for call_id in candidates:
            sending = claim(call_id, owner=owner)
            if sending is not None:
                return sending
        if not _some_moved(candidates):
            return None
    return None


def _some_moved(candidates: list[UUID]) -> bool:
    """Claimed or ended meanwhile: then others may be next. If not, what is next has no room."""
    left = Call.objects.filter(pk__in=candidates, state=State.QUEUED).count()
    return left < len(candidates)


@transaction.atomic
def claim(call_id: UUID, *, owner: str) -> Sending | None:
    """None when somebody else has it, when it may no longer be sent or not now, or when there is
    no room."""
    wait_for_freezes()
    call = (
        Call.objects.select_for_update(of=("self",), skip_locked=True)
        .select_related("agent__owner", "token", "amendment")
        .filter(~frozen(), pk=call_id, state=State.QUEUED, start_by__gt=ClockTime())
        .first()
    )
    if call is None:
        return None

    tool = published.one(call.tool_id) if call.tool_id else None
    obstacle = _obstacle(call, tool)
    if obstacle or tool is None:
        _supersede(call, obstacle)
        return None

    if not is_room_for(call):
        return None
    move_now(Move(call.pk, State.QUEUED, State.RUNNING, SYSTEM, lease_owner=owner))
    wishes = wishes_of(call.pk)
    return Sending(
        call_id=call.pk,
        fence=call.fence + 1,
        tool=tool,
        arguments=call.to_send,
        background=True,
        doubtful=call.executed == Executed.UNKNOWN,
        abilities=wishes.abilities if tool.relays else (),
        takes_tasks=wishes.takes_tasks,
        log_level=wishes.log_level,
        revision=call.revision,
        session=wishes.session,
        trace=wishes.trace,
    )


def _supersede(call: Call, why: str) -> None:
    move_now(Move(call.pk, State.QUEUED, State.SUPERSEDED, SYSTEM, reason=why, outcome=why))


def _obstacle(call: Call, tool: PublishedTool | None) -> str:
    """What changed since the call was allowed or approved, as a sentence; empty if nothing."""
    if tool is None:
        return _("The tool is no longer published.")
    if tool.definition_id != call.definition_id:
        return _("The tool's definition changed after the call was asked for.")
    if call.executed == Executed.UNKNOWN and not tool.safe_to_repeat:
        return _("The tool is no longer marked as safe to repeat.")
    if not (call.agent.enabled and call.agent.owner.is_active):
        return _("The agent or its owner was disabled.")
    if call.token and (call.token.revoked_at or call.token.expires_at <= timezone.now()):
        return _("The agent's token was revoked or has expired.")
    if not published.offers(call.toolset, tool, agent_id=call.agent_id):
        return _("The toolset no longer offers the tool to the agent.")
    return (
        _fixed_otherwise(call, tool) or _other_statement(call, tool) or _policy_obstacle(call, tool)
    )


def _fixed_otherwise(call: Call, tool: PublishedTool) -> str:
    shown = published.shown(call.toolset, tool)
    if shown.is_readable and (not shown.pins or shown.agrees(orjson.loads(call.to_send))):
        return ""
    return _("The toolset now fixes arguments of the tool otherwise.")


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
    )
    if now == call.statement:
        return ""
    if not call.statement:
        return _("The call is not bound to what was decided on. Ask again.")
    return _("What would be sent is not what was decided on: other now: %(what)s.") % {
        "what": ", ".join(differences(call.statement, now))
    }


def subject(call: Call, tool: PublishedTool, arguments: bytes) -> decide.Subject:
    """What rules look at, were the call sent now with these arguments."""
    owner = call.agent.owner
    return decide.Subject(
        agent_id=call.agent_id,
        agent=call.agent.name,
        groups=frozenset(owner.groups.values_list("name", flat=True)),
        definition_id=tool.definition_id,
        server=tool.server_slug,
        tool=tool.name,
        hints=tool.hints,
        owner=owner.username,
        arguments=orjson.loads(arguments),
        size=len(arguments),
        exposed=tool.exposed_name,
        tags=tool.tags,
    )


def judged(call: Call, tool: PublishedTool, arguments: bytes) -> Decision:
    """What rules say of it now, had it been asked for with these arguments."""
    book, asked = decide.load(), subject(call, tool, arguments)
    if book.looks_back(asked):
        # As it was when the call was asked for: what came after says nothing against it.
        asked.history = history.read(call.agent_id, call.tool_name, but=call.pk, at=call.asked_at)
    return book.decide(asked)


def _policy_obstacle(call: Call, tool: PublishedTool) -> str:
    decision = judged(call, tool, call.to_send)
    if decision.effect == Effect.DENY:
        return _("Policy now forbids the call: %(why)s") % {"why": decision.reason}
    if decision.effect == Effect.ASK and call.effect == Effect.ALLOW:
        return _("Policy now asks a person first: %(why)s") % {"why": decision.reason}
    return next(filter(None, (check(call, decision) for check in _checks())), "")
