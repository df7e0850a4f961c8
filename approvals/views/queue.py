from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts.http import ConsoleRequest
from accounts.models import User
from approvals import services, step_up_proofs
from approvals.cards import card, cards
from approvals.cards import news as card_news
from approvals.context import COUNTED, count_waiting
from approvals.eligibility import why_not
from approvals.models import Approval, ApprovalQuerySet
from approvals.reasons import sentence
from approvals.services import DecisionRefused
from calls.models import Call
from calls.views.call_page import may_cancel
from core.http import is_htmx, page
from core.outage import recording
from core.paging import paged

CARDS = 25


@page("approvals.view_approval")
def queue(request: ConsoleRequest) -> HttpResponse:
    found = paged(_waiting(), "call_id", request.GET, size=CARDS)
    context = {
        "section": "queue",
        "page": found,
        "cards": cards(found.rows, request.user),
    }
    return render(request, "approvals/queue.html", context)


@page("approvals.view_approval")
def more(request: ConsoleRequest) -> HttpResponse:
    """The cards that this tab does not show yet, to be put below those that it does."""
    unseen = _waiting().exclude(pk__in=shown_in(request)).order_by("call_id")[:CARDS]
    context = {"cards": cards(unseen, request.user)}
    return render(request, "approvals/queue.html#more", context)


@page("approvals.view_approval")
def news(request: ConsoleRequest) -> HttpResponse:
    """All that a ring may have changed for this tab, each for its place: what became of the cards
    that it shows, what was said on them, how many it does not show, the navigation's count."""
    shown = shown_in(request)
    there = Approval.objects.for_queue().filter(pk__in=shown)
    waiting = [approval for approval in there if approval.state == Approval.State.WAITING]
    context = {
        "cards": cards((one for one in there if one not in waiting), request.user),
        "waiting_cards": card_news(waiting, request.user),
        "alone": "alone" in request.GET,
    }
    if "announce" in request.GET:
        unseen = Approval.objects.waiting().exclude(pk__in=shown).values_list("pk")
        context |= {"announces": True, "count": len(unseen[:COUNTED])}
    return render(request, "approvals/queue.html#news", context)


@page("approvals.view_approval")
def count(request: HttpRequest) -> HttpResponse:
    return render(request, "ui/count.html", {"count": count_waiting(), "oob": True})


@page("approvals.view_approval")
def detail(request: ConsoleRequest, call_id: UUID) -> HttpResponse:
    approval = get_object_or_404(Approval.objects.for_queue(), pk=call_id)
    context = {"section": "queue", "card": card(approval, request.user), "alone": True}
    return render(request, "approvals/detail.html", context)


@page("approvals.view_approval")
def became(request: ConsoleRequest, call_id: UUID) -> HttpResponse:
    """The card for a page that pressed a button of it and got no answer."""
    approval = get_object_or_404(Approval.objects.for_queue(), pk=call_id)
    if not is_htmx(request):
        return redirect("approvals:detail", call_id)
    context = {
        "card": card(approval, request.user, error=_became(approval, request.user)),
        "alone": "alone" in request.GET,
    }
    return render(request, "approvals/card.html", context)


def _became(approval: Approval, person: User) -> str:
    lost = _("The answer to what you pressed was lost.")
    own = approval.standing.filter(person=person).first()
    if own is None:
        said = _("The record has no vote of yours on this call.")
    elif own.approve:
        said = _("The record has your vote: you approved this call.")
    else:
        said = _("The record has your vote: you denied this call.")
    return f"{lost} {said}"


@page("approvals.decide_approval", "POST")
def approve(request: ConsoleRequest, call_id: UUID) -> HttpResponse:
    return _decide(request, call_id, approve=True)


@page("approvals.decide_approval", "POST")
def refuse(request: ConsoleRequest, call_id: UUID) -> HttpResponse:
    return _decide(request, call_id, approve=False)


