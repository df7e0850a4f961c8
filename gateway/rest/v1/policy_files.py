"""Policy as code: programs export, propose and apply; people confirm, in the console."""

from __future__ import annotations

from typing import Any

from django.shortcuts import get_object_or_404
from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.relying_party import expected_origins
from approvals.policy_plans import applying, planning, summaries
from approvals.policy_plans.planning import (
    CALLS,
    CALLS_MAX,
    CALLS_MIN,
    EXPORT,
    ORIGIN_MAX,
    VIEW,
    NothingToPlan,
)
from gateway.rest import problems
from gateway.rest.v1.members import Members, Text, Whole
from gateway.rest.v1.views import ListView, RowView, ServiceView, caller_of
from policies.as_code import documents
from policies.as_code.differences import all_changes
from policies.as_code.documents import PolicyFile, PolicyMistakes
from policies.as_code.yaml_reader import MAX_BYTES
from policies.models import PolicyPlan

PROPOSE = "policies.add_policyplan"
APPLY = "policies.apply_policyplan"


class FileBody(Members):
    proposal = Text(max_length=MAX_BYTES)


class PlanBody(FileBody):
    """`origin`: the pull request or commit. `calls`: about so many are judged again."""

    origin = Text(max_length=ORIGIN_MAX, default="", allow_blank=True)
    calls = Whole(default=CALLS, min_value=CALLS_MIN, max_value=CALLS_MAX)


class PolicyExportAnswer(serializers.Serializer[Any]):
    policy = serializers.CharField()


class PolicyChangeAnswer(serializers.Serializer[Any]):
    section = serializers.CharField()
    name = serializers.CharField()
    kind = serializers.ChoiceField(choices=["added", "changed", "removed", "moved"])
    before = serializers.JSONField()
    after = serializers.JSONField()
    members = serializers.ListField(child=serializers.CharField())


class PolicyDifferenceAnswer(serializers.Serializer[Any]):
    changes = PolicyChangeAnswer(many=True)


class PlanAnswer(serializers.Serializer[Any]):
    digest = serializers.CharField()
    base_digest = serializers.CharField()
    managed_by = serializers.CharField()
    origin = serializers.CharField()
    proposal = serializers.CharField()
    changes = PolicyChangeAnswer(many=True)
    result = serializers.JSONField()
    created_at = serializers.DateTimeField()
    applied_at = serializers.DateTimeField(allow_null=True)
    confirmed_by = serializers.ListField(child=serializers.CharField())
    needs = serializers.IntegerField()
    address = serializers.CharField()
    markdown = serializers.CharField()


class PolicyExport(ServiceView):
    """All that a policy file can have, as it is now, as YAML."""

    scopes = {"GET": EXPORT}
    answers = {"GET": PolicyExportAnswer}

    def get(self, request: Request) -> Response:
        return Response({"policy": documents.export()})


class PolicySchema(ServiceView):
    """The JSON Schema of policy files."""

    scopes = {"GET": ()}
    answers = {"GET": OpenApiTypes.OBJECT}

    def get(self, request: Request) -> Response:
        return Response(documents.schema())


class PolicyDifference(ServiceView):
    """Changes that a file would make. Nothing is kept. What changes shows what is there: that takes
    what an export takes."""

    scopes = {"POST": (PROPOSE, *EXPORT)}
    bodies = {"POST": FileBody}
    answers = {"POST": PolicyDifferenceAnswer}
    has_key = False

    def post(self, request: Request) -> Response:
        return _with_file(self, request, _difference)


class PolicyPlans(ListView):
    """Plans, the newest first, and a new one. 204: the file changes nothing."""

    scopes = {"GET": VIEW, "POST": (PROPOSE, *VIEW)}
    bodies = {"POST": PlanBody}
    answers = {"GET": PlanAnswer, "POST": (201, PlanAnswer)}
    empty_answers = {"POST": 204}
    rows = staticmethod(lambda request: PolicyPlan.objects.all())
    key = "-id"
    shown = staticmethod(lambda plan: plain_plan(plan))  # noqa: PLW0108 defined below

    def post(self, request: Request) -> Response:
        return self.once(request, lambda: self._propose(request))

    def _propose(self, request: Request) -> Response:
        given = self.body(request)
        try:
            plan = planning.make_plan(
                given["proposal"],
                by=caller_of(request),
                origin=given["origin"],
                calls=given["calls"],
            )
        except NothingToPlan:
            return Response(None, 204)
        except PolicyMistakes as error:
            return _mistakes(error)
        there = reverse("api:policy_plan_detail", args=[plan.digest])
        return Response(plain_plan(plan), 201, headers={"Location": there})


class OnePolicyPlan(RowView):
    scopes = {"GET": VIEW}
    answers = {"GET": PlanAnswer}

    def row(self, request: Request, digest: str) -> PolicyPlan:
        return get_object_or_404(PolicyPlan, digest=digest)

    def plain(self, row: PolicyPlan) -> dict[str, Any]:
        return plain_plan(row)


class ApplyPolicyPlan(ServiceView):
    """A plan that people confirmed, once and as a whole. 409 says why not."""

    scopes = {"POST": (APPLY, *VIEW)}
    bodies = {"POST": Members}
    answers = {"POST": PlanAnswer}
    # It is applied once in any case.
    has_key = False

    def post(self, request: Request, digest: str) -> Response:
        self.body(request)
        get_object_or_404(PolicyPlan, digest=digest)
        return Response(plain_plan(applying.apply_plan(digest, by=caller_of(request))))


def _with_file(view: ServiceView, request: Request, work: Any) -> Response:
    try:
        return Response(work(documents.read_file(view.body(request)["proposal"])))
    except PolicyMistakes as error:
        return _mistakes(error)


def _difference(file: PolicyFile) -> dict[str, Any]:
    return {"changes": [one.plain() for one in all_changes(file)]}


def _mistakes(error: PolicyMistakes) -> Response:
    """Each with its line and its place in the file."""
    errors = [
        {"pointer": "#/proposal", "line": one.line, "path": documents.dotted(one.path)}
        | {"detail": one.sentence}
        for one in error.mistakes
    ]
    return problems.problem(400, str(error), errors=errors)


def plain_plan(plan: PolicyPlan) -> dict[str, Any]:
    address = expected_origins()[0] + reverse("approvals:policy_plan", args=[plan.digest])
    return {
        "digest": plan.digest,
        "base_digest": plan.base_digest,
        "managed_by": plan.managed_by,
        "origin": plan.origin,
        "proposal": plan.proposal,
        "changes": plan.changes,
        "result": plan.result,
        "created_at": plan.created_at,
        "applied_at": plan.applied_at,
        "confirmed_by": [one.person.username for one in applying.valid_confirmations(plan)],
        "needs": applying.needed(),
        "address": address,
        "markdown": summaries.markdown(plan, address),
    }
