"""Calls by REST, for agents that speak no MCP: the same door, the same record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast
from uuid import UUID

import orjson
from django.http import Http404
from django.urls import reverse
from django.utils.translation import gettext as _
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.tokens import Bearer
from approvals import services as approvals
from calls.changes import Modified, modified
from calls.models import Call, Result
from calls.states import NOT_SENT, TERMINAL, State
from gateway import asking, problems, wording
from gateway.asking import Question
from gateway.formats import Renderer, StrictParser
from gateway.submit import Submitted
from registry.models import Toolset
from registry.published import PublishedTool, Violation

WAIT_S, WAIT_MAX_S = 10, 45


class AgentView(APIView):
    """For agents, who show their token; people's sessions open nothing here."""

    parser_classes = [StrictParser]
    renderer_classes = [Renderer]

    def get_exception_handler(self) -> Callable[[Exception, dict[str, Any]], Response | None]:
        return problems.of_exception


class Calls(AgentView):
    def post(self, request: Request) -> Response:
        """Ask for a call; `?wait=` so many seconds for what comes of it."""
        question = _question(request)
        submitted = asking.ask(question, seconds=_wait(request))
        if submitted.refusal:
            return _refused(submitted)
        call = _own(request, submitted.call_id)
        headers = {"Location": reverse("api:call", args=[call.pk])}
        return Response(described(call), 201 if call.state in TERMINAL else 202, headers=headers)


class OneCall(AgentView):
    def get(self, request: Request, call_id: UUID) -> Response:
        return Response(described(_own(request, call_id)))


class Cancel(AgentView):
    def post(self, request: Request, call_id: UUID) -> Response:
        call = _own(request, call_id)
        if not approvals.cancel(call.pk, by=call.agent.actor):
            return problems.problem(409, _("The call has ended."), call=str(call.pk))
        return Response(described(_own(request, call_id)), 202)


class Explain(AgentView):
    def post(self, request: Request) -> Response:
        """What rules say of a call, without asking for it.

        No other rule is named than the one that decides: an agent that was misled would learn
        where the gaps are.
        """
        decision, violations = asking.explained(_question(request))
        if decision is None:
            return problems.problem(404, _("There is no such tool."))
        answer = {"effect": decision.effect, "rule": decision.rule, "reason": decision.reason}
        return Response(answer | {"violations": _listed(violations)})


class Tools(AgentView):
    def get(self, request: Request) -> Response:
        """What the agent may call, by toolset."""
        found = Toolset.objects.filter(agents=_bearer(request).agent_id)
        slugs = found.values_list("slug", flat=True)
        wanted = request.query_params.get("toolset")
        if wanted is not None:
            slugs = slugs.filter(slug=wanted)
        if wanted is not None and not slugs:
            raise asking.NoSuchToolset("There is no such toolset for this agent.")
        return Response({"toolsets": [_toolset(slug) for slug in slugs]})


def described(call: Call) -> dict[str, Any]:
    """A call as its agent may see it; `result` and `error` as the server wrote them."""
    members: dict[str, Any] = {
        "id": call.pk,
        "fingerprint": call.fingerprint,
        "tool": call.tool_name,
        "toolset": call.toolset,
        "state": call.state,
        "executed": call.executed or None,
        "outcome": call.outcome or _stands(call),
        "reason": call.reason,
        "asked_at": call.asked_at,
        "finished_at": call.finished_at,
        "page": wording.page_of(call.pk),
        "arguments": orjson.Fragment(bytes(call.arguments)),
    }
    result = Result.objects.filter(call=call).first()
    if result is not None:
        members[result.kind] = orjson.Fragment(bytes(result.body))
    if found := _modified(call):
        members["arguments_modified"] = orjson.Fragment(found.json)
    return members


def _modified(call: Call) -> Modified | None:
    """What people changed of that which was sent, or is about to be."""
    if call.amendment is None or call.state in (State.HELD, *NOT_SENT):
        return None
    private = call.amendments.filter(private=True).exists()
    return modified(bytes(call.arguments), call.to_send, private=private)


def _stands(call: Call) -> str:
    return wording.stands(State(call.state), call.pk, call.fingerprint)


def _bearer(request: Request) -> Bearer:
    return cast("Bearer", request.auth)


def _own(request: Request, call_id: UUID) -> Call:
    agent_id = _bearer(request).agent_id
    call = (
        Call.objects.filter(agent=agent_id, pk=call_id).select_related("agent", "amendment").first()
    )
    if call is None:
        raise Http404
    return call


def _question(request: Request) -> Question:
    data = cast("dict[str, Any]", request.data)
    arguments = data.get("arguments")
    return Question(
        bearer=_bearer(request),
        toolset=_text(data, "toolset"),
        tool=_text(data, "tool"),
        arguments=data["raw"],
        parsed={} if arguments is None else arguments,
        origin=Call.Origin.REST,
    )


def _text(data: dict[str, Any], name: str) -> str:
    value = data.get(name)
    if not isinstance(value, str):
        raise ValidationError({"detail": _("%s must be a string.") % name})
    return value


def _wait(request: Request) -> int:
    said = request.query_params.get("wait", str(WAIT_S))
    if not said.isdecimal() or int(said) > WAIT_MAX_S:
        raise ValidationError({"detail": _("wait must be 0 to %d seconds.") % WAIT_MAX_S})
    return int(said)


def _refused(submitted: Submitted) -> Response:
    call = str(submitted.call_id)
    if submitted.refusal == "unknown_tool":
        return problems.problem(404, submitted.reason, call=call)
    if submitted.refusal == "invalid":
        found = _listed(submitted.violations)
        return problems.problem(422, submitted.reason, call=call, violations=found)
    if submitted.refusal == "frozen":
        return problems.problem(503, submitted.reason, call=call)
    return problems.problem(403, submitted.reason, call=call)


def _listed(violations: list[Violation]) -> list[dict[str, str]]:
    return [{"path": v.path, "expected": v.expected} for v in violations]


def _toolset(slug: str) -> dict[str, Any]:
    toolset = asking.published(slug)
    tools = toolset.by_exposed.items() if toolset else ()
    return {"name": slug, "tools": [_tool(name, tool) for name, tool in tools]}


def _tool(name: str, tool: PublishedTool) -> dict[str, Any]:
    return {**tool.content, "name": name}