@page("approvals.decide_approval", "POST")
def step_up(request: ConsoleRequest, call_id: UUID) -> HttpResponse:
    """For the script: what to have a passkey sign so that this person's yes counts."""
    approval = get_object_or_404(Approval.objects.for_queue(), pk=call_id)
    obstacle = why_not(approval, request.user)
    if not obstacle and request.POST.get("seen", "") != approval.call.call_digest:
        obstacle = _("What you were shown is not what would be sent. Look again.")
    # Before a device asks for a finger in vain.
    if obstacle := obstacle or services.why_stopped(approval):
        return JsonResponse({"error": obstacle}, status=403)
    return JsonResponse(step_up_proofs.offer(approval, request.user))


@page("calls.view_call", "POST")
def cancel(request: ConsoleRequest, call_id: UUID) -> HttpResponse:
    """From the call's page: takes back a held call, stops one that is queued or running."""
    with recording(request):
        call = get_object_or_404(Call.objects.for_page(), pk=call_id)
        if not may_cancel(call, request.user):
            raise Http404
        error = _cancel(call, request.user)
    if error:
        messages.warning(request, error)
    else:
        messages.success(request, _("The call is being cancelled."))
    return redirect("calls:detail", call_id)


def _cancel(call: Call, person: User) -> str:
    """What stood in the way, as a sentence; empty when it is being cancelled."""
    try:
        done = services.cancel(call.pk, by=person.actor)
    except DecisionRefused as error:
        return str(error)
    return "" if done else _("The call had ended already: nothing was cancelled.")


def _decide(request: ConsoleRequest, call_id: UUID, *, approve: bool) -> HttpResponse:
    with recording(request):
        approval = get_object_or_404(Approval.objects.for_queue(), pk=call_id)
        error = _vote(request, approval, approve=approve)
    if is_htmx(request):
        approval = Approval.objects.for_queue().get(pk=call_id)
        typed = request.POST.get("reason", "") if error else ""
        decided = card(approval, request.user, error=error, typed=typed)
        context = {"card": decided, "answered": True, "alone": "alone" in request.POST}
        return render(request, "approvals/card.html", context)
    if error:
        messages.warning(request, error + _unsent(request.POST.get("reason", "").strip()))
    else:
        messages.success(request, _said(approval, approve=approve))
    return redirect("approvals:queue")


def _unsent(typed: str) -> str:
    return (
        " " + _("What you had written was not sent: “%(typed)s”") % {"typed": typed}
        if typed
        else ""
    )


def _vote(request: ConsoleRequest, approval: Approval, *, approve: bool) -> str:
    """What stood in the way, as a sentence; empty when the word was taken."""
    try:
        proof = step_up_proofs.prove(approval, request.user, request.POST) if approve else None
        services.vote(
            approval,
            by=request.user,
            approve=approve,
            seen_digest=request.POST.get("seen", ""),
            reason=_reason(request, approve=approve),
            proof=proof,
        )
    except DecisionRefused as error:
        return str(error)
    return ""


def _reason(request: ConsoleRequest, *, approve: bool) -> str:
    pressed = [] if approve else request.POST.getlist("because")
    return sentence(pressed, request.POST.get("reason", "").strip())


def _said(approval: Approval, *, approve: bool) -> str:
    approval.refresh_from_db(fields=["state"])
    if approval.state == Approval.State.WAITING:
        sentence = _("Your word on %(tool)s for %(agent)s is counted. Others have to give theirs.")
    elif approve:
        sentence = _("You approved %(tool)s for %(agent)s.")
    else:
        sentence = _("You denied %(tool)s for %(agent)s.")
    return sentence % {"tool": approval.call.tool_name, "agent": approval.call.agent.name}


def _waiting() -> ApprovalQuerySet:
    return Approval.objects.waiting().for_queue()


def shown_in(request: HttpRequest) -> list[UUID]:
    """The cards that a tab says it shows."""
    try:
        return [UUID(text) for text in request.GET.getlist("shown") if text]
    except ValueError:
        return []
