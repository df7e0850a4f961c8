from __future__ import annotations

from pathlib import Path
from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _

from audit import export_jobs, services, verify
from audit.exporting import begin as begin_direct
from audit.filters import Filters
from audit.finding import Containing
from audit.models import Export
from audit.views.downloads import NotDownloadable, file_response
from audit.views.entries import PAYLOADS, zone_of
from core.http import is_htmx, page
from core.messages.localizing import localized
from core.paging import paged


@page("audit.export_entry", "GET", "HEAD", "POST")
def exports(request: HttpRequest) -> HttpResponse:
    return _begin(request) if request.method == "POST" else _list(request)


def _list(request: HttpRequest) -> HttpResponse:
    """The user's own exports alone: the entry of each says what was exported."""
    found = paged(Export.objects.of(request.user.pk or 0), "-id", request.GET)
    shown = [(export, Filters.read(export.query, zone_of(request))) for export in found.rows]
    context: dict[str, Any] = {
        "section": "audit",
        "exports": shown,
        "page": found,
        "is_live": any(export.is_unfinished for export in found.rows),
    }
    template = "audit/exports.html#list" if is_htmx(request) else "audit/exports.html"
    return render(request, template, context)


def _begin(request: HttpRequest) -> HttpResponse:
    filters = Filters.read(request.POST, zone_of(request))
    if filters.text and not request.user.has_perm(PAYLOADS):
        raise PermissionDenied
    asked = request.POST.get("format", "")
    chosen = Export.Format(asked) if asked in Export.Format.values else Export.Format.CSV
    by, person_id = services.of(request.user), request.user.pk or 0
    # A report's is small, and downloaded where it is asked for.
    if "now" in request.POST:
        made = begin_direct(filters, chosen, by=by, person_id=person_id)
        return redirect("audit:export_file", made.pk)
    try:
        made = export_jobs.request(filters, chosen, by=by, person_id=person_id)
    except export_jobs.TooManyExports as error:
        messages.error(request, localized(str(error)))
        return redirect("audit:export")
    return redirect("audit:export_progress", made.pk)


@page("audit.export_entry")
def progress(request: HttpRequest, pk: int) -> HttpResponse:
    template = "audit/export.html#progress" if is_htmx(request) else "audit/export.html"
    return _render_one(request, _own(request, pk), template)


def _own(request: HttpRequest, pk: int) -> Export:
    return get_object_or_404(Export, pk=pk, person_id=request.user.pk)


def _render_one(
    request: HttpRequest, export: Export, template: str, *, status: int = 200
) -> HttpResponse:
    filters = Filters.read(export.query, zone_of(request))
    context = {"section": "audit", "export": export, "filters": filters}
    return render(request, template, context, status=status)


@page("audit.export_entry", "POST")
def end(request: HttpRequest, pk: int) -> HttpResponse:
    if not export_jobs.end(_own(request, pk), by=services.of(request.user)):
        messages.info(request, _("The export had ended before."))
    return redirect("audit:export")


@page("audit.export_entry")
def download(request: HttpRequest, pk: int, has: Containing) -> HttpResponseBase:
    export = _own(request, pk)
    if export.query.get("text") and not request.user.has_perm(PAYLOADS):
        raise PermissionDenied
    try:
        return file_response(request, export, by=services.of(request.user), has=has)
    except NotDownloadable as error:
        export.refresh_from_db()
        return _render_one(request, export, "audit/export.html", status=error.status)


@page("audit.view_entry")
def verifier(request: HttpRequest) -> HttpResponse:
    """The one file that checks exports, to take away."""
    response = HttpResponse(Path(verify.__file__).read_bytes(), content_type="text/x-python")
    response["Content-Disposition"] = 'attachment; filename="verify.py"'
    return response
