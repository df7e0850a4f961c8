"""Rules and limits, checked by the console's forms.

A rule that could let more calls run than before takes the permission to change rules, also where
it is new.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db.models import Model, QuerySet
from django.forms import ModelForm
from django.shortcuts import get_object_or_404
from django.urls import reverse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from core.english import gettext as _
from gateway.rest.v1 import forms, plain
from gateway.rest.v1.members import Amount, Flag, Members, NameList, StrictChoice, Text, Whole
from gateway.rest.v1.views import ListView, RowView, caller_of, require
from inspection.patterns import LONGEST, MOST
from inspection.results import HiddenText, Marking, SchemaCheck
from policies import services
from policies.conditions import TEXT_MAX
from policies.coverage import why_covers_nothing
from policies.forms.limits import LimitForm
from policies.forms.rules import RuleForm
from policies.limits import services as limits
from policies.models import Effect, Limit, LimitEffect, Rule
from policies.models.limits import MOST_MINUTES
from policies.thresholds import AFTER_MOST_MIN, THRESHOLDS_MAX, Distinct, StepUp
from policies.views.saving import save_form
from registry.result_rules import LEAST_BYTES, MOST_BYTES

SECONDS_MAX = 30 * 24 * 3600
HOSTS_MAX = 1_000
# With their names.
PATTERNS_MAX = MOST * (LONGEST + 50)
# Members by which a rule that requires approval can require less than no rule would, or show more.
ABOUT_DECIDING = ("thresholds", "decide_within", "start_within", "shows_arguments")


class ThresholdBody(Members):
    approve = Whole(min_value=1, max_value=100)
    deny = Whole(min_value=1, max_value=100, required=False)
    distinct = StrictChoice(choices=Distinct.values, required=False)
    step_up = StrictChoice(choices=StepUp.values, required=False, allow_blank=True)
    # It counts only once the call has been pending for so many minutes.
    after_min = Whole(min_value=0, max_value=AFTER_MOST_MIN, required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        # REST framework takes nothing for required inside a change of a part.
        if "approve" not in attrs:
            raise serializers.ValidationError({"approve": [_("It is required.")]})
        return attrs

    def get_fields(self) -> dict[str, Any]:
        # "group:NAME", "person:NAME", or empty.
        source = Text(required=False, allow_blank=True, max_length=200)
        return {**super().get_fields(), "from": source}


class ResultsBody(Members):
    """Only the choices that are on."""

    schema = StrictChoice(choices=[*SchemaCheck], required=False, allow_blank=True)
    hidden = StrictChoice(choices=[*HiddenText], required=False, allow_blank=True)
    secrets = Flag(required=False)
    personal = Flag(required=False)
    tracebacks = Flag(required=False)
    max_bytes = Whole(required=False, allow_null=True, min_value=LEAST_BYTES, max_value=MOST_BYTES)
    links = Flag(required=False)
    hosts = Text(required=False, allow_blank=True, max_length=HOSTS_MAX)
    marking = StrictChoice(choices=[*Marking], required=False, allow_blank=True)
    patterns = Text(required=False, allow_blank=True, max_length=PATTERNS_MAX)


class CoveringBody(Members):
    name = Text(max_length=100)
    mode = StrictChoice(choices=Rule.Mode.values, default=Rule.Mode.ENFORCE)
    server = Text(max_length=100, default="*")
    tool = Text(max_length=200, default="*")
    hint = StrictChoice(choices=Rule.Hint.values, default=Rule.Hint.ANY, allow_blank=True)
    agents = NameList(default=list)
    owner_groups = NameList(default=list)
    reason = Text(max_length=300, default="", allow_blank=True)


class RuleBody(CoveringBody):
    effect = StrictChoice(choices=Effect.values)
    when = Text(max_length=TEXT_MAX, default="", allow_blank=True)
    instead = Text(max_length=300, default="", allow_blank=True)
    unnamed = Flag(default=False)
    thresholds = ThresholdBody(many=True, default=list, max_length=THRESHOLDS_MAX)  # type: ignore[call-arg]
    decide_within = Whole(default=None, allow_null=True, min_value=1, max_value=SECONDS_MAX)
    start_within = Whole(default=None, allow_null=True, min_value=1, max_value=SECONDS_MAX)
    confirm_grants = Flag(default=False)
    shows_arguments = Flag(default=False)
    results = ResultsBody(default=dict)


class RuleChange(RuleBody):
    # From 1, in the list of rules.
    place = Whole(required=False, min_value=1, max_value=100_000)


class LimitBody(CoveringBody):
    effect = StrictChoice(choices=LimitEffect.values)
    kind = StrictChoice(choices=Limit.Kind.values)
    amount = Amount()
    period = StrictChoice(choices=Limit.Period.values, default="", allow_blank=True)
    burst = Whole(default=None, allow_null=True, min_value=1, max_value=2**53)
    cost = Amount(default=None, allow_null=True)
    cost_argument = Text(max_length=200, default="", allow_blank=True)
    cost_result = Text(max_length=200, default="", allow_blank=True)
    unit = Text(max_length=20, default="", allow_blank=True)
    minutes = Whole(default=None, allow_null=True, min_value=1, max_value=MOST_MINUTES)
    per = serializers.ListField(child=StrictChoice(choices=Limit.Per.values), default=list)


class RuleAnswer(RuleBody):
    id = serializers.IntegerField()
    position = serializers.IntegerField()


class LimitAnswer(LimitBody):
    id = serializers.IntegerField()


class NoticedLimit(LimitAnswer):
    # That it covers nothing today, and why; empty where it covers something.
    notice = serializers.CharField(allow_blank=True)


class RuleList(ListView):
    """In no order: `position` has that."""

    scopes = {"GET": ("policies.view_rule",), "POST": ("policies.add_rule",)}
    bodies = {"POST": RuleBody}
    answers = {"GET": RuleAnswer, "POST": (201, RuleAnswer)}
    rows = staticmethod(lambda request: _rules())
    key = "id"
    shown = staticmethod(plain.rule)

    def post(self, request: Request) -> Response:
        return self.once(request, lambda: self._create(request))

    def _create(self, request: Request) -> Response:
        given = self.body(request)
        if may_loosen(given):
            require(request, "policies.change_rule")
        made = Rule(position=services.last_position())
        _save(request, RuleForm, made, given, services.save_rule)
        there = reverse("api:rule_detail", args=[made.pk])
        return OneRule().answer(_rules().get(pk=made.pk), 201, there)


class OneRule(RowView):
    scopes = {
        "GET": ("policies.view_rule",),
        "PATCH": ("policies.change_rule",),
        "DELETE": ("policies.delete_rule",),
    }
    bodies = {"PATCH": RuleChange}
    answers = {"GET": RuleAnswer, "PATCH": RuleAnswer, "DELETE": (204, None)}

    def row(self, request: Request, pk: int) -> Rule:
        return get_object_or_404(_rules(), pk=pk)

    def plain(self, row: Rule) -> dict[str, Any]:
        return plain.rule(row)

    def locked(self, row: Rule) -> QuerySet[Rule]:
        # A change of place locks all of them.
        return Rule.objects.in_order()

    def patch(self, request: Request, pk: int) -> Response:
        return self.changed(request, lambda rule: self._change(request, rule), pk=pk)

    def _change(self, request: Request, rule: Rule) -> Response:
        given = self.body(request)
        place = given.pop("place", None)
        if given:
            _save(request, RuleForm, rule, {**plain.rule(rule), **given}, services.save_rule)
        if place is not None:
            services.place_rule(rule, place, by=caller_of(request).actor)
        return self.answer(_rules().get(pk=rule.pk))

    def delete(self, request: Request, pk: int) -> Response:
        return self.changed(request, lambda rule: self._remove(request, rule), pk=pk)

    def _remove(self, request: Request, rule: Rule) -> Response:
        services.remove_rule(rule, by=caller_of(request).actor)
        return Response(None, 204)


class LimitList(ListView):
    scopes = {"GET": ("policies.view_limit",), "POST": ("policies.add_limit",)}
    bodies = {"POST": LimitBody}
    answers = {"GET": LimitAnswer, "POST": (201, NoticedLimit)}
    rows = staticmethod(lambda request: _limits())
    key = "id"
    shown = staticmethod(plain.limit)

    def post(self, request: Request) -> Response:
        return self.once(request, lambda: self._create(request))

    def _create(self, request: Request) -> Response:
        made = Limit()
        _save(request, LimitForm, made, self.body(request), limits.save_limit)
        there = reverse("api:limit_detail", args=[made.pk])
        return OneLimit().answer(_limits().get(pk=made.pk), 201, there)


class OneLimit(RowView):
    scopes = {
        "GET": ("policies.view_limit",),
        "PATCH": ("policies.change_limit",),
        "DELETE": ("policies.delete_limit",),
    }
    bodies = {"PATCH": LimitBody}
    answers = {"GET": NoticedLimit, "PATCH": NoticedLimit, "DELETE": (204, None)}
    volatile = ("notice",)

    def row(self, request: Request, pk: int) -> Limit:
        return get_object_or_404(_limits(), pk=pk)

    def plain(self, row: Limit) -> dict[str, Any]:
        return {**plain.limit(row), "notice": why_covers_nothing(row)}

    def patch(self, request: Request, pk: int) -> Response:
        return self.changed(request, lambda limit: self._change(request, limit), pk=pk)

    def _change(self, request: Request, limit: Limit) -> Response:
        given = {**plain.limit(limit), **self.body(request)}
        _save(request, LimitForm, limit, given, limits.save_limit)
        return self.answer(_limits().get(pk=limit.pk))

    def delete(self, request: Request, pk: int) -> Response:
        return self.changed(request, lambda limit: self._remove(request, limit), pk=pk)

    def _remove(self, request: Request, limit: Limit) -> Response:
        limits.remove_limit(limit, by=caller_of(request).actor)
        return Response(None, 204)


def may_loosen(given: dict[str, Any]) -> bool:
    """Whether a new rule could let a call run that needed more before. A denial and a requirement
    of approval cannot while they leave open who decides and by when; where the condition of a
    denial cannot be judged, it requires approval as it says."""
    return given["effect"] == Effect.ALLOW or any(given[name] for name in ABOUT_DECIDING)


def _save(
    request: Request,
    form: type[ModelForm[Any]],
    row: Model,
    given: dict[str, Any],
    save: Callable[..., object],
) -> None:
    """Raises ValidationError."""
    filled: Any = form(forms.data_of(form, given), instance=row)
    forms.check(filled)
    if not save_form(filled, save, by=caller_of(request).actor):
        forms.check(filled)


def _rules() -> QuerySet[Rule]:
    return Rule.objects.prefetch_related("agents", "owner_groups")


def _limits() -> QuerySet[Limit]:
    return Limit.objects.prefetch_related("agents", "owner_groups")
