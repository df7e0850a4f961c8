"""Calls, pending approvals, entries and the token itself: to read, and calls to cancel.

Nobody decides here: approving and denying is a person's act, signed in.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import ServiceAccount
from accounts.service_accounts import made_by
from approvals.models import Approval
from audit import finding
from audit.services import record
from calls import services as calls
from calls.models import Call
from calls.record.states import State
from core.english import gettext as _
from gateway.rest import problems
from gateway.rest.v1 import entry_filters, plain
from gateway.rest.v1.members import Members
from gateway.rest.v1.views import (
    ListView,
    ServiceView,
    bearer_of,
    cursor_of,
    equal_to,
    limit_of,
    list_response,
    names_of,
    selected,
)


class MeAnswer(serializers.Serializer[Any]):
    name = serializers.CharField()
    purpose = serializers.CharField()
    made_by = serializers.CharField()
    permissions = serializers.ListField(child=serializers.CharField())
    token = serializers.CharField()
    expires_at = serializers.DateTimeField()


class CallAnswer(serializers.Serializer[Any]):
    id = serializers.UUIDField()
    agent = serializers.CharField()
    person = serializers.CharField()
    tool = serializers.CharField()
    toolset = serializers.CharField()
    state = serializers.ChoiceField(choices=State.values)
    effect = serializers.CharField()
    reason = serializers.CharField()
    executed = serializers.CharField(allow_null=True)
    outcome = serializers.CharField()
    asked_at = serializers.DateTimeField()
    finished_at = serializers.DateTimeField(allow_null=True)
    page = serializers.CharField()


class ApprovalAnswer(serializers.Serializer[Any]):
    call = CallAnswer()
    asked_at = serializers.DateTimeField()
    decide_by = serializers.DateTimeField(allow_null=True)


class EntryAnswer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    action = serializers.CharField()
    actor_kind = serializers.CharField()
    actor = serializers.CharField()
    call = serializers.UUIDField(allow_null=True)
    from_state = serializers.CharField()
    to_state = serializers.CharField()
    agent = serializers.CharField()
    person = serializers.CharField()
    server = serializers.CharField()
    tool = serializers.CharField()
    reason = serializers.CharField()
    details = serializers.DictField()


class Me(ServiceView):
    """The account, and what the token opens at this moment."""

    scopes = {"GET": ()}
    answers = {"GET": MeAnswer}

    def get(self, request: Request) -> Response:
        bearer = bearer_of(request)
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


class CallList(ListView):
    """The newest first."""

    scopes = {"GET": ("calls.view_call",)}
    answers = {"GET": CallAnswer}
    queries = ("state", "agent", "tool")
    query_schemas = {"state": {"type": "string", "enum": State.values}}
    rows = staticmethod(lambda request: _narrowed(request))  # noqa: PLW0108 defined below
    key = "-id"
    cursor = UUID
    shown = staticmethod(plain.call)


class CallDetail(ServiceView):
    has_fields = True
    scopes = {"GET": ("calls.view_call",)}
    answers = {"GET": CallAnswer}

    def get(self, request: Request, call_id: UUID) -> Response:
        return Response(selected(request, plain.call(_call(call_id))))


class CancelCall(ServiceView):
    """Cancels a queued or running call. A pending one is for people to deny."""

    scopes = {"POST": ("calls.cancel_call",)}
    bodies = {"POST": Members}
    answers = {"POST": (202, CallAnswer)}

    def post(self, request: Request, call_id: UUID) -> Response:
        return self.once(request, lambda: self._cancel(request, _call(call_id)))

    def _cancel(self, request: Request, call: Call) -> Response:
        self.body(request)
        account = bearer_of(request).token.account
        if not calls.cancel(call.pk, by=account.actor):
            return problems.problem(409, _("It is neither queued nor running."), call=str(call.pk))
        _note(account, "service_account.cancelled_call", call)
        return Response(plain.call(_call(call.pk)), 202)


class Approvals(ListView):
    """The pending ones, the oldest first; to read alone."""

    scopes = {"GET": ("approvals.view_approval",)}
    answers = {"GET": ApprovalAnswer}
    rows = staticmethod(lambda request: Approval.objects.waiting().for_queue())
    key = "pk"
    cursor = UUID
    shown = staticmethod(plain.approval)


class Decide(ServiceView):
    """Never done, whatever the token opens; the attempt is recorded. Only a person decides."""

    scopes = {"POST": ()}
    answers = {"POST": (403, None)}
    has_key = False

    def post(self, request: Request, call_id: UUID) -> Response:
        account = bearer_of(request).token.account
        _note(account, "service_account.decision_refused", _call(call_id))
        said = _("No program approves or denies: a person does, signed in to the console.")
        return problems.problem(403, said, call=str(call_id))


class Approve(Decide):
    pass


class Deny(Decide):
    pass


class Entries(ServiceView):
    """The newest first, with the filters of the audit log's address."""

    scopes = {"GET": ("audit.view_entry",)}
    answers = {"GET": EntryAnswer}
    queries = entry_filters.FILTERS
    query_schemas = entry_filters.SCHEMAS
    is_list = True
    has_fields = True

    def get(self, request: Request) -> Response:
        given = request.query_params.dict()
        if mistake := entry_filters.mistake_in(given):
            raise ValidationError({"detail": mistake})
        filters = entry_filters.read(given)
        within = finding.bounds(filters.since(), filters.until())
        names_of(request, [*EntryAnswer().fields])
        beyond = {"beyond": cursor_of(request, int)}
        page = finding.page_of(filters, beyond, within, size=limit_of(request))
        return list_response(request, page, plain.entry)


def _narrowed(request: Request) -> QuerySet[Call]:
    if request.query_params.get("state", State.HELD) not in State.values:
        raise ValidationError({"detail": _("state must be one of %s.") % ", ".join(State.values)})
    fields = {"state": "state", "agent": "agent__name", "tool": "tool_name"}
    return equal_to(Call.objects.for_list(), request, **fields)


def _call(call_id: UUID) -> Call:
    return get_object_or_404(Call.objects.for_list(), pk=call_id)


def _note(account: ServiceAccount, action: str, call: Call) -> None:
    names: dict[str, Any] = {"agent": (call.agent_id, call.agent.name)}
    record(action, actor=account.actor, reason=made_by(account), call_id=call.pk, **names)
