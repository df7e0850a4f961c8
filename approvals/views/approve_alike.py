"""Approving alike calls in one step: each gets its own vote and entry."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from accounts.http import ConsoleRequest
from accounts.models import Proof
from approvals import services, step_up_proofs
from approvals.alike_calls import AlikeCalls, ComparedCall, LeftOut, ShownVersion, compare
from approvals.models import Approval
from approvals.services import DecisionRefused
from approvals.step_up_proofs import ShownCall
from calls.models import Call
from core.english import gettext as english
from core.http import page
from core.outage import recording

# Of what an address or a form names, no more is read.
READ = 100
# Of one call: the vote decided, or others have to vote as well.
APPROVED, VOTED = "approved", "voted"


@page("approvals.decide_approval", "GET", "HEAD", "POST")
def approve_alike(request: ConsoleRequest) -> HttpResponse:
    """Shows in what the selected calls differ; its button approves them."""
    return _approve(request) if request.method == "POST" else _confirm(request)


@page("approvals.decide_approval", "POST")
def step_up(request: ConsoleRequest) -> HttpResponse:
    """Returns the passkey options for the script: one statement that names each call."""
    posted = _posted_calls(request)
    found = _still_as_shown(request, posted)
    if why := _why_none(found):
        return JsonResponse({"error": why}, status=403)
    return JsonResponse(step_up_proofs.offer(_confirmed_calls(found, posted), request.user))


@page("approvals.decide_approval", "POST")
def confirm_at_provider(request: ConsoleRequest) -> HttpResponse:
    """A page with a link to the provider, since a form may lead to no other site."""
    found = _still_as_shown(request, _posted_calls(request))
    back = _address(found)
    error = _why_none(found)
    try:
        there = error or step_up_proofs.begin_at_provider(
            request, found.approvals, request.user, back
        )
    except DecisionRefused as refused:
        error = str(refused)
    if error:
        messages.warning(request, error)
        return redirect(back)
    context = {"found": found, "call": found.calls[0].card.call, "there": there, "back": back}
    return render(request, "approvals/confirm_at_provider.html", context)


def _confirm(request: ConsoleRequest) -> HttpResponse:
    ids = _parse_ids(request.GET.getlist("call"))
    found = compare(ids, request.user, request.session)
    if not found.calls and not found.left_out:
        messages.warning(request, _("Select the calls to approve."))
        return redirect("approvals:queue")
    return _show(request, found)


def _show(
    request: ConsoleRequest, found: AlikeCalls, *, error: str = "", typed: str = ""
) -> HttpResponse:
    context: dict[str, Any] = {
        "section": "queue",
        "found": found,
        "step": found.step(request.user, request.session),
        "error": error,
        "typed": typed,
    }
    return render(request, "approvals/approve_alike.html", context)


def _approve(request: ConsoleRequest) -> HttpResponse:
    typed = request.POST.get("reason", "").strip()[:1000]
    posted = _posted_calls(request)
    with recording(request):
        found = _still_as_shown(request, posted)
        if found.differences:
            return _show(request, found, typed=typed)
        try:
            proof = _prove(request, found, posted)
        except DecisionRefused as error:
            return _show(request, found, error=str(error), typed=typed)
        outcomes = [
            (one.card.call, _approve_one(request, one, proof, typed, len(found.calls)))
            for one in found.calls
        ]
    _tell(request, found.left_out, outcomes)
    return redirect("approvals:queue")


def _prove(
    request: ConsoleRequest, found: AlikeCalls, posted: dict[UUID, ShownVersion]
) -> Proof | None:
    if not found.calls:
        return None
    confirmed = _confirmed_calls(found, posted)
    return step_up_proofs.prove(found.approvals, confirmed, request.user, request)


def _approve_one(
    request: ConsoleRequest, one: ComparedCall, proof: Proof | None, reason: str, together: int
) -> str:
    """APPROVED, VOTED, or the reason why it was not approved."""
    approval = one.card.approval
    try:
        services.vote(
            approval,
            by=request.user,
            approve=True,
            seen_digest=one.version.digest,
            reason=reason,
            proof=proof,
            together=together,
        )
    except DecisionRefused as error:
        return str(error)
    approval.refresh_from_db(fields=["state"])
    return VOTED if approval.state == Approval.State.WAITING else APPROVED


def _parse_ids(given: list[str]) -> list[UUID]:
    found = []
    for one in given[:READ]:
        try:
            found.append(UUID(one))
        except ValueError:
            continue
    return found


def _posted_calls(request: ConsoleRequest) -> dict[UUID, ShownVersion]:
    """The calls that the page showed, each as it showed it."""
    found: dict[UUID, ShownVersion] = {}
    for one in request.POST.getlist("call")[:READ]:
        call_id, _colon, version = one.partition(":")
        digest, _colon, basis = version.partition(":")
        found |= {known: ShownVersion(digest, basis) for known in _parse_ids([call_id])}
    return found


def _still_as_shown(request: ConsoleRequest, posted: dict[UUID, ShownVersion]) -> AlikeCalls:
    return compare(posted, request.user, request.session).leave_out_changed(posted)


def _confirmed_calls(found: AlikeCalls, posted: dict[UUID, ShownVersion]) -> list[ShownCall]:
    """All that the page showed: what a passkey signed names also what was left out since."""
    known = [one.card.call for one in found.calls] + [one.call for one in found.left_out]
    shown = sorted((call.pk, call.tool_name) for call in known)
    return [ShownCall(call_id, posted[call_id].digest, name) for call_id, name in shown]


def _why_none(found: AlikeCalls) -> str:
    """The reason why nothing of it can be approved, before somebody confirms it in vain; "" if it
    can."""
    if found.differences:
        return english("These calls are not alike. Approve them one by one.")
    if not found.calls:
        return english("None of these calls can be approved any more. Look again.")
    return ""


def _address(found: AlikeCalls) -> str:
    chosen = [("call", str(one.card.call.pk)) for one in found.calls]
    return f"{reverse('approvals:approve_alike')}?{urlencode(chosen)}"


def _tell(
    request: ConsoleRequest, left_out: Iterable[LeftOut], outcomes: Iterable[tuple[Call, str]]
) -> None:
    names: dict[str, list[str]] = defaultdict(list)
    for call, outcome in [*outcomes, *left_out]:
        names[outcome].append(f"{call.tool_name} {call.fingerprint}")
    for outcome, named in names.items():
        _tell_one(request, outcome, named)


def _tell_one(request: ConsoleRequest, outcome: str, names: list[str]) -> None:
    n = len(names)
    if outcome == APPROVED:
        words = ngettext(
            "You approved %(n)d call. It is sent now.",
            "You approved %(n)d calls. They are sent now.",
            n,
        )
        messages.success(request, words % {"n": n})
    elif outcome == VOTED:
        words = ngettext(
            "Your vote to approve %(n)d call is counted. Others have to give theirs.",
            "Your votes to approve %(n)d calls are counted. Others have to give theirs.",
            n,
        )
        messages.success(request, words % {"n": n})
    else:
        words = _("Not approved: %(names)s.") % {"names": ", ".join(names)}
        messages.warning(request, f"{words} {outcome}")
