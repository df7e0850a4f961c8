"""Servers that are HTTP APIs: registering by a document, choosing operations, another document."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from accounts.http import ConsoleRequest
from core import loop
from core.errors import CountersignError
from core.http import page
from registry import services
from registry.discovery import discovery
from registry.forms.api_documents import ApiForm, DocumentForm
from registry.models import ApiDocument, Server
from registry.names import NameRefused
from registry.openapi import importing
from registry.openapi.operations import CHANGES, DESTROYS, READS, default_effect
from registry.secrets import SecretRefused

# Operations on one page.
SIZE = 100
LABELS = {
    READS: gettext_lazy("Reads"),
    CHANGES: gettext_lazy("Writes"),
    DESTROYS: gettext_lazy("Destroys"),
}


@dataclass(frozen=True, slots=True)
class OperationRow:
    """One operation on the page; `effect`: as chosen, or as its method says."""

    key: str
    name: str
    summary: str
    problem: str
    notes: list[str]
    chosen: bool
    effect: str

    @property
    def method(self) -> str:
        return self.key.partition(" ")[0]

    @property
    def path(self) -> str:
        return self.key.partition(" ")[2]


@page("registry.add_server", "GET", "HEAD", "POST")
def register(request: ConsoleRequest) -> HttpResponse:
    form = ApiForm(request.POST or None, request.FILES or None)
    if request.method == "POST" and form.is_valid():
        given = form.cleaned_data
        try:
            made = importing.register_api(
                given["slug"],
                form.description,
                owner=request.user,
                by=request.user,
                url=given["url"],
                title=given["title"],
                headers=given["headers"],
                credential=given["credential"],
            )
        except CountersignError as error:
            form.add_error(_field_of(error), str(error))
        else:
            return redirect("registry:operations", made.slug)
    context = {"section": "servers", "form": form, "way": "api"}
    return render(request, "registry/register_api.html", context)


@page("registry.change_server", "GET", "HEAD", "POST")
def operations(request: ConsoleRequest, slug: str) -> HttpResponse:
    document = _document(slug)
    if request.method == "POST":
        return _choose(request, document)
    rows = _narrowed(_rows(document), request.GET)
    start = int(given) if (given := request.GET.get("from", "")).isdecimal() else 0
    shown = rows[start : start + SIZE]
    context: dict[str, Any] = {
        "section": "servers",
        "server": document.server,
        "document": document,
        "rows": shown,
        "may_choose": any(not row.problem for row in shown),
        "found": len(rows),
        "first": start + 1,
        "last": min(start + SIZE, len(rows)),
        "before": max(start - SIZE, 0) if start else None,
        "after": start + SIZE if start + SIZE < len(rows) else None,
        "total": len(document.coverage),
        "left_out": sum(1 for row in document.coverage if row["problem"]),
        "noted": sum(1 for row in document.coverage if row["notes"]),
        "effects": LABELS.items(),
        "filters": request.GET,
        "form": DocumentForm(initial={"document_url": document.source}),
    }
    return render(request, "registry/operations.html", context)


@page("registry.change_server", "POST")
def set_document(request: ConsoleRequest, slug: str) -> HttpResponse:
    server = _document(slug).server
    form = DocumentForm(request.POST, request.FILES)
    try:
        if form.is_valid():
            difference = importing.set_document(server, form.description, by=request.user)
            _discover(server)
            said = _("The document is set. New operations: %(new)d, gone: %(gone)d.")
            counts = {"new": len(difference.added), "gone": len(difference.removed)}
            messages.success(request, said % counts)
            return redirect("registry:operations", slug)
        said = " ".join(str(one) for mistakes in form.errors.values() for one in mistakes)
    except CountersignError as error:
        said = str(error)
    messages.error(request, said)
    return redirect("registry:operations", slug)


def _choose(request: ConsoleRequest, document: ApiDocument) -> HttpResponse:
    """Only what the page showed is chosen or not; everything else stays as it was."""
    shown = set(request.POST.getlist("shown"))
    chosen = {key: effect for key, effect in document.chosen.items() if key not in shown}
    for key in request.POST.getlist("chosen"):
        if key in shown:
            effect = request.POST.get(f"effect {key}", "")
            usual = default_effect(key.partition(" ")[0])
            chosen[key] = "" if effect == usual else effect
    try:
        importing.choose(document.server, chosen, by=request.user)
    except services.RegistrationRefused as error:
        messages.error(request, str(error))
        return redirect("registry:operations", document.server.slug)
    _discover(document.server)
    messages.success(request, _("Operations offered: %d.") % len(chosen))
    return redirect("registry:review", document.server.slug)


def _discover(server: Server) -> None:
    if server.enabled:
        loop.discovery.run(discovery.look_at([server.pk]), timeout=90)


def _document(slug: str) -> ApiDocument:
    kept = ApiDocument.objects.filter(server__deleted_at=None).select_related("server")
    return get_object_or_404(kept, server__slug=slug)


def _rows(document: ApiDocument) -> list[OperationRow]:
    return [
        OperationRow(
            key=row["key"],
            name=row["name"],
            # Without one of its own it is the key.
            summary="" if row["summary"] == row["key"] else row["summary"],
            problem=row["problem"],
            notes=row["notes"],
            chosen=row["key"] in document.chosen,
            effect=importing.effect_of(document, row["key"]),
        )
        for row in document.coverage
    ]


def _narrowed(rows: list[OperationRow], given: QueryDict) -> list[OperationRow]:
    words, state = given.get("q", "").lower().split(), given.get("state", "")
    return [row for row in rows if _is_in(row, state) and _has_words(row, words)]


def _is_in(row: OperationRow, state: str) -> bool:
    match state:
        case "chosen":
            return row.chosen
        case "not-chosen":
            return not row.chosen and not row.problem
        case "left-out":
            return bool(row.problem)
        case "noted":
            return bool(row.notes)
    return True


def _has_words(row: OperationRow, words: list[str]) -> bool:
    text = f"{row.key} {row.name} {row.summary}".lower()
    return all(word in text for word in words)


def _field_of(error: CountersignError) -> str:
    match error:
        case NameRefused():
            return "slug"
        case SecretRefused():
            return "headers"
    return "url"
