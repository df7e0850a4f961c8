"""A new rule that begins with one call: its agent, its tool, and conditions of its arguments."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import Http404, HttpResponse

from accounts.http import ConsoleRequest
from calls.content.payloads import note_look
from calls.models import Call
from calls.views import call_page
from calls.views.rule_figures import count_calls
from core import strict_json
from core.http import page
from policies.drafts import RuleDraft, of_patterns
from policies.offers import offers_of
from policies.views.rules import rule_form


@page("policies.add_rule", "GET", "HEAD", "POST")
def rule_of_call(request: ConsoleRequest, call_id: UUID) -> HttpResponse:
    call = call_page.find_call(call_id)
    rights = call_page.eyes(call, request.user)
    if call is None or rights is None or call.tool is None:
        raise Http404
    if rights.may_read:
        note_look(call, by=request.user)
    return rule_form(request, _draft(call, may_read=rights.may_read), count_calls)


def _draft(call: Call, *, may_read: bool) -> RuleDraft:
    """Arguments are offered to those alone who may read them."""
    server = call.server.slug if call.server else "*"
    values = of_patterns(server, call.tool.name if call.tool else "*").values
    offers = offers_of(_arguments(call)) if may_read else ()
    return RuleDraft(values, agents=[call.agent], offers=offers)


def _arguments(call: Call) -> Any:
    """The arguments that rules saw, before an edit."""
    try:
        return strict_json.loads(bytes(call.arguments))
    except strict_json.Ambiguous:
        return None
