"""The page on which operators set the tags of servers, toolsets and agents."""

from __future__ import annotations

from typing import cast

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts.actors import AccountRefused
from accounts.http import ConsoleRequest
from accounts.models import Agent
from core.http import page
from registry.models import Server, Toolset
from registry.role_tags import KINDS, Tagged, set_role_tags

ROWS_MAX = 500


@page("registry.view_server", "GET", "HEAD", "POST")
def role_tags(request: ConsoleRequest) -> HttpResponse:
    if request.method == "POST":
        return _set(request)
    agents = Agent.objects.visible_to(request.user)
    toolsets = Toolset.objects.all()
    groups = [
        ("server", _("Servers"), Server.objects.kept()[:ROWS_MAX]),
        ("toolset", _("Toolsets"), toolsets[:ROWS_MAX]),
        ("agent", _("Agents"), agents[:ROWS_MAX]),
    ]
    shown = [(*one, request.user.has_perm(KINDS[one[0]][2])) for one in groups]
    return render(request, "registry/role_tags.html", {"section": "roles", "groups": shown})


def _set(request: ConsoleRequest) -> HttpResponse:
    kind = request.POST.get("kind", "")
    if kind not in KINDS:
        raise Http404
    model, name, permission = KINDS[kind]
    # No address of this page names an object: the permission has to hold everywhere.
    if not request.user.has_perm(permission):
        raise PermissionDenied
    shown = cast(Tagged, get_object_or_404(model, **{name: request.POST.get("name", "")}))
    try:
        set_role_tags(kind, shown, request.POST.get("tags", ""), by=request.user)
    except AccountRefused as error:
        messages.error(request, str(error))
    else:
        messages.success(request, _("The tags of “%s” are set.") % shown)
    return redirect("registry:role_tags")
