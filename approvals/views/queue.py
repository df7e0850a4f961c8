from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urlsplit
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.http import ConsoleRequest
from accounts.models import Proof, User
from approvals import alike_calls, card_views, denials, queue_list, services, step_up_proofs
from approvals.cards import Card, card, cards
from approvals.cards import news as card_news
from approvals.context import COUNTED, count_waiting
from approvals.eligibility import why_not
from approvals.models import Approval, ApprovalQuerySet
from approvals.policy_plans.pending_plans import plans_for
from approvals.queue_list import QueueFilters, QueueList
from approvals.reasons import sentence
from approvals.services import DecisionRefused
from approvals.step_up_proofs import ShownCall
from calls.models import Call
from calls.views.call_page import may_cancel
from core.http import is_htmx, page, page_of
from core.outage import recording

# Of the list, to find one that the user may decide: each is asked for.
LOOKED_AT = 10


@page("approvals.view_approval")
def queue(request: ConsoleRequest) -> HttpResponse:
    """The list of what is pending; beside it, where there is room, the card of the first."""
    found = queue_list.read(request.GET)
    return _panes(request, found, found.first)


@page("approvals.view_approval")
def detail(request: ConsoleRequest, call_id: UUID) -> HttpResponse:
    """The card of one call; beside it, where there is room, the list."""
    approval = get_object_or_404(Approval.objects.for_queue(), pk=call_id)
    return _panes(request, queue_list.read(request.GET, call_id), approval, is_chosen=True)


def _panes(
    request: ConsoleRequest, found: QueueList, shown: Approval | None, *, is_chosen: bool = False
) -> HttpResponse:
    drawn = None
    if shown is not None:
        drawn = card(shown, request.user, past=found.histories, session=request.session)
        card_views.note(shown, request.user)
    context = {
        "section": "queue",
        "list": found,
        "page": found.page,
        "plans": plans_for(request.user),
        "views": request.user.queue_views.all(),
        "card": drawn,
        "is_chosen": is_chosen,
        "most_alike": alike_calls.MOST,
        "kept": _query_string(request),
    }
    return render(request, "approvals/queue.html", context)


def _query_string(request: HttpRequest) -> str:
    """The filters of the list, for links from line to line."""
    return f"?{request.GET.urlencode()}" if request.GET else ""


@page("approvals.view_approval")
def one_card(request: ConsoleRequest, call_id: UUID) -> HttpResponse:
    """The card beside the list, once somebody went to another of its lines."""
    approval = get_object_or_404(Approval.objects.for_queue(), pk=call_id)
    drawn = card(approval, request.user, session=request.session)
    card_views.note(approval, request.user)
    return render(request, "approvals/card.html", {"card": drawn})


@page("approvals.view_approval")
def more(request: ConsoleRequest) -> HttpResponse:
    """The lines that this tab does not show yet, to be put below those that it does."""
    unseen = _unseen(request).for_queue().order_by("call_id")[: queue_list.ROWS]
    context = {"rows": queue_list.rows(list(unseen)), "kept": _filters(request)}
    return render(request, "approvals/queue.html#more", context)


@page("approvals.view_approval")
def news(request: ConsoleRequest) -> HttpResponse:
    """All that a ring may have changed for this tab, each for its place: which of its lines were
    decided, what became of its card, how many calls it does not show, the navigation's count."""
    shown, is_open = shown_in(request), shown_in(request, "open")
    there = list(Approval.objects.for_queue().filter(pk__in={*shown, *is_open}))
    decided = [approval for approval in there if approval.state != Approval.State.WAITING]
    redrawn = {approval.pk for approval in decided} | denials.changed(there)
    card_of = [approval for approval in there if approval.pk in is_open]
    drawn = cards((one for one in card_of if one in decided), request.user)
    context: dict[str, Any] = {
        "rows": queue_list.rows([one for one in there if one.pk in shown and one.pk in redrawn]),
        "current": is_open,
        "kept": _filters(request),
        "cards": drawn,
        "following": _following(request, drawn),
        "waiting_cards": card_news([one for one in card_of if one not in decided], request.user),
    }
    context |= queue_list.count_pending()
    if "announce" in request.GET:
        filters = QueueFilters.read(request.GET)
        unseen = _unseen(request).values_list("pk")[:COUNTED]
        context |= {"announces": True, "count": len(unseen), "filters": filters}
    return render(request, "approvals/queue.html#news", context)


def _unseen(request: HttpRequest) -> ApprovalQuerySet:
    pending = QueueFilters.read(request.GET).narrow(Approval.objects.waiting())
    return pending.exclude(pk__in=shown_in(request))


def _filters(request: HttpRequest) -> str:
    """The query string of the page that asks, without what else it asks with."""
    return _query_of(request.GET)


def _query_of(given: Mapping[str, str]) -> str:
    names = ("agent", "tool", "sort", "group")
    kept = {name: given[name] for name in names if given.get(name)}
    return f"?{urlencode(kept)}" if kept else ""


@page("approvals.view_approval")
def count(request: HttpRequest) -> HttpResponse:
    return render(request, "ui/count.html", {"count": count_waiting(), "oob": True})


