"""Emergency stops and standing approvals.

Whoever began a stop does not end it: not by another token, nor by another service account that the
same user made. Standing approvals are made by people alone, from calls that they approved.
"""

from __future__ import annotations

from typing import Any

from django.db.models import Model, QuerySet
from django.shortcuts import get_object_or_404
from django.urls import reverse
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import Agent
from approvals import freezes, standing_approvals
from approvals.models import Grant
from calls.models import Freeze
from core.english import gettext as _
from gateway.rest.v1 import plain
from gateway.rest.v1.members import Flag, Members, Text
from gateway.rest.v1.views import ListView, RowView, ServiceView, caller_of
from registry.models import Server

STATES = ("in_force", "suspended", "used_up", "expired", "revoked")


class StopBody(Members):
    """One of `agent`, `server` and `everything`."""

    agent = Text(required=False, max_length=60)
    server = Text(required=False, max_length=32)
    everything = Flag(required=False)
    together = {"oneOf": [{"required": [name]} for name in ("agent", "server", "everything")]}
    # Agents and all users of the console read it.
    reason = Text(max_length=300)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if len({"agent", "server"} & attrs.keys()) + attrs.get("everything", False) != 1:
            raise serializers.ValidationError(_("Give one of agent, server and everything."))
        return attrs


class EndBody(Members):
    why = Text(max_length=300)


class StopAnswer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    agent = serializers.CharField(allow_null=True)
    server = serializers.CharField(allow_null=True)
    reason = serializers.CharField()
    began_by = serializers.CharField()
    began_by_account = serializers.CharField(allow_null=True)
    began_at = serializers.DateTimeField()
    ended_by = serializers.CharField(allow_null=True)
    ended_by_account = serializers.CharField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)
    ended_why = serializers.CharField()


class StandingApprovalAnswer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    agent = serializers.CharField()
    tool = serializers.CharField()
    owner = serializers.CharField()
    state = serializers.ChoiceField(choices=STATES)
    uses = serializers.IntegerField()
    max_uses = serializers.IntegerField()
    created_at = serializers.DateTimeField()
    expires_at = serializers.DateTimeField()
    revoked_at = serializers.DateTimeField(allow_null=True)
    note = serializers.CharField()


class EmergencyStops(ListView):
    """The newest first."""

    scopes = {"GET": ("calls.view_call",), "POST": (freezes.BEGIN,)}
    bodies = {"POST": StopBody}
    answers = {"GET": StopAnswer, "POST": (201, StopAnswer)}
    rows = staticmethod(lambda request: Freeze.objects.for_page())
    key = "-id"
    shown = staticmethod(plain.emergency_stop)

    def post(self, request: Request) -> Response:
        return self.once(request, lambda: self._begin(request))

    def _begin(self, request: Request) -> Response:
        given = self.body(request)
        made = freezes.begin(
            by=caller_of(request),
            reason=given["reason"].strip(),
            agent=_named(given, "agent", Agent.objects.all(), "name"),
            server=_named(given, "server", Server.objects.kept(), "slug"),
        )
        made.refresh_from_db()
        there = reverse("api:stop_detail", args=[made.pk])
        return OneEmergencyStop().answer(made, 201, there)


class OneEmergencyStop(RowView):
    scopes = {"GET": ("calls.view_call",)}
    answers = {"GET": StopAnswer}

    def row(self, request: Request, pk: int) -> Freeze:
        return get_object_or_404(Freeze.objects.for_page(), pk=pk)

    def plain(self, row: Freeze) -> dict[str, Any]:
        return plain.emergency_stop(row)


class EndEmergencyStop(ServiceView):
    """By somebody else than who began it, with a reason."""

    scopes = {"POST": (freezes.END,)}
    bodies = {"POST": EndBody}
    answers = {"POST": StopAnswer}

    def post(self, request: Request, pk: int) -> Response:
        return self.once(request, lambda: self._end(request, pk))

    def _end(self, request: Request, pk: int) -> Response:
        why = self.body(request)["why"].strip()
        stop = get_object_or_404(Freeze.objects.for_page(), pk=pk)
        freezes.end(stop, by=caller_of(request), why=why)
        return Response(plain.emergency_stop(Freeze.objects.for_page().get(pk=pk)))


class StandingApprovals(ListView):
    """The newest first, without the arguments that they cover."""

    scopes = {"GET": ("approvals.view_grant",)}
    answers = {"GET": StandingApprovalAnswer}
    rows = staticmethod(lambda request: Grant.objects.for_page())
    key = "-id"
    shown = staticmethod(plain.standing_approval)


class OneStandingApproval(RowView):
    scopes = {"GET": ("approvals.view_grant",)}
    answers = {"GET": StandingApprovalAnswer}

    def row(self, request: Request, pk: int) -> Grant:
        return get_object_or_404(Grant.objects.for_page(), pk=pk)

    def plain(self, row: Grant) -> dict[str, Any]:
        return plain.standing_approval(row)


class RevokeStandingApproval(ServiceView):
    scopes = {"POST": ("approvals.view_grant", "approvals.revoke_grant")}
    bodies = {"POST": Members}
    answers = {"POST": StandingApprovalAnswer}

    def post(self, request: Request, pk: int) -> Response:
        return self.once(request, lambda: self._revoke(request, pk))

    def _revoke(self, request: Request, pk: int) -> Response:
        self.body(request)
        grant = get_object_or_404(Grant.objects.for_page(), pk=pk)
        standing_approvals.revoke(grant, by=caller_of(request))
        return Response(plain.standing_approval(Grant.objects.for_page().get(pk=pk)))


def _named(given: dict[str, Any], member: str, rows: QuerySet[Any], key: str) -> Any:
    """None where the member was not given."""
    if member not in given:
        return None
    found: Model | None = rows.filter(**{key: given[member]}).first()
    if found is None:
        raise ValidationError({member: [_("There is no “%s” here.") % given[member]]})
    return found
