"""Registering servers, changing how they are reached, and letting agents have what they offer."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django import forms
from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from accounts.http import ConsoleRequest, reason_in
from core import loop
from core.errors import CountersignError
from core.http import is_htmx, page
from registry import result_rules, services
from registry.discovery import discovery
from registry.forms.servers import (
    CommandForm,
    CommandReachForm,
    MethodsForm,
    PasteForm,
    ReachInput,
    UrlForm,
    UrlReachForm,
    command_choices,
)
from registry.forms.tools import ResultRulesForm
from registry.models import Server
from registry.names import NameRefused
from registry.secrets import SecretRefused

WAYS: dict[str, type[UrlForm | CommandForm | PasteForm]] = {
    "url": UrlForm,
    "command": CommandForm,
    "paste": PasteForm,
}


@page("registry.add_server", "GET", "HEAD", "POST")
def register(request: ConsoleRequest) -> HttpResponse:
    way = request.GET.get("by", "")
    way = way if way in WAYS else "url"
    form = WAYS[way](request.POST or None)
    context: dict[str, Any] = {"section": "servers", "form": form, "way": way}
    if way == "command" and not command_choices():
        context["no_commands"] = True
    if request.method == "POST" and form.is_valid():
        if "test" in request.POST:
            context["looks"] = [_look(asked.slug, asked.reach) for asked in form.servers()]
        elif made := _register(request, form):
            return _after_registration(made)
    return _answer(request, "registry/register.html", context)


@page("registry.change_server", "GET", "HEAD", "POST")
def edit(request: ConsoleRequest, slug: str) -> HttpResponse:
    server = get_object_or_404(Server.objects.kept(), slug=slug)
    lists = "methods" in request.POST
    posted = request.POST or None
    form = _reach_form(server, None if lists else posted)
    listed = {"methods": "\n".join(server.methods)}
    methods = MethodsForm(posted if lists else None, initial=listed)
    context: dict[str, Any] = {"section": "servers", "server": server, "form": form}
    context |= {"relays": Server.Relay.choices, "methods": methods}
    context["revisions"] = Server.Revision.choices
    context["result_rules"] = ResultRulesForm.of_server(server)
    if methods.is_valid():
        _list_methods(request, server, methods)
        return redirect("registry:review", slug)
    if form.is_valid():
        if "test" in request.POST:
            context["looks"] = [_look(slug, form.reach())]
        elif _reconnect(request, server, form):
            return redirect("registry:review", slug)
    return _answer(request, "registry/server_edit.html", context)


def _reach_form(server: Server, posted: Any) -> UrlReachForm | CommandReachForm:
    now = {"url": server.url, "command": server.command}
    part = UrlReachForm if server.is_at_url else CommandReachForm
    return part(posted, initial=now)


@page("registry.change_server", "POST")
def set_enabled(request: ConsoleRequest, slug: str) -> HttpResponse:
    server = get_object_or_404(Server.objects.kept(), slug=slug)
    enabled = request.POST.get("enabled") == "1"
    services.set_enabled(server, enabled, by=request.user, reason=reason_in(request))
    said = _("“%s” is on.") if enabled else _("“%s” is off: agents do not see its tools.")
    messages.success(request, said % slug)
    return redirect("registry:server", slug)


@page("registry.change_server", "POST")
def set_relays(request: ConsoleRequest, slug: str) -> HttpResponse:
    server = get_object_or_404(Server.objects.kept(), slug=slug)
    services.set_relays(server, request.POST.getlist("relay"), by=request.user)
    messages.success(request, _("What “%s” may ask of agents is set.") % slug)
    return redirect("registry:edit_server", slug)


@page("registry.operate_server", "POST")
def set_results(request: ConsoleRequest, slug: str) -> HttpResponse:
    """The result rules of its tools that have no choices of their own."""
    server = get_object_or_404(Server.objects.kept(), slug=slug)
    form = ResultRulesForm.of_server(server, request.POST)
    there = reverse("registry:edit_server", args=[slug])
    try:
        if form.is_valid():
            result_rules.set_server_result_rules(server, form.rules, by=request.user)
            messages.success(request, _("Results of “%s” are treated as chosen.") % slug)
            return redirect(there)
    except services.RegistrationRefused as error:
        form.add_error(None, str(error))
    context = {"section": "servers", "server": server, "result_rules": form, "page_path": there}
    return render(request, "registry/server_results.html", context)


@page("registry.change_server", "POST")
def set_revision(request: ConsoleRequest, slug: str) -> HttpResponse:
    server = get_object_or_404(Server.objects.kept(), slug=slug)
    try:
        is_other = services.set_revision(server, request.POST.get("revision", ""), by=request.user)
    except services.RegistrationRefused as error:
        messages.error(request, str(error))
        return redirect("registry:edit_server", slug)
    if is_other:
        # Whether it speaks that, and what it offers there, is seen at a look.
        loop.discovery.run(discovery.look_at([server.pk]), timeout=90)
    messages.success(request, _("The revision that “%s” is spoken to in is set.") % slug)
    return redirect("registry:server", slug)


def _register(request: ConsoleRequest, form: UrlForm | CommandForm | PasteForm) -> list[Server]:
    """None, with the reason at the form's field, unless all could be registered."""
    try:
        with transaction.atomic():
            made = [
                services.register(
                    asked.slug,
                    **asdict(asked.reach),
                    title=asked.title,
                    publish=asked.publish,
                    owner=request.user,
                    by=request.user,
                )
                for asked in form.servers()
            ]
    except CountersignError as error:
        _complain(form, error)
        return []
    # Whoever registered it wants to read what it offers, now.
    loop.discovery.run(discovery.look_at([server.pk for server in made]), timeout=90)
    return made


