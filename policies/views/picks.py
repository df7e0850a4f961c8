"""Suggestions for the fields of forms, as options of a list."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render

from accounts.http import ConsoleRequest
from core.http import page
from policies import picks

TYPED_MAX = 200


@page("policies.view_rule")
def pick_server(request: ConsoleRequest) -> HttpResponse:
    return _options(request, picks.servers(_typed(request, "server")))


@page("policies.view_rule")
def pick_tool(request: ConsoleRequest) -> HttpResponse:
    found = picks.tools(_typed(request, "tool"), _typed(request, "server"))
    return _options(request, found)


@page("policies.view_rule")
def pick_exposed(request: ConsoleRequest) -> HttpResponse:
    return _options(request, picks.exposed_tools(_typed(request, "tool")))


def _typed(request: ConsoleRequest, name: str) -> str:
    return request.GET.get(name, "")[:TYPED_MAX]


def _options(request: ConsoleRequest, found: list[picks.Pick]) -> HttpResponse:
    return render(request, "policies/picks.html", {"picks": found})
