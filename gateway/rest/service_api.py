"""The REST API of service accounts: they read, and cancel calls.

Each view names the permission that the console asks for the same. Nobody decides here: approving
and denying is a person's act, signed in.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, cast
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db import models, transaction
from django.shortcuts import get_object_or_404
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.permissions import BasePermission, IsAuthenticated
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.authentication import ServiceTokenAuthentication
from accounts.models import Agent, ServiceAccount
from accounts.permission_names import PERMISSION_NAMES
from accounts.service_accounts import ServiceBearer, made_by
from approvals.models import Approval
from audit import finding
from audit.filters import Filters
from audit.services import record
from calls import services as calls
from calls.models import Call
from calls.record.states import State
from core.english import gettext as _
from core.outage import recording
from core.paging import SIZE, Page, paged
from gateway.rest import problems, resources
from gateway.rest.api import AgentView
from registry.models import Server, Tool, Toolset

LIMIT_MAX = 200


class HasScope(BasePermission):
    """The view's permission, which the token has at this moment."""

    def has_permission(self, request: Request, view: Any) -> bool:
        if view.scope and view.scope not in _bearer(request).scopes:
            said = _("This token does not have the permission “%(label)s” (%(name)s).")
            names = {"label": PERMISSION_NAMES[view.scope], "name": view.scope}
            raise PermissionDenied(said % names)
        return True


class ServiceView(AgentView):
    authentication_classes = [ServiceTokenAuthentication]
    permission_classes = [IsAuthenticated, HasScope]
    scope = ""


class Me(ServiceView):
    def get(self, request: Request) -> Response:
        bearer = _bearer(request)
        account = bearer.token.account
        return Response(
            {
                "name": account.name,
                "purpose": account.purpose,
                "made_by": account.created_by.username,
                "permissions": sorted(bearer.scopes),
                "token": str(bearer.token),
                "expires_at": bearer.token.expires_at,
            }
        )


class ListView(ServiceView):
    """Rows after a cursor; `next` is the cursor of what follows, null at the end."""

    rows: Callable[[Request], models.QuerySet[Any]]
    key = "id"
    # Reads a cursor; raises ValueError.
    cursor: Callable[[str], Any] = int
    shown: Callable[[Any], dict[str, Any]]

    def get(self, request: Request) -> Response:
        cls = type(self)
        given = {"beyond": _cursor(request, cls.cursor)}
        page = paged(cls.rows(request), cls.key, given, size=_limit(request))
        return _list_response(page, cls.shown)


class Servers(ListView):
    scope = "registry.view_server"
    rows = staticmethod(lambda request: Server.objects.kept())
    key = "slug"
    cursor = str
    shown = staticmethod(resources.server)


class ToolListing(ListView):
    scope = "registry.view_tool"
    rows = staticmethod(
        lambda request: _equal(
            Tool.objects.filter(server__deleted_at=None).select_related("server"),
            request,
            server="server__slug",
        )
    )
    key = "exposed_name"
    cursor = str
    shown = staticmethod(resources.tool)


class Toolsets(ListView):
    scope = "registry.view_toolset"
    rows = staticmethod(lambda request: Toolset.objects.prefetch_related("servers", "agents"))
    key = "slug"
    cursor = str
    shown = staticmethod(resources.toolset)


class Agents(ListView):
    scope = "accounts.view_agent"
    rows = staticmethod(lambda request: Agent.objects.select_related("owner"))
    key = "name"
    cursor = str
    shown = staticmethod(resources.agent)


class CallList(ListView):
    scope = "calls.view_call"
    rows = staticmethod(
        lambda request: _equal(
            Call.objects.for_list(), request, state="state", agent="agent__name", tool="tool_name"
        )
    )
    key = "-id"
    cursor = UUID
    shown = staticmethod(resources.call)


class CallDetail(ServiceView):
    scope = "calls.view_call"

    def get(self, request: Request, call_id: UUID) -> Response:
        return Response(resources.call(_call(call_id)))


class CancelCall(ServiceView):
    scope = "calls.cancel_call"

    @transaction.atomic
    def post(self, request: Request, call_id: UUID) -> Response:
        """Like the console: what is queued or running. What people decide on is theirs to deny."""
        account = _bearer(request).token.account
        with recording(request._request):
            call = _call(call_id)
            if not calls.cancel(call.pk, by=account.actor):
                return problems.problem(
                    409, _("It is neither queued nor running."), call=str(call.pk)
                )
            _note(account, "service_account.cancelled_call", call)
        return Response(resources.call(_call(call_id)), 202)


class Approvals(ListView):
    """The pending ones, the oldest first; to read alone."""

    scope = "approvals.view_approval"
    rows = staticmethod(lambda request: Approval.objects.waiting().for_queue())
    key = "pk"
    cursor = UUID
    shown = staticmethod(resources.approval)


class Decide(ServiceView):
    """Refused whatever the token may; the try is recorded."""

    def post(self, request: Request, call_id: UUID) -> Response:
        account = _bearer(request).token.account
        _note(account, "service_account.decision_refused", _call(call_id))
        said = _("No program approves or denies: a person does, signed in to the console.")
        return problems.problem(403, said, call=str(call_id))


class Entries(ServiceView):
    scope = "audit.view_entry"

    def get(self, request: Request) -> Response:
        filters = Filters.read(request.query_params, ZoneInfo("UTC")).without_text()
        within = finding.bounds(filters.since(), filters.until())
        page = finding.page_of(filters, {"beyond": _cursor(request, int)}, within)
        return _list_response(page, resources.entry)


def _bearer(request: Request) -> ServiceBearer:
    return cast("ServiceBearer", request.auth)


def _call(call_id: UUID) -> Call:
    return get_object_or_404(Call.objects.for_list(), pk=call_id)


def _note(account: ServiceAccount, action: str, call: Call) -> None:
    names: dict[str, Any] = {"agent": (call.agent_id, call.agent.name)}
    record(action, actor=account.actor, reason=made_by(account), call_id=call.pk, **names)


def _list_response(page: Page[Any], shown: Callable[[Any], dict[str, Any]]) -> Response:
    return Response({"items": [shown(row) for row in page.rows], "next": page.next or None})


def _cursor(request: Request, read: Callable[[str], Any]) -> str:
    given = request.query_params.get("cursor", "")
    try:
        if given:
            read(given)
    except ValueError:
        raise ValidationError(
            {"detail": _("cursor must be `next` of an earlier answer.")}
        ) from None
    return given


def _limit(request: Request) -> int:
    given = request.query_params.get("limit", str(SIZE))
    if not given.isdecimal() or len(given) > 9 or not 1 <= int(given) <= LIMIT_MAX:
        raise ValidationError({"detail": _("limit must be 1 to %d.") % LIMIT_MAX})
    return int(given)


def _equal(rows: models.QuerySet[Any], request: Request, **fields: str) -> models.QuerySet[Any]:
    """Narrowed by the query's parameters, which name fields."""
    given: Mapping[str, str] = request.query_params
    if given.get("state", State.HELD) not in State.values:
        raise ValidationError({"detail": _("state must be one of %s.") % ", ".join(State.values)})
    wanted = {field: given[name] for name, field in fields.items() if given.get(name)}
    return rows.filter(**wanted)
