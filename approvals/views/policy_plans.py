"""Policy as code in the console: what a file manages, plans, and their confirmation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts import stepup
from accounts.http import ConsoleRequest
from accounts.relying_party import expected_origins
from accounts.stepup import Ticket
from approvals.policy_plans import applying, confirming, drift, planning
from approvals.policy_plans.applying import PlanNotApplied
from approvals.policy_plans.pending_plans import plans_for
from approvals.policy_plans.planning import EXPORT, VIEW
from core.errors import CountersignError
from core.http import page
from policies.as_code import documents
from policies.as_code.differences import MANAGED
from policies.as_code.yaml_reader import MAX_BYTES
from policies.as_code.yaml_writer import write_yaml
from policies.models import Effect, PolicyPlan
from registry.managed import LIMITS, RULES, SERVERS, TOOLS, TOOLSETS

SEE, PROPOSE = "policies.view_policyplan", "policies.add_policyplan"
CONFIRM, APPLY = "policies.confirm_policyplan", "policies.apply_policyplan"
LISTED = 50
# By the section of a file.
TITLES = {
    RULES: gettext_lazy("Rule"),
    LIMITS: gettext_lazy("Limit"),
    TOOLSETS: gettext_lazy("Toolset"),
    SERVERS: gettext_lazy("Server"),
    TOOLS: gettext_lazy("Tool"),
    MANAGED: gettext_lazy("Managed by a file"),
}


@page(SEE)
def plans(request: ConsoleRequest) -> HttpResponse:
    _require(request, VIEW)
    return _plans(request)


def _require(request: ConsoleRequest, permissions: Sequence[str]) -> None:
    if not request.user.has_perms(permissions):
        raise PermissionDenied


def _plans(request: ConsoleRequest, *, error: str = "", text: str = "") -> HttpResponse:
    found = drift.read()
    context = {
        "section": "rules",
        "plans": PolicyPlan.objects.select_related("account", "person")[:LISTED],
        "waiting": plans_for(request.user),
        "drift": found,
        "drifted": [(one, _title(one.section)) for one in found.changes] if found else [],
        "error": error,
        "text": text,
    }
    return render(request, "approvals/policy_plans.html", context, status=400 if error else 200)


@page(SEE)
def export(request: ConsoleRequest) -> HttpResponse:
    _require(request, EXPORT)
    answer = HttpResponse(documents.export(), content_type="application/yaml; charset=utf-8")
    answer["Content-Disposition"] = 'attachment; filename="policy.yaml"'
    return answer


@page(PROPOSE, "POST")
def propose(request: ConsoleRequest) -> HttpResponse:
    _require(request, VIEW)
    text = request.POST.get("proposal", "")
    if given := request.FILES.get("file"):
        text = given.read(MAX_BYTES + 1).decode(errors="replace")
    try:
        plan = planning.make_plan(text.replace("\r\n", "\n"), by=request.user)
    except CountersignError as error:
        return _plans(request, error=str(error), text=text[:MAX_BYTES])
    return redirect("approvals:policy_plan", plan.digest)


@page(SEE)
def plan(request: ConsoleRequest, digest: str) -> HttpResponse:
    _require(request, VIEW)
    found = get_object_or_404(PolicyPlan, digest=digest)
    if "options" in request.GET and request.user.has_perm(CONFIRM):
        ticket = Ticket.new()
        said = confirming.statement(found, request.user, ticket)
        return JsonResponse(stepup.offer(request.user, ticket, said))
    return _plan(request, found)


def _plan(request: ConsoleRequest, shown: PolicyPlan, error: str = "") -> HttpResponse:
    has_passkey, has_codes = request.user.proof_means
    is_open = shown.applied_at is None
    is_stale = is_open and applying.is_stale(shown)
    context: dict[str, Any] = {
        "section": "rules",
        "plan": shown,
        "changes": [shown_change(one) for one in shown.changes],
        "effects": dict(Effect.choices),
        "confirmations": applying.valid_confirmations(shown),
        "needed": applying.needed(),
        "is_stale": is_stale,
        "why_not": applying.why_not(shown) if is_open else "",
        "why_not_confirm": confirming.why_not_confirm(shown, request.user),
        "may_confirm": is_open and not is_stale and request.user.has_perm(CONFIRM),
        "has_passkey": has_passkey,
        "has_codes": has_codes,
        "origin": expected_origins()[0],
        "error": error,
    }
    return render(request, "approvals/policy_plan.html", context, status=403 if error else 200)


def shown_change(one: dict[str, Any]) -> dict[str, Any]:
    """With the members that change, or the whole object where it is new or gone."""
    before, after = one["before"] or {}, one["after"] or {}
    members = [
        (name, _text(before.get(name)), _text(after.get(name)))
        for name in one["members"]
        if one["kind"] == "changed"
    ]
    whole = one["after"] if one["kind"] == "added" else one["before"]
    text = write_yaml(whole) if one["kind"] in ("added", "removed") else ""
    return {**one, "title": _title(one["section"]), "members": members, "text": text}


def _title(section: str) -> str:
    return str(TITLES.get(section, section))


def _text(value: Any) -> str:
    return orjson.dumps(value).decode()


@page(CONFIRM, "POST")
def confirm(request: ConsoleRequest, digest: str) -> HttpResponse:
    _require(request, VIEW)
    found = get_object_or_404(PolicyPlan, digest=digest)
    try:
        confirming.confirm(found, request.user, request.POST)
    except CountersignError as error:
        return _plan(request, found, str(error))
    messages.success(request, _("The plan is confirmed."))
    return redirect("approvals:policy_plan", digest)


@page(APPLY, "POST")
def apply(request: ConsoleRequest, digest: str) -> HttpResponse:
    _require(request, VIEW)
    found = get_object_or_404(PolicyPlan, digest=digest)
    try:
        applying.apply_plan(found.digest, by=request.user)
    except PlanNotApplied as error:
        return _plan(request, found, str(error))
    messages.success(request, _("The plan is applied."))
    return redirect("approvals:policy_plan", digest)
