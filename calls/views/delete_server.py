"""Deleting a server that was registered by mistake, which its open calls forbid."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts.http import ConsoleRequest
from calls.models import Call
from core.http import page
from registry import services
from registry.models import Server


@page("registry.change_server", "GET", "HEAD", "POST")
def delete_server(request: ConsoleRequest, slug: str) -> HttpResponse:
    server = get_object_or_404(Server.objects.kept(), slug=slug)
    if request.method == "POST":
        try:
            services.delete_server(server, by=request.user, has_open_calls=has_open_calls)
        except services.RegistrationRefused as error:
            messages.error(request, str(error))
            return redirect("calls:delete_server", slug)
        messages.success(request, _("“%s” is deleted.") % slug)
        return redirect("registry:servers")
    context = {"section": "servers", "server": server, "is_open": has_open_calls(server)}
    return render(request, "calls/delete_server.html", context)


def has_open_calls(server: Server) -> bool:
    """Whether any call of it has not ended."""
    return Call.objects.live().filter(server=server).exists()
