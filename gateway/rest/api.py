"""Calls by REST, for agents that speak no MCP: the same door, the same record."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, cast
from uuid import UUID

from django.db.models import QuerySet
from django.http import Http404, HttpRequest
from django.http.response import HttpResponseBase
from django.urls import reverse
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.tokens import Bearer
from calls.models import Call
from calls.record.states import TERMINAL
from core.connections import each_within
from core.english import gettext as _
from core.outage import Recorded, note, recording
from gateway.call_request import SubmitResult
from gateway.rest import problems
from gateway.rest.formats import Renderer, StrictParser
from gateway.submit import idempotency, sync, wait
from gateway.submit.description import described
from gateway.submit.sync import SyncCallRequest
from gateway.submit.token_scope import reaches
from registry.models import Toolset
from registry.publishing.published_tools import PublishedToolset, Violation
from registry.publishing.tool_lists import FORMATS, ToolList, tool_list

WAIT_S, WAIT_MAX_S = 10, 45
# Of each statement: an agent asks for a few rows, and is told soon where there are none to be had.
STATEMENT_S = 2.0


class AgentView(APIView):
    """Views for agents, by token; people's sessions open nothing here."""

    parser_classes = [StrictParser]
    renderer_classes = [Renderer]
    # The parameters of a query; None: whatever there is.
    queries: Collection[str] | None = ()

    def queries_of(self, method: str) -> Collection[str] | None:
        return self.queries

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        with each_within(STATEMENT_S):
            return super().dispatch(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        if "\0" in request.path:
            raise NotFound(_("There is no such address."))
        if any("\0" in text for text in request.query_params.values()):
            raise ValidationError({"detail": _("No parameter may hold NUL.")})
        _check_names(request.query_params, self.queries_of(str(request.method)))

    def get_exception_handler(self) -> Callable[[Exception, dict[str, Any]], Response | None]:
        return problems.of_exception


def _check_names(given: Collection[str], known: Collection[str] | None) -> None:
    """A misspelt filter would find everything. Raises ValidationError."""
    unknown = sorted(set(given) - set(known)) if known is not None else []
    if unknown and known:
        said = _("There is no parameter “%(name)s” here. There are: %(known)s.")
        raise ValidationError(
            {"detail": said % {"name": unknown[0][:60], "known": ", ".join(known)}}
        )
    if unknown:
        said = _("There is no parameter “%s” here, nor any other.")
        raise ValidationError({"detail": said % unknown[0][:60]})


class Calls(AgentView):
    queries = ("wait",)

    def post(self, request: Request) -> Response:
        """Ask for a call; `?wait=` so many seconds for what comes of it."""
        question = _question(request)
        submitted = sync.ask(question, seconds=wait_of(request))
        note(request._request, Recorded.YES, submitted.call_id)
        if submitted.refusal:
            return refused(submitted)
        call = own_call(request, submitted.call_id)
        place = {"Location": reverse("api:call", args=[call.pk])}
        headers = place | problems.quotas(submitted.warnings)
        told = described(call)
        if submitted.warnings:
            told["limits"] = [one.warning for one in submitted.warnings]
        return Response(told, 201 if call.state in TERMINAL else 202, headers=headers)


class OneCall(AgentView):
    def get(self, request: Request, call_id: UUID) -> Response:
        return Response(described(own_call(request, call_id)))


class Cancel(AgentView):
    def post(self, request: Request, call_id: UUID) -> Response:
        with recording(request._request):
            call = own_call(request, call_id)
            cancelled = wait.cancel_now(call.pk, by=call.agent.actor)
        if not cancelled:
            return problems.problem(409, _("The call has ended."), call=str(call.pk))
        return Response(described(own_call(request, call_id)), 202)


class Explain(AgentView):
    def post(self, request: Request) -> Response:
        """Returns what would become of a call, without making it."""
        foreseen = sync.explained(_question(request))
        if foreseen is None:
            return problems.problem(404, _("There is no such tool."))
        return Response(foreseen.members())


class Tools(AgentView):
    queries = ("toolset",)

    def get(self, request: Request) -> Response:
        """Lists the tools that the agent may call, by toolset."""
        slugs = toolsets_of(bearer_of(request)).values_list("slug", flat=True)
        wanted = request.query_params.get("toolset")
        if wanted is not None:
            slugs = slugs.filter(slug=wanted)
        if wanted is not None and not slugs:
            raise sync.NoSuchToolset("There is no such toolset for this agent.")
        return Response({"toolsets": [_toolset(bearer_of(request), slug) for slug in slugs]})


class ToolsetTools(AgentView):
    queries = ("format",)

    def get(self, request: Request, slug: str) -> Response:
        """Lists a toolset's tools as a model's API takes them: `?format=`, one of FORMATS."""
        form = format_of(request)
        if not toolsets_of(bearer_of(request)).filter(slug=slug).exists():
            raise sync.NoSuchToolset("There is no such toolset for this agent.")
        return tool_list_response(request, sync.usable(bearer_of(request), slug), slug, form)


def format_of(request: Request) -> str:
    form = request.query_params.get("format", "mcp")
    if form not in FORMATS:
        known = ", ".join(FORMATS)
        raise ValidationError({"detail": _("format must be one of %s.") % known})
    return form


def tool_list_response(
    request: Request, toolset: PublishedToolset | None, slug: str, form: str
) -> Response:
    """The digest is the version, also of a toolset that has nothing published."""
    found = tool_list(toolset, form) if toolset else ToolList(form, [], [])
    headers = {"ETag": f'"{found.digest}"', "Cache-Control": "private, no-cache"}
    if found.digest in request.headers.get("If-None-Match", ""):
        return Response(None, 304, headers=headers)
    return Response(found.plain(slug), headers=headers)


def bearer_of(request: Request) -> Bearer:
    return cast("Bearer", request.auth)


def toolsets_of(bearer: Bearer) -> QuerySet[Toolset]:
    """The agent's toolsets that its token opens."""
    found = Toolset.objects.filter(agents=bearer.agent_id)
    return found.filter(slug__in=bearer.toolsets) if bearer.toolsets else found


def own_call(request: Request, call_id: UUID) -> Call:
    """The agent's; of a limited token, one that it could ask for. Raises Http404."""
    bearer = bearer_of(request)
    found = Call.objects.filter(agent=bearer.agent_id, pk=call_id)
    call = found.select_related("agent", "amendment").first()
    if call is None or (bearer.is_limited and not _reaches(bearer, call)):
        raise Http404
    return call


def _reaches(bearer: Bearer, call: Call) -> bool:
    slugs = toolsets_of(bearer).values_list("slug", flat=True)
    toolsets = filter(None, map(sync.published, slugs))
    return any(reaches(bearer, toolset, call.tool_id) for toolset in toolsets)


def _question(request: Request) -> SyncCallRequest:
    data = cast("dict[str, Any]", request.data)
    arguments = data.get("arguments")
    return SyncCallRequest(
        bearer=bearer_of(request),
        toolset=_text(data, "toolset"),
        tool=_text(data, "tool"),
        arguments=data["raw"],
        parsed={} if arguments is None else arguments,
        origin=Call.Origin.REST,
        **options_of(request, data),
    )


def options_of(request: Request, data: dict[str, Any]) -> dict[str, Any]:
    header = request.headers.get("Idempotency-Key")
    try:
        key = idempotency.key_of(header and header.strip(), {})
        return {
            "key": key,
            "allow_duplicate": idempotency.duplicate_allowed(
                {idempotency.ALLOW_DUPLICATE: data.get("again", False)}
            ),
        }
    except idempotency.InvalidOption as error:
        raise ValidationError({"detail": str(error)}) from error


def _text(data: dict[str, Any], name: str) -> str:
    value = data.get(name)
    if not isinstance(value, str):
        raise ValidationError({"detail": _("%s must be a string.") % name})
    return value


def wait_of(request: Request, *, default: int = WAIT_S) -> int:
    said = request.query_params.get("wait", str(default))
    if not said.isdecimal() or len(said) > 9 or int(said) > WAIT_MAX_S:
        raise ValidationError({"detail": _("wait must be 0 to %d seconds.") % WAIT_MAX_S})
    return int(said)


STATUSES = {"unknown_tool": 404, "invalid": 422, "key": 422, "frozen": 503, "limit": 429}


def refused(submitted: SubmitResult) -> Response:
    members: dict[str, Any] = {"call": str(submitted.call_id)}
    if submitted.violations:
        members["violations"] = _violations_json(submitted.violations)
    if submitted.answer and submitted.answer.refusal:
        members["refusal"] = submitted.answer.refusal.told(submitted.reason)
    status = STATUSES.get(submitted.refusal, 403)
    response = problems.problem(status, submitted.reason, **members)
    if submitted.reached is not None:
        for name, value in problems.rate_limit(submitted.reached).items():
            response[name] = value
    return response


def _violations_json(violations: list[Violation]) -> list[dict[str, str]]:
    return [{"path": v.path, "expected": v.expected} for v in violations]


def _toolset(bearer: Bearer, slug: str) -> dict[str, Any]:
    toolset = sync.usable(bearer, slug)
    tools = toolset.by_exposed.items() if toolset else ()
    own = sorted(toolset.own_tools) if toolset else []
    listed = [toolset.definition_for(name, tool) for name, tool in tools] if toolset else []
    return {"name": slug, "own_tools": own, "tools": listed}
