"""Limits of a pending call as an approval meets them: none goes past a hard one."""

from __future__ import annotations

from collections.abc import Callable

from approvals import eligibility
from approvals.models import Approval
from calls.basis import limit_parties, subject
from calls.models import Call
from core.english import gettext as _
from policies.limits import approved_calls, budgets
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
    return _ask(budgets.reserve_approved, call) if _may_be_over(call) else ""


def take_room(call: Call) -> str:
    """Takes its use of hard rates, and its place among the calls at the same time, in the caller's
    transaction; or says which limit has no room now, and takes nothing."""
    return _ask(approved_calls.take, call) if _may_be_over(call) else ""


def why_kept_pending(approval: Approval) -> str:
    """Why the call is pending although its votes suffice: a hard limit has no room now. Empty
    otherwise."""
    if approval.state != Approval.State.WAITING or not _may_be_over(approval.call):
        return ""
    if eligibility.decided(approval.pk, approval.thresholds) != Approval.State.APPROVED:
        return ""
    return _ask(budgets.find_exceeded_hard, approval.call) or _ask(
        approved_calls.find_full, approval.call
    )


def _may_be_over(call: Call) -> bool:
    """Statements have no tool, and many installations no such limit."""
    return call.tool_id is not None and has_hard()


def _ask(ask: Callable[..., str], call: Call) -> str:
    tool = published_catalogue.one(call.tool_id) if call.tool_id else None
    if tool is None:
        return _("The tool is no longer published.")
    asked = subject(call, tool, call.to_send)
    return ask(call.pk, asked, limit_parties(call, tool), call.to_send)
