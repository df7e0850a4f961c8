from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from asgiref.sync import sync_to_async
from django.core.exceptions import PermissionDenied
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render

from audit import services, verify
from audit.demo import is_demo
from audit.exporting import ExportWriter
from audit.exporting import begin as begin_export
from audit.filters import Filters
from audit.finding import Containing
from audit.models import Export
from audit.views.entries import PAYLOADS, zone_of
from core.http import page

TYPES = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "proof": "application/x-ndjson",
}
ENDINGS = {"csv": "csv", "jsonl": "jsonl", "proof": "proof.jsonl"}


@page("audit.export_entry", "POST")
def begin(request: HttpRequest) -> HttpResponse:
    filters = Filters.read(request.POST, zone_of(request))
    if filters.text and not request.user.has_perm(PAYLOADS):
        raise PermissionDenied
    asked = request.POST.get("format", "")
    chosen = Export.Format(asked) if asked in Export.Format.values else Export.Format.CSV
    by = services.of(request.user)
    made = begin_export(filters, chosen, by=by, person_id=request.user.pk or 0)
    # A report's is small, and downloaded where it is asked for.
    there = "audit:export_file" if "now" in request.POST else "audit:export_progress"
    return redirect(there, made.pk)


@page("audit.export_entry")
def progress(request: HttpRequest, pk: int) -> HttpResponse:
    """The person's own exports alone: the entry of each says what was exported."""
    export = get_object_or_404(Export, pk=pk, person_id=request.user.pk)
    template = (
        "audit/export.html#progress" if request.headers.get("HX-Request") else "audit/export.html"
    )
    filters = Filters.read(export.query, zone_of(request))
    return render(request, template, {"section": "audit", "export": export, "filters": filters})


@page("audit.export_entry")
def download(request: HttpRequest, pk: int, has: Containing) -> HttpResponseBase:
    export = get_object_or_404(Export, pk=pk, person_id=request.user.pk)
    if export.query.get("text") and not request.user.has_perm(PAYLOADS):
        raise PermissionDenied
    return file_response(request, ExportWriter(export, by=services.of(request.user), has=has))


def file_response(request: HttpRequest, writing: ExportWriter) -> StreamingHttpResponse:
    """The file of an export, written as it is read."""
    export = writing.export
    # A server that speaks ASGI would first collect what a plain iterator yields.
    chunks = _stream(iter(writing)) if isinstance(request, ASGIRequest) else iter(writing)
    response = StreamingHttpResponse(chunks, content_type=TYPES[export.format])
    made_by = "countersign-demo" if is_demo() else "countersign"
    name = f"{made_by}-entries-{export.pk}.{ENDINGS[export.format]}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


async def _stream(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    def following() -> bytes | None:
        return next(chunks, None)

    while (chunk := await sync_to_async(following)()) is not None:
        yield chunk


@page("audit.view_entry")
def verifier(request: HttpRequest) -> HttpResponse:
    """The one file that checks exports, to take away."""
    response = HttpResponse(Path(verify.__file__).read_bytes(), content_type="text/x-python")
    response["Content-Disposition"] = 'attachment; filename="verify.py"'
    return response
