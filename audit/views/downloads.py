"""The file of an export: written as it is read, or any bytes of one that workers prepared."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from audit import export_jobs
from audit.demo import is_demo
from audit.export_file import ContentChanged, PreparedFile
from audit.exporting import ExportWriter
from audit.finding import Containing
from audit.models import Export
from audit.services import Actor, record
from core.byte_ranges import ByteRange, RangeNotSatisfiable, requested_range
from core.english import gettext as _
from core.errors import CountersignError

TYPES = {
    "csv": "text/csv; charset=utf-8",
    "jsonl": "application/x-ndjson",
    "proof": "application/x-ndjson",
}
ENDINGS = {"csv": "csv", "jsonl": "jsonl", "proof": "proof.jsonl"}

# English, as answers of the API are.
UNFINISHED = _("The file is not ready: it is being prepared.")
ENDED = {
    Export.State.CANCELLED: _("The export was cancelled."),
    Export.State.DELETED: _("The export was deleted."),
    Export.State.EXPIRED: _("The export has expired. Request a new one."),
    Export.State.FAILED: _("The export failed. Request a new one."),
    Export.State.CHANGED: _(
        "Entries in this export were forgotten, erased or archived after it was requested, so "
        "the same file cannot be created again. Delete what you have of it and request a new "
        "one."
    ),
}


class NotDownloadable(CountersignError):
    """`status`: of the answer in HTTP."""

    def __init__(self, status: int, sentence: str) -> None:
        super().__init__(sentence)
        self.status = status


def file_response(
    request: HttpRequest, export: Export, *, by: Actor, has: Containing
) -> HttpResponseBase:
    """Raises NotDownloadable."""
    if export.state == Export.State.DIRECT:
        return _named(_streamed(request, iter(ExportWriter(export, by=by, has=has))), export)
    _check_ready(export)
    etag = f'"{export.digest}"'
    try:
        wanted = requested_range(request, export.bytes, etag)
    except RangeNotSatisfiable:
        return HttpResponse(status=416, headers={"Content-Range": f"bytes */{export.bytes}"})
    response = _named(_ranged(request, export, wanted, by, has), export)
    response["Accept-Ranges"], response["ETag"] = "bytes", etag
    response["Content-Length"] = str(wanted.length)
    if not wanted.is_all:
        response.status_code = 206
        response["Content-Range"] = str(wanted)
    return response


def _check_ready(export: Export) -> None:
    if export.is_unfinished:
        raise NotDownloadable(409, UNFINISHED)
    if not export.is_ready:
        # Until it is cleaned up, what expired is as it was.
        raise NotDownloadable(
            410, ENDED.get(Export.State(export.state), ENDED[Export.State.EXPIRED])
        )


def _ranged(
    request: HttpRequest, export: Export, wanted: ByteRange, by: Actor, has: Containing
) -> HttpResponseBase:
    if request.method == "HEAD":
        return HttpResponse()
    pieces = PreparedFile(export, has).read(wanted.first, wanted.last)
    try:
        # Before the answer begins, so that a file that changed is not found out by a cut line.
        first = next(pieces, b"")
    except ContentChanged:
        export_jobs.end_changed(export)
        raise NotDownloadable(410, ENDED[Export.State.CHANGED]) from None
    _note(export, wanted, by)
    return _streamed(request, _going_on(export, first, pieces))


def _note(export: Export, wanted: ByteRange, by: Actor) -> None:
    record(
        "audit.export_downloaded",
        actor=by,
        reason=_("Bytes %(first)d to %(last)d of %(size)d.")
        % {"first": wanted.first, "last": wanted.last, "size": wanted.size},
        export=export.pk,
        first=wanted.first,
        last=wanted.last,
        bytes=wanted.size,
    )


def _going_on(export: Export, first: bytes, pieces: Iterator[bytes]) -> Iterator[bytes]:
    yield first
    try:
        yield from pieces
    except ContentChanged:
        # The line is cut here; whoever comes for the rest is answered why.
        export_jobs.end_changed(export)
        raise


def _named(response: HttpResponseBase, export: Export) -> HttpResponseBase:
    response["Content-Type"] = TYPES[export.format]
    made_by = "countersign-demo" if is_demo() else "countersign"
    name = f"{made_by}-entries-{export.pk}.{ENDINGS[export.format]}"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _streamed(request: HttpRequest, chunks: Iterator[bytes]) -> StreamingHttpResponse:
    # A server that speaks ASGI would first collect what a plain iterator yields.
    return StreamingHttpResponse(_stream(chunks) if isinstance(request, ASGIRequest) else chunks)


async def _stream(chunks: Iterator[bytes]) -> AsyncIterator[bytes]:
    def following() -> bytes | None:
        return next(chunks, None)

    while (chunk := await sync_to_async(following)()) is not None:
        yield chunk
