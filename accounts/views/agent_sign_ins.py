"""Agents that users signed in: each user's own on the profile, all of them for administrators."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from django.conf import settings
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts import services
from accounts.http import ConsoleRequest
from accounts.models import AgentToken, SignInClient
from core.english import gettext as english
from core.http import page
from core.paging import paged


class SignedInClient(NamedTuple):
    token: AgentToken
    # As it calls itself; empty where it did not.
    client: str
    # The end of the address: toolset, and server if there is one.
    place: str


@page("")
def own_sign_ins(request: ConsoleRequest) -> HttpResponse:
    shown = paged(_valid().filter(agent__owner=request.user), "-pk", request.GET)
    context = {"section": "profile", "page": shown, "sign_ins": _with_names(shown.rows)}
    return render(request, "accounts/own_sign_ins.html", context)


@page("", "POST")
def end_sign_in(request: ConsoleRequest, public_id: str) -> HttpResponse:
    token = get_object_or_404(_valid(), agent__owner=request.user, public_id=public_id)
    services.revoke_token(token, by=request.user, reason=english("Ended by its user."))
    messages.success(request, _("%s is signed out.") % token.agent.name)
    return redirect("accounts:own_sign_ins")


@page("accounts.view_agenttoken")
def sign_ins(request: ConsoleRequest) -> HttpResponse:
    """All of them, or those of the toolset that the address names."""
    found, slug = _valid(), request.GET.get("toolset", "")
    if slug:
        there = f"{settings.AGENT_URL}/mcp/{slug}"
        found = found.filter(resource=there) | found.filter(resource__startswith=f"{there}/")
    shown = paged(found, "-pk", request.GET)
    context = {
        "section": "agents",
        "page": shown,
        "sign_ins": _with_names(shown.rows),
        "toolset": slug,
    }
    return render(request, "accounts/sign_ins.html", context)


def _valid() -> QuerySet[AgentToken]:
    return AgentToken.objects.sign_ins().select_related("agent__owner")


def _with_names(tokens: Iterable[AgentToken]) -> list[SignedInClient]:
    tokens = list(tokens)
    ids = {token.client_id for token in tokens}
    names = dict(SignInClient.objects.filter(client_id__in=ids).values_list("client_id", "name"))
    return [
        SignedInClient(token, names.get(token.client_id, ""), token.resource.partition("/mcp/")[2])
        for token in tokens
    ]
