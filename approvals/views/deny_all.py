"""Denying the pending calls of one agent together: each gets its own vote and entry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.http import ConsoleRequest
from approvals import queue_list, services
from approvals.models import Approval, ApprovalQuerySet
from approvals.reasons import SHORT, sentence
from approvals.services import DecisionRefused
from core.http import page
from core.outage import recording

# So many at once: each is a transaction of its own, and somebody waits for the page.
MOST = 100
# Of one call: the vote decided, or others have to vote as well.
DENIED, VOTED = "denied", "voted"


@page("approvals.decide_approval", "GET", "HEAD", "POST")
def deny_all(request: ConsoleRequest) -> HttpResponse:
    return _deny(request) if request.method == "POST" else _confirm(request)


def _confirm(request: ConsoleRequest) -> HttpResponse:
    agent = request.GET.get("agent", "")
    pending = list(_of_agent(agent).order_by("call_id")[: MOST + 1])
    if not pending:
        return redirect("approvals:queue")
    context = {
        "section": "queue",
        "agent": agent,
        "rows": queue_list.rows(pending[:MOST]),
        "are_more": len(pending) > MOST,
        "reasons": list(SHORT.items()),
    }
    return render(request, "approvals/deny_all.html", context)


def _deny(request: ConsoleRequest) -> HttpResponse:
    reason = sentence(request.POST.getlist("because"), request.POST.get("reason", "").strip())
    pending = _of_agent(request.POST.get("agent", ""))
    with recording(request):
        outcomes = Counter(
            _deny_one(request, pending, call_id, seen, reason)
            for call_id, seen in _parse_calls(request.POST.getlist("call"))
        )
    for outcome, n in outcomes.items():
        _tell(request, outcome, n)
    return redirect("approvals:queue")


def _of_agent(name: str) -> ApprovalQuerySet:
    return Approval.objects.waiting().for_queue().filter(call__agent__name=name)


def _parse_calls(given: list[str]) -> Iterator[tuple[UUID, str]]:
    """The calls that the page showed, each with the digest of what it showed."""
    for one in given[:MOST]:
        call_id, _colon, digest = one.partition(":")
        try:
            yield UUID(call_id), digest
        except ValueError:
            continue


def _deny_one(
    request: ConsoleRequest, pending: ApprovalQuerySet, call_id: UUID, seen: str, reason: str
) -> str:
    """DENIED, VOTED, or the reason why it was not denied."""
    approval = pending.filter(pk=call_id).first()
    if approval is None:
        return _("The call is no longer pending.")
    try:
        services.vote(approval, by=request.user, approve=False, seen_digest=seen, reason=reason)
    except DecisionRefused as error:
        return str(error)
    approval.refresh_from_db(fields=["state", "denies_at"])
    is_open = approval.state == Approval.State.WAITING and not approval.is_being_denied
    return VOTED if is_open else DENIED


def _tell(request: ConsoleRequest, outcome: str, n: int) -> None:
    if outcome == DENIED:
        words = ngettext("You denied %(n)d call.", "You denied %(n)d calls.", n)
        messages.success(request, words % {"n": n})
    elif outcome == VOTED:
        words = ngettext(
            "Your vote to deny %(n)d call is counted. Others have to give theirs.",
            "Your votes to deny %(n)d calls are counted. Others have to give theirs.",
            n,
        )
        messages.success(request, words % {"n": n})
    else:
        words = ngettext("Not denied: %(n)d call.", "Not denied: %(n)d calls.", n)
        messages.warning(request, f"{words % {'n': n}} {outcome}")
