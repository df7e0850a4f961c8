"""Exports of the audit log: those of the user who answers for the token, and without arguments."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404
from django.urls import reverse
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from audit import export_jobs
from audit.exporting import begin
from audit.models import Export
from audit.views.downloads import NotDownloadable, file_response
from calls.content.payloads import containing
from core.english import gettext as _
from gateway.rest.problems import problem
from gateway.rest.v1 import entry_filters, plain
from gateway.rest.v1.entry_filters import FILTERS
from gateway.rest.v1.members import Flag, Members, StrictChoice, Text
from gateway.rest.v1.views import ListView, RowView, ServiceView, caller_of


class ExportBody(Members):
    format = StrictChoice(choices=Export.Format.values, default=Export.Format.JSONL)
    filters = serializers.DictField(child=Text(max_length=200), default=dict)
    # Whether a worker prepares the file, whose download resumes; else it is written while it is
    # downloaded.
    background = Flag(default=False)

    def validate_filters(self, given: dict[str, str]) -> dict[str, str]:
        if unknown := sorted(set(given) - set(FILTERS)):
            said = _("There is no filter “%s”. Filters: %s.")
            raise serializers.ValidationError(said % (unknown[0][:60], ", ".join(FILTERS)))
        if mistake := entry_filters.mistake_in(given):
            raise serializers.ValidationError(mistake)
        return given


class ExportAnswer(serializers.Serializer[Any]):
    id = serializers.IntegerField()
    at = serializers.DateTimeField()
    format = serializers.ChoiceField(choices=Export.Format.values)
    filters = serializers.DictField(child=serializers.CharField())
    # Where it is downloaded.
    file = serializers.CharField()
    state = serializers.ChoiceField(choices=Export.State.values)
    percent = serializers.IntegerField()
    # In bytes, as far as it is prepared.
    size = serializers.IntegerField()
    fault = serializers.CharField()
    expires_at = serializers.DateTimeField(allow_null=True)
    # Of a direct one: of the newest download.
    rows = serializers.IntegerField()
    finished_at = serializers.DateTimeField(allow_null=True)
    digest = serializers.CharField()


class Exports(ListView):
    """The newest first."""

    scopes = {"GET": ("audit.export_entry",), "POST": ("audit.export_entry",)}
    bodies = {"POST": ExportBody}
    answers = {"GET": ExportAnswer, "POST": (201, ExportAnswer)}
    rows = staticmethod(lambda request: _own(request))  # noqa: PLW0108 defined below
    key = "-id"
    shown = staticmethod(plain.export)

    def post(self, request: Request) -> Response:
        return self.once(request, lambda: self._begin(request))

    def _begin(self, request: Request) -> Response:
        given, by = self.body(request), caller_of(request)
        filters = entry_filters.read(given["filters"])
        form = Export.Format(given["format"])
        make = export_jobs.request if given["background"] else begin
        made = make(filters, form, by=by.actor, person_id=by.person.pk)
        made.refresh_from_db()
        return OneExport().answer(made, 201, reverse("api:export_detail", args=[made.pk]))


class OneExport(RowView):
    scopes = {"GET": ("audit.export_entry",)}
    answers = {"GET": ExportAnswer}

    def row(self, request: Request, pk: int) -> Export:
        return get_object_or_404(_own(request), pk=pk)

    def plain(self, row: Export) -> dict[str, Any]:
        return plain.export(row)


class CancelExport(ServiceView):
    """Cancels an export in the background; deletes one that is ready."""

    scopes = {"POST": ("audit.export_entry",)}
    bodies = {"POST": Members}
    answers = {"POST": ExportAnswer}

    def post(self, request: Request, pk: int) -> Response:
        return self.once(request, lambda: self._cancel(request, pk))

    def _cancel(self, request: Request, pk: int) -> Response:
        self.body(request)
        export = get_object_or_404(_own(request), pk=pk)
        if not export_jobs.end(export, by=caller_of(request).actor):
            return problem(409, _("It is neither in preparation nor ready."))
        return Response(plain.export(_own(request).get(pk=pk)))


class ExportFile(ServiceView):
    """The file. One in the background is ready once its state says so, and any range of its bytes
    is downloaded; a direct one is written as it is read."""

    scopes = {"GET": ("audit.export_entry",)}
    answers = {"GET": (200, bytes)}

    def get(self, request: Request, pk: int) -> HttpResponseBase:
        export = get_object_or_404(_own(request), pk=pk)
        by = caller_of(request).actor
        try:
            return file_response(request._request, export, by=by, has=containing)
        except NotDownloadable as error:
            return problem(error.status, str(error))


def _own(request: Request) -> QuerySet[Export]:
    every = Export.objects.filter(person_id=caller_of(request).person.pk)
    return every.exclude(query__has_key="text")
