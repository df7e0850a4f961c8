"""Agents and their tokens: administrators and operators see all, others what is theirs."""

from __future__ import annotations

from datetime import datetime

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db.models import Count, Max, Q, QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _

from accounts import services
from accounts.forms import AgentForm, ClientForm, TokenForm
from accounts.http import ConsoleRequest, reason_in
from accounts.models import MAX_HOLD_S, Agent, AgentToken, User
from accounts.oidc.access_tokens import agent_providers
from accounts.teams import team_of, teams_of
from accounts.token_lists import open_first
from core.http import page
from core.paging import paged


def visible(person: User) -> QuerySet[Agent]:
    return Agent.objects.visible_to(person).select_related("owner", "team")


def may_handle_tokens(person: User, agent: Agent) -> bool:
    return agent.owner_id == person.pk or person.has_perm("accounts.change_agenttoken")


def may_issue_tokens(person: User, agent: Agent) -> bool:
    """Not an owner who may add no agents, for one that their consent to a client made: a token of
    Countersign would outlive the sign-in and open more than its address."""
    if person.has_perm("accounts.change_agenttoken"):
        return True
    is_added = agent.created_by_id != person.pk or person.has_perm("accounts.add_agent")
    return agent.owner_id == person.pk and is_added


@page("")
def agents(request: ConsoleRequest) -> HttpResponse:
    now = timezone.now()
    valid = Q(tokens__revoked_at=None, tokens__expires_at__gt=now)
    shown = visible(request.user).annotate(
        valid_tokens=Count("tokens", filter=valid), last_used=Max("tokens__last_used_at")
    )
    context = {"section": "agents", "page": paged(shown, "name", request.GET)}
    return render(request, "accounts/agents.html", context)


@page("accounts.add_agent", "GET", "HEAD", "POST")
def add_agent(request: ConsoleRequest) -> HttpResponse:
    form = AgentForm(request.POST or None, initial={"owner": request.user})
    if request.method == "POST" and form.is_valid():
        given = form.cleaned_data
        agent = services.create_agent(given["name"], owner=given["owner"], by=request.user)
        messages.success(
            request, _("“%s” is there. Give it a token, and a toolset to use.") % agent.name
        )
        return redirect("accounts:agent", agent.name)
    return render(request, "accounts/agent_add.html", {"section": "agents", "form": form})


@page("")
def agent(request: ConsoleRequest, name: str) -> HttpResponse:
    return _show(request, get_object_or_404(visible(request.user), name=name), TokenForm())


@page("", "POST")
def issue_token(request: ConsoleRequest, name: str) -> HttpResponse:
    """Draws the page itself, without a redirect: the token's text is kept nowhere."""
    shown = _agent_for_new_token(request.user, name)
    form = TokenForm(request.POST)
    if not form.is_valid():
        return _show(request, shown, form)
    text = services.issue_token(shown, by=request.user, **form.cleaned_data)
    return _show(request, shown, TokenForm(), issued=text)


@page("accounts.change_agenttoken", "POST")
def name_client(request: ConsoleRequest, name: str) -> HttpResponse:
    """Not for owners without the permission: the client could be another agent's."""
    shown = get_object_or_404(visible(request.user), name=name)
    form = ClientForm(request.POST)
    if not form.is_valid():
        return _show(request, shown, TokenForm(), client_form=form)
    given = form.cleaned_data
    try:
        services.name_client(
            shown, issuer=given["provider"], client_id=given["client_id"], by=request.user
        )
    except services.AccountRefused as error:
        form.add_error("client_id", str(error))
        return _show(request, shown, TokenForm(), client_form=form)
    said = _(
        "Tokens that the identity provider gives this client for %(owner)s are “%(agent)s”'s now."
    )
    messages.success(request, said % {"owner": shown.owner.shown_name, "agent": name})
    return redirect("accounts:agent", name)


@page("", "POST")
def revoke_token(request: ConsoleRequest, name: str, public_id: str) -> HttpResponse:
    shown = agent_for_tokens(request.user, name)
    token = get_object_or_404(shown.tokens.select_related("agent"), public_id=public_id)
    if services.revoke_token(token, by=request.user, reason=reason_in(request)):
        messages.success(request, _("%s is revoked: it opens nothing any more.") % token)
    else:
        messages.info(request, _("%s was revoked before.") % token)
    return redirect("accounts:agent", name)