def _reconnect(
    request: ConsoleRequest, server: Server, form: UrlReachForm | CommandReachForm
) -> bool:
    given = asdict(form.reach())
    given.pop("transport")
    try:
        services.set_connection(server, **given, by=request.user)
    except CountersignError as error:
        _complain(form, error)
        return False
    loop.discovery.run(discovery.look_at([server.pk]), timeout=90)
    messages.success(request, _("“%s” is reached in the new way.") % server.slug)
    return True


def _list_methods(request: ConsoleRequest, server: Server, form: MethodsForm) -> None:
    if services.set_methods(server, form.cleaned_data["methods"], by=request.user):
        # What is new appears at a look, and whoever listed it wants to publish it now.
        loop.discovery.run(discovery.look_at([server.pk]), timeout=90)
    messages.success(request, _("The extension methods of “%s” are set.") % server.slug)


def _complain(form: forms.Form, error: CountersignError) -> None:
    wanted = "url" if "url" in form.fields else "command"
    if isinstance(error, NameRefused):
        wanted = "slug"
    elif isinstance(error, SecretRefused):
        wanted = "headers" if form.cleaned_data.get("headers") else "credential"
    form.add_error(wanted if wanted in form.fields else next(iter(form.fields)), str(error))


def _after_registration(made: list[Server]) -> HttpResponse:
    if len(made) == 1:
        return redirect("registry:review", made[0].slug)
    return redirect("/catalogue/?state=unpublished")


def _look(slug: str, reach: ReachInput) -> dict[str, Any]:
    try:
        reached = services.connection_of(**asdict(reach))
        return {
            "slug": slug,
            "probed": loop.discovery.run(discovery.probe(slug, reached), timeout=60),
        }
    except CountersignError as error:
        return {"slug": slug, "error": str(error)}


def _answer(request: ConsoleRequest, whole: str, context: dict[str, Any]) -> HttpResponse:
    part = "registry/probe.html"
    return render(request, part if is_htmx(request) else whole, context)
