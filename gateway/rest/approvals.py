"""Statements that people countersign, for programs that call no tools."""

from __future__ import annotations

import hashlib
from typing import Any, cast
from uuid import UUID

import orjson
from django.conf import settings
from django.http import Http404
from django.urls import reverse
from rest_framework.exceptions import ValidationError
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response

from approvals import decision_keys
from approvals.statements import decision_of, is_statement
from calls.models import Call
from core.client_address import client_address
from core.english import gettext as _
from core.outage import Recorded, note
from core.request_rate import RequestRate
from gateway.rest import problems
from gateway.rest.api import (
    AgentView,
    bearer_of,
    options_of,
    own_call,
    refused,
    toolsets_of,
    wait_of,
)
from gateway.rest.formats import StrictParser
from gateway.statements.decisions import described
from gateway.statements.server import TOOL
from gateway.submit import sync
from gateway.submit.sync import SyncCallRequest

# So long a withdrawn key may still be believed.
KEYS_KEPT_S = 300
# Of a request; the parser adds "raw".
MEMBERS = {"statement", "toolset", "raw"}
KEYS_RATE = RequestRate(60, 60)


class StatementParser(StrictParser):
    raw_member = "statement"


class StatementApprovals(AgentView):
    parser_classes = [StatementParser]
    queries = ("wait",)

    def post(self, request: Request) -> Response:
        """Asks for a statement to be countersigned; `?wait=` so many seconds for the decision."""
        question = _question(request)
        if question is None:
            return problems.problem(404, _("No toolset of this agent has the tool for statements."))
        submitted = sync.ask(question, seconds=wait_of(request))
        note(request._request, Recorded.YES, submitted.call_id)
        if submitted.refusal:
            return refused(submitted)
        body = described(_own(request, submitted.call_id))
        place = {"Location": reverse("api:approval", args=[submitted.call_id])}
        headers = place | problems.quotas(submitted.warnings)
        return Response(body, 201 if body["decision"] else 202, headers=headers)


class OneApproval(AgentView):
    queries = ("wait",)

    def get(self, request: Request, call_id: UUID) -> Response:
        call = _own(request, call_id)
        seconds = wait_of(request, default=0)
        if seconds and decision_of(call, None) is None:
            sync.await_end(call_id, seconds=seconds)
            call = _own(request, call_id)
        return Response(described(call))


class Keys(AgentView):
    """Public: whoever verifies a decision has no token."""

    authentication_classes = []
    permission_classes = [AllowAny]

    def get(self, request: Request) -> Response:
        """The public keys that verify signed decisions, as a JWK Set."""
        if wait_s := KEYS_RATE.wait_s(client_address(request._request)):
            answer = problems.problem(429, _("Too many requests from this address."))
            answer["Retry-After"] = str(wait_s)
            return answer
        keys = decision_keys.key_set()
        tag = f'"{hashlib.sha256(orjson.dumps(keys)).hexdigest()[:32]}"'
        headers = {"ETag": tag, "Cache-Control": f"public, max-age={KEYS_KEPT_S}"}
        if tag in request.headers.get("If-None-Match", ""):
            return Response(status=304, headers=headers)
        return Response(keys, headers=headers)


def _question(request: Request) -> SyncCallRequest | None:
    data = cast("dict[str, Any]", request.data)
    if unknown := sorted(data.keys() - MEMBERS):
        raise ValidationError({"detail": _("There is no member %s.") % unknown[0]})
    found, statement = _tool_of(request, data.get("toolset")), data.get("statement")
    if found is None:
        return None
    toolset, tool = found
    return SyncCallRequest(
        bearer=bearer_of(request),
        toolset=toolset,
        tool=tool,
        arguments=data["raw"],
        parsed={} if statement is None else statement,
        origin=Call.Origin.REST,
        # Its program acts once for each approval: two programs never share one.
        is_separate=True,
        **options_of(request, data),
    )


def _tool_of(request: Request, wanted: object) -> tuple[str, str] | None:
    """The agent's toolset that has the tool for statements, and the tool's name there."""
    mine = toolsets_of(bearer_of(request)).order_by("slug")
    for slug in mine.values_list("slug", flat=True):
        toolset = sync.published(slug) if wanted in (None, slug) else None
        for name, tool in toolset.by_exposed.items() if toolset else ():
            if tool.name == TOOL["name"] and list(tool.connection.argv) == settings.STATEMENTS_ARGV:
                return slug, name
    return None


def _own(request: Request, call_id: UUID) -> Call:
    call = own_call(request, call_id)
    tool = call.tool
    # The server may have had another command when its other tools were called.
    if tool is None or tool.name != TOOL["name"] or not is_statement(call):
        raise Http404
    return call