@page("", "POST")
def rotate_token(request: ConsoleRequest, name: str, public_id: str) -> HttpResponse:
    """Draws the page itself, as `issue_token` does."""
    shown = _agent_for_new_token(request.user, name)
    valid = shown.tokens.valid().filter(issuer="").select_related("agent")
    token = get_object_or_404(valid, public_id=public_id)
    text = services.rotate_token(token, by=request.user)
    messages.success(request, _("%s works for one more hour.") % token)
    return _show(request, shown, TokenForm(), issued=text)


@page("accounts.change_agent", "POST")
def set_enabled(request: ConsoleRequest, name: str) -> HttpResponse:
    shown = get_object_or_404(Agent, name=name)
    enabled = request.POST.get("enabled") == "1"
    services.set_agent_enabled(shown, enabled, by=request.user, reason=reason_in(request))
    said = _("“%s” is on.") if enabled else _("“%s” is off: its tokens open nothing.")
    messages.success(request, said % name)
    return redirect("accounts:agent", name)


@page("accounts.change_agent", "POST")
def set_hold(request: ConsoleRequest, name: str) -> HttpResponse:
    shown = get_object_or_404(Agent, name=name)
    written = request.POST.get("seconds", "").strip()
    try:
        services.set_hold(shown, int(written) if written else None, by=request.user)
        messages.success(request, _("“%s” is answered as chosen.") % name)
    except (ValueError, services.AccountRefused):
        messages.error(request, _("The first answer comes within 1 to %d seconds.") % MAX_HOLD_S)
    return redirect("accounts:agent", name)


@page("", "POST")
def set_team(request: ConsoleRequest, name: str) -> HttpResponse:
    """Its owner chooses among the owner's teams, and so does who may change agents."""
    shown = get_object_or_404(visible(request.user), name=name)
    if not _may_choose_team(request.user, shown):
        raise PermissionDenied
    chosen = request.POST.get("team", "")
    try:
        services.set_team(shown, services.team_named(chosen) if chosen else None, by=request.user)
        messages.success(request, _("The team of “%s” is set.") % name)
    except services.AccountRefused as error:
        messages.error(request, str(error))
    return redirect("accounts:agent", name)


@page("accounts.change_agent", "POST")
def set_requires_dpop(request: ConsoleRequest, name: str) -> HttpResponse:
    shown = get_object_or_404(Agent, name=name)
    required = request.POST.get("required") == "1"
    services.set_requires_dpop(shown, required, by=request.user)
    said = (
        _("“%s” needs proof of its key with each request.")
        if required
        else _("“%s” may use tokens without a key.")
    )
    messages.success(request, said % name)
    return redirect("accounts:agent", name)


def _may_choose_team(person: User, agent: Agent) -> bool:
    return agent.owner_id == person.pk or person.has_perm("accounts.change_agent")


def agent_for_tokens(person: User, name: str) -> Agent:
    shown = get_object_or_404(visible(person), name=name)
    if not may_handle_tokens(person, shown):
        raise PermissionDenied
    return shown


def _agent_for_new_token(person: User, name: str) -> Agent:
    shown = agent_for_tokens(person, name)
    if not may_issue_tokens(person, shown):
        raise PermissionDenied
    return shown


def _show(
    request: ConsoleRequest,
    shown: Agent,
    form: TokenForm,
    *,
    issued: str = "",
    client_form: ClientForm | None = None,
) -> HttpResponse:
    now, listed = timezone.now(), open_first(shown.tokens.all(), ended=50)
    names_clients = request.user.has_perm("accounts.change_agenttoken") and agent_providers()
    context = {
        "section": "agents",
        "agent": shown,
        "tokens": [(token, _state(token, now)) for token in listed],
        "form": form,
        "issued": issued,
        "client_form": (client_form or ClientForm()) if names_clients else None,
        "max_hold_s": MAX_HOLD_S,
        "teams": teams_of(shown.owner) if _may_choose_team(request.user, shown) else [],
        "acts_for": team_of(shown)[1],
        "may_handle_tokens": may_handle_tokens(request.user, shown),
        "may_issue_tokens": may_issue_tokens(request.user, shown),
    }
    return render(request, "accounts/agent.html", context)


def _state(token: AgentToken, now: datetime) -> str:
    if token.revoked_at:
        return "revoked"
    return "valid" if token.expires_at > now else "expired"