@page("approvals.view_approval")
def became(request: ConsoleRequest, call_id: UUID) -> HttpResponse:
    """The card for a page that pressed a button of it and got no answer."""
    approval = get_object_or_404(Approval.objects.for_queue(), pk=call_id)
    if not is_htmx(request):
        return redirect("approvals:detail", call_id)
    said = _became(approval, request.user)
    drawn = card(approval, request.user, error=said, session=request.session)
    context = {"card": drawn, "following": _following(request, [drawn])}
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
    """Returns the passkey options for the script: the statement to sign, so that the approval
    counts."""
    approval = get_object_or_404(Approval.objects.for_queue(), pk=call_id)
    if obstacle := _obstacle(request, approval):
        return JsonResponse({"error": obstacle}, status=403)
    shown = ShownCall.of(approval)
    return JsonResponse(step_up_proofs.offer([shown], request.user))


@page("approvals.decide_approval", "POST")
def confirm_at_provider(request: ConsoleRequest, call_id: UUID) -> HttpResponse:
    """A page with a link to the provider, since a form may lead to no other site."""
    approval = get_object_or_404(Approval.objects.for_queue(), pk=call_id)
    back = reverse("approvals:detail", args=[call_id])
    error = _obstacle(request, approval)
    try:
        there = error or step_up_proofs.begin_at_provider(request, [approval], request.user, back)
    except DecisionRefused as refused:
        error = str(refused)
    if error:
        messages.warning(request, error)
        return redirect(back)
    context = {"approval": approval, "call": approval.call, "there": there, "back": back}
    return render(request, "approvals/confirm_at_provider.html", context)


def _obstacle(request: ConsoleRequest, approval: Approval) -> str:
    """Why an approval of theirs would not be taken, before they confirm it in vain; "" if it
    would."""
    obstacle = why_not(approval, request.user)
    if not obstacle and request.POST.get("seen", "") != approval.call.call_digest:
        obstacle = _("What you were shown is not what would be sent. Look again.")
    return obstacle or services.why_stopped(approval)


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
    """The reason why it cannot be cancelled; "" if it is being cancelled."""
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
        decided = card(approval, request.user, error=error, typed=typed, session=request.session)
        following = "" if error else _next_address(request)
        context = {"card": decided, "answered": True, "following": following}
        return render(request, "approvals/card.html", context)
    if error:
        messages.warning(request, error + _unsent(request.POST.get("reason", "").strip()))
    else:
        messages.success(request, _vote_message(approval, approve=approve))
    return redirect(reverse("approvals:queue") + _query_of(_page_query(request)))


def _following(request: ConsoleRequest, drawn: list[Card]) -> str:
    """Where a user goes on whose own decision is on one of these cards; "" if on none."""
    is_own = any(one.votes.is_mine and not one.waits for one in drawn)
    return _next_address(request) if is_own else ""


def _next_address(request: ConsoleRequest) -> str:
    """The address of the next card that this user can decide, in the order of the list beside the
    one that was decided; "" without one."""
    shown = _page_query(request)
    for approval in queue_list.read(shown).in_order[:LOOKED_AT]:
        if not why_not(approval, request.user):
            return reverse("approvals:detail", args=[approval.pk]) + _query_of(shown)
    return ""


def _page_query(request: HttpRequest) -> QueryDict:
    """The filters of the page on which a button was pressed."""
    return QueryDict(urlsplit(page_of(request)).query)


def _unsent(typed: str) -> str:
    return (
        " " + _("What you had written was not sent: “%(typed)s”") % {"typed": typed}
        if typed
        else ""
    )


def _vote(request: ConsoleRequest, approval: Approval, *, approve: bool) -> str:
    """The reason why the vote was not taken; "" if it was."""
    try:
        proof = _prove(request, approval) if approve else None
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


def _prove(request: ConsoleRequest, approval: Approval) -> Proof | None:
    shown = [ShownCall.of(approval)]
    return step_up_proofs.prove([approval], shown, request.user, request)


def _reason(request: ConsoleRequest, *, approve: bool) -> str:
    pressed = [] if approve else request.POST.getlist("because")
    return sentence(pressed, request.POST.get("reason", "").strip())


def _vote_message(approval: Approval, *, approve: bool) -> str:
    approval.refresh_from_db(fields=["state", "denies_at"])
    if approval.is_being_denied and not approve:
        sentence = _("You denied %(tool)s for %(agent)s. Its agent has not been notified yet: "
                     "until then you can take it back.")  # fmt: skip
    elif approval.state == Approval.State.WAITING:
        sentence = _("Your vote on %(tool)s for %(agent)s is counted. It needs votes of others.")
    elif approve:
        sentence = _("You approved %(tool)s for %(agent)s. It is sent now.")
    else:
        sentence = _("You denied %(tool)s for %(agent)s.")
    return sentence % {"tool": approval.call.tool_name, "agent": approval.call.agent.name}


def shown_in(request: HttpRequest, name: str = "shown") -> list[UUID]:
    """The calls that a tab says it shows."""
    try:
        return [UUID(text) for text in request.GET.getlist(name) if text]
    except ValueError:
        return []
