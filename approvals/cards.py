"""What an approver is shown of one held call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from accounts.models import User
from approvals.models import Approval
from approvals.services import why_not
from calls.models import Call
from registry.arguments import Arguments, arguments


@dataclass(frozen=True, slots=True)
class Card:
    approval: Approval
    call: Call
    arguments: Arguments
    hints: dict[str, bool]
    # Why this person may not decide; empty if they may.
    obstacle: str
    # Why what they just pressed was not done.
    error: str = ""

    @property
    def waits(self) -> bool:
        return self.approval.state == Approval.State.WAITING


def card(approval: Approval, person: User, *, error: str = "") -> Card:
    call = approval.call
    content: dict[str, Any] = call.definition.content if call.definition else {}
    return Card(
        approval=approval,
        call=call,
        arguments=arguments(content.get("inputSchema") or {}, call.parsed_arguments),
        hints=call.definition.hints if call.definition else {},
        obstacle=why_not(approval, person),
        error=error,
    )
