"""The page on which operators set the tags of servers, toolsets and agents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts.actors import AccountRefused
from accounts.http import ConsoleRequest
from accounts.models import Agent
from core.http import page
from registry.models import Server, Toolset
from registry.role_tags import KINDS, Tagged, set_role_tags

# Two fields each: Django reads no form of more than 1,000.
ROWS_MAX = 490


@page("registry.view_server", "GET", "HEAD", "POST")
def role_tags(request: ConsoleRequest) -> HttpResponse:
    if request.method == "POST" and _save(request):
        return redirect("registry:role_tags")
    agents = Agent.objects.visible_to(request.user)
    toolsets = Toolset.objects.all()
    groups: list[tuple[str, str, str, Iterable[Tagged]]] = [
        ("server", _("Servers"), _("Server"), Server.objects.kept()[:ROWS_MAX]),
        ("toolset", _("Toolsets"), _("Toolset"), toolsets[:ROWS_MAX]),
        ("agent", _("Agents"), _("Agent"), agents[:ROWS_MAX]),
    ]
    shown = [
        (kind, label, singular, _rows(request, kind, found), request.user.has_perm(KINDS[kind][2]))
        for kind, label, singular, found in groups
    ]
    return render(request, "registry/role_tags.html", {"section": "roles", "groups": shown})


def _rows(request: ConsoleRequest, kind: str, found: Iterable[Tagged]) -> list[tuple[Tagged, str]]:
    """Each with the text of its field: if it could not be saved, as it was typed."""
    typed = request.POST if request.POST.get("kind") == kind else QueryDict()
    return [(one, typed.get(f"tags:{one}", " ".join(one.tags))) for one in found]


def _save(request: ConsoleRequest) -> bool:
    """All of one kind, or none."""
    kind = request.POST.get("kind", "")
    if kind not in KINDS:
        raise Http404
    model, name, permission = KINDS[kind]
    # No address of this page names an object: the permission has to hold everywhere.
    if not request.user.has_perm(permission):
        raise PermissionDenied
    try:
        with transaction.atomic():
            for one, tags in _changed(request):
                shown = cast(Tagged, get_object_or_404(model, **{name: one}))
                set_role_tags(kind, shown, tags, by=request.user)
    except AccountRefused as error:
        messages.error(request, str(error))
        return False
    messages.success(request, _("The tags are saved."))
    return True


def _changed(request: ConsoleRequest) -> Iterator[tuple[str, str]]:
    """Only these are set: another person may have set others since the page was opened."""
    for key in [key for key in request.POST if key.startswith("tags:")]:
        one, tags = key.removeprefix("tags:"), request.POST.get(key, "")
        if tags != request.POST.get(f"before:{one}", ""):
            yield one, tags
