"""The page on which a held call's arguments are changed, for others to approve."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts.http import ConsoleRequest
from approvals import editing
from approvals.editing import Edit, EditRefused
from approvals.models import Approval
from approvals.services import DecisionRefused
from core.http import page
from core.outage import recording
from registry.schema_forms import schema_form
from registry.schema_forms.schema_form import SchemaForm


@page("approvals.decide_approval", "GET", "HEAD", "POST")
def edit(request: ConsoleRequest, call_id: UUID) -> HttpResponse:
    approval = get_object_or_404(Approval.objects.for_queue(), pk=call_id)
    call = approval.call
    schema: dict[str, Any] = call.definition.content["inputSchema"] if call.definition else {}
    if request.method != "POST":
        return _drawn(request, approval, schema_form.filled(schema, call.to_send))
    form = schema_form.posted(schema, request.POST)
    if form.redraw or form.document is None or not form.ok:
        return _drawn(request, approval, form)
    if not editing.others(approval, request.user):
        form.errors.append(_("Nobody else can approve what you change here. Nothing was changed."))
        return _drawn(request, approval, form)
    try:
        with recording(request):
            editing.edit(approval, _posted_edit(request, form.document), by=request.user)
    except EditRefused as refused:
        form.show(refused.violations)
        if not refused.violations:
            form.errors.append(str(refused))
        return _drawn(request, approval, form)
    except DecisionRefused as refused:
        return _drawn(request, approval, form, str(refused))
    messages.success(request, _("Your change is proposed. Another approver has to approve it."))
    return redirect("approvals:detail", call_id)


def _posted_edit(request: ConsoleRequest, document: bytes) -> Edit:
    return Edit(
        seen_digest=request.POST.get("seen", ""),
        arguments=document,
        note=request.POST.get("note", "").strip()[:1000],
        private="private" in request.POST,
    )


def _drawn(
    request: ConsoleRequest, approval: Approval, form: SchemaForm, refusal: str = ""
) -> HttpResponse:
    """`refusal`: why nothing can be proposed here any more. What was written stays on the page."""
    others = editing.others(approval, request.user)
    context = {
        "section": "queue",
        "approval": approval,
        "call": approval.call,
        "form": form,
        "obstacle": refusal or editing.why_not(approval, request.user),
        "written": form.document if request.method == "POST" else None,
        "others": others[: editing.NAMED],
        "more": max(0, len(others) - editing.NAMED),
        "given": request.POST,
        "fallen": approval.standing.count(),
        "seen": request.POST.get("seen", approval.call.call_digest),
    }
    # A browser's own "resubmit?" is of no use to somebody who corrects a field.
    status = 422 if request.method == "POST" and not form.redraw else 200
    return render(request, "approvals/edit.html", context, status=status)
