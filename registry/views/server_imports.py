"""Registering servers by a server.json, or out of another MCP registry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import orjson
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from accounts.http import ConsoleRequest
from core import loop
from core.errors import CountersignError
from core.http import page
from registry.discovery import discovery
from registry.forms.server_imports import (
    ImportForm,
    RegistrySearchForm,
    ServerJsonForm,
    SignatureForm,
)
from registry.forms.servers import command_choices
from registry.models import Server, ServerOrigin
from registry.names import NameRefused
from registry.server_json import foreign_registry, importing
from registry.server_json.document import Package, Remote, ServerJsonRefused
from registry.server_json.importing import ImportedDocument
from registry.server_json.signatures import SignatureRefused

Context = dict[str, Any]


class WayToReach(NamedTuple):
    """A remote or package on the page. `line`: what the host's administrator adds, as JSON."""

    key: str
    way: Remote | Package
    form: ImportForm
    line: str = ""

    @property
    def is_package(self) -> bool:
        return isinstance(self.way, Package)


@page("registry.add_server", "GET", "HEAD", "POST")
def import_server(request: ConsoleRequest) -> HttpResponse:
    """Reading another registry is a POST too: no link makes us ask an address."""
    step = _STEPS.get(request.POST.get("step", ""))
    given = step(request) if step else {}
    if isinstance(given, HttpResponse):
        return given
    forms = {"search_form": RegistrySearchForm(), "document_form": ServerJsonForm()}
    context: Context = {"section": "servers", "way": "import", **forms, **given}
    return render(request, "registry/import.html", context)


@page("registry.change_server", "GET", "HEAD", "POST")
def signature(request: ConsoleRequest, slug: str) -> HttpResponse:
    """Verifies a bundle about the server.json that the server was imported by."""
    origin = _origin(slug)
    form = SignatureForm(request.POST or None, request.FILES or None)
    if form.is_valid():
        try:
            importing.add_signature(origin, form.bundle, form.document, by=request.user)
            messages.success(request, _("The signature verifies."))
            return redirect("registry:server", slug)
        except ServerJsonRefused as error:
            form.add_error("bundle_file", str(error))
    context: Context = {"section": "servers", "server": origin.server, "form": form}
    return render(request, "registry/server_signature.html", context)


@page("registry.change_server", "POST")
def remove_signature(request: ConsoleRequest, slug: str) -> HttpResponse:
    importing.remove_signature(_origin(slug), by=request.user)
    messages.success(request, _("The signature is removed."))
    return redirect("registry:server", slug)


def _origin(slug: str) -> ServerOrigin:
    kept = ServerOrigin.objects.select_related("server").filter(server__in=Server.objects.kept())
    return get_object_or_404(kept, server__slug=slug)


def _search(request: ConsoleRequest) -> Context:
    form = RegistrySearchForm(request.POST)
    if not form.is_valid():
        return {"search_form": form}
    given = form.cleaned_data
    try:
        base = foreign_registry.base_of(given["registry"])
        cursor = request.POST.get("cursor", "")[: foreign_registry.LONGEST_CURSOR]
        found = foreign_registry.list_servers(base, given["search"], cursor)
    except ServerJsonRefused as error:
        form.add_error("registry", str(error))
        return {"search_form": form}
    return {"search_form": form, "registry": base, "listed": found}


def _choose(request: ConsoleRequest) -> Context:
    form = RegistrySearchForm(request.POST)
    name = request.POST.get("name", "")[:200]
    try:
        return _show_ways(importing.fetch_server(request.POST.get("registry", ""), name))
    except ServerJsonRefused as error:
        form.add_error("registry", str(error))
        return {"search_form": form}


def _read(request: ConsoleRequest) -> Context:
    form = ServerJsonForm(request.POST, request.FILES)
    if form.is_valid():
        try:
            given = importing.read_pasted(form.text)
            return _show_ways(
                importing.verify_signature(given, form.bundle) if form.bundle else given
            )
        except SignatureRefused as error:
            form.add_error("bundle_file", str(error))
        except ServerJsonRefused as error:
            form.add_error("document", str(error))
    return {"document_form": form}


def _register(request: ConsoleRequest) -> Context | HttpResponse:
    try:
        given = importing.open_sealed(request.POST.get("sealed", ""))
    except ServerJsonRefused as error:
        messages.error(request, str(error))
        return {}
    context = _show_ways(given, request)
    chosen = next((one for one in context["ways"] if one.form.is_bound), None)
    if chosen is None or not chosen.form.is_valid():
        return context
    try:
        made = _register_way(request, given, chosen.form)
    except CountersignError as error:
        chosen.form.add_error("slug" if isinstance(error, NameRefused) else None, str(error))
        return context
    loop.discovery.run(discovery.look_at([made.pk]), timeout=90)
    return redirect("registry:review", made.slug)


def _register_way(request: ConsoleRequest, given: ImportedDocument, form: ImportForm) -> Server:
    slug, who = form.cleaned_data["slug"], request.user
    if isinstance(form.way, Package):
        command = form.cleaned_data["command"]
        return importing.register_package(slug, given, form.way, command, owner=who, by=who)
    return importing.register_remote(slug, given, form.way, form.values, owner=who, by=who)


def _show_ways(given: ImportedDocument, request: ConsoleRequest | None = None) -> Context:
    ways = list(_every_way(given, request))
    has_commands = bool(command_choices())
    return {"given": given, "sealed": given.sealed(), "ways": ways, "has_commands": has_commands}


def _every_way(given: ImportedDocument, request: ConsoleRequest | None) -> Iterator[WayToReach]:
    chosen = request.POST.get("chosen", "") if request else ""
    ways: list[tuple[str, Remote | Package]] = [
        *((f"remote{number}", one) for number, one in enumerate(given.server.remotes)),
        *((f"package{number}", one) for number, one in enumerate(given.server.packages)),
    ]
    for key, way in ways:
        data = request.POST if request and key == chosen else None
        yield WayToReach(key, way, ImportForm(given.server, way, key, data), _command_line(way))


def _command_line(way: Remote | Package) -> str:
    line = importing.command_line(way) if isinstance(way, Package) else {}
    return orjson.dumps(line, option=orjson.OPT_INDENT_2).decode() if line else ""


_STEPS: dict[str, Callable[[ConsoleRequest], Context | HttpResponse]] = {
    "search": _search,
    "choose": _choose,
    "read": _read,
    "register": _register,
}
