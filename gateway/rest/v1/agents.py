"""Agents and their tokens. A token's text is in one answer, and in no repetition of it."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.urls import reverse
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import services
from accounts.actors import By
from accounts.forms import AgentForm, TokenForm
from accounts.models import MAX_HOLD_S, Agent, AgentToken, User
from core.english import gettext as _
from gateway.rest.v1 import forms, plain
from gateway.rest.v1.members import Flag, Members, NameList, Text, Whole
from gateway.rest.v1.views import ListView, RowView, ServiceView, caller_of

# The console lets only those who may revoke tokens make new ones.
ISSUE = ("accounts.add_agenttoken", "accounts.change_agenttoken")


class AgentBody(Members):
    name = Text(max_length=60)
    # A user, who never decides on the agent's calls.
    owner = Text(max_length=150)


class AgentChange(Members):
    enabled = Flag(required=False)
    # Of `enabled`: it stands in the entry.
    reason = Text(required=False, allow_blank=True, max_length=300)
    hold_seconds = Whole(required=False, allow_null=True, min_value=1, max_value=MAX_HOLD_S)
    # Whether only tokens that are bound to a client's key open something.
    requires_dpop = Flag(required=False)
    # Of its owner's, whose account calls carry where servers take a team's; null: the only one.
    team = Text(required=False, allow_null=True, max_length=150)


class TokenBody(Members):
    days = Whole(required=False, default=30, min_value=1, max_value=services.MAX_DAYS)
    # The toolsets that it opens; none: all of the agent's.
    toolsets = NameList(required=False)
    # Whether it calls read-only tools alone.
    reads_only = Flag(required=False)


class ReasonBody(Members):
    reason = Text(required=False, allow_blank=True, max_length=300, default="")


class AgentAnswer(serializers.Serializer[Any]):
    name = serializers.CharField()
    owner = serializers.CharField()
    enabled = serializers.BooleanField()
    hold_seconds = serializers.IntegerField(allow_null=True)
    requires_dpop = serializers.BooleanField()
    team = serializers.CharField(allow_null=True)
    created_at = serializers.DateTimeField()


class TokenAnswer(serializers.Serializer[Any]):
    id = serializers.CharField()
    created_at = serializers.DateTimeField()
    created_by = serializers.CharField(allow_null=True)
    expires_at = serializers.DateTimeField()
    revoked_at = serializers.DateTimeField(allow_null=True)
    last_used_at = serializers.DateTimeField(allow_null=True)
    # Of IPv6, the network of 64 bits.
    last_address = serializers.CharField(allow_null=True)
    toolsets = serializers.ListField(child=serializers.CharField())
    reads_only = serializers.BooleanField()


class IssuedTokenAnswer(TokenAnswer):
    # Null where the request is repeated: it is shown once.
    token = serializers.CharField(allow_null=True)


class Agents(ListView):
    scopes = {"GET": ("accounts.view_agent",), "POST": ("accounts.add_agent",)}
    bodies = {"POST": AgentBody}
    answers = {"GET": AgentAnswer, "POST": (201, AgentAnswer)}
    rows = staticmethod(lambda request: Agent.objects.select_related("owner", "team"))
    key = "name"
    cursor = str
    shown = staticmethod(plain.agent)

    def post(self, request: Request) -> Response:
        return self.once(request, lambda: self._create(request))

    def _create(self, request: Request) -> Response:
        given = self.body(request)
        owner = User.objects.filter(username=given["owner"], is_active=True).first()
        if owner is None:
            raise ValidationError({"owner": [_("There is no active user of this name.")]})
        form = AgentForm({"name": given["name"], "owner": owner.pk})
        forms.check(form)
        made = services.create_agent(form.cleaned_data["name"], owner=owner, by=caller_of(request))
        return OneAgent().answer(made, 201, reverse("api:agent_detail", args=[made.name]))


class OneAgent(RowView):
    scopes = {"GET": ("accounts.view_agent",), "PATCH": ("accounts.change_agent",)}
    bodies = {"PATCH": AgentChange}
    answers = {"GET": AgentAnswer, "PATCH": AgentAnswer}

    def row(self, request: Request, name: str) -> Agent:
        return _agent(name)

    def plain(self, row: Agent) -> dict[str, Any]:
        return plain.agent(row)

    def patch(self, request: Request, name: str) -> Response:
        return self.changed(request, lambda agent: self._change(request, agent), name=name)

    def _change(self, request: Request, agent: Agent) -> Response:
        given, by = self.body(request), caller_of(request)
        if "enabled" in given:
            reason = given.get("reason", "").strip()
            services.set_agent_enabled(agent, given["enabled"], by=by, reason=reason)
        if "hold_seconds" in given:
            services.set_hold(agent, given["hold_seconds"], by=by)
        if "requires_dpop" in given:
            services.set_requires_dpop(agent, given["requires_dpop"], by=by)
        if "team" in given:
            _set_team(agent, given["team"], by=by)
        return self.answer(_agent(agent.name))


class Tokens(ListView):
    scopes = {"GET": ("accounts.view_agenttoken",), "POST": ISSUE}
    bodies = {"POST": TokenBody}
    answers = {"GET": TokenAnswer, "POST": (201, IssuedTokenAnswer)}
    rows = staticmethod(lambda request, name: _tokens(_agent(name)))
    key = "-id"
    shown = staticmethod(plain.token)

    def post(self, request: Request, name: str) -> Response:
        return self.once(request, lambda: self._issue(request, _agent(name)), secret="token")  # noqa: S106 a member's name

    def _issue(self, request: Request, agent: Agent) -> Response:
        given = self.body(request)
        form = TokenForm(
            {
                "days": given["days"],
                "toolsets": ",".join(given.get("toolsets", [])),
                "reads_only": "1" if given.get("reads_only") else "",
            }
        )
        forms.check(form)
        text = services.issue_token(agent, by=caller_of(request), **form.cleaned_data)
        return _issued(agent, text)


class RotateToken(ServiceView):
    """A new token with the same lifetime; the old one works for one more hour."""

    scopes = {"POST": ISSUE}
    bodies = {"POST": Members}
    answers = {"POST": (201, IssuedTokenAnswer)}

    def post(self, request: Request, name: str, public_id: str) -> Response:
        return self.once(request, lambda: self._rotate(request, name, public_id), secret="token")  # noqa: S106 as above

    def _rotate(self, request: Request, name: str, public_id: str) -> Response:
        self.body(request)
        agent = _agent(name)
        valid = agent.tokens.valid().filter(issuer="").select_related("agent")
        token = get_object_or_404(valid, public_id=public_id)
        return _issued(agent, services.rotate_token(token, by=caller_of(request)))


class RevokeToken(ServiceView):
    """At once, whatever became of the token meanwhile."""

    scopes = {"POST": ("accounts.change_agenttoken",)}
    bodies = {"POST": ReasonBody}
    answers = {"POST": TokenAnswer}

    def post(self, request: Request, name: str, public_id: str) -> Response:
        return self.once(request, lambda: self._revoke(request, name, public_id))

    def _revoke(self, request: Request, name: str, public_id: str) -> Response:
        reason = self.body(request)["reason"].strip()
        token = get_object_or_404(_tokens(_agent(name)), public_id=public_id)
        services.revoke_token(token, by=caller_of(request), reason=reason)
        return Response(plain.token(_tokens(token.agent).get(pk=token.pk)))


def _agent(name: str) -> Agent:
    return get_object_or_404(Agent.objects.select_related("owner", "team"), name=name)


def _set_team(agent: Agent, name: str | None, *, by: By) -> None:
    try:
        services.set_team(agent, services.team_named(name) if name else None, by=by)
    except services.AccountRefused as error:
        raise ValidationError({"team": [str(error)]}) from error


def _tokens(agent: Agent) -> QuerySet[AgentToken]:
    return agent.tokens.select_related("agent", "created_by")


def _issued(agent: Agent, text: str) -> Response:
    newest = _tokens(agent).order_by("-pk")[0]
    return Response({**plain.token(newest), "token": text}, 201)
