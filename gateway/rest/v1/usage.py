"""Figures of the console's charts, and what an installation waits for now."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.db.models import Model
from django.shortcuts import get_object_or_404
from django.utils import timezone
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import Agent
from approvals.models import Approval
from calls import pauses
from calls.models import Call, Freeze
from calls.record.states import State
from calls.views import usage_figures
from calls.views.narrowed_figures import read_narrowed
from calls.views.range_figures import OUTCOMES, RangeFigures, read_figures
from calls.views.time_ranges import RANGES, USUAL
from core.english import gettext as _
from gateway.rest.v1 import plain
from gateway.rest.v1.views import ServiceView, bearer_of
from policies.models import Rule
from registry.models import Server, Tool

UTC = ZoneInfo("UTC")
# Counting further would only cost.
COUNTED = 1_000


class OutcomesAnswer(serializers.Serializer[Any]):
    def get_fields(self) -> dict[str, Any]:
        return {name: serializers.IntegerField() for name in OUTCOMES}


class StepAnswer(serializers.Serializer[Any]):
    since = serializers.DateTimeField()
    until = serializers.DateTimeField()
    calls = serializers.IntegerField()
    outcomes = OutcomesAnswer()
    # In seconds.
    p50 = serializers.FloatField(allow_null=True)
    p95 = serializers.FloatField(allow_null=True)


class TopAnswer(serializers.Serializer[Any]):
    name = serializers.CharField()
    calls = serializers.IntegerField()
    error_percent = serializers.FloatField(allow_null=True)
    p95 = serializers.FloatField(allow_null=True)


class UsageAnswer(serializers.Serializer[Any]):
    range = serializers.ChoiceField(choices=list(RANGES))
    calls = serializers.IntegerField()
    # In as long a time before.
    calls_before = serializers.IntegerField()
    outcomes = OutcomesAnswer()
    # Of the calls that ended.
    error_percent = serializers.FloatField(allow_null=True)
    p50 = serializers.FloatField(allow_null=True)
    p95 = serializers.FloatField(allow_null=True)
    # Whether durations and shares are of a sample.
    is_sampled = serializers.BooleanField()
    steps = StepAnswer(many=True)
    # Of all calls: those with the most of them.
    tools = TopAnswer(many=True)
    agents = TopAnswer(many=True)
    servers = TopAnswer(many=True)


class DayAnswer(serializers.Serializer[Any]):
    day = serializers.DateField()
    calls = serializers.IntegerField()
    error_share = serializers.FloatField()
    p50 = serializers.FloatField(allow_null=True)
    p95 = serializers.FloatField(allow_null=True)


class CallerAnswer(serializers.Serializer[Any]):
    agent = serializers.CharField()
    calls = serializers.IntegerField()


class ToolUsageAnswer(serializers.Serializer[Any]):
    tool = serializers.CharField()
    calls = serializers.IntegerField()
    error_percent = serializers.FloatField()
    p50 = serializers.FloatField(allow_null=True)
    p95 = serializers.FloatField(allow_null=True)
    days = DayAnswer(many=True)
    # Of the newest calls.
    callers = CallerAnswer(many=True)


class HealthAnswer(serializers.Serializer[Any]):
    # "": calls are sent; otherwise why they are not.
    paused = serializers.CharField()
    pending_approvals = serializers.IntegerField()
    oldest_pending_at = serializers.DateTimeField(allow_null=True)
    queued_calls = serializers.IntegerField()
    running_calls = serializers.IntegerField()
    # At most 1,000 are counted.
    unresolved_outcomes = serializers.IntegerField()
    emergency_stops = serializers.IntegerField()
    unreachable_servers = serializers.ListField(child=serializers.CharField())


class RangeView(ServiceView):
    scopes = {"GET": ("calls.view_call",)}
    answers = {"GET": UsageAnswer}
    queries = ("range",)
    query_schemas = {"range": {"type": "string", "enum": list(RANGES), "default": USUAL.name}}


class UsageFigures(RangeView):
    """Calls of a range by outcome, with durations, and whose they were."""

    def get(self, request: Request) -> Response:
        return _answer(request, read_figures)


class AgentUsage(RangeView):
    """Figures of one agent's calls."""

    def get(self, request: Request, name: str) -> Response:
        return _narrowed(request, "agent", get_object_or_404(Agent, name=name))


class ServerUsage(RangeView):
    """Figures of one server's calls."""

    scopes = {"GET": ("calls.view_call", "registry.view_server")}

    def get(self, request: Request, slug: str) -> Response:
        row = get_object_or_404(Server.objects.kept(), slug=slug)
        return _narrowed(request, "server", row)


class RuleUsage(RangeView):
    """Figures of the calls that one rule decided."""

    scopes = {"GET": ("calls.view_call", "policies.view_rule")}

    def get(self, request: Request, pk: int) -> Response:
        return _narrowed(request, "rule", get_object_or_404(Rule, pk=pk))


class ToolUsage(ServiceView):
    """A tool's last 30 days, in UTC."""

    scopes = {"GET": ("calls.view_call", "registry.view_tool")}
    answers = {"GET": ToolUsageAnswer}

    def get(self, request: Request, tool: str) -> Response:
        row = get_object_or_404(Tool, exposed_name=tool)
        return Response(plain.tool_usage(row, usage_figures.of_tool(row.pk, "UTC")))


class Health(ServiceView):
    """Pending approvals, unresolved outcomes, stops and unreachable servers at this moment."""

    scopes = {"GET": ("calls.view_call", "registry.view_server")}
    answers = {"GET": HealthAnswer}

    def get(self, request: Request) -> Response:
        pending = Approval.objects.waiting()
        down = Server.objects.kept().filter(enabled=True, health=Server.Health.DOWN)
        return Response(
            {
                "paused": pauses.why_paused(),
                "pending_approvals": pending.count(),
                "oldest_pending_at": pending.order_by("asked_at")
                .values_list("asked_at", flat=True)
                .first(),
                "queued_calls": _count(State.QUEUED),
                "running_calls": _count(State.RUNNING),
                "unresolved_outcomes": _count(State.UNKNOWN),
                "emergency_stops": Freeze.objects.filter(ended_at=None).count(),
                "unreachable_servers": sorted(down.values_list("slug", flat=True)),
            }
        )


def _count(state: State) -> int:
    return Call.objects.filter(state=state)[:COUNTED].count()


def _narrowed(request: Request, kind: str, row: Model) -> Response:
    return _answer(request, lambda edges, now: read_narrowed(kind, row.pk, edges, now))


def _answer(
    request: Request, read: Callable[[Sequence[datetime], datetime], RangeFigures]
) -> Response:
    name, now = request.query_params.get("range", USUAL.name), timezone.now()
    if name not in RANGES:
        raise ValidationError({"detail": _("range must be one of %s.") % ", ".join(RANGES)})
    found = read(RANGES[name].edges(now, UTC), now)
    tops = dict(found.tops)
    if "registry.view_server" not in bearer_of(request).scopes:
        tops.pop("server", None)
    return Response(plain.usage(name, found, tops))
