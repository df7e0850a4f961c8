"""Budgets of a pending call as an approval meets them: none goes past a hard one."""

from __future__ import annotations

from collections.abc import Callable

from calls.basis import limit_parties, subject
from calls.models import Call
from core.english import gettext as _
from policies.limits import budgets
from policies.limits.budgets import has_hard
from registry.publishing import published_catalogue


def find_exceeded(call: Call) -> str:
    """Why a budget, hard or soft, does not cover the call now; empty if all do."""
    return _ask(budgets.find_exceeded, call)


def reserve(call: Call) -> str:
    """The same, in the caller's transaction: where it is empty, each of them holds the cost."""
    return _ask(budgets.reserve, call)


def reserve_approved(call: Call) -> str:
    """Like `reserve`, but soft budgets are what people answer for: they only count the call."""
    # Statements have no tool, and most installations no such budget.
    if call.tool_id is None or not has_hard():
        return ""
    return _ask(budgets.reserve_approved, call)


def _ask(ask: Callable[..., str], call: Call) -> str:
    tool = published_catalogue.one(call.tool_id) if call.tool_id else None
    if tool is None:
        return _("The tool is no longer published.")
    asked = subject(call, tool, call.to_send)
    return ask(call.pk, asked, limit_parties(call, tool), call.to_send)
